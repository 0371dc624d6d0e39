"""Adds the record key and the partition path of each row as columns, in the spelling of the write.

Spark computes them itself if it can (`key_text`). Otherwise only the key and partition columns go through Python;
on Spark 4.0, which has no such functions, whole rows do, for which Spark needs pandas.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.pandas.utils import require_minimum_pandas_version
from pyspark.sql.types import StringType, StructField, StructType

from ...errors import DuplicateColumnError, MissingColumnError
from ...table.schema.columns import POSITION
from .key_text import KeyText
from .slots import Placement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("pyhudi")

KEY, PATH = "_pyhudi_key", "_pyhudi_path"
_BOTH = "_pyhudi_key_and_path"
_FIELDS = [StructField(KEY, StringType()), StructField(PATH, StringType())]


def has_arrow_udf(df: DataFrame) -> bool:
    """Return whether this Spark (4.1 or later) has Python functions over Arrow columns."""
    # `repartitionById` is new in Spark 4.1, too.
    return hasattr(type(df), "repartitionById")


def has_arrow_batches() -> bool:
    """Return whether Spark can send whole batches through Python, for which it requires pandas in this process."""
    try:
        require_minimum_pandas_version()
    except ImportError:
        return False
    return True


def left_to_the_commit(table: str) -> None:
    """Log that the commit, instead of Spark tasks, looks up the keys of a write."""
    logger.warning(
        "The commit of the write to %s looks up the keys of its rows by itself: Spark hands them to tasks only if "
        "pandas is installed. Install it where the program runs.",
        table,
    )


def can_spell(df: DataFrame, placement: Placement) -> bool:
    """Return whether `with_keys` can compute the keys of rows, in Spark or in Python."""
    return KeyText.of(placement, df.schema) is not None or has_arrow_udf(df) or has_arrow_batches()


def with_keys(df: DataFrame, placement: Placement) -> DataFrame:
    """Return the rows with the columns `KEY` and `PATH`.

    If Spark computes the keys, a row without a key gets null, which the write refuses; Python refuses the row itself.
    """
    check_columns(df, placement)
    for name in (KEY, PATH, _BOTH):
        refuse_name(df, name)
    text = KeyText.of(placement, df.schema)
    if text is not None:
        return df.withColumns({KEY: sf.expr(text.key), PATH: sf.expr(text.path)})
    if has_arrow_udf(df):
        with_both = df.withColumn(_BOTH, _keys_function(placement))
        return with_both.withColumns({name: sf.col(_BOTH)[name] for name in (KEY, PATH)}).drop(_BOTH)
    return _with_keys_by_python(df, placement)


def check_columns(df: DataFrame, placement: Placement) -> None:
    """Refuse rows that lack a column of the key or the partition."""
    absent_names = [name for name in placement.columns if name not in df.columns]
    if absent_names:
        raise MissingColumnError(
            f"The rows lack {', '.join(map(repr, absent_names))}, from which the table {placement.config.name!r} takes "
            "its keys and partitions.",
            "Add the column, or correct the case of its name.",
        )


def refuse_name(df: DataFrame, name: str) -> None:
    """Refuse rows that have a column with a name that pyhudi needs."""
    if name in map(str.lower, df.columns):
        raise DuplicateColumnError(f"The rows have a column {name!r}, a name that pyhudi needs.", "Rename it.")


def with_position(df: DataFrame) -> DataFrame:
    """Return the rows with their position in the column `POSITION`, unless they have the column."""
    if POSITION in df.columns:
        return df
    refuse_name(df, POSITION)
    # The partition in the upper 31 bits, the row's place in it in the lower 33.
    return df.withColumn(POSITION, sf.monotonically_increasing_id())


def _keys_function(placement: Placement) -> Any:
    """Return key and path of each row as a Python function over their columns, for Spark 4.1 and later."""
    arrow_udf: Any = sf.arrow_udf  # type: ignore[attr-defined]  # absent from Spark 4.0

    def spell(*columns: pa.Array) -> pa.Array:
        keys, paths = placement.spelled(pa.RecordBatch.from_arrays(list(columns), names=placement.columns))
        return pa.StructArray.from_arrays([keys, paths], names=[KEY, PATH])

    return arrow_udf(spell, StructType(_FIELDS))(*map(sf.col, placement.columns))


def _with_keys_by_python(df: DataFrame, placement: Placement) -> DataFrame:
    """Return rows with key and path; the rows go through Python whole, as Spark 4.0 requires."""

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            fields = [*batch.schema, pa.field(KEY, pa.string()), pa.field(PATH, pa.string())]
            yield pa.RecordBatch.from_arrays([*batch.columns, *placement.spelled(batch)], schema=pa.schema(fields))

    return df.mapInArrow(add, StructType([*df.schema.fields, *_FIELDS]))
