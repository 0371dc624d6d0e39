"""The values that `HudiTable` passes to the data source with a read or a write, as texts of options.

A read carries its moment, so that both parts of a DataFrame see one snapshot, its predicates and the keys that it looks
for. A write carries the counts of its rows, and which rows they were made from.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ...errors import InvalidOptionError
from ...operations.carried_values import parse, spell
from ...operations.read_rows import ReadRows
from ...reader.skipping.predicates import (
    AnyOf,
    Compare,
    IsNotNull,
    IsNull,
    NoneOf,
    OneOf,
    OnExpression,
    Predicate,
    StartsWith,
    columns_of,
)
from .paths import BUCKETS, MARKED, PINNED, READ, SOUGHT, WHERE

if TYPE_CHECKING:
    from ...reader.matches.sought_keys import SoughtKeys

T = TypeVar("T")

_PREDICATES: dict[str, Callable[..., Predicate]] = {
    kind.__name__: kind for kind in (AnyOf, Compare, IsNotNull, IsNull, NoneOf, OneOf, OnExpression, StartsWith)
}
_OPERATORS = frozenset(("=", "!=", "<", "<=", ">", ">="))
# Types that JSON lacks. datetime comes before date, of which it is a subclass.
_VALUES: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "decimal": (Decimal, str, Decimal),
    "time": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
}
_MOST_SHOWN = 100
# The words of an error and of its cure, by option.
_REFUSALS = {
    PINNED: ("a moment written by HudiTable.to_df", ": as.of.instant shows a table as it was"),
    WHERE: ("a condition written by HudiTable.to_df", ", and filter the DataFrame"),
    SOUGHT: ("keys written by HudiTable.merge", ", and call HudiTable.merge"),
    BUCKETS: ("buckets written by pyhudi.bucket_join", ", and call bucket_join"),
}


def parse_carried(kind: type[T], option: str, text: str) -> T:
    """Return the value that `spell` wrote as an option's text; an `InvalidOptionError` refuses a user's own text."""
    carried = parse(kind, text)
    if carried is None or spell(carried) != text:
        raise not_ours(option, text)
    return carried


def parse_marked(option: str, text: str) -> bool:
    """Return True for `MARKED`; an `InvalidOptionError` refuses a user's own text."""
    if text != MARKED:
        raise not_ours(option, text)
    return True


def spell_predicates(predicates: Sequence[Predicate]) -> str:
    return json.dumps(_to_json(tuple(predicates)))


def parse_predicates(text: str, schema: pa.Schema) -> tuple[Predicate, ...]:
    """Return the predicates of a text by `spell_predicates`; an `InvalidOptionError` refuses a user's own text."""
    try:
        predicates: tuple[Predicate, ...] = tuple(_from_json(item) for item in json.loads(text))
        unknown = sorted({name for predicate in predicates for name in columns_of(predicate)} - set(schema.names))
        if unknown:
            raise ValueError(f"no columns {unknown}")
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as error:
        raise not_ours(WHERE, text) from error
    return predicates


def parse_sought(text: str) -> SoughtKeys:
    """Return the keys of a text by `SoughtKeys.spell`; an `InvalidOptionError` refuses a user's own text."""
    from ...reader.matches.sought_keys import SoughtKeys  # noqa: PLC0415 (most reads seek no keys)

    try:
        return SoughtKeys.parse(text)
    except (ValueError, OSError) as error:
        raise not_ours(SOUGHT, text[:_MOST_SHOWN]) from error


def spell_read(read_rows: Sequence[ReadRows]) -> str:
    return json.dumps([[_to_json(rows.predicates), rows.absence] for rows in read_rows])


def parse_read(text: str) -> tuple[ReadRows, ...]:
    """Return the value of a text by `spell_read`; an `InvalidOptionError` refuses a user's own text."""
    try:
        return tuple(ReadRows(_from_json(predicates), bool(absence)) for predicates, absence in json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as error:
        raise not_ours(READ, text) from error


def _to_json(value: Any) -> Any:
    """Return a value in the types of JSON, from which `_from_json` makes it again."""
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if type(value).__name__ in _PREDICATES:
        return {type(value).__name__: [_to_json(getattr(value, field.name)) for field in fields(value)]}
    for name, (value_type, spell_value, _) in _VALUES.items():
        if isinstance(value, value_type):
            return {name: spell_value(value)}
    return value


def _from_json(json_value: Any) -> Any:
    """Return the value that `_to_json` wrote; ValueError or KeyError for anything else."""
    if isinstance(json_value, list):
        return tuple(_from_json(item) for item in json_value)
    if not isinstance(json_value, dict):
        return json_value
    ((name, content),) = json_value.items()
    if name in _VALUES:
        return _VALUES[name][2](content)
    predicate = _PREDICATES[name](*map(_from_json, content))
    if isinstance(predicate, Compare) and predicate.op not in _OPERATORS:
        raise ValueError(f"{predicate.op!r} is no operator")
    return predicate


def not_ours(option: str, text: str) -> InvalidOptionError:
    """Return the error for a text that a user gave to an option of which pyhudi alone sets the values."""
    expected, instead = _REFUSALS.get(option, ("a text written by HudiTable", ""))
    return InvalidOptionError(
        f"Only pyhudi sets the option {option}, and {text!r} is not {expected}.", f"Leave it out{instead}."
    )
