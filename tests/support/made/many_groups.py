"""A table of very many file groups, made in seconds: its commit names all, and a hundred small files stand for all.

File group i of all holds in its column ``n`` numbers of the band i % 100, so that a condition on ``n`` fits one file
of a hundred, in each partition. All rows have the partition in the middle; the keys of a file group are those of its
bucket, among those of others.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyhudi.index.registry import computed_index_for
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config import TableConfig, create_config
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.names import BaseFileName, WriteToken, new_bucket_file_id, new_file_id
from pyhudi.table.files.partitions import write_partition_metafile
from pyhudi.table.schema.columns import META_COLUMNS, avro_schema
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CommitMetadata, WriteStat

from .metadata_records import ColumnBounds, Files

BANDS = 100
BAND = 1_000
_PIECE = 100_000
_TIME, _DONE = "20260101000000000", "20260101000000500"
_META = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_KINDS = (pa.int64(), pa.string(), pa.float64(), pa.date32(), pa.timestamp("us", "UTC"))


@dataclass(frozen=True)
class ManyGroups:
    """The measures of such a table.

    Attributes:
        there: Whether its data files are.
        buckets: Whether the table has the bucket index; else nothing but a record index tells where a key is.
    """

    partitions: int = 1_000
    groups: int = 40
    columns: int = 32
    there: bool = True
    buckets: bool = True

    @property
    def count(self) -> int:
        """How many file groups it has."""
        return self.partitions * self.groups

    @property
    def middle(self) -> str:
        return f"p{self.partitions // 2}"

    def condition(self, band: int = 37) -> str:
        """Return a condition that one file of a hundred fits."""
        return f"n >= {band * BAND} AND n < {(band + 1) * BAND}"

    def key(self, bucket: int) -> int:
        """Return the least key of a bucket."""
        return _first_keys(self.groups)[bucket]

    def bands(self) -> list[pa.Table]:
        """Return the rows of each band."""
        return [_band(self, band) for band in range(min(BANDS, self.count))]

    def file_id(self, partition: str, group: int) -> str:
        return new_bucket_file_id("0", partition, group) if self.buckets else new_file_id("0", partition, group)


def make(path: str, measures: ManyGroups) -> tuple[Files, list[ColumnBounds]]:
    """Make the table without a metadata table; return its files and their bounds."""
    storage = open_storage(path)
    create_config(storage, _config(measures.groups if measures.buckets else None))
    bands = measures.bands()
    bands_folder = Path(path) / ".hoodie" / "bands"
    bands_folder.mkdir(parents=True)
    for number, band in enumerate(bands):
        pq.write_table(band, bands_folder / f"{number}.parquet", compression="none")
    sizes = [(bands_folder / f"{number}.parquet").stat().st_size for number in range(len(bands))]
    stats: dict[str, list[WriteStat]] = {}
    names: list[str] = []
    for number in range(measures.partitions):
        partition = f"p{number}"
        write_partition_metafile(storage, partition, _TIME)
        for group in range(measures.groups):
            band = len(names) % BANDS
            file_id = measures.file_id(partition, group)
            names.append(BaseFileName(file_id, WriteToken(number, 1, number), _TIME).format())
            place = f"{partition}/{names[-1]}"
            if measures.there:
                os.link(bands_folder / f"{band}.parquet", f"{path}/{place}")
            stat = _stat(file_id, partition, place, bands[band].num_rows, sizes[band])
            stats.setdefault(partition, []).append(stat)
    shutil.rmtree(bands_folder)
    _commit(storage, stats, bands[0].schema)
    of_files = np.arange(measures.count) % BANDS
    partitions = np.repeat([f"p{number}" for number in range(measures.partitions)], measures.groups)
    files = Files(
        pa.array(partitions, pa.string()),
        pa.array(names, pa.string()),
        np.array(sizes, dtype=np.int64)[of_files],
        np.array([band.num_rows for band in bands], dtype=np.int64)[of_files],
    )
    return files, _bounds(bands, of_files)


def _config(buckets: int | None) -> TableConfig:
    return TableConfig.new(
        TableSettings(name="t", record_key_fields=("id",), partition_fields=("p",), bucket_count=buckets)
    )


def _stat(file_id: str, partition: str, path: str, rows: int, size: int) -> WriteStat:
    return WriteStat(
        file_id=file_id,
        path=path,
        partition_path=partition,
        prev_commit="null",
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
    )


def _commit(storage: Storage, stats: dict[str, list[WriteStat]], schema: pa.Schema) -> None:
    plain = pa.schema([field for field in schema if field.name not in META_COLUMNS])
    body = CommitMetadata(
        partition_to_write_stats=stats, extra_metadata={"schema": avro_schema(plain, "t")}, operation_type="UPSERT"
    )
    for name in ("commit.requested", "inflight"):
        storage.write(f".hoodie/timeline/{_TIME}.{name}", b"")
    storage.write(f".hoodie/timeline/{_TIME}_{_DONE}.commit", encode(body))


def _band(measures: ManyGroups, band: int) -> pa.Table:
    """Return the rows of one band: a key of each bucket that meets it."""
    step = math.gcd(measures.groups, BANDS)
    ids = sorted(_first_keys(measures.groups)[band % step :: step])
    rows = len(ids)
    meta = {name: pa.array([_TIME] * rows) for name in META_COLUMNS}
    meta["_hoodie_record_key"] = pa.array([str(one) for one in ids])
    meta["_hoodie_partition_path"] = pa.array([measures.middle] * rows)
    meta["_hoodie_file_name"] = pa.array([f"band-{band}"] * rows)
    data = {
        "id": pa.array(ids, pa.int64()),
        "p": pa.array([measures.middle] * rows),
        "n": pa.array(np.arange(rows, dtype=np.int64) + band * BAND),
    }
    for number in range(measures.columns - len(data)):
        values = pa.array(np.arange(rows, dtype=np.int64) + number * BAND + band)
        kind = _KINDS[number % len(_KINDS)]
        data[f"c{number}"] = values.cast(pa.int32()).cast(kind) if kind == pa.date32() else values.cast(kind)
    return pa.table({**meta, **data})


@lru_cache
def _first_keys(groups: int) -> list[int]:
    """Return the least key of each bucket."""
    index = computed_index_for(_config(groups))
    first = np.full(groups, -1, dtype=np.int64)
    begin = 0
    while (first < 0).any():
        ids = np.arange(begin, begin + _PIECE)
        buckets, at = np.unique(index.buckets(pa.array(ids).cast(pa.string())), return_index=True)
        first[buckets] = np.where(first[buckets] < 0, ids[at], first[buckets])
        begin += _PIECE
    return [*map(int, first)]


def _bounds(bands: Sequence[pa.Table], of_files: np.ndarray[Any, Any]) -> list[ColumnBounds]:
    """Return the bounds of the columns of which Apache Hudi keeps bounds."""
    column_bounds = []
    none = np.zeros(len(of_files), dtype=np.int64)
    for name in (*_META, *(name for name in bands[0].column_names if name not in META_COLUMNS)):
        kind = bands[0].schema.field(name).type
        extremes = [pc.min_max(band[name]) for band in bands]
        least, greatest = (pa.array([each[side].as_py() for each in extremes], kind) for side in ("min", "max"))
        at = pa.array(of_files)
        column_bounds.append(ColumnBounds(name, least.take(at), greatest.take(at), none))
    return column_bounds
