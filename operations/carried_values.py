"""Small dataclasses of plain values as text, and back: for an index's state, or as the value of an option."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar, get_origin, get_type_hints

T = TypeVar("T")


def spell(value: Any) -> str:
    return json.dumps(asdict(value), default=sorted, separators=(",", ":"), sort_keys=True)


def parse(kind: type[T], text: str) -> T | None:
    """Return the dataclass that `spell` of this or an older release made a text of; None for any other text."""
    try:
        return _build(kind, json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _build(kind: type[T], said: dict[str, Any]) -> T:
    kinds = get_type_hints(kind)
    return kind(**{name: _value(kinds[name], value) for name, value in said.items()})


def _value(kind: Any, said: Any) -> Any:
    if is_dataclass(kind):
        return _build(kind, said)  # type: ignore[arg-type]  # it is a class
    if get_origin(kind) in {frozenset, tuple}:
        return get_origin(kind)(said)
    if not isinstance(said, (int, float) if kind is float else kind):
        raise TypeError(f"{said!r} is no {kind}")
    return said
