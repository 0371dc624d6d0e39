"""What the time in a log file's name is: the delta commit that wrote the file, or the base instant of its slice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...timeline.instants import Instant
from ...timeline.layout import Layout, LayoutV1, LayoutV2, UpgradeLayout
from ...timeline.timeline import Timeline
from .names import LogFileName


class LogNames(Protocol):
    """How log files are named."""

    @property
    def says_maker(self) -> bool:
        """Whether the name says who wrote the file; if it does not, several instants may append to the file."""

    def fits(self, name: str, write: Instant, base_time: str) -> bool:
        """Return whether a log file, which a completed write names, goes with a base file of a time or later."""


class NamedByMaker:
    """From table version 8 on the time is that of the delta commit."""

    says_maker: bool = True

    def fits(self, name: str, write: Instant, base_time: str) -> bool:
        return write.visible_since >= base_time


class NamedByBase:
    """In table version 6 it is the base instant, or a pending compaction that will make the next base file."""

    says_maker: bool = False

    def fits(self, name: str, write: Instant, base_time: str) -> bool:
        parsed = LogFileName.parse(name)
        return parsed is not None and parsed.named_time >= base_time


class NamedByEither:
    """In a table that came out of version 6 it is the base instant in old names, and the delta commit in new names."""

    says_maker: bool = False

    def fits(self, name: str, write: Instant, base_time: str) -> bool:
        parsed = LogFileName.parse(name)
        by_maker = parsed is not None and parsed.named_time == write.requested_time
        return (_BY_MAKER if by_maker else _BY_BASE).fits(name, write, base_time)


_BY_MAKER, _BY_BASE = NamedByMaker(), NamedByBase()
_NAMES: Mapping[type[Layout], LogNames] = {LayoutV1: _BY_BASE, LayoutV2: _BY_MAKER, UpgradeLayout: NamedByEither()}


def log_names(timeline: Timeline) -> LogNames:
    """Return how log files of the timeline's layout are named."""
    return _NAMES[type(timeline.files.layout)]
