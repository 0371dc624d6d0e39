"""The incoming columns held against the table's: what a write needs of them, and which columns the table then has."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ..errors import (
    MissingColumnError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedTableError,
    UnsupportedTypeError,
)
from ..table.config import TableConfig
from ..table.conform import conform_array
from ..table.schema import canonical
from ..writer.rows import IS_DELETED, RowSpec
from .operation import DELETE


def check_columns(config: TableConfig, incoming: pa.Schema, operation: str, where: str) -> None:
    """Refuse a write whose rows lack a column that makes keys, partitions or the order.

    Raises:
        MissingColumnError: They do.
        UnsupportedTableError: The table has several ordering fields.
    """
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


def check_judges(spec: RowSpec) -> None:
    """Refuse a delete flag or an ordering field whose type can decide nothing.

    Raises:
        UnsupportedTypeError: It cannot.
    """
    _check_judge(spec.columns, IS_DELETED, "says which rows are deletes", pa.types.is_boolean)
    _check_judge(spec.columns, spec.ordering_field, "orders rows", lambda kind: not pa.types.is_nested(kind))


def _check_judge(schema: pa.Schema, name: str | None, role: str, fits: Callable[[pa.DataType], bool]) -> None:
    if name in schema.names and not fits(schema.field(name).type):
        raise UnsupportedTypeError(
            f"Column {name!r} {role}, which no value of its type {schema.field(name).type} can.", "Cast the column."
        )
