"""Creates an empty table from the arguments of `HudiTable.create`, whose columns may be Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ...errors import InvalidOptionError
from ...methods import creation
from ...methods.creation import CreationTerms
from ...methods.writes import Rows
from ...operations.planning.plan import WritePlan, plan_write
from ...operations.planning.request import WriteRequest
from ...options.sources import WRITING, resolve_options
from ...table.config.key_types import PartitionType
from ...table.config.property_keys import BUCKET
from ..placement.sizing import measured_buckets
from ..source.spark_types import to_arrow
from .frames import to_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Columns: TypeAlias = "StructType | str | Rows"


def create_table(
    spark: SparkSession,
    path: str,
    schema: Columns,
    terms: CreationTerms,
    options: Mapping[str, Any],
    *,
    if_not_exists: bool,
    dry_run: bool = False,
) -> bool:
    """Create an empty table and return True; return False if the path holds a table already.

    ``schema`` has the columns, or rows whose columns the table gets. ``terms`` are the arguments of the call that
    are options, too, and ``options`` its other options. With ``if_not_exists`` a table of other terms raises an
    OptionConflictError, without it any table does. With ``dry_run`` the arguments are checked, and no more.
    """
    parsed = resolve_options({**options, **terms.options()}, path, WRITING, session=spark, warn=True).options
    rows: DataFrame | None = None

    def columns() -> pa.Schema:
        """Return the columns for the new table, and keep the rows, if ``schema`` has any, for `with_buckets`."""
        nonlocal rows
        struct, rows = _columns_of(spark, schema, path)
        return to_arrow(struct)

    def with_buckets(request: WriteRequest, plan: WritePlan) -> tuple[WritePlan, int | None]:
        """Return the plan, and the bucket count that the rows gave it; None if the rows did not choose one."""
        if rows is None or request.table.bucket_count is not None or plan.config.index_type != BUCKET:
            return plan, None
        return _with_measured_buckets(request, plan, rows)

    return creation.create_table(
        path,
        parsed,
        columns,
        open_call="HudiTable(spark, path)",
        if_not_exists=if_not_exists,
        dry_run=dry_run,
        with_buckets=with_buckets,
    )


def _with_measured_buckets(request: WriteRequest, plan: WritePlan, rows: DataFrame) -> tuple[WritePlan, int | None]:
    """Return the plan with a bucket count that suits the rows; unchanged if they give none."""
    config = plan.config
    if PartitionType.TIMESTAMP in config.partition_types:
        return plan, None  # many times share a partition, so distinct values do not count partitions
    buckets = measured_buckets(rows, config.partition_fields, config.table_type)
    if buckets is None:
        return plan, None
    return plan_write(replace(request, table=replace(request.table, bucket_count=buckets))), buckets


def _columns_of(spark: SparkSession, schema: Columns, path: str) -> tuple[StructType, DataFrame | None]:
    """Return a schema as Spark's, and the rows that it was taken from; None for a schema without rows.

    ``path`` is the table's path, for errors. Raises `InvalidOptionError` for a text that is no DDL.
    """
    if isinstance(schema, StructType):
        return schema, None
    if isinstance(schema, str):
        try:
            return spark.createDataFrame([], schema).schema, None
        except AnalysisException as error:
            message = str(error).strip().splitlines()[0]
            raise InvalidOptionError(
                f"The text {schema!r}, given as the columns of the table {path}, is no DDL. Spark says: {message}",
                "Write each as a name and a type of Spark, such as 'id bigint, name string'.",
            ) from error
    rows = to_frame(spark, schema)
    return rows.schema, rows
