"""A parser of Joda-Time's date patterns, and a writer of times by them.

Apache Hudi's TIMESTAMP key generator hands its patterns to Joda-Time. No Python library reads such patterns over
arrays; Arrow's patterns have other letters and no fractions of a second. A partition path that differs by a character
is another partition, so this module refuses every letter that it would not write as Joda-Time does.

Source: ``org.joda.time.format.DateTimeFormat`` and ``DateTimeFormatterBuilder`` 2.12, in English.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .time_zones import DAY

YEARS = "yYx"
TEXT_FROM, FULL_FROM = 3, 4  # the number of letters from which a month is a name, and its full name
MONTHS = [name for name in calendar.month_name if name]
WEEKDAYS = list(calendar.day_name)
HALVES = ["AM", "PM"]

_EPOCH = dt.datetime(1970, 1, 1)
_TOKEN = re.compile(r"(?P<letters>([A-Za-z])\2*)|(?P<text>(?:'(?:[^']|'')*'|[^A-Za-z'])+)")
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_SHORT = 3

# The meaning of each letter, and its precision in milliseconds (at most a day).
_LETTERS = {
    "y": ("year", DAY),
    "Y": ("year", DAY),
    "x": ("week year", DAY),
    "M": ("month", DAY),
    "w": ("week", DAY),
    "d": ("day", DAY),
    "D": ("day of the year", DAY),
    "e": ("day of the week", DAY),
    "E": ("day of the week", DAY),
    "a": ("half of the day", DAY // 2),
    "H": ("hour", 3_600_000),
    "k": ("hour", 3_600_000),
    "h": ("hour", 3_600_000),
    "K": ("hour", 3_600_000),
    "m": ("minute", 60_000),
    "s": ("second", 1_000),
    "S": ("fraction", 1),
    "Z": ("zone offset", 1),
}


@dataclass(frozen=True, slots=True)
class Token:
    """A run of one letter; or, with no letter, a literal text."""

    letter: str
    length: int
    text: str = ""

    def __str__(self) -> str:
        return self.letter * self.length or self.text

    @property
    def what(self) -> str:
        """The meaning of the letter, such as ``month``; two letters may have the same meaning."""
        return _LETTERS[self.letter][0]

    @property
    def is_name(self) -> bool:
        """Whether the token is a word, such as a month's name."""
        return self.letter in {"E", "a"} or (self.letter == "M" and self.length >= TEXT_FROM)

    @property
    def is_number(self) -> bool:
        """Whether the token begins with digits: a number, or a literal text of digits."""
        if self.letter:
            return not self.is_name and self.letter != "Z"
        return self.text[0] in "0123456789"


@dataclass(frozen=True, slots=True)
class DatePattern:
    """A pattern as a sequence of letters' runs and literal texts."""

    tokens: tuple[Token, ...]

    @classmethod
    def parse(cls, text: str) -> DatePattern:
        """Return the pattern of a text as Joda-Time's ``DateTimeFormat.forPattern`` does; ValueError if unsupported."""
        tokens: list[Token] = []
        position = 0
        while (match := _TOKEN.match(text, position)) is not None:
            position = match.end()
            if match["letters"]:
                tokens.append(Token(match["letters"][0], len(match["letters"])))
            else:
                # Two quotes side by side are one quote, outside of a quoted text, too.
                literal = _QUOTED.sub(lambda quoted: quoted[1].replace("''", "'") or "'", match["text"])
                tokens.append(Token("", 0, literal))
        if position < len(text):
            raise ValueError(f"a quote begins at {text[position:]!r} and never ends")
        if not any(token.letter for token in tokens):
            raise ValueError("it has no letter for a part of a date")
        for token in tokens:
            if token.letter and (token.letter not in _LETTERS or str(token).startswith("ZZZ")):
                raise ValueError(f"pyhudi does not know {str(token)!r}")
        return cls(tuple(tokens))

    @property
    def precision(self) -> int:
        """The smallest step between times with different texts, in milliseconds."""
        return min(_LETTERS[token.letter][1] for token in self.tokens if token.letter)

    @property
    def tells_offset(self) -> bool:
        return any(token.letter == "Z" for token in self.tokens)

    def check_writable(self) -> None:
        """Raise ValueError for a pattern by which pyhudi writes no times."""
        if self.tells_offset:
            raise ValueError("pyhudi writes no zone offsets ('Z')")

    def write(self, times: Sequence[int], offset: int = 0) -> list[str]:
        """Return the texts of local times, in milliseconds within the years 1 to 9999; ``offset`` is that from UTC."""
        zone = dt.timezone(dt.timedelta(milliseconds=offset))
        moments = [_EPOCH.replace(tzinfo=zone) + dt.timedelta(milliseconds=time) for time in times]
        return ["".join(_write(token, moment) for token in self.tokens) for moment in moments]


def _write(token: Token, moment: dt.datetime) -> str:
    """Return what one token of a pattern makes of a moment."""
    letter, length = token.letter, token.length
    if letter == "Z":
        return moment.strftime("%z")
    if not letter:
        return token.text
    if letter == "a":
        return HALVES[moment.hour // 12]
    if token.is_name:
        name = MONTHS[moment.month - 1] if letter == "M" else WEEKDAYS[moment.weekday()]
        return name if length >= FULL_FROM else name[:_SHORT]
    if letter == "S":
        return f"{moment.microsecond // 1000:03d}".ljust(length, "0")[:length]
    return f"{_number(token, moment):0{length}d}"


def _number(token: Token, moment: dt.datetime) -> int:
    """Return the number that a token of digits shows of a moment."""
    if token.letter in YEARS:
        year = moment.isocalendar()[0] if token.letter == "x" else moment.year
        return year % 100 if token.length == len("yy") else year
    return {
        "M": moment.month,
        "w": moment.isocalendar()[1],
        "d": moment.day,
        "D": moment.timetuple().tm_yday,
        "e": moment.isoweekday(),
        "H": moment.hour,
        "k": moment.hour or 24,
        "h": moment.hour % 12 or 12,
        "K": moment.hour % 12,
        "m": moment.minute,
        "s": moment.second,
    }[token.letter]
