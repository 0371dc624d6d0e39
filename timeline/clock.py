"""Instant times: 17 digits in the table's time zone, strictly increasing.

Format as in Apache Hudi's ``HoodieInstantTimeGenerator``: ``yyyyMMddHHmmssSSS``, or 14 digits without milliseconds.
Spellings of a query's time: ``HoodieSqlCommonUtils.formatQueryInstant``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from datetime import datetime, timedelta, timezone, tzinfo
from enum import IntEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..errors import CorruptInstantError, InvalidOptionError

logger = logging.getLogger("pyhudi")

_TIME = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{3})?", re.ASCII)
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Apache Hudi appends these to a time in seconds.
_MISSING_MILLIS = "999"
_MUCH_AHEAD_MS = 5 * 60 * 1000

_SPELLED = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}(?::?\d{2})?)?)?", re.ASCII
)
_EPOCH_UNITS = {10: 1000, 13: 1}


class Parity(IntEnum):
    """Which milliseconds instants take as their times, so that a write and a table service never take the same.

    Table services are decided one after another, and writes enter the timeline while a service is being decided.
    """

    EVEN = 0
    ODD = 1


def format_time(epoch_ms: int, zone: str) -> str:
    """Return an instant time of 17 digits. ``zone`` is "UTC", "LOCAL" (this process's zone) or an IANA name."""
    return _instant_time((_EPOCH + epoch_ms * _MILLISECOND).astimezone(_zone(zone)))


def parse_time(text: str, zone: str) -> int:
    """Return an instant time as epoch milliseconds; of an hour that summer time repeats, the first."""
    time_zone = _zone(zone)
    naive = _naive(text)
    try:
        aware = naive.astimezone() if time_zone is None else naive.replace(tzinfo=time_zone)
        return (aware - _EPOCH) // _MILLISECOND
    except OverflowError as error:
        raise ValueError(f"{text!r} lies beyond the calendar") from error


def moment_of(text: str, zone: str) -> datetime | None:
    """Return the moment of an instant time; None for a text of other software that is no time."""
    try:
        return _EPOCH + timedelta(milliseconds=parse_time(text, zone))
    except ValueError:
        return None


def query_time(text: str, zone: str) -> str:
    """Return the time of a query in the form of instant times.

    A date is its first moment. A time without milliseconds is the last moment of its second, while 14 digits stay as
    they are and so come before every instant of their second, as in Apache Hudi. Digits finer than a millisecond are
    cut off, so that an instant of that very millisecond lies before the time. Accepted: ``yyyyMMddHHmmss[SSS]``,
    ``yyyy-MM-dd``, ``yyyy-MM-dd HH:mm:ss`` (or with a T) with up to nine digits of a second and a zone (``Z``,
    ``+02:00``), or an epoch in 10 digits of seconds or 13 of milliseconds; anything else raises ValueError.
    """
    if text.isascii() and text.isdigit() and len(text) in _EPOCH_UNITS:
        return format_time(int(text) * _EPOCH_UNITS[len(text)], zone)
    spelled = _SPELLED.fullmatch(text)
    if spelled is None:
        # Raises ValueError for a text that is no instant time.
        _naive(text)
        return text
    *numbers, fraction, offset = spelled.groups()
    if numbers[3] is None:
        # A date is its first moment.
        numbers, fraction = [*numbers[:3], "00", "00", "00"], "0"
    digits = "".join([*numbers, fraction.ljust(3, "0")[:3] if fraction else _MISSING_MILLIS])
    local_time = _naive(digits)
    if offset is None:
        return digits
    try:
        return format_time((local_time.replace(tzinfo=_offset(offset)) - _EPOCH) // _MILLISECOND, zone)
    except OverflowError as error:
        raise ValueError(f"{text!r} lies beyond the calendar") from error


def spelled_digits(text: str) -> int:
    """Return how many digits of an instant's time a text in the form of `query_time` fixes: 8 of a day, 14, or 17."""
    if text.isdigit():
        # An epoch of 10 digits is a second, of 13 a millisecond; other texts of digits are instant times.
        return {10: 14, 13: 17}.get(len(text), len(text))
    spelled = _SPELLED.fullmatch(text)
    if spelled is None or spelled[4] is None:
        return 8
    return 17 if spelled[7] else 14


def next_time(now_ms: int, greatest: str | None, zone: str, *, parity: Parity | None = None) -> str:
    """Return the time of a new instant: now, or the first millisecond after the greatest time, if that is later.

    With a ``parity`` it is a millisecond of that parity. A greatest time far ahead of the clock is logged.
    ``now_ms`` is now in milliseconds since 1970, and ``zone`` the table's time zone, in which instants are named.
    ``greatest`` is the last time that the timeline has, None if it has none. Raises CorruptInstantError if it is no
    time.
    """
    # An odd sum is of the other parity, so the next millisecond is taken.
    now = format_time(now_ms + (0 if parity is None else (now_ms + parity) % 2), zone)
    if greatest is None or now > greatest:
        return now
    try:
        # Count on the zone's own clock face: across a repeated summer-time hour, UTC arithmetic could run backwards.
        following = _instant_time(_naive(greatest) + _MILLISECOND)
        if parity is not None and (int(following[-1]) + parity) % 2:
            following = _instant_time(_naive(following) + _MILLISECOND)
        ahead_ms = parse_time(following, zone) - now_ms
    except (ValueError, OverflowError) as error:
        raise CorruptInstantError(
            f"The timeline holds an instant of the time {greatest}, which no calendar has: no instant can follow it.",
            "Remove that instant's files from the timeline folder if nothing belongs to it.",
        ) from error
    if ahead_ms > _MUCH_AHEAD_MS:
        logger.warning(
            "the timeline holds an instant of %s, so that the new instant %s runs %d s ahead of the clock (zone %s)",
            greatest,
            following,
            ahead_ms // 1000,
            zone,
        )
    return following


def free_time_after(time: str, taken: Collection[str]) -> str:
    """Return the earliest time after a time that no instant has ``taken``, on the zone's own clock face."""
    time_after = _instant_time(_naive(time) + _MILLISECOND)
    while time_after in taken:
        time_after = _instant_time(_naive(time_after) + _MILLISECOND)
    return time_after


def free_time_before(time: str, taken: Collection[str]) -> str:
    """Return the latest time before a time that no instant has ``taken``, on the zone's own clock face."""
    time_before = time
    while time_before == time or time_before in taken:
        time_before = _instant_time(_naive(time_before) - _MILLISECOND)
    return time_before


def _zone(name: str) -> tzinfo | None:
    """Return a time zone by its name; None for this process's own."""
    if name.upper() == "LOCAL":
        return None
    if name.upper() == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidOptionError(
            f"The time zone {name!r} is not known on this machine.",
            "Use UTC, LOCAL or an IANA name such as Europe/Rome.",
        ) from error


def _offset(text: str) -> timezone:
    """Return the zone of an offset such as ``Z``, ``+02:00`` or ``-7``."""
    if text == "Z":
        return timezone.utc
    distance = timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(":") or 0))
    return timezone(-distance if text[0] == "-" else distance)


def _naive(text: str) -> datetime:
    """Return the calendar's time of an instant time, without a zone; ValueError for any other text."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an instant time of 17 or 14 digits")
    year, month, day, hour, minute, second, millis = map(int, match.groups(default=_MISSING_MILLIS))
    return datetime(year, month, day, hour, minute, second, millis * 1000)


def _instant_time(moment: datetime) -> str:
    """Return a calendar's time as an instant time of 17 digits."""
    # strftime("%Y") pads the year in no portable way.
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{moment.microsecond // 1000:03d}"
