"""Finds the columns that a text names: of one table, or of the two sides of a merge."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...errors import MissingColumnError
from .terms import ColumnTerm


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """The columns that a text may name.

    Attributes:
        sides: The columns of each side by its name: ``source`` and ``target`` in a merge, the empty text for a table
            alone. Rows have the columns of a named side as ``source.x``.
        owner: What has the columns, for errors.
        default: The side that a column without a side is of; None if it has to name one.
    """

    sides: Mapping[str, pa.Schema]
    owner: str
    default: str | None = None

    @classmethod
    def of_table(cls, schema: pa.Schema, path: str = "") -> NamedColumns:
        """Return the columns of a single table, which have no side."""
        return cls({"": schema}, f"the table {path}".rstrip(), "")

    def find(self, parts: Sequence[str], what: str) -> ColumnTerm:
        """Return the column, or the field of a struct, of a name in parts.

        ``what`` names the text, for errors. Raises `MissingColumnError` if there is none, or if several
        differ in case alone.
        """
        side, parts_of_column = self._side_of(parts)
        if side is None:
            raise MissingColumnError(
                f"{what} names {'.'.join(parts)!r}, without the side that the column is of.",
                f"Write {' or '.join(f'{name}.{parts[-1]}' for name in self.sides)}.",
            )
        schema = self.sides[side]
        column = _resolved_name(parts_of_column[0], schema.names) if parts_of_column else None
        if column is None:
            name_without_side = ".".join(parts_of_column)
            similar_names = difflib.get_close_matches(name_without_side, schema.names, 1)
            columns_text = f"It has {', '.join(schema.names)}."
            raise MissingColumnError(
                f"{what} names the column {name_without_side!r}, which {side or self.owner} lacks.",
                f"Did you mean {similar_names[0]!r}?" if similar_names else columns_text,
            )
        kind, fields = schema.field(column).type, []
        for part in parts_of_column[1:]:
            names = [field.name for field in kind] if pa.types.is_struct(kind) else []
            field = _resolved_name(part, names)
            if field is None:
                raise MissingColumnError(
                    f"{what} names the field {part!r} of the column {column!r} of type {kind}, which has no such "
                    "field.",
                    "Name a field that the column has.",
                )
            fields.append(field)
            kind = kind.field(field).type
        return ColumnTerm(f"{side}.{column}" if side else column, kind, tuple(fields))

    def _side_of(self, parts: Sequence[str]) -> tuple[str | None, Sequence[str]]:
        """Return the side that a name begins with, or else the default, and the other parts of the name."""
        side = next((name for name in self.sides if name and name == parts[0].lower()), None)
        if side is not None and len(parts) > 1:
            return side, parts[1:]
        return self.default, parts


def _resolved_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name, or the only name that differs in case alone, as Spark resolves names."""
    if name in names:
        return name
    alike = [other for other in names if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None
