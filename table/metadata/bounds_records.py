"""Records of ``column_stats`` and ``partition_stats`` in Avro's encoding, of many files at a time.

Source: ``HoodieMetadataPayload.createColumnStatsRecords``, ``ValueType`` and ``HoodieIndexVersion``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..files.logs.avro_bytes import Encoded, fixed, numbers, repeated, sized, texts
from ..files.logs.decimals import shortest, unscaled
from .bounds_of_files import BoundedFiles, BoundsOfColumn, FileBounds, Integers, NamedFiles, by_partition
from .encoding import (
    BOUNDS_OF_FILE,
    BOUNDS_OF_PARTITION,
    EncodedField,
    Records,
    StackedFields,
    encoded,
)
from .record_keys import hash_of_column, hash_of_partition, key_of_partition

# The type of decimals in records that say no types.
_UNTYPED_DECIMAL = pa.decimal128(30, 15)
_MOST_DIGITS, _MOST_SCALE = 30, 15
_TRUE, _NULL, _SOME = b"\x01", b"\x00", b"\x02"
_PLAIN = {
    pa.bool_(): ("Boolean", 2),
    pa.int32(): ("Int", 3),
    pa.int64(): ("Long", 4),
    pa.float32(): ("Float", 5),
    pa.float64(): ("Double", 6),
    pa.string(): ("String", 7),
    pa.binary(): ("Bytes", 8),
}
_RECORDS_AT_ONCE = 40_000
_DECIMAL, _DATE = 10, 12
# The types of points in time, with and without a zone.
_TIMES = {"ms": (15, 18), "us": (16, 19)}


def can_be_bounded(kind: pa.DataType, *, typed: bool) -> bool:
    """Return whether a metadata table has bounds of columns of a canonical type.

    An older index, which is not ``typed``, has no bounds of long decimals, nor of milliseconds: its readers take these
    for microseconds.
    """
    if pa.types.is_decimal(kind):
        digits = kind.precision + _MOST_SCALE - kind.scale
        return typed or (kind.scale <= _MOST_SCALE and digits <= _MOST_DIGITS)
    if pa.types.is_timestamp(kind):
        return kind.unit == "us" or (typed and kind.unit in _TIMES)
    return kind in _PLAIN or pa.types.is_date32(kind)


def bounds_records(files: Sequence[FileBounds], columns: Sequence[pa.Field], schema: str, *, typed: bool) -> Records:
    """Return the records of ``column_stats`` of some files.

    Args:
        files: Of each column a file has all bounds (`ColumnBounds.says_all`); none is partial.
        columns: The indexed columns, at least one, of canonical types that `can_be_bounded`.
        schema: The Avro schema of the file group that the records go to, as JSON.
        typed: Whether the index is of version V2, whose records say the types of values.
    """
    bounded = BoundedFiles.of(files, columns)
    return records_of_bounds(bounded.files, bounded.columns, schema, typed=typed)


def bounds_in_parts(bounded: BoundedFiles, schema: str, *, typed: bool) -> Iterator[Records]:
    """Yield the records of ``column_stats`` of files, none of them partial, in parts of some megabytes.

    All keys of a part come before those of the next. The arguments are as of `bounds_records`.
    """
    for columns in _columns_in_parts(bounded):
        yield records_of_bounds(bounded.files, columns, schema, typed=typed)


def partition_bounds_in_parts(bounded: BoundedFiles, schema: str, *, typed: bool) -> Iterator[Records]:
    """Yield the records of ``partition_stats`` of new files, which widen older records, in parts as `bounds_in_parts`.

    Bounds of new files alone add to the earlier bounds of their partitions, so they are not tight.
    """
    for columns in _columns_in_parts(bounded):
        yield records_of_partition_bounds(bounded.files, columns, schema, typed=typed, tight=False)


def _columns_in_parts(bounded: BoundedFiles) -> Iterator[list[BoundsOfColumn]]:
    """Yield the bounds of some columns at a time, in the order of their keys; none without a file."""
    ordered_columns = sorted(bounded.columns, key=lambda each: hash_of_column(each.column))
    at_once = max(_RECORDS_AT_ONCE // max(len(bounded.files), 1), 1)
    for at in range(0, len(ordered_columns) if len(bounded.files) else 0, at_once):
        yield ordered_columns[at : at + at_once]


def partition_bounds_records(
    files: Sequence[FileBounds], columns: Sequence[pa.Field], schema: str, *, typed: bool, tight: bool = False
) -> Records:
    """Return the records of ``partition_stats``: of each column and partition the bounds over the files given.

    Args:
        files: As for `bounds_records`, but any may be partial.
        tight: Whether these are all files of the newest slices of their partitions: then the records replace older
            records. By default they widen the older bounds.

    The other arguments are as of `bounds_records`.
    """
    bounded = BoundedFiles.of(files, columns)
    return records_of_partition_bounds(bounded.files, bounded.columns, schema, typed=typed, tight=tight)


def records_of_bounds(files: NamedFiles, bounds: Sequence[BoundsOfColumn], schema: str, *, typed: bool) -> Records:
    """Return the records of ``column_stats`` of some columns."""
    return _records(BOUNDS_OF_FILE, files.names, files.places, files.rows, bounds, schema, typed=typed)


def records_of_partition_bounds(
    files: NamedFiles, bounds: Sequence[BoundsOfColumn], schema: str, *, typed: bool, tight: bool
) -> Records:
    """Return the records of ``partition_stats`` of some columns, over all files of a partition.

    ``tight`` is as of `partition_bounds_records`.
    """
    merged = [by_partition(files, of_column) for of_column in bounds]
    partitions = merged[0][0]
    paths = partitions.partitions.to_pylist()  # O(partitions)
    key_ends, names = (
        pa.array(map(hash_of_partition, paths), pa.string()),
        pa.array(map(key_of_partition, paths), pa.string()),
    )
    of_partitions = [of_column for _, of_column in merged]
    return _records(
        BOUNDS_OF_PARTITION, names, key_ends, partitions.rows, of_partitions, schema, typed=typed, tight=tight
    )


def _records(
    kind: int,
    names: pa.StringArray,
    key_ends: pa.StringArray,
    rows: Integers,
    bounds: Sequence[BoundsOfColumn],
    schema: str,
    *,
    typed: bool,
    tight: bool = False,
) -> Records:
    """Return the record of each column in each file or partition, columns of one type beside each other.

    ``kind`` is the type of the records, such as `BOUNDS_OF_FILE`. ``names``, ``key_ends`` and ``rows`` have an entry
    for each file or partition: its name, what follows the column in its keys, and how many rows it has. ``schema`` is
    the Avro schema of the file group that the records go to, as JSON. ``typed`` adds the types of the values, as the
    index of version V2 has them. ``tight`` says that the records cover all files of the partitions, and so replace
    older records, which they otherwise widen.
    """
    bounds = sorted(bounds, key=lambda each: str(each.least.type))
    count, columns = len(names), pa.array([each.column for each in bounds], pa.string())
    of_column = pa.array(np.repeat(np.arange(len(bounds)), count))
    at = pa.array(np.tile(np.arange(count), len(bounds)))
    by_type = [[*each] for _, each in groupby(bounds, key=lambda each: each.least.type)]
    hashes = pa.array([hash_of_column(each.column) for each in bounds], pa.string())
    fields: dict[str, EncodedField | StackedFields] = {
        "fileName": EncodedField(texts(names.take(at))),
        "columnName": EncodedField(texts(columns.take(of_column))),
        "minValue": _wrapped_bounds([[each.least for each in group] for group in by_type], typed=typed),
        "maxValue": _wrapped_bounds([[each.greatest for each in group] for group in by_type], typed=typed),
        "valueCount": EncodedField(numbers(np.tile(rows, len(bounds)))),
        "nullCount": EncodedField(numbers(np.concatenate([each.nulls for each in bounds]))),
        "totalSize": EncodedField(numbers(np.concatenate([each.sizes for each in bounds]))),
        "totalUncompressedSize": EncodedField(numbers(np.concatenate([each.uncompressed for each in bounds]))),
    }
    if tight:
        fields["isTightBound"] = EncodedField(repeated(_TRUE, len(at)))
    if typed:
        types = ((_wrapper_and_value_type(group[0].least.type, typed=True)[1], count * len(group)) for group in by_type)
        fields["valueType"] = StackedFields(
            tuple((EncodedField(repeated(value_type, many)), many) for value_type, many in types)
        )
    keys = pc.binary_join_element_wise(hashes.take(of_column), key_ends.take(at), "")
    return Records(keys, encoded(schema, kind, {"ColumnStatsMetadata": fields}, len(at)))


def _wrapper_and_value_type(kind: pa.DataType, *, typed: bool) -> tuple[str, bytes]:
    """Return the wrapper of values of a type, and the encoded ``valueType`` of their records.

    The ``valueType`` is empty if the index is not typed, as its records have none.
    """
    parameters = ""
    if pa.types.is_decimal(kind):
        wrapper, ordinal, parameters = "Bytes" if typed else "Decimal", _DECIMAL, f"{kind.precision},{kind.scale}"
    elif pa.types.is_date32(kind):
        wrapper, ordinal = "Int" if typed else "Date", _DATE
    elif pa.types.is_timestamp(kind):
        wrapper, ordinal = "Long", _TIMES[kind.unit][kind.tz is None]
    else:
        wrapper, ordinal = _PLAIN[kind]
    if not typed:
        return wrapper, b""
    encoded_parameters = _SOME + texts(pa.array([parameters])).data.tobytes() if parameters else _NULL
    return wrapper, numbers(np.array([ordinal])).data.tobytes() + encoded_parameters


def _wrapped_bounds(by_type: Sequence[Sequence[pa.Array]], *, typed: bool) -> StackedFields:
    """Return bounds in the wrappers of their types, which come grouped by type; nulls become Avro's null.

    If the index is not ``typed``, all decimals have one type.
    """
    parts = []
    for of_type in by_type:
        values = pa.concat_arrays(of_type)
        wrapper, _ = _wrapper_and_value_type(values.type, typed=typed)
        valid, present = values.is_valid().to_numpy(zero_copy_only=False), values.drop_null()
        if pa.types.is_decimal(present.type) and not typed:
            present = present.cast(_UNTYPED_DECIMAL)
        parts.append((EncodedField(_encoded_values(present), None if valid.all() else valid, wrapper), len(values)))
    return StackedFields(tuple(parts))


def _encoded_values(values: pa.Array) -> Encoded:
    """Return values without nulls in Avro's encoding; times and dates are encoded as their numbers."""
    kind = values.type
    if pa.types.is_decimal(kind):
        return sized(shortest(unscaled(values)))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return texts(values)
    if pa.types.is_boolean(kind):
        return fixed(values.cast(pa.uint8()).to_numpy().reshape(-1, 1))
    if pa.types.is_floating(kind):
        octets = np.ascontiguousarray(values.to_numpy()).view(np.uint8)
        return fixed(octets.reshape(len(values), kind.bit_width // 8))
    return numbers(values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_numpy())
