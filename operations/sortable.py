"""Whether the rows of a file can be sorted by some columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..errors import MissingColumnError, UnsupportedTypeError


def check_sortable(columns: Sequence[str], schema: pa.Schema, path: str, option: str) -> None:
    """Raise if rows cannot be sorted by columns that an option names for the table at a path."""
    for name in columns:
        if name not in schema.names:
            raise MissingColumnError(
                f"The rows of a file cannot be sorted by {name!r}, which is no column of the table {path} "
                f"({', '.join(schema.names)}).",
                f"Correct {option}.",
            )
        if pa.types.is_nested(schema.field(name).type):
            raise UnsupportedTypeError(
                f"The rows of a file cannot be sorted by the column {name!r} of type {schema.field(name).type}.",
                f"Name columns of simple types in {option}.",
            )
