"""What the archived timeline still tells: when each archived instant was requested, when it completed, what it did.

Format: ``HoodieLSMTimelineInstant`` rows in Parquet files named after the least and greatest requested time in them
(``LSMTimeline``); a manifest names the files that count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptInstantError, PyHudiError, StorageError, UnreadableTimeError
from ...storage.base import Storage, join
from ...storage.bounds import MOST_BYTES
from ...storage.parallel import for_each
from ..instants import WRITE_ACTIONS, Instant, State
from ..timeline import Timeline
from ..watermark import Seen, Watermark
from .manifest import ArchiveFile, Manifests

if TYPE_CHECKING:
    import pyarrow.parquet as pq

R = TypeVar("R")

_MOST_ROWS = 10_000_000
TIME = "instantTime"
COLUMNS = [TIME, "completionTime", "action"]
BODY = "metadata"
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Archive:
    """The instants that have left a table's timeline, as layout 2 keeps them.

    Every method raises CorruptInstantError where a file of the archive cannot be read, and StorageError where the
    archive was merged meanwhile, or the store failed.

    Attributes:
        storage: Rooted at the table.
        folder: The archive's folder, relative to the table's root.
    """

    storage: Storage
    folder: str

    @property
    def manifests(self) -> Manifests:
        """What names the archive's files."""
        return Manifests(self.storage, self.folder)

    def writes(self) -> tuple[Instant, ...]:
        """Return the archived commits, deltacommits and replacecommits, in order of requested time."""
        return tuple(one for one in self.instants() if one.action in WRITE_ACTIONS)

    def instants(self, since: str = "", until: str | None = None) -> tuple[Instant, ...]:
        """Return the archived instants of every action, each once, in order of requested time.

        Args:
            since: Files in which no instant was requested at this time or later are not opened.
            until: Nor are those in which none was requested up to this time; None for no end.
        """
        return self._with_files(lambda files: self.instants_in(_between(files, since, until)))

    def instants_in(self, files: Iterable[ArchiveFile]) -> tuple[Instant, ...]:
        """Return the instants in some files of the archive, each once, in order of requested time."""
        names = [one.name for one in files]
        parts = for_each(self.storage, partial(self._read, columns=COLUMNS), names)
        found = {one.identity: one for part in parts for one in _instants(part)}
        return tuple(found[identity] for identity in sorted(found))

    def newest(self, count: int | None, besides: frozenset[str]) -> tuple[Instant, ...]:
        """Return the youngest archived instants, the youngest first; only the files that hold them are opened.

        Args:
            count: How many; None for all.
            besides: Identities of those that are on the timeline still.
        """

        def find(files: Sequence[ArchiveFile]) -> tuple[Instant, ...]:
            waiting = sorted(files, key=lambda one: one.greatest)
            found: dict[str, Instant] = {}
            while waiting and count != 0:
                known = sorted((one.requested_time for one in found.values()), reverse=True)
                if count is not None and len(known) >= count and known[count - 1] > waiting[-1].greatest:
                    break
                part = self.instants_in([waiting.pop()])
                found |= {one.identity: one for one in part if one.identity not in besides}
            return tuple(found[identity] for identity in sorted(found, reverse=True))[:count]

        return self._with_files(find)

    def holds(self, requested_time: str) -> bool:
        """Return whether an instant of this requested time completed and was archived."""
        near = self.instants(requested_time, requested_time)
        return any(one.requested_time == requested_time for one in near)

    def bodies(self, wanted: Iterable[Instant]) -> Mapping[Instant, bytes]:
        """Return what the completed files of some archived instants held, of those of which the archive tells it."""
        wanted = set(wanted)
        times = sorted(one.requested_time for one in wanted)
        if not times:
            return {}
        return self._with_files(
            lambda files: {
                one: body for one, body in self.bodies_in(_between(files, times[0], times[-1]), times) if one in wanted
            }
        )

    def bodies_in(
        self, files: Iterable[ArchiveFile], times: Sequence[str] | None = None
    ) -> Iterator[tuple[Instant, bytes]]:
        """Yield the instants in some files of the archive with what their completed files held, where it is told.

        Args:
            files: Which files.
            times: Requested times of those that are wanted, in order; None for all.
        """
        for file in files:
            part = self._read(file.name, [*COLUMNS, BODY], times)
            if times is not None:
                part = part.filter(pc.is_in(part.column(TIME).cast(pa.string()), pa.array(times)))
            bodies = part.column(BODY).to_pylist()
            yield from ((one, body) for one, body in zip(_instants(part), bodies, strict=True) if body)

    def row_groups(self, files: Iterable[ArchiveFile], schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield all that some files of the archive hold, one row group at a time."""
        for one in files:
            with self._opened(one.name) as file:
                for number in range(file.num_row_groups):
                    yield file.read_row_group(number, use_threads=False).select(schema.names).cast(schema)

    def state(self) -> str:
        """Return what changes whenever instants are archived, in one listing and one read."""
        names = sorted(one.name for one in self.manifests.newest().files)
        return hashlib.sha256("\n".join(names).encode()).hexdigest()

    def seen_at(self, timeline: Timeline, watermark: Watermark) -> Seen:
        """Return what was complete at a moment.

        Args:
            timeline: As it is now.
            watermark: The moment.

        Raises:
            UnreadableTimeError: Instants of that time are neither on the timeline nor in the archive any more.
        """
        seen = watermark.against(timeline.completed, lambda: self._older_than_recent(watermark))
        if seen is None:
            raise UnreadableTimeError(
                f"What the table {self.storage.path} held when its newest instant was completed at "
                f"{watermark.completed_until} cannot be told any more: instants of that time have left its timeline "
                "without being archived, or others were put between them.",
                "Make the DataFrame anew.",
            )
        return seen

    def since(self, timeline: Timeline, seen: Seen) -> tuple[Instant, ...]:
        """Return the instants that completed after a moment and were archived since, in order of requested time.

        Args:
            timeline: As of a moment ago; what was archived since then is on it.
            seen: What was complete at the moment.
        """
        known = seen.watermark.archive
        if known and known == self.state():
            return ()
        active = {one.identity for one in timeline.completed}
        # A clean or rollback of before the first write of then goes along with writes that were on the timeline then.
        # Of a moment that a user gave nothing tells which write was the first then.
        found = self.instants("" if seen.watermark.by_time else seen.watermark.first_write)
        return tuple(one for one in found if one.identity not in active and not seen.saw_archived(one))

    def _older_than_recent(self, watermark: Watermark) -> tuple[Instant, ...]:
        """Return the archived instants that may be among those of which a moment keeps the tally alone."""
        first = watermark.older.first.partition(".")[0]
        return self.instants(first, min(watermark.recent).partition(".")[0])

    def _with_files(self, call: Callable[[Sequence[ArchiveFile]], R]) -> R:
        """Return what a call makes of the archive's files, asked again where one was merged into another meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return call(self.manifests.newest().files)
            except StorageError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return call(self.manifests.newest().files)

    def is_whole(self, file: ArchiveFile) -> bool:
        """Return whether the instants in a file of the archive can be read."""
        try:
            self.instants_in([file])
        except PyHudiError:
            return False
        return True

    def _read(self, name: str, columns: list[str], times: Sequence[str] | None = None) -> pa.Table:
        with self._opened(name) as file:
            groups = [number for number in range(file.num_row_groups) if _may_have(file.metadata, number, times)]
            rows = file.read_row_groups(groups, columns, use_threads=False).select(columns)
            if any(rows.column(name).null_count for name in COLUMNS):
                raise ValueError("it has an instant without a time or an action")
            return rows

    @contextmanager
    def _opened(self, name: str) -> Iterator[pq.ParquetFile]:
        import pyarrow.parquet as pq  # noqa: PLC0415 (most tables are younger than their archive)

        path = join(self.folder, name)
        try:
            with pq.ParquetFile(self.storage.open_input(path), page_checksum_verification=True) as file:
                check_size(file.metadata)
                yield file
        except FileNotFoundError as error:
            raise StorageError(
                f"The archived timeline's file {join(self.storage.path, path)} was merged into another one while it "
                "was needed.",
                "Run it again.",
            ) from error
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise CorruptInstantError(
                f"The archived timeline's file {join(self.storage.path, path)} cannot be read "
                f"({type(error).__name__}: {error}).",
                "Restore the file from a backup; until then nobody can tell what was written when.",
            ) from error


def _between(files: Iterable[ArchiveFile], since: str, until: str | None) -> list[ArchiveFile]:
    return [one for one in files if one.may_hold(since, until)]


def check_size(footer: pq.FileMetaData) -> None:
    """Refuse rows without number: what repeats takes no bytes in the file, and takes them in memory.

    Raises:
        ValueError: There are too many.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    leaves = [number for number in range(footer.num_columns) if footer.schema.column(number).name in COLUMNS]
    size = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    if footer.num_rows > _MOST_ROWS or size > MOST_BYTES:
        raise ValueError(f"it has {footer.num_rows} instants, with {size} bytes of times")


def _may_have(footer: pq.FileMetaData, number: int, times: Sequence[str] | None) -> bool:
    """Return whether a row group may have one of some requested times, which are in order."""
    if not times:
        return True
    group = footer.row_group(number)
    leaf = next((leaf for leaf in range(footer.num_columns) if footer.schema.column(leaf).name == TIME), None)
    statistics = None if leaf is None else group.column(leaf).statistics
    if statistics is None or not statistics.has_min_max or not isinstance(statistics.min, str):
        return True
    return bool(statistics.min <= times[-1] and times[0] <= statistics.max)


def _instants(rows: pa.Table) -> Iterator[Instant]:
    times = (rows.column(name).cast(pa.string()).to_pylist() for name in COLUMNS)
    for requested, completed, action in zip(*times, strict=True):
        yield Instant(requested, action, State.COMPLETED, completed)
