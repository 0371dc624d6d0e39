"""What a reader may believe of a metadata table: nothing if it is damaged, or behind its table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ...errors import CorruptFileError, PyHudiError
from ...timeline.timeline import Timeline
from ..table import Table
from .index_definitions import IndexDefinition, index_definitions
from .metadata_table import MetadataPartition, MetadataTable

logger = logging.getLogger("pyhudi")

Answer = TypeVar("Answer")
# By path of a table, what this process already said that it does without.
_WARNED: set[tuple[str, str]] = set()


@dataclass(frozen=True)
class TrustedMetadata:
    """A metadata table that has all completed writes of its table.

    ``is_of_now`` is as `MetadataTable.is_of_now` tells: only then other partitions than `FILES` and `COLUMN_STATS`
    answer.
    """

    table: MetadataTable
    is_of_now: bool

    @classmethod
    def of(cls, table: Table, timeline: Timeline) -> TrustedMetadata | None:
        """Return the metadata table of a table whose timeline was listed; None if it has none to go by."""
        try:
            metadata = MetadataTable.of(table, timeline)
            if metadata is None:
                return None
            lacking = metadata.lacks()
        except (PyHudiError, FileNotFoundError) as error:
            _warn_once(table.path, "metadata table", error)
            return None
        if lacking:
            _warn_once(
                table.path, "metadata table", CorruptFileError(f"It lacks the completed write {lacking[0]}.", "")
            )
            return None
        return cls(metadata, metadata.is_of_now())

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """The definitions of indexes by their partitions; none if they cannot be read, which the log says once."""
        try:
            return index_definitions(self.table.storage)
        except (PyHudiError, FileNotFoundError) as error:
            _warn_once(self.table.storage.path, "secondary indexes and indexes of expressions", error)
            return {}

    def ask(self, name: str, question: Callable[[MetadataPartition], Answer | None]) -> Answer | None:
        """Return what one partition answers; None if it is missing or damaged, which the log says once a process."""
        if name not in self.table.names:
            return None
        try:
            return question(self.table.partition(name))
        except (PyHudiError, FileNotFoundError) as error:
            _warn_once(self.table.storage.path, f"partition {name} of the metadata table", error)
            return None

    def doubt(self, error: Exception) -> None:
        """Log once a process why a reader does without the metadata table, which proved wrong about its table."""
        _warn_once(self.table.storage.path, "metadata table", error)


def _warn_once(path: str, what: str, error: Exception) -> None:
    """Log once a process, for each table and part of it, why a reader does without that part."""
    if (path, what) in _WARNED:
        return
    _WARNED.add((path, what))
    reason = error.what if isinstance(error, PyHudiError) else error
    logger.warning("table %s: pyhudi does without the %s: %s", path, what, reason)
