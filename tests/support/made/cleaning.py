"""A cleaner and an archiver as Apache Hudi's, for tests of what readers find after them, on copy-on-write tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyhudi.storage import open_storage
from pyhudi.table.files.lost import open_view
from pyhudi.table.files.names import BaseFileName
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import ActionInstant, CleanerPlan, CleanFileInfo, CleanMetadata, CleanPartition
from pyhudi.timeline.timeline import Timeline

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
    timeline = open_table(storage).timeline()
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
    clean = Instant(now, "clean", State.REQUESTED)
    timeline.files.request(clean, encode(plan))
    timeline.files.start(clean)
    deleted = [file for files in victims.values() for file in files]
    storage.delete(*deleted)
    if finish:
        clean_metadata = CleanMetadata(
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
        at = next_time(int(storage.now() * 1000), now, "UTC")
        timeline.complete(replace(clean, state=State.COMPLETED, completion_time=at), encode(clean_metadata))
    return deleted


def clean_nothing(path: Path | str, *, earliest: str, has_body: bool) -> None:
    """Complete a clean that took no file, and names the earliest commit that it retains; or else its file is empty."""
    storage = open_storage(str(path))
    timeline = open_table(storage).timeline()
    begun = next_time(int(storage.now() * 1000), timeline.greatest_time(), "UTC")
    at = next_time(int(storage.now() * 1000), begun, "UTC")
    clean_metadata = CleanMetadata(
        start_clean_time=begun,
        time_taken_in_millis=0,
        total_files_deleted=0,
        earliest_commit_to_retain=earliest,
        partition_metadata={},
    )
    completed = timeline.files.path(Instant(begun, "clean", State.COMPLETED, at))
    storage.write(completed, encode(clean_metadata) if has_body else b"")


def archive(path: Path | str, count: int, *, told: bool = True) -> None:
    """Move the first instants to the archive, as Apache Hudi writes it: the file, the manifest, then the deletions.

    Args:
        path: The table.
        count: How many instants.
        told: Whether the archive says what they did.
    """
    storage = open_storage(str(path))
    timeline = open_table(storage).timeline()
    instants, gone = timeline.files, timeline.completed[:count]
    plans = [instants.path(one.at(State.REQUESTED)) for one in gone]
    rows = {
        "instantTime": [one.requested_time for one in gone],
        "completionTime": [one.completion_time for one in gone],
        "action": [one.action for one in gone],
        "metadata": pa.array([storage.read(instants.path(one)) if told else None for one in gone], pa.binary()),
        "plan": pa.array([storage.read(one) or None if storage.exists(one) else None for one in plans], pa.binary()),
        "version": pa.array([1] * len(gone), pa.int32()),
    }
    folder = f"{TIMELINE}/history"
    name = f"{gone[0].requested_time}_{gone[-1].requested_time}_0.parquet"
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(rows), sink, compression="gzip", store_schema=False)
    storage.write(f"{folder}/{name}", bytes(sink.getvalue()))
    names = [one.path.rpartition("/")[2] for one in storage.list(folder) if one.path.endswith(".parquet")]
    files = [{"fileName": one, "fileLen": len(storage.read(f"{folder}/{one}"))} for one in names]
    storage.write(f"{folder}/manifest_{len(names)}", json.dumps({"files": files}).encode())
    storage.write(f"{folder}/_version_", str(len(names)).encode())
    for entry in gone:
        for state in (State.REQUESTED, State.INFLIGHT):
            storage.delete(instants.path(entry.at(state)))
        storage.delete(instants.path(entry))


def _victims(path: Path | str, timeline: Timeline, earliest: str) -> dict[str, list[str]]:
    """Return every slice that neither the table at ``earliest`` nor any later one shows."""
    storage = open_storage(str(path))
    moments = [one.requested_time for one in timeline.writes if one.requested_time >= earliest]
    shown = {
        file_slice.base_file.path
        for time in moments
        for file_slice in open_view(timeline.as_of_request(time)).all_slices()
    }
    files = [info.path for info in storage.list("", recursive=True) if not info.path.startswith(".hoodie")]
    victims: dict[str, list[str]] = {}
    for file in files:
        folder, _, name = file.rpartition("/")
        if BaseFileName.parse(name) is not None and file not in shown:
            victims.setdefault(folder, []).append(file)
    return victims
