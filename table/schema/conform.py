"""Casts columns to exactly a table's schema: by name, in its order, with its types and nullability at every depth.

Nested columns are rebuilt from their parts, which normalises offsets, slices and the two-level lists of Apache Hudi's
Parquet files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ColumnValueError, SchemaMismatchError
from ..arrow.arrays import Lengths, list_array, plain, struct_array, without_nulls
from .casts import (
    INT_TO_DOUBLE,
    NUMBER_TO_TEXT,
    as_exact_numbers,
    as_whole_numbers,
    cast,
    fits,
    fits_by_value,
    fits_if_whole,
    whole_bound,
)
from .types import children, is_list, is_text, same_type, sql_name

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)

# The longest part of a value that an error shows, in characters.
_SHOWN = 100


def conform(
    rows: Rows,
    schema: pa.Schema,
    *,
    fill_missing: bool = False,
    by_value: bool = False,
    present: pa.BooleanArray | None = None,
    keys: pa.Array | None = None,
    missing: Counter[str] | None = None,
) -> Rows:
    """Return the columns of ``schema``, taken by name, with exactly its types and nullability.

    Values are cast to wider types (see `pyhudi.table.schema.casts`) and never narrowed; layouts (dictionary, large,
    view, two-level list) become plain. Columns, and fields of structs, that ``schema`` lacks are dropped. Nullable
    columns and fields that the rows lack become null under ``fill_missing``. Under ``by_value`` canonical texts,
    small bigints and floats without a fraction are cast to the table's whole numbers; ``missing`` then counts the nulls
    and NaN among such floats by their column, and ``keys`` are the rows' record keys, for errors. ``present`` tells
    which rows must obey the nullability; in other rows a required column holds arbitrary values. Raises
    SchemaMismatchError, and ColumnValueError for a value that does not convert exactly.
    """
    if isinstance(rows, pa.Table):
        # The other options are for batches alone.
        batches = [conform(batch, schema, fill_missing=fill_missing, by_value=by_value) for batch in rows.to_batches()]
        return pa.Table.from_batches(batches, schema)
    terms = _Terms(fill_missing, by_value, keys, missing)
    columns = [_WantedColumn(field, field.name, terms).column(rows, present) for field in schema]
    if not columns:
        # Made of no arrays, the batch would have no rows.
        return rows.select([])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conform_array(array: pa.Array, field: pa.Field, *, by_value: bool = False) -> pa.Array:
    """Return a column's values with exactly the type and nullability of ``field``, as `conform` does."""
    return _WantedColumn(field, field.name, _Terms(by_value=by_value)).build(plain(array), None)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What `conform` may do to values, with the record keys of the rows and the count of missing values."""

    fill_missing: bool = False
    by_value: bool = False
    keys: pa.Array | None = None
    missing: Counter[str] | None = None


@dataclass(frozen=True, slots=True)
class _WantedColumn:
    """A column, or a value inside a column, as the table has it.

    Attributes:
        path: Its dotted name, for errors.
        row_of: Returns the position of the row that holds a value, by the value's own position.
    """

    field: pa.Field
    path: str
    terms: _Terms
    row_of: Callable[[int], int] = int

    def column(self, batch: pa.RecordBatch, present: pa.BooleanArray | None) -> pa.Array:
        """Return the column of the batch in the wanted type; SchemaMismatchError if it is there twice or missing.

        ``present`` tells which rows must obey the nullability, None for all.
        """
        positions = batch.schema.get_all_field_indices(self.field.name)
        if len(positions) > 1:
            raise SchemaMismatchError(
                f"There are {len(positions)} columns {self.field.name!r}.", "Rename or drop all but one."
            )
        if not positions:
            return self._in_place_of_missing(batch.num_rows, batch.schema.names)
        return self.build(plain(batch.column(positions[0])), present)

    def build(self, array: pa.Array, parent: pa.BooleanArray | None) -> pa.Array:
        """Return an array, not dictionary-encoded, in the wanted type; a required column keeps no validity bitmap.

        ``parent`` tells which values lie in a struct that is itself not null; None for all. Other values are arbitrary.
        """
        kind, nullable = self.field.type, self.field.nullable
        if not nullable:
            self._check_no_nulls(array, parent)
        if pa.types.is_null(array.type) and nullable:
            return _nulls(len(array), kind)
        if not pa.types.is_nested(kind):
            cast = self._cast(array)
            self._count_missing(array, cast, parent)
            # A cast to whole numbers makes NaN null.
            if not nullable and cast.null_count > array.null_count:
                self._check_no_nulls(cast, parent)
            return cast if nullable else without_nulls(cast)
        # Nothing inside can be null against the table's columns.
        if nullable and same_type(array.type, kind) and not _has_required(kind):
            return array
        valid = None if array.null_count == 0 else array.is_valid()
        if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
            parts = self._struct_parts(array, _and(valid, parent))
            return struct_array(kind, len(array), valid if nullable else None, parts)
        same_shape = (
            is_list(array.type) if pa.types.is_list(kind) else pa.types.is_map(kind) and pa.types.is_map(array.type)
        )
        if same_shape:
            return list_array(kind, valid if nullable else None, *self._list_parts(array))
        raise self._type_mismatch(array.type)

    def _count_missing(self, array: pa.Array, cast: pa.Array, parent: pa.BooleanArray | None) -> None:
        """Count nulls and NaN among floats (``array``) that became whole numbers (``cast``).

        ``parent`` is as of `build`: what lies below a null struct does not count.
        """
        missing = self.terms.missing
        if missing is not None and cast.null_count and fits_if_whole(array.type, cast.type):
            nulls = cast.is_null() if parent is None else pc.and_(cast.is_null(), parent)
            count = pc.sum(nulls).as_py()  # O(1)
            if count:
                missing[self.path] += count

    def _inside(self, field: pa.Field, path: str) -> _WantedColumn:
        return replace(self, field=field, path=path)

    def _in_place_of_missing(self, length: int, given_names: list[str]) -> pa.Array:
        """Return nulls for a missing column, or raise if it may not be filled; ``given_names`` are those that exist."""
        field = self.field
        if self.terms.fill_missing and field.nullable:
            return _nulls(length, field.type)
        twins = [name for name in given_names if name.lower() == field.name.lower()]
        hint = f" There is {twins[0]!r}, which differs in case." if twins else ""
        required = "" if field.nullable else " not null"
        raise SchemaMismatchError(
            f"Column {self.path!r} ({field.type}{required}) of the table is missing.{hint}",
            "Add the column to the rows.",
        )

    def _struct_parts(self, array: pa.StructArray, present: pa.BooleanArray | None) -> list[pa.Array]:
        """Return the fields of a struct in the wanted types and order; ``present`` tells which structs are not null."""
        names = [field.name for field in children(array.type)]
        # A child's value below a null struct may be invalid, even an index beyond its dictionary; flatten() nulls it.
        parts = array.flatten()
        if len(set(names)) < len(names):
            raise SchemaMismatchError(
                f"Column {self.path!r} is a struct with the fields {', '.join(map(repr, names))}, two of which have "
                "one name.",
                "Rename or drop one of the two fields.",
            )
        built = []
        for field in children(self.field.type):
            wanted_field = self._inside(field, f"{self.path}.{field.name}")
            if field.name in names:
                built.append(wanted_field.build(plain(parts[names.index(field.name)]), present))
            else:
                built.append(wanted_field._in_place_of_missing(len(array), names))
        return built

    def _list_parts(self, array: pa.Array) -> tuple[Lengths, pa.Array]:
        """Return the lengths of lists or maps, and their values in the wanted type, a map's as entries.

        Values outside a slice or below a null are left out; a null list has length 0.
        """
        kind = self.field.type
        if len(array) == 0:  # Spark 4.0 omits the offsets of an empty list inside other lists
            array = pa.array([], array.type)
        if pa.types.is_map(array.type):
            entries = pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)])
            array = array.cast(pa.list_(entries))
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype("int64")
        values, outer_row = plain(array.flatten()), self.row_of

        # Errors name the row that holds a value, so the position of an item leads to that of its list.
        def row_of(item: int) -> int:
            return outer_row(int(np.searchsorted(np.cumsum(lengths), item, side="right")))

        wanted_item = replace(self, row_of=row_of)
        if pa.types.is_map(kind):
            entry = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
            return lengths, wanted_item._inside(entry, self.path).build(values, None)
        element = kind.value_field
        if pa.types.is_list(element.type) and _is_wrapped_list(values.type):
            values = plain(values.flatten()[0])
        return lengths, wanted_item._inside(element, f"{self.path}.element").build(values, None)

    def _check_no_nulls(self, array: pa.Array, parent: pa.BooleanArray | None) -> None:
        """Raise SchemaMismatchError if values are null whose struct, by ``parent``, is not null itself."""
        if array.null_count == 0:
            return
        nulls = array.is_null() if parent is None else pc.and_(array.is_null(), parent)
        count = pc.sum(nulls).as_py()  # O(1)
        if count:
            raise SchemaMismatchError(
                f"Column {self.path!r} may not be null in the table and is null in {count} of {len(array)} values of "
                "one batch.",
                "Fill the column, or drop those rows.",
            )

    def _cast(self, array: pa.Array) -> pa.Array:
        """Return flat values in the wanted type; SchemaMismatchError if a value, or the type, does not fit.

        With ``terms.by_value`` each value decides: texts, bigints and floats become the wanted whole numbers if that is
        exact.
        """
        kind = self.field.type
        if array.type == kind:
            return array
        if self.terms.by_value and fits_by_value(array.type, kind):
            numbers, inexact = as_exact_numbers(array, kind)
            if inexact is not None:
                raise self._inexact_value(array, inexact)
            return numbers
        if self.terms.by_value and fits_if_whole(array.type, kind):
            numbers, inexact = as_whole_numbers(array, kind)
            if inexact is not None:
                raise self._inexact_value(array, inexact)
            return numbers
        if not fits(array.type, kind):
            raise self._type_mismatch(array.type)
        try:
            return cast(array, kind)
        except pa.ArrowInvalid as error:
            raise SchemaMismatchError(
                f"Column {self.path!r} has type {array.type}, and a value in it does not fit the table's {kind}: "
                f"{error}.",
                "Round or cast the column.",
            ) from error

    def _inexact_value(self, array: pa.Array, inexact: pa.BooleanArray) -> ColumnValueError:
        """Return the error for the first value that does not convert exactly, with its record key if it is known."""
        position = pc.index(inexact, True).as_py()  # O(1)
        shown_value = repr(array[position].as_py())[:_SHOWN]  # one value, for the error
        count = pc.sum(inexact).as_py()  # O(1)
        details = [f"{count} of {len(array)} values of one batch are such"] if count > 1 else []
        if self.terms.keys is not None:
            key = self.terms.keys[self.row_of(position)].as_py()  # one value, for the error
            of_row = "the first in the row with the record key" if details else "the row has the record key"
            details.append(f"{of_row} {key!r}")
        return strange_value(self.path, array.type, self.field.type, shown_value, ", ".join(details))

    def _type_mismatch(self, given_type: pa.DataType) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"Column {self.path!r} has type {given_type}; the table's is {self.field.type}.",
            "Cast the column to the table's type.",
        )


def _nulls(length: int, kind: pa.DataType) -> pa.Array:
    """Return nulls of a type; below them required fields hold arbitrary values, as Parquet's writer demands."""
    if not pa.types.is_struct(kind) or not _has_required(kind):
        return pa.nulls(length, kind)
    return struct_array(kind, length, pa.array(np.zeros(length, np.bool_)), _blanks(length, kind))


def _blanks(length: int, kind: pa.StructType) -> list[pa.Array]:
    """Return the values of a struct's fields below nulls."""
    return [_nulls(length, field.type) if field.nullable else _blank(length, field.type) for field in children(kind)]


def _blank(length: int, kind: pa.DataType) -> pa.Array:
    """Return arbitrary values of a type, of which none is null."""
    if pa.types.is_struct(kind):
        return struct_array(kind, length, None, _blanks(length, kind))
    if pa.types.is_nested(kind):
        element = kind.value_type if pa.types.is_list(kind) else pa.struct([kind.key_field, kind.item_field])
        return list_array(kind, None, np.zeros(length, np.int64), pa.array([], element))
    return without_nulls(pa.nulls(length, kind))


def _is_wrapped_list(kind: pa.DataType) -> bool:
    """Return whether a type is what older pyarrow releases read for the inner list of a two-level list of lists."""
    fields = children(kind) if pa.types.is_struct(kind) else []
    return len(fields) == 1 and fields[0].name == "array" and is_list(fields[0].type)


def _and(left: pa.BooleanArray | None, right: pa.BooleanArray | None) -> pa.BooleanArray | None:
    """Return where both masks are true; None means true everywhere."""
    if left is None or right is None:
        return right if left is None else left
    return pc.and_(left, right)


def _has_required(kind: pa.DataType) -> bool:
    """Return whether a field inside a type, at any depth, may not be null."""
    if pa.types.is_map(kind):  # its keys are never null in Arrow
        return not kind.item_field.nullable or _has_required(kind.item_type)
    return any(not field.nullable or _has_required(field.type) for field in children(kind))


def strange_value(path: str, given: pa.DataType, kind: pa.DataType, shown: str, several: str = "") -> ColumnValueError:
    """Return the error for a value that does not convert exactly from the rows' type (``given``) to the table's.

    ``shown`` is the value as the error shows it; ``several`` tells of more such values.
    """
    wanted = sql_name(kind)
    others = f"; {several}" if several else ""
    if fits_if_whole(given, kind):
        return _no_whole_number(path, given, kind, shown, others)
    if not is_text(given):
        return ColumnValueError(
            f"Column {path!r} is bigint in the rows and {wanted} in the table, which {shown} does not fit{others}.",
            f"Correct the value, or make the table anew with a bigint column. {NUMBER_TO_TEXT}=true lets the table's "
            "column become bigint.",
        )
    call = f'df.withColumn("{path}", col("{path}").cast("{wanted}"))'
    return ColumnValueError(
        f"Column {path!r} is string in the rows and {wanted} in the table, and {shown} is not how a number of that "
        f"type is spelt (7, -7, 0){others}.",
        f"Cast {path} to {wanted}"
        + ("." if "." in path else f": {call}.")
        + f" {NUMBER_TO_TEXT}=true lets the table's "
        "column become string, as in Apache Hudi, unless rows are ordered by it.",
    )


def _no_whole_number(path: str, given: pa.DataType, kind: pa.DataType, shown: str, more: str) -> ColumnValueError:
    """Return the error for a float or double that is no whole number of the table's type.

    ``shown`` is the value as the error shows it; ``more`` tells of more such values, or is empty.
    """
    option = f" {INT_TO_DOUBLE}=true lets the table's column become double."
    anew = " A bigint column becomes double by mode overwrite alone, since double would round what it holds."
    power = whole_bound(given).bit_length() - 1
    return ColumnValueError(
        f"Column {path!r} is {sql_name(given)} in the rows and {sql_name(kind)} in the table, which takes whole "
        f"numbers of them below 2^{power} in size, and {shown} is none that fits{more}.",
        f"Round or correct the values.{option if pa.types.is_int32(kind) else anew}",
    )
