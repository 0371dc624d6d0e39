"""Conditions and values of clauses as terms over rows whose columns are named ``source.x`` and ``target.x``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ColumnValueError, InvalidOptionError, SchemaMismatchError
from ...methods.merging.changed_table import SOURCE, TARGET
from ...methods.merging.clauses import Side, Value
from ...reader.expression_terms import necessary_for
from ...reader.row_condition import necessary
from ...reader.row_filter import expression_values, needed_columns
from ...reader.skipping.predicates import Predicate, columns_of, renamed
from ...reader.sql.coercion import in_type, is_number
from ...reader.sql.names import NamedColumns
from ...reader.sql.parser import parse_condition_text, parse_value_text
from ...reader.sql.terms import ColumnTerm, ConstantTerm, SqlTerm, column_of
from ...table.arrow.arrays import Mask, mask, struct_array
from ...table.schema.casts import fits, fits_by_value, fits_if_whole
from ...table.schema.conform import conform_array
from ...table.schema.types import children, sql_name


@dataclass(frozen=True, slots=True)
class ExpressionTerm:
    """An expression of pyarrow.

    Attributes:
        names_no_side: Whether it names the columns of the table without their side.
        predicates: What every row of the table satisfies for which it holds, without the side in the names.
    """

    expression: pc.Expression
    kind: pa.DataType
    columns: frozenset[str]
    names_no_side: bool = False
    predicates: tuple[Predicate, ...] = ()

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        return expression_values(self.expression, _named_plainly(rows) if self.names_no_side else rows)


@dataclass(frozen=True, slots=True)
class FieldsTerm:
    """A struct with other values in fields; the fields of a null struct are null otherwise."""

    fields: tuple[SqlTerm, ...]
    kind: pa.StructType

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(field.columns for field in self.fields))

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the struct of each row, with each field in its type of the table; no struct is null."""
        parts = [
            of_column(column_of(term.of(rows), rows.num_rows), field)
            for term, field in zip(self.fields, children(self.kind), strict=True)
        ]
        return struct_array(self.kind, rows.num_rows, None, parts)


@dataclass(frozen=True, slots=True)
class Sides:
    """The columns of both sides of a merge; an update has no source.

    Attributes:
        target: The columns of the table, the meta columns among them.
    """

    source: pa.Schema | None
    target: pa.Schema
    path: str

    def value(self, value: Value, side: Side, what: str) -> SqlTerm:
        """Return the term of a value; text is SQL, and what is neither text nor an expression is a constant.

        Raises `InvalidOptionError` or `MissingColumnError` if it cannot be read; ``what`` names it.
        """
        if isinstance(value, str):
            return parse_value_text(value, self._named_columns(side), what)
        if isinstance(value, pc.Expression):
            return self._of_expression(value, side, what)
        if isinstance(value, (ColumnTerm, FieldsTerm)):
            return value
        scalar = _scalar(value, what)
        return ConstantTerm(scalar.as_py(), scalar.type)  # one value

    def condition(self, condition: Any, side: Side, what: str) -> SqlTerm:
        """Return the term of a condition of a clause for rows of ``side``, whose columns it may name.

        ``what`` names the condition in errors. Raises as `value` does, and `InvalidOptionError` if it is not boolean.
        """
        if isinstance(condition, str):
            return parse_condition_text(condition, self._named_columns(side), what)
        if not isinstance(condition, (pc.Expression, bool)):
            raise InvalidOptionError(
                f"{what} is a {type(condition).__name__}.",
                "Give SQL text such as 'source.fare > target.fare', or an expression such as "
                "pyarrow.compute.field('source.fare') > 10.",
            )
        term = self.value(condition, side, what)
        if not (pa.types.is_boolean(term.kind) or pa.types.is_null(term.kind)):
            raise InvalidOptionError(
                f"{what} is of the type {term.kind}, which is neither true nor false.", "Compare it with something."
            )
        return term

    def with_fields(
        self, column: str, data_type: pa.DataType, new_values: Mapping[tuple[str, ...], Value], what: str
    ) -> Value:
        """Return a struct of the table with other values in fields, given by their paths."""
        term = parse_value_text(column, self._named_columns(Side.BY_SOURCE), what)
        assert isinstance(term, ColumnTerm)  # noqa: S101 (for the type checker)
        side = Side.BY_SOURCE if self.source is None else Side.MATCHED
        return self._struct_of_fields(term, data_type, new_values, side, what)

    def _struct_of_fields(
        self,
        column: ColumnTerm,
        data_type: pa.DataType,
        new_values: Mapping[tuple[str, ...], Value],
        side: Side,
        what: str,
    ) -> FieldsTerm:
        """Return the term of a struct with new values in some fields, by their paths; others keep the stored ones.

        ``column`` is the stored struct, of the type ``data_type``; ``side`` and ``what`` are as of `value`.
        """
        terms: list[SqlTerm] = []
        for field in children(data_type):
            inner = {path[1:]: value for path, value in new_values.items() if path[0] == field.name}
            stored_field = ColumnTerm(column.name, field.type, (*column.fields, field.name))
            if () in inner:
                terms.append(self.value(inner[()], side, what))
            else:
                terms.append(
                    self._struct_of_fields(stored_field, field.type, inner, side, what) if inner else stored_field
                )
        nullable = [field.with_nullable(True) for field in children(data_type)]
        return FieldsTerm(tuple(terms), pa.struct(nullable))

    def _columns_of_side(self, side: Side) -> dict[str, pa.Schema]:
        """Return the columns that a clause of a side may name, by the side that has them."""
        sides = {} if self.source is None or side is Side.BY_SOURCE else {SOURCE: self.source}
        return sides if side is Side.NOT_MATCHED else {**sides, TARGET: self.target}

    def _named_columns(self, side: Side) -> NamedColumns:
        """Return the names that SQL text may use; if one side alone counts, its columns need no side before them."""
        sides = self._columns_of_side(side)
        return NamedColumns(sides, f"the table {self.path}", next(iter(sides)) if len(sides) == 1 else None)

    def joined(self, side: Side) -> pa.Schema:
        """Return the columns that clauses of a side may name, as the joined rows have them."""
        return pa.schema(
            [
                field.with_name(f"{name}.{field.name}").with_nullable(True)
                for name, schema in self._columns_of_side(side).items()
                for field in schema
            ]
        )

    def _of_expression(self, expression: pc.Expression, side: Side, what: str) -> ExpressionTerm:
        """Return the term of an expression; for rows of the table alone, it may name the columns without the side.

        ``what`` names the expression in the `InvalidOptionError` that it does not fit the columns.
        """
        joined = self.joined(side).empty_table()
        # The columns under the names that the expression may use, and whether these lack the side.
        forms = [(joined, False)]
        if side is Side.BY_SOURCE:
            forms.append((joined.rename_columns(self.target.names), True))
        for rows, names_no_side in forms:
            try:
                columns = needed_columns(expression, rows)
                (batch,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
                data_type = expression_values(expression, batch).type
            except pa.ArrowException as error:
                refusal = error
                continue
            prefix = "" if names_no_side else f"{TARGET}."
            predicates = _of_target(necessary_for(expression, rows.schema), prefix)
            if names_no_side:
                columns = frozenset(f"{TARGET}.{name}" for name in columns)
            return ExpressionTerm(expression, data_type, columns, names_no_side, predicates)
        raise InvalidOptionError(
            f"{what}, the expression {expression}, does not fit the columns: {refusal}.",
            f"It may name {', '.join(joined.column_names)}, such as pyarrow.compute.field({joined.column_names[0]!r}).",
        ) from refusal


def predicates_of_target(term: SqlTerm | ExpressionTerm) -> tuple[Predicate, ...]:
    """Return the predicates of a condition on rows of the table, without the side in the names."""
    return term.predicates if isinstance(term, ExpressionTerm) else _of_target(necessary(term), f"{TARGET}.")


def _of_target(predicates: Sequence[Predicate], prefix: str) -> tuple[Predicate, ...]:
    """Return the predicates whose columns all have a prefix, without it."""
    of_table = [predicate for predicate in predicates if all(name.startswith(prefix) for name in columns_of(predicate))]
    return tuple(renamed(predicate, lambda name: name.removeprefix(prefix)) for predicate in of_table)


def holds_for(condition: SqlTerm, rows: pa.RecordBatch, candidates: Mask) -> Mask:
    """Return which of the ``candidates`` among rows satisfy a condition; on other rows its evaluation could fail."""
    rows_to_ask = rows if candidates.all() else rows.filter(pa.array(candidates))
    result: Mask = candidates.copy()
    result[candidates] = mask(pc.cast(column_of(condition.of(rows_to_ask), rows_to_ask.num_rows), pa.bool_()))
    return result


def check_fits(data_type: pa.DataType, field: pa.Field, what: str, path: str) -> None:
    """Refuse a value of a type that a column of the table cannot take."""
    try:
        of_column(pa.array([], data_type), field)
    except (SchemaMismatchError, pa.ArrowException) as error:
        raise SchemaMismatchError(
            f"{what} gives the column {field.name!r} of the table {path}, of the type {sql_name(field.type)}, a value "
            f"of the type {data_type}, which it cannot take.",
            "Cast the value, or name the fields of a struct as the column has them.",
        ) from error


def of_column(values: pa.Array, field: pa.Field) -> pa.Array:
    """Return values in the type of a column; raises `ColumnValueError` for a value that it cannot hold."""
    nullable_field, value_type = field.with_nullable(True), values.type
    # Whatever has parts is cast part by part, as in a write.
    nested = pa.types.is_nested(value_type) or pa.types.is_nested(field.type)
    if (
        nested
        or fits(value_type, field.type)
        or fits_by_value(value_type, field.type)
        or fits_if_whole(value_type, field.type)
    ):
        return conform_array(values, nullable_field, by_value=True)
    try:
        return _cast(values, field.type)
    except pa.ArrowInvalid as error:
        raise ColumnValueError(
            f"The column {field.name!r} of the type {sql_name(field.type)} was to get a value of the type {value_type} "
            f"that it cannot hold: {error}.",
            "Give another value, or leave such rows out by a condition.",
        ) from error


def _cast(values: pa.Array, to_type: pa.DataType) -> pa.Array:
    """Cast values as Spark does: numbers are seconds of a moment, and nothing of other times."""
    types, from_type = pa.types, values.type
    if types.is_string(to_type) and types.is_timestamp(from_type):
        texts = values.cast(pa.timestamp("us")).cast(pa.string())
        # Spark shows no zeros at the end of a fraction.
        return pc.replace_substring_regex(texts, r"\.?0*$", "")
    if types.is_temporal(from_type) == types.is_temporal(to_type) or not (_is_number(from_type) or _is_number(to_type)):
        is_rounded = types.is_decimal(from_type) and types.is_floating(to_type)
        return in_type(values, to_type) if is_rounded else values.cast(to_type)
    if types.is_integer(from_type) and types.is_timestamp(to_type) and to_type.tz is not None:
        return values.cast(pa.int64()).cast(pa.timestamp("s", to_type.tz)).cast(to_type)
    if types.is_integer(to_type) and types.is_timestamp(from_type) and from_type.tz is not None:
        moments = pc.floor_temporal(values.cast(pa.timestamp(from_type.unit)), unit="second")
        return moments.cast(pa.timestamp("s")).cast(pa.int64()).cast(to_type)
    raise pa.ArrowNotImplementedError(f"no cast from {from_type} to {to_type}")


def _is_number(data_type: pa.DataType) -> bool:
    return is_number(data_type) or bool(pa.types.is_boolean(data_type))


def _scalar(value: Any, what: str) -> pa.Scalar:
    """Return a plain value as Arrow has it; InvalidOptionError if no column can hold it."""
    if isinstance(value, pa.Scalar):
        return value
    try:
        return pa.scalar(value)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidOptionError(
            f"{what} is {value!r}, a {type(value).__name__}, which is no value of a column.",
            "Give SQL text, an expression of pyarrow.compute, or a value such as a number or a date.",
        ) from error


def _named_plainly(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.rename_columns([name.removeprefix(f"{TARGET}.") for name in rows.schema.names])
