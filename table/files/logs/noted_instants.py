"""Which instants each file of an old archive holds: a note of pyhudi's, as neither a name nor an index says it.

Each archiving writes the note anew, for all files. An entry counts for the file of its path, size and time alone. So
a note that is late, lost, damaged or of an earlier archive costs the reading of files, and nothing else.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Mapping

from ....errors import PyHudiError
from ....storage.base import FileInfo, Storage, join
from ....storage.bounds import parse_json
from ....timeline import formats
from ....timeline.instants import Instant, State
from ....timeline.writers.owner import ROOT

NOTE = join(ROOT, "archived_instants")

Held = Mapping[FileInfo, tuple[Instant, ...]]

logger = logging.getLogger("pyhudi")


def read_note(storage: Storage) -> Held:
    """Return the note of a table; an empty note if it is missing, damaged or in a newer format."""
    try:
        return _instants_in_note(storage.read(NOTE))
    except FileNotFoundError:
        return {}
    except (PyHudiError, ValueError, KeyError, TypeError, AttributeError) as error:
        logger.info("table %s: the note %s is not used: %s", storage.path, NOTE, error)
        return {}


def write_note(storage: Storage, instants_of_file: Held) -> None:
    """Put a note in the place of the last; a process that cannot write it goes without."""
    files = [
        [info.path, info.size, info.modified, [instant.identity for instant in instants_of_file[info]]]
        for info in instants_of_file
    ]
    text = json.dumps(formats.numbered({"files": files}, formats.ARCHIVED_INSTANTS), separators=(",", ":")).encode()
    try:
        storage.write(NOTE, b"%08x\n%b" % (zlib.crc32(text), text), durable=False)
    except PyHudiError as error:
        logger.info("table %s: no note %s was made: %s", storage.path, NOTE, error)


def _instants_in_note(data: bytes) -> Held:
    """Return the instants in a note by the file that holds them; ValueError if it is damaged or of a newer release."""
    checksum, _, text = data.partition(b"\n")
    if int(checksum, 16) != zlib.crc32(text):
        raise ValueError("it does not have the checksum that it states")
    content = parse_json(text)
    if formats.number_of(content) > formats.ARCHIVED_INSTANTS:
        raise ValueError("a newer release wrote it")
    return {
        FileInfo(path, size, modified): tuple(map(_instant, identities))
        for path, size, modified, identities in content["files"]
    }


def _instant(identity: str) -> Instant:
    """Return the completed instant of an identity, ``<requested time>.<action>``."""
    time, _, action = identity.partition(".")
    return Instant(time, action, State.COMPLETED)
