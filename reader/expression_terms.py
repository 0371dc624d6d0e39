"""Predicates on single columns from an expression of pyarrow, as far as pyhudi understands it.

Expressions have no public form, so the tree is read from the form in which pyarrow pickles them (``Serialize`` of
``arrow/compute/expression.cc``): the fields of a schema's metadata, in order, are the nodes, and the columns of a batch
of one row the constants and options.
"""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .foreign_terms import UNKNOWN, among_values, column_in, comparison, joined, only_if_true
from .row_condition import necessary
from .skipping.predicates import Predicate
from .sql.terms import ColumnTerm, NotTerm, NullTerm, Operator, SqlTerm

_COMPARES: dict[str, Operator] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# As Arrow's SetLookupOptions number it.
_MATCH = 0


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of an expression: a column by its name, a constant or a call; any other part has None in all."""

    name: str | None = None
    constant: pa.Scalar | None = None
    call: str | None = None
    arguments: tuple[_Node, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def necessary_for(expression: pc.Expression, schema: pa.Schema) -> tuple[Predicate, ...]:
    """Return predicates that every row satisfies for which an expression holds by pyarrow's rules."""
    try:
        return necessary(_term(_read_tree(expression), schema))
    except (pa.ArrowException, IndexError, KeyError, RecursionError, TypeError, ValueError):
        # Arrow does not serialize every expression, and another version may do it otherwise.
        return ()


def equal_columns(expression: pc.Expression) -> list[tuple[str, str]]:
    """Return pairs of columns that are equal, by pyarrow's rules, in every row for which an expression holds.

    An expression that is not understood gives none, as with `necessary_for`.
    """
    try:
        return list(_equal_columns(_read_tree(expression)))
    except (pa.ArrowException, IndexError, KeyError, RecursionError, TypeError, ValueError):
        return []


def _equal_columns(node: _Node) -> Iterator[tuple[str, str]]:
    """Yield the pairs of columns that a conjunction compares for equality."""
    if node.call in ("and", "and_kleene"):
        for argument in node.arguments:
            yield from _equal_columns(argument)
    names = [argument.name for argument in node.arguments]
    if node.call == "equal" and len(names) == 2 and names[0] is not None and names[1] is not None:
        yield names[0], names[1]


def _term(node: _Node, schema: pa.Schema) -> SqlTerm:
    """Return an expression as a term; `UNKNOWN` if pyhudi does not understand it."""
    if node.name is not None:
        column = column_in(schema, node.name)
        return column if column is not None and pa.types.is_boolean(column.kind) else UNKNOWN
    if node.call in _COMPARES and len(node.arguments) == 2:
        return _comparison(_COMPARES[node.call], *node.arguments, schema)
    reader = _READERS.get(node.call or "")
    return UNKNOWN if reader is None else reader(node, schema)


def _comparison(op: Operator, left: _Node, right: _Node, schema: pa.Schema) -> SqlTerm:
    """Return a comparison of a column with a constant, on whichever side the column is."""
    if left.name is None:
        # With the column on the left, 1 < x is x > 1.
        left, right, op = right, left, _MIRRORED[op]
    column = None if left.name is None else column_in(schema, left.name)
    term = comparison(op, column, right.constant)
    # In pyarrow only != holds for NaN, so a row for which < is false need not satisfy >=.
    is_floating = column is not None and pa.types.is_floating(column.kind)
    return only_if_true(term) if is_floating else term


def _logic_reader(op: str) -> Callable[[_Node, pa.Schema], SqlTerm]:
    """Return what reads a call that joins conditions by an operator."""
    return lambda node, schema: joined(op, [_term(argument, schema) for argument in node.arguments])


def _negation(node: _Node, schema: pa.Schema) -> SqlTerm:
    """Read the negation of a condition."""
    return NotTerm(_term(node.arguments[0], schema))


def _null_test(node: _Node, schema: pa.Schema) -> SqlTerm:
    """Read a test for null; it is unknown for a column of floats if NaN counts as null."""
    column = _argument_column(node, schema)
    if column is None or (node.options.get("nan_is_null") and pa.types.is_floating(column.kind)):
        return UNKNOWN
    return NullTerm(column)


def _not_null_test(node: _Node, schema: pa.Schema) -> SqlTerm:
    """Read a test for values that are not null."""
    column = _argument_column(node, schema)
    return UNKNOWN if column is None else NotTerm(NullTerm(column))


def _set_lookup(node: _Node, schema: pa.Schema) -> SqlTerm:
    """Read a lookup in a set of values; it is unknown if the set has a null that matches no null."""
    column, values = _argument_column(node, schema), node.options.get("value_set")
    if values is None or (values.null_count and node.options.get("null_matching_behavior") != _MATCH):
        return UNKNOWN
    term = among_values(column, values, null_is_value=True)
    return only_if_true(term) if column is not None and pa.types.is_floating(column.kind) else term


def _choice(node: _Node, schema: pa.Schema) -> SqlTerm:
    """Read a choice that is false or null if its condition does not hold, as DuckDB writes ``IN``."""
    condition, value, other = node.arguments
    if other.constant is None or other.constant.as_py():  # one value
        return UNKNOWN
    return joined("AND", [_term(condition, schema), _term(value, schema)])


_READERS: dict[str, Callable[[_Node, pa.Schema], SqlTerm]] = {
    **dict.fromkeys(("and", "and_kleene"), _logic_reader("AND")),
    **dict.fromkeys(("or", "or_kleene"), _logic_reader("OR")),
    "invert": _negation,
    "is_null": _null_test,
    "is_valid": _not_null_test,
    "is_in": _set_lookup,
    "if_else": _choice,
}


def _argument_column(node: _Node, schema: pa.Schema) -> ColumnTerm | None:
    """Return the column that is the first argument of a call; None for any other argument."""
    name = node.arguments[0].name
    return None if name is None else column_in(schema, name)


def _read_tree(expression: pc.Expression) -> _Node:
    """Return the tree of an expression, from the form in which pyarrow pickles it."""
    _, (pickled,) = expression.__reduce__()
    with pa.ipc.open_file(pickled) as reader:
        return _read_node(deque(_metadata(reader.schema)), reader.get_batch(0))


def _read_node(parts: deque[tuple[str, str]], constants: pa.RecordBatch) -> _Node:
    """Return the next node with all its arguments, taken off the front of ``parts``.

    ``parts`` are the kinds and values of nodes, ``constants`` has a column for each constant, and for options. Raises
    ValueError for a kind of node that this reader does not know.
    """
    kind, value = parts.popleft()
    if kind == "literal":
        return _Node(constant=constants.column(int(value))[0])
    if kind == "field_ref":
        return _Node(name=value)
    if kind == "nested_field_ref":
        # A field of a struct, of which no predicate is made; as many parts with its names follow.
        for _ in range(int(value)):
            parts.popleft()
        return _Node()
    if kind != "call":
        raise ValueError(kind)
    arguments: list[_Node] = []
    options: dict[str, Any] = {}
    while parts[0][0] != "end":
        if parts[0][0] == "options":
            call_options = constants.column(int(parts.popleft()[1]))[0]
            options = {name: _option(scalar) for name, scalar in call_options.items()}
        else:
            arguments.append(_read_node(parts, constants))
    parts.popleft()
    return _Node(call=value, arguments=tuple(arguments), options=options)


def _option(scalar: pa.Scalar) -> Any:
    """Return the value of an option of a call; a list as an Arrow array."""
    return scalar.values if pa.types.is_list(scalar.type) else scalar.as_py()  # one value


class _SchemaOfC(ctypes.Structure):
    """The first fields of ``ArrowSchema`` of Arrow's C data interface."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the metadata of a schema in order; a dict, as which pyarrow shows it, has each key once."""
    capsule = schema.__arrow_c_schema__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = _SchemaOfC.from_address(pointer_of(capsule, b"arrow_schema")).metadata
    if address is None:
        return
    # The C data interface has the number of pairs, then for each key and each value its length and its bytes.
    (count,) = struct.unpack("=i", ctypes.string_at(address, 4))
    address += 4
    for _ in range(count):
        texts = []
        for _ in ("key", "value"):
            (length,) = struct.unpack("=i", ctypes.string_at(address, 4))
            texts.append(ctypes.string_at(address + 4, length).decode())
            address += 4 + length
        yield texts[0], texts[1]
