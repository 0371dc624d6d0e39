"""Where a timeline's files are and how their names are spelled: a layout object per timeline layout version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from .instants import Instant, State

_COMPLETED = "commit|deltacommit|replacecommit|clean|rollback|restore|savepoint|indexing"
_PENDING = "deltacommit|replacecommit|clean|rollback|restore|indexing|clustering|compaction|logcompaction"
_NAME_V2 = re.compile(
    rf"(?P<requested>\d+)(?:"
    rf"(?:_(?P<completion>\d+))?\.(?P<completed>{_COMPLETED})"
    rf"|\.(?P<asked>commit|{_PENDING})\.requested"
    rf"|\.(?P<begun>{_PENDING}|savepoint)\.inflight"
    rf"|(?P<commit_begun>\.inflight)"
    rf")",
    re.ASCII,
)


class Layout(Protocol):
    """The names of a timeline's files; folders are relative to the table's root."""

    @property
    def folder(self) -> str: ...

    @property
    def archive_folder(self) -> str: ...

    @property
    def next(self) -> Layout | None:
        """The layout to which Apache Hudi moves the instants when it raises the table; None for none."""

    @property
    def previous(self) -> Layout | None:
        """The layout from which Apache Hudi moved the instants if it raised the table; None for none."""

    def parse(self, name: str) -> Instant | None: ...

    def parse_all(self, names: Sequence[str]) -> list[Instant]: ...

    def format(self, instant: Instant) -> str: ...

    def completed(self, instant: Instant, time: str) -> Instant:
        """Return the completed state of an instant that completes at a time, as the name of its file will tell it."""

    def is_whole(self, instant: Instant) -> bool:
        """Return whether an instant has what its file's name has to tell; a half-done upgrade leaves others."""

    def start(self, requested_time: str) -> str:
        """Return what the names of all files of an instant begin with."""

    def visible_at(self, pending: Instant) -> str | None:
        """Return from which time on readers see a pending instant once it completes; None for a time yet to come."""

    def repeats_plan(self, pending: Instant) -> bool:
        """Return whether an instant's inflight file has the plan of its requested file again."""


@dataclass(frozen=True, slots=True)
class LayoutV1:
    """Timeline layout 1, of table version 6: instants lie beside all else in ``.hoodie``, and have one time."""

    folder: str = ".hoodie"
    archive_folder: str = ".hoodie/archived"

    @property
    def next(self) -> LayoutV2:
        return LayoutV2()

    @property
    def previous(self) -> None:
        return None

    def parse(self, name: str) -> Instant | None:
        """Return the instant's state that a file name spells; None for any other file, one of layout 2 included."""
        instant = _parsed_v2(name)
        return None if instant is None or instant.completion_time is not None else instant

    def parse_all(self, names: Sequence[str]) -> list[Instant]:
        return [instant for instant in map(self.parse, names) if instant is not None]

    def completed(self, instant: Instant, time: str) -> Instant:
        return Instant(instant.requested_time, instant.group, State.COMPLETED)

    def is_whole(self, instant: Instant) -> bool:
        return instant.completion_time is None

    def start(self, requested_time: str) -> str:
        return requested_time

    def visible_at(self, pending: Instant) -> str | None:
        return pending.requested_time

    def repeats_plan(self, pending: Instant) -> bool:
        # Apache Hudi 0.15 reads the plan there, and takes an empty file for a clean that never began.
        return pending.action == "clean"

    def format(self, instant: Instant) -> str:
        return _name_of(instant)


@dataclass(frozen=True, slots=True)
class LayoutV2:
    """Timeline layout 2, of table versions 8 and 9: completed files carry both times in their names."""

    folder: str = ".hoodie/timeline"
    archive_folder: str = ".hoodie/timeline/history"

    @property
    def next(self) -> None:
        return None

    @property
    def previous(self) -> LayoutV1:
        return LayoutV1()

    def parse(self, name: str) -> Instant | None:
        """Return the instant's state that a file name spells; None for any other file.

        A completed file without a completion time, of a half-done upgrade, parses as completed, or committed rows would
        vanish.
        """
        return _parsed_v2(name)

    def parse_all(self, names: Sequence[str]) -> list[Instant]:
        """Return what names spell, in their order, but no earlier state of a completed instant.

        Two of three names spell such a state. To parse them takes longer than to skip them.
        """
        # Only a completed file has an underscore in its name, before the completion time.
        completed = {
            (instant.requested_time, instant.group) for name in names if "_" in name and (instant := _parsed_v2(name))
        }
        groups: dict[str, str] = {}
        newest = []
        for name in names:
            time, _, ending = name.partition(".")
            # The ending of a pending state tells its group; "" keeps all other names.
            if ending not in groups:
                instant = _parsed_v2(name)
                groups[ending] = instant.group if instant is not None and instant.state != State.COMPLETED else ""
            if (time, groups[ending]) not in completed:
                newest.append(name)
        return [instant for instant in map(_parsed_v2, newest) if instant is not None]

    def completed(self, instant: Instant, time: str) -> Instant:
        return Instant(instant.requested_time, instant.group, State.COMPLETED, time)

    def is_whole(self, instant: Instant) -> bool:
        return instant.state != State.COMPLETED or instant.completion_time is not None

    def start(self, requested_time: str) -> str:
        return requested_time

    def visible_at(self, pending: Instant) -> str | None:
        return None

    def repeats_plan(self, pending: Instant) -> bool:
        return False

    def format(self, instant: Instant) -> str:
        return _name_of(instant)


@dataclass(frozen=True, slots=True)
class UpgradeLayout(LayoutV2):
    """Timeline layout 2 of a table that came out of version 6 with log files, which keep the names they had there."""


def _name_of(instant: Instant) -> str:
    """Return the name of the file that holds an instant's state."""
    if instant.state == State.COMPLETED:
        completion = "" if instant.completion_time is None else f"_{instant.completion_time}"
        return f"{instant.requested_time}{completion}.{instant.group}"
    if instant.state == State.REQUESTED:
        return f"{instant.requested_time}.{instant.action}.requested"
    # Apache Hudi names the inflight file of a commit by the state alone, in every table version.
    action = "" if instant.action == "commit" else f".{instant.action}"
    return f"{instant.requested_time}{action}.inflight"


# A process lists one timeline again and again, each time with a few more instants. If the timeline did not fit into the
# cache, each listing would parse all its names anew.
@lru_cache(maxsize=1 << 16)
def _parsed_v2(name: str) -> Instant | None:
    """Return the instant's state that a file name of layout 2 spells; None for any other name."""
    match = _NAME_V2.fullmatch(name)
    if match is None:
        return None
    requested = match["requested"]
    if match["completed"]:
        return Instant(requested, match["completed"], State.COMPLETED, match["completion"])
    if match["asked"]:
        return Instant(requested, match["asked"], State.REQUESTED)
    # Only a commit's inflight file has no action in its name.
    return Instant(requested, match["begun"] or "commit", State.INFLIGHT)
