"""Rows of pandas as an Arrow table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..errors import DuplicateColumnError, UnsupportedTypeError

# What pyarrow raises for values that it cannot convert; its ArrowTypeError is a TypeError of Python.
_REFUSALS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError, OverflowError, UnicodeError)


def is_pandas(rows: Any) -> bool:
    """Return whether rows are a DataFrame of pandas or of a class made of it; pandas itself need not be imported."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas" for kind in type(rows).__mro__
    )


def table_of_pandas(rows: Any) -> pa.Table:
    """Return the rows of a DataFrame of pandas without its index.

    Raises `DuplicateColumnError` for two columns of one name, and `UnsupportedTypeError` for a column with values of
    several types or of no Arrow type.
    """
    # Arrow names columns by texts, which may be equal for names of pandas that differ.
    names = rows.columns.map(str)
    if not names.is_unique:
        raise DuplicateColumnError(
            f"The DataFrame of pandas has several columns of the name {names[names.duplicated()][0]!r}.",
            "Rename or drop all but one of them.",
        )
    try:
        return pa.Table.from_pandas(rows, preserve_index=False)
    except _REFUSALS as error:
        refused_name = next((name for number, name in enumerate(names) if _is_refused(rows.iloc[:, [number]])), "")
        reason = str(error) if isinstance(error, UnicodeError) else " ".join(map(str, error.args))
        raise UnsupportedTypeError(
            f"The column {refused_name!r} of the DataFrame of pandas has values of no Arrow type: {reason}.",
            "Give the column values of one type.",
        ) from error


def _is_refused(column: Any) -> bool:
    """Return whether Arrow cannot convert a DataFrame of one column."""
    try:
        pa.Table.from_pandas(column, preserve_index=False)
    except _REFUSALS:
        return True
    return False
