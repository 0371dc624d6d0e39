"""The archived timeline of table version 6: log files without an index, with a record of each state of an instant.

Every run of archiving opens another file. After a run that broke off the next one writes the same records again, so
that an instant may be in several files. Source: ``ArchivedTimelineV1`` and ``HoodieArchivedMetaEntry``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

from ....errors import CorruptFileError, CorruptInstantError, StorageError, UnsupportedTableError
from ....storage.base import FileInfo, join, refuse_links, split
from ....storage.kept import keep
from ....storage.threads import for_each
from ....timeline.archive.archive import Archive
from ....timeline.instants import Instant, State, action_group
from ....timeline.metadata.avro_container import read_records
from ....timeline.metadata.avro_schemas import ARCHIVED_STATE_OF
from .log_blocks import BlockType, LogBlock
from .log_file import blocks_in
from .noted_instants import read_note, write_note

R = TypeVar("R")

logger = logging.getLogger("pyhudi")

_NAME = re.compile(r"\.commits_\.archive\.([0-9]{1,18})(?:_[0-9]+-[0-9]+-[0-9]+)?")
_INT = struct.Struct(">i")
_VERSIONS = (1, 2, 3)
_TRIES = 3
_COMMIT, _REPLACE = "hoodieCommitMetadata", "hoodieReplaceCommitMetadata"
# The field of a record that holds the body of a completed instant, by its action.
BODIES = {
    "commit": _COMMIT,
    "deltacommit": _COMMIT,
    "replacecommit": _REPLACE,
    "clean": "hoodieCleanMetadata",
    "rollback": "hoodieRollbackMetadata",
    "savepoint": "hoodieSavePointMetadata",
    "indexing": "hoodieIndexCommitMetadata",
}
# What a record of a completed state has in it, with the length before it.
_COMPLETED = b"\x12COMPLETED"
# The instants that this process has found in files, by table and file.
_INSTANTS: dict[tuple[str, FileInfo], tuple[Instant, ...]] = {}
_MOST_FILES = 20_000

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogArchive(Archive):
    """The archive of layout 1; a file that was read is not read again for its instants."""

    def instants(self, since: str = "", until: str | None = None) -> tuple[Instant, ...]:
        """Return the completed instants, each once, though several files may hold it."""
        by_identity = {
            instant.identity: instant
            for part in self._with_files(self._instants_of_each)
            for instant in part
            if since <= instant.requested_time and (until is None or instant.requested_time <= until)
        }
        return tuple(by_identity[identity] for identity in sorted(by_identity))

    def newest(self, count: int | None, besides: frozenset[str]) -> tuple[Instant, ...]:
        instants = [instant for instant in self.instants() if instant.identity not in besides]
        return tuple(instants[::-1][:count])

    def timed(self) -> tuple[Instant, ...]:
        """Return the archived instants with the times at which their completed files were made."""
        by_identity = {
            instant.identity: replace(instant, completion_time=state.get("stateTransitionTime"))
            for part in self._with_files(lambda files: for_each(self.storage, self._completed_in, files))
            for instant, state in part
        }
        return tuple(by_identity[identity] for identity in sorted(by_identity))

    def bodies(self, wanted: Iterable[Instant]) -> Mapping[Instant, bytes]:
        """Return the bodies of some instants, from the files that hold them; an instant without a body is absent."""
        wanted = frozenset(wanted)
        if not wanted:
            return {}

        def bodies_in_files(files: Sequence[FileInfo]) -> dict[Instant, bytes]:
            """Return the wanted bodies, reading only files that hold one of the instants."""
            instants_of_file = dict(zip(files, self._instants_of_each(files), strict=True))
            holding = [file for file in files if not wanted.isdisjoint(instants_of_file[file])]
            return {
                instant: body
                for part in for_each(
                    self.storage, lambda file: self._bodies(file, wanted & {*instants_of_file[file]}), holding
                )
                for instant, body in part
            }

        return self._with_files(bodies_in_files)

    def file_names(self) -> frozenset[str]:
        return frozenset(split(file.path)[1] for file in self.files())

    def bodies_in(self, names: Iterable[str], times: Sequence[str] | None = None) -> Iterator[tuple[Instant, bytes]]:
        """Yield the instants that have a body in some files; with ``times`` only those of these times."""
        wanted_names, wanted_times = frozenset(names), None if times is None else frozenset(times)
        files = [file for file in self.files() if split(file.path)[1] in wanted_names]
        for file, instants in zip(files, self._instants_of_each(files), strict=True):
            yield from self._bodies(
                file,
                frozenset(
                    instant for instant in instants if wanted_times is None or instant.requested_time in wanted_times
                ),
            )

    def state(self) -> str:
        """Return a digest of the files' names and sizes, which differs once a file comes, goes or grows."""
        names = (f"{split(file.path)[1]} {file.size}" for file in self.files())
        return hashlib.sha256("\n".join(names).encode()).hexdigest()

    def is_there(self) -> bool:
        """Return whether the archive has any file."""
        return bool(self.files())

    def files(self) -> list[FileInfo]:
        """Return the files of the archive, the oldest first."""
        content = self.storage.look(self.folder)
        refuse_links(self.storage.path, self.folder, filter(is_log_archive_file, content.links))
        files = (file for file in content.files if is_log_archive_file(split(file.path)[1]))
        return sorted(files, key=lambda file: number_of(split(file.path)[1]))

    def instants_in(self, file: FileInfo) -> tuple[Instant, ...]:
        """Return the completed instants of a file, which the process keeps."""
        key = (self.storage.path, file)
        instants = _INSTANTS.get(key)
        if instants is None:
            instants = tuple(instant for instant, _ in self._completed_in(file))
            keep(_INSTANTS, key, instants, _MOST_FILES)
        return instants

    def check(self, file: FileInfo) -> tuple[Instant, ...]:
        """Return the instants of a file; it decodes each record whole, even if the process knows the instants."""
        return tuple(instant for instant, _ in _completed(self._decode(file, lambda record: True)))

    def note(self) -> None:
        """Note which instants each file holds, for processes that begin later."""
        files = self.files()
        instants_of_file = dict(zip(files, self._instants_of_each(files), strict=True))
        if instants_of_file != read_note(self.storage):
            write_note(self.storage, instants_of_file)

    def _instants_of_each(self, files: Sequence[FileInfo]) -> list[tuple[Instant, ...]]:
        """Return the instants of each file, reading only files of which neither this process nor the note knows."""
        if any((self.storage.path, file) not in _INSTANTS for file in files):
            for file, instants in read_note(self.storage).items():
                keep(_INSTANTS, (self.storage.path, file), instants, _MOST_FILES)
        return for_each(self.storage, self.instants_in, files)

    def _completed_in(self, file: FileInfo) -> list[tuple[Instant, Entry]]:
        """Return the completed instants of a file, each with what its record says beside the body."""
        return [*_completed(self._decode(file, lambda record: _COMPLETED in record, _state_schema()))]

    def _bodies(self, file: FileInfo, wanted: frozenset[Instant]) -> list[tuple[Instant, bytes]]:
        """Return the bodies of some completed instants of a file as JSON, less those without one."""
        # A record that has no wanted time in its bytes need not be decoded.
        times = [instant.requested_time.encode() for instant in wanted]
        entries = self._decode(file, lambda record: _COMPLETED in record and any(time in record for time in times))
        bodies = ((instant, entry.get(BODIES.get(instant.group, ""))) for instant, entry in _completed(entries))
        return [
            (instant, json.dumps(body).encode()) for instant, body in bodies if body is not None and instant in wanted
        ]

    def _decode(
        self, file: FileInfo, is_wanted: Callable[[bytes], bool], reader_schema: dict[str, Any] | None = None
    ) -> list[Entry]:
        """Return the records of a file for whose bytes ``is_wanted`` returns True; the others are not decoded.

        With ``reader_schema`` they have the fields of that schema alone.
        """
        where = join(self.storage.path, file.path)
        try:
            data = self.storage.read(file.path)
        except FileNotFoundError as error:
            raise StorageError(
                f"The archived timeline's file {where} was merged into another file during the read.", "Run it again."
            ) from error
        try:
            return [
                entry
                for block in blocks_in(data, file.path)
                if (content := _content(block, data))  # a torn block has none
                for entry in read_records(
                    str(block.schema).encode(), filter(is_wanted, _records(content)), reader_schema
                )
            ]
        except (CorruptFileError, UnsupportedTableError) as error:
            raise _corrupt(where, error.what) from error
        except Exception as error:
            # Damaged bytes can make the parser raise any exception.
            raise _corrupt(where, f"{type(error).__name__}: {error}") from error

    def _with_files(self, call: Callable[[Sequence[FileInfo]], R]) -> R:
        """Call a function with the archive's files, again if a file was merged into another meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return call(self.files())
            except StorageError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return call(self.files())


def file_name(number: int) -> str:
    """Return the name of a file of the archive; Apache Hudi's own files have the same token."""
    return f".commits_.archive.{number}_1-0-1"


def is_log_archive_file(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def number_of(name: str) -> int:
    """Return the number in a file's name; 0 for any other name."""
    match = _NAME.fullmatch(name)
    return 0 if match is None else int(match[1])


def _content(block: LogBlock, data: bytes) -> bytes:
    """Return the content of a block that has records of instants, b"" of a torn block at the end of the file."""
    if block.type == BlockType.CORRUPT and block.content_offset + block.content_size == len(data):
        # Archiving broke off, and its instants are still on the timeline.
        logger.warning("the archive's file %s ends in a torn block, which is passed over", block.path)
        return b""
    if block.type != BlockType.AVRO or block.schema is None:
        raise ValueError(f"{block.shown} holds no records of instants")
    return data[block.content_offset : block.content_offset + block.content_size]


def _records(content: bytes) -> Iterator[bytes]:
    """Yield the bytes of each record of a block: a version, the number of records, and before each its length."""
    (version,), (count,) = _INT.unpack_from(content), _INT.unpack_from(content, _INT.size)
    if version not in _VERSIONS:
        raise ValueError(f"a block has the version {version}")
    position = 2 * _INT.size
    for _ in range(count):
        (length,) = _INT.unpack_from(content, position)
        position += _INT.size
        if not 0 <= length <= len(content) - position:
            raise ValueError("a record does not end within its block")
        yield content[position : position + length]
        position += length
    if position != len(content):
        raise ValueError("a block holds more than its records")


def _completed(entries: Iterable[Entry]) -> Iterator[tuple[Instant, Entry]]:
    """Yield the completed instants among records, each with its record."""
    for entry in entries:
        time, action = entry.get("commitTime"), entry.get("actionType")
        if entry.get("actionState") == State.COMPLETED.name and time and action:
            yield Instant(time, action_group(action), State.COMPLETED), entry


@cache
def _state_schema() -> dict[str, Any]:
    """Return the parsed schema of what a record says beside the body."""
    from fastavro import parse_schema  # noqa: PLC0415 (slow to import)

    return cast("dict[str, Any]", parse_schema(ARCHIVED_STATE_OF))


def _corrupt(where: str, reason: str) -> CorruptInstantError:
    return CorruptInstantError(
        f"The archived timeline's file {where} cannot be read ({reason}).",
        "Restore the file from a backup; until then the history of the table is not complete.",
    )
