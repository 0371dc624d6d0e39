"""Writes the archive: adds instants as new files, merges levels of files, removes old manifests and their files.

Follows ``LSMTimelineWriter``: each round of archiving adds a file of level 0; when a level has enough files, the oldest
are merged into a file of the next level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import PyHudiError, StorageError
from ...storage.base import Storage, join, split
from ...storage.threads import for_each
from ..instant_files import InstantFiles, InstantPaths
from ..instants import Instant, State
from .archive import MergedFile
from .lsm import COLUMNS, LsmArchive
from .manifest import (
    ArchiveFile,
    Manifest,
    file_name,
    is_archive_file,
    manifest_number,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Apache Hudi's hoodie.timeline.compaction.target.file.max.bytes and hoodie.timeline.manifest.retained.versions.
TARGET_BYTES = 1000 * 1024 * 1024
KEPT_MANIFESTS = 3
# Memory for a file of level 0 while it is made: a table that never archived may have many large instants.
MOST_BYTES_A_FILE = 64 << 20
_ROW_GROUP_BYTES = 16 << 20
# Bodies read at once from a remote store.
_AT_ONCE = 64
# The level is one digit of a file's name.
_HIGHEST_LEVEL = 9
# Another process may be about to name a file in a manifest.
_UNNAMED_KEPT_S = 3600.0

_SCHEMA = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_VERSION = 1
_TEXT = '["null",{"type":"string","avro.java.string":"String"}],"default":null'
_AVRO = (
    '{"type":"record","name":"HoodieLSMTimelineInstant","namespace":"org.apache.hudi.avro.model","fields":['
    f'{{"name":"instantTime","type":{_TEXT}}},{{"name":"completionTime","type":{_TEXT}}},'
    f'{{"name":"action","type":{_TEXT}}},{{"name":"metadata","type":["null","bytes"],"default":null}},'
    '{"name":"plan","type":["null","bytes"],"default":null},{"name":"version","type":"int","default":1}]}'
)
_FOOTER = {"writer.model.name": "avro", "parquet.avro.schema": _AVRO}


@dataclass(frozen=True, slots=True)
class Row:
    """An archived instant; ``plan`` is the content of its requested file, if that was a plan."""

    instant: Instant
    body: bytes
    plan: bytes | None = None


@dataclass(frozen=True, slots=True)
class LsmWriter:
    """Adds instants to the archive of layout 2, and merges its files."""

    storage: Storage
    folder: str

    def put(self, instants: Sequence[Instant], files: InstantFiles) -> None:
        """Add the instants that the archive lacks, in one file, or in several if they are large."""
        archive = LsmArchive(self.storage, self.folder)
        archived = archive.known_of(instants)
        waiting: list[Row] = []
        size = 0
        for row in self._rows([instant for instant in instants if instant not in archived], files):
            waiting.append(row)
            size += len(row.body)
            if size > MOST_BYTES_A_FILE:
                append(archive, waiting)
                waiting, size = [], 0
        if waiting:
            append(archive, waiting)
        else:
            # The process that added them died before the archive's manifest named them.
            repair_archive(archive)

    def _rows(self, instants: Sequence[Instant], files: InstantFiles) -> Iterator[Row]:
        """Yield the rows of instants, whose files are read some instants at a time."""
        paths = files.paths()
        for start in range(0, len(instants), _AT_ONCE):
            part = instants[start : start + _AT_ONCE]
            yield from filter(None, for_each(self.storage, lambda instant: self._row(instant, files, paths), part))

    def _row(self, instant: Instant, files: InstantFiles, paths: InstantPaths) -> Row | None:
        """Return what the archive keeps of an instant; None if another process has removed the instant meanwhile.

        ``paths`` are those of all instants' files. An empty requested file holds no plan.
        """
        requested = paths.get(instant.identity, {}).get(State.REQUESTED, ())
        plan = self._read(requested[0]) if requested else None
        body = self._read(files.path(instant))
        return None if body is None else Row(instant, body, plan or None)

    def _read(self, path: str) -> bytes | None:
        """Return a file's bytes; None if another process has archived the instant."""
        try:
            return self.storage.read(path)
        except FileNotFoundError:
            return None

    def merge(self, aside: str, batch: int) -> list[MergedFile]:
        return merge_levels(LsmArchive(self.storage, self.folder), aside, batch)

    def tidy(self, merged: Sequence[MergedFile]) -> None:
        tidy(LsmArchive(self.storage, self.folder), len(merged))


def append(archive: LsmArchive, rows: Sequence[Row]) -> Manifest:
    """Add instants, in order of requested time, to the archive as one file; return the manifest that names them.

    Those that another process has added meanwhile are not added again.
    """
    while True:
        file = _make_file(archive, rows)
        manifest = archive.manifests.replace_files(
            [file], needed=archive.needed, fits=partial(_in_no_other_file, archive, file.name, rows)
        )
        if file.name not in manifest.names:
            # Another file has some of the rows already, so the next file has the others alone.
            archived = archive.known_of([row.instant for row in rows])
            rows = [row for row in rows if row.instant not in archived]
            if not rows:
                return manifest
        # While this process stalled, another process that tidied up may have deleted the still unnamed file.
        elif archive.storage.exists(join(archive.folder, file.name)):
            return manifest


def repair_archive(archive: LsmArchive) -> None:
    """Repair the archive after a writer died: a manifest names its files, and ``_version_`` the manifest."""
    archive.manifests.replace_files((), needed=archive.needed)


def merge_levels(archive: LsmArchive, aside: str, batch: int) -> list[MergedFile]:
    """Merge the oldest files of each level that has ``batch`` or more, at most once a level; return the new files.

    It ends at the first level without a merge. A new file is written in the folder ``aside`` first.
    """
    merged_files: list[MergedFile] = []
    for level in range(_HIGHEST_LEVEL):
        manifest = archive.manifests.newest()
        # Number 0 means that no manifest tells which files count.
        files = [file for file in manifest.files if file.level == level] if manifest.number else []
        inputs = (
            _oldest(sorted(files, key=lambda file: (file.least, file.greatest)), batch) if len(files) >= batch else []
        )
        if len(inputs) < 2:
            # So no new file can make the next level due.
            return merged_files
        name = file_name(min(file.least for file in inputs), max(file.greatest for file in inputs), level + 1)
        if name in manifest.names:
            # The new file would take the place of a file that counts.
            return merged_files
        merged = ArchiveFile(name, _merge(archive, aside, inputs, name))
        input_names = tuple(file.name for file in inputs)
        newest = archive.manifests.replace_files([merged], input_names, needed=archive.needed)
        if name not in newest.names:
            # Another process has merged some of these files first.
            return merged_files
        merged_files.append(MergedFile(name, input_names))
    return merged_files


def tidy(archive: LsmArchive, merged_levels: int) -> None:
    """Delete old manifests with the files that they alone name, and old files that no manifest names.

    The newest few manifests stay, and one more for each of ``merged_levels``.
    """
    listing, now = archive.storage.list(archive.folder), archive.storage.file_time()
    numbers = sorted(number for info in listing if (number := manifest_number(split(info.path)[1])) is not None)
    files_by_manifest = {number: archive.manifests.parse(number) for number in numbers}
    whole_numbers = [number for number in numbers if files_by_manifest[number] is not None]
    if not whole_numbers:
        # No manifest tells which files are needed.
        return
    kept_numbers = {
        *whole_numbers[-(KEPT_MANIFESTS + merged_levels) :],
        # Another process may be writing it.
        *(number for number in numbers if number > whole_numbers[-1]),
    }
    deleted_numbers = [number for number in numbers if number not in kept_numbers]
    needed = {file.name for number in kept_numbers for file in files_by_manifest[number] or ()}
    formerly_named = {file.name for number in deleted_numbers for file in files_by_manifest[number] or ()}
    files = {split(info.path)[1]: info for info in listing if is_archive_file(split(info.path)[1])}
    # A file that no manifest ever named stays for a while: its maker may be about to make the manifest.
    deletable = [
        name for name, info in files.items() if name in formerly_named or now - info.modified > _UNNAMED_KEPT_S
    ]
    archive.storage.delete(*(archive.manifests.path(number) for number in deleted_numbers), durable=False)
    archive.storage.delete(
        *(join(archive.folder, name) for name in sorted(deletable) if name not in needed), durable=False
    )


def _encode(rows: Sequence[Row]) -> bytes:
    """Return the bytes of a Parquet file with these rows; a row group ends once its bodies exceed a size."""
    sink = pa.BufferOutputStream()
    with _parquet_writer(sink) as parquet:
        start = 0
        while start < len(rows):
            end, size = start, 0
            while end < len(rows) and size < _ROW_GROUP_BYTES:
                size += len(rows[end].body)
                end += 1
            parquet.write_table(_table(rows[start:end]))
            start = end
        parquet.add_key_value_metadata(_FOOTER)
    return bytes(sink.getvalue())


def _table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as columns of the archive's schema."""
    columns: list[list[object]] = [[] for _ in _SCHEMA]
    for row in rows:
        instant = row.instant
        values = (
            instant.requested_time,
            instant.completion_time,
            instant.action,
            row.body or None,
            row.plan or None,
            _VERSION,
        )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    return pa.table(columns, schema=_SCHEMA)


def _parquet_writer(sink: object) -> pq.ParquetWriter:
    """Return a writer of a file as Apache Hudi's archive has them."""
    import pyarrow.parquet as pq  # noqa: PLC0415 (see lsm.py)

    return pq.ParquetWriter(
        sink,
        _SCHEMA,
        compression="gzip",
        store_schema=False,
        use_dictionary=["action"],
        # Statistics of a body would repeat the body.
        write_statistics=COLUMNS,
        write_page_checksum=True,
    )


def _make_file(archive: LsmArchive, rows: Sequence[Row]) -> ArchiveFile:
    """Make a file of level 0 with some instants, which no manifest names yet, and return it.

    A file that another process made under its name takes its place, if it has the instants (see `_adopt`).
    """
    name, data = file_name(*_span(rows), 0), _encode(rows)
    file = ArchiveFile(name, len(data))
    return file if archive.storage.create(join(archive.folder, name), data) else _adopt(archive, file, rows, data)


def _in_no_other_file(archive: LsmArchive, name: str, rows: Sequence[Row], files: Iterable[ArchiveFile]) -> bool:
    """Return whether none of the rows' instants is in a file whose name is not ``name``; False if that is unknown."""
    span = _span(rows)
    near = [file for file in files if file.name != name and file.may_hold(*span)]
    try:
        return {row.instant for row in rows}.isdisjoint(archive.instants_in(near))
    except StorageError:
        # A merge deleted a file meanwhile, or the store fails: `append` reads the files again, and raises then.
        return False


def _span(rows: Sequence[Row]) -> tuple[str, str]:
    """Return the least and the greatest requested time of rows, which are in order."""
    return rows[0].instant.requested_time, rows[-1].instant.requested_time


def _adopt(archive: LsmArchive, file: ArchiveFile, rows: Sequence[Row], data: bytes) -> ArchiveFile:
    """Return the file that already has a new file's name; ``data`` replaces it if it is damaged or lacks the rows."""
    path = join(archive.folder, file.name)
    listed = archive.manifests.newest()
    # With number 0 no manifest names the listed files.
    named_file = next(
        (listed_file for listed_file in listed.files if listed.number and listed_file.name == file.name), None
    )
    if named_file is not None:
        # A file that a manifest names stays as it is.
        return named_file
    try:
        archived = archive.instants_in([file])
        if set(archived) >= {row.instant for row in rows}:
            return ArchiveFile(file.name, _size(archive, file.name))
    except PyHudiError:
        pass  # it is damaged or gone, and no manifest names it
    archive.storage.write(path, data)
    return file


def _size(archive: LsmArchive, name: str) -> int:
    """Return the size of a file of the archive."""
    return next(info.size for info in archive.storage.list(archive.folder) if split(info.path)[1] == name)


def _oldest(files: Sequence[ArchiveFile], batch: int) -> list[ArchiveFile]:
    """Return the first of some files, the oldest, that are to be merged: ``batch`` files, or fewer that are large.

    Files that alone have the target size are passed over.
    """
    inputs: list[ArchiveFile] = []
    size = 0
    for file in files:
        inputs.append(file)
        size += file.size
        if len(inputs) >= batch:
            break
        if size > TARGET_BYTES:
            if len(inputs) > 1:
                break
            # This file alone has the target size.
            inputs, size = [], 0
    return inputs


def _merge(archive: LsmArchive, aside: str, inputs: Iterable[ArchiveFile], name: str) -> int:
    """Merge files into a new file, which grows in the folder ``aside``, and return its size in bytes."""
    staged = archive.storage.stage(join(archive.folder, name), aside)
    try:
        with _parquet_writer(staged.stream) as parquet:
            for group in archive.row_groups(inputs, _SCHEMA):
                parquet.write_table(group)
            parquet.add_key_value_metadata(_FOOTER)
        size = staged.publish()
    finally:
        # After `publish` it does nothing.
        staged.discard()
    archive.storage.flush([archive.folder])
    return size
