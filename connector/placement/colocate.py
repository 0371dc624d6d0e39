"""Brings the rows of each file group into one task, so that executors do all the merging.

A file group's slot is ``(hash of its partition path + its bucket) mod n``. Because partitions start at different slots,
a few buckets use all tasks. Spark computes the slot itself if it can (`slot_expression`); otherwise only the key and
partition columns go through Python, and on Spark 4.0 whole rows (``mapInArrow``, which needs pandas; without it
`HudiTable` writes like a plain ``df.write``). Spark distributes rows by hash, so each slot is replaced by an integer
whose hash (``Murmur3Hash``, seed 42) leads to it. Without a fixed number of tasks, adaptive execution joins small slots
and never splits a slot. With a fixed number, Spark 4.1 and later distribute rows by slot (``repartitionById``).
A shuffle changes the order of rows, so if the order decides ties, each row carries its former position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, StructField, StructType

from ...errors import DuplicateColumnError, InvalidOptionError, OptionConflictError
from ...index.registry import has_buckets, index_for
from ...methods.paths import AnyPath
from ...operations.arguments import checked
from ...operations.planning.adopted_table import AdoptedTable
from ...operations.planning.columns import key_schema
from ...operations.planning.target import with_number_by_rule
from ...operations.write.after_commit import warn_once
from ...options.sources import READING, resolve_options
from ...storage import open_storage
from ...table.buckets.numbers import bucket_numbers, refuse_unknown
from ...table.config.table_settings import TableSettings
from ...table.inferred.index import infer_index
from ...table.inferred.key_encoding import with_inferred_key_encoding
from ...table.inferred.zone import infer_zone
from ...table.seen_table import SeenTable
from ...table.table import Table, open_table
from ..source.paths import absolute_for
from ..source.spark_types import to_arrow
from .key_columns import check_columns, has_arrow_batches, has_arrow_udf, refuse_name, with_position
from .slot_expression import slot_expression
from .slots import Placement, Slots

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SLOT = "_pyhudi_slot"
_SPARK_SEED = 42

Words = np.ndarray[Any, np.dtype[np.uint32]]


@runtime_checkable
class HasPath(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def storage_options(self) -> Mapping[str, str]: ...


@checked
def colocate(
    df: DataFrame, table: HasPath | AnyPath, *, tasks: int | None = None, buckets: int | None = None
) -> DataFrame:
    """Return the same rows with those of each file group in one Spark partition.

    Write the result with the option ``hoodie.pyhudi.colocated=true``, without any step in between that moves rows.
    `HudiTable` does both by itself if it is worthwhile. The added column ``_pyhudi_position``, which no table
    stores, holds the former position of each row and decides ties; without the column any row of a tie may win. Rows of
    a table that generates its keys are returned unchanged.

    Args:
        df: Rows to write.
        table: The table, or its path.
        tasks: Number of partitions. None: Spark's adaptive execution chooses; if that is off, at most
            ``spark.sql.shuffle.partitions``.
        buckets: The number of buckets of a table by Apache Hudi, whose properties do not record it.

    Returns:
        The rows, with the column ``_pyhudi_position``.

    Raises:
        TableError: The path holds no table that pyhudi can write.
        InvalidOptionError: ``tasks`` is below one.
        MissingColumnError: The rows lack a key or partition column.
        DuplicateColumnError: The rows have two key or partition columns whose names differ only in case, or a column
            with a name that pyhudi needs.
        SchemaMismatchError: A key or partition column has a type with another spelling of keys.
        MissingOptionError: The table does not record its number of buckets.
        OptionConflictError: The table's index looks keys up.
    """
    spark = df.sparkSession
    if isinstance(table, HasPath):
        path, storage_options = table.path, table.storage_options
    else:
        path = absolute_for(spark, table)
        storage_options = resolve_options({}, path, READING, session=spark).options.storage_options
    storage = open_storage(path, storage_options)
    stored_table = with_inferred_key_encoding(open_table(storage))
    settings = TableSettings(bucket_count=buckets, time_options=infer_zone(stored_table, {}))
    settings_with_number, notices = with_number_by_rule(stored_table, settings)
    warn_once(notices)
    # Apache Hudi records neither the index nor the number of buckets; the arguments and the files tell them.
    adopted = AdoptedTable(settings_with_number, path)
    config, _ = adopted.changes_to(stored_table.config, lambda: infer_index(stored_table))
    if config.generates_keys:
        return df
    if index_for(config).needs_lookup:
        raise OptionConflictError(
            f"The table {path} has the index {config.index_type}, which looks keys up. They may be in other file "
            "groups by the time of the write.",
            "Use HudiTable.upsert, which looks keys up, places the rows and writes them against the same snapshot.",
        )
    if tasks is not None and tasks < 1:
        raise InvalidOptionError(f"colocate() got tasks={tasks}.", "Give one or more tasks.")
    # Text and numbers have one spelling, so the slot is the same for both types; the write checks the values.
    seen = SeenTable.now(Table(storage, config))
    return place(df, with_numbers(placement_of(df, seen, tasks, number_to_text=True), seen))


def placement_of(df: DataFrame, seen: SeenTable, tasks: int | None = None, *, number_to_text: bool) -> Placement:
    """Return the placement of rows whose key columns may differ in type from the table's.

    ``tasks`` is an exact number; None lets Spark choose. With ``number_to_text``, a key column of numbers may be one of
    texts in the table. Raises `SchemaMismatchError` for a type with another spelling of keys, and
    `DuplicateColumnError` for two key columns of one name.
    """
    table = seen.table
    undecided = Placement(table.config, None, tasks) if tasks else _adaptive_placement(df.sparkSession, table)
    _refuse_columns_of_one_name(df, undecided.columns)
    row_types = to_arrow(StructType([field for field in df.schema.fields if field.name in undecided.columns]))
    schema = key_schema(seen.schema, row_types, table.config, table.path, number_to_text=number_to_text)
    return replace(undecided, schema=schema)


def with_numbers(placement: Placement, seen: SeenTable) -> Placement:
    """Return the placement with the numbers of buckets at the moment of ``seen``; raises if they are unknown.

    A placement of a table without buckets is returned as it is.
    """
    if not has_buckets(placement.config):
        return placement
    numbers = bucket_numbers(seen.table, seen.timeline)
    refuse_unknown(numbers)
    return replace(placement, numbers=numbers)


def _refuse_columns_of_one_name(df: DataFrame, key_columns: list[str]) -> None:
    """Refuse rows with several columns of the name of a key or partition column, apart from case."""
    for name in key_columns:
        twins = [column for column in df.columns if column.lower() == name.lower()]
        if len(twins) > 1:
            raise DuplicateColumnError(
                f"The rows have the columns {' and '.join(map(repr, twins))}; Spark ignores the case of names, and the "
                "keys or partitions need such a column.",
                "Rename or drop one of the two columns.",
            )


def _adaptive_placement(spark: SparkSession, table: Table) -> Placement:
    """Return a placement into as many slots as Spark shuffles to, if adaptive execution joins small slots.

    Otherwise each slot has a task of its own, and `default_tasks` gives their number.
    """
    adaptive = "spark.sql.adaptive."
    if "false" in {spark.conf.get(adaptive + setting) for setting in ("enabled", "coalescePartitions.enabled")}:
        return Placement(table.config, None, default_tasks(spark, table))
    initial_slots = spark.conf.get(adaptive + "coalescePartitions.initialPartitionNum", None)
    slots = int(initial_slots or spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    return Placement(table.config, None, slots, exactly=False)


def default_tasks(spark: SparkSession, table: Table) -> int:
    """Return the number of tasks if neither the user nor Spark chooses: that of shuffles, if there are file groups.

    A write may open partitions, so four times the buckets of those that exist are the most; none exist, no limit.
    """
    shuffle = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    buckets = table.config.bucket_count or 1
    if not table.config.partition_fields:
        return max(1, min(shuffle, buckets))
    partitions = sum(not name.startswith(".") for name in table.storage.look("").folders)
    return min(shuffle, 4 * partitions * buckets) if partitions else shuffle


def can_place(df: DataFrame, placement: Placement) -> bool:
    """Return whether rows can be placed: by a Spark expression, or by Python functions of some kind."""
    return slot_expression(placement, df.schema) is not None or has_arrow_udf(df) or has_arrow_batches()


def place(df: DataFrame, placement: Placement, *, breaks_ties: bool = True) -> DataFrame:
    """Return the rows with those of each slot in one partition.

    ``breaks_ties`` adds each row's position if it is absent. Raises `MissingColumnError` for an absent key or partition
    column, and `DuplicateColumnError` for a column with a name that pyhudi needs.
    """
    check_columns(df, placement)
    slot = slot_expression(placement, df.schema)
    if breaks_ties:
        df = with_position(df)
    if slot is None and has_arrow_udf(df):
        slot = _slot_column(placement)
    if slot is None:
        return _place_through_python(df, placement)
    # Since Spark 4.1 a slot can be the number of a partition; before, and if Spark chooses, Spark hashes an integer.
    if placement.exactly and hasattr(type(df), "repartitionById"):
        return df.repartitionById(placement.tasks, slot.cast("int"))
    # As a column, the expression would make the stage's generated method too large for Java's JIT compiler.
    chosen = sf.get(sf.array(*map(sf.lit, integers_by_slot(placement.tasks).tolist())), slot.cast("int"))
    return _by_hash(df, placement, chosen)


def _by_hash(df: DataFrame, placement: Placement, integer: Column | str) -> DataFrame:
    """Return rows shuffled by a column of integers, into exactly the placement's tasks or as Spark chooses."""
    return df.repartition(placement.tasks, integer) if placement.exactly else df.repartition(integer)


def _slot_column(placement: Placement) -> Any:
    """Return the slot of each row as a Python function over the key and partition columns, for Spark 4.1 and later."""
    arrow_udf: Any = sf.arrow_udf  # type: ignore[attr-defined]  # absent from Spark 4.0

    def slot(*columns: pa.Array) -> pa.Array:
        return pa.array(placement.slots(pa.RecordBatch.from_arrays(list(columns), names=placement.columns)))

    return arrow_udf(slot, IntegerType())(*map(sf.col, placement.columns))


def _place_through_python(df: DataFrame, placement: Placement) -> DataFrame:
    """Return the placed rows, which go through Python whole, as Spark 4.0 has no functions over Arrow columns."""
    refuse_name(df, _SLOT)
    stand_ins = pa.array(integers_by_slot(placement.tasks))

    def add_slot(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            column = stand_ins.take(pa.array(placement.slots(batch)))
            fields = [*batch.schema, pa.field(_SLOT, pa.int32())]
            yield pa.RecordBatch.from_arrays([*batch.columns, column], schema=pa.schema(fields))

    schema = StructType([*df.schema.fields, StructField(_SLOT, IntegerType())])
    return _by_hash(df.mapInArrow(add_slot, schema), placement, _SLOT).drop(_SLOT)


def integers_by_slot(tasks: int) -> Slots:
    """Return for each of ``tasks`` slots an integer that Spark's hash partitioning sends there."""
    # -1 marks a slot without an integer yet.
    integers = np.full(tasks, -1, np.int32)
    start = 0
    while (integers < 0).any():
        candidates = np.arange(start, start + 8 * tasks, dtype=np.int32)
        slots, first_positions = np.unique(spark_hash(candidates).astype(np.int64) % tasks, return_index=True)
        fresh = integers[slots] < 0
        integers[slots[fresh]] = candidates[first_positions[fresh]]
        start += 8 * tasks
    return integers


def spark_hash(values: Slots) -> Slots:
    """Return Spark's hash of integers (``org.apache.spark.unsafe.hash.Murmur3_x86_32.hashInt``, seed 42)."""
    with np.errstate(over="ignore"):
        key = values.astype(np.uint32) * np.uint32(0xCC9E2D51)
        key = _rotate(key, 15) * np.uint32(0x1B873593)
        mixed: Words = _rotate(np.uint32(_SPARK_SEED) ^ key, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        mixed ^= np.uint32(4)
        mixed ^= mixed >> np.uint32(16)
        mixed *= np.uint32(0x85EBCA6B)
        mixed ^= mixed >> np.uint32(13)
        mixed *= np.uint32(0xC2B2AE35)
        mixed ^= mixed >> np.uint32(16)
    return mixed.astype(np.int32)


def _rotate(values: Words, bits: int) -> Words:
    rotated: Words = (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
    return rotated
