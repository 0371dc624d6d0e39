"""Infers from its rows how a table spells the record key of a single field, if its properties do not say.

The key generator COMPLEX makes ``field:value`` of one field in Apache Hudi 0.14.0 and in tables of version 9, and the
bare value in releases 0.14.1 to 1.0.2. In tables of version 8, Apache Hudi 1.2 decides by an option.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UnsupportedTableError
from ..config import property_keys as key
from ..config.key_types import KeyGeneratorType
from ..files.lost import open_view
from ..keys.values import RECORD_KEY as ROLE
from ..keys.values import KeyColumn
from ..latest_schema import latest_schema
from ..schema.columns import RECORD_KEY
from ..schema.fields import find_field, root_of, values_of
from ..table import Table
from .some_rows import some_rows

_SLICES_LOOKED_INTO = 8


def with_inferred_key_encoding(table: Table) -> Table:
    """Return a table whose properties say how keys are spelled: from some rows, else as its version's release does."""
    if table.config.names_key_field is not None:
        return table
    return replace(table, config=table.config.with_key_field(_stored_spelling(table, _SLICES_LOOKED_INTO)))


def noted_key_encoding(table: Table) -> str | None:
    """Return the property's value that says how a table spells keys, from some rows of every file slice.

    None if only one spelling is possible, and if no rows show which one it is. The versions of a table differ in
    what an absent property means.
    """
    config = table.config
    if config.key_generator is not KeyGeneratorType.COMPLEX or len(config.record_key_fields) != 1:
        return None
    is_named = config.names_key_field
    is_named = _stored_spelling(table, None) if is_named is None else is_named
    return None if is_named is None else config.with_key_field(is_named).properties[key.COMPLEX_KEY_ENCODING]


def _stored_spelling(table: Table, most_slices: int | None) -> bool | None:
    """Return whether the keys in a table's files are spelt with the name of their field; None if there are none.

    ``most_slices`` is how many file slices are looked into; None for all.
    """
    timeline = table.timeline()
    schema = latest_schema(table.config, timeline)
    [field] = table.config.record_key_fields
    if schema is None or find_field(schema, field) is None:
        return None
    columns = pa.schema([pa.field(RECORD_KEY, pa.string()), schema.field(root_of(field))])
    examples: dict[bool, str] = {}
    for file_slice in islice(open_view(timeline).all_slices(), most_slices):
        for file, rows in some_rows(table.storage, file_slice, columns):
            examples |= dict.fromkeys(_spellings(rows, field), file.path)
    if len(examples) > 1:
        raise UnsupportedTableError(
            f"The table {table.path} spells record keys as {field}:value in {examples[True]} and as the bare value in "
            f"{examples[False]}: releases of Apache Hudi that disagree wrote it, and its rows may be duplicated.",
            f"Rewrite the table with mode overwrite. If all of its keys are spelt alike by now, write {field}:value as "
            f"{key.COMPLEX_KEY_ENCODING}={key.FIELD_PREFIXED} and the bare value as {key.VALUE_ONLY} into its "
            "hoodie.properties.",
        )
    return next(iter(examples), None)


def _spellings(rows: pa.RecordBatch, field: str) -> set[bool]:
    """Return the spellings of the keys of some rows: True with their field's name in front, False without."""
    # A value may begin with its field's name, so compare the keys with the rows' own values.
    stored = rows.column(RECORD_KEY)
    is_bare = pc.fill_null(pc.equal(stored, KeyColumn(field, ROLE).texts(values_of(rows, field))), False)
    is_named = pc.and_not(pc.fill_null(pc.starts_with(stored, f"{field}:"), False), is_bare)
    return set(pc.unique(is_named.filter(stored.is_valid())).to_pylist())  # O(2)
