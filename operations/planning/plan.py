"""The plan of one write, made before it reads a row or writes a byte."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial

from ...storage import Storage, open_storage
from ...table.config import TableConfig
from ...table.config.property_keys import CREATE_SCHEMA, MERGE_ON_READ
from ...table.latest_schema import latest_schema
from ...table.merging.merger import MergeRules
from ...table.schema.columns import avro_schema
from ...table.seen_table import SeenTable
from ...timeline.metadata.codec import Codec
from ...timeline.writers.owner import Owner
from ...timeline.writers.write_notes import new_key
from ..following.kept_metadata import refuse_disabled_metadata, refuse_unsupported_partitions
from ..meeting.taken import taken_since, with_retries
from ..meeting.transaction import Transaction
from ..result import find_write
from ..rollback.pending import OtherWriters, PlannedRollback
from ..transaction.followers import bounded_columns
from ..write_ids import generated_id, is_generated
from .columns import check_deciding_columns, check_log_orders
from .operation import DELETE, REPLACING
from .pinned import pin
from .request import WriteRequest
from .row_plan import RowPlan, plan_rows, seen_numbers
from .target import check_numbers, find_target


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan(RowPlan):
    """The plan of one write, for each of its tasks and for its commit.

    Attributes:
        transaction: The instant that the write becomes, whose time its first task chooses.
        rollbacks: Dead writes that are rolled back before the write begins.
        config_changes: Properties that the commit adds to an existing table.
        replays: Requested time of a completed instant with the same write id: the write then does nothing.
        notices: The notices of `Target`, and of the check of bucket numbers.
    """

    transaction: Transaction
    rollbacks: tuple[PlannedRollback, ...]
    creates_table: bool
    config_changes: Mapping[str, str]
    replays: str | None
    notices: tuple[str, ...] = ()

    @property
    def instant_time(self) -> str:
        return self.transaction.instant_time

    def at(self, instant_time: str) -> WritePlan:
        """Return the plan with the time of its instant, which the first task chooses."""
        return replace(self, transaction=self.transaction.at(instant_time))

    def replaced_by(self, later: WritePlan) -> WritePlan:
        """Return the plan that a later attempt of this write made, with the ids and the micro-batch of this plan.

        The rollbacks and the commit's extra metadata stay those of this plan, too.
        """
        work = replace(
            self.transaction,
            table=later.table,
            action=later.transaction.action,
            watermark=later.transaction.watermark,
            bounded=later.transaction.bounded,
        )
        own_settings = self.settings
        commit = replace(later.settings.commit, extra_metadata=own_settings.commit.extra_metadata)
        settings = replace(later.settings, batch=own_settings.batch, commit=commit)
        return replace(later, transaction=work, settings=settings, rollbacks=self.rollbacks)

    def buckets_of(self, partition_path: str) -> int | None:
        """Return the number of buckets by which the write places rows in a partition; None without buckets."""
        return None if self.numbers is None else self.numbers.of(partition_path)

    @property
    def new_config(self) -> TableConfig:
        """The properties of the table that this write creates; they keep the columns when commits are archived."""
        columns = avro_schema(self.schema, self.config.name)
        return TableConfig({**self.config.kept.properties, CREATE_SCHEMA: columns})

    def of_deletes(self) -> WritePlan:
        """Return the part of this write that deletes keys in partitions that it does not replace."""
        rules = MergeRules()
        return replace(self, operation=DELETE, rules=rules, partial_columns=None, flagged=False, positioned=False)

    def requested(self, codec: Codec) -> bytes:
        """Return the content of the requested file of the write's instant; empty for a commit or a delta commit."""
        if self.transaction.action != "replacecommit":
            return b""
        from ...timeline.metadata.models import RequestedReplaceMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

        # A pending replacecommit without its operation breaks Apache Hudi's conflict check.
        return codec.encode(RequestedReplaceMetadata(operation_type=self.operation))


def plan_write(request: WriteRequest) -> WritePlan:
    """Return the plan of a write; raise PyHudiError if options, schema or table forbid it."""
    return plan_seen(request)[0]


def plan_seen(request: WriteRequest) -> tuple[WritePlan, SeenTable]:
    """Return the plan of a write, and the table as the write sees it, for a process that also carries the write out.

    Raises as `plan_write`.
    """
    storage = open_storage(request.path, request.storage_options, durable=request.write.durable)
    return with_retries(partial(_plan_once, request, storage), lambda error: taken_since(storage, error) is not None)


def _plan_once(request: WriteRequest, storage: Storage) -> tuple[WritePlan, SeenTable]:
    """Return the plan of a write and the table that it sees, from one look at the table.

    ``storage`` is the store at the path of the ``request``. Raises PyHudiError if options, columns or the table forbid
    the write, and if other instants take a file away meanwhile; then the caller looks again.
    """
    target = find_target(request, storage)
    table, config = target.table, target.config
    pinned = pin(table, request.write.patience, request.write.origin.based_on)
    timeline = pinned.timeline
    columns = latest_schema(config, timeline, writing=True) if target.exists else None
    numbers = seen_numbers(target, timeline)
    notices = (*target.notices, *check_numbers(request, target, numbers))
    rows = plan_rows(request, target, columns, numbers)
    replays = None
    # No caller gives a generated id again, so no earlier write has it.
    if request.write_id and not is_generated(request.write_id):
        completed = find_write(table, timeline, request.write_id)
        replays = None if completed is None else completed.instant
    # For a micro-batch, its first task judges the pending instants, because only tasks know the query.
    judges = replays is None and not request.write.is_batch
    rollbacks = pinned.rollbacks_first(OtherWriters(table, request.write.patience), judges=judges)
    if target.exists:
        refuse_unsupported_partitions(config, storage.path)
        if request.write.metadata_enable is False:
            refuse_disabled_metadata(config, storage.path)
    write_id = request.write_id or generated_id()
    key = request.key or new_key(config.timezone)
    transaction = Transaction(
        table=table,
        action=_action(config, rows.operation),
        instant_time="",
        write_id=write_id,
        owner=Owner.of_this_process(write_id, request.application, request.write.patience, key),
        watermark=pinned.watermark,
        patience=request.write.patience,
        key=key,
        bounded=bounded_columns(table),
    )
    plan = WritePlan(
        **{field.name: getattr(rows, field.name) for field in fields(rows)},
        transaction=transaction,
        rollbacks=rollbacks,
        creates_table=not target.exists,
        config_changes=target.changes,
        replays=replays,
        notices=tuple(dict.fromkeys(notices)),
    )
    check_deciding_columns(plan.spec, plan.schema, config.payload, storage.path)
    check_log_orders(config, plan.schema, plan.settings.logs.block_format, storage.path)
    return plan, SeenTable(table, timeline)


def buckets_by_partition(plan: RowPlan, partitions: Iterable[str]) -> dict[str, int]:
    """Return the number of buckets by which a write places rows in some partitions; nothing without buckets."""
    if plan.numbers is None:
        return {}
    number_by_path = {path: plan.numbers.of(path) for path in partitions}
    return {path: number for path, number in number_by_path.items() if number is not None}


def _action(config: TableConfig, operation: str) -> str:
    """Return the action of the instant that a write becomes, by its operation and the type of its table."""
    if operation in REPLACING:
        return "replacecommit"
    return "deltacommit" if config.table_type == MERGE_ON_READ else "commit"
