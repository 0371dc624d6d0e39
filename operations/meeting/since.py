"""What a write saw at its plan, and the instants that completed since, archived instants included."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ...errors import CommitConflictError, CorruptInstantError, UnreadableTimeError
from ...storage.base import split
from ...table.files.file_group import DataFile, data_file
from ...table.files.names import FileGroupId
from ...table.latest_schema import refuse_newer_keys
from ...table.seen_table import SeenTable
from ...timeline.instants import WRITE_ACTIONS, Instant, action_group
from ...timeline.metadata.codec import InstantBody
from ...timeline.timeline import Timeline
from ...timeline.watermark import Seen, Watermark
from .concurrency import Known, known_of
from .transaction import Transaction

if TYPE_CHECKING:
    from ...timeline.metadata.models import CommitMetadata, InstantInfo, InstantModel

M = TypeVar("M", bound="InstantModel")


@dataclass(frozen=True, slots=True)
class Undone:
    """A write that a pending or completed rollback names, and the file groups in which the rollback deletes files.

    ``rollback_time`` is the requested time of the rollback, and ``state`` whether that is complete. ``group`` is the
    group of actions of the write, as `action_group` returns it.
    """

    rollback_time: str
    instant_time: str
    group: str
    file_groups: frozenset[FileGroupId]
    state: Known


@dataclass(frozen=True, slots=True)
class InstantsSincePlan:
    """The instants that completed since a write was planned, and those that are pending.

    Attributes:
        active: The completed instants on the timeline, in the order in which they completed.
        archived: The instants archived meanwhile, with their completed files; empty bytes for a file that the archive
            lacks.
        pending: The pending instants on the timeline, in order of requested time.
    """

    work: Transaction
    seen: Seen
    timeline: Timeline
    active: tuple[Instant, ...]
    archived: Mapping[Instant, bytes]
    pending: tuple[Instant, ...]

    @classmethod
    def find(cls, work: Transaction, timeline: Timeline, checked: Collection[Instant] = ()) -> InstantsSincePlan:
        """Return what completed since the plan, without instants that are ``checked`` in the same state.

        Raises `CommitConflictError` if the history no longer reaches back to the plan.
        """
        seen = _seen_at_plan(work, timeline)
        archived_instants = [
            instant for instant in work.table.archive.completed_since(timeline, seen) if instant not in checked
        ]
        bodies = work.table.archive.bodies(archived_instants)
        active = tuple(instant for instant in timeline.completed_since(seen) if instant not in checked)
        pending = tuple(instant for instant in timeline.pending if instant not in checked)
        return cls(
            work, seen, timeline, active, {instant: bodies.get(instant, b"") for instant in archived_instants}, pending
        )

    @classmethod
    def of_unread(cls, work: Transaction, timeline: Timeline) -> InstantsSincePlan:
        """Return what `find` returns, for a write that has read nothing.

        If the history does not reach back to the plan, it returns all instants on the timeline.
        """
        try:
            return cls.find(work, timeline)
        except CommitConflictError:
            return cls(work, Seen(Watermark("")), timeline, timeline.completed, {}, timeline.pending)

    @property
    def instants(self) -> tuple[Instant, ...]:
        """All instants since the plan."""
        return (*self.active, *self.archived, *self.pending)

    @property
    def writes(self) -> tuple[Instant, ...]:
        """The completed writes since the plan, compactions included."""
        return tuple(instant for instant in (*self.active, *self.archived) if instant.action in WRITE_ACTIONS)

    def read(self, write: Instant) -> CommitMetadata:
        """Return the metadata of one of `writes`; raise `CommitConflictError` if the archive lacks it."""
        metadata = self._read_body(write)
        refuse_newer_keys(self.timeline, write, metadata.extra_metadata)
        return metadata

    def _read_body(self, write: Instant) -> CommitMetadata:
        """Return the metadata of one of `writes`, from its file on the timeline or from the archive."""
        if write not in self.archived:
            return self.timeline.files.read_commit(write)
        from ...timeline.metadata.models import CommitMetadata, ReplaceCommitMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

        kind = ReplaceCommitMetadata if write.replaces else CommitMetadata
        return self._read_archived(kind, write)

    @property
    def restore(self) -> Instant | None:
        """A completed or pending restore, which takes the table back to before what the write saw; None for none."""
        return next((instant for instant in self.instants if instant.action == "restore"), None)

    @property
    def state_of_cleans(self) -> Known:
        """The state of the cleans that `cleaned` reads: completed if one of them is."""
        any_completed = any(instant.action == "clean" for instant in (*self.active, *self.archived))
        return Known.COMPLETED if any_completed else Known.PENDING

    def cleaned(self) -> Mapping[str, tuple[DataFile, ...]]:
        """Return the files that completed cleans deleted or pending cleans are about to delete, by partition path."""
        from ...table.files.cleaned import files_of  # noqa: PLC0415 (brings pydantic along)
        from ...timeline.metadata.models import CleanMetadata  # noqa: PLC0415

        cleans = [instant for instant in {*self.active, *self.pending} if instant.action == "clean"]
        bodies = [self.timeline.files.read_clean(instant) for instant in cleans]
        archived = [instant for instant in self.archived if instant.action == "clean"]
        bodies += [self._read_archived(CleanMetadata, instant) for instant in archived]
        # An empty file names no files, nor does a plan that is gone.
        return files_of(clean for clean in bodies if clean is not None)

    def rollbacks_of(self, instant_time: str) -> list[Undone]:
        """Return the rollbacks of one write."""
        # A rollback is requested after its victim, and the archive may lack the bodies of earlier rollbacks.
        return [undo for undo in self.undone_writes(archived_after=instant_time) if undo.instant_time == instant_time]

    def undone_writes(self, archived_after: str = "") -> Iterator[Undone]:
        """Yield the writes that completed or pending rollbacks undo; of archived rollbacks only later than a time."""
        instants = {*self.active, *self.pending}
        for instant in sorted(instants, key=lambda instant: instant.requested_time):
            plan = self.timeline.files.read_rollback_plan(instant) if instant.action == "rollback" else None
            # An empty plan names no write.
            if plan is not None and plan.instant_to_rollback is not None:
                yield _undone_write(instant, plan.instant_to_rollback, self.work.table.format.undo.planned(plan))
        from ...timeline.metadata.models import InstantInfo, RollbackMetadata  # noqa: PLC0415

        for instant in self.archived:
            if instant.action == "rollback" and instant.requested_time > archived_after:
                metadata = self._read_archived(RollbackMetadata, instant)
                deleted_paths = [*self.work.table.format.undo.taken(metadata)]
                actions = {each.commit_time: each.action for each in metadata.instants_rollback}
                for victim in metadata.commits_rollback:
                    yield _undone_write(
                        instant, InstantInfo(commit_time=victim, action=actions.get(victim, "")), deleted_paths
                    )

    def _read_archived(self, kind: type[M], instant: Instant) -> M:
        """Return the content of an archived instant; raise `CommitConflictError` if the archive lacks it."""
        try:
            return self.timeline.files.codec.decode(
                kind, InstantBody(self.archived[instant], f"{instant.requested_time} in the archive")
            )
        except CorruptInstantError as error:
            raise self.work.conflict(
                f"The {instant.action} {instant.requested_time} completed and was archived meanwhile, and the archive "
                "does not tell what it changed",
            ) from error


def _undone_write(rollback: Instant, victim: InstantInfo, paths: Iterable[str]) -> Undone:
    """Return a write that a rollback undoes, with the file groups of the files that the rollback deletes."""
    made_files = (file for path in paths if (file := data_file(path, changes=True)) is not None)
    groups = frozenset(FileGroupId(split(file.path)[0], file.file_id) for file in made_files)
    return Undone(rollback.requested_time, victim.commit_time, action_group(victim.action), groups, known_of(rollback))


def seen_by(work: Transaction, later_timeline: Timeline) -> SeenTable:
    """Return the table as it was at the plan of the write, by a timeline of a later moment."""
    return SeenTable(work.table, later_timeline.as_of(_seen_at_plan(work, later_timeline)))


def _seen_at_plan(work: Transaction, timeline: Timeline) -> Seen:
    """Return what the write saw at its plan; raise `CommitConflictError` if a timeline no longer shows that."""
    try:
        return work.table.archive.seen_at(timeline, work.watermark)
    except UnreadableTimeError as error:
        raise work.conflict(
            "The timeline no longer shows which instants it saw and which completed meanwhile: instants of that time "
            "left it without being archived, or other instants were put between them",
        ) from error
