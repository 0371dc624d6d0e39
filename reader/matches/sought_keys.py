"""The record keys whose rows a merge reads, and in which partitions each may be."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...table.arrow.arrays import plain
from ...table.arrow.string_order import unique_in_order
from ...table.config import TableConfig
from ...table.schema.columns import PARTITION_PATH, RECORD_KEY
from ..skipping.predicates import comparable
from ..skipping.pruning import partition_values

_NONE = pa.array([], pa.string())
_ROW = "_pyhudi_row"
_BY = b"by"


@dataclass(frozen=True, slots=True)
class SoughtKeys:
    """Record keys that are looked for, none null.

    Attributes:
        rows: The record keys as the first column. Further columns say where each key may be: the partition path, or
            columns of the table whose values the partition has. Without them, a key may be in any partition.
        by: The columns of the key that count if the other columns, which are zero in ``rows``, may have any value.
            Empty if the whole key counts.
    """

    rows: pa.Table
    by: tuple[str, ...] = ()

    @classmethod
    def of(cls, keys: pa.Array, places: pa.Table | None = None, by: tuple[str, ...] = ()) -> SoughtKeys:
        """Return the keys, each in the place that a row of ``places`` names; None for any place."""
        place_columns = {} if places is None else {name: places.column(name) for name in places.column_names}
        return cls(pa.table({RECORD_KEY: keys, **place_columns}).combine_chunks(), by)

    @property
    def places(self) -> list[str]:
        """The names of the columns that say where each key may be."""
        return list(self.rows.column_names[1:])

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def spell(self) -> str:
        """Return the keys as a text, for an option of Spark's."""
        sink = pa.BufferOutputStream()
        schema = self.rows.schema.with_metadata({_BY: json.dumps(self.by)})
        with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            stream.write_table(self.rows.cast(schema))
        return base64.b64encode(sink.getvalue()).decode()

    @classmethod
    def parse(cls, text: str) -> SoughtKeys:
        """Return the keys of a text by `spell`; raises ValueError for any other text."""
        with pa.ipc.open_stream(base64.b64decode(text, validate=True)) as stream:
            table = stream.read_all()
        if table.column_names[:1] != [RECORD_KEY] or table.schema.field(0).type != pa.string():
            raise ValueError("these are no record keys")
        by = json.loads((table.schema.metadata or {}).get(_BY, b"[]"))
        return cls(table.replace_schema_metadata(None).combine_chunks(), tuple(by))

    def by_partition(self, config: TableConfig, schema: pa.Schema) -> Callable[[str], pa.StringArray]:
        """Return a function that gives the keys which a partition may hold, each once, in the order of their bytes.

        The function takes the partition's path, of which the table's ``config`` and ``schema`` tell the values.
        """
        keys = plain(self.rows.column(0))
        all_keys = unique_in_order(keys)[0]
        if not self.places:
            return lambda path: all_keys
        codes, distinct = _numbered_places(self.rows.select(self.places))
        # The positions of the keys, place by place: those of place i are from bounds[i] to bounds[i + 1].
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(distinct) + 1))

        def keys_of_place(code: int | None) -> pa.StringArray:
            if code is None:
                # No key is sought in this place.
                return _NONE
            return unique_in_order(keys.take(pa.array(order[bounds[code] : bounds[code + 1]])))[0]

        if self.places == [PARTITION_PATH]:
            by_path = {path: code for code, (path,) in enumerate(distinct)}
            return lambda path: keys_of_place(by_path.get(path))
        kinds = [schema.field(name).type for name in self.places]
        by_values = {
            tuple(comparable(value, kind) for value, kind in zip(values, kinds, strict=True)): code
            for code, values in enumerate(distinct)
        }

        def of_values(path: str) -> pa.StringArray:
            """Return the keys of the place that a partition's values name.

            All keys if its path does not tell the values.
            """
            values = partition_values(path, config, schema)
            if values is None or any(name not in values for name in self.places):
                # The path does not tell the values of its rows.
                return all_keys
            return keys_of_place(by_values.get(tuple(values[name] for name in self.places)))

        return of_values


def _numbered_places(places: pa.Table) -> tuple[np.ndarray, list[tuple[object, ...]]]:
    """Return the number of each row of ``places`` among the distinct rows, and these as tuples in that order."""
    numbers = np.arange(places.num_rows)
    numbered = places.append_column(_ROW, pa.array(numbers)).group_by(places.column_names)
    grouped = numbered.aggregate([(_ROW, "list")])
    codes = np.empty(places.num_rows, np.int64)
    lists = plain(grouped.column(f"{_ROW}_list"))
    codes[lists.flatten().to_numpy()] = np.repeat(np.arange(grouped.num_rows), pc.list_value_length(lists).to_numpy())
    values = [grouped.column(name).to_pylist() for name in places.column_names]  # O(partitions)
    return codes, list(zip(*values, strict=True))
