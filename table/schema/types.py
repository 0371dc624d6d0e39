"""The Arrow types of a table's columns, and the conversion of other types to these."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ...errors import UnsupportedTypeError

MAX_DECIMAL_PRECISION = 38
UTC_MICROS = pa.timestamp("us", "UTC")
LOCAL_MICROS = pa.timestamp("us")

_SQL_NAMES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    UTC_MICROS: "timestamp",
    LOCAL_MICROS: "timestamp_ntz",
}


def canonical_type(kind: pa.DataType, path: str) -> pa.DataType:
    """Return the type in which a table keeps values of an Arrow type; UnsupportedTypeError if Hudi has none.

    Integers of 8 and 16 bits become int32, as Spark's do in Hudi; timestamps become microseconds, in UTC if they
    have a zone; large, view, fixed-size and dictionary layouts become plain; list elements are named ``element``.
    ``path`` is the column's dotted name, for errors.
    """
    types = pa.types
    if types.is_dictionary(kind):
        return canonical_type(kind.value_type, path)
    if types.is_signed_integer(kind):
        return pa.int64() if types.is_int64(kind) else pa.int32()
    if types.is_float32(kind) or types.is_float64(kind) or types.is_boolean(kind):
        return kind
    if is_text(kind):
        return pa.string()
    if is_bytes(kind):
        return pa.binary()
    if types.is_date(kind):
        return pa.date32()
    if types.is_timestamp(kind):
        return LOCAL_MICROS if kind.tz is None else UTC_MICROS
    if types.is_decimal(kind):
        return _canonical_decimal(kind, path)
    if is_list(kind):
        return pa.list_(_canonical_child(kind.value_field, "element", path))
    if types.is_struct(kind):
        return _canonical_struct(kind, path)
    if types.is_map(kind):
        return _canonical_map(kind, path)
    raise UnsupportedTypeError(
        f"Column {path!r} has type {kind}, which a Hudi table cannot hold.", "Cast the column or leave it out."
    )


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type holds texts, in whatever layout."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_any(kind, "is_string_view")


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a type holds bytes, in whatever layout."""
    types = pa.types
    is_common = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return bool(is_common or _is_any(kind, "is_binary_view"))


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type holds lists, in whatever layout; maps do not count."""
    types = pa.types
    is_common = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_common or _is_any(kind, "is_list_view", "is_large_list_view"))


def sql_name(kind: pa.DataType) -> str:
    """Return a type as Spark's SQL spells it."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{sql_name(field.type)}' for field in children(kind))}>"
    if pa.types.is_map(kind):
        return f"map<string,{sql_name(kind.item_type)}>"
    if is_list(kind):
        return f"array<{sql_name(kind.value_type)}>"
    return _SQL_NAMES.get(kind, str(kind))


def decimal_bytes(precision: int) -> int:
    """Return the least number of bytes that hold every decimal of a precision, two's complement."""
    greatest: int = 10**precision - 1
    return (greatest.bit_length() + 8) // 8


def same_type(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether two types are equal, including the names and nullability of all fields inside them."""
    if left != right:
        return False
    return all(
        a.name == b.name and a.nullable == b.nullable and same_type(a.type, b.type)
        for a, b in zip(children(left), children(right), strict=True)
    )


def alike(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether two canonical types are equal, regardless of nullability."""
    mine, theirs = children(left), children(right)
    if not mine and not theirs:
        return bool(left == right)
    if left.id != right.id or [field.name for field in mine] != [field.name for field in theirs]:
        return False
    return all(alike(a.type, b.type) for a, b in zip(mine, theirs, strict=True))


def children(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields directly inside a type; of a map its key and its value."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if is_list(kind):
        return [kind.value_field]
    if pa.types.is_struct(kind):
        return [kind.field(position) for position in range(kind.num_fields)]
    return []


def _is_any(kind: pa.DataType, *tests: str) -> bool:
    """Return whether one of pyarrow's tests holds for a type."""
    # Older pyarrow releases lack the younger types.
    checks: list[Callable[[pa.DataType], bool]] = [getattr(pa.types, test) for test in tests if hasattr(pa.types, test)]
    return any(test(kind) for test in checks)


def _canonical_child(field: pa.Field, name: str, path: str) -> pa.Field:
    return pa.field(name, canonical_type(field.type, f"{path}.{name}"), nullable=field.nullable)


def _canonical_decimal(kind: pa.DataType, path: str) -> pa.DataType:
    """Return a decimal type of 128 bits; UnsupportedTypeError if Spark has none with such digits."""
    if kind.precision > MAX_DECIMAL_PRECISION or not 0 <= kind.scale <= kind.precision:
        raise UnsupportedTypeError(
            f"Column {path!r} has type {kind}; decimals have up to {MAX_DECIMAL_PRECISION} digits and a scale from 0 "
            "to their precision.",
            "Cast the column.",
        )
    return pa.decimal128(kind.precision, kind.scale)


def _canonical_struct(kind: pa.StructType, path: str) -> pa.DataType:
    if kind.num_fields == 0:
        raise UnsupportedTypeError(f"Column {path!r} is a struct without fields.", "Leave it out.")
    return pa.struct([_canonical_child(field, field.name, path) for field in children(kind)])


def _canonical_map(kind: pa.MapType, path: str) -> pa.DataType:
    """Return a map type with texts for keys; UnsupportedTypeError for other keys."""
    if not is_text(kind.key_type):
        raise UnsupportedTypeError(
            f"Column {path!r} is a map with keys of type {kind.key_type}; Hudi's maps have strings for keys.",
            "Cast the keys to strings.",
        )
    value = _canonical_child(kind.item_field, "value", path)
    return pa.map_(pa.field("key", pa.string(), nullable=False), value)
