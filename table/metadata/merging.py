"""What the base file and the log blocks of a file group of the metadata table say together, key by key.

A delete takes away all older records of its key. Of most records the newest counts. Two records of a partition's
files add up, file by file, and so do bounds that say that they are not tight.

Apache Hudi merges the log blocks first, and the result with the base file: so it lists a file again that the base file
has, and log blocks add once more and then delete. Here the blocks count in their order. Source:
``HoodieMetadataPayload``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import list_array, struct_array
from ..hfile.entries import Entries
from ..schema.types import children
from . import bounds
from .records import decode
from .releases import joined

Integers = np.ndarray[Any, np.dtype[np.int64]]
KEY, TYPE = "key", "type"
FILES, BOUNDS = "filesystemMetadata", "ColumnStatsMetadata"
_DELETED = "isDeleted"


@dataclass(frozen=True, slots=True)
class SaidRecords:
    """What one HFile says, whose values are of a schema, or the keys that one delete block deletes."""

    entries: Entries
    schema: str = ""
    deletes: bool = False

    @property
    def keys(self) -> pa.BinaryArray:
        return self.entries.keys

    def some(self, chosen: pa.Array) -> SaidRecords:
        """Return the chosen entries alone."""
        return SaidRecords(
            Entries(self.keys.filter(chosen), self.entries.values.filter(chosen)), self.schema, self.deletes
        )


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """The rows of all parts one after the other, the oldest first; rows of one key share a number.

    ``deletes`` says which rows delete their key. ``newest`` is the last row of each number.
    """

    numbers: Integers
    deletes: np.ndarray[Any, np.dtype[np.bool_]]
    newest: Integers

    @classmethod
    def of(cls, parts: Sequence[SaidRecords]) -> NumberedRows:
        """Number the keys of parts, the oldest first."""
        keys = pa.concat_arrays([part.keys for part in parts])
        numbers = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        deletes = np.repeat([part.deletes for part in parts], [len(part.keys) for part in parts])
        newest = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
        # Of several rows with one number the last counts, as numpy assigns them in their order.
        newest[numbers] = np.arange(len(numbers))
        return cls(numbers, deletes, newest)

    def rows_after_deletes(self) -> Integers:
        """Return the positions, in ascending order, of the rows behind the last delete of their key."""
        last_delete = np.full(len(self.newest), -1, dtype=np.int64)
        rows = np.flatnonzero(self.deletes)
        last_delete[self.numbers[rows]] = rows
        return np.flatnonzero(~self.deletes & (np.arange(len(self.numbers)) > last_delete[self.numbers]))


def keys_left(parts: Sequence[SaidRecords]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Return all keys of parts, the oldest first, and those among them that no later part deletes; each once."""
    numbered, keys = NumberedRows.of(parts), pa.concat_arrays([part.keys for part in parts])
    newest = pa.array(numbered.newest)
    all_keys = keys.take(newest)
    return all_keys, all_keys.filter(pa.array(~numbered.deletes[numbered.newest]))


def merged(parts: Sequence[SaidRecords], *, adds_up: bool) -> pa.StructArray | None:
    """Return the records that parts, the oldest first, leave, with their keys; None if they leave none.

    The records of one key are merged if records of their kind add up (`MetadataKind.adds_up`). Otherwise only the
    newest counts, and is decoded.
    """
    numbered = NumberedRows.of(parts)
    rows = numbered.rows_after_deletes()
    is_newest = np.isin(rows, numbered.newest)
    if not len(rows):
        return None
    if not adds_up:
        return _without_deleted(_records(parts, rows[is_newest]))
    return _without_deleted(_added_up(_records(parts, rows), numbered.numbers[rows], np.flatnonzero(is_newest)))


def _without_deleted(records: pa.StructArray) -> pa.StructArray:
    """Return records without those of deleted files: 0.15 writes such records in place of deletes."""
    keeps = pa.repeat(True, len(records))
    for field in children(records.type):
        if pa.types.is_struct(field.type) and any(inner.name == _DELETED for inner in children(field.type)):
            is_deleted = pc.struct_field(records, [field.name, _DELETED])
            keeps = pc.and_(keeps, pc.invert(pc.fill_null(is_deleted, False)))
    return records.filter(keeps)


def _added_up(records: pa.StructArray, numbers: Integers, last: Integers) -> pa.StructArray:
    """Return the records of each key merged into one: its lists of files, or its bounds.

    ``numbers`` has the number of each record's key, and ``last`` the position of the last record of each key, in whose
    order the merged records are.
    """
    newest = records.take(pa.array(last))
    columns = {field.name: newest.field(field.name) for field in children(newest.type)}
    # A column that is null in all records is of another kind of partition.
    if FILES in columns and newest.field(FILES).null_count < len(newest):
        columns[FILES] = _merged_files(records.field(FILES), numbers, last)
    elif BOUNDS in columns and newest.field(BOUNDS).null_count < len(newest) and len(last) < len(records):
        columns[BOUNDS] = bounds.added_up(records.field(BOUNDS), numbers, last)
    return struct_array(newest.type, len(newest), None, list(columns.values()))


def _merged_files(maps: pa.MapArray, numbers: Integers, last: Integers) -> pa.MapArray:
    """Return the maps of files, by name, of each key merged into one; ``numbers`` and ``last`` are as of `_added_up`.

    The newest entry of a file counts. A merged map lacks the files that these entries delete, and gives each other file
    the greatest of its sizes since it was last deleted.
    """
    lengths = np.diff(maps.offsets.to_numpy()).astype(np.int64)
    owners = np.repeat(numbers, lengths)
    if not len(owners):
        return maps.take(pa.array(last))
    names = maps.keys.dictionary_encode()
    # A number for each pair of a key and a file.
    pairs = owners * len(names.dictionary) + names.indices.to_numpy(zero_copy_only=False)
    sizes = maps.items.field("size").to_numpy(zero_copy_only=False)
    is_deleted = maps.items.field("isDeleted").to_numpy(zero_copy_only=False)
    # Rows of a pair side by side, the oldest first.
    order = np.argsort(pairs, kind="stable")
    ends = np.flatnonzero(np.diff(pairs[order], append=-1))
    rows = order[ends]
    # How many deletes came up to each entry, its own included. A file that comes after a delete of its name is another
    # file, so the sizes before the delete do not count.
    deletes_so_far = np.zeros(len(pairs), dtype=np.int64)
    deletes_so_far[order] = np.cumsum(is_deleted[order])
    is_of_newest_file = (deletes_so_far[order] == deletes_so_far[rows].repeat(np.diff(ends, prepend=-1))) & ~is_deleted[
        order
    ]
    greatest = np.maximum.reduceat(np.where(is_of_newest_file, sizes[order], 0), np.concatenate(([0], ends[:-1] + 1)))
    alive = ~is_deleted[rows]
    rows, greatest = rows[alive], greatest[alive]
    # The merged maps come in the order of ``last``: the place there of each key, and of each file by its key.
    position = np.full(int(numbers.max()) + 1, -1, dtype=np.int64)
    position[numbers[last]] = np.arange(len(last))
    at = position[owners[rows]]
    by_owner = np.argsort(at, kind="stable")
    info = maps.items.type
    fields = {"size": pa.array(greatest[by_owner]), "isDeleted": pa.array(np.zeros(len(rows), dtype=np.bool_))}
    items = struct_array(info, len(rows), None, [fields[field.name] for field in children(info)])
    chosen = maps.keys.take(pa.array(rows[by_owner]))
    entries = struct_array(pa.struct(children(maps.type)), len(rows), None, [chosen, items])
    return list_array(maps.type, None, np.bincount(at, minlength=len(last)), entries)


def _records(parts: Sequence[SaidRecords], rows: Integers) -> pa.StructArray:
    """Return the records of some rows, in the order of the rows, with the key of each.

    What parts of one schema say is decoded at once: a log file has few records.
    """
    decoded, at = [], 0
    for schema, parts_of_schema in groupby((part for part in parts if len(part.keys)), lambda part: part.schema):
        together = list(parts_of_schema)
        end = at + sum(len(part.keys) for part in together)
        chosen = rows[(rows >= at) & (rows < end)] - at
        if len(chosen):
            chosen_rows = pa.array(chosen)
            keys = pa.concat_arrays([part.keys for part in together]).take(chosen_rows)
            values = pa.concat_arrays([part.entries.values for part in together]).take(chosen_rows)
            decoded.append(_with_keys(decode(values, schema), keys))
        at = end
    return joined(decoded)


def _with_keys(records: pa.StructArray, keys: pa.BinaryArray) -> pa.StructArray:
    """Return records with their keys, which they leave empty."""
    names = [field.name for field in children(records.type)]
    columns = [keys.cast(pa.string()) if name == KEY else records.field(name) for name in names]
    return struct_array(records.type, len(records), None, columns)
