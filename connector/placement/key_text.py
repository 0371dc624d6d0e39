"""Record keys and partition paths as Spark SQL, for tables whose keys Spark spells like `KeyGenerator`.

The record key fields must be whole numbers, strings or booleans, and the partition path must consist of whole numbers,
days or strings, without URL encoding. All other tables go through Python, because a key that differs by a byte is a
second row.

Text or a wider number in a column of whole numbers must be the canonical spelling of a number in range, or fails the
query: a row whose lookup finds nothing would otherwise not reach the task that checks its values.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from ...errors import UnsupportedTypeError
from ...table.config.key_types import KeyGeneratorType, PartitionType
from ...table.keys.generator import EMPTY_KEY, NULL_KEY
from ...table.keys.partition_paths import HIVE_DEFAULT_PARTITION
from ...table.schema.avro import is_avro_name
from ...table.schema.casts import fits, fits_by_value
from ...table.schema.conform import strange_value
from ...table.schema.types import sql_name
from ..source.spark_types import to_arrow
from .slots import Placement

_SHOWN = "{value}"


@dataclass(frozen=True, slots=True)
class KeyText:
    """Spark SQL of keys and paths.

    Attributes:
        key: The record key; null for a row without a key, which the write refuses.
    """

    key: str
    path: str

    @classmethod
    def of(cls, placement: Placement, schema: StructType) -> KeyText | None:
        """Return the SQL for rows of ``schema``; None if only Python can compute keys."""
        try:
            row_types, table_types = deciding_types(placement, schema)
        except UnsupportedTypeError:
            # The write reports the unsupported type.
            return None
        path = path_text(placement, schema, row_types, table_types)
        key = _key_text(placement, schema, row_types, table_types)
        return None if path is None or key is None else cls(key, path)


def deciding_types(placement: Placement, schema: StructType) -> tuple[pa.Schema, pa.Schema]:
    """Return the types of the key and partition columns in the rows, and in the table if they are known."""
    row_types = to_arrow(StructType([field for field in schema.fields if field.name in placement.columns]))
    return row_types, row_types if placement.schema is None else placement.schema


def path_text(placement: Placement, schema: StructType, row_types: pa.Schema, table_types: pa.Schema) -> str | None:
    """Return the partition path of a row as SQL; None if only Python can compute it.

    ``row_types`` and ``table_types`` are from `deciding_types`.
    """
    config = placement.config
    if config.key_generator is KeyGeneratorType.NON_PARTITION or not config.partition_fields:
        return "''"
    if config.url_encode or any(kind is not PartitionType.SIMPLE for kind in config.partition_types):
        return None
    segments = []
    for field in config.partition_fields:
        if field not in row_types.names or field not in table_types.names:
            return None
        casts_alike = pa.types.is_date(row_types.field(field).type) or schema[field].dataType == StringType()
        # A column name that Hudi permits needs no escaping within an SQL string.
        column_text = (
            _column_as_text(field, row_types, table_types, casts_alike=casts_alike) if is_avro_name(field) else None
        )
        if column_text is None:
            return None
        text = f"coalesce(nullif({column_text}, ''), '{HIVE_DEFAULT_PARTITION}')"
        segments.append(f"concat('{field}=', {text})" if config.hive_style else text)
    return f"concat_ws('/', {', '.join(segments)})"


def _key_text(placement: Placement, schema: StructType, row_types: pa.Schema, table_types: pa.Schema) -> str | None:
    """Return the record key of a row as SQL, null for a row without a key; None if only Python can compute it.

    ``placement`` has the key columns, and ``schema`` the rows' columns; ``row_types`` and ``table_types`` are from
    `deciding_types`.
    """
    config = placement.config
    texts = []
    for field in config.record_key_fields:
        if field not in row_types.names or field not in table_types.names or not is_avro_name(field):
            return None
        casts_alike = pa.types.is_boolean(row_types.field(field).type) or schema[field].dataType == StringType()
        text = _column_as_text(field, row_types, table_types, casts_alike=casts_alike)
        if text is None:
            return None
        texts.append(text)
    # The key is the text of its only column, or ``name:text`` for each column, separated by commas.
    if len(texts) == 1 and not config.names_key_field:
        return f"nullif({texts[0]}, '')"
    parts = [
        f"'{',' if position else ''}{field}:', coalesce(if({text} = '', '{EMPTY_KEY}', {text}), '{NULL_KEY}')"
        for position, (field, text) in enumerate(zip(config.record_key_fields, texts, strict=True))
    ]
    any_text = " or ".join(f"coalesce({text}, '') <> ''" for text in texts)
    return f"if({any_text}, concat({', '.join(parts)}), null)"


def _column_as_text(field: str, row_types: pa.Schema, table_types: pa.Schema, *, casts_alike: bool) -> str | None:
    """Return the text of a key or partition column as SQL; None if only Python can compute it.

    ``casts_alike`` says that Spark casts the column to the same text as pyhudi does.
    """
    row_type, table_type = (schema.field(field).type for schema in (row_types, table_types))
    text = f"cast({quoted(field)} as string)"
    if (casts_alike and row_type == table_type) or (
        pa.types.is_integer(row_type) and pa.types.is_integer(table_type) and fits(row_type, table_type)
    ):
        return text
    if not fits_by_value(row_type, table_type) or not (casts_alike or pa.types.is_integer(row_type)):
        return None
    # A value fails the query unless its text is the same after a cast to the type of the table's column.
    number = f"try_cast({quoted(field)} as {sql_name(table_type)})"
    error = strange_value(field, row_type, table_type, _SHOWN if pa.types.is_integer(row_type) else f"'{_SHOWN}'")
    text_before, text_after = (part.replace("'", "\\'") for part in str(error).split(_SHOWN))
    # The line break separates the text that Spark appends.
    shortened = f"substring(regexp_replace({text}, '\\\\s+', ' '), 1, 100)"
    refusal = f"raise_error(concat('{text_before}', {shortened}, '{text_after}\\n'))"
    return f"if({text} is null or coalesce(cast({number} as string) = {text}, false), {text}, {refusal})"


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
