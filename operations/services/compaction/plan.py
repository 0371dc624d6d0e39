"""Plans of compactions: makes them from the file slices with log files, and reads them from requested instants.

A plan names exactly the log files that completed before its requested time; later log files belong to the slice that
it begins. So the plan is made inside the decision that puts it on the timeline, at a time greater than all times there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....errors import CorruptInstantError, MissingFileError, UnsupportedTableError
from ....storage.base import FileInfo, Storage, join
from ....storage.threads import for_each
from ....table.files.file_group import BaseFile, FileSlice, LogFile, base_file, log_file
from ....table.files.lost import WholeView
from ....table.files.names import FileGroupId
from ....table.files.partitions import walk_partitions
from ....table.files.read_written import read_replaced, read_stated, read_written
from ....table.files.slice_rule import slice_rule
from ....table.files.view import FileView
from ....table.files.written import Written
from ....timeline.archive.completions import CompletionTimes
from ....timeline.held import COMPACTION, clustered_groups, held_groups, pending_compactions
from ....timeline.instants import Instant
from ....timeline.rescales import pending_rescales
from ....timeline.timeline import Timeline
from ...meeting.concurrency import CLUSTERING, RESCALE, InstantKind, Meeting, Shared, forbids, kind_of
from .choice import Cost

if TYPE_CHECKING:
    from ....timeline.metadata.models import CompactionOperation

Plan = tuple[FileSlice, ...]
# These actions may delete or restore files in partitions that no commit names.
_UNDOING = frozenset({"clean", "rollback", "restore"})
# The version of plans that give files' names without folders.
BARE_NAMES = 2


def has_logs(file_slice: FileSlice) -> bool:
    return bool(file_slice.logs)


class FreeSlices:
    """Finds the file slices with log files that no plan holds; later calls list only partitions that changed since."""

    def __init__(self, storage: Storage, mine: InstantKind) -> None:
        """Look in a table for an instant of the kind `mine`, which decides which other plans hold slices."""
        self._storage = storage
        self._mine = mine
        self._listings: dict[str, tuple[FileInfo, ...]] = {}
        self._seen: frozenset[Instant] | None = None
        self.held_partitions: list[str] = []

    def find(
        self,
        timeline: Timeline,
        among: Callable[[list[str]], list[str]] = list,
        wanted: Callable[[FileSlice], bool] = has_logs,
    ) -> list[FileSlice]:
        """Return the slices with log files, or the `wanted` slices, that no plan holds, by partition path and file id.

        `among` returns those of some partition paths in which to look, in the order of the result.
        Leave out the partitions that a rescale holds, and keep their paths in `held_partitions`.
        """
        self._list_changed(timeline)
        held_groups = held_by_plans(self._mine, timeline)
        held_by_rescale = held_by_rescales(self._mine, timeline)
        view = WholeView(timeline, read_written(timeline), self._listings)
        free_partitions: list[str] = []
        self.held_partitions = []
        for path in sorted(self._listings):
            (self.held_partitions if held_by_rescale(path) else free_partitions).append(path)
        return [
            file_slice
            for partition in among(free_partitions)
            for file_slice in view.slices(partition).values()
            if (file_slice.partition_path, file_slice.file_id) not in held_groups and wanted(file_slice)
        ]

    def missed(self, now: Timeline, planned_instant: Instant) -> bool:
        """Return whether a plan lacks a write that completed before the time of `planned_instant`, the plan's instant.

        Only a process that ignores pyhudi's decisions can cause that.
        """
        seen = self._seen or frozenset()
        return any(
            instant.is_write and instant not in seen and instant.visible_since <= planned_instant.requested_time
            for instant in now.completed
        )

    def _list_changed(self, timeline: Timeline) -> None:
        """Bring the listing up to the timeline: list all partitions, or only those whose files changed since."""
        now = frozenset(timeline.completed)
        fresh_instants = now - (self._seen or frozenset())
        if self._seen is None or any(instant.action in _UNDOING for instant in (*fresh_instants, *(self._seen - now))):
            self._listings = walk_partitions(self._storage)
        else:
            fresh_writes = [instant for instant in fresh_instants if instant.is_write]
            bodies = for_each(self._storage, timeline.files.read_written_files, fresh_writes)
            touched_partitions = sorted({partition for body in bodies for partition in (*body.stats, *body.replaced)})
            self._listings |= _files_of_partitions(self._storage, touched_partitions)
        self._seen = now


def held_by_rescales(mine: InstantKind, timeline: Timeline) -> Callable[[str], bool]:
    """Return a function that says whether a rescale keeps an instant of the kind `mine` out of a partition."""
    # A rescale merges the slices of its partitions itself.
    meeting = Meeting(mine, RESCALE, shared=frozenset({Shared.PARTITION}))
    rescales = [*pending_rescales(timeline).values()] if forbids(meeting) else []
    return lambda path: any(rescale.holds(path) for rescale in rescales)


def held_by_plans(mine: InstantKind, timeline: Timeline, but: Instant | None = None) -> frozenset[tuple[str, str]]:
    """Return the file groups, by partition path and file id, that an instant of the kind `mine` must not touch.

    Pending plans hold them, apart from the plan `but`.
    """
    pending = pending_compactions(timeline)
    excepted = None if but is None else but.identity
    counting = {instant: plan for instant, plan in pending.items() if instant.identity != excepted}
    holder_by_group = {**held_groups(counting), **dict.fromkeys(clustered_groups(timeline))}
    return frozenset(group for group, holder in holder_by_group.items() if _is_left_out(mine, holder))


def _is_left_out(mine: InstantKind, holder: Instant | None) -> bool:
    """Return whether a new plan leaves out what another plan holds; `holder` is None for a clustering."""
    kind = None if holder is None else kind_of(holder.action)
    meeting = Meeting(mine, kind or CLUSTERING, shared=frozenset({Shared.FILE_GROUP}))
    return forbids(meeting)


def named_slices(
    timeline: Timeline, instant: Instant, executor: str | None = None
) -> tuple[Plan, dict[str, tuple[FileInfo, ...]], Mapping[str, str]]:
    """Return a pending plan's slices without replaced file groups, the files of its partitions, and its extra metadata.

    `instant` is the pending compaction or log compaction, and `timeline` shows it. `executor` is the Java class that
    plans of this kind may name, None for no class. Raises `CorruptInstantError` for a plan that no process can carry
    out, `MissingFileError` if a planned file is gone, and `UnsupportedTableError` if only Apache Hudi can carry it out.
    """
    storage = timeline.storage
    compaction_plan = timeline.files.read_compaction_plan(instant)
    if compaction_plan is None or not compaction_plan.operations:
        raise _corrupt_plan(storage, instant, "has an empty plan, so that no process can carry it out")
    named_executor = None if compaction_plan.strategy is None else compaction_plan.strategy.compactor_class_name
    if named_executor and named_executor != executor:
        raise UnsupportedTableError(
            f"The {instant.action} {instant.requested_time} of the table {storage.path} is to be carried out by "
            f"{named_executor}.",
            "Carry it out with Apache Hudi.",
        )
    partitions = sorted({operation.partition_path or "" for operation in compaction_plan.operations})
    listings = _files_of_partitions(storage, partitions)
    replaced = read_replaced(timeline).replaced
    # Leave out replaced file groups: once the replacing instant is archived, their files would be rows of the table.
    operations = [
        operation
        for operation in compaction_plan.operations
        if (operation.partition_path or "", operation.file_id or "") not in replaced
    ]
    plan = tuple(_slice_of_operation(storage, instant, operation, listings) for operation in operations)
    # A log compaction opens no base file.
    opens_bases = instant.action == COMPACTION
    opened = [file for file_slice in plan for file in (file_slice.data_files if opens_bases else file_slice.logs)]
    written = read_stated(timeline, opened)
    stated_slices = tuple(_with_stated_sizes(file_slice, written) for file_slice in plan)
    return stated_slices, listings, compaction_plan.extra_metadata or {}


def check_complete(
    timeline: Timeline,
    instant: Instant,
    plan: Plan,
    listings: Mapping[str, tuple[FileInfo, ...]],
) -> None:
    """Raise `CorruptInstantError` if a plan leaves out a log file that completed before it: its rows would be lost.

    `instant` is the pending compaction whose slices `plan` has, and `timeline` shows it. `listings` has the files of
    the plan's partitions, by partition path.
    """
    completed_at, rule = CompletionTimes(timeline), slice_rule(timeline)
    view = FileView(timeline, read_replaced(timeline), listings)
    groups = {partition: view.groups(partition) for partition in listings}
    for file_slice in plan:
        group = groups[file_slice.partition_path].get(file_slice.file_id)
        slices = group.slices if group else ()
        current = next((each for each in slices if each.base_time == file_slice.base_time), None)
        named_logs = {log.path for log in file_slice.logs}
        for log in current.logs if current is not None else ():
            if log.path not in named_logs and rule.is_merged(log, instant.requested_time, completed_at):
                raise _corrupt_plan(
                    timeline.storage, instant, f"leaves out the log file {log.path}, whose rows would be lost"
                )


def operations_of(plan: Plan) -> list[CompactionOperation]:
    """Return the operations that a plan file holds for some slices."""
    from ....timeline.metadata.models import CompactionOperation  # noqa: PLC0415 (see timeline/instant_files.py)

    return [
        CompactionOperation(
            base_instant_time=file_slice.base_time,
            delta_file_paths=[_file_name(log.path) for log in file_slice.logs],
            data_file_path=None if file_slice.base is None else file_slice.base.name,
            file_id=file_slice.file_id,
            partition_path=file_slice.partition_path,
            metrics=Cost.of(file_slice).metrics(),
        )
        for file_slice in plan
    ]


def replaced_since(timeline: Timeline, groups: Iterable[FileGroupId]) -> list[FileGroupId]:
    """Return those of some file groups that completed instants replaced."""
    replaced = read_replaced(timeline).replaced
    return [group for group in groups if (group.partition_path, group.file_id) in replaced]


def _slice_of_operation(
    storage: Storage, instant: Instant, operation: CompactionOperation, listings: Mapping[str, Sequence[FileInfo]]
) -> FileSlice:
    """Return the slice that an operation of a plan names, with the sizes that the folder's listing has.

    `instant` is the pending compaction of the plan, and `listings` has the files of its partitions, by partition path.
    Raises `CorruptInstantError` if it names files of other file groups, `MissingFileError` if one of its files is
    gone, and `UnsupportedTableError` for a bootstrapped file.
    """
    partition, file_id = operation.partition_path or "", operation.file_id or ""
    if operation.bootstrap_file_path:
        raise UnsupportedTableError(
            f"The {instant.action} {instant.requested_time} of the table {storage.path} merges a bootstrapped file.",
            "Carry it out with Apache Hudi.",
        )
    sizes = {info.path: info.size for info in listings[partition]}
    # Plans of version 1 name files by their paths.
    paths = [join(partition, _file_name(path)) for path in operation.delta_file_paths]
    logs = [log_file(path, sizes.get(path, 0)) for path in paths]
    base_path = join(partition, _file_name(operation.data_file_path)) if operation.data_file_path else ""
    base = base_file(base_path, sizes.get(base_path, 0)) if base_path else None
    files: list[BaseFile | LogFile] = [each for each in (base, *logs) if each is not None]
    named_paths = [*([base_path] if base_path else []), *paths]
    if len(files) < len(named_paths) or not named_paths or any(each.file_id != file_id for each in files):
        raise _corrupt_plan(
            storage, instant, f"names files that are none of the file group {file_id!r} in {partition!r}"
        )
    missing_paths = [path for path in named_paths if path not in sizes]
    if missing_paths:
        raise MissingFileError(
            f"The file {missing_paths[0]} of the table {storage.path} is gone, which the pending {instant.action} "
            f"{instant.requested_time} is to merge"
            + (f" (and so are {len(missing_paths) - 1} more)." if missing_paths[1:] else "."),
            f"Restore the file from a backup, or take the plan back (HudiTable.rollback({instant.requested_time!r})), "
            "which leaves the table as it is.",
        )
    group = FileGroupId(partition, file_id)
    ordered = sorted((each for each in logs if each is not None), key=lambda each: each.name.order)
    return FileSlice(group, operation.base_instant_time or "", base, tuple(ordered))


def _with_stated_sizes(file_slice: FileSlice, written: Written) -> FileSlice:
    """Return a slice whose files have the sizes and records that their commits state, by which damage is found."""
    base = file_slice.base and replace(file_slice.base, stated=written.stated_size(file_slice.base))
    logs = tuple(replace(log, stated=written.stated(log)) for log in file_slice.logs)
    return replace(file_slice, base=base, logs=logs)


def _files_of_partitions(storage: Storage, partitions: Sequence[str]) -> dict[str, tuple[FileInfo, ...]]:
    """Return the files of partitions, by partition path."""
    return dict(zip(partitions, map(tuple, for_each(storage, storage.list, partitions)), strict=True))


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


def _corrupt_plan(storage: Storage, instant: Instant, what: str) -> CorruptInstantError:
    """Return the error for a plan that cannot be carried out, with the reason `what`."""
    return CorruptInstantError(
        f"The pending {instant.action} {instant.requested_time} of the table {storage.path} {what}.",
        f"Take it back with HudiTable.rollback({instant.requested_time!r}), and compact again.",
    )
