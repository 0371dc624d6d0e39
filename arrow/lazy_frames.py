"""Rows of a snapshot as a lazy frame of Polars, and what an expression of Polars says of single columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars.io.plugins import register_io_source

from ..reader.foreign_terms import UNKNOWN, among_values, column_in, comparison, joined
from ..reader.row_condition import necessary
from ..reader.skipping.predicates import Predicate
from ..reader.sql.terms import ColumnTerm, LikeTerm, NotTerm, NullTerm, Operator, SqlTerm
from .reading import PinnedRows

if TYPE_CHECKING:
    import polars as pl

_COMPARES: dict[str, Operator] = {
    "Eq": "=",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
    "EqValidity": "<=>",
}
_MIRRORED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LOGIC = {"And": "AND", "LogicalAnd": "AND", "Or": "OR", "LogicalOr": "OR"}
_UNITS = {"Milliseconds": "ms", "Microseconds": "us"}
_INTEGERS = {"Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"}
_INSIDE: dict[str, tuple[Operator, Operator]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}


def necessary_for_polars(expression: pl.Expr, schema: pa.Schema) -> tuple[Predicate, ...]:
    """Return predicates that every row satisfies for which an expression holds by Polars' rules."""
    import polars as pl  # noqa: PLC0415 (its expression is here, so it is imported)

    try:
        tree = json.loads(expression.meta.serialize(format="json"))
        return necessary(_term(tree, schema))
    except (pl.exceptions.PolarsError, ImportError, RecursionError, ValueError):
        # Polars does not serialize every expression. Without predicates the scan skips nothing.
        return ()


def _term(node: Any, schema: pa.Schema) -> SqlTerm:
    """Return what a node says of columns; `UNKNOWN` for a form that is not understood."""
    try:
        return _term_of_node(node, schema)
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        return UNKNOWN


def _term_of_node(node: Any, schema: pa.Schema) -> SqlTerm:
    """Return the term of a boolean column, an operator or a function; KeyError and the like for another form."""
    node_name, inner = _name_and_contents(node)
    if node_name == "Column":
        column = column_in(schema, inner)
        return column if column is not None and pa.types.is_boolean(column.kind) else UNKNOWN
    if node_name == "BinaryExpr":
        return _term_of_operation(inner["op"], inner["left"], inner["right"], schema)
    if node_name == "Function":
        return _term_of_function(inner["function"], inner["input"], schema)
    return UNKNOWN


def _term_of_operation(name: str, left: Any, right: Any, schema: pa.Schema) -> SqlTerm:
    """Return the term of an operator of Polars: a comparison, or two terms that are joined by AND or OR.

    A constant on the left is turned to the right; any other form is `UNKNOWN`.
    """
    if name in _LOGIC:
        return joined(_LOGIC[name], (_term(left, schema), _term(right, schema)))
    if name == "NotEqValidity":
        return NotTerm(_term_of_operation("EqValidity", left, right, schema))
    op = _COMPARES.get(name)
    if op is None:
        return UNKNOWN
    if _name_and_contents(left)[0] == "Literal":
        left, right, op = right, left, _MIRRORED.get(op, op)
    return comparison(op, _column(left, schema), _constant(right))


def _term_of_function(function: Any, inputs: Sequence[Any], schema: pa.Schema) -> SqlTerm:
    """Return the term of a boolean function, or of a prefix; `UNKNOWN` for any other function."""
    family, name = _name_and_contents(function)
    if family == "StringExpr" and name == "StartsWith":
        return _with_prefix(inputs, schema)
    if family != "Boolean":
        return UNKNOWN
    function_name, terms = _name_and_contents(name)
    read_term = _BOOLEAN_FUNCTIONS.get(function_name)
    return UNKNOWN if read_term is None else read_term(inputs, terms, schema)


# The terms of boolean functions: each gets the inputs of a node, and what else the node says.
def _negated(inputs: Sequence[Any], _: Any, schema: pa.Schema) -> SqlTerm:
    return NotTerm(_term(inputs[0], schema))


def _null(inputs: Sequence[Any], _: Any, schema: pa.Schema) -> SqlTerm:
    column = _column(inputs[0], schema)
    return UNKNOWN if column is None else NullTerm(column)


def _valid(inputs: Sequence[Any], _: Any, schema: pa.Schema) -> SqlTerm:
    return NotTerm(_null(inputs, _, schema))


def _between(inputs: Sequence[Any], terms: Any, schema: pa.Schema) -> SqlTerm:
    column = _column(inputs[0], schema)
    bounds = zip(_INSIDE[terms["closed"]], inputs[1:], strict=True)
    return joined("AND", [comparison(op, column, _constant(bound)) for op, bound in bounds])


def _among(inputs: Sequence[Any], terms: Any, schema: pa.Schema) -> SqlTerm:
    """Return the term of ``is_in``: a column, then a list of values; `UNKNOWN` if the second input is no such list.

    ``terms`` says by ``nulls_equal`` whether a null is in a list that has a null; else the term is null for a null.
    """
    column, values = _column(inputs[0], schema), _values(inputs[1])
    null_is_value = terms["nulls_equal"]
    if values is None or not isinstance(null_is_value, bool):
        return UNKNOWN
    return among_values(column, values, null_is_value=null_is_value)


_BOOLEAN_FUNCTIONS: dict[str, Callable[[Sequence[Any], Any, pa.Schema], SqlTerm]] = {
    "Not": _negated,
    "IsNull": _null,
    "IsNotNull": _valid,
    "IsBetween": _between,
    "IsIn": _among,
}


def _with_prefix(inputs: Sequence[Any], schema: pa.Schema) -> SqlTerm:
    """Return the term of a text column that begins with a prefix; `UNKNOWN` if LIKE would need an escape."""
    column, prefix = _column(inputs[0], schema), _constant(inputs[1])
    if column is None or not pa.types.is_string(column.kind) or prefix is None or not pa.types.is_string(prefix.type):
        return UNKNOWN
    text = str(prefix.as_py())  # one value
    return UNKNOWN if any(mark in text for mark in "%_\\") else LikeTerm(column, f"{text}%")


def _column(node: Any, schema: pa.Schema) -> ColumnTerm | None:
    """Return a column, or one of whole numbers made wider, which keeps their order; None for any other node."""
    node_name, inner = _name_and_contents(node)
    if node_name == "Cast" and inner["dtype"] == {"Literal": "Int64"}:
        column = _column(inner["expr"], schema)
        return column if column is not None and pa.types.is_integer(column.kind) else None
    return column_in(schema, inner) if node_name == "Column" else None


def _constant(node: Any) -> pa.Scalar | None:
    """Return the constant of a node; None for any other node, for null, and for NaN."""
    node_name, inner = _name_and_contents(node)
    if node_name != "Literal" or "Scalar" not in inner:
        return None
    node_name, value = _name_and_contents(inner["Scalar"])
    if value is None:
        # So JSON spells NaN, too.
        return None
    if node_name in _INTEGERS:
        return pa.scalar(value, pa.uint64() if node_name == "UInt64" else pa.int64())
    if node_name == "Datetime":
        number, unit, zone = value
        return pa.scalar(number, pa.timestamp(_UNITS[unit], None if zone is None else zone["inner"]))
    if node_name == "Decimal":
        unscaled, _, scale = value
        return pa.scalar(Decimal(unscaled).scaleb(-scale))
    types_by_name = {"String": pa.string(), "Boolean": pa.bool_(), "Float64": pa.float64(), "Date": pa.date32()}
    return pa.scalar(value, types_by_name[node_name]) if node_name in types_by_name else None


def _values(node: Any) -> pa.Array | None:
    """Return the values of a list, which Polars serializes as a stream of Arrow; None for any other node."""
    node_name, inner = _name_and_contents(node)
    # A named list, as one made of a Series.
    if node_name == "Alias":
        return _values(inner[0])
    is_scalar = node_name == "Literal" and "Scalar" in inner
    stream = inner["Scalar"].get("List") if is_scalar else None
    if stream is None:
        return None
    with pa.ipc.open_stream(bytes(stream)) as reader:
        values = reader.read_all().column(0).combine_chunks()
    # Conditions compare texts of this type, and no views of texts.
    return values.cast(pa.string()) if pa.types.is_string_view(values.type) else values


def _name_and_contents(node: Any) -> tuple[str, Any]:
    """Return the name and the contents of a node; raises ValueError for another form."""
    if isinstance(node, str):
        return node, None
    ((name, inner),) = node.items()
    return name, inner


@dataclass(frozen=True, slots=True)
class PolarsFilter:
    """An expression of Polars, which Polars evaluates."""

    expression: pl.Expr
    columns: frozenset[str]
    predicates: tuple[Predicate, ...]

    @classmethod
    def of(cls, expression: pl.Expr, schema: pa.Schema) -> PolarsFilter:
        """Return a filter with the columns that the expression names, and what pyhudi understands of it."""
        columns = frozenset(expression.meta.root_names())
        return cls(expression, columns, necessary_for_polars(expression, schema))

    def holds(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return for which rows the expression holds; null counts as false."""
        # An expression without columns has one value for all rows.
        if not self.columns:
            holds = pl.select(self.expression).item()
            return pa.repeat(pa.scalar(holds is True), rows.num_rows)
        frame = _frame(rows.select(sorted(self.columns)))
        values = frame.select(self.expression.alias("holds")).to_series().cast(pl.Boolean)
        return pc.fill_null(values.to_arrow(), False)


def lazy_frame(rows: PinnedRows) -> pl.LazyFrame:
    """Return the rows as a lazy frame; it reads them anew each time that it is collected."""

    def read_batches(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows for one collection, with the columns, condition and limit that Polars pushes down."""
        # With both, Polars means the condition for the first rows: `frame.head(n).filter(condition)`.
        pushed, later = (predicate, None) if n_rows is None else (None, predicate)
        condition = None if pushed is None else PolarsFilter.of(pushed, rows.schema)
        names_for_later = [] if later is None else later.meta.root_names()
        columns = None if with_columns is None else list(dict.fromkeys([*with_columns, *names_for_later]))
        for batch in rows.narrowed(columns, condition, n_rows).batches():
            frame = _frame(batch) if later is None else _frame(batch).filter(later)
            if with_columns is not None and frame.columns != with_columns:
                frame = frame.select(with_columns)
            yield from frame.iter_slices(batch_size) if batch_size and frame.height > batch_size else (frame,)

    schema = _frame(rows.schema.empty_table()).schema
    # The snapshot is pinned: two reads of a plan have the same rows, so that Polars may read them once.
    return register_io_source(read_batches, schema=schema, is_pure=True)


def _frame(rows: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    return cast(pl.DataFrame, pl.from_arrow(rows, rechunk=False))
