"""Writes the archive of table version 6: one file a run, one record for each state of an instant.

The records are those of Apache Hudi 1.2. They have statistics of files that 0.15 leaves out, but 0.15 reads the records
by the schema that each block brings along. Source: ``TimelineArchiverV1`` and ``MetadataConversionUtils``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from ....errors import CorruptInstantError
from ....storage.base import FileInfo, Storage, join, split
from ....storage.threads import for_each
from ....timeline import metadata
from ....timeline.archive.archive import MergedFile
from ....timeline.clock import format_time
from ....timeline.instant_files import InstantFiles
from ....timeline.instants import Instant, State
from ....timeline.metadata import avro_schemas
from ....timeline.metadata.codec import InstantBody
from .log_archive import BODIES, LogArchive, file_name, number_of
from .log_blocks import BlockHead, BlockType, Header

# Apache Hudi's hoodie.commits.archival.batch, which counts states.
_RECORDS_A_BLOCK = 10
# Memory for a file while it is made: a table that never archived may have many large instants.
_MOST_BYTES_A_FILE = 64 << 20
# Instants whose files are read at once from a remote store.
_AT_ONCE = 64
_CONTENT_VERSION = 3
_INT = struct.Struct(">i")

# The field of a record that holds the plan in a requested file, by the action in its name.
_PLANS = {
    "clean": "hoodieCleanerPlan",
    "compaction": "hoodieCompactionPlan",
    "logcompaction": "hoodieCompactionPlan",
    "replacecommit": "hoodieRequestedReplaceMetadata",
}
# The field that holds what a write was about to do, as its inflight file says it in the form of a commit.
_PROFILES = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "HoodieInflightReplaceMetadata",
}

# The files of one instant in the order of its states, each with the state that its name spells.
_States = list[tuple[Instant, FileInfo]]
# The field of a record that a state's file gives, and its value; nothing if the file says nothing.
_Field = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogArchiveWriter:
    """Adds files to the archive of layout 1; ``zone`` is that of the table's times."""

    storage: Storage
    folder: str
    zone: str

    def put(self, instants: Sequence[Instant], files: InstantFiles) -> None:
        """Add the instants that the archive lacks, in one file, or in several if they are large.

        ``files`` are those of the active timeline, which still has the instants.
        """
        archive = LogArchive(self.storage, self.folder)
        archived = archive.known_of(instants)
        not_archived = [instant for instant in instants if instant not in archived]
        # As Apache Hudi: cleans and rollbacks first.
        ordered = [
            *(instant for instant in not_archived if not instant.is_write),
            *(instant for instant in not_archived if instant.is_write),
        ]
        blocks: list[bytes] = []
        for block in self._blocks(ordered, files):
            blocks.append(block)
            if sum(map(len, blocks)) > _MOST_BYTES_A_FILE:
                self._add(archive, b"".join(blocks))
                blocks = []
        if blocks:
            self._add(archive, b"".join(blocks))
        archive.note()

    def merge(self, aside: str, batch: int) -> list[MergedFile]:
        """Merge nothing, as Apache Hudi 1.x; 0.15 merges only by an option."""
        return []

    def tidy(self, merged: Sequence[MergedFile]) -> None:
        """Delete nothing: a file appears whole, and readers count an instant of two files as one."""

    def _add(self, archive: LogArchive, data: bytes) -> None:
        """Make the next file; another process may take its number, and then it gets a later one."""
        number = max((number_of(split(file.path)[1]) for file in archive.files()), default=0) + 1
        while not self.storage.create(join(self.folder, file_name(number)), data):
            number += 1

    def _blocks(self, instants: Sequence[Instant], files: InstantFiles) -> Iterator[bytes]:
        """Yield blocks of a few records each."""
        waiting: list[bytes] = []
        for record in self._records(instants, files):
            waiting.append(record)
            if len(waiting) == _RECORDS_A_BLOCK:
                yield _block(waiting)
                waiting = []
        if waiting:
            yield _block(waiting)

    def _records(self, instants: Sequence[Instant], files: InstantFiles) -> Iterator[bytes]:
        """Yield the records of instants, whose files are read some instants at a time."""
        states = _states_of(files)
        for start in range(0, len(instants), _AT_ONCE):
            part = [states.get(instant.identity, []) for instant in instants[start : start + _AT_ONCE]]
            for records in for_each(
                self.storage, lambda states_of_instant: self._records_of_instant(states_of_instant, files), part
            ):
                yield from records

    def _records_of_instant(self, states: _States, files: InstantFiles) -> list[bytes]:
        """Return a record for each state of an instant; none if another process has archived the instant meanwhile."""
        with_bodies = [(instant, info, self._read(info)) for instant, info in states]
        present = [(instant, info, body) for instant, info, body in with_bodies if body is not None]
        if not any(instant.state == State.COMPLETED for instant, _, _ in present):
            return []
        plan = next((body for instant, _, body in present if instant.state == State.REQUESTED), None)
        return [
            _record(instant, format_time(int(info.modified * 1000), self.zone), body, plan, files)
            for instant, info, body in present
        ]

    def _read(self, info: FileInfo) -> InstantBody | None:
        """Return the body in a file; None if another process has archived the instant."""
        try:
            return InstantBody(self.storage.read(info.path), join(self.storage.path, info.path))
        except FileNotFoundError:
            return None


def _states_of(files: InstantFiles) -> dict[str, _States]:
    """Return the files of all instants by the instant's identity, in the order of their states."""
    by_identity: dict[str, _States] = {}
    for info in files.storage.list(files.folder, strict=False):
        instant = files.layout.parse(split(info.path)[1])
        if instant is not None:
            by_identity.setdefault(instant.identity, []).append((instant, info))
    return {identity: sorted(states, key=lambda each: each[0].state) for identity, states in by_identity.items()}


def _record(
    instant: Instant, changed_at: str, body: InstantBody, requested: InstantBody | None, files: InstantFiles
) -> bytes:
    """Return the Avro bytes of the record of an instant's state, whose file holds ``body``.

    ``changed_at`` is when that file was changed last, in the form of an instant's time. ``requested`` is what the
    instant's requested file holds; None if that is gone.
    """
    state = {
        "commitTime": instant.requested_time,
        "actionType": instant.action,
        "actionState": instant.state.name,
        "stateTransitionTime": changed_at,
        "version": None,
    }
    if instant.state == State.COMPLETED:
        return _avro_bytes({**state, **_what_was_done(instant, body, files)}, body)
    try:
        return _avro_bytes({**state, **_what_was_planned(instant, body, requested, files)}, body)
    except CorruptInstantError:
        # Apache Hudi's downgrade leaves other bodies in the files of these states, which no reader opens.
        return _avro_bytes(state, body)


def _what_was_done(instant: Instant, body: InstantBody, files: InstantFiles) -> _Field:
    """Return the field that holds what a completed instant did; nothing for an empty file."""
    field = BODIES.get(instant.group)
    if field is not None and instant.is_write:
        return {field: files.decode_commit(instant, body).model_dump(by_alias=True)}
    # Apache Hudi takes an empty file for an instant that did nothing.
    return {field: files.codec.decode_record(body)} if field is not None and body.data else {}


def _what_was_planned(
    instant: Instant, body: InstantBody, requested: InstantBody | None, files: InstantFiles
) -> _Field:
    """Return the field that holds the plan in a requested or inflight file; nothing for a file without one.

    ``requested`` is what the instant's requested file holds; None if that is gone.
    """
    if instant.action == "clean" and not body.data:
        # Apache Hudi 1.x leaves the inflight file of a clean empty, and archives the plan with both states.
        body = requested or body
    if not body.data:
        return {}
    if instant.state == State.INFLIGHT and instant.action in _PROFILES:
        profile = files.codec.decode(metadata.models.CommitMetadata, body)
        return {_PROFILES[instant.action]: profile.model_dump(by_alias=True)}
    field = _PLANS.get(instant.action)
    return {} if field is None else {field: files.codec.decode_record(body)}


def _avro_bytes(record: Mapping[str, Any], body: InstantBody) -> bytes:
    """Return a record in Avro's encoding; CorruptInstantError if it lacks fields of its kind.

    ``body`` is the instant's file from which the record comes, which the error names.
    """
    import fastavro  # noqa: PLC0415 (slow to import)

    sink = pa.BufferOutputStream()
    try:
        fastavro.schemaless_writer(sink, _parsed_record_schema(), record)
    except Exception as error:
        # A record of another kind lacks fields, or has others of the same name.
        raise body.corrupt(f"it does not have the fields of its kind ({type(error).__name__}: {error})") from error
    return bytes(sink.getvalue())


def _block(records: Sequence[bytes]) -> bytes:
    """Return a block of the archive with some records."""
    content = [_INT.pack(_CONTENT_VERSION), _INT.pack(len(records))]
    for record in records:
        content += [_INT.pack(len(record)), record]
    return b"".join(BlockHead(BlockType.AVRO, {Header.SCHEMA: _schema_text()}).framed(content))


@cache
def _schema_text() -> str:
    """Return the Avro schema of the archive's records as JSON."""
    return json.dumps(avro_schemas.ARCHIVED_STATE, separators=(",", ":"))


@cache
def _parsed_record_schema() -> Any:
    """Return the Avro schema of the archive's records as fastavro parsed it."""
    from fastavro import parse_schema  # noqa: PLC0415 (slow to import)

    return parse_schema(avro_schemas.ARCHIVED_STATE)
