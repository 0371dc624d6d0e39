"""`HudiTable.merge` and `HudiTable.update`: collect clauses, and write the rows that they change as one instant."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...methods.merging.builder import MergeClauses, given_values
from ...methods.merging.changed_table import newer_columns_conflict
from ...methods.merging.clauses import Clause, ClauseKind, Condition, Side, Value, check_clauses
from ...operations.planning.changed_rows import ChangedRows
from ...operations.result import CommitResult, PastAttempts
from ...operations.write.retries import Retries
from ...options.names import OPTIONS
from ...table.config.property_keys import MERGE_ON_READ
from ...table.merging.deletes import IS_DELETED
from ...table.schema.columns import ARRIVES, INSERTED, MOVED, STAYS
from ..conditions.values import repeatable
from ..placement.key_columns import KEY, PATH
from ..placement.key_text import quoted
from ..source.own_errors import own_errors
from ..source.spark_types import to_spark
from ..table.made_from import MadeFrom
from .changing import KIND, OLD_KEY, OLD_PATH, ROW_NUMBER, WAS, MergeChanges, is_delete, make_changes
from .counting import count
from .matching import On
from .target import MergeTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Open = Callable[[Mapping[str, Any]], MergeTarget]
Write = Callable[["DataFrame", Mapping[str, Any], MadeFrom], CommitResult]


WRITE_ID = OPTIONS["write_id"].key


@dataclass(frozen=True, slots=True)
class Work:
    """The table that a merge changes.

    Attributes:
        open: Returns the newest snapshot for a write with the given options.
        write: Upserts rows, with the options and what the rows were made from.
        retries: Returns, for the options, what repeats the write if another write came first.
    """

    path: str
    open: Open
    write: Write
    retries: Callable[[Mapping[str, Any]], Retries]


class MergeBuilder(MergeClauses):
    """A merge: each method returns a new merge with one more clause.

    Clauses apply in the order in which they were added: each row takes the first clause for its kind of row whose
    condition holds. A row that no clause takes stays as it is. Conditions and values are SQL text or Columns over
    ``source.`` and ``target.`` columns, or plain values other than text. A null condition does not hold.

    Args:
        work: The table.
        source: The rows to merge.
        on: How rows match.
        clauses: The clauses so far.
    """

    def __init__(self, work: Work, source: DataFrame, on: On, clauses: Sequence[Clause] = ()) -> None:
        super().__init__(work.path, on, clauses)
        self._work = work
        self._source = source

    def execute(self, **options: Any) -> CommitResult:
        """Execute the merge, as one instant, against the newest snapshot of the table.

        A second call reads both sides again.

        Args:
            options: Options of this write.

        Returns:
            The instant, and the counts of inserted, updated, moved and deleted rows.

        Raises:
            DuplicateKeyError: Several rows of the source would change one row, a key would have several rows, or a
                clause holds for some rows of a key and not for all.
            OlderRowError: A row would get a lesser ordering value than the row that it replaces.
            MissingColumnError: A condition or a value names a column that neither side has.
            InvalidOptionError: The merge has no clause, an unreachable clause, or an invalid condition or value.
            OptionConflictError: The table generates its keys.
            CommitConflictError: Other writers changed affected file groups, or rows that the clauses are about, again
                and again.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        check_clauses(self._clauses)
        return _carry_out(
            self._work, options, lambda target: make_changes(target, self._clauses, self._source, self._on)
        )

    def _with(self, clause: Clause) -> MergeBuilder:
        repeatable_clause = replace(clause, condition=repeatable(clause.condition))
        return MergeBuilder(self._work, self._source, self._on, (*self._clauses, repeatable_clause))


def update(
    work: Work, values: Mapping[str, Value], where: Condition | None, options: Mapping[str, Any]
) -> CommitResult:
    """Update the rows of a table for which a condition holds; see `HudiTable.update`."""
    clause = Clause("update", Side.BY_SOURCE, ClauseKind.UPDATE, given_values(values), repeatable(where))
    return _carry_out(work, options, lambda target: make_changes(target, [clause], None, None))


def _carry_out(
    work: Work, options: Mapping[str, Any], changes_of: Callable[[MergeTarget], MergeChanges]
) -> CommitResult:
    """Write the changed rows of a merge or an update as one instant.

    If another write of the same data came first, the table and the source are read anew. In each attempt Spark
    computes the changed rows once and keeps them for counting, checking and writing, so that a source whose query gives
    different rows each time is read once. If an executor that keeps some of them is lost, the merge fails.
    ``changes_of`` makes the query of the changed rows from the snapshot of an attempt. ``work`` opens and writes the
    table, and ``options`` are those of this write.
    """

    def attempt(write_id: str, past: PastAttempts) -> CommitResult:
        """Return the result of one attempt on the newest snapshot; ``past`` is what earlier attempts met."""
        start = time.monotonic()
        target = work.open(options)
        with own_errors():
            changes = changes_of(target)
            changes = replace(changes, decided_rows=changes.decided_rows.localCheckpoint())
            changed_rows = count(changes)
            rows = rows_to_write(changes, changed_rows)
        compute_seconds = time.monotonic() - start
        read_rows = () if changes.reads is None else changes.reads.rows()
        of_stored = changed_rows.needs_counts(has_copies=changes.has_copies)
        made_from = MadeFrom(
            target.moment, read_rows, of_stored=of_stored, counted=changed_rows.counts, past=past, deletes_read=True
        )
        with newer_columns_conflict(target, lambda: work.open(options)):
            commit_result = work.write(rows, {**options, WRITE_ID: write_id}, made_from)
        total = commit_result.seconds.get("total", 0.0) + compute_seconds
        return replace(
            commit_result,
            seconds={**commit_result.seconds, "changes": round(compute_seconds, 3), "total": round(total, 3)},
        )

    return work.retries(options).run(attempt, reads_first=True)


def rows_to_write(changes: MergeChanges, changed_rows: ChangedRows) -> DataFrame:
    """Return rows of the table's columns, with the delete flag if there are deletes, and what `_arrives_column` adds.

    A delete has the ordering value of the row that it deletes, so it wins. A place that another row enters needs no
    delete, because the new row replaces the old row. A row of the table gets at most one delete.

    Of the counts in ``changed_rows``, ``left`` is of rows that move away, ``replaced`` of places that another row
    enters, and ``again`` of places with several deletes.
    """
    rows = changes.rows
    arrives = _arrives_column(changes, changed_rows)
    if not changed_rows.counts.deletes and not changed_rows.left:
        return rows.select(*_columns_to_write(changes), *arrives)
    # No row moves, enters the place of a delete or is deleted twice: a flag on each row is enough.
    if not changed_rows.replaced and not changed_rows.left and not changed_rows.again:
        return rows.select(*_columns_to_write(changes, is_delete()), *arrives)
    stays = [sf.lit(STAYS).cast("tinyint").alias(ARRIVES)] if arrives else []
    live = rows.where(~is_delete()).select(*_columns_to_write(changes, sf.lit(False)), *arrives)
    places = [KEY, PATH]
    deletes = rows.where(is_delete())
    if changed_rows.again:
        # Several rows of the source delete one row of the table.
        deletes = deletes.dropDuplicates([OLD_KEY, OLD_PATH, ROW_NUMBER])
    deleted_rows = deletes.select(*_columns_to_write(changes, sf.lit(True)), *stays, *_old_place())
    if changed_rows.left:
        deleted_rows = deleted_rows.unionByName(
            rows.where(changes.leaves).select(*_deletes_of_moved_rows(changes), *stays, *_old_place())
        )
    if changed_rows.replaced:
        deleted_rows = deleted_rows.join(rows.where(~is_delete()).select(*changes.place), changes.place, "left_anti")
    return live.unionByName(deleted_rows.drop(*places))


def _arrives_column(changes: MergeChanges, changed_rows: ChangedRows) -> list[Column]:
    """Return the column `ARRIVES`: whether a row was inserted, moved to its place, or stays there.

    A write needs it to tell new rows from the deletes in log files with greater ordering values, which would otherwise
    win. The result is empty if no row can meet such a delete.
    """
    target = changes.target
    if target.config.table_type != MERGE_ON_READ or not target.ordering_fields:
        return []
    if not changed_rows.counts.inserts and not changed_rows.left:
        return []
    inserts = sf.col(KIND) == int(ClauseKind.INSERT)
    arrival = sf.when(inserts, INSERTED).when(changes.leaves, MOVED).otherwise(STAYS)
    return [arrival.cast("tinyint").alias(ARRIVES)]


def _columns_to_write(changes: MergeChanges, deleted: Column | None = None) -> list[Column | str]:
    """Return the columns of rows to write, with a delete flag that holds if ``deleted`` or the row itself says so.

    Without ``deleted``, return the columns of the table alone.
    """
    names = changes.target.schema.names
    columns: list[Column | str] = [quoted(name) for name in names if deleted is None or name != IS_DELETED]
    if deleted is None:
        return columns
    own_flag = sf.col(IS_DELETED) if IS_DELETED in names else sf.lit(False)
    return [*columns, sf.when(deleted, sf.lit(True)).otherwise(own_flag).alias(IS_DELETED)]


def _deletes_of_moved_rows(changes: MergeChanges) -> list[Column]:
    """Return deletes of the rows that move away, with only the columns that a delete needs."""
    columns, names_of_changes = [], frozenset(changes.decided_rows.columns)
    for field in to_spark(changes.target.schema).fields:
        old_name = f"{WAS}{field.name}"
        was = sf.col(quoted(old_name)) if old_name in names_of_changes else sf.lit(None).cast(field.dataType)
        columns.append(was.alias(field.name))
    without_flag = [
        column for column, name in zip(columns, changes.target.schema.names, strict=True) if name != IS_DELETED
    ]
    return [*without_flag, sf.lit(True).alias(IS_DELETED)]


def _old_place() -> list[Column]:
    """Return the place of the table's old row, under the names of a row's new place."""
    return [sf.col(OLD_KEY).alias(KEY), sf.col(OLD_PATH).alias(PATH)]
