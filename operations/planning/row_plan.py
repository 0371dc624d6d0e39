"""What one write makes of its rows: the columns, and how rows meet; known before the write has an instant."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import pyarrow as pa

from ...errors import UnsupportedTypeError
from ...index.base import LookupIndex
from ...index.registry import index_for, lookup_for
from ...storage import Storage
from ...table.config import TableConfig
from ...table.config.property_keys import COMMIT_TIME_ORDERING, MERGE_ON_READ
from ...table.keys.generator import KeyGenerator
from ...table.merging.deletes import IS_DELETED
from ...table.merging.merger import Meeting, MergeRules
from ...table.merging.row_spec import RowSpec
from ...table.schema.changes import SchemaChange, changes_between
from ...table.schema.columns import FILE_GROUP, POSITION, check_storable, without_meta
from ...table.schema.types import sql_name
from ...table.table import Table
from .columns import check_columns, check_located, makes_anew, table_schema
from .operation import DELETE, DELETE_PARTITION, opens_alone
from .partial_update import partial_columns
from .request import WriteRequest, WriteSettings
from .target import Target


@dataclass(frozen=True, slots=True)
class RowPlan:
    """What one write makes of its rows, as every task sees it; small whatever the table's size.

    Attributes:
        table: The table, with the properties that it has or is going to have.
        operation: Hudi's name of the operation.
        rules: How incoming rows meet one another and the rows that are there.
        packed_schema: The table's data columns, an Arrow schema message, compressed: plans travel with every task.
        flagged: Whether incoming rows have a delete flag that the table does not keep.
        positioned: Whether it matters where incoming rows stood before they were moved, or cut by their partitions.
        located: Whether incoming rows say which file group they go to, having been looked up and placed.
        settings: How to go about the work.
        partial_columns: The columns of the table that the rows of a partial update have; None where rows are whole.
        schema_changes: The columns that the write adds or makes wider; none where it makes the table or all its columns
            anew.
    """

    table: Table
    operation: str
    rules: MergeRules
    packed_schema: bytes
    flagged: bool
    positioned: bool
    located: bool
    settings: WriteSettings
    partial_columns: tuple[str, ...] | None
    schema_changes: tuple[SchemaChange, ...]

    @property
    def path(self) -> str:
        """The table's path."""
        return self.table.path

    @property
    def config(self) -> TableConfig:
        """The table's properties, as they are or will be."""
        return self.table.config

    @property
    def storage(self) -> Storage:
        """The table's store."""
        return self.table.storage

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
    def spec(self) -> RowSpec:
        """What is kept of each incoming row."""
        if self.operation in {DELETE, DELETE_PARTITION}:
            return RowSpec(pa.schema([]), (), deletes=True)
        flag = [pa.field(IS_DELETED, pa.bool_())] if self.flagged else []
        ordering = () if self.config.merge_mode == COMMIT_TIME_ORDERING else self.config.ordering_fields
        moved = [pa.field(POSITION, pa.int64(), nullable=False)] if self.positioned else []
        kept = [one for one in self.schema if self.partial_columns is None or one.name in self.partial_columns]
        return RowSpec(pa.schema([*kept, *flag, *moved]), ordering, deletes=False, marker=self.config.delete_marker)


def plan_rows(request: WriteRequest, target: Target, known: pa.Schema | None) -> RowPlan:
    """Decide what a write makes of its rows.

    Args:
        request: The write.
        target: Its table, and what it does to it.
        known: The table's columns; None for a table that nobody has written to.

    Raises:
        PyHudiError: The options, the schema or the table do not allow the write; see `pyhudi.errors`.
    """
    request, moved = _without(request, POSITION, pa.int64())
    request, located = _without(request, FILE_GROUP, pa.string())
    config, operation, rules = target.config, target.operation.name, target.operation.rules
    schema = _columns(config, known, request, operation)
    partial = partial_columns(config, known, request, target.operation)
    index = index_for(config)
    # A row that moves to another partition leaves a delete where it was.
    leaves = index.is_global and rules.meeting is Meeting.MERGE and operation != DELETE
    return RowPlan(
        table=target.table,
        operation=operation,
        rules=replace(rules, known_only=partial is not None),
        packed_schema=zlib.compress(schema.serialize().to_pybytes()),
        flagged=IS_DELETED not in schema.names and (IS_DELETED in request.schema.names or leaves),
        positioned=target.operation.breaks_ties and (moved or index.is_global),
        located=located and index.needs_lookup,
        settings=_with_filters(request.write, target),
        partial_columns=partial,
        schema_changes=() if known is None or makes_anew(request, operation) else changes_between(known, schema),
    )


def _with_filters(settings: WriteSettings, target: Target) -> WriteSettings:
    """Return the settings, with bloom filters for a table of whose index nobody knows.

    Apache Hudi gives all files of such a table one, and with its bloom index fails on a file without.
    """
    if not target.told or settings.output.bloom_filter is not None:
        return settings
    return replace(settings, output=replace(settings.output, bloom_filter=True))


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
