"""Small dataclasses of plain values as text, and back: for an index's state, or as the value of an option."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar, get_origin, get_type_hints

T = TypeVar("T")


def spell(value: Any) -> str:
    """Return a dataclass as JSON text that is equal for equal values, for `parse` of this or a newer release."""
    return json.dumps(asdict(value), default=sorted, separators=(",", ":"), sort_keys=True)


def parse(kind: type[T], text: str) -> T | None:
    """Return the dataclass that `spell` of this or an older release made a text of; None for any other text."""
    try:
        return _build(kind, json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _build(kind: type[T], values: dict[str, Any]) -> T:
    """Return a dataclass by the values of its fields; raise ValueError, TypeError or KeyError for what does not fit."""
    kinds = get_type_hints(kind)
    return kind(**{name: _value(kinds[name], value) for name, value in values.items()})


def _value(kind: Any, value: Any) -> Any:
    """Return the value of a field as its type has it; raise TypeError if it has another type."""
    if is_dataclass(kind):
        return _build(kind, value)  # type: ignore[arg-type]  # it is a class
    if get_origin(kind) in {frozenset, tuple}:
        # JSON has lists instead.
        return get_origin(kind)(value)
    if not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{value!r} is no {kind}")
    return value
