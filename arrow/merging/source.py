"""The rows of the source of a merge: in the types of Hudi, with the names of the table, in parts that fit in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DuplicateColumnError
from ...methods.merging.changed_table import ChangedTable
from ...table.arrow.arrays import mask, plain
from ...table.keys.generator import KeyGenerator
from ...table.schema.fields import find_field, values_of

# Columns of the source that pyhudi adds: the key and the partition path that a write would compute for a row.
KEY, PATH = "_pyhudi_key", "_pyhudi_path"
_PREFIX = "_pyhudi_"


def source_columns(columns: pa.Schema, table: ChangedTable) -> pa.Schema:
    """Return the columns of a source, by the table's spelling if a name differs in case alone.

    Raises `DuplicateColumnError` for two columns of one name, and for a name that pyhudi uses itself.
    """
    reserved_name = next(
        (name for name in (*columns.names, *table.schema.names) if name.lower().startswith(_PREFIX)), None
    )
    if reserved_name is not None:
        raise DuplicateColumnError(
            f"There is a column {reserved_name!r}; names that begin with {_PREFIX} are pyhudi's own.", "Rename it."
        )
    twice = next((name for name in columns.names if columns.names.count(name) > 1), None)
    if twice is not None:
        raise DuplicateColumnError(f"The source has {twice!r} twice.", "Rename or drop one of the two columns.")
    exact_names = {name for name in columns.names if name in table.schema.names}
    # Of several names that differ in case alone, none is the table's.
    several = Counter(name.lower() for name in columns.names)
    table_spellings = {
        name.lower(): name for name in table.schema.names if name not in exact_names and several[name.lower()] == 1
    }
    names = [name if name in exact_names else table_spellings.get(name.lower(), name) for name in columns.names]
    return pa.schema([field.with_name(name) for field, name in zip(columns, names, strict=True)])


@dataclass(frozen=True, slots=True)
class PlacedSource:
    """Rows of a source with the places that a write would compute for them.

    Attributes:
        table: The table into which the rows are merged.
        places: Whether keys and partition paths are needed.
    """

    table: ChangedTable
    schema: pa.Schema
    places: bool

    @property
    def columns(self) -> pa.Schema:
        """The columns with those of the places."""
        more = [pa.field(KEY, pa.string()), pa.field(PATH, pa.string())] if self.places else []
        return pa.schema([*self.schema, *more])

    def parts(self, batches: Iterator[pa.RecordBatch], most_bytes: int | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in parts of at most so many bytes, of which a batch may take more; None for one part."""
        waiting: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if most_bytes is not None and waiting and size + batch.nbytes > most_bytes:
                yield self._part(waiting)
                waiting, size = [], 0
            waiting.append(pa.RecordBatch.from_arrays(batch.columns, schema=self.schema))
            size += batch.nbytes
        # A source without rows is an empty part: clauses for rows of the table without a match still apply.
        yield self._part(waiting)

    def _part(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Return batches as one, with the keys and partition paths of the rows if these are needed."""
        table = pa.Table.from_batches(batches, self.schema)
        rows = pa.RecordBatch.from_arrays([plain(column) for column in table.columns], schema=self.schema)
        if not self.places:
            return rows
        keys, paths = places_of(rows, self.table)
        return pa.RecordBatch.from_arrays([*rows.columns, keys, paths], schema=self.columns)


def places_of(rows: pa.RecordBatch, table: ChangedTable) -> tuple[pa.Array, pa.Array]:
    """Return the record keys and partition paths that a write computes for rows; null if a row has no key."""
    generator = KeyGenerator(table.config, table.schema)
    # Raises for columns that cannot make keys or paths.
    generator.check(rows.schema)
    blank = reduce(pc.and_, (_is_blank(rows, name) for name in table.config.record_key_fields))
    keyless = mask(blank)
    if not keyless.any():
        return generator.record_keys(rows), generator.partition_paths(rows).cast(pa.string())
    # The generator takes only rows that have a key.
    keyed = rows.filter(pa.array(~keyless))
    keys, paths = generator.record_keys(keyed), generator.partition_paths(keyed).cast(pa.string())
    # A null index takes a null.
    places = pc.if_else(blank, None, pc.subtract(pc.cumulative_sum(pc.cast(pc.invert(blank), pa.int64())), 1))
    return keys.take(places), paths.take(places)


def _is_blank(rows: pa.RecordBatch, name: str) -> pa.BooleanArray:
    """Return which values of a key column make no part of a key."""
    values = plain(values_of(rows, name)) if find_field(rows.schema, name) is not None else pa.nulls(rows.num_rows)
    null = pc.is_null(values)
    return pc.or_(null, pc.fill_null(pc.equal(values, ""), False)) if pa.types.is_string(values.type) else null
