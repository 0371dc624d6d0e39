"""Creates an empty table from the arguments of `HudiTable.create`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ...errors import OptionConflictError
from ...operations.planning.operation import INSERT
from ...operations.planning.plan import WritePlan, plan_write
from ...operations.planning.request import WriteRequest
from ...operations.planning.target import find_target
from ...operations.write.after_commit import describe, tables, warn_once
from ...options.names import OPTIONS
from ...options.sources import WRITING, find_config, resolve_options
from ...storage import open_storage
from ...table.config import create_config
from ...table.config.key_types import PartitionType
from ...table.config.property_keys import BUCKET
from ...table.latest_schema import latest_schema
from ...table.schema.columns import without_meta
from ...table.schema.types import sql_name
from ...table.table import Table
from ..placement.sizing import measured_buckets
from ..source.spark_types import to_arrow
from .frames import Rows, to_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Columns: TypeAlias = "StructType | str | Rows"


@dataclass(frozen=True, slots=True)
class CreationTerms:
    """The arguments of `HudiTable.create` that are options, too."""

    record_key: str | Sequence[str]
    partition_by: str | Sequence[str]
    order_by: str | Sequence[str]
    index: str | None
    buckets: int | None
    table_type: str | None
    partial_update_mode: str | None = None

    def options(self) -> dict[str, Any]:
        keys = {"recordkey": _names(self.record_key), "buckets": self.buckets}
        given: dict[str, Any] = keys if self.record_key else {OPTIONS["operation"].key: INSERT}
        given["partitionby"] = _names(self.partition_by)
        if self.order_by:
            given["orderby"] = _names(self.order_by)
        by_name = {"index_type": self.index, "table_type": self.table_type}
        for name, value in {**by_name, "partial_update_mode": self.partial_update_mode}.items():
            if value is not None:
                given[OPTIONS[name].key] = value
        return given


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
    """Create an empty table; False where it was there. With ``dry_run`` the arguments are checked, and no more."""
    given = {**options, **terms.options()}
    parsed = resolve_options(given, path, WRITING, session=spark, warn=True).options
    storage = open_storage(path, parsed.storage_options, durable=parsed.durable)
    there = find_config(storage) is not None
    if there and not if_not_exists:
        raise _exists(path)
    columns, rows = _columns_of(spark, schema)
    request = parsed.to_write_request(path, to_arrow(columns), overwrite=False)
    if there:
        target = find_target(request, storage)
        warn_once(target.notices)
        _check_same(target.table, request, path)
        return False
    plan, measured = plan_write(request), None
    if rows is not None and request.table.bucket_count is None and plan.config.index_type == BUCKET:
        plan, measured = _measured(request, plan, rows)
    _check_kept(plan, path)
    if dry_run:
        return True
    if not create_config(storage, plan.new_config):
        raise _exists(path)
    _make_timeline_folder(plan.table)
    note = "" if measured is None else " So many suit the rows given, by suggest_buckets."
    tables.info("%s%s", describe(plan.config, path), note)
    return True


def _check_same(table: Table, request: WriteRequest, path: str) -> None:
    """Refuse an existing table that lacks what the arguments ask for or has other columns."""
    kept, asked = table.config, request.table
    for words, mine, theirs in (
        ("is partitioned by", asked.partition_fields or (), kept.partition_fields),
        ("is ordered by", asked.ordering_fields or (), kept.ordering_fields),
    ):
        if tuple(mine) != tuple(theirs):
            raise OptionConflictError(
                f"The table {path} {words} {', '.join(theirs) or 'nothing'}, and the call asks for "
                f"{', '.join(mine) or 'nothing'}.",
                "Correct the arguments, or choose another path.",
            )
    known = latest_schema(kept, table.timeline())
    columns = {} if known is None else {field.name: sql_name(field.type) for field in without_meta(known)}
    given = {field.name: sql_name(field.type) for field in without_meta(request.schema)}
    if known is not None and columns != given:
        name = next(name for name in {**columns, **given} if columns.get(name) != given.get(name))
        raise OptionConflictError(
            f"The table {path} has the column {name!r} with the type {columns.get(name, 'none')}, and the call asks "
            f"for the type {given.get(name, 'none')}.",
            "Correct the schema, or open the table with HudiTable(spark, path): writes add columns to it.",
        )


def _measured(request: WriteRequest, plan: WritePlan, rows: DataFrame) -> tuple[WritePlan, int | None]:
    """Return the plan with a bucket count that suits the rows; unchanged where they give none."""
    config = plan.config
    if PartitionType.TIMESTAMP in config.partition_types:
        return plan, None  # many times share a partition, so distinct values do not count partitions
    buckets = measured_buckets(rows, config.partition_fields, config.table_type)
    if buckets is None:
        return plan, None
    return plan_write(replace(request, table=replace(request.table, bucket_count=buckets))), buckets


def _check_kept(plan: WritePlan, path: str) -> None:
    """Refuse delete marker options that the new table would lose, because its version has no property for them."""
    if plan.config.kept != plan.config:
        raise OptionConflictError(
            f"The options hoodie.payload.delete.field and hoodie.payload.delete.marker of the new table {path} cannot "
            f"be kept, because a table of version {plan.config.version} has no properties for them.",
            "Leave the two out here and give them to every write, or use hoodie.write.table.version=9.",
        )


def _names(columns: str | Sequence[str]) -> str:
    return columns if isinstance(columns, str) else ",".join(columns)


def _columns_of(spark: SparkSession, schema: Columns) -> tuple[StructType, DataFrame | None]:
    if isinstance(schema, StructType):
        return schema, None
    if isinstance(schema, str):
        return spark.createDataFrame([], schema).schema, None
    rows = to_frame(spark, schema)
    return rows.schema, rows


def _exists(path: str) -> OptionConflictError:
    return OptionConflictError(
        f"There is a Hudi table at {path} already.", "Open it with HudiTable(spark, path), or choose another path."
    )


def _make_timeline_folder(table: Table) -> None:
    """Create the timeline folder, without which Apache Hudi cannot open the table, through a file that is deleted."""
    placeholder = f"{table.config.timeline_folder}/.created"
    table.storage.create(placeholder, b"")
    table.storage.delete(placeholder)
