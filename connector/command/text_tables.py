"""Tables for people: by rich, if the extra ``cli`` brought it and a terminal shows them, else in plain columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, TextIO

from .cells import is_number

_GAP = "  "


def has_rich(stream: TextIO) -> bool:
    """Return whether a stream is a terminal for which rich may draw."""
    return stream.isatty() and find_spec("rich") is not None


def show_table(
    stream: TextIO, names: Sequence[str], rows: Sequence[Sequence[Any]], cell: Callable[[str, Any], str]
) -> None:
    """Show rows below the names of their columns; numbers end at the right of their column."""
    texts = [[cell(name, value) for name, value in zip(names, row, strict=True)] for row in rows]
    numeric = [any(is_number(row[at]) for row in rows) for at in range(len(names))]
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
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        ]
        yield _GAP.join(padded).rstrip()


def _show_rich(stream: TextIO, names: Sequence[str], texts: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    from rich.console import Console  # noqa: PLC0415 (an extra)
    from rich.table import Table as RichTable  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = RichTable(box=None, pad_edge=False, header_style="bold")
    for name, right in zip(names, numeric, strict=True):
        table.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in texts:
        # Text objects: rich reads no markup in them.
        table.add_row(*map(Text, row))
    Console(file=stream, highlight=False, markup=False, emoji=False).print(table)
