"""How rows of the source match rows of the table, and what that implies for their keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...errors import InvalidOptionError, MissingColumnError, PlacementError
from ...methods.merging.changed_table import SOURCE, TARGET, UNNAMED
from ...methods.merging.clauses import Clause, ClauseKind, Side, Value, is_column, of
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY
from ...table.schema.fields import find_field, root_of
from ...table.seen_table import SeenTable
from ..conditions.condition import conjuncts
from ..placement.colocate import placement_of
from ..placement.key_columns import KEY, PATH, can_spell, with_keys
from ..placement.shared_keys import text_keys
from ..source.spark_types import to_spark
from .expressions import as_column, explained
from .target import MergeTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A condition, the names of columns that both sides have, or None for the record key and the partition.
On: TypeAlias = "str | Column | Sequence[str] | None"

_EQUAL = re.compile(r"\s*(source|target)\.`?(\w+)`?\s*==?\s*(source|target)\.`?(\w+)`?\s*", re.IGNORECASE)
_AND = re.compile(r"\band\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Match:
    """How rows match.

    Attributes:
        condition: Over columns of both sides.
        same_columns: Key and partition columns that are equal in rows that match, and have one type on both sides.
        spells: Whether rows match by computed keys and partition paths, which the source then has as columns.
        exact: Whether a source row without a match certainly has a free place in the table.
        by_place: Whether rows match by columns of their places alone, so that all rows of a key have the same matches.
    """

    condition: Column
    same_columns: frozenset[str]
    spells: bool = False
    exact: bool = False
    by_place: bool = False

    def keeps_place(self, clause: Clause, values: Mapping[str, Value], target: MergeTarget) -> bool:
        """Return whether the rows that a clause updates certainly keep their keys and partitions.

        ``values`` has the new value of each column of the table.
        """
        is_matched = clause.side is Side.MATCHED
        return all(
            is_column(values[root], TARGET, root)
            or (is_matched and field in self.same_columns and is_column(values[root], SOURCE, root))
            for field, root in ((field, root_of(field)) for field in target.place_fields)
        )

    def proves_new(self, clause: Clause, values: Mapping[str, Value], target: MergeTarget) -> bool:
        """Return whether the table certainly holds no row where a clause inserts a row with all values of a place.

        ``values`` has the new value of each column; the key and the partition must come from the source unchanged.
        """
        roots = map(root_of, target.place_fields)
        return (
            clause.kind is ClauseKind.INSERT
            and self.exact
            and all(is_column(values[root], SOURCE, root) for root in roots)
        )


def match(source: DataFrame, on: On, target: MergeTarget) -> tuple[DataFrame, Match]:
    """Return the source, with computed keys if rows match by these, and how its rows match rows of the table.

    ``on`` may be a condition as SQL text or Column, one or several names of columns, or None for the computed keys.
    """
    if on is None:
        return _matched_by_key(source, target)
    if isinstance(on, Column):
        # pyhudi does not look into a Column, so it knows no columns that are equal in matches.
        return source, Match(on, frozenset())
    if isinstance(on, str):
        if on in target.schema.names:
            return source, _matched_by_columns(source, [on], target)
        equal = _names_of_equalities(on, target)
        same_columns, exact = _same_columns(source, equal or (), target)
        condition = as_column(on, "The condition by which rows match")
        by_place = equal is not None and _is_of_places(equal, target)
        return source, Match(condition, same_columns, exact=exact and equal is not None, by_place=by_place)
    names = _names_to_match(on)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidOptionError(
            f"Rows are to match by {on!r}, which names no columns.",
            "Give a condition such as 'source.id = target.id', names of columns, or nothing for the key.",
        )
    return source, _matched_by_columns(source, names, target)


def equal_columns(source: DataFrame, on: On, target: MergeTarget) -> tuple[list[str], list[str]]:
    """Return columns of one type and value in rows that match, and the conditions that may be about the table alone.

    Both are empty if ``on`` is a Column, in which pyhudi finds no equality.
    """
    if on is None:
        names: Sequence[str] = target.matched_fields
        other_conditions: list[str] = []
    elif isinstance(on, Column):
        return [], []
    elif isinstance(on, str) and on not in target.schema.names:
        equal = {part: _names_of_equalities(part, target) for part in conjuncts(on)}
        names = [name for found in equal.values() for name in found or ()]
        other_conditions = [part for part, found in equal.items() if found is None]
    else:
        names, other_conditions = [target.column(name, "What rows are to match by") for name in _names_to_match(on)], []
    same_columns, _ = _same_columns(source, names, target)
    return [
        name for name in dict.fromkeys(names) if name in same_columns and name in target.schema.names
    ], other_conditions


def named_plainly(values: Mapping[str, Value], rows: DataFrame) -> dict[str, Value]:
    """Return the values with each Column that is a plain column of one side as its SQL text, for `is_column`.

    The text of a Column, such as ``source.id``, may also be that of a literal, so Spark compares the two.
    """
    plain_values = dict(values)
    for name, value in values.items():
        text = str(value).removeprefix("Column<'").removesuffix("'>") if isinstance(value, Column) else ""
        side, _, column = text.partition(".")
        if side.lower() in {SOURCE, TARGET} and column:
            sql_text = of(side.lower(), column)
            with explained("A value"):
                if rows.select(value).sameSemantics(rows.select(sf.expr(sql_text))):
                    plain_values[name] = sql_text
    return plain_values


def has_values(target: MergeTarget) -> Column:
    """Return a condition that holds for rows whose key and partition values are all present.

    A null equals nothing, but two rows with a null in a part of the key may have one key. Rows with absent partition
    values share one partition, where an empty text counts as absent.
    """
    presence = [sf.lit(True)]
    for name in target.place_fields:
        column = sf.col(name)
        presence.append(column.isNotNull())
        field = find_field(target.schema, name)
        if name in target.config.partition_fields and field is not None and pa.types.is_string(field.type):
            presence.append(~sf.coalesce(column, sf.lit("")).isin(*UNNAMED))
    return reduce(Column.__and__, presence)


def _matched_by_key(source: DataFrame, target: MergeTarget) -> tuple[DataFrame, Match]:
    """Return the source with the keys and partition paths that a write computes, and the match by these."""
    keyed = spelled(source, target)
    names = {KEY: RECORD_KEY} if target.is_global else {KEY: RECORD_KEY, PATH: PARTITION_PATH}
    condition = reduce(
        Column.__and__, (sf.col(of(SOURCE, mine)) == sf.col(of(TARGET, theirs)) for mine, theirs in names.items())
    )
    condition = reduce(Column.__and__, _same_texts(keyed, target), condition)
    fields = target.matched_fields
    same_columns, _ = _same_columns(source, fields, target)
    has_place_fields = all(field in same_columns for field in target.place_fields)
    return keyed, Match(
        condition, same_columns, spells=has_place_fields, exact=set(fields) <= same_columns, by_place=True
    )


def _same_texts(source: DataFrame, target: MergeTarget) -> list[Column]:
    """Return the equality of each key column of texts: different texts may make one key of several columns.

    A source row that has the key of a stored row with other texts is an insert, which the write then refuses.
    """
    table_types = to_spark(target.schema)
    equalities = []
    for name in text_keys(source, target.config.record_key_fields):
        field = find_field(target.schema, name)
        if field is not None and root_of(name) in table_types.names and pa.types.is_string(field.type):
            mine, theirs = (_nested_column(of(side, root_of(name)), name) for side in (SOURCE, TARGET))
            equalities.append(mine.eqNullSafe(theirs))
    return equalities


def _nested_column(root: str, name: str) -> Column:
    return reduce(Column.__getitem__, name.split(".")[1:], sf.col(root))


def _matched_by_columns(source: DataFrame, names: Sequence[str], target: MergeTarget) -> Match:
    """Return the match by columns that both sides have under one name, in any case."""
    names = [target.column(name, "What rows are to match by") for name in names]
    source_names = {name.lower() for name in source.columns}
    absent_names = [name for name in names if name.lower() not in source_names]
    if absent_names:
        raise MissingColumnError(
            f"Rows are to match by {', '.join(map(repr, absent_names))}, which the source lacks; it has "
            f"{', '.join(source.columns)}.",
            "Name columns that both have, or give a condition such as 'source.a = target.b'.",
        )
    condition = reduce(Column.__and__, (sf.col(of(SOURCE, name)) == sf.col(of(TARGET, name)) for name in names))
    same_columns, exact = _same_columns(source, names, target)
    return Match(condition, same_columns, exact=exact, by_place=_is_of_places(names, target))


def _is_of_places(names: Iterable[str], target: MergeTarget) -> bool:
    """Return whether columns are all among those that make the key or the partition."""
    return set(names) <= set(target.matched_fields)


def _names_to_match(on: On) -> list[str]:
    """Return the names of columns to match by; none for a condition or the key."""
    if isinstance(on, str):
        return [on]
    return list(on) if isinstance(on, Iterable) else []


def _names_of_equalities(text: str, target: MergeTarget) -> list[str] | None:
    """Return the columns of a condition that only equates columns of the same name; None for any other condition."""
    names = []
    for part in _AND.split(text):
        equality = _EQUAL.fullmatch(part)
        if equality is None or equality[1].lower() == equality[3].lower() or equality[2].lower() != equality[4].lower():
            return None
        alike = [name for name in target.schema.names if name.lower() == equality[2].lower()]
        if not alike:
            # For example a meta column, in which rows of one key may differ.
            return None
        names += alike
    return names


def _same_columns(source: DataFrame, names: Sequence[str], target: MergeTarget) -> tuple[frozenset[str], bool]:
    """Return which compared columns are equal and of one type, and whether rows that do not match have other places.

    ``names`` are the compared columns. The second result is true if these are all columns that make the key and the
    partition, and if the table gives different values of them different keys and paths.
    """
    source_types = {field.name: field.dataType for field in source.schema.fields}
    table_types = to_spark(target.schema)
    matched_fields = target.matched_fields
    same_columns = frozenset(
        name
        for name in names
        if root_of(name) in table_types.names and source_types.get(root_of(name)) == table_types[root_of(name)].dataType
    )
    return same_columns, target.spells_apart and set(names) == set(matched_fields) and same_columns.issuperset(
        matched_fields
    )


def spelled(rows: DataFrame, target: MergeTarget) -> DataFrame:
    """Return rows with the record keys and partition paths that the write will compute.

    Raises `PlacementError` on a Spark that cannot compute them, and `MissingColumnError` for an absent column.
    """
    placement = placement_of(rows, SeenTable.now(target.table), number_to_text=False)
    if not can_spell(rows, placement):
        raise PlacementError(
            f"Spark 4.0 can compute the keys of the table {target.path} only in Python, and needs pandas for that.",
            "Install pandas on the driver and the executors, or use Spark 4.1 or later.",
        )
    return with_keys(rows, placement)
