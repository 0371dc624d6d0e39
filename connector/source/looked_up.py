"""What a lookup took as the text of an option, by which `HudiTable` tells it to the write that comes after."""

from __future__ import annotations

import json
from dataclasses import asdict

from ...errors import InvalidOptionError
from ...index.base import LookupFigures
from .paths import LOOKED_UP


def spell(figures: LookupFigures) -> str:
    """Return figures as text."""
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
        raise InvalidOptionError(
            f"The option {LOOKED_UP}={text!r} is nothing that HudiTable has noted of a lookup.", "Leave it out."
        ) from error
