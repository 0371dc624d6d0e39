"""The clauses of a merge, as users add them one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...operations.words.text import in_html
from ..other_keywords import MERGE_KEYWORDS
from ..other_names import MERGE_CALLS, NamesOtherCalls
from .clauses import Clause, ClauseKind, Condition, Side, Value

if TYPE_CHECKING:
    from typing_extensions import Self


class MergeClauses(NamesOtherCalls):
    """A merge: each method returns a new merge with one more clause.

    Clauses apply in the order in which they were added: each row takes the first clause for its kind of row whose
    condition holds. A row that no clause takes stays as it is. A null condition does not hold. Conditions and values
    are SQL text, or expressions over ``source.`` and ``target.`` columns: Columns of Spark, or expressions of
    ``pyarrow.compute`` (``pyarrow.compute.field("source.x")``). Plain values other than text are values, too.

    Args:
        path: The path of the table.
        on: How rows match.
        clauses: The clauses so far.
    """

    _other_calls = MERGE_CALLS
    _other_keywords = MERGE_KEYWORDS

    def __init__(self, path: str, on: Any, clauses: Sequence[Clause]) -> None:
        self._path = path
        self._on = on
        self._clauses = tuple(clauses)

    def when_matched_update(self, set: Mapping[str, Value], condition: Condition | None = None) -> Self:
        """Update rows of the table that match a row of the source.

        Args:
            set: The new values, by column of the table or field of a struct (``address.city``). Other columns keep
                their values.
            condition: The condition; None for all such rows.

        Returns:
            The merge with this clause.
        """
        return self._with(Clause("when_matched_update", Side.MATCHED, ClauseKind.UPDATE, given_values(set), condition))

    def when_matched_update_all(self, condition: Condition | None = None) -> Self:
        """Update rows of the table that match a row of the source with all columns of that source row.

        Args:
            condition: The condition; None for all such rows.

        Returns:
            The merge with this clause.
        """
        return self._with(Clause("when_matched_update_all", Side.MATCHED, ClauseKind.UPDATE, None, condition))

    def when_matched_delete(self, condition: Condition | None = None) -> Self:
        """Delete rows of the table that match a row of the source.

        Args:
            condition: The condition; None for all such rows.

        Returns:
            The merge with this clause.
        """
        return self._with(Clause("when_matched_delete", Side.MATCHED, ClauseKind.DELETE, None, condition))

    def when_not_matched_insert(self, values: Mapping[str, Value], condition: Condition | None = None) -> Self:
        """Insert rows of the source that match no row of the table.

        Args:
            values: The values, by column of the table, over ``source.`` columns. Other columns are null.
            condition: The condition over ``source.`` columns; None for all such rows.

        Returns:
            The merge with this clause.
        """
        return self._with(
            Clause("when_not_matched_insert", Side.NOT_MATCHED, ClauseKind.INSERT, given_values(values), condition)
        )

    def when_not_matched_insert_all(self, condition: Condition | None = None) -> Self:
        """Insert rows of the source that match no row of the table, with all their columns.

        Args:
            condition: The condition over ``source.`` columns; None for all such rows.

        Returns:
            The merge with this clause.
        """
        return self._with(Clause("when_not_matched_insert_all", Side.NOT_MATCHED, ClauseKind.INSERT, None, condition))

    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, Value],
        condition: Condition | None = None,
    ) -> Self:
        """Update rows of the table that match no row of the source.

        Args:
            set: The new values, by column of the table, over ``target.`` columns. Other columns keep their values.
            condition: The condition over ``target.`` columns; None for all such rows.

        Returns:
            The merge with this clause.
        """
        return self._with(
            Clause("when_not_matched_by_source_update", Side.BY_SOURCE, ClauseKind.UPDATE, given_values(set), condition)
        )

    def when_not_matched_by_source_delete(self, condition: Condition | None = None) -> Self:
        """Delete rows of the table that match no row of the source.

        Args:
            condition: The condition over ``target.`` columns; None for all such rows.

        Returns:
            The merge with this clause.
        """
        return self._with(
            Clause("when_not_matched_by_source_delete", Side.BY_SOURCE, ClauseKind.DELETE, None, condition)
        )

    def __repr__(self) -> str:
        lines = [f"merge into {self._path} on {'the record key' if self._on is None else self._on}"]
        lines += [f"  {clause}" for clause in self._clauses] or ["  no clause yet"]
        return "\n".join([*lines, "nothing is written until execute()"])

    def _repr_html_(self) -> str:
        return f"<pre>{in_html(repr(self))}</pre>"

    def _with(self, clause: Clause) -> Self:
        """Return the merge with one more clause."""
        raise NotImplementedError


def given_values(values: Mapping[str, Value] | None) -> Mapping[str, Value]:
    """Return the values that a clause was given, by column; without any, planning refuses the clause."""
    return {} if values is None else values
