"""Reads a snapshot, or parts of it, into record batches of exactly the requested columns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import CorruptFileError, UnsupportedTableError
from ..storage import open_storage
from ..storage.base import Storage
from ..storage.threads import as_they_come
from ..table.arrow.spill import local_spills
from ..table.config import TableConfig, load_config
from ..table.config.property_keys import MERGE_ON_READ
from ..table.files.base_file import BaseFileReader
from ..table.files.file_group import FileSlice, every_instant
from ..table.files.footers import batch_rows
from ..table.schema.columns import RECORD_KEY
from ..table.schema.fields import columns_named
from ..table.slices.merged_slice import MergedSlice
from .advice import advise_condition
from .plan import SlicePart, Split, whole
from .row_filter import PredicateFilter, RowFilter
from .skipping.predicates import Predicate
from .skipping.pruning import Pruning
from .skipping.search import Search
from .window import COMMIT_TIME, CommitTimes

if TYPE_CHECKING:
    from .snapshot import Snapshot


GIB = 1 << 30
# The share of a merge's memory for log entries and their folding; the allocator's reserve and the rows in flight take
# the rest, and at least so many bytes.
_ENTRIES_SHARE = 0.6
_IN_FLIGHT = 176 << 20
# Several threads merge at once if each gets so much.
_LEAST_OF_A_MERGE = 192 << 20
_LEAST_ENTRIES = 1 << 20
_HOW = "where=... opens only those that can hold the wanted rows, and explain(where=...) says which"


@dataclass(frozen=True, slots=True)
class MergeTerms:
    """By which properties of the table log files are merged, and in how many bytes of memory."""

    config: TableConfig
    memory: int = GIB


def scan(
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    predicates: Sequence[Predicate] = (),
    *,
    where: RowFilter | None = None,
    merge_memory: int = GIB,
    threads: int = 1,
    advises: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Check the columns, then yield the rows of a snapshot that satisfy every predicate and pass the filter ``where``.

    The rows have ``columns``, None for all, and come in the order of partition path and file id. Several threads share
    ``merge_memory``, the bytes for merging log files into base files, which limits their number, and yield file groups
    in any order. ``advises`` logs how to give a condition if the read opens many files.
    """
    schema = selected(snapshot, snapshot.schema.names if columns is None else columns)
    filters: list[RowFilter] = [PredicateFilter(tuple(predicates))] if predicates else []
    filters += [] if where is None else [where]
    compared = selected(snapshot, sorted({name for each in filters for name in each.columns}))
    for each in filters:
        # Raises for a value that cannot be compared with its column, before any file is opened.
        each.holds(pa.RecordBatch.from_pylist([], compared))
    all_predicates = tuple(predicate for each in filters for predicate in each.predicates)
    columns_read = pa.schema([*schema, *(field for field in compared if field.name not in schema.names)])
    if snapshot.config.table_type == MERGE_ON_READ:
        # Only tables of this type have log files to merge.
        threads = min(threads, merge_memory // _LEAST_OF_A_MERGE)
    terms = MergeTerms(snapshot.config, merge_memory // max(threads, 1))
    reader = RowReader(snapshot.storage, columns_read, snapshot.schema, all_predicates, snapshot.times, terms)

    def rows_of(file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Yield the wanted rows and columns of one slice."""
        for batch in reader.read(Split((whole(file_slice),))):
            matching = reduce(lambda rows, each: rows.filter(each.holds(rows)), filters, batch)
            if matching.num_rows:
                yield matching.select(schema.names) if len(columns_read) > len(schema) else matching

    def rows() -> Iterator[pa.RecordBatch]:
        """Yield the rows; the slices are found when the first row is read."""
        slices = snapshot.slices_of_keys(all_predicates)
        if advises and not all_predicates:
            advise_condition(snapshot, len(slices), _HOW)
        yield from as_they_come(rows_of, slices, min(threads, len(slices)))

    return rows()


def selected(snapshot: Snapshot, names: Sequence[str]) -> pa.Schema:
    """Return the schema of some columns of a snapshot, in this order.

    Raises `MissingColumnError` for a name that it lacks, and `DuplicateColumnError` for a name that comes twice.
    """
    return columns_named(names, snapshot.schema, f"table {snapshot.storage.path}")


def _memory_for_entries(memory: int) -> int:
    """Return how many bytes of a merge's memory log entries may take."""
    return max(min(int(memory * _ENTRIES_SHARE), memory - _IN_FLIGHT), _LEAST_ENTRIES)


@contextmanager
def naming_partition(storage: Storage, part: SlicePart) -> Iterator[None]:
    """Let errors about a file name its partition and table."""
    try:
        yield
    except (CorruptFileError, UnsupportedTableError) as error:
        raise type(error)(
            f"Reading partition {part.partition_path!r} of the table {storage.path}: {error.what}", error.todo
        ) from error


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads rows of file slices.

    Attributes:
        schema: The wanted columns, types and nullability; a column that a file lacks is null.
        predicates: Conjuncts that skip row groups; other rows are not filtered.
        times: The wanted values of ``_hoodie_commit_time``, exactly; None for all.
        terms: None to read the table's properties, and to skip nothing by its key.
    """

    storage: Storage
    schema: pa.Schema
    table_schema: pa.Schema
    predicates: Sequence[Predicate] = ()
    times: CommitTimes | None = None
    terms: MergeTerms | None = None

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split; errors about a file name its partition and table."""
        search = self._search(self.terms)
        for part in split.parts:
            with naming_partition(self.storage, part):
                yield from self._base_file_rows(part, search) if part.merged is None else self.merged(part.merged)

    def merged(
        self,
        file_slice: FileSlice,
        search: Search | None = None,
        wanted: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one slice, its base file merged with its logs.

        ``search`` replaces the reader's own search. ``wanted`` chooses rows by their keys, which must be among the
        columns; strings may then come as dictionaries.
        """
        terms = self.terms or MergeTerms(load_config(self.storage))
        columns = self._columns_to_read()
        with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
            merged = MergedSlice(
                self.storage,
                terms.config,
                file_slice,
                self.table_schema,
                # The slice holds only log files that the query shows, and tells which instants' blocks count.
                every_instant,
                memory=_memory_for_entries(terms.memory),
                open_spill=local_spills(open_storage(folder, durable=False)),
            )
            safe_predicates = Pruning(terms.config, self.table_schema, self._conjuncts).safe_before_merging()
            # Log files may hold other keys than the base file, so its keys do not skip them.
            key_search = replace(search or self._search(terms), predicates=tuple(safe_predicates))
            shown = file_slice.files[0]
            rows = merged.batches(
                columns,
                row_groups=lambda file: key_search.row_groups(file, shown),
                dictionaries=frozenset() if wanted is None else frozenset(columns.names),
                wanted=wanted,
            )
            yield from self._wanted_rows(rows)

    def _base_file_rows(self, part: SlicePart, search: Search) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a base file, of the row groups that the search leaves and the part has."""
        with BaseFileReader(self.storage, part.path, stated=part.stated) as reader:
            matching = search.row_groups(reader.parquet, part.path)
            groups = [number for number in matching if part.row_groups is None or number in part.row_groups]
            if not groups:
                return
            columns = self._columns_to_read()
            if not {*reader.stored_schema.names, RECORD_KEY}.intersection(columns.names):
                # If the file lacks all wanted columns, read the record key to count its rows.
                columns = columns.append(pa.field(RECORD_KEY, pa.string()))
            rows = batch_rows(reader.parquet, columns)
            yield from self._wanted_rows(reader.batches(columns, batch_rows=rows, row_groups=groups))

    @property
    def _conjuncts(self) -> list[Predicate]:
        """The predicates, with that on the times of commits if only some commits are wanted."""
        return [*self.predicates, *([] if self.times is None else [self.times.predicate()])]

    def _search(self, terms: MergeTerms | None) -> Search:
        return Search.of(self._conjuncts, self.table_schema, None if terms is None else terms.config)

    def _columns_to_read(self) -> pa.Schema:
        """Return the wanted columns, and the commit time if it decides about rows."""
        extra = [] if self.times is None or COMMIT_TIME in self.schema.names else [pa.field(COMMIT_TIME, pa.string())]
        return pa.schema([*self.schema, *extra])

    def _wanted_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the wanted commits, in the wanted columns."""
        for batch in batches:
            rows = batch if self.times is None else batch.filter(self.times.mask(batch.column(COMMIT_TIME)))
            if rows.num_rows:
                yield rows.select(self.schema.names) if batch.num_columns > len(self.schema) else rows
