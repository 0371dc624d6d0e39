"""What one write will do, decided before any row is seen and without writing a byte."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from ...errors import CommitConflictError, MissingColumnError, UnsupportedTypeError
from ...index.base import LookupIndex
from ...index.registry import index_for, lookup_for
from ...storage import Storage, open_storage
from ...table.config import TableConfig
from ...table.config.property_keys import COMMIT_TIME_ORDERING, CREATE_SCHEMA, MERGE_ON_READ
from ...table.keys.generator import KeyGenerator
from ...table.latest_schema import latest_schema
from ...table.merging.deletes import IS_DELETED
from ...table.merging.merger import Meeting, MergeRules
from ...table.merging.row_spec import RowSpec
from ...table.schema.changes import SchemaChange, changes_between
from ...table.schema.columns import FILE_GROUP, POSITION, RECORD_KEY, avro_schema, check_storable, without_meta
from ...table.schema.types import sql_name
from ...table.table import Table
from ...timeline.metadata.codec import Codec
from ...timeline.timeline import Timeline
from ...timeline.watermark import Watermark, spell_moment
from ...timeline.writers.owner import Owner
from ..result import find_write
from ..rollback.pending import PlannedRollback, broken_off, settle_pending
from ..transaction.commit_path import times_after
from ..transaction.followers import check_retirable
from ..transaction.transaction import Transaction
from ..write_ids import GENERATED_ID
from .columns import check_columns, check_judges, check_located, check_log_orders, makes_anew, table_schema
from .operation import DELETE, DELETE_PARTITION, REPLACING, Operation, opens_alone
from .partial_update import partial_columns
from .request import WriteRequest, WriteSettings
from .target import Target, find_target

# Apache Hudi orders by partition path and record key, of which within a file only the key differs.
_SORTED_BY_KEY = frozenset({"GLOBAL_SORT", "PARTITION_SORT"})


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One write, as every task and the commit see it; small whatever the table's size.

    Attributes:
        transaction: The instant that it becomes.
        rollbacks: Dead writes that are rolled back before it begins.
        creates_table: True when the table does not exist yet.
        config_changes: Properties that the commit adds to an existing table.
        operation: Hudi's name of the operation.
        rules: How incoming rows meet one another and the rows that are there.
        sort_columns: Columns that the rows of each file are sorted by.
        packed_schema: The table's data columns, an Arrow schema message, compressed: plans travel with every task.
        flagged: Whether incoming rows have a delete flag that the table does not keep.
        positioned: Whether it matters where incoming rows stood before they were moved, or cut by their partitions.
        located: Whether incoming rows say which file group they go to, having been looked up and placed.
        settings: How to go about the work.
        replays: Requested time of the completed instant of the same write id; nothing is to be done then.
        partial_columns: The columns of the table that the rows of a partial update have; None where rows are whole.
        schema_changes: The columns that the write adds or makes wider; none where it makes the table or all its columns
            anew.
    """

    transaction: Transaction
    rollbacks: tuple[PlannedRollback, ...]
    creates_table: bool
    config_changes: Mapping[str, str]
    operation: str
    rules: MergeRules
    sort_columns: tuple[str, ...]
    packed_schema: bytes
    flagged: bool
    positioned: bool
    located: bool
    settings: WriteSettings
    replays: str | None = None
    partial_columns: tuple[str, ...] | None = None
    schema_changes: tuple[SchemaChange, ...] = ()

    @property
    def path(self) -> str:
        """The table's path."""
        return self.transaction.path

    @property
    def config(self) -> TableConfig:
        """The table's properties, as they are or will be."""
        return self.transaction.config

    @property
    def table(self) -> Table:
        """The table, with the properties that it has or is going to have."""
        return self.transaction.table

    @property
    def storage(self) -> Storage:
        """The table's store."""
        return self.transaction.storage

    @property
    def instant_time(self) -> str:
        """Requested time of the instant."""
        return self.transaction.instant_time

    @property
    def appends(self) -> bool:
        """Whether rows of file groups that are there go to log files, for whoever reads them to merge.

        What has to look at the rows that are there, or keeps two of one key, rewrites the file group.
        """
        merges = self.rules.meeting is Meeting.MERGE and not self.rules.must_find
        return merges and self.config.table_type == MERGE_ON_READ

    @property
    def lays_rows(self) -> bool:
        """Whether rows of one key are put together, all at once, because one may leave columns to the others."""
        lays = self.partial_columns is not None or self.config.partial_update_mode is not None
        return lays and self.operation not in {DELETE, DELETE_PARTITION}

    @property
    def partial_blocks(self) -> bool:
        """Whether log blocks leave out the columns that the rows of a partial update lack.

        A table with the column ``_hoodie_is_deleted`` gets whole rows: Apache Hudi 1.2 looks for that column in partial
        blocks, which lack it, and drops the rows.
        """
        return self.partial_columns is not None and IS_DELETED not in self.schema.names

    @property
    def looks_up(self) -> bool:
        """Whether the table's index has to be asked where keys are, so that no task knows it of itself."""
        return index_for(self.config).needs_lookup

    @property
    def lookup(self) -> LookupIndex:
        """The index of a table whose keys have to be looked up.

        Raises:
            ValueError: They need not be.
        """
        index = lookup_for(self.config, self.settings.lookup)
        if index is None:
            raise ValueError(f"the index of {self.path} looks no key up")
        return index

    @property
    def opens_alone(self) -> bool:
        """Whether each task writes its rows to new file groups of its own, to which no other task has rows to add."""
        return opens_alone(self.operation, self.rules, self.config)

    @property
    def folds(self) -> bool:
        """Whether of incoming rows of one key one goes on."""
        return self.rules.fold or self.rules.meeting is Meeting.MERGE

    @property
    def moves_rows(self) -> bool:
        """Whether a row whose key is in another partition than its own moves there, and is deleted where it was."""
        merges = self.rules.meeting is Meeting.MERGE and self.operation != DELETE
        return merges and self.settings.lookup.moves_rows and index_for(self.config).is_global

    @property
    def takes_rows(self) -> bool:
        """Whether the rows given matter; partitions to be deleted may be named by an option alone."""
        return self.operation != DELETE_PARTITION or self.settings.partitions_to_delete is None

    @property
    def schema(self) -> pa.Schema:
        """The table's data columns."""
        return pa.ipc.read_schema(pa.py_buffer(zlib.decompress(self.packed_schema)))

    @property
    def new_config(self) -> TableConfig:
        """The properties of a table that this write creates: with its columns, which outlive its commits."""
        columns = avro_schema(self.schema, self.config.name)
        return TableConfig({**self.config.kept.properties, CREATE_SCHEMA: columns})

    @property
    def spec(self) -> RowSpec:
        """What is kept of each incoming row."""
        if self.operation in {DELETE, DELETE_PARTITION}:
            return RowSpec(pa.schema([]), (), deletes=True)
        flag = [pa.field(IS_DELETED, pa.bool_())] if self.flagged else []
        ordering = () if self.config.merge_mode == COMMIT_TIME_ORDERING else self.config.ordering_fields
        moved = [pa.field(POSITION, pa.int64(), nullable=False)] if self.positioned else []
        kept = [one for one in self.schema if self.partial_columns is None or one.name in self.partial_columns]
        return RowSpec(pa.schema([*kept, *flag, *moved]), ordering, deletes=False, marker=self.config.delete_marker)

    def requested(self, codec: Codec) -> bytes:
        """Return what the instant's requested file holds."""
        if self.transaction.action != "replacecommit":
            return b""
        from ...timeline.metadata.models import RequestedReplaceMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

        # A pending replacecommit that says nothing of its operation breaks Apache Hudi's conflict check.
        return codec.encode(RequestedReplaceMetadata(operation_type=self.operation))


def plan_write(request: WriteRequest) -> WritePlan:
    """Decide what a write will do; nothing is written.

    Raises:
        PyHudiError: The options, the schema or the table do not allow the write; see `pyhudi.errors`.
    """
    storage = open_storage(request.path, request.storage_options, durable=request.write.durable)
    request, moved = _without(request, POSITION, pa.int64())
    request, located = _without(request, FILE_GROUP, pa.string())
    target = find_target(request, storage)
    table, config, operation = target.table, target.config, target.operation.name
    now, timeline, watermark, going = _pin(table, request.write.based_on)
    schema = latest_schema(config, timeline, writing=True) if target.exists else None
    known, schema = schema, _columns(config, schema, request, operation)
    partial = partial_columns(config, known, request, target.operation)
    replays = None
    if request.write_id and not request.write_id.startswith(GENERATED_ID):
        done = find_write(table, timeline, request.write_id)
        replays = None if done is None else done.instant
    victims = frozenset(one.victim.requested_time for one in going)
    dead = () if replays else settle_pending(table, timeline, request.write.patience, victims)
    if target.exists:
        check_retirable(config, request.write.metadata_enable, storage.path)
    times = times_after(table, now, len(dead) + 1)
    write_id = request.write_id or f"{GENERATED_ID}{uuid.uuid4()}"
    transaction = Transaction(
        table=table,
        action=_action(config, operation),
        instant_time=times[-1],
        write_id=write_id,
        owner=Owner.of_this_process(write_id, request.application),
        watermark=watermark,
        patience=request.write.patience,
    )
    everywhere = index_for(config).is_global
    # A row that moves to another partition leaves a delete where it was.
    leaves = everywhere and target.operation.rules.meeting is Meeting.MERGE and operation != DELETE
    plan = WritePlan(
        transaction=transaction,
        rollbacks=(*going, *(PlannedRollback(one, at, beat) for (one, beat), at in zip(dead, times, strict=False))),
        creates_table=not target.exists,
        config_changes=target.changes,
        operation=operation,
        rules=replace(target.operation.rules, known_only=partial is not None),
        sort_columns=_sort_columns(target.operation, request.write, schema, storage.path),
        packed_schema=zlib.compress(schema.serialize().to_pybytes()),
        flagged=IS_DELETED not in schema.names and (IS_DELETED in request.schema.names or leaves),
        positioned=target.operation.breaks_ties and (moved or everywhere),
        located=located and index_for(config).needs_lookup,
        settings=_with_filters(request.write, target),
        replays=replays,
        partial_columns=partial,
        schema_changes=() if known is None or makes_anew(request, operation) else changes_between(known, schema),
    )
    check_judges(plan.spec, schema, plan.config.payload, storage.path)
    check_log_orders(plan.config, schema, plan.settings.logs.block_format, storage.path)
    return plan


def _with_filters(settings: WriteSettings, target: Target) -> WriteSettings:
    """Return the settings, with bloom filters for a table of whose index nobody knows.

    Apache Hudi gives all files of such a table one, and with its bloom index fails on a file without.
    """
    if not target.told or settings.output.bloom_filter is not None:
        return settings
    return replace(settings, output=replace(settings.output, bloom_filter=True))


def _action(config: TableConfig, operation: str) -> str:
    if operation in REPLACING:
        return "replacecommit"
    return "deltacommit" if config.table_type == MERGE_ON_READ else "commit"


def _without(request: WriteRequest, name: str, kind: pa.DataType) -> tuple[WriteRequest, bool]:
    """Return the request without a column that placed rows alone have, and whether they had it."""
    if not request.write.colocated or name not in request.schema.names:
        return request, False
    given = request.schema.field(name).type
    if given not in {kind, pa.large_string() if pa.types.is_string(kind) else kind}:
        raise UnsupportedTypeError(
            f"The column {name!r} of rows that pyhudi placed is of the type {sql_name(kind)}, and these have one of "
            f"{sql_name(given)}.",
            "Leave the column as pyhudi made it, and give a column of your own another name.",
        )
    schema = pa.schema([field for field in request.schema if field.name != name])
    return replace(request, schema=schema), True


def _columns(config: TableConfig, known: pa.Schema | None, request: WriteRequest, operation: str) -> pa.Schema:
    """Return the table's columns after the write, having held the incoming ones against what the write needs."""
    incoming = without_meta(request.schema)
    if operation == DELETE_PARTITION:
        if request.write.partitions_to_delete is None:
            check_columns(config, incoming, operation, request.path)
        return table_schema(known, incoming, config, request, operation)
    check_storable(incoming)
    if operation == DELETE and config.generates_keys:
        check_located(request.schema, request.path)
        return table_schema(known, incoming, config, request, operation)
    check_columns(config, incoming, operation, request.path)
    if known is not None and request.write.partial_update:
        return known
    schema = table_schema(known, incoming, config, request, operation)
    KeyGenerator(config, schema).check(incoming)
    return schema


def _sort_columns(operation: Operation, settings: WriteSettings, schema: pa.Schema, where: str) -> tuple[str, ...]:
    """Return what orders the rows of one file: a bucketed table leaves nothing else to a sort."""
    if not operation.sorts:
        return ()
    for name in settings.bulk_insert_sort_columns:
        if name not in schema.names:
            raise MissingColumnError(
                f"The rows of a file are to be sorted by {name!r}, which is no column of the table {where} "
                f"({', '.join(schema.names)}).",
                "Correct hoodie.bulkinsert.user.defined.partitioner.sort.columns.",
            )
        if pa.types.is_nested(schema.field(name).type):
            raise UnsupportedTypeError(
                f"The rows of a file cannot be sorted by the column {name!r} of type {schema.field(name).type}.",
                "Name columns of simple types in hoodie.bulkinsert.user.defined.partitioner.sort.columns.",
            )
    by_key = (RECORD_KEY,) if settings.bulk_insert_sort_mode in _SORTED_BY_KEY else ()
    return settings.bulk_insert_sort_columns or by_key


def _pin(table: Table, based_on: str) -> tuple[Timeline, Timeline, Watermark, tuple[PlannedRollback, ...]]:
    """Return the timeline, what of it the write sees, the moment of that, and the rollbacks that it finishes first.

    Others' commits since that moment are held against the write. Of what is being rolled back it sees nothing.
    """
    # Asked before the timeline: what is archived in between is on neither, and is found among what was archived since.
    archive = table.archive.state()
    now = table.timeline()
    going = broken_off(now)
    timeline = now.without([one.victim.requested_time for one in going])
    if based_on:
        moment, *tally = based_on.split(":")
        past = timeline.as_of_completion(moment)
        if tally and based_on != spell_moment(past.completed):
            raise CommitConflictError(
                f"What the rows for the table {table.path} were made from, as of {moment}, cannot be told any more: "
                "meanwhile instants were archived, or completed by a clock that lags.",
                "Make the rows anew and write them.",
            )
        if tally:
            # What the archive held at that earlier moment nobody knows.
            return now, timeline, past.watermark(), going
        # Instants that completed later may have been archived since: the check at commit asks the archive for them.
        return now, timeline, replace(past.watermark(), completed_until=moment, by_time=True), going
    return now, timeline, replace(timeline.watermark(), archive=archive), going


def seen_moment(table: Table, based_on: str = "") -> tuple[Timeline, str]:
    """Return what a write that was planned now would see, and that moment as the option ``based_on`` takes it.

    Whoever looks something up for a write before it is planned pins the write to what was seen.

    Args:
        table: The table.
        based_on: The moment that the rows were made at, if they were made from the table.

    Raises:
        CommitConflictError: That moment cannot be told any more.
    """
    _, timeline, _, _ = _pin(table, based_on)
    if based_on:
        return timeline.as_of_completion(based_on.partition(":")[0]), based_on
    return timeline, spell_moment(timeline.completed)
