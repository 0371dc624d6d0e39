"""Reading: a snapshot, or pieces of it, in; record batches of exactly the requested columns out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ..errors import CorruptFileError, MissingColumnError, UnsupportedTableError
from ..storage.base import Storage
from ..table.config import load_config
from ..table.files.base_file import BaseFileReader
from ..table.files.footers import batch_rows
from ..table.schema.columns import RECORD_KEY
from .merging import GIB, MergeTerms, merge_slice
from .plan import Piece, Split, whole
from .predicates import Predicate, columns_of, satisfied
from .search import Search
from .window import COMMIT_TIME, CommitTimes

if TYPE_CHECKING:
    from .snapshot import Snapshot


def scan(
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    predicates: Sequence[Predicate] = (),
    *,
    merge_memory: int = GIB,
) -> Iterator[pa.RecordBatch]:
    """Return the rows that a snapshot shows and that satisfy every predicate, by partition path and file id.

    One file slice is read at a time, and its batches as they are asked for.

    Args:
        snapshot: The table as a query shows it.
        columns: The columns wanted; None for all.
        predicates: Conjuncts, with values of the columns' types.
        merge_memory: Bytes that merging one slice may take.

    Raises:
        MissingColumnError: The table has no such column.
        InvalidOptionError: A predicate compares a column with a value of another type.
        PyHudiError: See `Snapshot.slices` and `read_split`.
    """
    schema = _selected(snapshot, snapshot.schema.names if columns is None else columns)
    compared = _selected(snapshot, sorted({name for one in predicates for name in columns_of(one)}))
    satisfied(pa.RecordBatch.from_pylist([], compared), predicates)
    asked = pa.schema([*schema, *(one for one in compared if one.name not in schema.names)])
    return _rows(snapshot, schema, asked, predicates, MergeTerms(snapshot.config, merge_memory))


def _selected(snapshot: Snapshot, names: Sequence[str]) -> pa.Schema:
    for name in names:
        if name not in snapshot.schema.names:
            raise MissingColumnError(
                f"The table {snapshot.storage.path} has no column {name!r}.",
                f"It has {', '.join(snapshot.schema.names)}.",
            )
    return pa.schema([snapshot.schema.field(name) for name in names])


def _rows(
    snapshot: Snapshot, schema: pa.Schema, asked: pa.Schema, predicates: Sequence[Predicate], terms: MergeTerms
) -> Iterator[pa.RecordBatch]:
    for one in snapshot.slices_of_keys(predicates):
        split = Split((whole(one),))
        for batch in read_split(snapshot.storage, split, asked, predicates, snapshot.schema, snapshot.times, terms):
            rows = batch.filter(satisfied(batch, predicates)) if predicates else batch
            if rows.num_rows:
                yield rows.select(schema.names) if len(asked) > len(schema) else rows


def read_split(
    storage: Storage,
    split: Split,
    schema: pa.Schema,
    predicates: Sequence[Predicate],
    table_schema: pa.Schema,
    times: CommitTimes | None = None,
    terms: MergeTerms | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split.

    Args:
        storage: Rooted at the table.
        split: What to read.
        schema: The columns wanted, with the types and nullability wanted; those a file lacks are null.
        predicates: Conjuncts; row groups in which no row satisfies them all are left out, other rows are not.
        table_schema: The table's columns, canonical.
        times: Which rows are wanted, by their ``_hoodie_commit_time``, exactly; None for all.
        terms: How slices with logs are merged, and keys are spelt; None for what the table itself says, and to leave
            nothing out by its key.

    Raises:
        CorruptFileError: A file cannot be read; it is named with its partition and table.
        UnsupportedTableError: A file is encrypted, or of a kind that pyhudi does not read; it is named likewise.
    """
    search = Search.of(predicates, table_schema, None if terms is None else terms.config)
    for piece in split.pieces:
        try:
            if piece.merged is None:
                yield from _scan_piece(storage, piece, schema, search, times)
            else:
                terms = terms or MergeTerms(load_config(storage))
                yield from merge_slice(storage, piece.merged, schema, predicates, table_schema, terms, times)
        except (CorruptFileError, UnsupportedTableError) as error:
            raise type(error)(
                f"Reading partition {piece.partition_path!r} of the table {storage.path}: {error.what}", error.todo
            ) from error


def _scan_piece(
    storage: Storage,
    piece: Piece,
    schema: pa.Schema,
    search: Search,
    times: CommitTimes | None,
) -> Iterator[pa.RecordBatch]:
    if times is not None:
        search = search.with_more(times.predicate())
    with BaseFileReader(storage, piece.path) as reader:
        matching = search.row_groups(reader.parquet, piece.path)
        groups = [number for number in matching if piece.row_groups is None or number in piece.row_groups]
        if not groups:
            return
        # A read of columns that the file lacks needs one that it has, to know how many rows there are.
        present = set(reader.parquet.schema_arrow.names)
        needed = [] if times is None else [COMMIT_TIME]
        needed += [] if present.intersection([*schema.names, *needed]) else [RECORD_KEY]
        asked = pa.schema([*schema, *(pa.field(name, pa.string()) for name in needed if name not in schema.names)])
        for batch in reader.batches(asked, batch_rows=batch_rows(reader.parquet, asked), row_groups=groups):
            rows = batch if times is None else batch.filter(times.mask(batch.column(COMMIT_TIME)))
            if rows.num_rows:
                yield rows.select(schema.names) if len(asked) > len(schema) else rows
