"""`HudiTable.merge` and `HudiTable.update`: clauses gathered, and carried out as one instant."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column

from ...errors import InvalidOptionError
from ...operations.result import CommitResult, RowCounts
from ..source.own_errors import own_errors
from ..table.other_names import MERGE_CALLS, NamesOtherCalls
from .changing import MergeChanges, make_changes
from .clauses import Clause, ClauseKind, Condition, Side, check_clauses
from .counting import count
from .expressions import Value
from .matching import On
from .target import MergeTarget
from .writing import rows_to_write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Open = Callable[[Mapping[str, Any]], MergeTarget]
Write = Callable[["DataFrame", Mapping[str, Any], str, RowCounts], CommitResult]


@dataclass(frozen=True, slots=True)
class Work:
    """The table that a merge changes.

    Attributes:
        path: The table's path.
        open: Returns it as it is now, given the options of a write.
        write: Upserts rows with such options, based on a moment of the table, of which somebody has counted what
            becomes.
    """

    path: str
    open: Open
    write: Write


class MergeBuilder(NamesOtherCalls):
    """A merge in the making: each method returns another one, with a clause more.

    Clauses are asked in the order in which they were added, and of the rows of one kind the first clause that holds
    counts. A row for which none holds stays as it is. Conditions and values are SQL text or Columns over ``source.``
    and ``target.`` columns, or plain values that are no text; a condition that is null does not hold.

    Args:
        work: The table.
        source: The rows that are merged into it.
        on: How rows match.
        clauses: What was added so far.
    """

    _other_calls = MERGE_CALLS

    def __init__(self, work: Work, source: DataFrame, on: On, clauses: Sequence[Clause] = ()) -> None:
        self._work = work
        self._source = source
        self._on = on
        self._clauses = tuple(clauses)

    def when_matched_update(self, set: Mapping[str, Value], condition: Condition | None = None) -> MergeBuilder:
        """Update rows of the table that match a row of the source.

        Args:
            set: The new values, by the table's columns or fields of its structs (``address.city``); the others stay.
            condition: When; None for always.
        """
        return self._with(Clause("when_matched_update", Side.MATCHED, ClauseKind.UPDATE, _given(set), condition))

    def when_matched_update_all(self, condition: Condition | None = None) -> MergeBuilder:
        """Give rows of the table that match a row of the source all columns as that one has them.

        Args:
            condition: When; None for always.
        """
        return self._with(Clause("when_matched_update_all", Side.MATCHED, ClauseKind.UPDATE, None, condition))

    def when_matched_delete(self, condition: Condition | None = None) -> MergeBuilder:
        """Delete rows of the table that match a row of the source.

        Args:
            condition: When; None for always.
        """
        return self._with(Clause("when_matched_delete", Side.MATCHED, ClauseKind.DELETE, None, condition))

    def when_not_matched_insert(self, values: Mapping[str, Value], condition: Condition | None = None) -> MergeBuilder:
        """Insert rows of the source that match none of the table.

        Args:
            values: By the table's columns, over ``source.`` columns; the others are null.
            condition: When, over ``source.`` columns; None for always.
        """
        return self._with(
            Clause("when_not_matched_insert", Side.NOT_MATCHED, ClauseKind.INSERT, _given(values), condition)
        )

    def when_not_matched_insert_all(self, condition: Condition | None = None) -> MergeBuilder:
        """Insert rows of the source that match none of the table, with all columns as they have them.

        Args:
            condition: When, over ``source.`` columns; None for always.
        """
        return self._with(Clause("when_not_matched_insert_all", Side.NOT_MATCHED, ClauseKind.INSERT, None, condition))

    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, Value],
        condition: Condition | None = None,
    ) -> MergeBuilder:
        """Update rows of the table that match none of the source.

        Args:
            set: The new values, by the table's columns, over ``target.`` columns; the others stay.
            condition: When, over ``target.`` columns; None for always.
        """
        return self._with(
            Clause("when_not_matched_by_source_update", Side.BY_SOURCE, ClauseKind.UPDATE, _given(set), condition)
        )

    def when_not_matched_by_source_delete(self, condition: Condition | None = None) -> MergeBuilder:
        """Delete rows of the table that match none of the source.

        Args:
            condition: When, over ``target.`` columns; None for always.
        """
        return self._with(
            Clause("when_not_matched_by_source_delete", Side.BY_SOURCE, ClauseKind.DELETE, None, condition)
        )

    def execute(self, **options: Any) -> CommitResult:
        """Merge, as one instant, against the table as it is now.

        It may be called again, which reads both sides anew.

        Args:
            options: Options of this write.

        Raises:
            DuplicateKeyError: Several rows of the source would change one row, or a key would have several rows.
            OlderRowError: A row would get a lesser ordering value than the row whose place it takes.
            MissingColumnError: A condition or a value names a column that is not there.
            InvalidOptionError: There is no clause, or one that is never reached, or what was given makes no sense.
            CommitConflictError: Another writer has changed the same file groups since; it can be run again.
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        check_clauses(self._clauses)
        return _carry_out(
            self._work, options, lambda target: make_changes(target, self._clauses, self._source, self._on)
        )

    def __repr__(self) -> str:
        lines = [f"merge into {self._work.path} on {'the record key' if self._on is None else self._on}"]
        lines += [f"  {clause}" for clause in self._clauses] or ["  no clause yet"]
        return "\n".join([*lines, "nothing is written until execute()"])

    def _with(self, clause: Clause) -> MergeBuilder:
        return MergeBuilder(self._work, self._source, self._on, (*self._clauses, clause))


def _given(values: Mapping[str, Value] | None) -> Mapping[str, Value]:
    return {} if values is None else values


def update(
    work: Work, values: Mapping[str, Value], where: Condition | None, options: Mapping[str, Any]
) -> CommitResult:
    """Update rows of a table for which a condition holds, as one instant; see `HudiTable.update`."""
    if "condition" in options or isinstance(values, (str, Column)):
        raise InvalidOptionError(
            "update() was given a condition where it takes the new values: they come first, and the condition, called "
            "where, after them.",
            "Call update(set, where), such as update({'n': 'n + 1'}, 'id = 7').",
        )
    clause = Clause("update", Side.BY_SOURCE, ClauseKind.UPDATE, _given(values), where)
    return _carry_out(work, options, lambda target: make_changes(target, [clause], None, None))


def _carry_out(
    work: Work, options: Mapping[str, Any], changes_of: Callable[[MergeTarget], MergeChanges]
) -> CommitResult:
    """Change rows of a table as one instant, with the options of a write.

    The changed rows are computed once and kept: they are counted, checked and written as they are, so that a source
    which gives other rows each time is read once. Where the executor that keeps some of them is lost, the merge fails.
    """
    began = time.monotonic()
    target = work.open(options)
    with own_errors():
        changes = changes_of(target)
        changes = replace(changes, rows=changes.rows.localCheckpoint())
        found = count(changes)
        rows = rows_to_write(changes, found)
    made = time.monotonic() - began
    done = work.write(rows, options, target.moment, found.counts)
    total = done.seconds.get("total", 0.0) + made
    return replace(done, seconds={**done.seconds, "changes": round(made, 3), "total": round(total, 3)})
