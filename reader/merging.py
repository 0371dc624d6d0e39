"""Reading one file slice with logs: its base file merged with them, within a bound of memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..storage import open_storage
from ..storage.base import Storage
from ..table.arrow.spill import local_spills
from ..table.config import TableConfig
from ..table.files.file_group import FileSlice
from ..table.slices.merged_slice import MergedSlice
from .predicates import Predicate
from .pruning import Pruning
from .search import Search
from .window import COMMIT_TIME, CommitTimes

GIB = 1 << 30
# Of what a task may take for merging, what the entries of logs may take and their folding; the rest is for what the
# allocator keeps, and for the rows on their way.
_ENTRIES_SHARE = 0.6
_LEAST_ENTRIES = 1 << 20


@dataclass(frozen=True, slots=True)
class MergeTerms:
    """How a read merges slices.

    Attributes:
        config: The table's properties.
        memory: Bytes that merging one slice may take.
    """

    config: TableConfig
    memory: int = GIB


def merge_slice(
    storage: Storage,
    piece: FileSlice,
    schema: pa.Schema,
    predicates: Sequence[Predicate],
    table_schema: pa.Schema,
    terms: MergeTerms,
    times: CommitTimes | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one slice.

    Args:
        storage: Rooted at the table.
        piece: The slice.
        schema: The columns wanted.
        predicates: Conjuncts; rows that do not satisfy them may be left out.
        table_schema: The table's columns, canonical.
        terms: How it is merged.
        times: Which rows are wanted, by their ``_hoodie_commit_time``, exactly; None for all.

    Raises:
        CorruptFileError: The base file, or a block that counts, cannot be read.
    """
    conjuncts = [*predicates, *([] if times is None else [times.predicate()])]
    extra = [] if times is None or COMMIT_TIME in schema.names else [pa.field(COMMIT_TIME, pa.string())]
    asked = pa.schema([*schema, *extra])
    with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
        merged = MergedSlice(
            storage,
            terms.config,
            piece,
            table_schema,
            # The log files are those that the query shows, and each holds the blocks of one instant.
            lambda time: True,
            memory=max(int(terms.memory * _ENTRIES_SHARE), _LEAST_ENTRIES),
            open_spill=local_spills(open_storage(folder, durable=False)),
        )
        safe = tuple(Pruning(terms.config, table_schema, conjuncts).settled_by_key())
        # Log files are read whatever the base file's keys are: they may hold others.
        search = replace(Search.of(predicates, table_schema, terms.config), predicates=safe)
        for batch in merged.batches(asked, row_groups=lambda file: search.row_groups(file, piece.files[0])):
            rows = batch if times is None else batch.filter(times.mask(batch.column(COMMIT_TIME)))
            if rows.num_rows:
                yield rows.select(schema.names) if extra else rows
