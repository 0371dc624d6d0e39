"""What one write makes of its rows: their columns, and how they meet; planned before the write has an instant."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import pyarrow as pa

from ...errors import UnsupportedTypeError
from ...index.base import Index, LookupIndex
from ...index.registry import has_buckets, index_for, lookup_for
from ...storage import Storage
from ...table.buckets.numbers import BucketNumbers, bucket_numbers, numbers_of_property
from ...table.config import TableConfig
from ...table.config.property_keys import COMMIT_TIME_ORDERING, LOOKUP_INDEXES, MERGE_ON_READ, SORT_BY
from ...table.config.sort_order import SortOrder
from ...table.files.logs.block_format import delete_order
from ...table.keys.generator import KeyGenerator
from ...table.merging.deletes import IS_DELETED
from ...table.merging.merger import MergeRules, RowMeeting
from ...table.merging.row_spec import DeleteOrder, RowSpec
from ...table.schema.changes import SchemaChange, changes_between
from ...table.schema.columns import ARRIVES, FILE_GROUP, POSITION, RECORD_KEY, check_storable, without_meta
from ...table.schema.types import sql_name
from ...table.table import Table
from ...timeline.timeline import Timeline
from ...writer.sort import check_sortable
from ..write_settings import BulkInsertSort
from .columns import check_columns, check_located, replaces_columns, table_schema
from .operation import DELETE, DELETE_PARTITION, REPLACING, keeps_keys_unique, opens_alone
from .partial_update import partial_columns
from .request import WriteRequest, WriteSettings
from .target import Target

# Apache Hudi orders by partition path and record key; within a file only the key differs.
_SORTED_BY_KEY = frozenset({"GLOBAL_SORT", "PARTITION_SORT"})
_SORT_OPTION = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What one write makes of its rows, for each of its tasks; small whatever the table's size.

    Attributes:
        rules: How incoming rows meet each other and the stored rows.
        packed_schema: The table's data columns, as a compressed Arrow schema message, because each task gets the plan.
        flagged: Whether incoming rows have a delete flag that the table does not keep.
        positioned: Whether incoming rows have their original position in a column, because a shuffle or cut loses it.
        located: Whether incoming rows name their file group, after a lookup.
        arriving: Whether incoming rows say how they come to their places; a merge makes such rows.
        partial_columns: The columns of the rows of a partial update; None if rows are whole.
        schema_changes: The columns that the write adds or widens; empty if it replaces all columns.
        numbers: The numbers of buckets by which the write places its rows; None without a bucket index.
        order: The order of the rows in its base files; None for the order of the table, or for no order.
    """

    table: Table
    operation: str
    rules: MergeRules
    packed_schema: bytes
    flagged: bool
    positioned: bool
    located: bool
    arriving: bool
    settings: WriteSettings
    partial_columns: tuple[str, ...] | None
    schema_changes: tuple[SchemaChange, ...]
    numbers: BucketNumbers | None
    order: SortOrder | None

    @property
    def path(self) -> str:
        return self.table.path

    @property
    def config(self) -> TableConfig:
        return self.table.config

    @property
    def storage(self) -> Storage:
        return self.table.storage

    @property
    def appends(self) -> bool:
        """Whether rows of existing file groups go to log files, which readers merge.

        If a rule must see the stored rows, or keeps two rows of one key, the write rewrites the file group instead.
        """
        merges = self.rules.meeting is RowMeeting.MERGE and not self.rules.must_find
        return merges and self.config.table_type == MERGE_ON_READ

    @property
    def counts_copies(self) -> bool:
        """Whether an append first counts the stored rows of its keys, so that one task needs all rows of a group.

        A lookup in the table's files needs no count: it tells which file groups hold keys several times.
        """
        return self.appends and self.rules.of_stored and self.config.index_type not in LOOKUP_INDEXES

    @property
    def writing_rules(self) -> MergeRules:
        """The rules by which rows meet the rows of a file group.

        If keys are unique in the whole table, the lookup counts the rows of a key, and the file group need not.
        """
        return replace(self.rules, of_stored=self.rules.of_stored and not index_for(self.config).is_global)

    @property
    def lays_rows(self) -> bool:
        """Whether all rows of one key are combined at once, because each may keep columns of the others."""
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
        """Whether the index looks keys up, so that no task can compute the file group of a key."""
        return index_for(self.config).needs_lookup

    @property
    def index(self) -> Index:
        """The index by which the write finds file groups, with its bucket numbers and its settings for lookups."""
        return index_for(self.config, self.settings.lookup, self.numbers)

    @property
    def lookup(self) -> LookupIndex:
        """The index, if it looks keys up; raises ValueError for an index that computes file groups."""
        index = lookup_for(self.config, self.settings.lookup)
        if index is None:
            raise ValueError(f"the index of {self.path} looks no key up")
        return index

    @property
    def opens_alone(self) -> bool:
        """Whether each task writes to new file groups of its own, to which no other task adds rows."""
        return opens_alone(self.operation, self.rules, self.config)

    @property
    def keeps_keys_unique(self) -> bool:
        """Whether a write that replaces partitions must not leave a key of its rows in another partition."""
        return keeps_keys_unique(self.operation, self.config)

    @property
    def names_places(self) -> bool:
        """Whether incoming rows name their file groups, because they were read there, or a lookup chose it."""
        return self.located or (self.config.generates_keys and not self.opens_alone)

    @property
    def folds(self) -> bool:
        """Whether only one of several incoming rows of a key counts."""
        return self.rules.fold or self.rules.meeting is RowMeeting.MERGE

    @property
    def moves_rows(self) -> bool:
        """Whether a row moves if its key is in another partition, so that the write deletes the key there."""
        merges = self.rules.meeting is RowMeeting.MERGE and self.operation != DELETE
        return merges and self.settings.lookup.moves_rows and index_for(self.config).is_global

    @property
    def takes_rows(self) -> bool:
        """Whether the incoming rows matter; they do not if an option names the partitions to delete."""
        return self.operation != DELETE_PARTITION or self.settings.replacement.partitions_to_delete is None

    @property
    def replaces_without_rows(self) -> bool:
        """Whether the write replaces file groups although none of its tasks got a row.

        Any stream has batches without rows, and they are the whole table in the output mode complete alone.
        """
        settings = self.settings
        is_only_batch = settings.is_batch and self.takes_rows and not settings.stream.replaces_table
        return self.operation in REPLACING and not is_only_batch

    @property
    def schema(self) -> pa.Schema:
        """The table's data columns after the write."""
        return pa.ipc.read_schema(pa.py_buffer(zlib.decompress(self.packed_schema)))

    @property
    def spec(self) -> RowSpec:
        """What decides between two rows of a key in this write: their columns, ordering fields and delete marker."""
        order = DeleteOrder.OWN
        if self.settings.origin.deletes_read:
            # The write read the rows that it deletes, so its deletes can carry the stored ordering values.
            order = DeleteOrder.STORED if self._held_order else DeleteOrder.NONE
        if self.operation in {DELETE, DELETE_PARTITION}:
            # The operation removes any stored row. Ordering values matter only in log files, for rows that come later.
            ordering = self._held_order if order is DeleteOrder.STORED and self.appends else ()
            values = pa.schema([self.schema.field(name).with_nullable(True) for name in ordering])
            return RowSpec(values, ordering, deletes=True, order=order)
        flag_columns = [pa.field(IS_DELETED, pa.bool_())] if self.flagged else []
        ordering = () if self.config.merge_mode == COMMIT_TIME_ORDERING else self.config.ordering_fields
        arrival_columns = [pa.field(ARRIVES, pa.int8(), nullable=False)] if self.arriving else []
        position_columns = [pa.field(POSITION, pa.int64(), nullable=False)] if self.positioned else []
        partial = self.partial_columns
        data_columns = [column for column in self.schema if partial is None or column.name in partial]
        columns = pa.schema([*data_columns, *flag_columns, *arrival_columns, *position_columns])
        return RowSpec(columns, ordering, deletes=False, marker=self.config.delete_marker, order=order)

    @property
    def looked_up_order(self) -> tuple[str, ...]:
        """The ordering fields of which a delete by key gets the stored values, because the index looked its row up."""
        reads = self.operation == DELETE and self.config.index_type in LOOKUP_INDEXES
        return self._held_order if reads and self.appends and not self.settings.origin.deletes_read else ()

    @property
    def _held_order(self) -> tuple[str, ...]:
        """The ordering fields whose stored values deletes in log files carry; empty unless every reader reads them."""
        return delete_order(self.config, self.schema)


def plan_rows(
    request: WriteRequest, target: Target, stored_columns: pa.Schema | None, numbers: BucketNumbers | None = None
) -> RowPlan:
    """Return what a write makes of its rows; raise if its options or its columns do not fit the table.

    ``request`` is the write as the caller asked for it, and ``target`` its table, new or existing, with the operation.
    ``stored_columns`` are the table's columns, None for a table that was never written. ``numbers`` are the numbers of
    buckets at the moment that the write sees.
    """
    # Only rows that pyhudi placed or merged before have columns of pyhudi; else such a column is the user's.
    is_placed, is_merged = request.write.colocated, request.write.origin.counted is not None
    request, has_positions = _without_column(request, POSITION, pa.int64(), is_placed)
    request, located = _without_column(request, FILE_GROUP, pa.string(), is_placed)
    request, arriving = _without_column(request, ARRIVES, pa.int8(), is_merged)
    config, operation, rules = target.config, target.operation.name, target.operation.rules
    schema = _columns_after_write(config, stored_columns, request, operation)
    partial = partial_columns(config, stored_columns, request, target.operation)
    index = index_for(config)
    # A row that moves to another partition leaves a delete in its old file group.
    leaves_deletes = index.is_global and rules.meeting is RowMeeting.MERGE and operation != DELETE
    return RowPlan(
        table=target.table,
        operation=operation,
        rules=replace(rules, known_only=partial is not None, of_stored=request.write.origin.of_stored),
        packed_schema=zlib.compress(schema.serialize().to_pybytes()),
        flagged=IS_DELETED not in schema.names and (IS_DELETED in request.schema.names or leaves_deletes),
        positioned=target.operation.breaks_ties and (has_positions or index.is_global),
        located=located and index.needs_lookup,
        arriving=arriving,
        settings=_settings_for_table(request.write, target),
        partial_columns=partial,
        schema_changes=_schema_changes(request, operation, stored_columns, schema),
        numbers=numbers,
        order=order_of(target, request.write.sort, schema),
    )


def _schema_changes(
    request: WriteRequest, operation: str, before: pa.Schema | None, after: pa.Schema
) -> tuple[SchemaChange, ...]:
    """Return the columns that the write adds or widens; empty for a new table, or if it replaces all columns."""
    return () if before is None or replaces_columns(request, operation) else changes_between(before, after)


def seen_numbers(target: Target, timeline: Timeline) -> BucketNumbers | None:
    """Return the numbers of buckets of a write's table at the moment of a timeline; None without a bucket index."""
    if not has_buckets(target.config):
        return None
    return bucket_numbers(target.table, timeline) if target.exists else numbers_of_property(target.config)


def _settings_for_table(settings: WriteSettings, target: Target) -> WriteSettings:
    """Return the settings; for a table whose index is only inferred, with bloom filters and a wider search.

    Apache Hudi gives each file of such a table a filter, and its bloom index fails on a file without a filter.
    """
    settings = replace(settings, lookup=target.lookup(settings.lookup))
    if not target.inferred or settings.output.bloom_filter is not None:
        return settings
    return replace(settings, output=replace(settings.output, bloom_filter=True))


def _without_column(
    request: WriteRequest, name: str, data_type: pa.DataType, is_made: bool
) -> tuple[WriteRequest, bool]:
    """Return the request without a column that only pyhudi makes, and whether it was there.

    ``is_made`` says whether pyhudi made the rows; else the column is the user's, and stays. Raises UnsupportedTypeError
    if pyhudi's column has another type.
    """
    if not is_made or name not in request.schema.names:
        return request, False
    actual_type = request.schema.field(name).type
    if actual_type not in {data_type, pa.large_string() if pa.types.is_string(data_type) else data_type}:
        raise UnsupportedTypeError(
            f"The column {name!r} of rows that pyhudi placed is of the type {sql_name(data_type)}, and these rows have "
            f"one of {sql_name(actual_type)}.",
            "Leave the column as pyhudi made it, and give a column of your own another name.",
        )
    schema = pa.schema([field for field in request.schema if field.name != name])
    return replace(request, schema=schema), True


def _columns_after_write(
    config: TableConfig, stored_columns: pa.Schema | None, request: WriteRequest, operation: str
) -> pa.Schema:
    """Return the table's columns after the write; raise if the incoming columns do not fit.

    ``config`` has the table's properties, ``stored_columns`` are its columns now, None before its first write, and
    ``operation`` is Apache Hudi's name of what the write does.
    """
    incoming = without_meta(request.schema)
    if operation == DELETE_PARTITION:
        # Unless an option names the partitions to delete, the incoming rows do, by their partition columns.
        if request.write.replacement.partitions_to_delete is None:
            check_columns(config, incoming, operation, request.path)
        return table_schema(stored_columns, incoming, config, request, operation)
    check_storable(incoming)
    if operation == DELETE and config.generates_keys:
        # Such rows were read from the table: their meta columns locate them, as there are no key columns.
        check_located(request.schema, request.path)
        return table_schema(stored_columns, incoming, config, request, operation)
    check_columns(config, incoming, operation, request.path)
    # `partial_columns` checks the columns of a partial update, which adds and widens none.
    if stored_columns is not None and request.write.partial_update:
        return stored_columns
    schema = table_schema(stored_columns, incoming, config, request, operation)
    KeyGenerator(config, schema).check(incoming)
    return schema


def order_of(target: Target, sort: BulkInsertSort, schema: pa.Schema) -> SortOrder | None:
    """Return the order that a write asks for; None if it asks for none, or the table has an order, which wins.

    Raises if rows cannot be sorted in that order.
    """
    operation, where = target.operation, target.table.path
    table_order, asked_columns = target.config.sort_order, sort.columns if operation.sorts else ()
    if table_order is not None:
        # Another writer may have dropped a column since; the table keeps the order by the others.
        check_sortable(
            [name for name in table_order.columns if name in schema.names or not target.exists], schema, where, SORT_BY
        )
        return None
    check_sortable(asked_columns, schema, where, _SORT_OPTION)
    by_key = (RECORD_KEY,) if operation.sorts and sort.mode in _SORTED_BY_KEY else ()
    return SortOrder(asked_columns or by_key, of_table=False) if asked_columns or by_key else None
