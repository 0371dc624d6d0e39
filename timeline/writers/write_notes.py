"""Under which instant a write is on the timeline: a note that its tasks, its commit and its abort find by the write.

The first task chooses the instant's time when it puts the instant on the timeline, and its other tasks run in other
processes, which have the plan alone. The notes of one write are numbered, and the last counts: if another write holds
the millisecond of a note, or an archiving has passed it, the next note names another time.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from dataclasses import dataclass
from itertools import count

from ...errors import CorruptInstantError
from ...storage.base import Storage, join
from ...storage.bounds import MOST_OF_A_NOTE, parse_json
from .. import formats
from ..clock import format_time
from .owner import seal_folder

_KEY = re.compile(r"[0-9]{10}/[0-9a-f]{32}")
# What the note of a write names in place of a time if the write was given up before it was on the timeline.
GIVEN_UP = ""


def new_key(zone: str) -> str:
    """Return a key for the notes of a write that is planned now."""
    hour = format_time(int(time.time() * 1000), zone)[: len("yyyyMMddHH")]
    return f"{hour}/{uuid.uuid4().hex}"


def is_key(text: str) -> bool:
    """Return whether a text is a key of notes."""
    return _KEY.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class WriteNotes:
    """The notes of one write, in the folder of seals of the hour in which the write was planned.

    They outlive the write as its seal does, so that a late task finds that the write has begun.

    Attributes:
        key: The hour, and a name of the write's plan that no other plan has.
    """

    storage: Storage
    key: str

    def find(self, number: int) -> str | None:
        """Return the requested time that a note names, or `GIVEN_UP`; None without the note. Numbers begin with 1."""
        path = self.path(number)
        try:
            content = parse_json(self.storage.read(path, MOST_OF_A_NOTE))
        except FileNotFoundError:
            return None
        except ValueError:
            # A damaged note names no instant, and so raises below.
            content = None
        formats.refuse_newer(self.storage.path, path, formats.number_of(content), formats.WRITE_NOTE)
        noted = content.get("instant") if isinstance(content, dict) else None
        if not isinstance(noted, str) or not (noted == GIVEN_UP or noted.isdecimal()):
            raise CorruptInstantError(
                f"The file {join(self.storage.path, path)} does not name the instant of a write.",
                "Delete that file and write again.",
            )
        return noted

    def newest(self) -> str | None:
        """Return the requested time that the last note names, or `GIVEN_UP`; None without a note."""
        newest = None
        for number in count(1):
            noted = self.find(number)
            if noted is None:
                break
            newest = noted
        return newest

    def make(self, number: int, instant_time: str) -> bool:
        """Make the note of a number, with a requested time; False if another process of the write made it already."""
        content = formats.numbered({"instant": instant_time}, formats.WRITE_NOTE)
        return self.storage.create(self.path(number), json.dumps(content).encode(), durable=False)

    def path(self, number: int) -> str:
        """Return the path of the note with a number."""
        hour, _, name = self.key.partition("/")
        return join(seal_folder(hour), f"{name}.{number}")
