"""What `explain` of a table shows: how many file slices a read opens, and why it opens no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...reader.skipping.footer_search import row_groups
from ...reader.skipping.predicates import (
    AnyOf,
    Compare,
    IsNull,
    NoneOf,
    OneOf,
    OnExpression,
    Predicate,
    StartsWith,
    renamed,
)
from ...reader.skipping.search import Search
from ...reader.skipping.slices_to_read import Step
from ...reader.snapshot import Snapshot
from ...storage.threads import for_each
from ...table.files.file_group import FileSlice
from ..words.text import escaped, html_table, in_html, size_text

# The bytes of columns are in footers, which are opened for at most so many files.
_MOST_FOOTERS = 256
_MOST_VALUES = 5
_HEAD = ("source", "file slices", "left out", "remain")


@dataclass(frozen=True, slots=True)
class ExplainedRead:
    """Which files a read opens, and why no others; ``print`` and a notebook show it as a table.

    Attributes:
        path: The table.
        conditions: The parts of the condition that leave files out; the rows are filtered by the whole condition.
        steps: What each source left out, in the order of the sources.
        file_slices: The number of file slices that remain.
        base_files: The number of their base files.
        log_files: The number of their log files.
        bytes: The size of these files.
        column_bytes: Size of the columns that the read needs in base files without log files; None for many files.
    """

    path: str
    conditions: tuple[str, ...]
    steps: tuple[Step, ...]
    file_slices: int
    base_files: int
    log_files: int
    bytes: int
    column_bytes: int | None

    def __str__(self) -> str:
        rows = [_HEAD, *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
        rows.insert(1, tuple("-" * width for width in widths))
        lines = ["  ".join(map(_aligned, row, widths, range(len(row)))).rstrip() for row in rows]
        return "\n".join([*self._sentences(), *(lines if self.steps else ())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sentences = "".join(f"<p>{in_html(sentence)}</p>" for sentence in self._sentences())
        return sentences + (html_table(_HEAD, self._rows()) if self.steps else "")

    def _sentences(self) -> Iterator[str]:
        """Yield two sentences: what the read opens, and which parts of the condition leave files out."""
        files = f"{_amount(self.base_files, 'base file')} and {_amount(self.log_files, 'log file')}"
        columns = "" if self.column_bytes is None else f", {size_text(self.column_bytes)} of it in the columns"
        slices = _amount(self.file_slices, "file slice")
        yield f"Of {escaped(self.path)} a read opens {slices}, with {files}: {size_text(self.bytes)}{columns}."
        if self.conditions:
            yield f"These parts of the condition can leave files out: {escaped(' AND '.join(self.conditions))}."
        else:
            yield "No condition leaves files out."

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the cells of `_HEAD` for each source: its name, and the slices before it, left out and after it."""
        return [
            (step.source, f"{step.of:,}", f"{step.left_out:,}", f"{step.of - step.left_out:,}") for step in self.steps
        ]


def explain_read(snapshot: Snapshot, predicates: Sequence[Predicate], columns: Iterable[str]) -> ExplainedRead:
    """Return how many files and bytes a read of a snapshot opens, and how many file slices each source leaves out.

    ``columns`` are the names of the columns that the read needs. This opens footers alone.
    """
    # With counts, the steps also count the file slices of partitions that the read does not list.
    read = snapshot.slices_to_read(predicates, counts=True)
    slices = read.slices
    return ExplainedRead(
        path=snapshot.storage.path,
        conditions=tuple(map(spelled, predicates)),
        steps=read.steps,
        file_slices=len(slices),
        base_files=sum(file_slice.base is not None for file_slice in slices),
        log_files=sum(len(file_slice.logs) for file_slice in slices),
        bytes=sum(file_slice.size for file_slice in slices),
        column_bytes=_column_bytes(snapshot, predicates, slices, tuple(columns)),
    )


def spelled(predicate: Predicate) -> str:
    """Return a predicate as SQL spells it, with the first of many values."""
    if isinstance(predicate, AnyOf):
        # An alternative without predicates holds for every row.
        return f"({' OR '.join(' AND '.join(map(spelled, each)) or 'true' for each in predicate.alternatives)})"
    if isinstance(predicate, OnExpression):
        called = f"{predicate.function}({', '.join((predicate.column, *map(_value, predicate.arguments)))})"
        return spelled(renamed(predicate.predicate, lambda _: called))
    column = predicate.column
    if isinstance(predicate, Compare):
        return f"{column} {predicate.op} {_value(predicate.value)}"
    if isinstance(predicate, (OneOf, NoneOf)):
        values = ", ".join(map(_value, predicate.values[:_MOST_VALUES]))
        more = len(predicate.values) - _MOST_VALUES
        rest = f", and {more:,} more" if more > 0 else ""
        return f"{column} {'IN' if isinstance(predicate, OneOf) else 'NOT IN'} ({values}{rest})"
    if isinstance(predicate, StartsWith):
        return f"{column} LIKE {_value(predicate.prefix + '%')}"
    return f"{column} IS {'NULL' if isinstance(predicate, IsNull) else 'NOT NULL'}"


def _value(value: object) -> str:
    """Return a value as SQL spells it."""
    if value is None:
        return "NULL"
    if isinstance(value, (bool, int, float)):
        return str(value).lower() if isinstance(value, bool) else str(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"


def _column_bytes(
    snapshot: Snapshot, predicates: Sequence[Predicate], slices: Sequence[FileSlice], columns: tuple[str, ...]
) -> int | None:
    """Return the bytes of some columns in the row groups to read of base files without log files.

    None for too many files. Slices with log files do not count: log files have no footers, and are read whole.
    """
    if len(slices) > _MOST_FOOTERS:
        return None
    search = Search.of(predicates, snapshot.schema, snapshot.config)
    bases = [file_slice.base_file for file_slice in slices if not file_slice.logs]
    groups = for_each(snapshot.storage, lambda base: row_groups(snapshot.storage, base, search, columns), bases)
    return sum(group.size for of_file in groups for group in of_file)


def _aligned(text: str, width: int, column: int) -> str:
    """Return a cell of the printed table, numbers at the right; the first column is text."""
    return text.rjust(width) if column else text.ljust(width)


def _amount(count: int, noun: str) -> str:
    """Return a number with its noun, which gets an ``s`` unless the number is 1."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
