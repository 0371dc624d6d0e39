"""A table as one reader sees it: its columns and file slices as of one moment of its timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from ..errors import TableConfigError, TableNotFoundError, UnsupportedTableError
from ..index.registry import index_for
from ..storage import open_storage
from ..storage.base import Storage
from ..table.base_file import BaseFileReader
from ..table.config import TableConfig, check_supported, load_config
from ..table.latest_schema import latest_schema
from ..table.names import bucket_of
from ..table.schema import with_meta
from ..table.view import FileSlice, open_view
from ..timeline.layout import layout_of
from ..timeline.timeline import Timeline, Watermark
from .plan import RowGroup, Split, plan_splits
from .predicates import Predicate
from .pruning import partition_may_match, wanted_buckets
from .statistics import leaves_of, matching_row_groups

_FOOTER_THREADS = 16


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table as of one moment.

    Attributes:
        storage: Rooted at the table.
        config: The table's properties.
        timeline: As of the moment; later instants are unseen.
        schema: All columns, the meta columns first, as Apache Hudi shows them; canonical types.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    schema: pa.Schema

    def slices(self, predicates: Sequence[Predicate] = ()) -> list[FileSlice]:
        """Return the file slices that may hold rows which satisfy every predicate; no file is opened."""
        view = open_view(self.storage, self.timeline)
        partitions = [
            path for path in view.partitions() if partition_may_match(path, predicates, self.config, self.schema)
        ]
        buckets = self._buckets(predicates)
        found = [one for path in partitions for one in view.slices(path).values()]
        return [one for one in found if buckets is None or bucket_of(one.file_id) in buckets]

    def plan(self, schema: pa.Schema, predicates: Sequence[Predicate], split_size: int) -> list[Split]:
        """Return what each task reads.

        Only the footers of files larger than a split are read here, to cut the files between row groups; the rest is
        left to the tasks, which leave out row groups by themselves.

        Args:
            schema: The columns that are read.
            predicates: Conjuncts that need not be evaluated exactly.
            split_size: Bytes that one task reads.
        """
        slices = self.slices(predicates)
        large = [one for one in slices if one.base.size > split_size]
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            footers = pool.map(lambda one: self._row_groups(one.base.path, schema, predicates), large)
            known = {one.base.path: groups for one, groups in zip(large, footers, strict=True)}
        return plan_splits(slices, known, split_size)

    def _buckets(self, predicates: Sequence[Predicate]) -> frozenset[int] | None:
        if not predicates or self.config.index_type != "BUCKET" or self.config.bucket_count is None:
            return None
        try:
            return wanted_buckets(predicates, self.config, self.schema, index_for(self.config).buckets)
        except (UnsupportedTableError, TableConfigError):
            # A table can be read without the index and the key generator that write it.
            return None

    def _row_groups(self, path: str, schema: pa.Schema, predicates: Sequence[Predicate]) -> list[RowGroup]:
        with BaseFileReader(self.storage, path) as reader:
            metadata = reader.parquet.metadata
            leaves = leaves_of(reader.parquet, schema.names)
            return [
                RowGroup(number, sum(metadata.row_group(number).column(leaf).total_compressed_size for leaf in leaves))
                for number in matching_row_groups(reader.parquet, predicates, self.schema)
            ]


def open_snapshot(
    path: str, storage_options: Mapping[str, str] | None = None, watermark: Watermark | None = None
) -> Snapshot:
    """Open a table for reading.

    Args:
        path: The table's path.
        storage_options: Options of the store.
        watermark: The moment; None for now.

    Raises:
        TableError: There is no table that pyhudi can read.
    """
    storage = open_storage(path, storage_options)
    config = load_config(storage)
    check_supported(config, storage.path, writing=False)
    timeline = Timeline.load(storage, layout_of(config))
    if watermark is not None:
        timeline = timeline.as_of(watermark)
    schema = latest_schema(storage, config, timeline)
    if schema is None:
        raise TableNotFoundError(
            f"The table {storage.path} has properties, but nothing was ever written to it, so that it has no columns.",
            "Write to it first.",
        )
    return Snapshot(storage, config, timeline, with_meta(schema))
