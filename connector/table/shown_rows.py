"""What a call of `HudiTable.to_df` shows, pinned to one moment: as one DataFrame, or as a DataFrame for each part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...options.read import options_of_query
from ...options.sources import ResolvedOptions
from ...reader.skipping.predicates import Predicate
from ...reader.snapshot import Snapshot, open_snapshot
from ...table.files.file_group import FileSlice
from ...table.schema.columns import without_meta
from ..conditions.condition import ParsedCondition, Where, parse_condition
from ..conditions.tree import column_named
from ..source.parts import Part
from ..source.spark_types import select
from .snapshot_frames import SnapshotFrames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class AskedRows:
    """The arguments of `HudiTable.to_df`.

    Attributes:
        newest: Whether the rows are those of the newest snapshot, whatever query the options of the table and of the
            session name: rows to change must not be older.
    """

    columns: str | Sequence[str] | None = None
    where: Where | None = None
    meta: bool = True
    as_of: str | date | None = None
    since: str | date | None = None
    until: str | date | None = None
    read_optimized: bool = False
    newest: bool = False

    def query(self, path: str) -> dict[str, Any]:
        """Return the options of the query on a table at a path; OptionConflictError if there is no such query."""
        return options_of_query(
            "to_df",
            path,
            as_of=self.as_of,
            since=self.since,
            until=self.until,
            read_optimized=self.read_optimized,
        )


@dataclass(frozen=True, slots=True)
class ShownRows:
    """Rows of a snapshot.

    Attributes:
        columns: The columns to show.
        read_columns: The columns to show, and those that conditions need.
        condition: The condition that the rows fulfil; None for all rows.
    """

    frames: SnapshotFrames
    columns: pa.Schema
    read_columns: pa.Schema
    condition: ParsedCondition | None = None

    @property
    def spark(self) -> SparkSession:
        return self.frames.spark

    @property
    def snapshot(self) -> Snapshot:
        return self.frames.snapshot

    @property
    def path(self) -> str:
        return self.frames.path

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        return () if self.condition is None else self.condition.predicates

    def slices(self) -> list[FileSlice]:
        """Return the file slices that may hold such rows."""
        return self.snapshot.slices_of_keys(self.predicates)

    def with_columns(self, further_names: Iterable[str]) -> ShownRows:
        """Return the same rows, read with more columns, for `df` to evaluate a condition on them."""
        more = [self.snapshot.schema.field(name) for name in further_names if name not in self.read_columns.names]
        return replace(self, read_columns=pa.schema([*self.read_columns, *more]))

    def df(self, part: Part | None = None, check: Column | None = None) -> DataFrame:
        """Return the rows, or a part of them; ``check`` is a condition that holds for all or fails."""
        frame = self.frames.of(self.read_columns, self.predicates, part)
        if self.condition is not None:
            frame = frame.where(self.condition.condition)
        if check is not None:
            frame = frame.where(check)
        if self.condition is None and self.read_columns is self.columns:
            return frame
        return frame.select(*map(column_named, self.columns.names))


def shown_rows(spark: SparkSession, path: str, resolved: ResolvedOptions, rows: AskedRows) -> ShownRows:
    """Return the rows of a table that `to_df` shows, as a plan that reads no row yet.

    ``rows`` are the arguments of the call, and ``resolved`` has its options, those of its query included.
    """
    resolved = resolved.for_newest() if rows.newest else resolved
    options = resolved.options
    snapshot = open_snapshot(
        path,
        options.storage_options,
        query=options.to_query(),
        bases_alone=options.bases_alone,
        file_search=options.file_search,
    )
    frames = SnapshotFrames(spark, path, resolved, snapshot)
    shown_columns = snapshot.schema if rows.meta else without_meta(snapshot.schema)
    if rows.columns is not None:
        shown_columns = select(snapshot.schema, _listed(rows.columns, snapshot.schema), path)
    if rows.where is None or (isinstance(rows.where, Mapping) and not rows.where):
        return ShownRows(frames, shown_columns, shown_columns)
    condition = parse_condition(spark, rows.where, snapshot)
    return ShownRows(frames, shown_columns, condition.read_with(spark, shown_columns, snapshot.schema), condition)


def _listed(columns: str | Sequence[str], schema: pa.Schema) -> Sequence[str]:
    """Return the columns to show as a list; a text with commas is split unless it is itself the name of a column."""
    if not isinstance(columns, str):
        return columns
    return [columns] if columns in schema.names else [name.strip() for name in columns.split(",")]
