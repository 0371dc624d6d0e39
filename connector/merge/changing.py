"""Joins both sides and applies the first clause that holds: one row of changes for each row that changes.

A row of changes has the key and partition path that it will have and, unless it is an insert, those of the table's row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...errors import DuplicateColumnError
from ...methods.merging.changed_table import SOURCE, TARGET
from ...methods.merging.clauses import NULL, Clause, ClauseKind, Side, Value, of, take_all
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY, SEQUENCE_NUMBER
from ...table.schema.fields import find_field, root_of
from ..conditions.values import WantedValues
from ..placement.key_columns import KEY, PATH
from ..placement.key_text import quoted
from ..source.spark_types import to_spark
from .expressions import as_column, by_number, cast_values, check_condition, explained, value_named, with_fields
from .matching import Match, On, has_values, match, named_plainly, spelled
from .near_rows import NearRows
from .read_rows import MergeReads
from .target import MergeTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The last clause of a merge of few rows: it takes the rows with a match that no other clause takes.
_KEEP = Clause("no clause", Side.MATCHED, ClauseKind.KEEP)

# Columns of a row of changes besides those of the table. `KEY` and `PATH` are the new key and partition path.
# PROVEN: the table certainly has no row at the place of an insert. OLDER: a lesser ordering value than the old row's.
KIND, PROVEN, OLDER = "_pyhudi_kind", "_pyhudi_proven", "_pyhudi_older"
OLD_KEY, OLD_PATH, ROW_NUMBER = "_pyhudi_old_key", "_pyhudi_old_path", "_pyhudi_row_number"
_OLD = {KEY: OLD_KEY, PATH: OLD_PATH}
NEW_ORDER, OLD_ORDER = "_pyhudi_new_order", "_pyhudi_old_order"
# OPEN: some column keeps the stored value of any row that this row replaces. KEPT: some column keeps the value of this
# row's own old version, which had a value there.
OPEN, KEPT = "_pyhudi_open", "_pyhudi_kept"
# Before the name of a column, its value in the old row; before `KEY` and `PATH`, the place that the source has.
WAS = "_pyhudi_was_"

_PREFIX, _WAS_OPEN = "_pyhudi_", "_pyhudi_was_open_"
_CLAUSE, _OF_SOURCE, _OF_TARGET = "_pyhudi_clause", "_pyhudi_of_source", "_pyhudi_of_target"
_JOINS = {
    frozenset({Side.MATCHED}): "inner",
    frozenset({Side.MATCHED, Side.NOT_MATCHED}): "left",
    frozenset({Side.MATCHED, Side.BY_SOURCE}): "right",
    frozenset({Side.NOT_MATCHED}): "left_anti",
}


@dataclass(frozen=True, slots=True)
class MergeChanges:
    """Rows that change, one for each pair of a source row and a table row, or for a row of either side without a match.

    Attributes:
        decided_rows: The table's columns with their new values, and the columns named by the constants of this module.
        keeps_rows: Whether these are also rows of the table that match and that no clause takes.
        reads: What was read; None if later writes to these rows do not matter.
        stored_rows: Rows of the table, including every row whose place an insert enters; None if only the whole table
            is sure to have them.
        moves: Whether a row may change its key or partition; the rows then hold what a delete at the old place needs.
        is_few: Whether the source, and so the changes, have few rows.
        has_copies: Whether all rows of a key are among ``decided_rows``, or none.
    """

    target: MergeTarget
    decided_rows: DataFrame
    moves: bool
    reads: MergeReads | None = None
    stored_rows: DataFrame | None = None
    is_few: bool = False
    keeps_rows: bool = False
    has_copies: bool = False

    @property
    def rows(self) -> DataFrame:
        """The rows of ``decided_rows`` that change."""
        if not self.keeps_rows:
            return self.decided_rows
        return self.decided_rows.where(sf.col(KIND) != int(ClauseKind.KEEP))

    @property
    def orders(self) -> bool:
        return bool(self.target.ordering_fields)

    @property
    def leaves_open(self) -> bool:
        """Whether rows may keep stored values of columns (partial updates)."""
        return self.target.leaves_open

    @property
    def place(self) -> list[str]:
        """The columns that identify a place: the key alone under a global index."""
        return [KEY] if self.target.is_global else [KEY, PATH]

    @property
    def leaves(self) -> Column:
        """Whether a row moves to another place and leaves its old one."""
        stays = reduce(Column.__and__, (sf.col(column).eqNullSafe(sf.col(_OLD[column])) for column in self.place))
        return is_update() & ~stays if self.moves else sf.lit(False)


def is_update() -> Column:
    return sf.col(KIND) == int(ClauseKind.UPDATE)


def is_delete() -> Column:
    return sf.col(KIND) == int(ClauseKind.DELETE)


def make_changes(target: MergeTarget, clauses: Sequence[Clause], source: DataFrame | None, on: On) -> MergeChanges:
    """Return the rows that change, as a query that has not run.

    Args:
        target: The table.
        clauses: The clauses in their order; each row takes the first that applies.
        source: The rows to merge; None for an update, which changes rows of the table alone.
        on: How rows match; None for the record key and the partition.
    """
    _check_names(target.rows if source is None else source, target)
    columns: list[str] = []
    source_rows, matching, near_rows = None, Match(sf.lit(True), frozenset()), None
    reads = MergeReads.of(target, clauses, source, on) if target.serializable else None
    if source is not None:
        columns = source.columns
        keyed_source, matching = match(source, on, target)
        near_rows = NearRows.of(keyed_source, on, target, clauses, columns)
        keyed_source = keyed_source if near_rows is None else near_rows.source
        # Collected values say now what is read; without them Spark notes bounds while the query runs.
        if reads is not None and near_rows is not None and near_rows.values is not None:
            reads = reads.of_values(near_rows.values)
        keyed_source = keyed_source if reads is None else reads.with_bounds(keyed_source)
        source_rows = keyed_source.select("*", sf.lit(True).alias(_OF_SOURCE)).alias(SOURCE)
    is_few = near_rows is not None and near_rows.is_few
    keeps_rows = is_few and matching.by_place and not take_all(clauses)
    if keeps_rows:
        # All rows of a key then take part in the count, so the write need not read the stored keys to find copies.
        clauses = [*clauses, _KEEP]
    rows = target.rows if near_rows is None or near_rows.rows is None else near_rows.rows
    table = rows.select("*", sf.lit(True).alias(_OF_TARGET)).alias(TARGET)
    joined = _join(table if near_rows is None else near_rows.hinted(table), source_rows, matching, clauses)
    frames = {
        Side.MATCHED: joined,
        Side.NOT_MATCHED: joined if source_rows is None else source_rows,
        Side.BY_SOURCE: table,
    }
    values = [named_plainly(clause.values_of(target, columns, with_fields), frames[clause.side]) for clause in clauses]
    taken = _taken(joined, clauses, frames, target)
    # Only these rows of the table can be in the place of an insert.
    inserted_places = rows if near_rows is not None and near_rows.holds(target, clauses, values) else None
    changes = _Choice(target, clauses, values, matching, frames, taken).changes()
    has_copies = (source is None or matching.by_place) and take_all(clauses)
    return replace(
        changes,
        reads=reads,
        stored_rows=inserted_places,
        is_few=is_few,
        keeps_rows=keeps_rows,
        has_copies=has_copies,
    )


def _taken(
    joined: DataFrame, clauses: Sequence[Clause], frames: Mapping[Side, DataFrame], target: MergeTarget
) -> DataFrame:
    """Return the joined rows that a clause takes, with the number of the first that holds in the column ``_CLAUSE``.

    ``frames`` has the rows that resolve the column names of clauses of each side.
    """
    sides = _conditions_of_sides(joined)
    conditions = []
    for clause in clauses:
        takes = sides[clause.side]
        # A check asks Spark's own process, which takes time.
        if clause.has_condition:
            subject = f"The condition of {clause.method}"
            condition = _condition(clause, target, subject)
            check_condition(frames[clause.side], condition, subject)
            takes = takes & condition
        conditions.append(takes)
    chain = sf.when(conditions[0], 0)
    for number, condition in enumerate(conditions[1:], 1):
        chain = chain.when(condition, number)
    return joined.select("*", chain.alias(_CLAUSE)).where(sf.col(_CLAUSE).isNotNull())


def _condition(clause: Clause, target: MergeTarget, subject: str) -> Column:
    """Return the condition of a clause that has one; a mapping of values means the same as in `HudiTable.to_df`."""
    if not isinstance(clause.condition, Mapping):
        return as_column(clause.condition, subject)
    return WantedValues.of(clause.condition, target.schema, target.path).condition()


def _check_names(rows: DataFrame, target: MergeTarget) -> None:
    """Refuse columns whose names begin as those of pyhudi's own columns do."""
    reserved_name = next(
        (column for column in (*rows.columns, *target.schema.names) if column.lower().startswith(_PREFIX)), None
    )
    if reserved_name is not None:
        raise DuplicateColumnError(
            f"There is a column {reserved_name!r}; names that begin with {_PREFIX} are pyhudi's own.", "Rename it."
        )


def _join(table: DataFrame, source: DataFrame | None, matching: Match, clauses: Sequence[Clause]) -> DataFrame:
    """Return the rows that the clauses can apply to, joined if they need both sides."""
    if source is None:
        return table
    sides = frozenset(clause.side for clause in clauses)
    with explained("The condition by which rows match"):
        if sides == {Side.BY_SOURCE}:
            joined = table.join(source, matching.condition, "left_anti")
        else:
            joined = source.join(table, matching.condition, _JOINS.get(sides, "full"))
        _ = joined.schema  # Spark Connect checks the condition only when the schema is needed
    return joined


def _conditions_of_sides(joined: DataFrame) -> dict[Side, Column]:
    """Return for each side whether a clause for it applies to a row of the join."""
    present = {name: sf.col(name).isNotNull() for name in (_OF_SOURCE, _OF_TARGET) if name in joined.columns}
    # A join of one side alone lacks the other side's column.
    in_source, in_target = present.get(_OF_SOURCE, sf.lit(False)), present.get(_OF_TARGET, sf.lit(False))
    return {
        Side.MATCHED: in_source & in_target,
        Side.NOT_MATCHED: in_source & ~in_target,
        Side.BY_SOURCE: in_target & ~in_source,
    }


def _any_holds(conditions: Iterable[Column]) -> Column:
    """Return a condition that holds if any of the conditions does."""
    return reduce(Column.__or__, conditions, sf.lit(False))


@dataclass(frozen=True, slots=True)
class _Choice:
    """Rows with the number of the clause that applies to each, in the column ``_CLAUSE``.

    Attributes:
        values: The value of each column of the table, for each clause.
        frames: The rows that resolve the column names of clauses of each side.
    """

    target: MergeTarget
    clauses: Sequence[Clause]
    values: Sequence[Mapping[str, Value]]
    matching: Match
    frames: Mapping[Side, DataFrame]
    rows: DataFrame

    def changes(self) -> MergeChanges:
        """Return the rows of changes: new values, both places, and the facts by which `count` finds conflicts.

        ``PROVEN`` says that an insert meets no row, ``OLDER`` that a row has a lesser ordering value than its old
        version, ``OPEN`` that some column keeps the stored value of any row that it replaces, and ``KEPT`` that some
        column keeps the value of its own old version.
        """
        columns = {**self._new_columns(), **self._old_columns()}
        # One call names all columns: a call of Spark's own process for each takes longer than its work.
        rows = self._with_places(self._with_marked_deletes(self.rows.select(*columns.values()).toDF(*columns)))
        proofs = [sf.col(_CLAUSE).isin(proven)] if (proven := self._proven_inserts()) else [sf.lit(False)]
        if not self.matching.spells:
            # Rows with absent values may share a key or a partition, so unequal values do not prove other places.
            proofs.append(has_values(self.target))
        proof = proofs[0] if len(proofs) == 1 else proofs[0] & proofs[1]
        facts = [proof.alias(PROVEN)]
        ordering = self.target.ordering_fields
        if ordering:
            new_order = ordering_of([(sf.col(quoted(name)), name) for name in ordering], self.target.schema)
            older = (sf.col(KIND) != int(ClauseKind.INSERT)) & (new_order < sf.col(OLD_ORDER))
            facts += [new_order.alias(NEW_ORDER), sf.coalesce(older, sf.lit(False)).alias(OLDER)]
        placeholders = self._are_placeholders(lambda name: sf.col(quoted(name)))
        if self.target.leaves_open:
            # A new placeholder keeps the old value of the row, unless that is a placeholder too.
            keeps = [condition & ~sf.col(f"{_WAS_OPEN}{name}") for name, condition in placeholders.items()]
            facts += [_any_holds(placeholders.values()).alias(OPEN), _any_holds(keeps).alias(KEPT)]
        rows = rows.select("*", *facts).drop(_CLAUSE, *(f"{_WAS_OPEN}{name}" for name in placeholders))
        return MergeChanges(self.target, rows, self._moves)

    def _are_placeholders(self, column: Callable[[str], Column]) -> dict[str, Column]:
        """Return by column name whether the value is a placeholder; no entry for a column without placeholders.

        ``column`` returns the values to examine for the name of a column.
        """
        if not self.target.leaves_open:
            return {}
        conditions = {name: self.target.left_open(name, column(name)) for name in self.target.schema.names}
        return {name: condition for name, condition in conditions.items() if condition is not None}

    def _clause_numbers(self, clause_kind: ClauseKind) -> list[int]:
        return [number for number, clause in enumerate(self.clauses) if clause.kind is clause_kind]

    @property
    def _moves(self) -> bool:
        """Whether an update may move a row to another place."""
        return not all(
            self.matching.keeps_place(self.clauses[number], self.values[number], self.target)
            for number in self._clause_numbers(ClauseKind.UPDATE)
        )

    def _proven_inserts(self) -> list[int]:
        """Return the numbers of the clauses that certainly insert at places that hold no row."""
        numbers = self._clause_numbers(ClauseKind.INSERT)
        return [
            number
            for number in numbers
            if self.matching.proves_new(self.clauses[number], self.values[number], self.target)
        ]

    def _new_columns(self) -> dict[str, Column]:
        """Return the new value of each column of the table, the kind of each change, and the number of its clause."""
        kinds = to_spark(self.target.schema)
        cast_columns: list[dict[str, Column]] = []
        nothing = sf.lit(None)
        for clause, values in zip(self.clauses, self.values, strict=True):
            if clause.kind is ClauseKind.KEEP:
                # Beside the values of other clauses, a null takes their type.
                cast_columns.append(
                    {name: nothing if value == NULL else sf.col(value) for name, value in values.items()}
                )
                continue
            value_columns = {name: as_column(value, value_named(name, clause.method)) for name, value in values.items()}
            frame = self.frames[clause.side]
            # A delete has stored values and nulls alone, whose casts need no check.
            cast_columns.append(
                {name: column.cast(kinds[name].dataType) for name, column in value_columns.items()}
                if clause.kind is ClauseKind.DELETE
                else cast_values(frame, value_columns, kinds, clause.method, self.target.path)
            )
        clause_number = sf.col(_CLAUSE)
        columns: dict[str, Column] = {}
        for name in kinds.names:
            # Cast each value by itself: in a CASE with another clause's double, Spark would make a bigint a double.
            choices = [(self.values[i][name], cast_columns[i][name], i) for i in range(len(self.clauses))]
            columns[name] = by_number(choices, clause_number)
        of_kinds = [(clause.kind.name, sf.lit(int(clause.kind)), i) for i, clause in enumerate(self.clauses)]
        return {**columns, KIND: by_number(of_kinds, clause_number), _CLAUSE: clause_number}

    def _old_columns(self) -> dict[str, Column]:
        """Return by name the columns of a row of changes that describe the table's old row; null for an insert.

        They are its key, partition path and row number; its ordering value and its placeholders, if the table has such;
        and, if rows may move, the values that a delete at the old place needs. If the source has computed the places of
        its inserts, these are among the columns, too.
        """
        # If the merge only inserts, the join has no columns of the table.
        is_there = _OF_TARGET in self.rows.columns
        text = sf.lit(None).cast("string")
        names = {RECORD_KEY: OLD_KEY, PARTITION_PATH: OLD_PATH, SEQUENCE_NUMBER: ROW_NUMBER}
        # In a join with other clauses, all columns of the old row of an insert are null.
        old_columns = {column: sf.col(of(TARGET, name)) if is_there else text for name, column in names.items()}
        if self._source_has_places:
            old_columns |= {f"{WAS}{name}": sf.col(of(SOURCE, name)) for name in (KEY, PATH)}
        ordering = self.target.ordering_fields
        if ordering:
            old_ordering = [(sf.col(of(TARGET, name)) if is_there else sf.lit(None), name) for name in ordering]
            kinds = to_spark(self.target.schema)
            typed = [(column.cast(kinds[name].dataType), name) for column, name in old_ordering]
            old_columns[OLD_ORDER] = ordering_of(typed, self.target.schema)
        nothing = sf.lit(None)
        placeholders = self._are_placeholders(lambda name: sf.col(of(TARGET, name)) if is_there else nothing)
        old_columns |= {f"{_WAS_OPEN}{name}": condition for name, condition in placeholders.items()}
        if self._moves:
            # A row that moves leaves a delete behind, which has the old values of these.
            needed = dict.fromkeys([*map(root_of, self.target.place_fields), *ordering])
            old_columns |= {f"{WAS}{name}": sf.col(of(TARGET, name)) for name in needed}
        return old_columns

    def _with_marked_deletes(self, rows: DataFrame) -> DataFrame:
        """Return rows in which new values that mark a delete make the row a delete at its old place.

        An insert with such values changes nothing, so the result lacks it.
        """
        marks = self.target.marks_of_deletes
        if not marks:
            return rows
        change_kind, deleted = sf.col(KIND), reduce(Column.__or__, marks)
        rows = rows.where(~(deleted & (change_kind == int(ClauseKind.INSERT))))
        columns = {KIND: sf.when(deleted, int(ClauseKind.DELETE)).otherwise(change_kind)}
        if self._moves:
            # The delete is about the old row, so it gets back that row's key and partition values.
            roots = dict.fromkeys(map(root_of, self.target.place_fields))
            columns |= {name: sf.when(deleted, sf.col(f"{WAS}{name}")).otherwise(sf.col(name)) for name in roots}
        return rows.withColumns(columns)

    @property
    def _source_has_places(self) -> bool:
        """Whether the source has the place of every insert in its key columns, and no row of the table moves."""
        inserts = self._clause_numbers(ClauseKind.INSERT)
        return not self._moves and self.matching.spells and bool(inserts) and self._proven_inserts() == inserts

    def _with_places(self, rows: DataFrame) -> DataFrame:
        """Return the rows with their new places, computed only if the old rows and the source lack them."""
        if self._source_has_places:
            places = {KEY: sf.coalesce(OLD_KEY, f"{WAS}{KEY}"), PATH: sf.coalesce(OLD_PATH, f"{WAS}{PATH}")}
            return rows.withColumns(places).drop(*(f"{WAS}{name}" for name in places))
        if not self._moves and not self._clause_numbers(ClauseKind.INSERT):
            return rows.withColumns({KEY: sf.col(OLD_KEY), PATH: sf.col(OLD_PATH)})
        return spelled(rows, self.target)


def ordering_of(columns: Sequence[tuple[Column, str]], schema: pa.Schema) -> Column:
    """Return one comparable value of several ordering fields, given with their names; null is the least."""
    return sf.struct(*(_in_order_of_hudi(column, find_field(schema, name)).alias(name) for column, name in columns))


def _in_order_of_hudi(column: Column, field: pa.Field | None) -> Column:
    """Return a value that Spark orders as Hudi orders the field: -0.0 below 0.0, and bytes as signed numbers.

    ``field`` is None if the schema lacks the field; its values are returned as they are.
    """
    data_type = pa.null() if field is None else field.type
    if pa.types.is_floating(data_type):
        # Spark treats -0.0 and 0.0 as equal; ``Double.compareTo`` orders -0.0 below 0.0.
        return sf.struct(column.alias("value"), (column.cast("string") != "-0.0").alias("positive"))
    if not pa.types.is_binary(data_type):
        return column
    # A text with the order of signed bytes: a letter for the sign, then two hexadecimal digits for each byte.
    pairs = sf.regexp_replace(sf.hex(column), "(..)", ",$1")
    negatives_marked = sf.regexp_replace(pairs, ",([89A-F])", "a$1")
    return sf.regexp_replace(negatives_marked, ",([0-7])", "b$1")
