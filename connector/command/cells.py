"""Values as a person reads them: sizes in units, counts with commas, times, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...operations.plain_text import escaped, size_text

__all__ = ["NOTHING", "cell", "is_number", "size_text"]

NOTHING = "-"


def cell(name: str, value: Any) -> str:
    """Return the value of a column as text that a terminal can show."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return size_text(value) if "bytes" in name else f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{cell('', key)}={cell('', each)}" for key, each in value.items()) or NOTHING
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return ", ".join(cell(name, each) for each in value) or NOTHING
    return escaped(str(value))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
