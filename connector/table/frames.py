"""What a user hands over as rows, and the thread that hands it over, brought to where Spark takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ...errors import InvalidOptionError, UnsupportedTypeError

# A DataFrame of Spark; or one of pandas, an Arrow table, or what else offers its rows as an Arrow stream.
Rows: TypeAlias = Any


def to_frame(spark: SparkSession, rows: Rows, known: Callable[[], pa.Schema] | None = None) -> DataFrame:
    """Return rows as a DataFrame of Spark.

    Args:
        spark: The session.
        rows: A DataFrame of Spark; or rows of this process: a DataFrame of pandas, whose missing values become null
            and whose index is left out, an Arrow table, or any object that offers an Arrow stream.
        known: Returns the table's columns, whose types those columns get that hold nothing and so tell no type.

    Raises:
        InvalidOptionError: They are none of these.
        UnsupportedTypeError: A column has a type that Spark does not take from Arrow.
    """
    if isinstance(rows, DataFrame):
        return rows
    if type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns"):
        table = pa.Table.from_pandas(rows, preserve_index=False)
    elif hasattr(rows, "__arrow_c_stream__"):
        table = pa.table(rows)
    else:
        raise InvalidOptionError(
            f"Rows were given as a {type(rows).__name__}.",
            "Give a DataFrame of Spark, a DataFrame of pandas or an Arrow table.",
        )
    try:
        return from_arrow(spark, _typed(table, known))
    except PySparkException as error:
        raise UnsupportedTypeError(
            f"Spark takes no rows of an Arrow table with the columns {', '.join(map(str, table.schema))}: {error}",
            "Cast the column to a type that Spark has.",
        ) from error


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a DataFrame; one without rows too, whose types Spark Connect does not look at."""
    if table.num_rows or isinstance(spark, SparkSession):
        return spark.createDataFrame(table)
    typed = pa.Table.from_arrays([pa.nulls(1, one.type) for one in table.schema], names=table.schema.names)
    return spark.createDataFrame(typed).limit(0)


def make_active(spark: SparkSession) -> None:
    """Make a session the active one of a thread that has none; Spark looks a data source up in the active session.

    Spark itself makes a session active for good wherever it creates a DataFrame of rows; so does this. On Spark
    Connect the look-up is the server's affair.
    """
    if isinstance(spark, SparkSession) and SparkSession.getActiveSession() is None:
        spark.createDataFrame([], "nothing int")


def _typed(table: pa.Table, known: Callable[[], pa.Schema] | None) -> pa.Table:
    """Return a table of types that Spark takes: pandas makes categories dictionaries, and columns of nothing null."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    if known is not None and any(pa.types.is_null(field.type) for field in fields):
        types = {field.name: field.type for field in known()}
        fields = [
            field.with_type(types.get(field.name, field.type)) if pa.types.is_null(field.type) else field
            for field in fields
        ]
    return table.cast(pa.schema(fields))
