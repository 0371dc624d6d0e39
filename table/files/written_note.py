"""The note of what old completed writes say: a process that starts reads one file instead of thousands of bodies.

Only a timeline with many writes has the note. It names the writes that it covers with their completion times, and its
reader uses it if all of them are on the timeline still, or archived. So the timeline alone decides what exists: a
note that is lost, damaged or of another time costs the reading of the bodies, and nothing else.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Mapping, Sequence

from ...errors import PyHudiError
from ...storage.base import join
from ...storage.bounds import parse_json
from ...timeline import formats
from ...timeline.instants import Instant, State
from ...timeline.layout import Layout
from ...timeline.timeline import Timeline
from ...timeline.writers.owner import ROOT
from .file_group import StatedLog
from .written import BaseWritten, LogWritten, Written

NOTE = join(ROOT, "written")

logger = logging.getLogger("pyhudi")


def read_note(timeline: Timeline) -> Written:
    """Return the note of a table; an empty note if it is missing, damaged or in a newer format."""
    if timeline.files.source != timeline.files.folder:
        # A timeline with archived instants, for which no writer makes notes.
        return Written()
    try:
        return _parsed(timeline.storage.read(NOTE), timeline.files.layout)
    except FileNotFoundError:
        return Written()
    except (PyHudiError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        logger.info("table %s: the note %s is not used: %s", timeline.storage.path, NOTE, error)
        return Written()


def write_note(timeline: Timeline, written: Written) -> None:
    """Put a note in the place of the last; a process that cannot write it goes without."""
    try:
        timeline.storage.write(NOTE, _encoded(written, timeline.files.layout), durable=False)
    except PyHudiError as error:
        logger.info("table %s: no note %s was made: %s", timeline.storage.path, NOTE, error)


def _encoded(written: Written, layout: Layout) -> bytes:
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
    return {
        name: [numbers[log.instant], log.stated.size, log.stated.records, int(log.stated.by_pyhudi)]
        for name, log in logs.items()
    }


def _parsed(data: bytes, layout: Layout) -> Written:
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
    return {
        name: LogWritten(write, StatedLog(size, records, bool(by_pyhudi), (write.requested_time,)))
        for name, (number, size, records, by_pyhudi) in logs.items()
        for write in [instants[number]]
    }


def _pair(group: Sequence[str]) -> tuple[str, str]:
    partition, file_id = group
    return partition, file_id


def _instant(name: str, layout: Layout) -> Instant:
    instant = layout.parse(name)
    if instant is None or instant.state != State.COMPLETED or not layout.is_whole(instant):
        raise ValueError(f"it names {name!r}, which is no completed instant")
    return instant
