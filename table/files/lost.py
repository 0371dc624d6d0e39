"""Base and log files that completed writes name and the store lacks: what became of them, and who needs them."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import MissingFileError, StorageError
from ...storage.base import Storage, split
from ...timeline.instants import State
from ...timeline.pending_undo import on_the_way_out
from ...timeline.timeline import Timeline
from .file_group import DataFile, FileSlice
from .names import met_at_file
from .read_written import read_written
from .slice_rule import slice_rule
from .view import FileView


class WholeView(FileView):
    """A view for writes: it shows no partition of which a file is missing."""

    def slices(self, partition_path: str) -> dict[str, FileSlice]:
        """Return the newest slices as `FileView.slices` does, unless a file is gone."""
        superseded_files = superseded(self.timeline, self.lost(partition_path))
        if superseded_files:
            raise _taken_meanwhile(self.storage, superseded_files[0])
        return super().slices(partition_path)


def open_view(timeline: Timeline) -> WholeView:
    """Return a view of the newest slices for writes."""
    return WholeView(timeline, read_written(timeline))


def superseded(timeline: Timeline, lost_files: Iterable[DataFile], now: Timeline | None = None) -> list[DataFile]:
    """Return the lost files that the table does not need now: a clean may have deleted them.

    ``now`` is the timeline after the files were listed; None if it is to be read. Files that a clean of that
    timeline names are neither returned nor missed. Raises `MissingFileError` if the table needs another lost file,
    `StorageError` if a rollback of that file's instant began.
    """
    waiting = list(lost_files)
    if not waiting:
        return []
    from .cleaned import names_cleaned  # noqa: PLC0415 (brings pydantic along, which tasks rarely need)

    now = now or timeline.reload()
    view = FileView(now, read_written(now))
    needed = {file.path for partition in {split(file.path)[0] for file in waiting} for file in view.lost(partition)}
    # Readers may see the file's instant, and the newest slices of now do without the file.
    superseded_files = [file for file in waiting if view.shows(file) and file.path not in needed]
    other_files = [file for file in waiting if file not in superseded_files]
    # A clean that is on its way, or just ended, accounts for a file that an older moment still shows.
    cleaned = names_cleaned(now) if other_files else frozenset()
    missing = [file for file in other_files if split(file.path)[1] not in cleaned]
    if missing:
        raise _missing(now, missing)
    return superseded_files


def _missing(now: Timeline, missing_files: list[DataFile]) -> MissingFileError | StorageError:
    """Return the error for missing files: StorageError if a rollback took one, MissingFileError if none did."""
    being_undone, rule = on_the_way_out(now), slice_rule(now)
    for file in missing_files:
        makers = rule.makers([file], now)
        writes = [now.find(maker) for maker in makers]
        if makers & being_undone or any(write is None or write.state != State.COMPLETED for write in writes):
            return _taken_meanwhile(now.storage, file, is_undone=True)
    first_file, others = missing_files[0], len(missing_files) - 1
    made_by = max(rule.makers([first_file], now), default="")
    writer = now.find(made_by)
    return MissingFileError(
        f"The {first_file.kind} {first_file.path} of the table {now.storage.path} is gone, which the "
        f"{writer.action if writer else 'write'} {made_by} made and nothing has replaced since"
        + (f" (and so are {others} more)." if others else "."),
        "Restore the file from a backup, or roll back that commit and all later commits; an overwrite of "
        "its partition gives up the rows that were in it.",
    )


def _taken_meanwhile(storage: Storage, file: DataFile, *, is_undone: bool = False) -> StorageError:
    """Return the error for a file that another writer took away; the same call may succeed if it is made again."""
    what = "was rolled back, or is being rolled back," if is_undone else "was replaced by a newer file and removed"
    return StorageError(
        f"The {file.kind} {file.path} of the table {storage.path} {what} by another writer while it was needed.",
        "Run it again.",
        met=met_at_file(file.path, "rollback" if is_undone else "clean"),
    )
