"""Copies the timeline and the archive of a table of version 6 into the layout of versions 8 and 9.

The copies lie beside the old files, where readers of version 6 do not look. The decision that changes the properties
makes them the table's timeline. The old files are deleted after it, so that readers always find all instants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

from ....errors import CommitConflictError, CorruptInstantError
from ....storage.base import FileInfo, join, split
from ....storage.threads import for_each
from ....table.config import property_keys as key
from ....table.files.logs.noted_instants import NOTE
from ....table.left_behind import archived_or_undone, remove_old_instants
from ....table.table import Table, open_table, refuse_other_version
from ....timeline.archive.lsm import LsmArchive
from ....timeline.archive.lsm_writer import Row, append, repair_archive
from ....timeline.clock import format_time, free_time_after
from ....timeline.held import CLUSTERING
from ....timeline.instants import WRITE_ACTIONS, Instant, State
from ....timeline.metadata.avro_container import MAGIC
from ....timeline.metadata.codec import InstantBody
from ....timeline.old_layout import OldState, state_of


def take_back_late(
    old: Table, copied: frozenset[str], made: Iterable[str], deleted: Mapping[str, bytes] | None = None
) -> None:
    """Raise `CommitConflictError` if the table ``old`` has another version by now, and take back what came too late.

    Args:
        copied: The identities of the copied instants.
        made: The paths of the files that were made.
        deleted: The bytes of the files that were deleted, by path.
    """
    try:
        refuse_other_version(old)
    except CommitConflictError:
        new = open_table(old.storage)
        # Copied rollbacks and restores are older than the upgrade: a later instant may have the time that they name.
        left_identities, layout = archived_or_undone(new, copied), new.instants.layout
        for path in made:
            instant = layout.parse(split(path)[1])
            if instant is not None and (instant.identity in left_identities or _has_other_time(new, instant)):
                old.storage.delete(path)
        for path, data in (deleted or {}).items():
            instant = layout.parse(split(path)[1])
            if instant is not None and instant.identity not in left_identities and not _has_other_time(new, instant):
                old.storage.create(path, data)
        raise


def _has_other_time(new: Table, instant: Instant) -> bool:
    """Return whether a completed instant also has a file with another completion time, chosen by the upgrade."""
    if instant.state != State.COMPLETED:
        return False
    paths = new.instants.paths().get(instant.identity, {}).get(State.COMPLETED, ())
    return any(path != new.instants.path(instant) for path in paths)


_AT_ONCE = 64
_ARCHIVED_AT_ONCE = 512
# The instants whose bodies are JSON in the timeline or the archive of version 6.
_IN_JSON = WRITE_ACTIONS | {"clean", "rollback", "savepoint"}
_FLAT = {key.VERSION: str(key.NEWEST_FLAT_VERSION), key.LAYOUT_VERSION: str(key.LAYOUT_OF_OLD_TABLES)}


@dataclass(frozen=True)
class TimelineCopy:
    """Copies the instants of the table ``old`` into the layout of ``new``, the same table in its new version."""

    old: Table
    new: Table

    @classmethod
    def planned(cls, old: Table, changes: Mapping[str, str | None]) -> TimelineCopy:
        """Return the copy of a table of version 6 for the properties that it will have."""
        return cls(old, Table.of(old.storage, old.config.with_changes(changes)))

    @classmethod
    def out_of(cls, new: Table) -> TimelineCopy:
        """Return the copy by which a table came from version 6 to version 8 or 9."""
        return cls(Table.of(new.storage, new.config.with_changes(_FLAT)), new)

    def state(self) -> OldState:
        """Return the state of the old timeline, by which a call sees whether it changed since the copy."""
        return state_of(self.old.storage, self.old.instants.layout)

    def size(self) -> int:
        """Return the size of the files whose instants are copied."""
        archived = self.old.storage.list(self.old.config.archive_folder, strict=False)
        return sum(info.size for info in [*self._instant_files(), *archived])

    def check(self) -> None:
        """Raise `CorruptInstantError` for an archived write that cannot be read."""
        # To make a row, the body of its instant is decoded.
        for _ in self._archived_rows(self._completion_times, frozenset()):
            pass

    def make(self) -> None:
        """Copy every instant, also those copied by an earlier call; delete copies of what left the timeline since."""
        refuse_other_version(self.old)
        self._copy_archive(self._completion_times)
        self._delete_stale()
        targets, copied = self._targets, frozenset(instant.identity for instant in self._instants)
        paths = sorted(targets)
        for start in range(0, len(paths), _AT_ONCE):
            refuse_other_version(self.old)
            part = paths[start : start + _AT_ONCE]
            try:
                for_each(self.old.storage, lambda path: self._copy(targets[path], path), part)
            finally:
                take_back_late(self.old, copied, part)

    def is_whole(self) -> bool:
        """Return whether the new layout has exactly these instants; another call may be copying, too."""
        return self._copies().keys() == self._targets.keys()

    def _delete_stale(self) -> None:
        """Delete copies of instants that have left the timeline since.

        The copy of an unknown completed write stays, unless the write was archived or undone: it may have completed
        since this call listed the timeline, and another call copied it. Nothing tells of other instants that they left,
        such as a savepoint that was deleted. So the copy of one goes if the timeline does not have it after all.
        """
        stale = {path: instant for path, instant in self._copies().items() if path not in self._targets}
        if not stale:
            return
        storage, files = self.old.storage, self.old.instants
        listed_identities = {instant.identity for instant in self._instants}
        left_identities = files.archived_or_undone(self._instants) | listed_identities
        present = {each.identity for each in map(files.layout.parse, storage.look(files.folder).names) if each}
        paths = [
            path
            for path, each in stale.items()
            if each.state != State.COMPLETED
            or each.identity in left_identities
            or (not each.is_write and each.identity not in present)
        ]
        deleted = {path: storage.read(path) for path in paths if storage.exists(path)}
        storage.delete(*deleted)
        take_back_late(self.old, frozenset(listed_identities), (), deleted)

    def _copies(self) -> Mapping[str, Instant]:
        """Return the states of instants in the new layout, by the paths of their files."""
        new = self.new.instants
        parsed = ((info.path, new.layout.parse(split(info.path)[1])) for info in self.old.storage.list(new.folder))
        return {path: instant for path, instant in parsed if instant is not None}

    @cached_property
    def _targets(self) -> Mapping[str, Instant]:
        """Each state of the instants on the timeline, by the path that its copy has."""
        times, new = self._completion_times, self.new.instants
        return {new.path(self._renamed(instant, times)): instant for instant in self._instants}

    def remove_old(self) -> None:
        """Delete the old files of instants that the new timeline has, and the old archive if all of it is copied."""
        remove_old_instants(self.new)
        storage, archive = self.old.storage, self.old.archive
        if archive.is_there():
            copied_identities = {instant.identity for instant in self.new.archive.instants()}
            if copied_identities.issuperset(instant.identity for instant in archive.instants()):
                folder = self.old.config.archive_folder
                storage.delete(*(join(folder, name) for name in sorted(archive.file_names())))
                storage.delete(NOTE)

    def _instant_files(self) -> Iterator[FileInfo]:
        """Yield the files of instants in the old timeline's folder."""
        files = self.old.instants
        for info in self.old.storage.list(files.folder, strict=False):
            if files.layout.parse(split(info.path)[1]) is not None:
                yield info

    @cached_property
    def _instants(self) -> Mapping[Instant, FileInfo]:
        """Each state of the instants on the timeline, with its file."""
        parse = self.old.instants.layout.parse
        parsed = ((parse(split(info.path)[1]), info) for info in self._instant_files())
        return {instant: info for instant, info in parsed if instant is not None}

    @cached_property
    def _completion_times(self) -> Mapping[str, str]:
        """The completion time of each completed instant, archived instants included, by its identity."""
        zone = self.old.config.timezone
        changed_at = {instant: instant.completion_time for instant in self.old.archive.timed()}
        changed_at = {instant.at(State.COMPLETED): time for instant, time in changed_at.items()}
        for instant, info in self._instants.items():
            if instant.state == State.COMPLETED:
                changed_at[instant] = format_time(int(info.modified * 1000), zone)
        return completion_times(changed_at)

    def _renamed(self, instant: Instant, times: Mapping[str, str]) -> Instant:
        """Return the state that an instant has in the new layout; `times` has completion times by identity."""
        if instant.state == State.COMPLETED:
            return self.new.instants.layout.completed(instant, times[instant.identity])
        if instant.action in WRITE_ACTIONS and instant.replaces and self._is_clustering(instant):
            return Instant(instant.requested_time, CLUSTERING, instant.state)
        return instant

    def _is_clustering(self, instant: Instant) -> bool:
        """Return whether a replacecommit's plan is a clustering; False if the plan cannot be read."""
        try:
            plan = self.old.instants.read_replace_plan(instant)
        except CorruptInstantError:
            return False
        return plan is not None and plan.clustering_plan is not None

    def _copy(self, instant: Instant, path: str) -> None:
        """Write an instant's file in the new layout to a path; nothing if the instant is gone from the timeline."""
        storage = self.old.storage
        try:
            data = storage.read(self.old.instants.path(instant))
        except FileNotFoundError:
            return  # The instant has left the timeline: the decision will not be made, and all is copied again.
        if instant.group in WRITE_ACTIONS and data and not data.startswith(MAGIC):
            try:
                data = self._encoded_anew(instant, data)
            except CorruptInstantError:
                # Apache Hudi leaves other content in the requested files of tables that came down from a newer version.
                if instant.state == State.COMPLETED:
                    raise
                data = b""
        storage.write(path, data)

    def _encoded_anew(self, instant: Instant, data: bytes) -> bytes:
        """Return the body of an instant, given in JSON, in the form of the new version."""
        where = f"{instant.requested_time}.{instant.action} of the table {self.old.path}"
        from ....timeline.metadata import models  # noqa: PLC0415 (see timeline/metadata/avro_codec.py)

        kinds: Mapping[str, type[models.InstantModel]] = {
            "replacecommit": models.ReplaceCommitMetadata,
            "clean": models.CleanMetadata,
            "rollback": models.RollbackMetadata,
            "savepoint": models.SavepointMetadata,
        }
        kind = kinds.get(instant.group, models.CommitMetadata)
        model = self.old.format.codec.decode(kind, InstantBody(data, where))
        return self.new.format.codec.encode(model)

    def _copy_archive(self, times: Mapping[str, str]) -> None:
        """Copy the archived instants that the new archive lacks."""
        archive = LsmArchive(self.new.storage, self.new.config.archive_folder)
        copied = frozenset(instant.identity for instant in archive.instants())
        for rows in self._archived_rows(times, copied):
            refuse_other_version(self.old)
            append(archive, rows)
        if self.old.archive.is_there():
            # An earlier process may have died after it copied them and before a manifest named them.
            repair_archive(archive)

    def _archived_rows(self, times: Mapping[str, str], copied: frozenset[str]) -> Iterator[Sequence[Row]]:
        """Yield parts of the archived instants as rows of the new archive, without those copied before.

        `times` has the completion times and `copied` the identities of the instants copied before.
        """
        # If instants were archived since the times were read, the timeline's state differs, and all is copied again.
        archived = [
            instant
            for instant in self.old.archive.instants()
            if instant.identity not in copied and instant.identity in times
        ]
        for start in range(0, len(archived), _ARCHIVED_AT_ONCE):
            part = archived[start : start + _ARCHIVED_AT_ONCE]
            yield [*map(partial(self._row, times, self.old.archive.bodies(part)), part)]

    def _row(self, times: Mapping[str, str], bodies: Mapping[Instant, bytes], instant: Instant) -> Row:
        """Return an archived instant as a row of the new archive, with its completion time of `times`.

        `bodies` has the contents of the old archive, none for some instants. Raise `CorruptInstantError` if that of a
        write is lost.
        """
        body = bodies.get(instant)
        if body is None and instant.action in WRITE_ACTIONS:
            raise CorruptInstantError(
                f"The archive of the table {self.old.path} does not say what the {instant.action} "
                f"{instant.requested_time} did.",
                "Restore the archive from a backup.",
            )
        completed = self.new.instants.layout.completed(instant, times[instant.identity])
        return Row(completed, self._encoded_anew(instant, body) if body and instant.group in _IN_JSON else b"")


def remove_old_files(table: Table) -> None:
    """Delete the files of the old layout that an upgrade from version 6 left, except writes that the table lacks."""
    if table.config.left_old_layout:
        TimelineCopy.out_of(table).remove_old()


def completion_times(changed_at: Mapping[Instant, str | None]) -> Mapping[str, str]:
    """Return the completion time of each completed instant by its identity, no two the same.

    ``changed_at`` says when each file was last changed, which is wrong if the table was copied. Such a time is taken if
    it lies between the instant's request and that of the next write. Otherwise the time right after the request is
    taken. So completed writes have the order of their requested times, which is their order in version 6.
    """
    ordered = sorted(changed_at, key=lambda instant: (instant.requested_time, not instant.is_write, instant.group))
    writes = [instant.requested_time for instant in ordered if instant.is_write]
    next_write = dict(pairwise([*writes, None]))
    times: dict[str, str] = {}
    taken_times: set[str] = set()
    for instant in ordered:
        requested, time = instant.requested_time, changed_at[instant]
        next_time = next_write[requested] if instant.is_write else None
        if time is None or time <= requested or (next_time is not None and time >= next_time):
            time = free_time_after(requested, taken_times)
        elif time in taken_times:
            time = free_time_after(time, taken_times)
        taken_times.add(time)
        times[instant.identity] = time
    return times
