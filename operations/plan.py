"""What one write will do, decided before any row is seen and without writing a byte."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from ..errors import (
    MissingColumnError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOptionError,
    UnsupportedTableError,
    UnsupportedTypeError,
)
from ..storage import open_storage
from ..storage.base import Storage
from ..table.config import TableConfig, check_supported, load_config
from ..table.conform import conform_array
from ..table.keys import KeyGenerator
from ..table.latest_schema import latest_schema
from ..table.schema import META_COLUMNS, canonical, check_storable
from ..timeline.clock import next_time
from ..timeline.layout import layout_of
from ..timeline.owner import Owner
from ..timeline.timeline import Timeline, Watermark
from ..writer.rows import IS_DELETED, RowSpec
from .metadata_table import check_retirable
from .pending import PlannedRollback, settle_pending
from .replay import find_write
from .settings import WriteRequest, WriteSettings
from .table_settings import changes_to, new_config

UPSERT, DELETE, OVERWRITE = "UPSERT", "DELETE", "INSERT_OVERWRITE_TABLE"
GENERATED_ID = "auto-"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One write, as every task and the commit see it; small whatever the table's size.

    Attributes:
        path: The table's path.
        storage_options: Options of the store.
        config: The table's properties, as they are or will be.
        creates_table: True when the table does not exist yet.
        config_changes: Properties that the commit adds to an existing table.
        operation: Hudi's name of the operation.
        combine: Whether incoming rows of one key are folded into one.
        instant_time: Requested time of the instant.
        write_id: Identifies this write across replays.
        owner: Which process answers for the write.
        watermark: What was complete when the write was planned.
        rollbacks: Dead writes that this one rolls back first.
        packed_schema: The table's data columns, an Arrow schema message, compressed: plans travel with every task.
        flagged: Whether incoming rows have a delete flag that the table does not keep.
        settings: How to go about the work.
        replays: Requested time of the completed instant of the same write id; nothing is to be done then.
    """

    path: str
    storage_options: Mapping[str, str]
    config: TableConfig
    creates_table: bool
    config_changes: Mapping[str, str]
    operation: str
    combine: bool
    instant_time: str
    write_id: str
    owner: Owner
    watermark: Watermark
    rollbacks: tuple[PlannedRollback, ...]
    packed_schema: bytes
    flagged: bool
    settings: WriteSettings
    replays: str | None = None

    @property
    def action(self) -> str:
        """The instant's action."""
        return "replacecommit" if self.operation == OVERWRITE else "commit"

    @property
    def schema(self) -> pa.Schema:
        """The table's data columns."""
        return pa.ipc.read_schema(pa.py_buffer(zlib.decompress(self.packed_schema)))

    @property
    def spec(self) -> RowSpec:
        """What is kept of each incoming row."""
        if self.operation == DELETE:
            return RowSpec(pa.schema([]), None, deletes=True)
        flag = [pa.field(IS_DELETED, pa.bool_())] if self.flagged else []
        ordering = self.config.ordering_fields[0] if self.config.ordering_fields else None
        if self.config.merge_mode == "COMMIT_TIME_ORDERING":
            ordering = None
        return RowSpec(pa.schema([*self.schema, *flag]), ordering, deletes=False)

    def storage(self) -> Storage:
        """Open the table's store."""
        return open_storage(self.path, self.storage_options)


def plan_write(request: WriteRequest) -> WritePlan:
    """Decide what a write will do; nothing is written.

    Raises:
        PyHudiError: The options, the schema or the table do not allow the write; see `pyhudi.errors`.
    """
    storage = open_storage(request.path, request.storage_options)
    operation, combine = _operation(request)
    try:
        existing = load_config(storage)
    except TableNotFoundError:
        if operation == DELETE:
            raise
        existing = None
    changes: Mapping[str, str] = {}
    if existing is None:
        config = new_config(request.table, storage.path)
    else:
        check_supported(existing, storage.path, writing=True)
        config, changes = changes_to(existing, request.table, storage.path)
    timeline = Timeline.load(storage, layout_of(config))
    schema = latest_schema(storage, config, timeline) if existing is not None else None
    incoming = _incoming(request.schema)
    check_storable(incoming)
    _check_columns(config, incoming, operation, storage.path)
    schema = _table_schema(schema, incoming, operation, storage.path)
    KeyGenerator(config, schema).check(incoming)

    replays = None
    if request.write_id and not request.write_id.startswith(GENERATED_ID):
        replays = find_write(storage, timeline, request.write_id)
    dead = () if replays else settle_pending(storage, timeline, config, request.write)
    if existing is not None:
        check_retirable(existing, request.write.metadata_enable, storage.path)
    times = _times(len(dead) + 1, timeline, config)
    write_id = request.write_id or f"{GENERATED_ID}{uuid.uuid4()}"
    plan = WritePlan(
        path=request.path,
        storage_options=dict(request.storage_options),
        config=config,
        creates_table=existing is None,
        config_changes=changes,
        operation=operation,
        combine=combine,
        instant_time=times[-1],
        write_id=write_id,
        owner=Owner.of_this_process(write_id, request.application),
        watermark=timeline.watermark(),
        rollbacks=tuple(PlannedRollback(i, at) for i, at in zip(dead, times, strict=False)),
        packed_schema=zlib.compress(schema.serialize().to_pybytes()),
        flagged=IS_DELETED in incoming.names and IS_DELETED not in schema.names,
        settings=request.write,
        replays=replays,
    )
    _check_spec(plan.spec)
    return plan


def _operation(request: WriteRequest) -> tuple[str, bool]:
    asked = (request.operation or ("insert_overwrite_table" if request.overwrite else "upsert")).upper()
    settings = request.write
    if asked not in {UPSERT, DELETE, OVERWRITE}:
        raise UnsupportedOptionError(
            f"The operation {asked.lower()!r} (hoodie.datasource.write.operation) is not done by pyhudi yet.",
            "Use upsert, delete or insert_overwrite_table.",
        )
    if settings.bloom_filter:
        raise UnsupportedOptionError(
            "hoodie.parquet.bloom.filter.enabled=true is not done by pyhudi yet; the bucket index needs none.",
            "Leave the option out.",
        )
    if request.overwrite and asked == DELETE:
        raise UnsupportedOptionError(
            "The operation delete cannot be combined with mode overwrite, which replaces the whole table.",
            'Use mode("append") with the operation delete.',
        )
    combine = {
        UPSERT: settings.combine_before_upsert,
        DELETE: settings.combine_before_delete,
        OVERWRITE: settings.combine_before_insert,
    }[asked]
    if not combine and asked != OVERWRITE:
        raise UnsupportedOptionError(
            f"hoodie.combine.before.{asked.lower()}=false is not done by pyhudi: rows of one key are always folded.",
            "Leave the option out.",
        )
    return (OVERWRITE if request.overwrite else asked), combine


def _incoming(schema: pa.Schema) -> pa.Schema:
    """Return the caller's columns without Hudi's meta columns, which a table that was read brings along."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def _check_columns(config: TableConfig, incoming: pa.Schema, operation: str, where: str) -> None:
    needed = {
        "record key column": config.record_key_fields,
        "partition column": config.partition_fields,
        "ordering column": () if operation == DELETE else config.ordering_fields,
    }
    if len(config.ordering_fields) > 1:
        raise UnsupportedTableError(
            f"The table {where} has several ordering fields ({', '.join(config.ordering_fields)}).",
            "Write it with Apache Hudi; pyhudi knows one ordering field so far.",
        )
    for role, names in needed.items():
        for name in names:
            if name not in incoming.names:
                raise MissingColumnError(
                    f"The {role} {name!r} of the table {where} is not among the incoming columns "
                    f"({', '.join(incoming.names)}).",
                    "Add the column to the DataFrame, or correct the option that names it.",
                )


def _table_schema(table: pa.Schema | None, incoming: pa.Schema, operation: str, where: str) -> pa.Schema:
    """Return the table's columns, having checked that the incoming ones fit them."""
    fresh = canonical(incoming)
    if table is None:
        if operation == DELETE:
            raise TableNotFoundError(
                f"The table {where} was created and never written, so that there is nothing to delete.",
                "Write rows first.",
            )
        return fresh
    if operation == DELETE:
        return table
    differences = []
    for field in table:
        if field.name not in fresh.names:
            if field.name != IS_DELETED:
                differences.append(f"{field.name}: {field.type} in the table, absent here")
        elif not _fits(fresh.field(field.name), field):
            differences.append(f"{field.name}: {field.type} in the table, {fresh.field(field.name).type} here")
    known = {*table.names, IS_DELETED}
    differences += [
        f"{field.name}: absent in the table, {field.type} here" for field in fresh if field.name not in known
    ]
    if differences:
        raise SchemaMismatchError(
            f"The incoming columns differ from those of the table {where}: {'; '.join(differences)}.",
            "Select and cast the DataFrame to the table's columns; pyhudi does not evolve a schema yet.",
        )
    return table


def _fits(incoming: pa.Field, kept: pa.Field) -> bool:
    try:
        conform_array(pa.array([], incoming.type), kept)
    except SchemaMismatchError:
        return False
    return True


def _check_spec(spec: RowSpec) -> None:
    _check_judge(spec.columns, IS_DELETED, "says which rows are deletes", pa.types.is_boolean)
    _check_judge(spec.columns, spec.ordering_field, "orders rows", lambda kind: not pa.types.is_nested(kind))


def _check_judge(schema: pa.Schema, name: str | None, role: str, fits: Callable[[pa.DataType], bool]) -> None:
    if name in schema.names and not fits(schema.field(name).type):
        raise UnsupportedTypeError(
            f"Column {name!r} {role}, which no value of its type {schema.field(name).type} can.", "Cast the column."
        )


def _times(count: int, timeline: Timeline, config: TableConfig) -> list[str]:
    times: list[str] = []
    greatest = timeline.greatest_time()
    for _ in range(count):
        greatest = next_time(int(time.time() * 1000), greatest, config.timezone)
        times.append(greatest)
    return times
