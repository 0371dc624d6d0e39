"""Values as a person reads them: those of a table as they are, those of a report with units and commas."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ...operations.words.text import escaped, size_text, spelled

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["escaped", "shell_words"]


def shell_words(words: Sequence[str]) -> str:
    """Return words as a line to type in bash or zsh, without a character that a terminal does not print."""
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join({"\\": "\\\\", "'": "\\'"}.get(letter) or spelled(letter) for letter in word) + "'"


__all__ = ["NOTHING", "cell", "is_number", "size_text", "stored_value", "with_short_floats", "with_spelled_times"]

NOTHING = "-"


def cell(name: str, value: Any) -> str:
    """Return the value of a column as text that a terminal can show."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return size_text(value) if "bytes" in name else f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{cell('', key)}={cell('', item)}" for key, item in value.items()) or NOTHING
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return ", ".join(cell(name, item) for item in value) or NOTHING
    return escaped(str(value))


def stored_value(name: str, value: Any) -> str:
    """Return a value of a user's row as it is, as text that a terminal can show; null if there is none."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{escaped(str(key))}: {stored_value(name, item)}' for key, item in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return f"[{', '.join(stored_value(name, item) for item in value)}]"
    return escaped(str(value))


def with_short_floats(table: pa.Table) -> pa.Table:
    """Return a table with 32-bit floats as doubles of as few digits: 0.1, and not 0.10000000149011612."""
    import pyarrow as pa  # noqa: PLC0415 (a command that shows no rows loads none)

    for position, field in enumerate(table.schema):
        if pa.types.is_float32(field.type):
            short_floats = table.column(position).cast(pa.string()).cast(pa.float64())
            table = table.set_column(position, field.name, short_floats)
    return table


def with_spelled_times(table: pa.Table) -> pa.Table:
    """Return a table with texts in place of the dates and times of each column with a year that Python lacks.

    Python has the years 1 to 9999, Hudi's types have others, too.
    """
    for position, field in enumerate(table.schema):
        text_type = _text_type(field.type)
        if text_type == field.type:
            continue
        try:
            table.column(position).to_pylist()
        except OverflowError:
            table = table.set_column(position, field.name, table.column(position).cast(text_type))
    return table


def _text_type(data_type: pa.DataType) -> pa.DataType:
    """Return a type with texts in place of dates and times, in nested types, too."""
    import pyarrow as pa  # noqa: PLC0415 (a command that shows no rows loads none)

    if pa.types.is_timestamp(data_type) or pa.types.is_date(data_type):
        return pa.string()
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_text_type(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        key, item = data_type.key_field, data_type.item_field
        return pa.map_(key.with_type(_text_type(key.type)), item.with_type(_text_type(item.type)))
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_text_type(data_type.value_type)))
    return data_type


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
