"""How rows of a source and rows of a table find each other, and what that tells of their keys."""

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
from ...table.config.key_types import PartitionType
from ...table.keys.partition_paths import HIVE_DEFAULT_PARTITION
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY
from ...table.schema.fields import find_field, root_of
from ...table.seen_table import SeenTable
from ..placement.colocate import placement_of
from ..placement.key_columns import KEY, PATH, can_spell, with_keys
from ..source.spark_types import to_spark
from .clauses import Clause, ClauseKind, Side, of
from .expressions import Value, as_column, explained
from .target import SOURCE, TARGET, MergeTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A condition, the columns that are equal, or None for the key.
On: TypeAlias = "str | Column | Sequence[str] | None"

_EQUAL = re.compile(r"\s*(source|target)\.`?(\w+)`?\s*==?\s*(source|target)\.`?(\w+)`?\s*", re.IGNORECASE)
_AND = re.compile(r"\band\b", re.IGNORECASE)
_COLUMN = re.compile(r"\s*(source|target)\s*\.\s*(?:`([^`]+)`|(\w+))\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Match:
    """How rows match.

    Attributes:
        condition: Over columns of both sides.
        same: The columns of the table's keys and partitions that are equal in rows that match, of one type on both
            sides.
        spells: Whether the source has the keys and partition paths of its rows, which are what is compared.
        exact: Whether a row of the source that matches none has a place where the table holds no row.
    """

    condition: Column
    same: frozenset[str]
    spells: bool = False
    exact: bool = False

    def keeps_place(self, clause: Clause, values: Mapping[str, Value], target: MergeTarget) -> bool:
        """Return whether a row that a clause updates certainly stays where it is.

        Args:
            clause: The clause.
            values: The values that it gives.
            target: The table.
        """
        matched = clause.side is Side.MATCHED
        return all(
            is_column(values[root], TARGET, root)
            or (matched and field in self.same and is_column(values[root], SOURCE, root))
            for field, root in ((one, root_of(one)) for one in target.place_fields)
        )

    def proves_new(self, clause: Clause, values: Mapping[str, Value], target: MergeTarget) -> bool:
        """Return whether the table certainly holds no row where a clause inserts one whose partition has a name.

        Args:
            clause: The clause.
            values: The values that it gives.
            target: The table.
        """
        roots = map(root_of, target.place_fields)
        return (
            clause.kind is ClauseKind.INSERT
            and self.exact
            and all(is_column(values[one], SOURCE, one) for one in roots)
        )


def match(source: DataFrame, on: On, target: MergeTarget) -> tuple[DataFrame, Match]:
    """Return the rows of a source with what they are matched by, and how.

    Args:
        source: The rows.
        on: A condition over ``source.`` and ``target.`` columns, or columns that are equal in both; None for the key.
        target: The table.

    Raises:
        MissingColumnError: A column is not there.
        InvalidOptionError: It is no condition.
    """
    if on is None:
        return _by_key(source, target)
    if isinstance(on, Column):
        return source, Match(on, frozenset())
    if isinstance(on, str):
        if on in target.schema.names:
            return source, _by_columns(source, [on], target)
        equal = _equalities(on, target)
        same, exact = _known(source, equal or (), target)
        return source, Match(
            as_column(on, "The condition by which rows match"), same, exact=exact and equal is not None
        )
    names = list(on) if isinstance(on, Iterable) else []
    if not names or not all(isinstance(one, str) for one in names):
        raise InvalidOptionError(
            f"Rows are to match by {on!r}, which names no columns.",
            "Give a condition such as 'source.id = target.id', names of columns, or nothing for the key.",
        )
    return source, _by_columns(source, names, target)


def is_column(value: Value, side: str, name: str) -> bool:
    """Return whether SQL text is a column of one side as it is; of a Column its text does not tell."""
    found = _COLUMN.fullmatch(value) if isinstance(value, str) else None
    return found is not None and (found[1].lower(), (found[2] or found[3]).lower()) == (side, name.lower())


def named_plainly(values: Mapping[str, Value], rows: DataFrame) -> dict[str, Value]:
    """Return values of which those Columns are SQL text that are a column of one side as it is.

    A Column of the text ``source.id`` may as well be that text as a constant, so that Spark is asked.

    Args:
        values: By the columns that get them.
        rows: The rows of which the values are made.
    """
    named = dict(values)
    for name, value in values.items():
        text = str(value).removeprefix("Column<'").removesuffix("'>") if isinstance(value, Column) else ""
        side, _, column = text.partition(".")
        if side.lower() in {SOURCE, TARGET} and column:
            meant = of(side.lower(), column)
            with explained("A value"):
                if rows.select(value).sameSemantics(rows.select(sf.expr(meant))):
                    named[name] = meant
    return named


def has_name(target: MergeTarget) -> Column:
    """Return whether a row has values by which its partition is named: rows of different values share one without."""
    named = [sf.lit(True)]
    for name in target.config.partition_fields:
        column = sf.col(name)
        named.append(column.isNotNull())
        field = find_field(target.schema, name)
        if field is not None and pa.types.is_string(field.type):
            named.append(~sf.coalesce(column, sf.lit("")).isin("", HIVE_DEFAULT_PARTITION))
    return reduce(Column.__and__, named)


def _by_key(source: DataFrame, target: MergeTarget) -> tuple[DataFrame, Match]:
    """Match rows by the keys, and within partitions the paths, that a write spells: no other two are one row."""
    keyed = spelled(source, target)
    names = {KEY: RECORD_KEY} if target.is_global else {KEY: RECORD_KEY, PATH: PARTITION_PATH}
    condition = reduce(
        Column.__and__, (sf.col(of(SOURCE, mine)) == sf.col(of(TARGET, theirs)) for mine, theirs in names.items())
    )
    fields = target.config.record_key_fields if target.is_global else target.place_fields
    same, _ = _known(source, fields, target)
    whole = all(one in same for one in target.place_fields)
    return keyed, Match(condition, same, spells=whole, exact=set(fields) <= same)


def _by_columns(source: DataFrame, names: Sequence[str], target: MergeTarget) -> Match:
    names = [target.column(name, "What rows are to match by") for name in names]
    there = {name.lower() for name in source.columns}
    missing = [name for name in names if name.lower() not in there]
    if missing:
        raise MissingColumnError(
            f"Rows are to match by {', '.join(map(repr, missing))}, which the source lacks; it has "
            f"{', '.join(source.columns)}.",
            "Name columns that both have, or give a condition such as 'source.a = target.b'.",
        )
    condition = reduce(Column.__and__, (sf.col(of(SOURCE, name)) == sf.col(of(TARGET, name)) for name in names))
    same, exact = _known(source, names, target)
    return Match(condition, same, exact=exact)


def _equalities(text: str, target: MergeTarget) -> list[str] | None:
    """Return the columns that a condition compares, where that is all it does; None where it does anything else."""
    names = []
    for part in _AND.split(text):
        found = _EQUAL.fullmatch(part)
        if found is None or found[1].lower() == found[3].lower() or found[2].lower() != found[4].lower():
            return None
        alike = [one for one in target.schema.names if one.lower() == found[2].lower()]
        if not alike:
            # A meta column, say: rows of one key may differ in it.
            return None
        names += alike
    return names


def _known(source: DataFrame, names: Sequence[str], target: MergeTarget) -> tuple[frozenset[str], bool]:
    """Return which columns are the same in rows that match, and whether others have no place in common.

    Args:
        source: The rows.
        names: The columns that are compared.
        target: The table.
    """
    kinds = {one.name: one.dataType for one in source.schema.fields}
    own = to_spark(target.schema)
    wanted = target.config.record_key_fields if target.is_global else target.place_fields
    same = frozenset(
        name for name in names if root_of(name) in own.names and kinds.get(root_of(name)) == own[root_of(name)].dataType
    )
    apart = _spelled_apart(target)
    return same, apart and set(names) == set(wanted) and same.issuperset(wanted)


def _spelled_apart(target: MergeTarget) -> bool:
    """Return whether rows of different values have different places, save those whose partition has no name."""
    config = target.config
    keys = [find_field(target.schema, name) for name in config.record_key_fields]
    paths = [find_field(target.schema, name) for name in config.partition_fields]
    if any(one is None for one in (*keys, *paths)) or {*config.partition_types} - {PartitionType.SIMPLE}:
        return False
    return _distinct(keys) and (target.is_global or _distinct(paths))


def _distinct(fields: Sequence[pa.Field]) -> bool:
    """Return whether the texts of values tell these apart; of several strings, one after another, they need not."""
    plain = all(_is_whole(one.type) or pa.types.is_string(one.type) for one in fields)
    return plain and (len(fields) < 2 or all(_is_whole(one.type) for one in fields))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind))


def spelled(rows: DataFrame, target: MergeTarget) -> DataFrame:
    """Return rows with their record keys and partition paths, as the write will spell them.

    Raises:
        PlacementError: This Spark cannot compute them.
        MissingColumnError: The rows lack a column that makes them.
    """
    placement = placement_of(rows, SeenTable.now(target.table), number_to_text=False)
    if not can_spell(rows, placement):
        raise PlacementError(
            f"Spark 4.0 computes the keys of the table {target.path} in Python alone, for which it wants pandas.",
            "Install pandas on the driver and the executors, or use Spark 4.1 or later.",
        )
    return with_keys(rows, placement)
