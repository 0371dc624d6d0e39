"""The ids of archived writes, in a note, so that the cost of a lookup does not grow with the number of writes.

The note names the files of the archive that it covers; a lookup also reads files that other processes added or merged
since. The note has no generated ids, because no caller gives them again.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..errors import CorruptFileError, CorruptInstantError
from ..storage.base import Storage
from ..storage.bounds import parse_json
from ..table.table import Table
from ..timeline import formats
from ..timeline.archive.archive import MergedFile
from ..timeline.instants import WRITE_ACTIONS, Instant
from ..timeline.metadata.codec import WRITE_ID, Codec, InstantBody
from ..timeline.writers.owner import WRITE_IDS

NOTE = WRITE_IDS
# Prefix of ids that no user gave; a UUID follows.
GENERATED_ID = "auto-"
# Prefix of the ids of micro-batches; the query's id, which is a UUID, and the batch's number follow.
STREAM_ID = "stream:"
# A user may give any text as an id, also with these prefixes, so that only the whole form tells whose an id is.
_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_GENERATED = re.compile(f"{GENERATED_ID}{_UUID}")
_OF_BATCH = re.compile(f"{STREAM_ID}({_UUID}):([0-9]+)")

logger = logging.getLogger("pyhudi")


def generated_id() -> str:
    """Return an id for a write to which the user gave none."""
    return f"{GENERATED_ID}{uuid.uuid4()}"


def is_generated(write_id: str) -> bool:
    """Return whether pyhudi made an id up, so that no caller gives it again and no write is its replay."""
    return _GENERATED.fullmatch(write_id) is not None


def batch_of(write_id: str) -> tuple[str, int] | None:
    """Return the query and the number of the micro-batch with a write id; None for the id of another write."""
    match = _OF_BATCH.fullmatch(write_id)
    return (match[1], int(match[2])) if match else None


def greatest_batch(ids: Mapping[str, str], query_id: str) -> tuple[int, str] | None:
    """Return the number and the requested time of a query's greatest batch among some write ids; None without any."""
    batches = ((batch_of(write_id), time) for write_id, time in ids.items() if write_id.startswith(STREAM_ID))
    return max(((batch[1], time) for batch, time in batches if batch and batch[0] == query_id), default=None)


@dataclass(frozen=True, slots=True)
class NotedIds:
    """The requested time of the newest write of each id, for the writes in some files of the archive.

    A streaming query has only its greatest batch here.
    """

    files: frozenset[str] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)


def archived_write(table: Table, write_id: str) -> Instant | None:
    """Return the newest archived write with an id; None without one, and for a generated id, which the note lacks."""
    if is_generated(write_id):
        return None
    time = archived_ids(table).get(write_id)
    return None if time is None else table.archive.write_at(time)


def archived_ids(table: Table) -> Mapping[str, str]:
    """Return the requested times of archived writes by their ids; a streaming query has only its greatest batch."""
    names = table.archive.file_names()
    return _with_new_files(table, names, _read_note(table.storage)).ids if names else {}


def read_noted(storage: Storage) -> NotedIds:
    """Return the note for a caller that will change the archive; raise if a newer release wrote it."""
    return _read_note(storage, writing=True)


def note_write_ids(table: Table, merged: Iterable[MergedFile] = (), noted: NotedIds | None = None) -> None:
    """Make the note cover all files of the archive. `noted` is the note, if the caller has read it.

    Files in `merged` replaced others. If the note covers these, the rows of the new files need not be read.
    """
    noted = updated = read_noted(table.storage) if noted is None else noted
    for file in merged:
        if updated.files.issuperset(file.inputs):
            updated = NotedIds(updated.files - {*file.inputs} | {file.name}, updated.ids)
    updated = _with_new_files(table, table.archive.file_names(), updated)
    if updated != noted:
        fields = {"files": sorted(updated.files), "ids": dict(sorted(updated.ids.items()))}
        content = formats.numbered(fields, formats.WRITE_IDS)
        # After a power cut without the note, a lookup reads the files.
        table.storage.write(NOTE, json.dumps(content).encode(), durable=False)


def _with_new_files(table: Table, names: frozenset[str], noted: NotedIds) -> NotedIds:
    """Return a note of the write ids in ``names``, all files of the archive; read only files that ``noted`` lacks."""
    ids = dict(noted.ids)
    codec = table.instants.codec
    for instant, body in table.archive.bodies_in(sorted(names - noted.files)):
        write_id = _noted_id(codec, instant, body)
        if write_id and not is_generated(write_id):
            ids[write_id] = max(ids.get(write_id, ""), instant.requested_time)
    return NotedIds(names, without_old_batches(ids))


def without_old_batches(ids: Mapping[str, str]) -> Mapping[str, str]:
    """Return write ids with only the greatest batch of each streaming query."""
    greatest: dict[str, int] = {}
    batches = {write_id: batch_of(write_id) for write_id in ids}
    for query_id, number in filter(None, batches.values()):
        greatest[query_id] = max(number, greatest.get(query_id, 0))
    old_ids = {write_id for write_id, batch in batches.items() if batch is not None and batch[1] < greatest[batch[0]]}
    return {write_id: time for write_id, time in ids.items() if write_id not in old_ids}


def _noted_id(codec: Codec, instant: Instant, body: bytes) -> str:
    """Return the write id in the body of an archived instant; empty if it has none, or is no readable write."""
    if instant.action not in WRITE_ACTIONS:
        return ""
    try:
        summary = codec.decode_summary(InstantBody(body, instant.requested_time), replaces=instant.replaces)
    except CorruptInstantError:
        # pyhudi archives its own writes whole, so another engine made this write, and nothing can repair it.
        logger.warning(
            "the archived %s %s cannot be parsed, so its write id is unknown", instant.action, instant.requested_time
        )
        return ""
    return summary.extra_metadata.get(WRITE_ID, "")


def _read_note(storage: Storage, *, writing: bool = False) -> NotedIds:
    """Return the note; if it is missing or invalid, an empty note, so that a lookup reads all files.

    A note of a newer release counts as invalid; with ``writing`` it raises, because this release must not replace it.
    """
    try:
        note = parse_json(storage.read(NOTE))
        number = formats.number_of(note)
        if writing:
            formats.refuse_newer(storage.path, NOTE, number, formats.WRITE_IDS)
        if number > formats.WRITE_IDS:
            return NotedIds()
        files, ids = frozenset(note["files"]), dict(note["ids"])
    except (FileNotFoundError, CorruptFileError, ValueError, KeyError, TypeError):
        return NotedIds()
    texts = (*files, *ids, *ids.values())
    return NotedIds(files, ids) if all(isinstance(text, str) for text in texts) else NotedIds()
