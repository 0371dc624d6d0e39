"""The rows of the table that may match the source, read by the source's record keys instead of a scan of the table.

If `on` equates the whole record key and the source has few rows, their keys tell which file groups, and which row
groups of these, may hold matches. Tasks read only the rows of these keys, so the join shuffles nothing else of the
table. The executors keep the source from its first use on, because its query might give other rows, with other matches,
the second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...methods.merging.changed_table import SOURCE
from ...methods.merging.clauses import Clause, ClauseKind, Side, is_column, is_of_side
from ...reader.matches.key_values import hashed_columns, key_columns, keys_of_values, number_columns
from ...reader.matches.sought_keys import SoughtKeys
from ...reader.matches.sought_slices import SoughtSlices
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY, SEQUENCE_NUMBER
from ...table.schema.fields import root_of
from ..placement.key_columns import KEY, PATH
from ..placement.key_text import quoted
from .expressions import with_fields
from .matching import On, equal_columns
from .target import MergeTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ...reader.snapshot import Snapshot
    from ..table.shown_rows import ShownRows

# At most so many keys come to this process, and so many pairs of a key and a file slice go to tasks. A merge of more
# rows shuffles the table, most of which it would read anyway.
MOST_KEYS = 1 << 20
MOST_PAIRS = 1 << 24
# Rows of up to so many keys, in files of up to so many bytes, are sent to all tasks; Spark would give up sending more.
_FEW_KEYS, _FEW_BYTES = 1 << 16, 4 << 30


@dataclass(frozen=True, slots=True)
class NearRows:
    """Rows of the table, among them all that match the source.

    Attributes:
        source: The source, kept by the executors.
        rows: The rows; None if the table is to be scanned.
        values: For the source rows that may match, their values in the columns that are equal in matches.
        is_whole: Whether the rows of every key of the source are among them.
        is_few: Whether they and the source's rows are few.
    """

    source: DataFrame
    rows: DataFrame | None = None
    values: pa.Table | None = None
    is_whole: bool = False
    is_few: bool = False

    @classmethod
    def of(
        cls, source: DataFrame, on: On, target: MergeTarget, clauses: Sequence[Clause], columns: Sequence[str]
    ) -> NearRows | None:
        """Return the rows that may match a source, as `match` returns it; ``columns`` are its columns before that.

        None if keys do not tell these rows: a clause is about rows without a match, or `on` does not equate the key. If
        there are too many keys, the result has no rows, and the merge scans the table.
        """
        shown_rows = target.rows_to_show
        if any(clause.side is Side.BY_SOURCE for clause in clauses):
            return None
        equal_columns_of_key = _EqualColumns.of(source, on, target, shown_rows)
        if equal_columns_of_key is None:
            return None
        checkpoint = source.localCheckpoint()
        count = _count(checkpoint)
        if count > MOST_KEYS:
            return cls(checkpoint)
        values = equal_columns_of_key.values(checkpoint)
        sought_keys = equal_columns_of_key.keys_to_read(values, target)
        if sought_keys is None:
            return cls(checkpoint, values=values)
        slices = SoughtSlices.of(shown_rows.snapshot, sought_keys)
        if slices.pairs > MOST_PAIRS:
            return cls(checkpoint, values=values)
        rows = shown_rows.frames.of_keys(
            _read_columns(target, clauses, columns, on, shown_rows.snapshot), sought_keys, slices
        )
        if SEQUENCE_NUMBER not in rows.columns:
            # Any numbers tell rows of one key apart. The stored texts, which differ in each row, are slow to read.
            rows = rows.select("*", sf.monotonically_increasing_id().cast("string").alias(SEQUENCE_NUMBER))
        is_few = max(count, len(sought_keys)) <= _FEW_KEYS and slices.size <= _FEW_BYTES
        # `values` lacks source rows with a null, and keys sought by some of their columns alone are not whole keys.
        is_whole = values.num_rows == count and not sought_keys.by
        return cls(checkpoint, rows, values, is_whole, is_few)

    def hinted(self, rows: DataFrame) -> DataFrame:
        """Return rows of the table, which a join sends to all its tasks if they are few."""
        return sf.broadcast(rows) if self.is_few else rows

    def holds(self, target: MergeTarget, clauses: Sequence[Clause], values: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether each row that the table has in the place of an insert is among the rows.

        ``values`` has, for each clause, the new value of each column.
        """
        return (
            self.rows is not None
            and self.is_whole
            and all(
                is_column(row[root], SOURCE, root)
                for clause, row in zip(clauses, values, strict=True)
                if clause.kind is ClauseKind.INSERT
                for root in map(root_of, target.place_fields)
            )
        )


@dataclass(frozen=True, slots=True)
class _EqualColumns:
    """Columns that are equal in rows that match.

    Attributes:
        names: Those of the source's own columns.
        keys: Those that make the record key; None if the source has computed keys.
    """

    names: tuple[str, ...]
    keys: tuple[str, ...] | None

    @classmethod
    def of(cls, source: DataFrame, on: On, target: MergeTarget, shown_rows: ShownRows) -> _EqualColumns | None:
        """Return the equal columns; None if `on` does not equate all columns of the record key."""
        if isinstance(on, Column):
            return None
        names, _ = equal_columns(source, on, target)
        if on is None:
            return cls(tuple(names), None)
        config, schema = shown_rows.snapshot.config, shown_rows.snapshot.schema
        # Without values of the whole key, values of the columns that are hashed still give the buckets.
        keys = key_columns(config, schema, names) or hashed_columns(config, schema, names)
        return None if keys is None else cls(tuple(names), tuple(keys))

    def values(self, source: DataFrame) -> pa.Table:
        """Return the values of the rows that may match, with their computed keys if they have such."""
        computed = [] if self.keys is not None else [KEY, PATH]
        needed = [sf.col(KEY)] if self.keys is None else [sf.col(quoted(name)) for name in self.names]
        # A null equals nothing, so a row with a null has no match.
        has_values = reduce(Column.__and__, (column.isNotNull() for column in needed))
        return source.where(has_values).select(*(sf.col(quoted(name)) for name in (*computed, *self.names))).toArrow()

    def keys_to_read(self, values: pa.Table, target: MergeTarget) -> SoughtKeys | None:
        """Return the record keys of ``values``, the result of `values`; None if these do not give the table's keys."""
        if self.keys is None:
            places = pa.table({PARTITION_PATH: values.column(PATH).cast(pa.string())})
            return SoughtKeys.of(values.column(KEY).cast(pa.string()), None if target.is_global else places)
        key_values = values.select(list(self.keys))
        snapshot = target.rows_to_show.snapshot
        return keys_of_values(snapshot.config, snapshot.schema, key_values, anywhere=target.is_global)


def _count(rows: DataFrame) -> int:
    """Count rows that the executors keep, by Spark's job without a shuffle if this process can start it."""
    plan = getattr(rows, "_jdf", None)
    return rows.count() if plan is None else int(plan.queryExecution().toRdd().count())


def _read_columns(
    target: MergeTarget, clauses: Sequence[Clause], columns: Sequence[str], on: On, snapshot: Snapshot
) -> pa.Schema:
    """Return the columns of the table that the merge may need: those that some expression may name.

    Args:
        target: The table that the merge changes.
        clauses: What the merge does; its conditions and values name columns.
        columns: The names of the source's own columns.
        on: How rows match.
        snapshot: The rows to read, whose columns these are.
    """
    schema = snapshot.schema
    expressions: list[Any] = []
    if on is not None:
        expressions += [on] if isinstance(on, str) else list(on)  # type: ignore[arg-type]
    for clause in clauses:
        expressions += clause.values_of(target, columns, with_fields).values() if clause.side is Side.MATCHED else ()
        expressions += clause.condition if isinstance(clause.condition, Mapping) else [clause.condition]
    # A column counts as named if its name is anywhere in a text, since too many columns are no error. A plain column of
    # the source names none of the table.
    texts = [value.lower() for value in expressions if isinstance(value, str) and not is_of_side(value, SOURCE)]
    if (
        # A placeholder keeps the stored value of any column, pyhudi does not look into a Column, and a star is all.
        target.leaves_open
        or any(isinstance(value, Column) for value in expressions)
        or any("*" in text for text in texts)
    ):
        return schema
    # What finds rows by their keys, what a delete needs of its row, and what marks a row as a delete.
    always = {RECORD_KEY, PARTITION_PATH, *number_columns(snapshot.config, schema), *target.kept_of_deletes}
    if target.config.delete_marker is not None:
        always.add(target.config.delete_marker.field)
    return pa.schema(
        [field for field in schema if field.name in always or any(field.name.lower() in text for text in texts)]
    )
