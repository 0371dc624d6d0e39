"""The incoming columns checked against the table's, and the columns that the table has after the write."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from ...errors import (
    ColumnDifference,
    MissingColumnError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedTypeError,
)
from ...table.config import TableConfig
from ...table.config.key_types import PartitionType
from ...table.config.payloads import Payload
from ...table.config.property_keys import MERGE_ON_READ
from ...table.files.logs.block_format import ordered_by
from ...table.merging.deletes import IS_DELETED, DeleteMarker
from ...table.merging.row_spec import RowSpec
from ...table.schema.casts import NUMBER_TO_TEXT
from ...table.schema.columns import LOCATION, canonical
from ...table.schema.evolution import ADD, ADD_NOT_NULL, EvolutionRules, Role, evolve
from ...table.schema.fields import find_field, root_of
from .operation import DELETE, DELETE_PARTITION, OVERWRITE_TABLE
from .request import WriteRequest

_NO_OPTIONS = EvolutionRules()

logger = logging.getLogger("pyhudi")


def check_columns(config: TableConfig, incoming: pa.Schema, operation: str, where: str) -> None:
    """Refuse a write whose rows lack a column of the record key, the partition or the order.

    A delete needs no order, and a delete of partitions no key.
    """
    names_by_role = {
        "record key column": () if operation == DELETE_PARTITION else config.record_key_fields,
        "partition column": config.partition_fields,
        "ordering column": () if operation in {DELETE, DELETE_PARTITION} else config.ordering_fields,
    }
    for role, names in names_by_role.items():
        for name in names:
            # A key or partition column may be a field of a struct.
            has_column = name in incoming.names if role == "ordering column" else find_field(incoming, name) is not None
            if not has_column:
                raise MissingColumnError(
                    f"The {role} {name!r} of the table {where} is not among the incoming columns "
                    f"({', '.join(incoming.names)}).",
                    "Add the column to the DataFrame, or correct the option that names it.",
                )


def check_located(incoming: pa.Schema, where: str) -> None:
    """Refuse deletes from a table with generated keys if the rows lack the meta columns that locate them."""
    missing_columns = [name for name in LOCATION if name not in incoming.names]
    if missing_columns:
        raise MissingColumnError(
            f"The rows to be deleted from the table {where}, whose keys are generated, lack the meta columns "
            f"{', '.join(missing_columns)}, which say where they are.",
            "Delete rows as they were read from the table, without dropping these columns.",
        )


def table_schema(
    table: pa.Schema | None, incoming: pa.Schema, config: TableConfig, request: WriteRequest, operation: str
) -> pa.Schema:
    """Return the table's columns after a write; raise `SchemaMismatchError` if the incoming columns do not fit.

    A delete changes no columns, and raises `TableNotFoundError` if the table was never written. Mode overwrite takes
    any columns, as in Apache Hudi, unless the request names the operation INSERT_OVERWRITE_TABLE.
    """
    if operation in {DELETE, DELETE_PARTITION}:
        if table is None:
            raise TableNotFoundError(
                f"The table {request.path} was created and never written, so that there is nothing to delete.",
                "Write rows first.",
            )
        return table
    incoming_columns = canonical(incoming)
    if table is None or replaces_columns(request, operation):
        return incoming_columns
    return evolved(table, _with_delete_flag(incoming_columns, table), config, request.path, request.write.evolution)


def replaces_columns(request: WriteRequest, operation: str) -> bool:
    """Return whether a write replaces all columns of the table with those of its rows."""
    only_rows = (request.operation or "").upper() == OVERWRITE_TABLE
    return request.overwrite and operation == OVERWRITE_TABLE and not only_rows


def key_schema(
    table: pa.Schema | None, incoming: pa.Schema, config: TableConfig, where: str, *, number_to_text: bool
) -> pa.Schema | None:
    """Return the key and partition columns after a write of ``incoming``; None for a table without columns.

    With ``number_to_text``, as by the option, a column of numbers becomes text if the rows have text.
    """
    if table is None:
        return None
    names = set(map(root_of, (*config.record_key_fields, *config.partition_fields)))
    key_columns, incoming_keys = (
        pa.schema([column for column in schema if column.name in names]) for schema in (table, incoming)
    )
    rules = EvolutionRules(set_null=True, number_to_text=number_to_text)
    return evolved(key_columns, canonical(incoming_keys), config, where, rules)


def evolved(
    table: pa.Schema, incoming: pa.Schema, config: TableConfig, where: str, rules: EvolutionRules = _NO_OPTIONS
) -> pa.Schema:
    """Return some columns of a table as they are after a write of rows with only these columns.

    Raises SchemaMismatchError if the incoming columns do not fit; the error names each column and what to do.
    """
    evolution = evolve(table, incoming, rules, _roles(config))
    if evolution.differences:
        raise SchemaMismatchError(
            f"The incoming columns do not fit the table {where}",
            _cure(evolution.differences, by_option=evolution.by_option),
            evolution.differences,
        )
    return evolution.schema


def _with_delete_flag(incoming: pa.Schema, table: pa.Schema) -> pa.Schema:
    """Return the incoming columns with the delete flag, nullable, only if the table keeps it."""
    rest = [column for column in incoming if column.name != IS_DELETED]
    if IS_DELETED not in table.names:
        return pa.schema(rest)
    return incoming if IS_DELETED in incoming.names else pa.schema([*rest, table.field(IS_DELETED).with_nullable(True)])


def _roles(config: TableConfig) -> dict[str, list[Role]]:
    """Return what each key, partition and ordering column is for, because its role limits how its type may change."""
    roles: dict[str, list[Role]] = {}
    for name in config.record_key_fields:
        roles.setdefault(name, []).append(Role.KEY)
    for name, partition_type in zip(config.partition_fields, config.partition_types, strict=True):
        roles.setdefault(name, []).append(Role.TIME if partition_type is PartitionType.TIMESTAMP else Role.PARTITION)
    for name in config.ordering_fields:
        roles.setdefault(name, []).append(Role.ORDERING)
    return roles


def _cure(differences: Sequence[ColumnDifference], *, by_option: bool) -> str:
    """Return what a user can do about differing columns, with the options that allow them.

    ``by_option`` says whether the option that lets numbers become text would allow any of them.
    """
    todos = [difference.todo for difference in differences if difference.todo in {ADD, ADD_NOT_NULL}]
    ways = []
    if ADD in todos:
        ways.append("hoodie.datasource.write.reconcile.schema=true lets nullable columns that are missing become null")
    if ADD_NOT_NULL in todos:
        ways.append("hoodie.write.set.null.for.missing.columns=true lets all of them, which may be null from then on")
    if by_option:
        ways.append(f"{NUMBER_TO_TEXT}=true lets columns become text, or wider, as in Apache Hudi")
    if ways:
        return f"Do so in the DataFrame; {', '.join(ways)}."
    return "Do so in the DataFrame, or replace the table with mode overwrite."


def check_deciding_columns(spec: RowSpec, table: pa.Schema, payload: Payload | None, where: str) -> None:
    """Refuse a delete flag, a delete marker or an ordering field whose type cannot decide anything.

    The marker column of a payload class may be missing, as in the first load of AWS DMS.
    """
    _check_deciding_column(spec.columns, IS_DELETED, "says which rows are deletes", pa.types.is_boolean)
    for name in spec.ordering_fields:
        _check_deciding_column(spec.columns, name, "orders rows", lambda data_type: not pa.types.is_nested(data_type))
    if spec.marker is not None:
        by_payload = payload is not None and payload.delete_marker == spec.marker
        if spec.marker.field not in table.names and not by_payload:
            raise MissingColumnError(
                f"Rows of the table {where} are deletes if {spec.marker.field!r} is {spec.marker.value!r} "
                f"(hoodie.payload.delete.field), and it has no such column ({', '.join(table.names)}).",
                "Add the column to the DataFrame, or correct the option that names it.",
            )
        _check_deciding_column(spec.columns, spec.marker.field, "marks deletes by a text", DeleteMarker.fits)


def check_log_orders(config: TableConfig, table: pa.Schema, block_format: str | None, where: str) -> None:
    """Refuse a table whose log files Apache Hudi cannot merge; warn if Parquet blocks must become Avro blocks.

    ``block_format`` is the option for the format of blocks in log files; None if it is not given.
    """
    if config.table_type != MERGE_ON_READ:
        return
    for name in ordered_by(config, table, pa.types.is_binary):
        raise UnsupportedTypeError(
            f"The binary column {name!r} is an ordering field of the merge-on-read table {where}, whose log files "
            "Apache Hudi then fails to read.",
            "Order a new table by a column of another type, make the table COPY_ON_WRITE, or use "
            "hoodie.write.record.merge.mode=COMMIT_TIME_ORDERING. The rows of an existing table stay readable by "
            "pyhudi.",
        )
    texts = ordered_by(config, table, pa.types.is_string)
    if texts and block_format == "parquet":
        logger.warning(
            "table %s: log files get Avro blocks, not those of hoodie.logfile.data.block.format=parquet, because the "
            "string column %r is an ordering field and Apache Hudi misorders strings of Parquet blocks",
            where,
            texts[0],
        )


def _check_deciding_column(
    schema: pa.Schema, name: str, purpose: str, can_decide: Callable[[pa.DataType], bool]
) -> None:
    """Refuse a column whose type does not fit its role, ``purpose`` in words; a missing column is no error here."""
    if name in schema.names and not can_decide(schema.field(name).type):
        raise UnsupportedTypeError(
            f"Column {name!r} {purpose}, which no value of its type {schema.field(name).type} can.", "Cast the column."
        )
