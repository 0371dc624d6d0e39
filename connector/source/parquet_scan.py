"""Reads base files with Spark's own Parquet reader, many as one list, and casts old types that it does not convert.

Tests with Spark 4.0 to 4.3, vectorised and row by row, show which type changes Spark reads like Apache Hudi: whole
numbers as bigint and int as double, decimals with more digits, strings as binary, and absent columns as null. All
others fail or differ (a float becomes 1.100000023841858), so the file's type is read and then cast.

Spark looks up every path that it gets, more than 32 in a job with a task for each: 40,000 paths, which pyhudi has just
listed, take it most of a minute. Instead of listing a folder, Spark reads the log of a streaming sink in it, whose
entries may be anywhere. `read_list` writes such a log for the files of one DataFrame; Spark reads it immediately and
only once.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from ...errors import SchemaMismatchError
from ...reader.advice import advise_condition
from ...reader.file_schemas import by_file_schema
from ...reader.skipping.predicates import Predicate
from ...reader.snapshot import Snapshot
from ...reader.window import COMMIT_TIME
from ...storage import open_storage
from ...storage.base import Storage
from ...table.files.base_file import check_listed
from ...table.files.file_group import BaseFile, FileSlice
from ...table.schema.casts import fits, keeps_values
from ...table.schema.columns import FILE_NAME, RECORD_KEY
from ...table.schema.types import children, is_list, sql_name
from .believed_size import COMPRESSION, value_of, wide_column
from .parts import Part
from .spark_types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The setting by which a session ignores the logs of streaming sinks.
IGNORED = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
# Characters of a path that Java does not escape in a URI.
_PLAIN_IN_PATHS = "/:@!$&'()*+,;=~-._"

# More files go to Spark in a list: it would look up each path in a task of a job, see
# spark.sql.sources.parallelPartitionDiscovery.threshold.
FEW = 32
_HOW = "to_df(where=...) opens only those that can hold the wanted rows, and explain(where=...) says which"

# If Spark cannot read a list, the data source reads more files than these.
MOST_PATHS = 1000

# Do not infer partitions from paths, do not skip files silently, and check the checksums of pages.
_READ_AS_THEY_ARE = {
    "recursiveFileLookup": "true",
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "__globPaths__": "false",
    "datetimeRebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
}


def scan_files(
    spark: SparkSession,
    snapshot: Snapshot,
    columns: pa.Schema,
    by_source: Callable[[Sequence[FileSlice] | None], DataFrame],
    predicates: Sequence[Predicate] = (),
    part: Part | None = None,
) -> DataFrame:
    """Return the rows of a snapshot, or of a part of it.

    Args:
        spark: The session that reads the base files without logs.
        snapshot: The files of the query.
        columns: The columns to return, in the types of the table.
        by_source: Reads in Python the slices that it gets, those with logs, or all slices if it gets None.
        predicates: Files in which no row satisfies all of them may be skipped.
        part: The slices of some buckets, and a limit of Spark's estimate of their bytes; None for all slices.
    """
    slices = snapshot.slices_of_keys(predicates) if part is None else part.slices
    if part is None and not predicates:
        # If a large table is read without a condition, a log line recommends one.
        advise_condition(snapshot, len(slices), _HOW)
    without_logs = [file_slice for file_slice in slices if not file_slice.logs]
    # Spark would take too long to look up so many paths, so Python reads all files.
    if len(without_logs) > MOST_PATHS and not reads_lists(spark):
        return by_source(None)
    frames = (
        [_BaseFileScan(spark, snapshot, None if part is None else part.most).rows(without_logs, columns)]
        if without_logs
        else []
    )
    with_logs = [file_slice for file_slice in slices if file_slice.logs]
    frames += [by_source(with_logs)] if with_logs else []
    if frames:
        return reduce(DataFrame.union, frames)
    # A part may be a side of a join, for which `no_rows` is made.
    return spark.createDataFrame([], to_spark(columns)) if part is None else no_rows(spark, to_spark(columns))


def no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return no rows, of columns that Spark does not take for constants.

    Spark would put constants into the condition of a join, and join without a key then.
    """
    # Spark cannot know that the element of the array is null, because the column ``id`` selects it.
    place = sf.col("id").cast("int")
    nulls = [sf.get(sf.array(sf.lit(None).cast(field.dataType)), place).alias(field.name) for field in schema]
    return spark.range(0).select(*nulls)


@dataclass(frozen=True, slots=True)
class _BaseFileScan:
    """Scans base files; Spark's estimate of their size is to be ``most`` bytes, or unchanged for None."""

    spark: SparkSession
    snapshot: Snapshot
    most: int | None = None

    def rows(self, slices: Sequence[FileSlice], columns: pa.Schema) -> DataFrame:
        """Return the rows of the base files of slices, which have no logs, in these columns of the table.

        Spark would convert some types of older files otherwise than Apache Hudi, so their values are cast here.
        """
        # The commit times of an incremental query; None for a query of all rows.
        times = self.snapshot.times
        extra = [] if times is None or COMMIT_TIME in columns.names else [self.snapshot.schema.field(COMMIT_TIME)]
        read_columns = pa.schema([*columns, *extra])
        wide = None
        if self.most is not None:
            # Spark estimates rows at the bytes of their files times this factor.
            size = sum(file_slice.size for file_slice in slices) * float(value_of(self.spark, COMPRESSION))
            wide = wide_column(math.ceil(size), self.most, read_columns)
        direct_files: list[BaseFile] = []
        frames: list[DataFrame] = []
        for schema, group in by_file_schema(self.snapshot.timeline, slices, self.snapshot.schema):
            files = [file_slice.base_file for file_slice in group]
            if all(_is_read_directly(schema, field) for field in read_columns):
                direct_files += files
            else:
                frames.append(
                    _cast_columns(self._scan(_types_to_scan(schema, read_columns), files, wide), schema, read_columns)
                )
        frames = [self._scan(read_columns, direct_files, wide), *frames] if direct_files else frames
        rows = reduce(DataFrame.union, frames)
        if times is None:
            return rows
        in_window = (sf.col(COMMIT_TIME) >= times.least) & ~sf.col(COMMIT_TIME).isin(list(times.less))
        return rows.where(in_window).select(*columns.names)

    def _scan(self, columns: pa.Schema, files: Sequence[BaseFile], wide: StructField | None) -> DataFrame:
        """Return the rows of files in these types; a wide column sets the estimate and is dropped."""
        schema, storage = StructType([*to_spark(columns), *([] if wide is None else [wide])]), self.snapshot.storage
        # Spark, unlike the reader of pyhudi, does not compare the size of a file with the size that its commit states.
        check_listed(storage, files)
        sized_files = [(storage.uri(file.path), file.size) for file in files]
        if len(files) <= FEW or not reads_lists(self.spark):
            frame = _scan(self.spark, schema, [uri for uri, _ in sized_files])
        else:
            if storage.remote:
                # Let Spark fail here if it has no class for the store, which it does not check for a list of files.
                _scan(self.spark, schema, [sized_files[0][0]])
            frame = read_list(self.spark, sized_files, schema, _READ_AS_THEY_ARE)
        return frame if wide is None else frame.drop(wide.name)


def scan_record_keys(spark: SparkSession, storage: Storage, files: Sequence[BaseFile]) -> DataFrame:
    """Return the record key of each row of base files, with the name of its file as Spark knows it.

    The file name in the rows' meta column may be that of an older file.
    """
    # Spark does not compare the size of a file with the size that its commit states.
    check_listed(storage, files)
    schema = to_spark(pa.schema([pa.field(RECORD_KEY, pa.string())]))
    keys = _scan(spark, schema, [storage.uri(file.path) for file in files])
    return keys.select(RECORD_KEY, sf.col("_metadata.file_name").alias(FILE_NAME))


def lacks_file_system(error: Exception) -> bool:
    """Return whether Spark has no class for the files' store, as for S3 without hadoop-aws."""
    text = str(error)
    return "No FileSystem for scheme" in text or ("ClassNotFoundException" in text and "FileSystem" in text)


def _scan(spark: SparkSession, schema: StructType, files: Sequence[str]) -> DataFrame:
    return spark.read.schema(schema).options(**_READ_AS_THEY_ARE).parquet(*files)


def _types_to_scan(file: pa.Schema, columns: pa.Schema) -> pa.Schema:
    """Return ``columns`` of the table in the types in which Spark reads them from a file with the schema ``file``."""
    return pa.schema([column if _is_read_directly(file, column) else file.field(column.name) for column in columns])


def _cast_columns(frame: DataFrame, file: pa.Schema, columns: pa.Schema) -> DataFrame:
    """Return ``columns`` in the types of the table, converted if Spark read them in the types of the file."""
    return frame.select(
        *(
            sf.col(field.name)
            if _is_read_directly(file, field)
            else _converted(sf.col(field.name), file.field(field.name).type, field.type).alias(field.name)
            for field in columns
        )
    )


def _is_read_directly(file: pa.Schema, column: pa.Field) -> bool:
    """Return whether Spark reads a column from a file in its type of the table; an absent column is null."""
    return column.name not in file.names or is_read_as(file.field(column.name).type, column.type)


def is_read_as(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Return whether Spark's Parquet reader converts ``from_type`` of a file to ``to_type`` like Apache Hudi.

    For any other pair, the caller lets Spark read the file's own type, and casts the values.
    """
    types = pa.types
    if types.is_struct(from_type) and types.is_struct(to_type):
        stored_types = {field.name: field.type for field in children(from_type)}
        return all(
            field.name not in stored_types or is_read_as(stored_types[field.name], field.type)
            for field in children(to_type)
        )
    if (is_list(from_type) and is_list(to_type)) or (types.is_map(from_type) and types.is_map(to_type)):
        return all(
            is_read_as(field.type, other.type)
            for field, other in zip(children(from_type), children(to_type), strict=True)
        )
    if types.is_decimal(from_type) and types.is_decimal(to_type):
        return from_type == to_type or keeps_values(from_type, to_type)
    return bool(from_type == to_type or (from_type, to_type) in _READ_ALIKE)


_READ_ALIKE = {
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float64()),
    (pa.string(), pa.binary()),
}


def _converted(column: Column, from_type: pa.DataType, to_type: pa.DataType) -> Column:
    """Return a column of ``from_type``, a file's, converted to ``to_type``, the table's, like Apache Hudi.

    Raises `SchemaMismatchError` for types that Apache Hudi does not convert.
    """
    if pa.types.is_struct(from_type) and pa.types.is_struct(to_type):
        return sf.when(column.isNotNull(), sf.struct(*_converted_fields(column, from_type, to_type)))
    if pa.types.is_map(from_type) and pa.types.is_map(to_type):
        return sf.transform_values(column, lambda _, value: _converted(value, from_type.item_type, to_type.item_type))
    if is_list(from_type) and is_list(to_type):
        return sf.transform(column, lambda element: _converted(element, from_type.value_type, to_type.value_type))
    if not fits(from_type, to_type):
        raise SchemaMismatchError(
            f"Older base files hold {sql_name(from_type)} where the table has {sql_name(to_type)}, and pyhudi cannot "
            "convert the values.",
            "Read these columns with Apache Hudi, or rewrite the table there.",
        )
    # By its text, the float 1.1 becomes the double 1.1 as in Apache Hudi; a plain cast gives 1.100000023841858.
    if pa.types.is_float32(from_type) and pa.types.is_float64(to_type):
        column = column.cast("string")
    return column.cast(_spark_type(to_type))


def _converted_fields(column: Column, from_type: pa.DataType, to_type: pa.DataType) -> list[Column]:
    """Return the fields of a struct in the types of the table; null for a field that the file lacks."""
    stored_types = {field.name: field.type for field in children(from_type)}
    return [
        (
            _converted(column.getField(field.name), stored_types[field.name], field.type)
            if field.name in stored_types
            else sf.lit(None).cast(_spark_type(field.type))
        ).alias(field.name)
        for field in children(to_type)
    ]


def _spark_type(data_type: pa.DataType) -> str:
    return to_spark(pa.schema([("v", data_type)])).fields[0].dataType.simpleString()


def reads_lists(spark: SparkSession) -> bool:
    """Return whether Spark reads a list of files: its driver must be on this machine and must not ignore the log."""
    if "connect" in type(spark).__module__:
        return False
    return str(spark.conf.get(IGNORED, "false")).lower() != "true"


def read_list(
    spark: SparkSession, files: Iterable[tuple[str, int]], schema: StructType, options: Mapping[str, str]
) -> DataFrame:
    """Return the rows of Parquet files, given by URI and size; ``options`` must contain ``recursiveFileLookup``."""
    with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
        storage = open_storage(folder)
        lines = (json.dumps(_entry(uri, size)) for uri, size in files)
        storage.write("_spark_metadata/0", "\n".join(("v1", *lines)).encode())
        # If Spark ignores the log, this file makes the read fail, because it is gone by then. An empty folder would
        # return no rows instead.
        storage.write("passed-over.parquet", b"PAR1")
        return spark.read.schema(schema).options(**options).parquet(f"file://{folder}")


def _entry(uri: str, size: int) -> dict[str, object]:
    """Return the entry of a file in the log of a streaming sink; Spark ignores the modification time."""
    scheme, slashes, path = uri.partition("://")
    return {
        "path": f"{scheme}://{quote(path, safe=_PLAIN_IN_PATHS)}" if slashes else quote(uri, safe=_PLAIN_IN_PATHS),
        "size": size,
        "isDir": False,
        "modificationTime": 0,
        "blockReplication": 1,
        "blockSize": 128 << 20,
        "action": "add",
    }
