"""A reader of arrays of texts as times, by Joda-Time's patterns.

Source: ``org.joda.time.format.DateTimeFormatterBuilder`` (its ``parseInto`` methods) and ``DateTimeParserBucket`` 2.12,
in English.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .date_patterns import HALVES, MONTHS, TEXT_FROM, WEEKDAYS, YEARS, DatePattern, Token
from .time_zones import DAY, FIRST_MS, LAST_MS, Mask, Millis

_UNREAD = "xwe"
_HOURS = {"H": (0, 23), "k": (1, 24), "h": (1, 12), "K": (0, 11)}
_MOST_DIGITS = {"S": 18, "D": 3}
_YEAR_DIGITS = 9
_PIVOT = 30

# In an offset a colon after the hours requires a colon after the minutes.
_OFFSET = r"[Zz]|[+-]\d\d(?::\d\d(?::\d\d(?:[.,]\d{1,3})?)?|\d\d(?:\d\d(?:\d{1,3})?)?)?"
_OFFSET_PARTS = ((0, 2, 24, 3_600_000), (2, 4, 60, 60_000), (4, 6, 60, 1_000), (6, 9, 1000, 1))


@dataclass(frozen=True, slots=True)
class ReadTimes:
    """The times of n texts.

    Attributes:
        local: Local milliseconds since 1970.
        offset: Milliseconds ahead of UTC; 0 if the pattern has no offset.
        matched: Which texts match the pattern; no later pattern may read these.
        valid: Which of the matched texts are times that exist; a 13th month does not.
    """

    local: Millis
    offset: Millis
    matched: Mask
    valid: Mask


def check_readable(pattern: DatePattern) -> None:
    """Raise ValueError for a pattern whose texts pyhudi does not read as Joda-Time does."""
    letters = [token for token in pattern.tokens if token.letter]
    for token in letters:
        if token.letter in _UNREAD:
            raise ValueError(f"pyhudi does not read a {token.what} ({str(token)!r})")
    # Two letters for the same part of a date may contradict each other in a text.
    by_part: dict[str, Token] = {}
    for token in letters:
        what = "day" if token.what == "day of the year" else token.what
        if what in by_part:
            raise ValueError(f"{str(by_part[what])!r} and {str(token)!r} both tell the {what}")
        by_part[what] = token
    for token, next_token in zip(pattern.tokens, pattern.tokens[1:], strict=False):
        # A name ends before what is no letter, and an offset before what is no digit and no separator of its own.
        runs_on = token.is_name and (next_token.is_name or next_token.text[:1].isalpha())
        if runs_on or (token.letter == "Z" and (next_token.is_number or next_token.text[:1] in {":", ".", ","})):
            raise ValueError(f"nothing tells where {str(token)!r} ends")


def read_times(pattern: DatePattern, texts: pa.StringArray) -> ReadTimes:
    """Return the times of texts by a pattern, which of the texts match it, and which of these are valid."""
    matches = pc.extract_regex(texts, _expression(pattern))
    fields: dict[str, tuple[Token, Millis]] = {}
    for position, token in enumerate(pattern.tokens):
        if token.letter:
            part = pc.fill_null(matches.field(f"f{position}"), "")
            fields[token.what] = (token, _numbers_of(token, part))
    local, valid = _local_times(fields, len(texts))
    offset = fields["zone offset"][1] if "zone offset" in fields else np.zeros(len(texts), np.int64)
    matched = np.asarray(matches.is_valid()) & (np.abs(offset) < DAY)
    return ReadTimes(local, offset, matched, matched & valid)


def _expression(pattern: DatePattern) -> str:
    """Return a regular expression of the pattern's texts, with one group for each letter.

    Joda-Time does not backtrack: a number right in front of another number must have all its digits.
    """
    parts = []
    for position, (token, next_token) in enumerate(zip(pattern.tokens, [*pattern.tokens[1:], None], strict=True)):
        if token.letter:
            parts.append(
                f"(?P<f{position}>{_token_expression(token, joined=next_token is not None and next_token.is_number)})"
            )
        else:
            parts.append(f"(?i:{''.join(map(_escaped, token.text))})")
    return f"^{''.join(parts)}$"


def _token_expression(token: Token, *, joined: bool) -> str:
    """Return the regular expression for one token; a ``joined`` number is right in front of another number."""
    if token.letter == "Z":
        return _OFFSET
    if token.is_name:
        return "|".join(dict.fromkeys(case for name in _names(token) for case in (name, name.lower(), name.upper())))
    if token.letter in YEARS:
        return rf"\d{{{token.length}}}" if joined else rf"\+?\d{{1,{_YEAR_DIGITS}}}"
    most_digits = min(token.length, _MOST_DIGITS["S"]) if token.letter == "S" else _MOST_DIGITS.get(token.letter, 2)
    return rf"\d{{{most_digits}}}" if joined else rf"\d{{1,{most_digits}}}"


def _escaped(char: str) -> str:
    """Return a character so that a regular expression takes it literally."""
    return rf"\x{{{ord(char):X}}}"


def _names(token: Token) -> list[str]:
    """Return the words for a token's numbers, in their order: full words, then words of three letters."""
    if token.letter == "a":
        return HALVES
    full = MONTHS if token.letter == "M" else WEEKDAYS
    return [*full, *(name[:TEXT_FROM] for name in full)]


def _numbers_of(token: Token, parts: pa.StringArray) -> Millis:
    """Return the numbers that the parts of texts mean, those that ``token`` matched; "" means 0.

    Months count from 1, days of the week and halves of the day from 0.
    """
    if token.letter == "Z":
        return _offsets(parts)
    if token.is_name:
        names = [name.lower() for name in _names(token)]
        count = {"a": len(HALVES), "M": len(MONTHS), "E": len(WEEKDAYS)}[token.letter]
        positions = _integers(pc.fill_null(pc.index_in(pc.utf8_lower(parts), pa.array(names)), 0))
        return positions % count + (token.letter == "M")
    if token.letter == "S":
        # A fraction of a second: what is below a millisecond is cut off.
        return _integers(pc.utf8_slice_codeunits(pc.utf8_rpad(parts, 3, "0"), 0, 3))
    numbers = _integers(pc.if_else(pc.equal(parts, ""), "0", pc.utf8_ltrim(parts, "+")))
    if token.letter in YEARS and token.length == len("yy"):
        is_short = np.asarray(pc.match_substring_regex(parts, r"^\d\d$"))
        return np.where(is_short, _in_this_time(numbers), numbers)
    return numbers


def _in_this_time(years: Millis) -> Millis:
    """Return the years of two digits: Joda-Time takes the years from 80 years ago to 19 years ahead."""
    first_year = dt.datetime.now(dt.timezone.utc).year - _PIVOT - 50
    return first_year + (years - first_year) % 100


def _offsets(parts: pa.StringArray) -> Millis:
    """Return offsets as milliseconds; a whole day for an invalid offset."""
    # Two digits each for hours, minutes and seconds, and three for milliseconds.
    digits = pc.utf8_rpad(pc.replace_substring_regex(parts, "[^0-9]", ""), 9, "0")
    total = np.zeros(len(parts), np.int64)
    fits = np.ones(len(parts), np.bool_)
    for start, stop, limit, unit in _OFFSET_PARTS:
        number = _integers(pc.utf8_slice_codeunits(digits, start, stop))
        total += number * unit
        fits &= number < limit
    return np.where(fits, np.where(pc.starts_with(parts, "-"), -total, total), DAY)


def _integers(numbers: pa.Array) -> Millis:
    return np.asarray(numbers.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _local_times(fields: Mapping[str, tuple[Token, Millis]], count: int) -> tuple[Millis, Mask]:
    """Return local times in milliseconds made of the parts of ``count`` texts, and which of them are valid.

    ``fields`` has, by what a token tells, the token and its number in each text.
    """
    valid = np.ones(count, np.bool_)

    def number(what: str, default: int, least: int, most: int) -> Millis:
        """Return the numbers of a part within its bounds, or the default; texts with others become invalid."""
        values = fields[what][1] if what in fields else np.full(count, default, np.int64)
        np.logical_and(valid, (values >= least) & (values <= most), out=valid)
        return np.clip(values, least, most)

    # Joda-Time's default year is 2000 for a text with a month or a day, and 1970 for other texts.
    tells_day = {"month", "day", "day of the year", "day of the week"} & fields.keys()
    year = number("year", 2000 if tells_day else 1970, 1, 9999) - 1970
    month = year * 12 + number("month", 1, 1, 12) - 1
    first_day, next_first_day = _first_days(month, "M8[M]")
    days = first_day + number("day", 1, 1, 31) - 1
    if "day of the year" in fields:
        first_day, next_first_day = _first_days(year, "M8[Y]")
        days = first_day + number("day of the year", 1, 1, 366) - 1
    valid &= days < next_first_day
    if "day of the week" in fields:
        # The day moves within its week, from Monday on; 1970 began on a Thursday.
        days = days - (days + 3) % 7 + number("day of the week", 0, 0, 6)
    letter = fields["hour"][0].letter if "hour" in fields else "H"
    # The letters h and K count the hours of half a day, h and k from 1 on.
    hour = number("hour", _HOURS[letter][0], *_HOURS[letter]) % (12 if letter in "hK" else 24)
    if "half of the day" in fields:
        # An hour of the whole day counts as one of the half that the text names.
        hour = hour % 12 + 12 * number("half of the day", 0, 0, 1)
    minutes = hour * 60 + number("minute", 0, 0, 59)
    local = days * DAY + minutes * 60_000 + number("second", 0, 0, 59) * 1000 + number("fraction", 0, 0, 999)
    return local, valid & (local >= FIRST_MS) & (local <= LAST_MS)


def _first_days(numbers: Millis, unit: str) -> tuple[Millis, Millis]:
    """Return the first day of each month or year, counted from 1970, and of the next month or year."""
    first_days, next_first_days = (
        part.astype(unit).astype("M8[D]").astype(np.int64) for part in (numbers, numbers + 1)
    )
    return first_days, next_first_days
