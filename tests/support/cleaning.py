"""A cleaner and an archiver as Apache Hudi's, for tests of what readers find after them, on copy-on-write tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.names import BaseFileName
from pyhudi.table.view import open_view
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.codec import encode
from pyhudi.timeline.layout import layout_of
from pyhudi.timeline.metadata import ActionInstant, CleanerPlan, CleanFileInfo, CleanMetadata, CleanPartition
from pyhudi.timeline.timeline import Timeline, complete, request, start

TIMELINE = ".hoodie/timeline"
POLICY = "KEEP_LATEST_COMMITS"


def clean(path: Path | str, *, retain: int, tell_earliest: bool = True, finish: bool = True) -> list[str]:
    """Delete the file slices that no reader of the newest commits needs, and say so on the timeline.

    The policy is Apache Hudi's ``KEEP_LATEST_COMMITS``.

    Args:
        path: The table.
        retain: How many commits readers may go back, at least one.
        tell_earliest: Whether the clean names the earliest commit that it retains, as one by file versions does not.
        finish: False for a clean that was killed after it had deleted everything.

    Returns:
        The paths of the deleted files.
    """
    storage = open_storage(str(path))
    layout = layout_of(load_config(storage))
    timeline = Timeline.load(storage, layout)
    earliest = timeline.writes[-retain].requested_time if len(timeline.writes) > retain else ""
    victims = {} if not earliest else _victims(path, timeline, earliest)
    if not victims:
        return []
    now = next_time(int(storage.now() * 1000), timeline.greatest_time(), "UTC")
    told = earliest if tell_earliest else ""
    plan = CleanerPlan(
        earliest_instant_to_retain=ActionInstant(timestamp=told, action="commit", state="COMPLETED") if told else None,
        policy=POLICY,
        file_paths_to_be_deleted_per_partition={
            partition: [CleanFileInfo(file_path=storage.uri(file)) for file in files]
            for partition, files in victims.items()
        },
    )
    request(storage, layout, now, "clean", encode(plan))
    start(storage, layout, now, "clean")
    deleted = [file for files in victims.values() for file in files]
    storage.delete(*deleted)
    if finish:
        done = CleanMetadata(
            start_clean_time=now,
            time_taken_in_millis=0,
            total_files_deleted=len(deleted),
            earliest_commit_to_retain=told,
            partition_metadata={
                partition: CleanPartition(
                    partition_path=partition,
                    policy=POLICY,
                    success_delete_files=[file.rpartition("/")[2] for file in files],
                )
                for partition, files in victims.items()
            },
        )
        complete(storage, timeline, now, "clean", next_time(int(storage.now() * 1000), now, "UTC"), encode(done))
    return deleted


def archive(path: Path, count: int) -> None:
    """Move the first commits to the archive."""
    gone = sorted((path / TIMELINE).glob("*_*.*"))[:count]
    times = [one.stem.split("_") for one in gone]
    columns = {
        "instantTime": [requested for requested, _ in times],
        "completionTime": [completed for _, completed in times],
        "action": [one.suffix.removeprefix(".") for one in gone],
    }
    folder = path / TIMELINE / "history"
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{times[0][0]}_{times[-1][0]}_0.parquet")
    for requested, _ in times:
        for file in (path / TIMELINE).glob(f"{requested}*"):
            file.unlink()


def _victims(path: Path | str, timeline: Timeline, earliest: str) -> dict[str, list[str]]:
    """Return every slice that neither the table at ``earliest`` nor any later one shows."""
    storage = open_storage(str(path))
    moments = [one.requested_time for one in timeline.writes if one.requested_time >= earliest]
    shown = {
        piece.base.path for time in moments for piece in open_view(storage, timeline.as_of_request(time)).all_slices()
    }
    files = [info.path for info in storage.list("", recursive=True) if not info.path.startswith(".hoodie")]
    victims: dict[str, list[str]] = {}
    for file in files:
        folder, _, name = file.rpartition("/")
        if BaseFileName.parse(name) is not None and file not in shown:
            victims.setdefault(folder, []).append(file)
    return victims
