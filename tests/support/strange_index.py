"""An index of another package that answers whatever a test wants it to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
from pyhudi.index import NOT_FOUND, FileGroupId, KeyedRows, LookupSettings, News, OutsideIndex, Tags
from pyhudi.storage.base import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.files.view import FileView
from pyhudi.testing.indexes import offered
from pyhudi.testing.tables import DrivenTable, rows_of

NAME, ENTRY_POINT = "STRANGE", "support.strange_index:StrangeIndex"
Answer = Callable[[KeyedRows], Tags]


def nothing(rows: KeyedRows) -> Tags:
    """Say that every key is new."""
    return Tags((), np.full(len(rows), NOT_FOUND, np.int32))


class StrangeIndex(OutsideIndex):
    """Says what the test says.

    Attributes:
        answer: What it answers.
        listens: Whether it takes note of news.
    """

    is_global = False
    answer: ClassVar[Answer] = staticmethod(nothing)
    listens: ClassVar[bool] = True
    positions: ClassVar[dict[str, str]] = {}

    def __init__(self, table: TableConfig, settings: LookupSettings) -> None:
        pass

    def tag(self, rows: KeyedRows, view: FileView, storage: Storage) -> Tags:
        return StrangeIndex.answer(rows)

    def position(self, table: str) -> str | None:
        return self.positions.get(table)

    def committed(self, news: News) -> bool:
        for _ in news.groups:
            pass
        if self.listens:
            self.positions[news.table] = news.until
        return self.listens

    rolled_back = committed


def elsewhere(rows: KeyedRows) -> Tags:
    """Say that every key is in a file group of another table."""
    group = FileGroupId("x", "6e1f7a52-0c4d-4b3e-9a55-1d2c3b4a5f60-0")
    return Tags((group,), np.zeros(len(rows), np.int32))


def misled(path: Path) -> Callable[[], object]:
    """Make a table, and return a write to it to which the index says what cannot be."""
    table = DrivenTable.keyed(str(path), NAME, {})
    row = rows_of(("k1", "x", 1, "first"))

    def write(answer: Answer) -> object:
        StrangeIndex.answer = staticmethod(answer)
        try:
            with offered(NAME, ENTRY_POINT):
                return table.write(row)
        finally:
            StrangeIndex.answer = staticmethod(nothing)

    write(nothing)
    return lambda: write(elsewhere)
