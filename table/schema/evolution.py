"""Schema evolution: a table's columns after a write whose columns differ, by Apache Hudi's rules.

Source: ``HoodieSchemaUtils.deduceWriterSchema``, ``HoodieSchemaCompatibilityChecker``, ``AvroSchemaEvolutionUtils``,
each case tried out with Apache Hudi 1.2 (docs/schema.md). If Hudi changes values that are in the table, drops
columns or makes the table unreadable, pyhudi refuses the write (docs/decisions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from ...errors import ColumnDifference
from .casts import fits, fits_by_value, fits_if_whole, keeps_values
from .types import children, is_list, sql_name

ABSENT = "absent"
# The cure for a missing column. A write that fills columns adds nullable columns itself, or all.
ADD, ADD_NOT_NULL = "add it", "add it, for it may not be null"


@dataclass(frozen=True, slots=True)
class EvolutionRules:
    """How far the columns of a write may differ from the table's.

    Attributes:
        reconcile: Nullable columns that the rows lack become null.
        set_null: All columns that the rows lack become null, and nullable.
        number_to_text: Numbers become text if the rows have text; key, partition and ordering columns change, too.
        int_to_double: Int columns become double if the rows have float or double, unless they have a role.
    """

    reconcile: bool = False
    set_null: bool = False
    number_to_text: bool = False
    int_to_double: bool = False

    @property
    def fills(self) -> bool:
        """Whether columns may be missing; a NOT NULL column then stays so, and tasks check each value."""
        return self.reconcile or self.set_null


class Role(Enum):
    """What depends on the values of a column."""

    KEY = "keys depend"
    PARTITION = "folders depend"
    TIME = "folders, as a time, depend"
    ORDERING = "the order of rows depends"


@dataclass(frozen=True, slots=True)
class Evolution:
    """A table's columns after a write.

    Attributes:
        differences: Why the write is refused; empty if it is allowed.
        by_option: Whether ``number_to_text`` would allow any of the differences.
    """

    schema: pa.Schema
    differences: tuple[ColumnDifference, ...]
    by_option: bool = False


def evolve(
    table: pa.Schema, incoming: pa.Schema, rules: EvolutionRules, roles: Mapping[str, Iterable[Role]] | None = None
) -> Evolution:
    """Return the columns of a table after a write of other columns; both schemas are canonical data columns.

    Columns are matched by name. New columns are appended, also inside structs, and may be null. Numbers become wider
    if no value of the table changes; narrower values of the rows are cast to the table's type. Text, float and
    double in a column of whole numbers, and a wider whole number in a column with a role, change no type: the tasks
    check each value.
    """
    work = _Evolution(rules, roles or {})
    schema = pa.schema(work.fields(list(table), list(incoming), ""))
    return Evolution(schema, tuple(work.differences), work.by_option)


def contains(schema: pa.Schema, other: pa.Schema) -> bool:
    """Return whether a table of ``schema`` keeps every row of ``other`` unchanged."""
    return not unheld(list(schema), list(other))


def unheld(fields: Sequence[pa.Field], other_fields: Sequence[pa.Field]) -> list[str]:
    """Return the names of the columns, or fields of a struct, that keep ``fields`` from containing ``other_fields``."""
    by_name, other_names = {column.name: column for column in fields}, {field.name: field for field in other_fields}
    wrong = [
        field.name for field in other_fields if field.name not in by_name or not _holds(by_name[field.name], field)
    ]
    return wrong + [column.name for column in fields if column.name not in other_names and not column.nullable]


def _holds(column: pa.Field, other_field: pa.Field) -> bool:
    """Return whether a column keeps every value of another column unchanged."""
    ours, theirs = column.type, other_field.type
    if other_field.nullable and not column.nullable:
        return False
    if pa.types.is_struct(ours) and pa.types.is_struct(theirs):
        return not unheld(children(ours), children(theirs))
    if (is_list(ours) and is_list(theirs)) or (pa.types.is_map(ours) and pa.types.is_map(theirs)):
        return all(map(_holds, children(ours), children(theirs)))
    return bool(ours == theirs or keeps_values(theirs, ours))


@dataclass(slots=True)
class _Evolution:
    """Collects the columns after a write, and the differences that refuse it."""

    rules: EvolutionRules
    roles: Mapping[str, Iterable[Role]]
    differences: list[ColumnDifference] = field(default_factory=list)
    by_option: bool = False

    def fields(self, table: list[pa.Field], incoming: list[pa.Field], path: str) -> list[pa.Field]:
        """Return the columns of a table, or the fields of a struct, after the write; new fields come last.

        ``path`` is the dotted name of the struct with a dot behind it, empty for columns.
        """
        incoming_by_name = {column.name: column for column in incoming}
        by_case = {column.name.lower(): column.name for column in incoming}
        names = {column.name.lower() for column in table}
        evolved = []
        for stored in table:
            full = f"{path}{stored.name}"
            if stored.name in incoming_by_name:
                evolved.append(self.column(stored, incoming_by_name[stored.name], full))
            elif stored.name.lower() in by_case:
                twin = by_case[stored.name.lower()]
                self._note_difference(full, stored, None, f"rename {path}{twin}, which differs in case")
            else:
                evolved.append(self._without_column(stored, full))
        # Older rows have none of the new columns, whatever the rows say.
        return evolved + [column.with_nullable(True) for column in incoming if column.name.lower() not in names]

    def column(self, stored: pa.Field, incoming: pa.Field, path: str) -> pa.Field:
        """Return a column after the write, in the table's type or a wider one."""
        nullable = stored.nullable or (incoming.nullable and not self.rules.fills)
        return pa.field(stored.name, self._type(stored, incoming, path), nullable=nullable)

    def _type(self, stored: pa.Field, incoming: pa.Field, path: str) -> pa.DataType:
        """Return the type of a column after the write, and note a difference that refuses the write."""
        ours, theirs = stored.type, incoming.type
        if pa.types.is_struct(ours) and pa.types.is_struct(theirs):
            return pa.struct(self.fields(children(ours), children(theirs), f"{path}."))
        if pa.types.is_map(ours) and pa.types.is_map(theirs):
            return pa.map_(ours.key_field, self.column(ours.item_field, theirs.item_field, f"{path}.value"))
        if is_list(ours) and is_list(theirs):
            return pa.list_(self.column(ours.value_field, theirs.value_field, f"{path}.element"))
        if pa.types.is_nested(ours) or pa.types.is_nested(theirs):
            self._note_difference(path, stored, incoming, f"make it {_with_article(sql_name(ours))}")
        elif not fits(theirs, ours):
            return self._wider(stored, incoming, path)
        return ours

    def _wider(self, stored: pa.Field, incoming: pa.Field, path: str) -> pa.DataType:
        """Return the wider type if the table may take it, else the table's type, to which tasks may have to cast.

        ``stored`` is the table's column, and ``incoming`` that of the rows, whose type does not fit into the table's;
        ``path`` is its dotted name. `_note_difference` lists what the caller then refuses.
        """
        ours, theirs = stored.type, incoming.type
        roles = tuple(self.roles.get(path, ()))
        # Whether the wider type changes no value, key, folder or order that the table has.
        may_widen = keeps_values(ours, theirs) and all(_keeps_role(role, ours, theirs) for role in roles)
        if_whole = fits_if_whole(theirs, ours) and not roles
        if if_whole and self.rules.int_to_double and pa.types.is_int32(ours):
            return pa.float64()
        # Columns with a role, numbers that become text and whole numbers that become floats change by option alone.
        needs_option = bool(roles) or pa.types.is_string(theirs) or if_whole
        if may_widen and (self.rules.number_to_text or not needs_option):
            return theirs
        # Otherwise the tasks cast each value, and refuse a value that does not fit.
        if not fits_by_value(theirs, ours) and not if_whole:
            self.by_option |= may_widen
            on_which = f", on which {roles[0].value}" if roles and keeps_values(ours, theirs) else ""
            self._note_difference(path, stored, incoming, f"cast it to {sql_name(ours)}{on_which}")
        return ours

    def _without_column(self, stored: pa.Field, path: str) -> pa.Field:
        """Return a column that the write lacks: nullable if the write may leave it out, else as it was."""
        if self.rules.set_null or (self.rules.reconcile and stored.nullable):
            return stored.with_nullable(True)
        self._note_difference(path, stored, None, ADD if stored.nullable else ADD_NOT_NULL)
        return stored

    def _note_difference(self, path: str, stored: pa.Field | None, incoming: pa.Field | None, todo: str) -> None:
        """Note why the write is refused; ``stored`` or ``incoming`` is None for an absent column, ``todo`` the cure."""
        self.differences.append(ColumnDifference(path, _sql_type(stored), _sql_type(incoming), todo))


def _keeps_role(role: Role, old_type: pa.DataType, new_type: pa.DataType) -> bool:
    """Return whether keys, folders or the order of rows stay the same when a column becomes wider.

    The spelling changes with a decimal's scale, and from a whole number to a double; texts sort unlike numbers.
    """
    if role is Role.ORDERING:
        return not pa.types.is_string(new_type)
    spelt_alike = pa.types.is_int64(new_type) or (pa.types.is_string(new_type) and role is not Role.TIME)
    return bool(pa.types.is_signed_integer(old_type) and spelt_alike)


def _sql_type(column: pa.Field | None) -> str:
    """Return a column's type as errors show it."""
    return ABSENT if column is None else f"{sql_name(column.type)}{'' if column.nullable else ' not null'}"


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
