"""A moment of a table as an index outside of it keeps it: a watermark in one text."""

from __future__ import annotations

import json
from dataclasses import asdict

from ...timeline.watermark import Tally, Watermark


def spell_position(watermark: Watermark) -> str:
    """Return a moment as text; two that are the same are spelt alike."""
    return json.dumps(asdict(watermark) | {"recent": sorted(watermark.recent)}, separators=(",", ":"), sort_keys=True)


def parse_position(text: str) -> Watermark | None:
    """Return the moment that a text spells, None where it spells none."""
    try:
        said = json.loads(text)
        recent, older = frozenset(said.pop("recent")), Tally(**said.pop("older"))
        return Watermark(**said, recent=recent, older=older)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
