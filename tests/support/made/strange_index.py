"""An index of another package that answers whatever a test wants it to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
from pyhudi.index import NOT_FOUND, FileGroupId, KeyedRows, LookupSettings, News, OutsideIndex, Tags
from pyhudi.storage.base import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.files.view import FileView
from pyhudi.testing.indexes import offered

NAME, ENTRY_POINT = "STRANGE", "support.made.strange_index:StrangeIndex"
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


def coded(groups: tuple[FileGroupId, ...], codes: dict[str, int]) -> Answer:
    """Answer with a code for each key."""
    return lambda rows: Tags(groups, np.array([codes[key] for key in rows.record_keys.to_pylist()], np.int32))


@contextmanager
def saying(answer: Answer = nothing) -> Iterator[None]:
    """Let the index be found, and answer so."""
    StrangeIndex.answer = staticmethod(answer)
    try:
        with offered(NAME, ENTRY_POINT):
            yield
    finally:
        StrangeIndex.answer = staticmethod(nothing)
