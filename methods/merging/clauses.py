"""The clauses of a merge, and the value that each column gets from them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, TypeAlias

import pyarrow as pa

from ...errors import DuplicateColumnError, InvalidOptionError, MissingColumnError
from ...table.schema.fields import root_of
from .changed_table import SOURCE, TARGET, ChangedTable

# SQL text, an expression of the engine, or a value of Python that is no text.
Value: TypeAlias = Any
Condition: TypeAlias = Any
# Returns a value: the struct of a named column with other values in fields, given by their paths; the type is that of
# the column, and the last argument names the method, for errors.
WithFields: TypeAlias = Callable[[str, pa.DataType, Mapping[tuple[str, ...], Value], str], Value]

NULL = "null"

_COLUMN = re.compile(r"\s*(source|target)\s*\.\s*(?:`([^`]+)`|(\w+))\s*", re.IGNORECASE)


class Side(Enum):
    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    BY_SOURCE = "not matched by source"


class ClauseKind(IntEnum):
    """What a clause does with the rows that it takes; `KEEP` leaves the table's rows as they are."""

    UPDATE = 0
    DELETE = 1
    INSERT = 2
    KEEP = 3


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a merge.

    Attributes:
        method: The builder's method that added it, for messages.
        values: By column; None for all columns of the source row.
        condition: None for all rows.
    """

    method: str
    side: Side
    kind: ClauseKind
    values: Mapping[str, Value] | None = None
    condition: Condition | None = None

    def __str__(self) -> str:
        values = {} if self.values is None else {name: str(value) for name, value in self.values.items()}
        texts = [str(values)] if values else []
        texts += [] if self.condition is None else [f"condition={str(self.condition)!r}"]
        return f"{self.method}({', '.join(texts)})"

    @property
    def has_condition(self) -> bool:
        """Whether it has a condition; an empty mapping is none."""
        condition = self.condition
        return bool(condition) if isinstance(condition, Mapping) else condition is not None

    def values_of(self, target: ChangedTable, source: Sequence[str], with_fields: WithFields) -> dict[str, Value]:
        """Return the value that a row which the clause takes gets in each column of the table.

        Values are SQL text or expressions. ``source`` has the names of the source's columns, and ``with_fields``
        replaces fields of a struct.

        Raises `MissingColumnError`, `DuplicateColumnError` or `InvalidOptionError` for wrong columns.
        """
        if self.kind in {ClauseKind.DELETE, ClauseKind.KEEP}:
            # Such a row needs what tells which row of the table it is about, and nothing else.
            kept_names = target.kept_of_deletes
            return {name: of(TARGET, name) if name in kept_names else NULL for name in target.schema.names}
        new_values = (
            self._of_source(target, source) if self.values is None else self._values_of_user(target, with_fields)
        )
        if self.kind is ClauseKind.UPDATE:
            return {name: new_values.get(name, of(TARGET, name)) for name in target.schema.names}
        self._refuse_incomplete_row(target, new_values)
        return {name: new_values.get(name, NULL) for name in target.schema.names}

    def _values_of_user(self, target: ChangedTable, with_fields: WithFields) -> dict[str, Value]:
        """Return the values that the user gives, by column; fields of one struct become one value.

        ``with_fields`` makes that value: the struct of the ``target`` row with other values in these fields. Raises as
        `values_of`, also if no value is given, or two for one column.
        """
        if not isinstance(self.values, Mapping) or not self.values:
            raise InvalidOptionError(
                f"{self.method} was given {self.values!r}, which gives no column a value.",
                "Give a dict of columns of the table and their values.",
            )
        new_values: dict[str, Value] = {}
        fields: dict[str, dict[tuple[str, ...], Value]] = {}
        for name, value in self.values.items():
            # An insert gives whole columns, an update also fields of a struct.
            column, *inner = target.field(name, self.method, inside=self.kind is ClauseKind.UPDATE)
            earlier = fields.get(column, {})
            # A column is given twice, or a struct and a field of it, or a field and a field inside it.
            if column in new_values or (earlier and not inner) or any(_overlap(inner, path) for path in earlier):
                raise DuplicateColumnError(
                    f"{self.method} gives the column {'.'.join((column, *inner))!r} of the table {target.path} a value "
                    "twice.",
                    "Give the column one value.",
                )
            if inner:
                fields.setdefault(column, {})[tuple(inner)] = value
            else:
                new_values[column] = NULL if value is None else value
        for column, paths in fields.items():
            column_type = target.schema.field(column).type
            new_values[column] = with_fields(of(TARGET, column), column_type, paths, self.method)
        return new_values

    def _of_source(self, target: ChangedTable, source: Sequence[str]) -> dict[str, Value]:
        """Return the source's column by column of the table; raise if the source lacks a column, or has it twice."""
        counts = Counter(name.lower() for name in source)
        twice = next((name for name in target.schema.names if counts[name.lower()] > 1), None)
        if twice is not None:
            raise DuplicateColumnError(
                f"{self.method} takes every column of the table {target.path} from the source, which has {twice!r} "
                "twice; Spark ignores the case of names.",
                "Rename or drop one of the two columns.",
            )
        absent_names = [name for name in target.schema.names if name.lower() not in counts]
        if absent_names:
            raise MissingColumnError(
                f"{self.method} takes every column of the table {target.path} from the source, which lacks "
                f"{', '.join(map(repr, absent_names))}.",
                f"Add them to the source, or name the columns that change: {self.method.removesuffix('_all')}({{…}}).",
            )
        return {name: of(SOURCE, name) for name in target.schema.names}

    def _refuse_incomplete_row(self, target: ChangedTable, new_values: Mapping[str, Value]) -> None:
        """Refuse an insert without a value for a required column, or a column of the key, partition or order."""
        required = [field.name for field in target.schema if not field.nullable]
        needed = dict.fromkeys([*map(root_of, (*target.place_fields, *target.ordering_fields)), *required])
        absent_names = [name for name in needed if name not in new_values]
        if absent_names:
            raise MissingColumnError(
                f"{self.method} gives no value to {', '.join(map(repr, absent_names))}, which a row of the table "
                f"{target.path} must have.",
                "Give each of these columns a value.",
            )


def _overlap(path: Sequence[str], other_path: Sequence[str]) -> bool:
    """Return whether two paths to fields are equal, or one contains the other."""
    return all(mine == theirs for mine, theirs in zip(path, other_path, strict=False))


def of(side: str, name: str) -> str:
    """Return the SQL text of a column of a side."""
    escaped = name.replace("`", "``")
    return f"{side}.`{escaped}`"


def is_column(value: Value, side: str, name: str) -> bool:
    """Return whether SQL text is a plain column of a side; for an expression of an engine the answer is False."""
    match = _COLUMN.fullmatch(value) if isinstance(value, str) else None
    return match is not None and (match[1].lower(), (match[2] or match[3]).lower()) == (side, name.lower())


def is_of_side(value: Value, side: str) -> bool:
    """Return whether SQL text is a plain column of a side."""
    match = _COLUMN.fullmatch(value) if isinstance(value, str) else None
    return match is not None and match[1].lower() == side


def check_clauses(clauses: Sequence[Clause]) -> None:
    """Refuse a merge without clauses or with an unreachable clause, by an `InvalidOptionError`."""
    if not clauses:
        raise InvalidOptionError(
            "The merge has no clause, so it would do nothing.",
            "Add clauses, such as when_matched_update_all() or when_not_matched_insert_all().",
        )
    for side in Side:
        same_side = [clause for clause in clauses if clause.side is side]
        unreached = next((number for number, clause in enumerate(same_side[:-1]) if clause.condition is None), None)
        if unreached is not None:
            raise InvalidOptionError(
                f"{same_side[unreached].method} without a condition takes every row that is {side.value}, so that "
                f"{same_side[unreached + 1].method} after it is never reached: the first clause that holds counts.",
                "Give it a condition, or put it last.",
            )


def take_all(clauses: Sequence[Clause]) -> bool:
    """Return whether, of the table's matched and unmatched rows, the clauses take all or none of each.

    Clauses for rows of the source that match no row of the table do not count.
    """
    sides = {clause.side for clause in clauses} - {Side.NOT_MATCHED}
    return sides == {clause.side for clause in clauses if not clause.has_condition} - {Side.NOT_MATCHED}
