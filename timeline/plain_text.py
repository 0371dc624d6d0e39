"""Small dataclasses of plain values as one text, and back: what stays with an index, or travels as an option."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar, get_origin, get_type_hints

T = TypeVar("T")


def spell(value: Any) -> str:
    """Return a dataclass as text; two that are equal are spelt alike."""
    return json.dumps(asdict(value), default=sorted, separators=(",", ":"), sort_keys=True)


def parse(kind: type[T], text: str) -> T | None:
    """Return the dataclass that a text spells, None where it spells none; fields that it lacks have their defaults.

    Args:
        kind: The class, of texts, numbers, frozen sets and such dataclasses.
        text: As `spell` returned it, in this release or an older one.
    """
    try:
        return _made(kind, json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _made(kind: type[T], said: dict[str, Any]) -> T:
    kinds = get_type_hints(kind)
    return kind(**{name: _value(kinds[name], value) for name, value in said.items()})


def _value(kind: Any, said: Any) -> Any:
    if is_dataclass(kind):
        return _made(kind, said)  # type: ignore[arg-type]  # it is a class
    if get_origin(kind) is frozenset:
        return frozenset(said)
    if not isinstance(said, (int, float) if kind is float else kind):
        raise TypeError(f"{said!r} is no {kind}")
    return said
