"""Records of a metadata table in Avro's encoding, whole columns at a time, by the schema of the file that holds them.

A file group has one schema, as hudi-rs reads log files by that of the base file. If a release lacks a field, its
records lack it, too. Source: ``HoodieMetadata.avsc``, ``HoodieMetadataPayload``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask
from ..files.logs.avro_bytes import Encoded, Integers, lists_of, numbers, repeated, side_by_side, spread, stacked, texts
from ..hfile.entries import Entries
from .avro_schema import types_in, wrapped_name
from .kinds import groups_of
from .record_keys import PARTITIONS, key_of_partition
from .records import schema_of

ALL_PARTITIONS, FILES_OF_PARTITION, BOUNDS_OF_FILE, BOUNDS_OF_PARTITION = 1, 2, 3, 6
"""The types of records."""

_META = "_hoodie_"
_FALSE, _END_OF_MAP = b"\x00", b"\x00"


@dataclass(frozen=True, slots=True)
class Records:
    """Records in any order: each has its key, and a value in Avro's encoding."""

    keys: pa.StringArray
    values: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.keys)

    def by_group(self, count: int) -> dict[int, Entries]:
        """Return the entries of each of ``count`` file groups that has any, in the order of their keys as bytes."""
        groups = groups_of(self.keys, count)
        keys = self.keys.cast(pa.binary())
        entries_by_group = {}
        for group in np.unique(groups):  # O(file groups)
            rows = pa.array(np.flatnonzero(groups == group))
            order = rows.take(pc.sort_indices(keys.take(rows)))
            entries_by_group[int(group)] = Entries(keys.take(order), self.values.take(order))
        return entries_by_group


def entries_of_group(parts: Sequence[Records], group: int, count: int) -> Entries:
    """Return the entries of one of ``count`` file groups, in the order of their keys as bytes."""
    chosen = [(part, pa.array(groups_of(part.keys, count) == group)) for part in parts]
    keys = pa.concat_arrays(
        [pa.array([], pa.binary()), *(part.keys.filter(mask).cast(pa.binary()) for part, mask in chosen)]
    )
    values = pa.concat_arrays([pa.array([], pa.binary()), *(part.values.filter(mask) for part, mask in chosen)])
    order = pc.sort_indices(keys)
    return Entries(keys.take(order), values.take(order))


def joined(parts: list[Records]) -> Records:
    return Records(pa.concat_arrays([part.keys for part in parts]), pa.concat_arrays([part.values for part in parts]))


@dataclass(frozen=True, slots=True)
class EncodedField:
    """A column of a record, or the value of a field in all rows.

    Attributes:
        values: Of the rows that have one.
        valid: Which rows have one; None for all.
        wrapper: Of bounds, the name of the type of their values, such as ``Long``.
    """

    values: Encoded
    valid: Mask | None = None
    wrapper: str = ""


@dataclass(frozen=True, slots=True)
class StackedFields:
    """A column of a record whose rows come in parts, each of so many rows, such as bounds of several types."""

    parts: tuple[tuple[EncodedField, int], ...]


def records_of_files(
    partitions: pa.StringArray, names: pa.StringArray, sizes: Integers, deleted: Mask, schema: str
) -> Records:
    """Return the record of each partition with its files, for the partition ``files``.

    ``partitions``, ``names``, ``sizes`` and ``deleted`` have an entry for each file. The record that names all
    partitions is not among the records.
    """
    paths = partitions.dictionary_encode()
    owners = paths.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=len(paths.dictionary)).astype(np.int64)
    entries = _encoded_files(names.take(pa.array(order)), sizes[order], deleted[order])
    maps = side_by_side([numbers(counts), lists_of(entries, counts), repeated(_END_OF_MAP, len(counts))])
    keys = pa.array([key_of_partition(path) for path in paths.dictionary.to_pylist()], pa.string())  # O(partitions)
    return Records(keys, encoded(schema, FILES_OF_PARTITION, {"filesystemMetadata": EncodedField(maps)}, len(keys)))


def record_of_partitions(paths: pa.StringArray, deleted: Mask, schema: str) -> Records:
    """Return the record that names partitions, also those that have no files any more."""
    keys = pa.array([key_of_partition(path) for path in paths.to_pylist()], pa.string())  # O(partitions)
    entries = _encoded_files(keys, np.zeros(len(keys), dtype=np.int64), deleted)
    # Avro writes how many entries a map has only if it has any.
    head = b"" if not len(keys) else numbers(np.array([len(keys)])).data.tobytes()
    value = head + entries.data.tobytes() + _END_OF_MAP
    fields = {"filesystemMetadata": EncodedField(repeated(value, 1))}
    return Records(pa.array([PARTITIONS]), encoded(schema, ALL_PARTITIONS, fields, 1))


def encoded(
    schema: str, kind: int, parts: Mapping[str, EncodedField | Mapping[str, EncodedField | StackedFields]], count: int
) -> pa.BinaryArray:
    """Return the values of ``count`` records of a type, which have the given parts of a record and no others.

    ``kind`` is the type, such as `BOUNDS_OF_FILE`; ``parts`` has top-level fields by name, each whole or by its own
    fields.
    """
    columns = []
    for field in schema_of(schema).avro["fields"]:
        name, avro = field["name"], field["type"]
        if name.startswith(_META):
            columns.append(_encoded_nulls(avro, count))
        elif name == "key":
            # An HFile has the key beside the value, so the key inside the value is empty.
            columns.append(repeated(b"\x00", count))
        elif name == "type":
            columns.append(repeated(_avro_number(kind), count))
        else:
            columns.append(_encoded_part(avro, parts.get(name), count))
    return binary_array(side_by_side(columns))


def _encoded_part(
    avro: Any, part: EncodedField | Mapping[str, EncodedField | StackedFields] | None, count: int
) -> Encoded:
    """Return a top-level field: null if it is not given, its own encoding, or a record of the given fields."""
    if part is None:
        return _encoded_nulls(avro, count)
    if isinstance(part, EncodedField):
        return _encoded_value(avro, part, count)
    record = types_in(avro)[0]
    inner = [_encoded_field(field, part.get(field["name"]), count) for field in record["fields"]]
    return side_by_side([repeated(_avro_number(avro.index(record)), count), *inner])


def _encoded_field(field: Mapping[str, Any], given: EncodedField | StackedFields | None, count: int) -> Encoded:
    """Return one field of an inner record; a field that is not given is false or null."""
    avro = field["type"]
    if isinstance(given, StackedFields):
        return stacked([_encoded_value(avro, part, rows) for part, rows in given.parts])
    if given is not None:
        return _encoded_value(avro, given, count)
    if avro == "boolean":
        return repeated(_FALSE, count)
    return _encoded_nulls(avro, count)


def _encoded_value(avro: Any, part: EncodedField, count: int) -> Encoded:
    """Return the values of a field of the type ``avro``; in a union each follows the number of its branch.

    Rows without a value get the union's null.
    """
    if not isinstance(avro, list):
        return part.values
    types = types_in(avro)
    chosen = next(each for each in types if wrapped_name(each) == part.wrapper) if part.wrapper else types[0]
    branch = _avro_number(avro.index(chosen))
    branched = side_by_side([repeated(branch, len(part.values.lengths)), part.values])
    if part.valid is None:
        return branched
    return side_by_side(
        [spread(branched, part.valid), spread(_encoded_nulls(avro, int((~part.valid).sum())), ~part.valid)]
    )


def _encoded_nulls(avro: Any, count: int) -> Encoded:
    """Return so many nulls of a union."""
    return repeated(_avro_number(avro.index("null")), count)


def _encoded_files(names: pa.StringArray, sizes: Integers, deleted: Mask) -> Encoded:
    """Return the entries of maps of files, each a name with its size and whether it is deleted."""
    return side_by_side(
        [texts(names), numbers(sizes), Encoded(np.ones(len(sizes), np.int64), deleted.astype(np.uint8))]
    )


def _avro_number(value: int) -> bytes:
    """Return a whole number in Avro's encoding."""
    return numbers(np.array([value], dtype=np.int64)).data.tobytes()


def binary_array(values: Encoded) -> pa.BinaryArray:
    """Return encoded values as an Arrow array, without copying their bytes."""
    ends = np.concatenate(([0], np.cumsum(values.lengths))).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(values.data)]
    return pa.Array.from_buffers(pa.binary(), len(values.lengths), buffers)
