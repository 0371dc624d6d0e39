"""What `HudiTable` knows of rows, as the text of options by which it tells it to the write that comes after."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

from ...errors import InvalidOptionError
from ...index.base import LookupFigures
from ...operations.result import RowCounts
from .paths import COUNTED, LOOKED_UP


def spell(figures: LookupFigures | RowCounts) -> str:
    """Return what a lookup took, or how many rows were counted, as text."""
    return json.dumps(asdict(figures))


def parse(text: str) -> LookupFigures:
    """Return the figures that a text of `spell` stands for.

    Raises:
        InvalidOptionError: It is none; somebody else than `HudiTable` gave it.
    """
    try:
        said = json.loads(text)
        seconds = float(said.pop("seconds"))
        return LookupFigures(**{name: int(number) for name, number in said.items()}, seconds=seconds)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise _not_ours(LOOKED_UP, text) from error


def parse_counts(text: str) -> RowCounts:
    """Return the counts that a text of `spell` stands for.

    Raises:
        InvalidOptionError: It is none; somebody else than `HudiTable` gave it.
    """
    try:
        said = json.loads(text)
        return RowCounts(**{one.name: int(said[one.name]) for one in fields(RowCounts)})
    except (ValueError, TypeError, KeyError) as error:
        raise _not_ours(COUNTED, text) from error


def _not_ours(option: str, text: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"The option {option}={text!r} is nothing that HudiTable has noted of rows.", "Leave it out."
    )
