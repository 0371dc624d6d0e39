"""Upserts whose rows have only some of the table's columns, checked against the table and the other options."""

from __future__ import annotations

import pyarrow as pa

from ...errors import (
    ColumnDifference,
    MissingColumnError,
    OptionConflictError,
    SchemaMismatchError,
    TableNotFoundError,
)
from ...index.registry import index_for
from ...table.config import TableConfig
from ...table.config.property_keys import INDEX_TYPE, MERGE_ON_READ, PARTIAL_UPDATE_MODE
from ...table.merging.deletes import IS_DELETED
from ...table.schema.columns import canonical, without_meta
from ...table.schema.evolution import ABSENT
from ...table.schema.fields import root_of
from ...table.schema.types import alike, sql_name
from .columns import check_columns, evolved
from .operation import DELETE, DELETE_PARTITION, UPSERT, Operation
from .request import PARTIAL_UPDATE, WriteRequest


def partial_columns(
    config: TableConfig, table: pa.Schema | None, request: WriteRequest, operation: Operation
) -> tuple[str, ...] | None:
    """Return the columns of a partial update's rows, in the order of the table; None if rows are whole.

    ``config`` has the table's properties, and ``table`` its columns, None before its first write. ``request`` says
    whether the write is a partial update, and has its columns. Raises if the options or the columns do not fit.
    """
    # The table itself may have a mode of partial updates, so this check also concerns whole rows.
    _check_index(config, request, operation)
    if not request.write.partial_update:
        return None
    _check_options(config, request, operation.name)
    if table is None:
        raise TableNotFoundError(
            f"The table {request.path} has no row yet that {PARTIAL_UPDATE} could update.", "Write whole rows first."
        )
    incoming = without_meta(request.schema)
    check_columns(config, incoming, operation.name, request.path)
    incoming_columns = pa.schema(
        [column for column in canonical(incoming) if column.name in table.names or column.name != IS_DELETED]
    )
    new_columns = [column for column in incoming_columns if column.name not in table.names]
    table_columns = pa.schema([column for column in table if column.name in incoming_columns.names])
    if new_columns:
        raise _mismatch_error(
            request.path,
            [ColumnDifference(column.name, ABSENT, sql_name(column.type), "drop it") for column in new_columns],
        )
    merged_columns = evolved(table_columns, incoming_columns, config, request.path)
    widened = [
        (column, merged_columns.field(column.name))
        for column in table_columns
        if not alike(merged_columns.field(column.name).type, column.type)
    ]
    if widened:
        raise _mismatch_error(
            request.path,
            [
                ColumnDifference(before.name, sql_name(before.type), sql_name(now.type), "cast it to the table's type")
                for before, now in widened
            ],
        )
    fixed_columns = {root_of(name) for name in (*config.record_key_fields, *config.partition_fields)}
    if not set(table_columns.names) - fixed_columns and IS_DELETED not in incoming.names:
        raise MissingColumnError(
            f"The rows of a partial update ({PARTIAL_UPDATE}) of the table {request.path} have no column beside those "
            f"of the key and the partition ({', '.join(incoming.names)}).",
            "Add the columns to update.",
        )
    return tuple(table_columns.names)


def _check_index(config: TableConfig, request: WriteRequest, operation: Operation) -> None:
    """Refuse partial rows under a global index: a row may move away from the stored row with its other columns."""
    # A delete has no columns to leave behind, and without folding no row of a key updates another.
    deletes = operation.name in {DELETE, DELETE_PARTITION}
    if deletes or not operation.rules.fold or not index_for(config).is_global:
        return
    mode = config.partial_update_mode
    asked_option = f"{PARTIAL_UPDATE_MODE}={mode}" if mode else f"{PARTIAL_UPDATE}=true"
    if mode or request.write.partial_update:
        raise OptionConflictError(
            f"The table {request.path} has {INDEX_TYPE}={config.index_type}, under which a row may move to another "
            f"partition, and {asked_option}, by which it would leave columns behind there.",
            "Write whole rows, or use Apache Hudi for this write.",
        )


def _check_options(config: TableConfig, request: WriteRequest, operation: str) -> None:
    """Refuse a partial update by another operation than upsert, in a table or with options that contradict it.

    ``config`` has the table's properties, ``request`` the options, and ``operation`` is Apache Hudi's name of what the
    write does. Raises OptionConflictError.
    """
    if operation != UPSERT:
        raise OptionConflictError(
            f"{PARTIAL_UPDATE} is about the operation upsert, and this write of {request.path} is {operation.lower()}.",
            "Leave the option out, or upsert.",
        )
    if config.partial_update_mode is not None:
        raise OptionConflictError(
            f"The table {request.path} has {PARTIAL_UPDATE_MODE}={config.partial_update_mode}, which readers of Apache "
            f"Hudi do not apply in a file group with partial rows ({PARTIAL_UPDATE}).",
            "Upsert whole rows: a value that the mode reads as missing keeps the stored value.",
        )
    if config.table_type == MERGE_ON_READ and not config.compacts_partial_rows:
        raise OptionConflictError(
            f"The merge-on-read table {request.path} has version {config.version}, and Apache Hudi 1.0.2 compacts "
            f"late partial rows ({PARTIAL_UPDATE}) to other values than its queries show.",
            "Upsert whole rows, or use Apache Hudi for this write.",
        )
    null_options = {
        "hoodie.datasource.write.reconcile.schema": request.write.evolution.reconcile,
        "hoodie.write.set.null.for.missing.columns": request.write.evolution.set_null,
    }
    for option, is_set in null_options.items():
        if is_set:
            raise OptionConflictError(
                f"{option} makes columns null that the rows for {request.path} lack, and {PARTIAL_UPDATE} keeps their "
                "stored values.",
                "Give one of the two.",
            )


def _mismatch_error(where: str, differences: list[ColumnDifference]) -> SchemaMismatchError:
    """Return the error of a partial update whose rows have columns that the table lacks, or wider columns."""
    return SchemaMismatchError(
        f"The columns of a partial update do not fit the table {where}, which gets no new or wider columns by it",
        f"Do so in the DataFrame, or change the columns by a write without {PARTIAL_UPDATE} first.",
        differences,
    )
