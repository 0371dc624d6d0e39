"""The size that Spark estimates for a DataFrame, made small enough for a join of single partitions.

Spark joins two single partitions as they are if it estimates each at no more than
``spark.sql.maxSinglePartitionBytes`` (``EnsureRequirements``); otherwise it shuffles both. It estimates a scan by the
bytes of the files, and a data source in Python as endless. A selection of columns divides the estimate by as much as
the rows get narrower by their types (``SizeInBytesOnlyStatsPlanVisitor``, ``EstimationUtils.getSizePerRow``). So a scan
gets a column of a very wide type, which no file has: its estimate becomes small as soon as that column is dropped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StructField, StructType

from ...table.schema.types import children, is_list

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The bytes up to which Spark joins single partitions as they are.
LIMIT = "spark.sql.maxSinglePartitionBytes"
# By how much Spark estimates the rows of a file to be larger than the file.
COMPRESSION = "spark.sql.sources.fileCompressionFactor"
# The bytes that Spark estimates for a data source that tells it no size.
ENDLESS = "spark.sql.defaultSizeInBytes"
_DEFAULTS = {LIMIT: "128m", COMPRESSION: "1.0", ENDLESS: str(2**63 - 1)}

WIDE = "_pyhudi_wide"
_ROW = 8
_BINARY = 100
# The most fields of one wide column.
_MOST_FIELDS = 500

_SIZES: dict[pa.DataType, int] = {
    pa.bool_(): 1,
    pa.int8(): 1,
    pa.int16(): 2,
    pa.int32(): 4,
    pa.float32(): 4,
    pa.date32(): 4,
    pa.string(): 20,
    pa.binary(): _BINARY,
}
_UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_BYTES = re.compile(r"(\d+)\s*([bkmgtp]?)b?", re.IGNORECASE)


def value_of(spark: SparkSession, name: str) -> str:
    """Return the text of one of the settings named here."""
    try:
        return str(spark.conf.get(name))
    except PySparkException:
        return _DEFAULTS[name]


def parse_bytes(text: str) -> int:
    """Return the bytes of a setting such as ``128m``; 0 if it has no such text."""
    match = _BYTES.fullmatch(text.strip())
    return int(match[1]) << _UNITS[match[2].lower()] if match else 0


def row_width(columns: pa.Schema) -> int:
    """Return the bytes that Spark estimates for a row."""
    return _ROW + sum(_width(field.type) for field in columns)


def wide_column(size: int, most: int, columns: pa.Schema) -> StructField | None:
    """Return a column that, once dropped, brings the estimate of a scan down to ``most`` bytes; None if it is lower.

    ``size`` is Spark's estimate for the files; it divides them among ``columns`` and the wide column by their widths.
    """
    if size <= most:
        return None
    return StructField(WIDE, _wide_type(math.ceil(size / most * row_width(columns) / _BINARY)))


def narrowed(frame: DataFrame, size: int, most: int, columns: pa.Schema) -> DataFrame:
    """Return rows that Spark estimates at ``size`` bytes, so that it estimates them at no more than ``most``.

    Each row gets a wide null by an explosion of one element: Spark expects its output to have the bytes of its input.
    """
    for fields in _steps(size / most, row_width(columns)):
        wide = sf.explode(sf.array(sf.lit(None).cast(_wide_type(fields)))).alias(WIDE)
        frame = frame.select("*", wide).drop(WIDE)
    return frame


def _steps(factor: float, width: int) -> Iterator[int]:
    """Yield the numbers of fields of wide columns that together divide the estimate of rows of a width by a factor."""
    if factor <= 1:
        return
    # A wide column of the most fields divides the estimate once; larger factors need several columns in a row.
    steps = max(1, math.ceil(math.log(factor) / math.log1p(_MOST_FIELDS * _BINARY / width)))
    factor_of_step = factor ** (1 / steps)
    for _ in range(steps):
        yield math.ceil((factor_of_step - 1) * width / _BINARY) + 1


def _wide_type(fields: int) -> StructType:
    """Return a type that Spark believes to have 100 bytes for each field."""
    return StructType([StructField(f"v{number}", BinaryType()) for number in range(fields)])


def _width(data_type: pa.DataType) -> int:
    """Return ``DataType.defaultSize`` of the Spark type."""
    types = pa.types
    if types.is_decimal(data_type):
        return 8 if data_type.precision <= 18 else 16
    if types.is_struct(data_type) or types.is_map(data_type) or is_list(data_type):
        return sum(_width(field.type) for field in children(data_type))
    return _SIZES.get(data_type, 8)
