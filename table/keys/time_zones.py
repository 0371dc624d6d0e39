"""Time zones as Joda-Time knows them, applied to arrays of milliseconds.

Arrow has the same data, but no daylight saving time after 2037. The offsets therefore come from `zoneinfo`, and the
moments at which they change are cached by zone and year.

Source: ``org.joda.time.DateTimeZone.forTimeZone`` and ``getOffsetFromLocal``.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

Millis = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

DAY = 86_400_000
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999

_EPOCH = dt.datetime(1970, 1, 1)
# Less than the time between two changes of an offset; the shortest known is Morocco's month of Ramadan.
_STEP_S = 7 * 86_400
_CUSTOM = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d\d))?")
_SHORT = re.compile("[A-Z]{3}")
_MOST_HOURS, _MOST_MINUTES = 23, 59


@dataclass(frozen=True, slots=True)
class TimeZone:
    """A zone by its name in Java: ``UTC``, ``GMT``, a region such as ``Asia/Tokyo``, or ``GMT+8:00``."""

    name: str

    def __post_init__(self) -> None:
        if _fixed_offset(self.name) is None:
            # Raises ValueError for an unknown zone.
            _region(self.name)

    def local(self, instants: Millis) -> Millis:
        """Return the zone's local time at each instant, in milliseconds since 1970."""
        return instants + self._offsets(instants)

    def instants(self, local: Millis) -> tuple[Millis, Mask]:
        """Return the instants of local times, and which local times exist; a time that occurs twice is the earlier."""
        # A day before and a day after have the offsets on both sides of a change nearby: changes are weeks apart.
        earlier, later = local - self._offsets(local - DAY), local - self._offsets(local + DAY)
        is_earlier = earlier + self._offsets(earlier) == local
        return np.where(is_earlier, earlier, later), is_earlier | (later + self._offsets(later) == local)

    def _offsets(self, instants: Millis) -> Millis:
        """Return the zone's offset from UTC at each instant, in milliseconds."""
        fixed = _fixed_offset(self.name)
        if fixed is not None:
            return np.full(len(instants), fixed, np.int64)
        clipped = np.clip(instants, FIRST_MS, LAST_MS)
        years = np.unique(clipped.astype("M8[ms]").astype("M8[Y]").astype(np.int64) + 1970)
        changes = np.array([change for year in years.tolist() for change in _changes(self.name, year)], np.int64)
        if not len(changes):
            # There are no instants.
            return np.zeros(0, np.int64)
        moments, offsets = changes[:, 0], changes[:, 1]
        in_force: Millis = offsets[np.searchsorted(moments, clipped, side="right") - 1]
        return in_force


def _fixed_offset(name: str) -> int | None:
    """Return the offset of a zone without a region, in milliseconds; None for a region."""
    if name in {"UTC", "GMT"}:
        return 0
    match = _CUSTOM.fullmatch(name)
    if match is None:
        return None
    hours, minutes = int(match[2]), int(match[3] or 0)
    if hours > _MOST_HOURS or minutes > _MOST_MINUTES:
        raise ValueError(f"{name!r} is no time zone")
    return (1 if match[1] == "+" else -1) * (hours * 60 + minutes) * 60_000


@cache
def _region(name: str) -> ZoneInfo:
    """Return a zone of the machine's time zone data; ValueError if it is unknown, or means two zones."""
    # Java and Joda-Time differ in the meaning of names of three letters.
    if _SHORT.fullmatch(name):
        raise ValueError(f"{name!r} is no time zone to pyhudi, because Java and Joda-Time give it different meanings")
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"{name!r} is not among the time zones of this machine") from error


@cache
def _changes(name: str, year: int) -> list[tuple[int, int]]:
    """Return (moment, offset from then on) for a year's beginning and each change of the offset in the year.

    Moments are milliseconds since 1970 in UTC, offsets milliseconds; ``name`` is a region, such as ``Europe/Berlin``.
    """
    zone = _region(name)

    def offset(second_since_epoch: int) -> int:
        """Return the zone's offset from UTC at a second since 1970, in milliseconds."""
        moment = (_EPOCH + dt.timedelta(seconds=second_since_epoch)).replace(tzinfo=dt.timezone.utc)
        try:
            difference = moment.astimezone(zone).utcoffset()
        except OverflowError:  # within a day of the years 1 and 9999
            difference = moment.replace(tzinfo=zone).utcoffset()
        return int((difference or dt.timedelta()).total_seconds()) * 1000

    start = (dt.datetime(year, 1, 1) - _EPOCH) // dt.timedelta(seconds=1)
    end = start + (366 * 86_400 if _is_leap(year) else 365 * 86_400) - 1
    changes = [(start * 1000, offset(start))]
    while start < end:
        stop = min(start + _STEP_S, end)
        target = offset(stop)
        if target != changes[-1][1]:
            # Search the second of the change by halves.
            low, high = start, stop
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if offset(middle) == target else (middle, high)
            changes.append((high * 1000, target))
        start = stop
    return changes


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
