"""`Table.merge` and `Table.update` of `pyhudi.arrow`: collect clauses, and write the rows that they change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ..errors import InvalidOptionError
from ..index.registry import index_for
from ..methods.merging.builder import MergeClauses, given_values
from ..methods.merging.changed_table import ChangedTable, newer_columns_conflict
from ..methods.merging.clauses import Clause, ClauseKind, Condition, Side, Value, check_clauses, take_all
from ..methods.writes import BASED_ON, CHANGES
from ..operations.planning.pinned import seen_moment
from ..operations.planning.target import find_target
from ..operations.read_rows import ReadRows
from ..operations.result import CommitResult, PastAttempts
from ..options.sources import ResolvedOptions
from ..reader.snapshot import Snapshot, open_snapshot
from ..storage.base import Storage
from ..table.config import TableConfig
from ..table.schema.columns import without_meta
from .hudi_types import HudiTypes
from .merging.changes import ClauseChanges
from .merging.checked_changes import CheckedChanges
from .merging.clause_terms import ReadyClause
from .merging.matching import On, RowMatch, matched_by
from .merging.source import PlacedSource, source_columns
from .merging.stored_rows import StoredRows, predicates_of_matches
from .merging.terms import Sides, predicates_of_target
from .rows import GivenRows, RowsComingOnce
from .writing import RowWrite, TypedRows, run_again

# The parts of a source, and the entries of places, may each take such a share of a write's memory.
_SHARES = 4


@dataclass(frozen=True, slots=True)
class MergeWork:
    """The table that a merge changes.

    Attributes:
        resolve: Returns the options of a write with further options.
        is_serializable: Returns whether later writes to the rows that a merge read conflict with it, by its options.
    """

    path: str
    storage: Storage
    threads: int
    resolve: Callable[[Mapping[str, Any]], ResolvedOptions]
    is_serializable: Callable[[Mapping[str, Any], TableConfig], bool]

    def resolved(self, options: Mapping[str, Any]) -> ResolvedOptions:
        return self.resolve({**options, **CHANGES})

    def open_table(self, options: Mapping[str, Any]) -> tuple[ChangedTable, Snapshot]:
        """Return the table, and the newest snapshot for a write with some options."""
        parsed_options = self.resolved(options).options
        request = parsed_options.to_write_request(self.path, pa.schema([]), overwrite=False)
        table = find_target(request, self.storage, creates=False).table
        # Read the timeline before the rows, so that the conflict check covers every commit in between.
        _, moment = seen_moment(table)
        snapshot = open_snapshot(self.path, parsed_options.storage_options, file_search=parsed_options.file_search)
        is_global = index_for(table.config).is_global
        serializable = self.is_serializable({**options, **CHANGES}, table.config)
        return ChangedTable(table, without_meta(snapshot.schema), moment, is_global, serializable), snapshot


@dataclass
class MergeSource:
    """The rows of a source, which may be readable once."""

    rows: GivenRows
    is_read: bool = field(default=False)

    def typed(self, table: ChangedTable, open_files: ExitStack) -> TypedRows:
        """Return the rows in Hudi's types; raises `InvalidOptionError` for rows that came already."""
        if self.is_read and self.rows.once:
            raise InvalidOptionError(
                f"The source of a merge into the table {table.path} is a stream, which an earlier execute() has read.",
                "Give merge() a new stream, or rows in memory.",
            )
        # An iterator without a batch has no columns of its own, so it gets the table's.
        columns = table.schema if self.rows.schema is None else self.rows.schema
        # `_open` notes that the rows are read.
        return TypedRows.of(replace(self.rows, open=self._open), HudiTypes.of(columns, table.schema), open_files)

    def _open(self) -> Iterator[pa.RecordBatch]:
        self.is_read = True
        yield from self.rows.open()


class Merge(MergeClauses):
    """A merge: each method returns a new merge with one more clause.

    Clauses apply in the order in which they were added: each row takes the first clause for its kind of row whose
    condition holds. A row that no clause takes stays as it is. Conditions and values are SQL text, or expressions of
    ``pyarrow.compute`` over ``source.`` and ``target.`` columns (``pyarrow.compute.field("source.x")``), or plain
    values other than text. A null condition does not hold.

    Args:
        work: The table.
        source: The rows to merge.
        on: How rows match.
        clauses: The clauses so far.
    """

    def __init__(self, work: MergeWork, source: MergeSource, on: On, clauses: Sequence[Clause] = ()) -> None:
        super().__init__(work.path, on, clauses)
        self._work = work
        self._source = source

    def execute(self, **options: Any) -> CommitResult:
        """Execute the merge, as one instant, against the newest snapshot of the table.

        A second call reads both sides again, so the source must not be a stream then.

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
        return _carry_out(self._work, options, self._clauses, self._source, self._on)

    def _with(self, clause: Clause) -> Merge:
        return Merge(self._work, self._source, self._on, (*self._clauses, clause))


def update(
    work: MergeWork, values: Mapping[str, Value], where: Condition | None, options: Mapping[str, Any]
) -> CommitResult:
    """Update the rows of a table for which a condition holds; see `Table.update`."""
    clause = Clause("update", Side.BY_SOURCE, ClauseKind.UPDATE, given_values(values), where)
    return _carry_out(work, options, (clause,), None, None)


def _carry_out(
    work: MergeWork, options: Mapping[str, Any], clauses: Sequence[Clause], source: MergeSource | None, on: On
) -> CommitResult:
    """Write the changed rows of a merge or an update as one instant, again if another write of the data came first.

    In each attempt the changed rows are computed once, and wait in memory or on disk to be counted, checked, written.
    """
    resolved = work.resolved(options)
    with ExitStack() as open_files:
        typed_source = None if source is None else source.typed(work.open_table(options)[0], open_files)

        def attempt(write_id: str, past: PastAttempts) -> CommitResult:
            with ExitStack() as open_files:
                return _Attempt.of(work, options, clauses, typed_source, on).write(write_id, past, open_files)

        return run_again(work.storage, resolved, attempt, reads_first=True)


@dataclass
class _Attempt:
    """An attempt at a merge or an update, on one snapshot."""

    work: MergeWork
    options: Mapping[str, Any]
    table: ChangedTable
    snapshot: Snapshot
    source: TypedRows | None
    sides: Sides
    match: RowMatch
    clauses: list[ReadyClause]
    rows_read: list[ReadRows] = field(default_factory=list)

    @classmethod
    def of(
        cls, work: MergeWork, options: Mapping[str, Any], clauses: Sequence[Clause], source: TypedRows | None, on: On
    ) -> _Attempt:
        """Open the table and make the clauses ready for it."""
        table, snapshot = work.open_table(options)
        columns = None if source is None else source_columns(source.schema, table)
        sides = Sides(columns, snapshot.schema, work.path)
        match = RowMatch(()) if source is None else matched_by(on, sides, table)
        ready = [ReadyClause.of(clause, sides, match, table) for clause in clauses]
        return cls(work, options, table, snapshot, source, sides, match, ready)

    def write(self, write_id: str, past: PastAttempts, open_files: ExitStack) -> CommitResult:
        """Compute, count, check and write the changed rows; later writes to rows that were read conflict.

        All attempts of a write have one ``write_id``, and ``past`` says what became of the earlier attempts.
        """
        start = time.monotonic()
        resolved = self.work.resolve({**self.options, **CHANGES, BASED_ON: self.table.moment})
        parsed_options = resolved.options
        memory = parsed_options.to_write_request(self.work.path, pa.schema([]), overwrite=False).write.output.memory
        changes = ClauseChanges(self.table, self.match, self.clauses)
        columns = pa.schema([self.snapshot.schema.field(name) for name in changes.stored_columns])
        stored_rows = StoredRows(self.table, self.snapshot, columns, parsed_options.merge_memory, self.work.threads)
        changed_rows = open_files.enter_context(
            RowsComingOnce(self._rows_of_changes(changes, stored_rows, memory // _SHARES))
        )
        checked_changes = CheckedChanges.of(self.table, changed_rows.open, stored_rows.rows_at, memory // _SHARES)
        compute_seconds = time.monotonic() - start
        rows = TypedRows(checked_changes.schema, checked_changes.rows, None)
        # Counting has read all changes, so `rows_read` is complete.
        write = RowWrite(
            self.work.path,
            self.work.storage,
            resolved,
            self.work.threads,
            origin=checked_changes.counted.origin(
                tuple(self.rows_read) if self.table.serializable else (), has_copies=self._has_copies
            ),
        )
        with newer_columns_conflict(self.table, lambda: self.work.open_table(self.options)[0]):
            commit_result = write.attempt(rows, write_id, past)
        return replace(commit_result, seconds={**commit_result.seconds, "changes": round(compute_seconds, 3)})

    def _rows_of_changes(
        self, changes: ClauseChanges, stored_rows: StoredRows, part_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of changes, and note in ``rows_read`` which rows of the table decided about them.

        Args:
            changes: Applies the clauses to rows of the source and of the table.
            stored_rows: Reads the rows of the table.
            part_bytes: The bytes of the source that are compared with the table at once.
        """
        by_source = [ready for ready in self.clauses if ready.clause.side is Side.BY_SOURCE]
        for ready in by_source:
            self.rows_read.append(ReadRows(() if ready.condition is None else predicates_of_target(ready.condition)))
        # An update: its single clause is about rows of the table.
        if self.source is None:
            for batch in stored_rows.all_rows(self.rows_read[0].predicates):
                yield from changes.of_stored(batch)
            return
        columns = self.sides.source
        assert columns is not None  # noqa: S101 (for the type checker)
        # If a matching row were gone, a clause for rows without a match would take its source row.
        absence = any(ready.clause.side is Side.NOT_MATCHED for ready in self.clauses)
        placed_source = PlacedSource(self.table, columns, self.match.by_key)
        # A row of the table without a match in one part may have one in another, so clauses for such rows need the
        # whole source at once.
        for rows in placed_source.parts(self.source.open_rows(), None if by_source else part_bytes):
            bounds = predicates_of_matches(rows, self.match, self.table)
            if bounds is not None and len(by_source) < len(self.clauses):
                self.rows_read.append(ReadRows((*self.match.target_predicates, *bounds), absence))
            rows_near = stored_rows.all_rows() if by_source else stored_rows.rows_near(rows, self.match)
            yield from changes.of_source(rows, rows_near)

    @property
    def _has_copies(self) -> bool:
        """Whether all rows of a key are among the changes, or none."""
        return (self.source is None or self.match.by_place) and take_all([ready.clause for ready in self.clauses])
