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
from typing import Any, TypeVar

from ....errors import CorruptFileError, CorruptInstantError, StorageError, UnsupportedTableError
from ....storage.base import FileInfo, join, refuse_links, split
from ....storage.kept import keep
from ....storage.parallel import for_each
from ....timeline.archive.archive import Archive
from ....timeline.instants import Instant, State, action_group
from ....timeline.metadata.avro_container import read_records
from .log_blocks import BlockType, LogBlock
from .log_file import blocks_in

R = TypeVar("R")

logger = logging.getLogger("pyhudi")

_NAME = re.compile(r"\.commits_\.archive\.([0-9]{1,18})(?:_[0-9]+-[0-9]+-[0-9]+)?")
_INT = struct.Struct(">i")
_VERSIONS = (1, 2, 3)
_TRIES = 3
_COMMIT, _REPLACE = "hoodieCommitMetadata", "hoodieReplaceCommitMetadata"
# The field of a record that holds the body of a completed instant, by its action.
_BODIES = {
    "commit": _COMMIT,
    "deltacommit": _COMMIT,
    "replacecommit": _REPLACE,
    "clean": "hoodieCleanMetadata",
    "rollback": "hoodieRollbackMetadata",
    "savepoint": "hoodieSavePointMetadata",
    "indexing": "hoodieIndexCommitMetadata",
}
# The instants that this process has found in files, by the file's path in the store and its size.
_KNOWN: dict[tuple[str, str, int], tuple[Instant, ...]] = {}
_MOST_KNOWN = 2_000

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogArchive(Archive):
    """The archive of layout 1; a file that was read is not read again for its instants."""

    def instants(self, since: str = "", until: str | None = None) -> tuple[Instant, ...]:
        found = {
            instant.identity: instant
            for part in self._with_files(lambda files: for_each(self.storage, self.instants_in, files))
            for instant in part
            if since <= instant.requested_time and (until is None or instant.requested_time <= until)
        }
        return tuple(found[identity] for identity in sorted(found))

    def newest(self, count: int | None, besides: frozenset[str]) -> tuple[Instant, ...]:
        found = [instant for instant in self.instants() if instant.identity not in besides]
        return tuple(found[::-1][:count])

    def timed(self) -> tuple[Instant, ...]:
        """Return the archived instants with the times at which their completed files were made."""
        found = {
            instant.identity: replace(instant, completion_time=entry.get("stateTransitionTime"))
            for part in self._with_files(lambda files: for_each(self.storage, self._entries, files))
            for entry in part
            for instant, _ in _completed([entry], bodies=False)
        }
        return tuple(found[identity] for identity in sorted(found))

    def bodies(self, wanted: Iterable[Instant]) -> Mapping[Instant, bytes]:
        wanted = frozenset(wanted)
        if not wanted:
            return {}

        def find(files: Sequence[FileInfo]) -> dict[Instant, bytes]:
            holding = [file for file in files if not wanted.isdisjoint(self.instants_in(file))]
            return {
                instant: body
                for part in for_each(self.storage, self._entries, holding)
                for instant, body in _completed(part)
                if instant in wanted and body is not None
            }

        return self._with_files(find)

    def file_names(self) -> frozenset[str]:
        return frozenset(split(file.path)[1] for file in self.files())

    def bodies_in(self, names: Iterable[str], times: Sequence[str] | None = None) -> Iterator[tuple[Instant, bytes]]:
        wanted, asked = frozenset(names), None if times is None else frozenset(times)
        for file in self.files():
            if split(file.path)[1] in wanted:
                for instant, body in _completed(self._entries(file)):
                    if body is not None and (asked is None or instant.requested_time in asked):
                        yield instant, body

    def state(self) -> str:
        names = (f"{split(file.path)[1]} {file.size}" for file in self.files())
        return hashlib.sha256("\n".join(names).encode()).hexdigest()

    def is_there(self) -> bool:
        return bool(self.files())

    def files(self) -> list[FileInfo]:
        """Return the files of the archive, the oldest first."""
        content = self.storage.look(self.folder)
        refuse_links(self.storage.path, self.folder, filter(is_log_archive_file, content.links))
        files = (file for file in content.files if is_log_archive_file(split(file.path)[1]))
        return sorted(files, key=lambda file: _number(split(file.path)[1]))

    def instants_in(self, file: FileInfo) -> tuple[Instant, ...]:
        key = (self.storage.path, file.path, file.size)
        known = _KNOWN.get(key)
        if known is None:
            known = tuple(instant for instant, _ in _completed(self._entries(file), bodies=False))
            keep(_KNOWN, key, known, _MOST_KNOWN)
        return known

    def _entries(self, file: FileInfo) -> list[Entry]:
        where = join(self.storage.path, file.path)
        try:
            data = self.storage.read(file.path)
        except FileNotFoundError as error:
            raise StorageError(
                f"The archived timeline's file {where} was merged into another file during the read.", "Run it again."
            ) from error
        try:
            return [entry for block in blocks_in(data, file.path) for entry in _entries_of(block, data)]
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


def is_log_archive_file(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _number(name: str) -> int:
    found = _NAME.fullmatch(name)
    return 0 if found is None else int(found[1])


def _entries_of(block: LogBlock, data: bytes) -> list[Entry]:
    if block.type == BlockType.CORRUPT and block.content_offset + block.content_size == len(data):
        # Archiving broke off, and its instants are still on the timeline.
        logger.warning("the archive's file %s ends in a torn block, which is passed over", block.path)
        return []
    if block.type != BlockType.AVRO or block.schema is None:
        raise ValueError(f"{block.shown} holds no records of instants")
    content = data[block.content_offset : block.content_offset + block.content_size]
    return read_records(block.schema.encode(), _pieces(content))


def _pieces(content: bytes) -> Iterator[bytes]:
    """Yield the bytes of each record of a block: a version, the number of records, and before each its length."""
    (version,), (count,) = _INT.unpack_from(content), _INT.unpack_from(content, _INT.size)
    if version not in _VERSIONS:
        raise ValueError(f"a block has the version {version}")
    at = 2 * _INT.size
    for _ in range(count):
        (length,) = _INT.unpack_from(content, at)
        at += _INT.size
        if not 0 <= length <= len(content) - at:
            raise ValueError("a record does not end within its block")
        yield content[at : at + length]
        at += length
    if at != len(content):
        raise ValueError("a block holds more than its records")


def _completed(entries: Iterable[Entry], *, bodies: bool = True) -> Iterator[tuple[Instant, bytes | None]]:
    """Yield the completed instants of records, with their bodies as JSON."""
    for entry in entries:
        time, action = entry.get("commitTime"), entry.get("actionType")
        if entry.get("actionState") == State.COMPLETED.name and time and action:
            group = action_group(action)
            record = entry.get(_BODIES.get(group, "")) if bodies else None
            yield Instant(time, group, State.COMPLETED), None if record is None else json.dumps(record).encode()


def _corrupt(where: str, reason: str) -> CorruptInstantError:
    return CorruptInstantError(
        f"The archived timeline's file {where} cannot be read ({reason}).",
        "Restore the file from a backup; until then the history of the table is not complete.",
    )
