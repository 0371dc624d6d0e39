"""What a command prints: results on stdout, as lines for people or as lines of JSON, and all else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from .cells import cell, stored_value, with_short_floats
from .escaping import escaped
from .text_tables import show_table

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE = 1000


def lines_of(result: Any) -> list[str]:
    """Return a result as lines for people: its sentence, and the steps of a repair."""
    return [str(result), *(f"  {step}" for step in getattr(result, "steps", ()))]


class CommandOutput:
    """The two streams of a command; ``as_json`` prints a line of JSON for each result, row or finding."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def line(self, text: str = "") -> None:
        """Print a line for people."""
        print(escaped(text), file=sys.stdout)  # noqa: T201 (the command's interface)

    def note(self, text: str) -> None:
        """Print what is no part of the result, such as an error: its lines go to stderr."""
        for line in text.splitlines():
            print(escaped(line), file=sys.stderr, flush=True)  # noqa: T201

    def json(self, value: Any) -> None:
        """Print a dataclass or a mapping as a line of JSON, which holds no control character."""
        plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        print(json.dumps(plain, default=str), file=sys.stdout, flush=True)  # noqa: T201

    def result(self, value: Any) -> None:
        """Print a result: its sentence, or its fields as JSON."""
        if self.as_json:
            self.json(value)
        else:
            for line in lines_of(value):
                self.line(line)

    def rows(self, table: pa.Table, nothing: str, *, stored: bool = False) -> None:
        """Print the rows of a table; ``nothing`` says for people that there are none.

        ``stored`` are rows of the user's, whose values are shown as they are; counts and sizes are shown for people.
        """
        if stored:
            table = with_short_floats(table)
        if self.as_json:
            for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    self.json(row)
        elif table.num_rows:
            rows = [[*row.values()] for row in table.to_pylist()]
            show_table(sys.stdout, table.column_names, rows, stored_value if stored else cell)
        else:
            self.line(nothing)

    def facts(self, facts: Mapping[str, Sequence[str] | str]) -> None:
        """Print names with their texts in two columns; of several texts of one name each gets a line."""
        width = max(map(len, facts), default=0)
        for name, texts in facts.items():
            for number, text in enumerate([texts] if isinstance(texts, str) else texts):
                self.line(f"{('' if number else name).ljust(width)}  {text}")
