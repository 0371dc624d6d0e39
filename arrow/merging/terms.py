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
from ...reader.sql.coercion import is_number
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
        plain: Whether it names the columns of the table without their side.
        predicates: What every row of the table satisfies for which it holds, without the side in the names.
    """

    expression: pc.Expression
    kind: pa.DataType
    columns: frozenset[str]
    plain: bool = False
    predicates: tuple[Predicate, ...] = ()

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        return expression_values(self.expression, _named_plainly(rows) if self.plain else rows)


@dataclass(frozen=True, slots=True)
class FieldsTerm:
    """A struct with other values in fields; the fields of a null struct are null otherwise."""

    fields: tuple[SqlTerm, ...]
    kind: pa.StructType

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(field.columns for field in self.fields))

    def of(self, rows: pa.RecordBatch) -> pa.Array:
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
            return parse_value_text(value, self._names(side), what)
        if isinstance(value, pc.Expression):
            return self._of_expression(value, side, what)
        if isinstance(value, (ColumnTerm, FieldsTerm)):
            return value
        scalar = _scalar(value, what)
        return ConstantTerm(scalar.as_py(), scalar.type)  # one value

    def condition(self, condition: Any, side: Side, what: str) -> SqlTerm:
        """Return the term of a condition; raises as `value` does."""
        if isinstance(condition, str):
            return parse_condition_text(condition, self._names(side), what)
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

    def with_fields(self, column: str, kind: pa.DataType, given: Mapping[tuple[str, ...], Value], what: str) -> Value:
        """Return a struct of the table with other values in fields, given by their paths."""
        term = parse_value_text(column, self._names(Side.BY_SOURCE), what)
        assert isinstance(term, ColumnTerm)  # noqa: S101 (for the type checker)
        side = Side.BY_SOURCE if self.source is None else Side.MATCHED
        return self._of_fields(term, kind, given, side, what)

    def _of_fields(
        self, column: ColumnTerm, kind: pa.DataType, given: Mapping[tuple[str, ...], Value], side: Side, what: str
    ) -> FieldsTerm:
        terms: list[SqlTerm] = []
        for field in children(kind):
            inner = {path[1:]: value for path, value in given.items() if path[0] == field.name}
            old = ColumnTerm(column.name, field.type, (*column.fields, field.name))
            if () in inner:
                terms.append(self.value(inner[()], side, what))
            else:
                terms.append(self._of_fields(old, field.type, inner, side, what) if inner else old)
        nullable = [field.with_nullable(True) for field in children(kind)]
        return FieldsTerm(tuple(terms), pa.struct(nullable))

    def _of_side(self, side: Side) -> dict[str, pa.Schema]:
        sides = {} if self.source is None or side is Side.BY_SOURCE else {SOURCE: self.source}
        return sides if side is Side.NOT_MATCHED else {**sides, TARGET: self.target}

    def _names(self, side: Side) -> NamedColumns:
        sides = self._of_side(side)
        return NamedColumns(sides, f"the table {self.path}", next(iter(sides)) if len(sides) == 1 else None)

    def joined(self, side: Side) -> pa.Schema:
        """Return the columns that clauses of a side may name, as the joined rows have them."""
        return pa.schema(
            [
                field.with_name(f"{name}.{field.name}").with_nullable(True)
                for name, schema in self._of_side(side).items()
                for field in schema
            ]
        )

    def _of_expression(self, expression: pc.Expression, side: Side, what: str) -> ExpressionTerm:
        """Return the term of an expression; for one side alone, it may name the columns without the side."""
        joined = self.joined(side).empty_table()
        forms = [(joined, False)]
        if side is Side.BY_SOURCE:
            forms.append((joined.rename_columns(self.target.names), True))
        for rows, plain in forms:
            try:
                columns = needed_columns(expression, rows)
                (batch,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
                kind = expression_values(expression, batch).type
            except pa.ArrowException as error:
                refusal = error
                continue
            prefix = "" if plain else f"{TARGET}."
            predicates = _of_target(necessary_for(expression, rows.schema), prefix)
            if plain:
                columns = frozenset(f"{TARGET}.{name}" for name in columns)
            return ExpressionTerm(expression, kind, columns, plain, predicates)
        raise InvalidOptionError(
            f"{what}, the expression {expression}, does not fit the columns: {refusal}.",
            f"It may name {', '.join(joined.column_names)}, such as pyarrow.compute.field({joined.column_names[0]!r}).",
        ) from refusal


def predicates_of_target(term: SqlTerm | ExpressionTerm) -> tuple[Predicate, ...]:
    """Return the predicates of a condition on rows of the table, without the side in the names."""
    return term.predicates if isinstance(term, ExpressionTerm) else _of_target(necessary(term), f"{TARGET}.")


def _of_target(predicates: Sequence[Predicate], prefix: str) -> tuple[Predicate, ...]:
    own = [each for each in predicates if all(name.startswith(prefix) for name in columns_of(each))]
    return tuple(renamed(predicate, lambda name: name.removeprefix(prefix)) for predicate in own)


def holds_for(condition: SqlTerm, rows: pa.RecordBatch, among: Mask) -> Mask:
    """Return the rows among some for which a condition holds; on other rows its evaluation could fail."""
    asked = rows if among.all() else rows.filter(pa.array(among))
    held: Mask = among.copy()
    held[among] = mask(pc.cast(column_of(condition.of(asked), asked.num_rows), pa.bool_()))
    return held


def check_fits(kind: pa.DataType, field: pa.Field, what: str, path: str) -> None:
    """Refuse a value of a type that a column of the table cannot take."""
    try:
        of_column(pa.array([], kind), field)
    except (SchemaMismatchError, pa.ArrowException) as error:
        raise SchemaMismatchError(
            f"{what} gives the column {field.name!r} of the table {path}, of the type {sql_name(field.type)}, a value "
            f"of the type {kind}, which it cannot take.",
            "Cast the value, or name the fields of a struct as the column has them.",
        ) from error


def of_column(values: pa.Array, field: pa.Field) -> pa.Array:
    """Return values in the type of a column; raises `ColumnValueError` for a value that it cannot hold."""
    wanted, kind = field.with_nullable(True), values.type
    nested = pa.types.is_nested(kind) or pa.types.is_nested(field.type)
    if nested or fits(kind, field.type) or fits_by_value(kind, field.type) or fits_if_whole(kind, field.type):
        return conform_array(values, wanted, by_value=True)
    try:
        return _cast(values, field.type)
    except pa.ArrowInvalid as error:
        raise ColumnValueError(
            f"The column {field.name!r} of the type {sql_name(field.type)} was to get a value of the type {kind} that "
            f"it cannot hold: {error}.",
            "Give another value, or leave such rows out by a condition.",
        ) from error


def _cast(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast values as Spark does: numbers are seconds of a moment, and nothing of other times."""
    types, kind = pa.types, values.type
    if types.is_string(wanted) and types.is_timestamp(kind):
        texts = values.cast(pa.timestamp("us")).cast(pa.string())
        return pc.replace_substring_regex(texts, r"\.?0*$", "")
    if types.is_temporal(kind) == types.is_temporal(wanted) or not (_is_number(kind) or _is_number(wanted)):
        return values.cast(wanted)
    if types.is_integer(kind) and types.is_timestamp(wanted) and wanted.tz is not None:
        return values.cast(pa.int64()).cast(pa.timestamp("s", wanted.tz)).cast(wanted)
    if types.is_integer(wanted) and types.is_timestamp(kind) and kind.tz is not None:
        moments = pc.floor_temporal(values.cast(pa.timestamp(kind.unit)), unit="second")
        return moments.cast(pa.timestamp("s")).cast(pa.int64()).cast(wanted)
    raise pa.ArrowNotImplementedError(f"no cast from {kind} to {wanted}")


def _is_number(kind: pa.DataType) -> bool:
    return is_number(kind) or bool(pa.types.is_boolean(kind))


def _scalar(value: Any, what: str) -> pa.Scalar:
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
