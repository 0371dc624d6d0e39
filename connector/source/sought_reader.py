"""Reads the rows of some record keys through Spark, for `HudiTable.merge`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from ...reader.matches.matching_rows import MatchingRows
from ...reader.matches.sought_slices import SoughtSlices, SoughtSplit
from ...reader.plan import plan_splits
from ...storage import open_storage
from ...table.schema.columns import RECORD_KEY
from .reader import HudiReader
from .workers import freeze_imports

if TYPE_CHECKING:
    from ...options.model import HudiOptions
    from ...reader.matches.sought_keys import SoughtKeys
    from ...reader.snapshot import Snapshot


class SoughtReader(HudiReader):
    """Reads the rows of some record keys; each task gets only the keys that it looks for."""

    def __init__(self, snapshot: Snapshot, schema: pa.Schema, options: HudiOptions, keys: SoughtKeys) -> None:
        super().__init__(snapshot, schema, options)
        self._keys: SoughtKeys | None = keys

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_keys": None}

    def splits(self) -> list[SoughtSplit]:
        """Return what each task reads; a copy of the reader in a task cannot tell."""
        if self._snapshot is None or self._keys is None:
            raise ValueError("a copy of a reader plans nothing")
        sought_slices = SoughtSlices.of(self._snapshot, self._keys)
        return sought_slices.splits(plan_splits(sought_slices.slices, {}, self._split_size))

    def partitions(self) -> Sequence[InputPartition]:
        splits = self.splits()
        freeze_imports()
        return [InputPartition(split) for split in splits or [SoughtSplit(())]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the keys of a split, without the record key if the columns lack it."""
        storage = open_storage(self._path, self._storage_options)
        names = self._schema.names
        read_columns = self._schema if RECORD_KEY in names else self._schema.append(pa.field(RECORD_KEY, pa.string()))
        for rows in MatchingRows(storage, read_columns, self._table_schema, self._terms).read(partition.value):
            yield rows if read_columns is self._schema else rows.select(names)
        freeze_imports()
