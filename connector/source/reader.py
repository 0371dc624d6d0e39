"""Reads through Spark: each split is a Spark partition, and record batches go to Spark unchanged."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ...reader.advice import advise_condition
from ...reader.plan import Split
from ...reader.scan import MergeTerms, RowReader
from ...reader.skipping.predicates import Compare, IsNotNull, IsNull, NoneOf, OneOf, Predicate, StartsWith
from ...storage import open_storage
from .workers import freeze_imports

if TYPE_CHECKING:
    from ...options.model import HudiOptions
    from ...reader.buckets.bucket_groups import BucketChoice
    from ...reader.snapshot import Snapshot

# The module that Spark runs to plan a read with pushdown (spark.sql.python.filterPushdown.enabled).
_PUSHDOWN_WORKER = "data_source_pushdown_filters"
_OPERATORS: dict[str, Any] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_HOW = "Spark keeps conditions to itself; HudiTable.to_df(where=...) opens only files that can hold the wanted rows"
# NOT (a > 1) keeps rows for which a > 1 is false, and drops rows for which it is null.
_NEGATED: dict[str, Any] = {
    "EqualTo": "!=",
    "GreaterThan": "<=",
    "GreaterThanOrEqual": "<",
    "LessThan": ">=",
    "LessThanOrEqual": ">",
}


class HudiReader(DataSourceReader):
    """Reads the rows of one query.

    Spark pickles the reader into every task, without the snapshot and its file lists. ``schema`` has exactly the
    columns for Spark. With ``merged_alone`` the reader skips slices without logs, which Spark's own reader reads; with
    ``buckets`` it skips other buckets.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        schema: pa.Schema,
        options: HudiOptions,
        predicates: Sequence[Predicate] = (),
        *,
        merged_alone: bool = False,
        buckets: BucketChoice | None = None,
    ) -> None:
        self._snapshot: Snapshot | None = snapshot
        self._path = snapshot.storage.path
        self._storage_options = dict(options.storage_options)
        self._schema = schema
        self._table_schema = snapshot.schema
        self._watermark = snapshot.timeline.watermark()
        self._query = snapshot.query
        self._times = snapshot.times
        self._bases_alone = snapshot.bases_alone
        self._file_search = snapshot.file_search
        self._merged_alone = merged_alone
        self._buckets = buckets
        self._terms = MergeTerms(snapshot.config, options.merge_memory)
        self._split_size = options.split_size
        self._predicates = tuple(predicates)

    @property
    def columns(self) -> pa.Schema:
        return self._schema

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_snapshot": None}

    def partitions(self) -> Sequence[InputPartition]:
        """Return the splits of the query, which `read` gets one by one; an empty split if there are no rows to read.

        Spark needs at least one. A copy of the reader without the snapshot opens it again.
        """
        from ...reader.snapshot import open_snapshot  # noqa: PLC0415 (tasks, which open none, start sooner)

        snapshot = self._snapshot or open_snapshot(
            self._path,
            self._storage_options,
            self._watermark,
            self._query,
            bases_alone=self._bases_alone,
            file_search=self._file_search,
            schema=self._table_schema,
        )
        holds_bucket = None if self._buckets is None else self._buckets.holds
        splits = snapshot.plan(
            self._schema, self._predicates, self._split_size, merged_alone=self._merged_alone, wanted=holds_bucket
        )
        # A read of all files of a large table logs how to give a condition.
        if not self._predicates and not self._merged_alone and self._buckets is None:
            advise_condition(snapshot, len({part.path for split in splits for part in split.parts}), _HOW)
        # Later garbage collections pass over what this worker has imported.
        freeze_imports()
        return [InputPartition(split) for split in splits or [Split(())]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, in a task."""
        storage = open_storage(self._path, self._storage_options)
        rows = RowReader(storage, self._schema, self._table_schema, self._predicates, self._times, self._terms)
        yield from rows.read(partition.value)
        freeze_imports()


class HudiPushdownReader(HudiReader):
    """A reader with filter pushdown, for a DataFrame that serves one query.

    Spark plans all uses of one ``load()`` by the filters that it pushed last, and does not pass other filters to the
    reader, so a second query would lack rows. Therefore only a read with the option gets this class. If pushdown is
    off, Spark fails every read whose reader has a method ``pushFilters``.
    """

    def pushFilters(self, filters: Any) -> Any:
        """Keep filters that can skip files or row groups; Spark still evaluates every filter itself."""
        self._predicates += tuple(predicate for predicate in map(to_predicate, filters) if predicate is not None)
        return filters


def kind_of_reader(options: HudiOptions) -> type[HudiReader]:
    """Return the class with filter pushdown only if the options ask for it and Spark's planning process can use it."""
    pushing = bool(sys.argv) and sys.argv[-1].endswith(_PUSHDOWN_WORKER)
    return HudiPushdownReader if pushing and options.pushes_filters else HudiReader


def to_predicate(pushed: Any) -> Predicate | None:
    """Return the predicate of a filter of ``pyspark.sql.datasource``; None if the reader cannot use it.

    Spark 4.0 lacks the filter classes, so their names are matched.
    """
    negated = type(pushed).__name__ == "Not"
    inner = pushed.child if negated else pushed
    filter_name = type(inner).__name__
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    # The filter is on no column, or on a field of a struct.
    if len(path) != 1:
        return None
    column = path[0]
    if filter_name in {"IsNull", "IsNotNull"}:
        return IsNull(column) if (filter_name == "IsNull") != negated else IsNotNull(column)
    if filter_name == "EqualNullSafe" and inner.value is None:
        return IsNotNull(column) if negated else IsNull(column)
    if filter_name == "In":
        return NoneOf(column, tuple(inner.value)) if negated else OneOf(column, tuple(inner.value))
    if filter_name == "StringStartsWith" and not negated:
        return StartsWith(column, inner.value)
    operator = (_NEGATED if negated else _OPERATORS).get(filter_name)
    return Compare(column, operator, inner.value) if operator else None
