"""The files of a table's instants, opened with the format of its version: names, folder, encoding.

A table version's format is its `Layout` and its `Codec`; users of `InstantFiles` need to know neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..errors import ConcurrentWriteError, CorruptInstantError, MetInstant, StorageError, UnsupportedTableError
from ..storage.base import Folder, Storage, join, refuse_links, split
from ..storage.kept import keep
from . import metadata
from .instants import WRITE_ACTIONS, Instant, State
from .layout import Layout
from .listing import listed_states, newest_states
from .metadata.codec import Codec, CommitFiles, InstantBody, StreamTexts

M = TypeVar("M", bound="metadata.models.InstantModel")
InstantPaths = Mapping[str, Mapping[State, tuple[str, ...]]]

# What this process has read of completed writes about streams, by table, folder and instant.
_OF_STREAMS: dict[tuple[str, str, Instant], StreamTexts] = {}
_MOST_OF_STREAMS = 500
# What `MetInstant` calls a change of the table's version.
UPGRADE = "upgrade"


class ArchivedInstants(Protocol):
    def instants(self, since: str = "", until: str | None = None) -> tuple[Instant, ...]:
        """Return the instants that have left the timeline, with requested times from ``since`` to ``until``."""

    def bodies(self, wanted: Iterable[Instant]) -> Mapping[Instant, bytes]:
        """Return the bodies of some of these instants, as far as the archive has them."""


@dataclass(frozen=True, slots=True)
class InstantFiles:
    """Reads, makes and removes the instants of one table.

    A reading method raises CorruptInstantError if the file cannot be parsed. The file of a completed instant that is
    gone makes a StorageError; a plan that is gone or empty is None. ``is_current`` reads whether the table still has
    the version whose format this is.
    """

    storage: Storage
    layout: Layout
    codec: Codec
    archive: ArchivedInstants
    is_current: Callable[[], bool]

    @property
    def folder(self) -> str:
        return self.layout.folder

    @property
    def source(self) -> str:
        """A name that separates these instants from other instants of the same store."""
        return self.folder

    def listed(self) -> tuple[tuple[Instant, ...], bool]:
        """Return the newest state of each instant, by requested time, and whether there are unfinished files."""
        content = self.storage.look(self.folder)
        # Without this check an instant that is a link would silently be missing.
        refuse_links(self.storage.path, self.folder, (name for name in content.links if self.layout.parse(name)))
        self.refuse_moved(content)
        return listed_states(self.storage.path, self.layout, content.names), content.unfinished_files

    def refuse_moved(self, content: Folder) -> None:
        """Raise UnsupportedTableError if instants have moved from this folder to the next layout's.

        Apache Hudi moves instants one by one and changes the version last: until then rows are missing. After the
        change it raises ConcurrentWriteError, as the table has to be opened again.
        """
        moved = self.moved(content)
        if moved and not self.is_current():
            raise ConcurrentWriteError(
                f"The table {self.storage.path} was brought to another version while its instants were being listed.",
                "Run it again, which reads the table anew.",
                met=MetInstant("", UPGRADE),
            )
        if moved:
            raise UnsupportedTableError(
                f"An upgrade of the table {self.storage.path} broke off: the instant {moved[0]} and {len(moved) - 1} "
                f"more have left {self.folder}, and the table's properties still have the old version.",
                "Let Apache Hudi finish it: one write of the release that raised the table does.",
            )

    def moved(self, content: Folder) -> list[str]:
        """Return the identities of completed writes that only the next layout's folder has, sorted.

        ``content`` is what this layout's folder has. Writes that left the timeline do not count: they have no completed
        file here any more, and an upgrade may have copied them. Other instants hide no rows, and nothing tells of a
        savepoint that it was deleted.
        """
        moved = self.only_in_next(content, writes_only=True)
        if not moved:
            return []
        archived = self.archive.instants()
        moved -= {instant.identity for instant in archived}
        if moved:
            moved -= self._undone_by_active(filter(None, map(self.layout.parse, content.names)))
        # Each listing beside old copies comes here, and the archive decodes a file again for each body.
        return sorted(moved - self.undone_by_archived(archived)) if moved else []

    def only_in_next(self, content: Folder, *, writes_only: bool = False) -> set[str]:
        """Return the identities of completed instants that only the next layout's folder has.

        ``content`` is what this layout's folder has. Copies of instants that left the timeline are among them.
        """
        following = self.layout.next
        if following is None or split(following.folder)[1] not in content.folders:
            return set()
        next_identities = _completed_identities(following, self.storage.look(following.folder).names, writes_only)
        if not next_identities:
            return set()
        return next_identities - _completed_identities(self.layout, content.names, writes_only)

    def archived_or_undone(self, active: Iterable[Instant]) -> set[str]:
        """Return the identities of the instants that left the timeline, whose copies an upgrade may have left.

        Writes that are being undone are among them. ``active`` are the timeline's instants.
        """
        archived = self.archive.instants()
        identities = {instant.identity for instant in archived}
        return self._undone_by_active(active) | self.undone_by_archived(archived) | identities

    def _undone_by_active(self, active: Iterable[Instant]) -> set[str]:
        """Return the identities of the writes that undos on the timeline undid, or are undoing."""
        undos = [instant for instant in newest_states(active) if instant.is_undo]
        return identities_of_writes(time for undo in undos for time in self._undone_times(undo))

    def undone_by_archived(self, archived: Iterable[Instant]) -> set[str]:
        """Return the identities of the writes that undos among archived instants undid, by their bodies."""
        times: list[str] = []
        for instant, data in self.archive.bodies(instant for instant in archived if instant.is_undo).items():
            where = f"the archived {instant.action} {instant.requested_time} of the table {self.storage.path}"
            times += self._decode_undone(instant, InstantBody(data, where))
        return identities_of_writes(times)

    def _undone_times(self, undo: Instant) -> list[str]:
        """Return the requested times of what a rollback or restore undid, or undoes if it is pending."""
        if undo.state == State.COMPLETED:
            return self.read_undone(undo)
        try:
            return self.read_undo_plan(undo)
        except CorruptInstantError:
            # No process carries it out.
            return []

    def path(self, instant: Instant) -> str:
        return join(self.layout.folder, self.layout.format(instant))

    def read_commit(self, instant: Instant) -> metadata.models.CommitMetadata:
        """Return the body of a completed write."""
        commit = self.decode_commit(instant, self._read(instant))
        # `read_of_streams` may ask for it later.
        self._keep(instant, StreamTexts.of(commit.extra_metadata))
        return commit

    def decode_commit(self, instant: Instant, body: InstantBody) -> metadata.models.CommitMetadata:
        """Return a completed write's body from its bytes."""
        models = metadata.models
        kind = models.ReplaceCommitMetadata if instant.replaces else models.CommitMetadata
        return self.codec.decode(kind, body)

    def read_summary(self, instant: Instant) -> metadata.models.CommitSummary:
        """Return a completed write without its files, without decoding them."""
        return self.codec.decode_summary(self._read(instant), replaces=instant.replaces)

    def read_written_files(self, instant: Instant) -> CommitFiles:
        """Return what a completed write records about its files, decoding nothing else."""
        files = self.codec.decode_files(self._read(instant), replaces=instant.replaces)
        # `read_of_streams` may ask for it later.
        self._keep(instant, files.of_streams)
        return files

    def read_of_streams(self, instant: Instant) -> StreamTexts:
        """Return what a completed write says of streams; a body that this process has read is not read again."""
        texts = _OF_STREAMS.get((self.storage.path, self.source, instant))
        return texts or self._keep(instant, StreamTexts.of(self.read_summary(instant).extra_metadata))

    def _keep(self, instant: Instant, texts: StreamTexts) -> StreamTexts:
        """Remember what a completed write says of streams, and return it."""
        keep(_OF_STREAMS, (self.storage.path, self.source, instant), texts, _MOST_OF_STREAMS)
        return texts

    def read_clean(self, instant: Instant) -> metadata.models.CleanMetadata | metadata.models.CleanerPlan | None:
        """Return what a clean deleted, or plans to delete; None for an empty file, or a plan that is gone."""
        if instant.state == State.COMPLETED:
            body = self._read(instant)
            # Apache Hudi ignores an empty file, and removes it.
            return self.codec.decode(metadata.models.CleanMetadata, body) if body.data else None
        return self._read_plan(metadata.models.CleanerPlan, instant)

    def read_replace_plan(self, instant: Instant) -> metadata.models.RequestedReplaceMetadata | None:
        return self._read_plan(metadata.models.RequestedReplaceMetadata, instant)

    def read_compaction_plan(self, instant: Instant) -> metadata.models.CompactionPlan | None:
        return self._read_plan(metadata.models.CompactionPlan, instant)

    def read_rollback_plan(self, instant: Instant) -> metadata.models.RollbackPlan | None:
        return self._read_plan(metadata.models.RollbackPlan, instant)

    def read_restore_plan(self, instant: Instant) -> metadata.models.RestorePlan | None:
        return self._read_plan(metadata.models.RestorePlan, instant)

    def read_index_plan(self, instant: Instant) -> metadata.models.IndexPlan | None:
        """Return what an indexing builds; None if it has no plan."""
        return self._read_plan(metadata.models.IndexPlan, instant)

    def read_undone(self, instant: Instant) -> list[str]:
        """Return the requested times of what a completed rollback or restore undid; none of an empty file."""
        return self._decode_undone(instant, self._read(instant))

    def read_undo_plan(self, instant: Instant) -> list[str]:
        """Return the requested times of what a pending rollback or restore undoes; none if its plan is gone."""
        if instant.action == "restore":
            restore = self.read_restore_plan(instant)
            return [] if restore is None else [victim.commit_time for victim in restore.instants_to_rollback]
        rollback = self.read_rollback_plan(instant)
        victim = None if rollback is None else rollback.instant_to_rollback
        return [] if victim is None else [victim.commit_time]

    def _decode_undone(self, instant: Instant, body: InstantBody) -> list[str]:
        """Return what `read_undone` does, from the bytes of a rollback or restore."""
        if not body.data:
            return []
        if instant.action == "restore":
            return self.codec.decode(metadata.models.RestoreMetadata, body).instants_to_rollback
        return self.codec.decode(metadata.models.RollbackMetadata, body).commits_rollback

    def read_savepoint(self, instant: Instant) -> metadata.models.SavepointMetadata:
        return self.codec.decode(metadata.models.SavepointMetadata, self._read(instant))

    def request(self, instant: Instant, body: bytes = b"") -> bool:
        """Put an instant on the timeline; False if its requested file exists already."""
        return self.storage.create(self.path(instant.at(State.REQUESTED)), body)

    def start(self, instant: Instant) -> bool:
        """Make an instant's inflight file; False if it exists already."""
        return self.storage.create(self.path(instant.at(State.INFLIGHT)), self._inflight_body(instant))

    def _inflight_body(self, instant: Instant) -> bytes:
        """Return the content of an instant's inflight file: its plan if the layout repeats it, else nothing."""
        if not self.layout.repeats_plan(instant):
            return b""
        try:
            return self.storage.read(self.path(instant.at(State.REQUESTED)))
        except FileNotFoundError:
            return b""

    def remove_pending(self, instant: Instant) -> None:
        """Remove a pending instant, its inflight file first: it never seems further than it is."""
        for state in (State.INFLIGHT, State.REQUESTED):
            self.storage.delete(self.path(instant.at(state)))

    def paths(self) -> InstantPaths:
        """Return the files of all instants by the instant's identity and their state, in one listing.

        An instant may have several files of one state: completed twice, or requested as clustering and as
        replacecommit.
        """
        by_identity: dict[str, dict[State, tuple[str, ...]]] = {}
        for info in self.storage.list(self.folder, strict=False):
            instant = self.layout.parse(split(info.path)[1])
            if instant is not None:
                states = by_identity.setdefault(instant.identity, {})
                states[instant.state] = (*states.get(instant.state, ()), info.path)
        return by_identity

    def _read(self, instant: Instant) -> InstantBody:
        """Return the content of an instant's file; StorageError if it is gone."""
        path = self.path(instant)
        try:
            return InstantBody(self.storage.read(path), join(self.storage.path, path))
        except FileNotFoundError as error:
            raise StorageError(
                f"The completed {instant.action} {instant.requested_time} of the table {self.storage.path} was "
                f"archived or rolled back while it was being read ({path} is gone).",
                "Run the job again.",
                met=MetInstant(instant.requested_time, "archiving", file=split(path)[1]),
            ) from error

    def _read_plan(self, kind: type[M], instant: Instant) -> M | None:
        """Return the plan in an instant's requested file; None if the file is gone or empty."""
        path = self.path(instant.at(State.REQUESTED))
        try:
            data = self.storage.read(path)
        except FileNotFoundError:
            return None
        # Apache Hudi ignores an empty requested file.
        return self.codec.decode(kind, InstantBody(data, join(self.storage.path, path))) if data else None


def _completed_identities(layout: Layout, names: Iterable[str], writes_only: bool) -> set[str]:
    """Return the identities of the completed instants that names of files spell, or of the writes among them."""
    instants = (instant for instant in map(layout.parse, names) if instant is not None)
    return {
        instant.identity
        for instant in instants
        if instant.state == State.COMPLETED and (instant.is_write or not writes_only)
    }


def identities_of_writes(times: Iterable[str]) -> set[str]:
    """Return the identities that writes of some requested times may have: undos name times alone."""
    return {f"{time}.{action}" for time in times for action in WRITE_ACTIONS}
