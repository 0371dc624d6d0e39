"""Instant times: 17 digits of a table's own time zone, growing without exception.

Format as in Apache Hudi's ``HoodieInstantTimeGenerator``: ``yyyyMMddHHmmssSSS``, or 14 digits without milliseconds.
How people spell the time of a query: ``HoodieSqlCommonUtils.formatQueryInstant``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..errors import CorruptInstantError, InvalidOptionError

logger = logging.getLogger("pyhudi")

_TIME = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{3})?", re.ASCII)
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# What Apache Hudi appends to a time that was kept in seconds.
_MISSING_MILLIS = "999"
_MUCH_AHEAD_MS = 5 * 60 * 1000

_SPELLED = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}(?::?\d{2})?)?)?", re.ASCII
)
_EPOCH_UNITS = {10: 1000, 13: 1}


def format_time(epoch_ms: int, zone: str) -> str:
    """Return an instant time of 17 digits.

    Args:
        epoch_ms: Milliseconds since 1970 in UTC.
        zone: "UTC", "LOCAL" (this process's zone) or an IANA name.

    Raises:
        InvalidOptionError: There is no such zone.
    """
    return _text((_EPOCH + epoch_ms * _MILLISECOND).astimezone(_zone(zone)))


def parse_time(text: str, zone: str) -> int:
    """Return an instant time as milliseconds since 1970 in UTC.

    Of an hour that summer time repeats, the first is meant.

    Args:
        text: 17 digits, or 14.
        zone: "UTC", "LOCAL" (this process's zone) or an IANA name.

    Raises:
        ValueError: The text is no such time.
        InvalidOptionError: There is no such zone.
    """
    found = _zone(zone)
    naive = _naive(text)
    try:
        aware = naive.astimezone() if found is None else naive.replace(tzinfo=found)
        return (aware - _EPOCH) // _MILLISECOND
    except OverflowError as error:
        raise ValueError(f"{text!r} lies beyond the calendar") from error


def query_time(text: str, zone: str) -> str:
    """Return the time that a query names as one that compares with instant times.

    A date means its first moment. A time without milliseconds means the last moment of its second, while 14 digits stay
    as they are and so come before every instant of their second; Apache Hudi reads both in this way. What is finer than
    a millisecond is cut off, so that an instant of that very millisecond lies before the time.

    Args:
        text: ``yyyyMMddHHmmss[SSS]``, ``yyyy-MM-dd``, ``yyyy-MM-dd HH:mm:ss`` (or with a T) with up to nine digits of a
            second and a zone (``Z``, ``+02:00``), or an epoch in 10 digits of seconds or 13 of milliseconds.
        zone: The timeline's, which all of these are written in but an epoch and what names a zone itself.

    Raises:
        ValueError: The text is none of these, or the calendar has no such time.
        InvalidOptionError: There is no such zone.
    """
    if text.isascii() and text.isdigit() and len(text) in _EPOCH_UNITS:
        return format_time(int(text) * _EPOCH_UNITS[len(text)], zone)
    spelled = _SPELLED.fullmatch(text)
    if spelled is None:
        _naive(text)
        return text
    *numbers, fraction, offset = spelled.groups()
    if numbers[3] is None:
        numbers, fraction = [*numbers[:3], "00", "00", "00"], "0"
    digits = "".join([*numbers, fraction.ljust(3, "0")[:3] if fraction else _MISSING_MILLIS])
    named = _naive(digits)
    if offset is None:
        return digits
    try:
        return format_time((named.replace(tzinfo=_offset(offset)) - _EPOCH) // _MILLISECOND, zone)
    except OverflowError as error:
        raise ValueError(f"{text!r} lies beyond the calendar") from error


def next_time(now_ms: int, greatest: str | None, zone: str) -> str:
    """Return a time for a new instant: now, or a millisecond after the greatest time that the timeline holds.

    Args:
        now_ms: Milliseconds since 1970 in UTC.
        greatest: The timeline's greatest requested or completion time; None where it has none.
        zone: "UTC", "LOCAL" (this process's zone) or an IANA name.

    Raises:
        CorruptInstantError: The greatest time lies ahead of now and is no time.
        InvalidOptionError: There is no such zone.
    """
    now = format_time(now_ms, zone)
    if greatest is None or now > greatest:
        return now
    try:
        # Counted on the zone's own clock face, on which an hour that summer time repeats could run backwards.
        following = _text(_naive(greatest) + _MILLISECOND)
        ahead_ms = parse_time(following, zone) - now_ms
    except (ValueError, OverflowError) as error:
        raise CorruptInstantError(
            f"The timeline holds an instant of the time {greatest}, which no calendar knows and no new one can follow.",
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


def free_time_before(time: str, taken: Collection[str]) -> str:
    """Return the latest time before another one that is not taken, on the zone's own clock face.

    Args:
        time: Of 17 or 14 digits.
        taken: Times that something else has.

    Raises:
        ValueError: The text is no time.
        OverflowError: There is none.
    """
    found = time
    while found == time or found in taken:
        found = _text(_naive(found) - _MILLISECOND)
    return found


def _zone(name: str) -> tzinfo | None:
    """Return a zone by name, None for the process's own."""
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
    """Return the zone of ``Z``, ``+02``, ``+0200`` or ``+02:00``."""
    if text == "Z":
        return timezone.utc
    distance = timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(":") or 0))
    return timezone(-distance if text[0] == "-" else distance)


def _naive(text: str) -> datetime:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an instant time of 17 or 14 digits")
    year, month, day, hour, minute, second, millis = map(int, match.groups(default=_MISSING_MILLIS))
    return datetime(year, month, day, hour, minute, second, millis * 1000)


def _text(moment: datetime) -> str:
    # strftime("%Y") pads the year in no portable way.
    return f"{moment.year:04d}{moment:%m%d%H%M%S}{moment.microsecond // 1000:03d}"
