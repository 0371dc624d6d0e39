"""A table's schema: its data columns in Arrow and Avro, and Hudi's five meta columns."""

from __future__ import annotations

import pyarrow as pa

from ...errors import DuplicateColumnError, UnsupportedTypeError
from .avro import format_avro, is_avro_name, parse_avro
from .types import canonical_type, children

RECORD_KEY = "_hoodie_record_key"
SEQUENCE_NUMBER = "_hoodie_commit_seqno"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
META_COLUMNS = ("_hoodie_commit_time", SEQUENCE_NUMBER, RECORD_KEY, PARTITION_PATH, FILE_NAME)
LOCATION = (RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The meta columns with the place at which a row was read."""
# A sixth meta column, which Apache Hudi fills under hoodie.allow.operation.metadata.field and never takes from rows.
OPERATION_COLUMN = "_hoodie_operation"
# The position of a row before a shuffle, which decides ties; no table keeps it.
POSITION = "_pyhudi_position"
# The file group of a placed row; no table keeps it. It is an existing file group's id; `NEW_GROUP` and a number, for a
# file group that the write opens in the row's partition; or `NEW_GROUP` and the id of a file group that takes new keys.
FILE_GROUP = "_pyhudi_file_group"
NEW_GROUP = "+"
# How a row of a merge comes to its place, and what it says; no table keeps it.
ARRIVES = "_pyhudi_arrives"
STAYS, INSERTED, MOVED = range(3)


def avro_schema(schema: pa.Schema, table_name: str, *, meta: bool = False) -> str:
    """Return Avro JSON as Hudi writes it: with meta columns in data files, without in ``extraMetadata.schema``."""
    data = without_meta(schema)
    return format_avro(with_meta(data) if meta else data, table_name, META_COLUMNS)


def arrow_schema(avro_json: str, where: str = "the table") -> pa.Schema:
    """Return the data columns of an Avro record schema, without meta columns; raises the errors of `parse_avro`."""
    return without_meta(pa.schema(parse_avro(avro_json, where)))


def with_meta(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the five meta columns, nullable strings, in front of the data columns."""
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS]
    return pa.schema([*meta, *without_meta(schema)])


def without_meta(schema: pa.Schema) -> pa.Schema:
    """Return a schema without Hudi's five meta columns."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS])


def canonical(schema: pa.Schema) -> pa.Schema:
    """Return a schema with each type as a table keeps it, without metadata; UnsupportedTypeError for other types."""
    return pa.schema([pa.field(f.name, canonical_type(f.type, f.name), nullable=f.nullable) for f in schema])


def check_storable(schema: pa.Schema) -> None:
    """Raise DuplicateColumnError or UnsupportedTypeError for data columns that a table cannot keep."""
    # Spark's readers take names that differ in case alone for one.
    own_names = [name for name in schema.names if name.lower() in {*META_COLUMNS, OPERATION_COLUMN}]
    if own_names:
        raise UnsupportedTypeError(
            f"Column {own_names[0]!r} has the name of one of Hudi's own columns.", "Drop the column before writing."
        )
    if POSITION in schema.names:
        raise UnsupportedTypeError(
            f"Column {POSITION!r} has the positions of rows before pyhudi.colocate, and no table keeps it.",
            "Write such rows with hoodie.pyhudi.colocated=true, or drop the column.",
        )
    if FILE_GROUP in schema.names:
        raise UnsupportedTypeError(
            f"Column {FILE_GROUP!r} has the file groups for which pyhudi.colocate placed rows, and no table keeps it.",
            "Write such rows with hoodie.pyhudi.colocated=true to the table that they were placed for, or drop the "
            "column.",
        )
    _check_names(list(schema), "")
    # Raises for a type that no table keeps.
    canonical(schema)


def _check_names(fields: list[pa.Field], path: str) -> None:
    """Raise if a name, here or inside a field, is none of Avro's, or differs from another only in case."""
    names: dict[str, str] = {}
    for field in fields:
        full = f"{path}{field.name}"
        if not is_avro_name(field.name):
            raise UnsupportedTypeError(
                f"Column {full!r} has a name that Hudi cannot hold: it takes letters, digits (not first), underscores.",
                "Rename the column.",
            )
        twin = names.get(field.name.lower())
        if twin is not None:
            raise DuplicateColumnError(
                f"Columns {path + twin!r} and {full!r} have one name; Spark ignores case in names.",
                "Rename or drop one of the two columns.",
            )
        names[field.name.lower()] = field.name
        _check_inside(field.type, f"{full}.")


def _check_inside(kind: pa.DataType, path: str) -> None:
    """Raise as `_check_names` for the fields inside a type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        _check_names(children(kind), path)
    else:
        for child in children(kind):
            _check_inside(child.type, path)


__all__ = [
    "ARRIVES",
    "FILE_GROUP",
    "INSERTED",
    "META_COLUMNS",
    "MOVED",
    "NEW_GROUP",
    "POSITION",
    "STAYS",
    "arrow_schema",
    "avro_schema",
    "canonical",
    "check_storable",
    "with_meta",
    "without_meta",
]
