"""What the completed writes of a timeline say, read from a note of the old writes and from the bodies of all others.

A process keeps the answer, which later answers extend, and reads no body twice. A process that starts beside many
active writes begins with the answer that an earlier process left below the table (`written_note`).
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from ...errors import PyHudiError, StorageError
from ...storage.base import join
from ...storage.bounds import parse_json
from ...storage.kept import keep
from ...storage.threads import for_each
from ...timeline import formats
from ...timeline.instants import Instant, State
from ...timeline.layout import Layout
from ...timeline.metadata.codec import CommitFiles
from ...timeline.timeline import Timeline
from ...timeline.writers.owner import ROOT
from .file_group import DataFile, StatedLog
from .log_names import log_names
from .written import BaseWritten, LogWritten, Written

NOTE = join(ROOT, "written")

logger = logging.getLogger("pyhudi")


def read_note(timeline: Timeline) -> Written:
    """Return the note of a table; an empty note if it is missing, damaged or in a newer format."""
    if timeline.files.source != timeline.files.folder:
        # A timeline with archived instants, for which no writer makes notes.
        return Written()
    try:
        return _written_in_note(timeline.storage.read(NOTE), timeline.files.layout)
    except FileNotFoundError:
        return Written()
    except (PyHudiError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        logger.info("table %s: the note %s is not used: %s", timeline.storage.path, NOTE, error)
        return Written()


def write_note(timeline: Timeline, written: Written) -> None:
    """Put a note in the place of the last; a process that cannot write it goes without."""
    try:
        timeline.storage.write(NOTE, _note_bytes(written, timeline.files.layout), durable=False)
    except PyHudiError as error:
        logger.info("table %s: no note %s was made: %s", timeline.storage.path, NOTE, error)


def _note_bytes(written: Written, layout: Layout) -> bytes:
    """Return the content of a note: a checksum, and as JSON which files and file groups some writes made or replaced.

    In it, numbers replace instants: positions in a list of the file names that ``layout`` gives the instants.
    """
    instants = sorted(written.instants, key=lambda instant: instant.identity)
    numbers = {instant: number for number, instant in enumerate(instants)}
    content = {
        "instants": [layout.format(instant) for instant in instants],
        "newest": {
            partition: {file_id: base.name for file_id, base in bases.items()}
            for partition, bases in written.newest.items()
        },
        # Apart from the names, which older releases read too.
        "sizes": {
            partition: {file_id: base.size for file_id, base in bases.items() if base.size}
            for partition, bases in written.newest.items()
        },
        "replaced": [[numbers[instant], sorted(groups)] for instant, groups in written.replaced_by.items()],
        "logs": {
            partition: {file_id: _encoded_logs(logs, numbers) for file_id, logs in groups.items()}
            for partition, groups in written.logs.items()
        },
        "ids": written.ids,
    }
    text = json.dumps(formats.numbered(content, formats.WRITTEN_NOTE), separators=(",", ":")).encode()
    return b"%08x\n%b" % (zlib.crc32(text), text)


def _encoded_logs(logs: Mapping[str, LogWritten], numbers: Mapping[Instant, int]) -> dict[str, list[int]]:
    """Return, by name of log file, the number of its instant, its size, its records, and 1 if pyhudi wrote it."""
    return {
        name: [numbers[log.instant], log.stated.size, log.stated.records, int(log.stated.by_pyhudi)]
        for name, log in logs.items()
    }


def _written_in_note(data: bytes, layout: Layout) -> Written:
    """Return which files and file groups the writes of a note made or replaced; ``data`` is what `_note_bytes` returns.

    ``layout`` parses the names of instants. Raises ValueError if the note is damaged, of a newer release, or names what
    is no completed instant.
    """
    checksum, _, text = data.partition(b"\n")
    if int(checksum, 16) != zlib.crc32(text):
        raise ValueError("it does not have the checksum that it states")
    content = parse_json(text)
    if formats.number_of(content) > formats.WRITTEN_NOTE:
        raise ValueError("a newer release wrote it")
    instants, sizes = [_instant(name, layout) for name in content["instants"]], content.get("sizes", {})
    return Written(
        frozenset(instants),
        {
            partition: {
                file_id: BaseWritten(name, sizes.get(partition, {}).get(file_id, 0)) for file_id, name in names.items()
            }
            for partition, names in content["newest"].items()
        },
        {instants[number]: frozenset(map(_pair, groups)) for number, groups in content["replaced"]},
        {
            partition: {file_id: _parsed_logs(logs, instants) for file_id, logs in groups.items()}
            for partition, groups in content["logs"].items()
        },
        content["ids"],
    )


def _parsed_logs(logs: Mapping[str, Sequence[int]], instants: Sequence[Instant]) -> dict[str, LogWritten]:
    """Return, by name of log file, what `_encoded_logs` wrote down; each number is a position among ``instants``."""
    return {
        name: LogWritten(write, StatedLog(size, records, bool(by_pyhudi), (write.requested_time,)))
        for name, (number, size, records, by_pyhudi) in logs.items()
        for write in [instants[number]]
    }


def _pair(group: Sequence[str]) -> tuple[str, str]:
    """Return the partition path and the file id of a file group; ValueError if a note has more or fewer texts."""
    partition, file_id = group
    return partition, file_id


def _instant(name: str, layout: Layout) -> Instant:
    """Return the completed instant of a file's name; ValueError for any other name."""
    instant = layout.parse(name)
    if instant is None or instant.state != State.COMPLETED or not layout.is_whole(instant):
        raise ValueError(f"it names {name!r}, which is no completed instant")
    return instant


# Bounds of what a process keeps: enough for the tables of one job, or for a few large tables.
_MOST_TABLES = 32
_MOST_NAMES = 500_000
# So many bodies take longer to read than a note.
_MANY = 100
_YOUNGEST = 32

_Source = tuple[str, str]
# The key is the table's path with its timeline's folder, and the writes.
_WRITTEN: OrderedDict[tuple[_Source, frozenset[Instant]], Written] = OrderedDict()
# The note of each table as this process last read or wrote it.
_NOTED: dict[_Source, Written] = {}
_LOCK = Lock()


def _forget_answers() -> None:
    """Give a forked child process answers of its own: a thread that changes the parent's is not in the child."""
    global _WRITTEN, _LOCK
    _WRITTEN, _LOCK = OrderedDict(), Lock()


os.register_at_fork(after_in_child=_forget_answers)


def read_written(timeline: Timeline) -> Written:
    """Return what the completed writes of a timeline say; bodies that the process knows are not read again."""
    writes = timeline.writes
    if not writes:
        return Written()
    source, wanted = _source_of(timeline), frozenset(writes)
    base = _nearest_written(timeline, wanted, writes)
    if base.instants == wanted:
        return base
    # Writes that were archived since leave the answer, and new writes join it.
    answer = _joined(timeline, base.requested_since(writes[0].requested_time), writes)
    with _LOCK:
        # The new answer takes the place of the answer that it extends.
        _WRITTEN.pop((source, base.instants), None)
        _WRITTEN[source, wanted] = answer
        while len(_WRITTEN) > _MOST_TABLES or (
            len(_WRITTEN) > 1 and sum(written.size for written in _WRITTEN.values()) > _MOST_NAMES
        ):
            _WRITTEN.popitem(last=False)
    return answer


def read_replaced(timeline: Timeline) -> Written:
    """Return at least what completed writes say of replaced file groups; it reads fewer bodies than `read_written`."""
    return _read_matching(timeline, lambda write: write.replaces)


def read_stated(timeline: Timeline, files: Iterable[DataFile]) -> Written:
    """Return at least what the completed writes that made some files say; no other bodies are read."""
    if not log_names(timeline).says_maker:
        # Any write may have appended to the log files.
        return read_written(timeline)
    times = {file.named_time for file in files}
    return _read_matching(timeline, lambda write: write.requested_time in times)


def note_written(timeline: Timeline) -> None:
    """Leave a note of what the old writes on a timeline say, if there are many and the last note lacks many of them.

    The note is a file below the table with the files and file groups that the writes made or replaced. A process that
    starts later reads it in place of the writes' bodies. Without it that process is only slower, so a store that fails
    raises no error.
    """
    writes, source = timeline.writes, _source_of(timeline)
    if writes and _covers(_NOTED.get(source), writes, writes):
        # This is cheaper to find out than which of the writes are old.
        return
    # Not the youngest: a note is of no use if a timeline lacks a write, as it was planned before or rolled it back.
    older = sorted(writes, key=lambda write: write.visible_since)[:-_YOUNGEST]
    notable = {write for write in older if timeline.files.layout.is_whole(write)}
    if len(notable) < _MANY:
        return
    old_writes = [write for write in writes if write in notable]
    if _covers(_NOTED.get(source), writes, old_writes):
        return
    note = _last_note(timeline)
    if not _covers(note, writes, old_writes):
        base = note if _holds(note, frozenset(writes), writes[0].requested_time) else Written()
        not_noted = [write for write in old_writes if write not in base.instants]
        try:
            bodies = for_each(timeline.storage, timeline.files.read_written_files, not_noted)
        except StorageError:
            # A write was archived meanwhile. Other processes may still see it on the timeline, so no note may name it.
            return
        note = base.requested_since(writes[0].requested_time).joined_by(
            zip(not_noted, bodies, strict=True), log_names(timeline)
        )
        if note.size <= _MOST_NAMES:
            write_note(timeline, note)
    # A note that is too large is kept, too, so that the process does not make it again for every write.
    keep(_NOTED, source, note, _MOST_TABLES)


def _covers(noted: Written | None, writes: Sequence[Instant], needed: Sequence[Instant]) -> bool:
    """Return whether a note may be extended to all ``writes`` of a timeline, and lacks few of those ``needed``."""
    if noted is None or sum(write not in noted.instants for write in needed) >= _MANY:
        return False
    return _holds(noted, frozenset(writes), writes[0].requested_time)


def _last_note(timeline: Timeline) -> Written:
    """Return the note of a table as it is now, which the process remembers for `note_written`."""
    note = read_note(timeline)
    keep(_NOTED, _source_of(timeline), note, _MOST_TABLES)
    return note


def _read_matching(timeline: Timeline, is_wanted: Callable[[Instant], bool]) -> Written:
    """Return what those writes say for which ``is_wanted`` is true, and perhaps what others say.

    It reads no bodies of others. The answer is not kept, because it is not of all writes.
    """
    writes = timeline.writes
    if not writes:
        return Written()
    matching = [write for write in writes if is_wanted(write)]
    known_answer = _nearest_written(timeline, frozenset(writes), matching)
    # Writes that were archived since leave the answer.
    return _joined(timeline, known_answer.requested_since(writes[0].requested_time), matching)


def _joined(timeline: Timeline, known_answer: Written, writes: Sequence[Instant]) -> Written:
    """Return an answer extended by what some writes say; only the bodies of writes that it lacks are read."""
    unknown = [write for write in writes if write not in known_answer.instants]
    return known_answer.joined_by(zip(unknown, _read_bodies(timeline, unknown), strict=True), log_names(timeline))


def _source_of(timeline: Timeline) -> _Source:
    """Return the path of a timeline's table and the folder of its instants, by which the process keeps answers."""
    return timeline.storage.path, timeline.files.source


def _nearest_written(timeline: Timeline, writes: frozenset[Instant], needed: Sequence[Instant]) -> Written:
    """Return what the process, or the note, knows of most of the writes; writes archived since may be part of it.

    The note is read only if the process lacks many of the writes ``needed``.
    """
    source, first_time = _source_of(timeline), timeline.writes[0].requested_time
    with _LOCK:
        answer_of_writes = _WRITTEN.get((source, writes))
        if answer_of_writes is not None:
            _WRITTEN.move_to_end((source, writes))
            return answer_of_writes
        usable = [
            answer for (where, _), answer in _WRITTEN.items() if where == source and _holds(answer, writes, first_time)
        ]
    best = max(usable, key=lambda answer: len(answer.instants & writes), default=Written())
    if sum(write not in best.instants for write in needed) < _MANY:
        return best
    note = _last_note(timeline)
    return (
        note if _holds(note, writes, first_time) and len(note.instants & writes) > len(best.instants & writes) else best
    )


def _holds(written: Written, writes: frozenset[Instant], first_time: str) -> bool:
    """Return whether an answer is of no other writes than ``writes``, those of a timeline, and of archived writes.

    ``first_time`` is the requested time of the timeline's first write; older writes count as archived.
    """
    return all(instant.requested_time < first_time for instant in written.instants - writes)


def _read_bodies(timeline: Timeline, writes: list[Instant]) -> list[CommitFiles]:
    """Return the bodies of some writes; an empty body for a write that was archived since the timeline was read."""
    try:
        return for_each(timeline.storage, timeline.files.read_written_files, writes)
    except StorageError:
        reloaded = timeline.reload()
        still_there = frozenset(reloaded.instants)
        archived = [write for write in writes if write not in still_there]
        first_time = reloaded.writes[0].requested_time if reloaded.writes else ""
        if not archived or any(write.requested_time >= first_time for write in archived):
            # A write is gone that was rolled back, or the read failed for another reason.
            raise
        bodies = iter(_read_bodies(reloaded, [write for write in writes if write in still_there]))
        return [next(bodies) if write in still_there else CommitFiles() for write in writes]
