"""Which rows of the table a merge, an update or a delete by a condition reads, as predicates that need no Spark."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, Observation
from pyspark.sql import functions as sf

from ...methods.merging.changed_table import TARGET, UNNAMED
from ...methods.merging.clauses import Clause, Side
from ...operations.read_rows import ReadRows, is_bounded, predicates_of
from ...reader.skipping.predicates import Compare, Predicate
from ...table.schema.columns import with_meta
from ..conditions.condition import condition_predicates
from ..placement.key_text import quoted
from .matching import On, equal_columns
from .target import MergeTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("pyhudi")

# The query is over by then. If Spark left the source out of its plan, some releases of Spark never answer.
_WAIT_S = 10.0
_LEAST, _GREATEST, _UNNAMED = "least_", "greatest_", "unnamed_"


@dataclass(frozen=True, slots=True)
class MergeReads:
    """What is read, as far as it is known before the query has run.

    Attributes:
        by_source: The rows that clauses about rows without a match read.
        match_predicates: The predicates of rows that may match a row of the source; None if no clause is about matches.
        absence: Whether rows of the source without a match change the table.
        columns: Columns of the table that have the value of a source column in each match, of types with bounds.
        bounds: The least and the greatest value of these in the source, if Spark notes them.
        notes_bounds: Whether Spark does so.
        places: The table, if rows match by computed keys and partition paths, whose columns may differ or be absent.
    """

    by_source: tuple[ReadRows, ...]
    match_predicates: tuple[Predicate, ...] | None
    absence: bool
    columns: tuple[str, ...]
    bounds: Observation
    notes_bounds: bool = False
    places: MergeTarget | None = None

    @classmethod
    def of(cls, target: MergeTarget, clauses: Sequence[Clause], source: DataFrame | None, on: On) -> MergeReads:
        """Return what the clauses read; ``source`` is None for an update."""
        spark, schema = target.rows_to_show.spark, with_meta(target.schema)

        def predicates(condition: Any) -> tuple[Predicate, ...]:
            """Return what a condition says of columns alone; no predicates if it is absent or pyhudi cannot read it."""
            return () if condition is None else condition_predicates(spark, condition, schema, target.path, TARGET)

        by_source = tuple(ReadRows(predicates(clause.condition)) for clause in clauses if clause.side is Side.BY_SOURCE)
        sides = {clause.side for clause in clauses} - {Side.BY_SOURCE}
        if source is None or not sides:
            return cls(by_source, None, False, (), Observation())
        names, table_conditions = equal_columns(source, on, target)
        match_predicates = tuple(predicate for text in table_conditions for predicate in predicates(text))
        # Spark Connect notes nothing of the query of a checkpoint.
        connect = "connect" in type(spark).__module__
        bounded = tuple(name for name in names if is_bounded(schema.field(name).type))
        places = target if on is None else None
        absence = Side.NOT_MATCHED in sides
        return cls(
            by_source, match_predicates, absence, bounded, Observation(), notes_bounds=not connect, places=places
        )

    def of_values(self, values: pa.Table) -> MergeReads:
        """Return what is read, given the values of all source rows that may match."""
        if self.match_predicates is None:
            # No clause is about matches, so the values say nothing of what is read.
            return self
        # No row of the source can have a match.
        if not values.num_rows:
            return replace(self, match_predicates=None, columns=())
        names = [
            name for name in self.columns if self.places is None or self.places.names_places(name, values.column(name))
        ]
        value_predicates = [predicate for name in names for predicate in predicates_of(name, values.column(name))]
        return replace(self, match_predicates=(*self.match_predicates, *value_predicates), columns=())

    def with_bounds(self, source: DataFrame) -> DataFrame:
        """Return the source, of which Spark notes the bounds when the query runs."""
        if not self.columns or not self.notes_bounds:
            return source
        least = [sf.min(quoted(name)).alias(f"{_LEAST}{name}") for name in self.columns]
        greatest = [sf.max(quoted(name)).alias(f"{_GREATEST}{name}") for name in self.columns]
        unnamed = (
            [] if self.places is None else [_any_unnamed(name).alias(f"{_UNNAMED}{name}") for name in self.columns]
        )
        return source.observe(self.bounds, *least, *greatest, *unnamed)

    def rows(self) -> tuple[ReadRows, ...]:
        """Return what was read, once the query has run."""
        if self.match_predicates is None:
            return self.by_source
        noted = _noted_bounds(self.bounds) if self.columns and self.notes_bounds else {}
        # Rows with unnamed values share a partition, so bounds say nothing of the rows there.
        names = [name for name in self.columns if noted and not noted.get(f"{_UNNAMED}{name}")]
        if any(noted[f"{_LEAST}{name}"] is None for name in names):
            # No row of the source can have a match.
            return self.by_source
        bounds = [bound for name in names if not self._of_times(name) for bound in _bounds_of(name, noted)]
        return (*self.by_source, ReadRows((*self.match_predicates, *bounds), self.absence))

    def _of_times(self, name: str) -> bool:
        """Return whether rows of many values of the column share a partition, as in a partition for each day."""
        return self.places is not None and not self.places.names_places(name, pa.chunked_array([], pa.null()))


def _any_unnamed(name: str) -> Column:
    """Return an aggregate: whether any value of a source's column is null, or a text that names no partition."""
    column = sf.col(quoted(name))
    return sf.max(column.isNull() | column.cast("string").isin(*UNNAMED))


def _bounds_of(name: str, noted: Mapping[str, Any]) -> list[Predicate]:
    """Return predicates for values within the bounds that Spark noted of a column."""
    least, greatest = noted[f"{_LEAST}{name}"], noted[f"{_GREATEST}{name}"]
    if least == greatest:
        return [Compare(name, "=", least)]
    return [Compare(name, ">=", least), Compare(name, "<=", greatest)]


def _noted_bounds(bounds: Observation) -> Mapping[str, Any]:
    """Return the values that Spark noted; none if its plan left the source out, as beside an empty table."""
    answers: list[Mapping[str, Any]] = []

    def get_bounds() -> None:
        """Put what Spark noted into ``answers``; a thread runs this, as Spark may never answer."""
        try:
            answers.append(bounds.get)
        except Exception:
            logger.debug("Spark noted no bounds of the source of a merge", exc_info=True)

    thread = Thread(target=get_bounds, daemon=True)
    thread.start()
    thread.join(_WAIT_S)
    return answers[0] if answers else {}
