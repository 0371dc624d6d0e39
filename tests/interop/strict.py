"""DataFrames whose columns may not be null: what Spark reads from a file always may."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema


def strict_schema(schema: pa.Schema) -> str | None:
    """Return the Spark schema, JSON, of columns some of which may not be null, inside of structs too; else None."""
    if all(map(_lax, schema)):
        return None
    return from_arrow_schema(schema, prefer_timestamp_ntz=True).json()


def strictly(frame: DataFrame, schema: str | None) -> DataFrame:
    """Return the same rows under a schema; the JVM does it, so that no value passes through Python."""
    if schema is None:
        return frame
    session = frame.sparkSession
    kind = session._jsparkSession.parseDataType(schema)
    return type(frame)(session._jsparkSession.createDataFrame(frame._jdf.toJavaRDD(), kind), session)


def _lax(field: pa.Field) -> bool:
    if pa.types.is_struct(field.type):
        return field.nullable and all(map(_lax, field.type))
    return field.nullable
