"""What one write will do, decided before any row is seen and without writing a byte."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from ..errors import TableNotFoundError
from ..storage import open_storage
from ..storage.base import Storage
from ..table.config import COMMIT_TIME_ORDERING, TableConfig, check_supported, load_config
from ..table.deletes import IS_DELETED
from ..table.keys import KeyGenerator
from ..table.latest_schema import latest_schema
from ..table.schema import check_storable, without_meta
from ..timeline.clock import next_time
from ..timeline.layout import layout_of
from ..timeline.owner import Owner
from ..timeline.timeline import Timeline, Watermark
from ..writer.rows import RowSpec
from .metadata_table import check_retirable
from .operation import DELETE, OVERWRITE, choose_operation
from .pending import PlannedRollback, settle_pending
from .replay import find_write
from .settings import WriteRequest, WriteSettings
from .table_settings import changes_to, new_config
from .write_schema import check_columns, check_judges, table_schema

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
            return RowSpec(pa.schema([]), (), deletes=True)
        flag = [pa.field(IS_DELETED, pa.bool_())] if self.flagged else []
        ordering = () if self.config.merge_mode == COMMIT_TIME_ORDERING else self.config.ordering_fields
        return RowSpec(pa.schema([*self.schema, *flag]), ordering, deletes=False, marker=self.config.delete_marker)

    def storage(self) -> Storage:
        """Open the table's store."""
        return open_storage(self.path, self.storage_options)


def plan_write(request: WriteRequest) -> WritePlan:
    """Decide what a write will do; nothing is written.

    Raises:
        PyHudiError: The options, the schema or the table do not allow the write; see `pyhudi.errors`.
    """
    storage = open_storage(request.path, request.storage_options)
    operation, combine = choose_operation(request)
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
    incoming = without_meta(request.schema)
    check_storable(incoming)
    check_columns(config, incoming, operation, storage.path)
    schema = table_schema(schema, incoming, operation, storage.path)
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
    check_judges(plan.spec, storage.path)
    return plan


def _times(count: int, timeline: Timeline, config: TableConfig) -> list[str]:
    times: list[str] = []
    greatest = timeline.greatest_time()
    for _ in range(count):
        greatest = next_time(int(time.time() * 1000), greatest, config.timezone)
        times.append(greatest)
    return times
