"""The incoming columns held against the table's: what a write needs of them, and which columns the table then has."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ..errors import (
    MissingColumnError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedTypeError,
)
from ..table.config import TableConfig
from ..table.conform import conform_array
from ..table.deletes import IS_DELETED, DeleteMarker
from ..table.fields import find_field
from ..table.schema import canonical
from ..writer.rows import RowSpec
from .operation import DELETE, DELETE_PARTITION


def check_columns(config: TableConfig, incoming: pa.Schema, operation: str, where: str) -> None:
    """Refuse a write whose rows lack a column that makes keys, partitions or the order.

    Raises:
        MissingColumnError: They do.
    """
    needed = {
        "record key column": () if operation == DELETE_PARTITION else config.record_key_fields,
        "partition column": config.partition_fields,
        "ordering column": () if operation in {DELETE, DELETE_PARTITION} else config.ordering_fields,
    }
    for role, names in needed.items():
        for name in names:
            is_there = name in incoming.names if role == "ordering column" else find_field(incoming, name) is not None
            if not is_there:
                raise MissingColumnError(
                    f"The {role} {name!r} of the table {where} is not among the incoming columns "
                    f"({', '.join(incoming.names)}).",
                    "Add the column to the DataFrame, or correct the option that names it.",
                )


def table_schema(table: pa.Schema | None, incoming: pa.Schema, operation: str, where: str) -> pa.Schema:
    """Return the table's columns, having checked that the incoming ones fit them.

    Args:
        table: The columns of a table that was written before, else None.
        incoming: The columns of the rows, without meta columns.
        operation: Hudi's name of the operation.
        where: The table, for messages.

    Raises:
        SchemaMismatchError: They do not fit.
        TableNotFoundError: There is nothing yet that could be deleted.
    """
    fresh = canonical(incoming)
    if table is None:
        if operation in {DELETE, DELETE_PARTITION}:
            raise TableNotFoundError(
                f"The table {where} was created and never written, so that there is nothing to delete.",
                "Write rows first.",
            )
        return fresh
    if operation in {DELETE, DELETE_PARTITION}:
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


def check_judges(spec: RowSpec, where: str) -> None:
    """Refuse a delete flag, a delete marker or an ordering field whose type can decide nothing.

    Raises:
        MissingColumnError: The table has no column of the delete marker.
        UnsupportedTypeError: The type cannot.
    """
    _check_judge(spec.columns, IS_DELETED, "says which rows are deletes", pa.types.is_boolean)
    for name in spec.ordering_fields:
        _check_judge(spec.columns, name, "orders rows", lambda kind: not pa.types.is_nested(kind))
    if spec.marker is not None:
        if spec.marker.field not in spec.columns.names:
            raise MissingColumnError(
                f"Rows of the table {where} are deletes where {spec.marker.field!r} is {spec.marker.value!r} "
                f"(hoodie.payload.delete.field), and it has no such column ({', '.join(spec.columns.names)}).",
                "Add the column to the DataFrame, or correct the option that names it.",
            )
        _check_judge(spec.columns, spec.marker.field, "marks deletes by a text", DeleteMarker.fits)


def _check_judge(schema: pa.Schema, name: str, role: str, fits: Callable[[pa.DataType], bool]) -> None:
    if name in schema.names and not fits(schema.field(name).type):
        raise UnsupportedTypeError(
            f"Column {name!r} {role}, which no value of its type {schema.field(name).type} can.", "Cast the column."
        )
