"""How rows of the source match rows of the table: equal values by a hash join, and further conditions on the pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidOptionError, MissingColumnError
from ...methods.merging.changed_table import SOURCE, TARGET, ChangedTable
from ...methods.merging.clauses import Clause, ClauseKind, Side, Value, is_column, of
from ...reader.expression_terms import equal_columns
from ...reader.skipping.predicates import Predicate
from ...reader.sql.coercion import in_type
from ...reader.sql.terms import ColumnTerm, CompareTerm, LogicTerm, SqlTerm, column_of
from ...table.arrow.arrays import Mask, plain
from ...table.arrow.row_sizes import row_sizes
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY
from ...table.schema.fields import find_field
from .source import KEY, PATH
from .terms import Sides, holds_for, predicates_of_target

# A condition, the names of columns that both sides have, or None for the record key and the partition.
On: TypeAlias = "str | pc.Expression | Sequence[str] | None"
Positions = np.ndarray[Any, np.dtype[np.int64]]

_WHAT = "The condition by which rows match"
# So many pairs, whose rows have so many bytes, are made at once.
_PAIRS = 1 << 20
_BYTES = 64 << 20
_SOURCE_ROW, _TARGET_ROW = "source", "target"


@dataclass(frozen=True, slots=True)
class EqualTerms:
    """Two values that are equal in rows that match, compared in a type."""

    source: SqlTerm
    target: SqlTerm
    compared_type: pa.DataType


@dataclass(frozen=True, slots=True)
class RowMatch:
    """How rows match.

    Attributes:
        equal: The values that are equal in rows that match.
        conditions: Further conditions on the pairs.
        same_columns: Columns of the table that have the value of the source's column of that name, and its type.
        target_predicates: Predicates that every row of the table with a match satisfies.
        by_key: Whether rows match by the keys and partition paths that a write computes.
        exact: Whether a row of the source without a match certainly has a free place in the table, or no partition.
        by_place: Whether rows match by columns of their places alone, so that all rows of a key have the same matches.
    """

    equal: tuple[EqualTerms, ...]
    conditions: tuple[SqlTerm, ...] = ()
    same_columns: tuple[str, ...] = ()
    target_predicates: tuple[Predicate, ...] = ()
    by_key: bool = False
    exact: bool = False
    by_place: bool = False

    @property
    def columns(self) -> frozenset[str]:
        """The columns of both sides that decide."""
        terms = [*self.conditions, *(term for pair in self.equal for term in (pair.source, pair.target))]
        return frozenset().union(*(term.columns for term in terms))

    def keeps_place(self, clause: Clause, values: dict[str, Value], table: ChangedTable) -> bool:
        """Return whether the rows that a clause updates certainly keep their keys and partitions."""
        is_matched = clause.side is Side.MATCHED
        return all(
            is_column(values[root], TARGET, root)
            or (is_matched and field in self.same_columns and is_column(values[root], SOURCE, root))
            for field, root in table.place_roots
        )

    def proves_new(self, clause: Clause, values: dict[str, Value], table: ChangedTable) -> bool:
        """Return whether the table certainly holds no row where a clause inserts a row with all values of a place."""
        inserts = clause.kind is ClauseKind.INSERT and self.exact
        return inserts and all(is_column(values[root], SOURCE, root) for _, root in table.place_roots)

    def pairs(self, source: pa.RecordBatch, target: pa.RecordBatch) -> Iterator[tuple[Positions, Positions]]:
        """Yield the positions of rows with equal values, in the source and in the table.

        If no values have to be equal, these are all pairs of a row of each. The rows at the positions fit in memory,
        unless a single pair is too large.
        """
        source_sizes, target_sizes = row_sizes(source), row_sizes(target)
        for of_source, of_target in self._pairs_of_all_sizes(source, target):
            ends = np.cumsum(source_sizes[of_source] + target_sizes[of_target])
            start = 0
            while start < len(ends):
                most = _BYTES + (ends[start - 1] if start else 0)
                end = max(int(np.searchsorted(ends, most, "right")), start + 1)
                yield of_source[start:end], of_target[start:end]
                start = end

    def _pairs_of_all_sizes(
        self, source: pa.RecordBatch, target: pa.RecordBatch
    ) -> Iterator[tuple[Positions, Positions]]:
        """Yield what `pairs` does, in parts of any bytes."""
        if self.equal:
            of_source, of_target = _joined(source, target, self.equal)
            for start in range(0, len(of_source), _PAIRS):
                yield of_source[start : start + _PAIRS], of_target[start : start + _PAIRS]
            return
        step = max(_PAIRS // max(source.num_rows, 1), 1)
        for start in range(0, target.num_rows, step):
            rows = np.arange(start, min(start + step, target.num_rows))
            yield np.tile(np.arange(source.num_rows), len(rows)), np.repeat(rows, source.num_rows)

    def holds(self, rows: pa.RecordBatch) -> Mask:
        """Return which joined pairs match."""
        matches = np.ones(rows.num_rows, np.bool_)
        for term in self.conditions:
            matches = holds_for(term, rows, matches)
        return matches


def matched_by(on: On, sides: Sides, table: ChangedTable) -> RowMatch:
    """Return how rows match by what a user gives: a condition, names of columns, or None for key and partition.

    A text that is no name of a column is a condition. ``sides`` has the columns of source and table, and ``table`` is
    the table to change. Raises `InvalidOptionError` if ``on`` is none of these, and `MissingColumnError` for a column
    that a side lacks.
    """
    assert sides.source is not None  # noqa: S101 (for the type checker)
    if on is None:
        return _by_key(sides, table)
    if isinstance(on, pc.Expression) or (isinstance(on, str) and on not in table.schema.names):
        return _by_condition(on, sides, table)
    names = [on] if isinstance(on, str) else [*on] if isinstance(on, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidOptionError(
            f"Rows are to match by {on!r}, which names no columns.",
            "Give a condition such as 'source.id = target.id', names of columns, or nothing for the key.",
        )
    names = [table.column(name, "What rows are to match by") for name in names]
    absent_names = [name for name in names if name not in sides.source.names]
    if absent_names:
        raise MissingColumnError(
            f"Rows are to match by {', '.join(map(repr, absent_names))}, which the source lacks; it has "
            f"{', '.join(sides.source.names)}.",
            "Name columns that both have, or give a condition such as 'source.a = target.b'.",
        )
    return _by_condition(" AND ".join(f"{of(SOURCE, name)} = {of(TARGET, name)}" for name in names), sides, table)


def _by_key(sides: Sides, table: ChangedTable) -> RowMatch:
    """Match rows by the keys and partition paths that a write computes for them."""
    assert sides.source is not None  # noqa: S101 (for the type checker)
    names = {KEY: RECORD_KEY} if table.is_global else {KEY: RECORD_KEY, PATH: PARTITION_PATH}
    text = pa.string()
    equal = tuple(
        EqualTerms(ColumnTerm(f"{SOURCE}.{mine}", text), ColumnTerm(f"{TARGET}.{theirs}", text), text)
        for mine, theirs in names.items()
    )
    same_columns = _same_columns(table.matched_fields, sides)
    return RowMatch(equal, tuple(_same_texts(sides, table)), same_columns, by_key=True, exact=True, by_place=True)


def _same_texts(sides: Sides, table: ChangedTable) -> Iterator[SqlTerm]:
    """Yield the equality of each key column of texts, because different texts may make one key of several columns.

    A source row that has the key of a stored row with other texts is an insert, which the write then refuses.
    """
    fields = table.config.record_key_fields
    for name in fields if len(fields) > 1 else ():
        kinds = [None if schema is None else find_field(schema, name) for schema in (sides.source, table.schema)]
        if all(field is not None and pa.types.is_string(field.type) for field in kinds):
            root, *inner = name.split(".")
            mine, theirs = (ColumnTerm(f"{side}.{root}", pa.string(), tuple(inner)) for side in (SOURCE, TARGET))
            yield CompareTerm("<=>", mine, theirs, pa.string())


def _by_condition(on: str | pc.Expression, sides: Sides, table: ChangedTable) -> RowMatch:
    """Match rows by a condition: its equalities make a join, and the rest of it decides about the pairs.

    ``sides`` has the columns that the condition may name, and ``table`` is the table to change. Raises as `matched_by`.
    """
    term = sides.condition(on, Side.MATCHED, _WHAT)
    parts = term.parts if isinstance(term, LogicTerm) and term.op == "AND" else (term,)
    # pyarrow still decides about the pairs that a join finds by an expression.
    equal = list(_equal_of_expression(on, sides)) if isinstance(on, pc.Expression) else []
    conditions: list[SqlTerm] = []
    for part in parts:
        pair = _equal_terms(part)
        if pair is None:
            conditions.append(part)
        else:
            equal.append(pair)
    equal_names = [name for name in map(_plain_name, equal) if name is not None and name in table.schema.names]
    same_columns = _same_columns(equal_names, sides)
    # Whether the equality of columns with one name on both sides is all of the condition.
    joins_by_columns = not conditions and len(equal_names) == len(equal)
    return RowMatch(
        tuple(equal),
        tuple(conditions),
        same_columns,
        tuple(predicate for part in conditions for predicate in predicates_of_target(part)),
        exact=joins_by_columns
        and table.spells_apart
        and set(same_columns) == set(table.matched_fields) == set(equal_names),
        by_place=joins_by_columns and set(equal_names) <= set(table.matched_fields),
    )


def _equal_of_expression(expression: pc.Expression, sides: Sides) -> Iterator[EqualTerms]:
    """Yield the columns of both sides that an expression equates, as far as pyarrow and a join by values agree."""
    columns = sides.joined(Side.MATCHED)
    for names in equal_columns(expression):
        # The prefix of the source, "source.", sorts before that of the table, "target.".
        mine, theirs = sorted(names)
        kinds = [columns.field(name).type for name in (mine, theirs)]
        if not (_is_of(SOURCE, mine) and _is_of(TARGET, theirs)) or kinds[0] != kinds[1]:
            continue
        if not (pa.types.is_floating(kinds[0]) or pa.types.is_nested(kinds[0])):
            yield EqualTerms(ColumnTerm(mine, kinds[0]), ColumnTerm(theirs, kinds[0]), kinds[0])


def _equal_terms(term: SqlTerm) -> EqualTerms | None:
    """Return the values of both sides that a term equates; None for any other term."""
    if not isinstance(term, CompareTerm) or term.op != "=":
        return None
    for mine, theirs in ((term.left, term.right), (term.right, term.left)):
        sides = [{name.partition(".")[0] for name in side.columns} for side in (mine, theirs)]
        if sides == [{SOURCE}, {TARGET}]:
            return EqualTerms(mine, theirs, term.met)
    return None


def _plain_name(pair: EqualTerms) -> str | None:
    """Return the name of a column that is equated with the other side's column of that name; None for other terms."""
    if not (isinstance(pair.source, ColumnTerm) and isinstance(pair.target, ColumnTerm)):
        return None
    names = [".".join((term.name.partition(".")[2], *term.fields)) for term in (pair.source, pair.target)]
    return names[0] if names[0] == names[1] else None


def _same_columns(names: Sequence[str], sides: Sides) -> tuple[str, ...]:
    """Return those of some columns that both sides have in one type."""
    assert sides.source is not None  # noqa: S101 (for the type checker)
    pairs = ((name, find_field(sides.source, name), find_field(sides.target, name)) for name in names)
    return tuple(name for name, mine, theirs in pairs if mine and theirs and mine.type == theirs.type)


def _is_of(side: str, name: str) -> bool:
    return name.startswith(f"{side}.")


def _joined(
    source: pa.RecordBatch, target: pa.RecordBatch, equal_terms: Sequence[EqualTerms]
) -> tuple[Positions, Positions]:
    """Return the positions of rows with equal values, in the source and in the table, in the order of the table.

    The two arrays have one element for each pair. ``target`` has rows of the table, and ``equal_terms`` the values to
    compare: all of them have to be equal, and a null is equal to nothing.
    """
    names = [f"key{number}" for number in range(len(equal_terms))]

    def keys(rows: pa.RecordBatch, term_of: Callable[[EqualTerms], SqlTerm], row_name: str) -> pa.Table:
        """Return the values to join by, ``term_of`` each pair, with the position of each row as column ``row_name``."""
        columns = [
            _join_key(column_of(term_of(pair).of(rows), rows.num_rows), pair.compared_type) for pair in equal_terms
        ]
        return pa.table([*columns, pa.array(np.arange(rows.num_rows))], [*names, row_name])

    mine = keys(source, lambda pair: pair.source, _SOURCE_ROW)
    theirs = keys(target, lambda pair: pair.target, _TARGET_ROW)
    pairs = theirs.join(mine, names, join_type="inner")
    of_source, of_target = (pairs.column(name).to_numpy() for name in (_SOURCE_ROW, _TARGET_ROW))
    order = np.lexsort([of_source, of_target])
    return of_source[order], of_target[order]


def _join_key(values: pa.Array, compared_type: pa.DataType) -> pa.Array:
    """Return values that are the same bytes if Spark takes the values for equal, in a type that Arrow joins by."""
    values = in_type(plain(values), compared_type)
    if pa.types.is_decimal(compared_type):
        return values.cast(pa.string())
    if not pa.types.is_floating(compared_type):
        return values
    bits_type = pa.int32() if pa.types.is_float32(compared_type) else pa.int64()
    # Adding zero makes -0.0 zero.
    without_negative_zero = pc.add(values, pa.scalar(0.0, compared_type))
    return pc.if_else(
        pc.is_nan(without_negative_zero), pa.scalar(float("nan"), compared_type), without_negative_zero
    ).view(bits_type)
