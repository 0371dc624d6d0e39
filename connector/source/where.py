"""Predicates as the text of an option, by which `HudiTable.to_df` tells the data source what rows it looks for."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from ...errors import InvalidOptionError
from ...reader.predicates import AnyOf, Compare, IsNotNull, IsNull, NoneOf, OneOf, Predicate, StartsWith, columns_of
from .paths import WHERE

_OPERATORS = frozenset(("=", "!=", "<", "<=", ">", ">="))


def spell(predicates: Sequence[Predicate]) -> str:
    """Return predicates as text."""
    return json.dumps([_spelt(one) for one in predicates])


def parse(text: str, schema: pa.Schema) -> tuple[Predicate, ...]:
    """Return the predicates that a text of `spell` stands for.

    Args:
        text: The option's value.
        schema: The table's columns.

    Raises:
        InvalidOptionError: It is none; somebody else than `HudiTable` gave it.
    """
    try:
        said = json.loads(text)
        if not isinstance(said, list):
            raise TypeError(f"{said!r} is no list")
        found = tuple(_read(one) for one in said)
        unknown = sorted({name for one in found for name in columns_of(one)} - set(schema.names))
        if unknown:
            raise ValueError(f"no columns {unknown}")
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as error:
        raise InvalidOptionError(
            f"The option {WHERE}={text!r} holds nothing that HudiTable.to_df has noted of a condition.",
            "Leave it out, and filter the DataFrame.",
        ) from error
    return found


def _spelt(one: Predicate) -> list[Any]:
    if isinstance(one, AnyOf):
        return ["any", [[_spelt(each) for each in alternative] for alternative in one.alternatives]]
    if isinstance(one, Compare):
        return [one.op, one.column, _value(one.value)]
    if isinstance(one, (OneOf, NoneOf)):
        return ["in" if isinstance(one, OneOf) else "not in", one.column, [_value(value) for value in one.values]]
    if isinstance(one, StartsWith):
        return ["starts", one.column, one.prefix]
    return ["null" if isinstance(one, IsNull) else "not null", one.column]


def _read(said: list[Any]) -> Predicate:
    kind, *rest = said
    if kind == "any":
        return AnyOf(tuple(tuple(_read(each) for each in alternative) for alternative in rest[0]))
    column = rest[0]
    if not isinstance(column, str):
        raise TypeError(f"{column!r} is no column")
    if kind in _OPERATORS:
        return Compare(column, kind, _read_value(rest[1]))
    if kind in {"in", "not in"}:
        values = tuple(_read_value(value) for value in rest[1])
        return OneOf(column, values) if kind == "in" else NoneOf(column, values)
    if kind == "starts":
        return StartsWith(column, str(rest[1]))
    if kind not in {"null", "not null"}:
        raise ValueError(f"{kind!r} is no kind of predicate")
    return IsNull(column) if kind == "null" else IsNotNull(column)


def _value(value: Any) -> Any:
    """Return a value as JSON has it; one that JSON has not, with the name of its type."""
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, datetime.datetime):
        return {"time": value.isoformat()}
    return {"date": value.isoformat()} if isinstance(value, datetime.date) else value


def _read_value(said: Any) -> Any:
    if not isinstance(said, dict):
        return said
    ((kind, text),) = said.items()
    if kind == "decimal":
        return Decimal(text)
    return datetime.datetime.fromisoformat(text) if kind == "time" else datetime.date.fromisoformat(text)
