"""Converts a user's rows to Spark DataFrames, and makes the session active in the user's thread."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ...errors import InvalidOptionError, UnsupportedTypeError
from ...methods.pandas_rows import is_pandas, table_of_pandas
from ...methods.writes import Rows


def to_frame(spark: SparkSession, rows: Rows, table_columns: Callable[[], pa.Schema] | None = None) -> DataFrame:
    """Return rows as a Spark DataFrame: missing values of pandas become null, and its index is dropped.

    Columns of nulls get the types that ``table_columns`` returns. Raises `InvalidOptionError` for other objects,
    `UnsupportedTypeError` for types that Spark does not take from Arrow, and for pandas as `table_of_pandas` does.
    """
    if isinstance(rows, DataFrame):
        return rows
    refusal = InvalidOptionError(
        f"Rows were given as a {type(rows).__name__}.",
        "Give a DataFrame of Spark, a DataFrame of pandas or an Arrow table.",
    )
    if is_pandas(rows):
        table = table_of_pandas(rows)
    elif hasattr(rows, "__arrow_c_stream__"):
        try:
            table = pa.table(rows)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            # A stream of values without columns, such as a Series.
            raise refusal from error
    else:
        raise refusal
    try:
        return from_arrow(spark, _typed(table, table_columns))
    except PySparkException as error:
        raise UnsupportedTypeError(
            f"Spark takes no rows of an Arrow table with the columns {', '.join(map(str, table.schema))}: {error}",
            "Cast the column to a type that Spark has.",
        ) from error


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a DataFrame with its types; without rows, Spark Connect alone would ignore the types."""
    if table.num_rows or isinstance(spark, SparkSession):
        return spark.createDataFrame(table)
    typed = pa.Table.from_arrays([pa.nulls(1, field.type) for field in table.schema], names=table.schema.names)
    return spark.createDataFrame(typed).limit(0)


def make_active(spark: SparkSession) -> None:
    """Make the session active in a thread without an active session, where Spark looks data sources up.

    Spark itself activates a session for good when it creates a DataFrame of rows. On Spark Connect the server does the
    look-up.
    """
    if isinstance(spark, SparkSession) and SparkSession.getActiveSession() is None:
        spark.createDataFrame([], "nothing int")


def _typed(table: pa.Table, table_columns: Callable[[], pa.Schema] | None) -> pa.Table:
    """Return a table in types that Spark takes: pandas makes categories dictionaries and empty columns null."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    if table_columns is not None and any(pa.types.is_null(field.type) for field in fields):
        types = {field.name: field.type for field in table_columns()}
        fields = [
            field.with_type(types.get(field.name, field.type)) if pa.types.is_null(field.type) else field
            for field in fields
        ]
    return table.cast(pa.schema(fields))
