"""The archived timeline: requested time, completion time and body of each archived instant.

Format: ``HoodieLSMTimelineInstant`` rows in Parquet files named after the least and greatest requested time in them
(``LSMTimeline``); a manifest names the current files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptInstantError, PyHudiError, StorageError
from ...storage.base import join
from ...storage.bounds import MOST_BYTES
from ...storage.threads import for_each
from ..instants import Instant, State
from .archive import Archive
from .manifest import ArchiveFile, Manifests, is_archive_file

if TYPE_CHECKING:
    import pyarrow.parquet as pq

R = TypeVar("R")

_MOST_ROWS = 10_000_000
TIME = "instantTime"
COLUMNS = [TIME, "completionTime", "action"]
BODY = "metadata"
_TRIES = 3


@dataclass(frozen=True, slots=True)
class LsmArchive(Archive):
    """The archive of layout 2; reading raises StorageError if its files were merged meanwhile."""

    @property
    def manifests(self) -> Manifests:
        return Manifests(self.storage, self.folder)

    def instants(self, since: str = "", until: str | None = None) -> tuple[Instant, ...]:
        return self._with_files(lambda files: self.instants_in(_files_between(files, since, until)))

    def instants_in(self, files: Iterable[ArchiveFile]) -> tuple[Instant, ...]:
        """Return the instants in some files, each once, in order of requested time."""
        names = [file.name for file in files]
        parts = for_each(self.storage, partial(self._read, columns=COLUMNS), names)
        by_identity = {instant.identity: instant for part in parts for instant in _instants(part)}
        return tuple(by_identity[identity] for identity in sorted(by_identity))

    def newest(self, count: int | None, besides: frozenset[str]) -> tuple[Instant, ...]:
        """Return the ``count`` youngest instants, the youngest first, without those of the identities ``besides``.

        None returns all. Files are read from the youngest on, until no other file can hold a younger instant.
        """

        def find(files: Sequence[ArchiveFile]) -> tuple[Instant, ...]:
            """Return the ``count`` youngest instants in some archive files, outside ``besides``, the youngest first."""
            waiting = sorted(files, key=lambda file: file.greatest)
            by_identity: dict[str, Instant] = {}
            while waiting and count != 0:
                times = sorted((instant.requested_time for instant in by_identity.values()), reverse=True)
                # No file that waits has a time as great as the last that is wanted.
                if count is not None and len(times) >= count and times[count - 1] > waiting[-1].greatest:
                    break
                part = self.instants_in([waiting.pop()])
                by_identity |= {instant.identity: instant for instant in part if instant.identity not in besides}
            return tuple(by_identity[identity] for identity in sorted(by_identity, reverse=True))[:count]

        return self._with_files(find)

    def bodies(self, wanted: Iterable[Instant]) -> Mapping[Instant, bytes]:
        """Return the bodies of some instants; an instant of which the archive has no body is absent."""
        wanted = set(wanted)
        times = sorted(instant.requested_time for instant in wanted)
        if not times:
            return {}
        return self._with_files(
            lambda files: {
                instant: body
                for instant, body in self.bodies_in(
                    [file.name for file in _files_between(files, times[0], times[-1])], times
                )
                if instant in wanted
            }
        )

    def file_names(self) -> frozenset[str]:
        return self.manifests.newest().names

    def is_there(self) -> bool:
        return any(map(is_archive_file, self.storage.look(self.folder).names))

    def bodies_in(self, names: Iterable[str], times: Sequence[str] | None = None) -> Iterator[tuple[Instant, bytes]]:
        """Yield the instants that have a body in some files, with the body, those of the requested ``times`` alone.

        The times are in order; None yields all.
        """
        for name in names:
            part = self._read(name, [*COLUMNS, BODY], times)
            if times is not None:
                part = part.filter(pc.is_in(part.column(TIME).cast(pa.string()), pa.array(times)))
            bodies = part.column(BODY).to_pylist()
            yield from ((instant, body) for instant, body in zip(_instants(part), bodies, strict=True) if body)

    def row_groups(self, files: Iterable[ArchiveFile], schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the row groups of some files in the columns of a schema."""
        for archive_file in files:
            with self._opened(archive_file.name) as file:
                for number in range(file.num_row_groups):
                    yield file.read_row_group(number, use_threads=False).select(schema.names).cast(schema)

    def state(self) -> str:
        names = sorted(file.name for file in self.manifests.newest().files)
        return hashlib.sha256("\n".join(names).encode()).hexdigest()

    def _with_files(self, call: Callable[[Sequence[ArchiveFile]], R]) -> R:
        """Return a function's result for the archive's files; call it again if a merge deleted a file meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return call(self.manifests.newest().files)
            except StorageError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return call(self.manifests.newest().files)

    def needed(self, files: Iterable[ArchiveFile]) -> list[ArchiveFile]:
        """Return files that together hold all readable instants, without files whose instants the others hold, too.

        Files with many instants come first, so that merged files make the files needless from which they were made.
        """
        instants_of_file: dict[ArchiveFile, set[Instant]] = {}
        for file in files:
            with suppress(PyHudiError):
                instants_of_file[file] = {*self.instants_in([file])}
        needed_files: list[ArchiveFile] = []
        instants: set[Instant] = set()
        for file in sorted(instants_of_file, key=lambda file: (-len(instants_of_file[file]), file.name)):
            if not instants_of_file[file] <= instants:
                needed_files.append(file)
                instants |= instants_of_file[file]
        return needed_files

    def _read(self, name: str, columns: list[str], times: Sequence[str] | None = None) -> pa.Table:
        """Return columns of a file; with ``times`` only row groups that may have one of these requested times."""
        with self._opened(name) as file:
            groups = [number for number in range(file.num_row_groups) if _may_have(file.metadata, number, times)]
            rows = file.read_row_groups(groups, columns, use_threads=False).select(columns)
            if any(rows.column(name).null_count for name in COLUMNS):
                # `_opened` turns it into a CorruptInstantError.
                raise ValueError("it has an instant without a time or an action")
            return rows

    @contextmanager
    def _opened(self, name: str) -> Iterator[pq.ParquetFile]:
        """Open a file; StorageError if a merge deleted it, CorruptInstantError if it cannot be read."""
        import pyarrow.parquet as pq  # noqa: PLC0415 (most tables are younger than their archive)

        path = join(self.folder, name)
        try:
            with pq.ParquetFile(self.storage.open_input(path), page_checksum_verification=True) as file:
                check_size(file.metadata)
                yield file
        except FileNotFoundError as error:
            raise StorageError(
                f"The archived timeline's file {join(self.storage.path, path)} was merged into another file "
                "during the read.",
                "Run it again.",
            ) from error
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise CorruptInstantError(
                f"The archived timeline's file {join(self.storage.path, path)} cannot be read "
                f"({type(error).__name__}: {error}).",
                "Restore the file from a backup; until then the history of the table is not complete.",
            ) from error


def _files_between(files: Iterable[ArchiveFile], since: str, until: str | None) -> list[ArchiveFile]:
    """Return the files that may hold requested times from ``since`` to ``until``."""
    return [file for file in files if file.may_hold(since, until)]


def check_size(footer: pq.FileMetaData) -> None:
    """Raise ValueError for too many rows: repeated values take no bytes in the file, but take memory.

    Only the columns `COLUMNS` count, which are read of all instants.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    leaves = [number for number in range(footer.num_columns) if footer.schema.column(number).name in COLUMNS]
    size = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    if footer.num_rows > _MOST_ROWS or size > MOST_BYTES:
        raise ValueError(f"it has {footer.num_rows} instants, with {size} bytes of times")


def _may_have(footer: pq.FileMetaData, number: int, times: Sequence[str] | None) -> bool:
    """Return whether the row group of a ``number`` may have one of ``times``, which are in order; always for None.

    A row group without usable bounds may have any.
    """
    if not times:
        return True
    group = footer.row_group(number)
    leaf = next((leaf for leaf in range(footer.num_columns) if footer.schema.column(leaf).name == TIME), None)
    statistics = None if leaf is None else group.column(leaf).statistics
    if statistics is None or not statistics.has_min_max or not isinstance(statistics.min, str):
        return True
    return bool(statistics.min <= times[-1] and times[0] <= statistics.max)


def _instants(rows: pa.Table) -> Iterator[Instant]:
    """Yield the completed instants in rows of the archive."""
    times = (rows.column(name).cast(pa.string()).to_pylist() for name in COLUMNS)
    for requested, completed, action in zip(*times, strict=True):
        yield Instant(requested, action, State.COMPLETED, completed)
