"""The record keys of file slices as a DataFrame, to join with the keys of rows.

Spark's own Parquet reader reads base files. Tasks in Python read slices with log files, and all slices if Spark has
no access to the table's store, with each slice in a single task.
"""

from __future__ import annotations

import logging
import math
import pickle
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ...errors import NullKeyError
from ...operations.locating.spread_lookup import keys_in
from ...storage.base import Storage
from ...table.files.file_group import FileSlice
from ...table.schema.columns import FILE_NAME, RECORD_KEY
from ..source.parquet_scan import scan_record_keys
from .key_columns import KEY, PATH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...table.seen_table import SeenTable

logger = logging.getLogger("pyhudi")

# The file id of the file group that contains a key.
GROUP = "_pyhudi_found"
# The partition of that file group, if it may differ from the row's partition.
HOME = "_pyhudi_home"
# Whether a row is in a log file.
LOGGED = "_pyhudi_logged"
_PIECE = "_pyhudi_piece"
# The file bytes of a Python task, which reads only the keys.
_BYTES_OF_A_TASK = 1 << 30


def table_keys(
    spark: SparkSession,
    file_slices: Sequence[FileSlice],
    table: SeenTable,
    between: tuple[str, str],
    *,
    in_python: bool,
) -> DataFrame | None:
    """Return the record keys of at least one slice, once for each row, with partition path, file id and `LOGGED`.

    The result is None if only Python can read the slices and ``in_python`` is false.

    Args:
        spark: The session that reads the files.
        file_slices: The slices to read.
        table: The table with one listing of its timeline, for the slices that Python reads.
        between: The least and the greatest key that matter; keys outside may be absent.
        in_python: Whether tasks in Python may read slices.
    """
    names = [file_slice.base.name for file_slice in file_slices if file_slice.base is not None]
    # Spark knows a key's file by its name only, and names are unique unless a user copied files within the table.
    read_by_spark = (
        [file_slice for file_slice in file_slices if not file_slice.logs] if len(set(names)) == len(names) else []
    )
    frames = []
    if read_by_spark:
        try:
            frames = [_keys_by_spark(spark, table.storage, read_by_spark, between)]
        except Exception:
            logger.info("table %s: Spark cannot read its files, so Python does", table.storage.path, exc_info=True)
            read_by_spark = []
    read_by_python = [file_slice for file_slice in file_slices if file_slice.logs or not read_by_spark]
    if read_by_python and not in_python:
        return None
    frames += [_keys_by_python(spark, read_by_python, table)] if read_by_python else []
    return reduce(DataFrame.union, frames)


def _keys_by_spark(
    spark: SparkSession, storage: Storage, file_slices: Sequence[FileSlice], between: tuple[str, str]
) -> DataFrame:
    """Return the keys of base files by Spark's own Parquet reader, without keys outside ``between``.

    ``file_slices`` are slices without logs in the table's store, ``storage``. The columns are as of `table_keys`. If
    Spark cannot open the files, this function raises Spark's error, upon which the caller reads them in Python.
    """
    files = pa.table(
        {
            FILE_NAME: pa.array([file_slice.base_file.name for file_slice in file_slices], pa.string()),
            PATH: pa.array([file_slice.partition_path for file_slice in file_slices], pa.string()),
            GROUP: pa.array([file_slice.file_id for file_slice in file_slices], pa.string()),
        }
    )
    keys = scan_record_keys(spark, storage, [file_slice.base_file for file_slice in file_slices])
    # Spark Connect looks for the files only when the schema is needed.
    _ = keys.schema
    error = NullKeyError(
        f"Base files of the table {storage.path} hold rows without a record key, so keys cannot be looked up.",
        "A table written without meta columns (hoodie.populate.meta.fields=false) has no keys: rewrite it, or keep "
        "using the writer that made it.",
    )
    # The line break separates the text that Spark appends.
    key = sf.coalesce(sf.col(RECORD_KEY), sf.raise_error(sf.lit(f"{error}\n")))
    # A row without a key has to pass, so that it fails the query.
    in_range = sf.col(RECORD_KEY).isNull() | sf.col(RECORD_KEY).between(*between)
    # `FILE_NAME` is the file's name as Spark knows it: the stored column of this name may have an older file's.
    key_rows = keys.where(in_range).select(key.alias(KEY), FILE_NAME)
    return key_rows.join(sf.broadcast(spark.createDataFrame(files)), FILE_NAME).select(
        PATH, KEY, GROUP, sf.lit(False).alias(LOGGED)
    )


def _keys_by_python(spark: SparkSession, file_slices: Sequence[FileSlice], table: SeenTable) -> DataFrame:
    """Return the keys of file slices by tasks in Python, which also read log files.

    ``table`` is the table with one listing of its timeline, and the columns are as of `table_keys`.
    """
    tasks = min(
        len(file_slices),
        math.ceil(sum(file_slice.size for file_slice in file_slices) / _BYTES_OF_A_TASK) + spark_tasks(spark),
    )
    packed = pa.table({_PIECE: pa.array([pickle.dumps(file_slice) for file_slice in file_slices], pa.binary())})

    def keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the keys of the slices in each batch, with their file groups."""
        for batch in batches:
            packs = batch.column(0).to_pylist()  # O(files)
            for file_slice, record_keys, logged in keys_in(table, map(pickle.loads, packs)):
                values = (file_slice.partition_path, file_slice.file_id, logged)
                path, group, of_log = (pa.repeat(value, len(record_keys)) for value in values)
                yield pa.RecordBatch.from_arrays([path, record_keys, group, of_log], names=[PATH, KEY, GROUP, LOGGED])

    # Round-robin, so that each task gets an equal share.
    spread = spark.createDataFrame(packed).repartition(tasks)
    return spread.mapInArrow(keys, f"{PATH} string, {KEY} string, {GROUP} string, {LOGGED} boolean")


def spark_tasks(spark: SparkSession) -> int:
    """Return the number of tasks of Spark's shuffles, which is known on Spark Connect too."""
    return max(1, int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200))
