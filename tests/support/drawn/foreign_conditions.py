"""Drawn conditions on a table of every type that is compared, spelled for Polars, DuckDB and pyarrow.

The rows lie so that a wrong rule about NaN, -0.0 or null would leave out a whole file: partition ``nan`` has nothing
but NaN, ``null`` nothing but nulls, ``zero`` both zeros.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

NAN = math.nan
UTC = datetime.timezone.utc
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("number", pa.int32()),
        ("fare", pa.float64()),
        ("ratio", pa.float32()),
        ("city", pa.string()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("price", pa.decimal128(10, 2)),
        ("is_paid", pa.bool_()),
        ("body", pa.binary()),
        ("place", pa.struct([("x", pa.int64()), ("y", pa.float64())])),
    ]
)
_DAYS = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2026, 11, 29)]
_TIMES = [datetime.datetime(1960, 1, 1), datetime.datetime(2026, 11, 29, 8, 0, 0, 1), datetime.datetime(2026, 11, 29)]
VALUES: Mapping[str, list[Any]] = {
    "id": [-1, 0, 7, 11, 29],
    "part": ["nan", "null", "zero", "some", "more"],
    "number": [-(1 << 31), -1, 0, 3, (1 << 31) - 1],
    "fare": [NAN, -0.0, 0.0, 1.5, -2.0, math.inf, -math.inf],
    "ratio": [NAN, -0.0, 0.0, 1.5, -2.0, math.inf],
    "city": ["", "Oslo", "Rome", "Rom", "%", "ö"],
    "day": _DAYS,
    "moment": [time.replace(tzinfo=UTC) for time in _TIMES],
    "local": _TIMES,
    "price": [Decimal("-1.00"), Decimal("0.00"), Decimal("12.50"), Decimal("99999999.99")],
    "is_paid": [False, True],
    "body": [b"", b"a", b"\xff"],
    "place.x": [-1, 0, 3],
    "place.y": [NAN, -0.0, 1.5],
}
# By partition: the places in VALUES of the values of its rows, which alternate; None for null.
_PLACES: Mapping[str, tuple[int | None, ...]] = {
    "nan": (0,),
    "null": (None,),
    "zero": (1, 2),
    "some": (2, 3, None),
    "more": (0, 1, 2, 3, 4, 5, 6, None),
}
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def rows(start: int = 0, turn: int = 0) -> pa.Table:
    """Return eight rows of each partition; ``turn`` gives the same keys other values of their partition."""
    made = [
        {**_values(part, row + turn), "id": start + 8 * place + row, "part": part}
        for place, part in enumerate(_PLACES)
        for row in range(8)
    ]
    return pa.Table.from_pylist(made, COLUMNS)


def _values(part: str, row: int) -> dict[str, Any]:
    places = _PLACES[part]
    drawn = {}
    for shift, (name, pool) in enumerate(VALUES.items()):
        place = places[(row + shift) % len(places)] if len(places) > 3 else places[row % len(places)]
        drawn[name] = None if place is None else pool[place % len(pool)]
    place_of = {name: drawn.pop(f"place.{name}") for name in ("x", "y")}
    return {**drawn, "place": None if row % 5 == 4 else place_of}


@dataclass(frozen=True)
class Leaf:
    """A comparison (by one of the signs), ``in``, ``null`` or ``prefix`` on a column, or a field of a struct."""

    column: str
    sign: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Tree:
    """``and`` and ``or`` of two conditions, ``not`` of a single one."""

    op: str
    parts: tuple[Any, ...]


def _leaves() -> st.SearchStrategy[Leaf]:
    def of_column(name: str) -> st.SearchStrategy[Leaf]:
        value = st.sampled_from(VALUES[name])
        compared = st.builds(Leaf, st.just(name), st.sampled_from(list(_SIGNS)), st.tuples(value))
        among = st.builds(Leaf, st.just(name), st.just("in"), st.lists(value, min_size=1, max_size=3).map(tuple))
        null = st.just(Leaf(name, "null", ()))
        prefixed = [st.builds(Leaf, st.just(name), st.just("prefix"), st.tuples(value))] if name == "city" else []
        return st.one_of(compared, compared, among, null, *prefixed)

    # Most rules that differ are about numbers that may be NaN.
    return st.sampled_from([*VALUES, *["fare"] * 4]).flatmap(of_column)


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Tree]:
    pair = st.builds(Tree, st.sampled_from(["and", "or"]), st.tuples(inner, inner))
    return pair | st.builds(Tree, st.just("not"), st.tuples(inner))


def _perhaps_negated(inner: st.SearchStrategy[Leaf]) -> st.SearchStrategy[Leaf | Tree]:
    return inner | st.builds(Tree, st.just("not"), st.tuples(inner))


CONDITIONS: st.SearchStrategy[Leaf | Tree] = st.recursive(_perhaps_negated(_leaves()), _grown, max_leaves=5)


def for_polars(node: Leaf | Tree) -> pl.Expr:
    if isinstance(node, Tree):
        parts = [for_polars(part) for part in node.parts]
        return ~parts[0] if node.op == "not" else reduce(operator.and_ if node.op == "and" else operator.or_, parts)
    name, _, inner = node.column.partition(".")
    column = pl.col(name).struct.field(inner) if inner else pl.col(name)
    if node.sign == "null":
        return column.is_null()
    if node.sign == "prefix":
        return column.str.starts_with(node.values[0])
    kind = pl.from_arrow(pa.array([], kind_of(node.column))).dtype
    if node.sign == "in":
        return column.is_in(pl.Series(node.values, dtype=kind, strict=False).implode())
    return _SIGNS[node.sign](column, pl.lit(node.values[0], dtype=kind))


def for_arrow(node: Leaf | Tree) -> pc.Expression:
    if isinstance(node, Tree):
        parts = [for_arrow(part) for part in node.parts]
        return ~parts[0] if node.op == "not" else reduce(operator.and_ if node.op == "and" else operator.or_, parts)
    column = pc.field(*node.column.split("."))
    if node.sign == "null":
        return column.is_null()
    if node.sign == "prefix":
        return pc.starts_with(column, node.values[0])
    values = pa.array(node.values, kind_of(node.column))
    return column.isin(values) if node.sign == "in" else _SIGNS[node.sign](column, pc.scalar(values[0]))


def for_duckdb(node: Leaf | Tree) -> str:
    if isinstance(node, Tree):
        parts = [f"({for_duckdb(part)})" for part in node.parts]
        return f"NOT {parts[0]}" if node.op == "not" else f" {node.op} ".join(parts)
    if node.sign == "null":
        return f"{node.column} IS NULL"
    if node.sign == "prefix":
        return f"starts_with({node.column}, {_spelled(node.values[0], pa.string())})"
    spelled = [_spelled(value, kind_of(node.column)) for value in node.values]
    return (
        f"{node.column} IN ({', '.join(spelled)})" if node.sign == "in" else f"{node.column} {node.sign} {spelled[0]}"
    )


def kind_of(column: str) -> pa.DataType:
    name, _, inner = column.partition(".")
    kind = COLUMNS.field(name).type
    return kind.field(inner).type if inner else kind


def _spelled(value: Any, kind: pa.DataType) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::blob"
    if pa.types.is_timestamp(kind):
        return f"{'timestamptz' if kind.tz else 'timestamp'} '{value.isoformat(sep=' ')}'"
    names = {pa.float64(): "double", pa.float32(): "float", pa.date32(): "date", pa.string(): "varchar"}
    name = "decimal(10, 2)" if pa.types.is_decimal(kind) else names.get(kind, "bigint")
    return f"'{value}'::{name}"
