"""What a command prints: results on stdout, as lines for people or as lines of JSON, and all else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TextIO

from .cells import cell, escaped, is_number, stored_value, with_short_floats, with_spelled_times

if TYPE_CHECKING:
    import pyarrow as pa

_GAP = "  "


def has_rich(stream: TextIO) -> bool:
    """Return whether a stream is a terminal for which rich may draw."""
    return stream.isatty() and find_spec("rich") is not None


def show_table(
    stream: TextIO, names: Sequence[str], rows: Sequence[Sequence[Any]], cell: Callable[[str, Any], str]
) -> None:
    """Show rows below the names of their columns; numbers end at the right of their column."""
    texts = [[cell(name, value) for name, value in zip(names, row, strict=True)] for row in rows]
    numeric = [any(is_number(row[position]) for row in rows) for position in range(len(names))]
    if has_rich(stream):
        _show_rich(stream, names, texts, numeric)
        return
    for line in plain_lines(names, texts, numeric):
        print(line, file=stream)


def plain_lines(names: Sequence[str], texts: Sequence[Sequence[str]], numeric: Sequence[bool]) -> Iterator[str]:
    """Yield the lines of a table whose columns are as wide as their longest text."""
    widths = [max(map(len, column)) for column in zip(names, *texts, strict=True)]
    for row in (names, *texts):
        padded = [
            text.rjust(width) if is_numeric else text.ljust(width)
            for text, width, is_numeric in zip(row, widths, numeric, strict=True)
        ]
        yield _GAP.join(padded).rstrip()


def _show_rich(stream: TextIO, names: Sequence[str], texts: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    """Show a table by rich, which folds texts that are too wide for the terminal."""
    from rich.console import Console  # noqa: PLC0415 (an extra)
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for name, is_numeric in zip(names, numeric, strict=True):
        table.add_column(Text(name), justify="right" if is_numeric else "left", overflow="fold")
    for row in texts:
        # Text objects: rich reads no markup in them.
        table.add_row(*map(Text, row))
    Console(file=stream, highlight=False, markup=False, emoji=False).print(table)


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
        fields = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        print(json.dumps(fields, default=str), file=sys.stdout, flush=True)  # noqa: T201

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
            # Else a short float would show the digits of its double, as 0.10000000149 for 0.1.
            table = with_spelled_times(with_short_floats(table))
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
