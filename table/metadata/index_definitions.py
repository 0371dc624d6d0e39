"""What an index of a table is of: its definition, as the file of Apache Hudi's index definitions holds it.

Source: ``org.apache.hudi.common.model.HoodieIndexDefinition``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...storage.base import Storage
from ..config import TableConfig
from ..record_index import INDEXES_FILE, defined_indexes, options_of, refused_definition
from .kinds import BLOOM_FILTERS, COLUMN_STATS

# In this version the hash of the column's value alone says which file group of a secondary index has an entry.
_BY_VALUE = "V2"
_IDENTITY = "identity"
# From this version of a table on records of bounds say the types of their values.
_FIRST_TYPED_VERSION = 9


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """The definition of one index.

    Attributes:
        name: The name of its partition of the metadata table.
        kind: ``secondary_index``; of an index of an expression `COLUMN_STATS` or `BLOOM_FILTERS`.
        function: What is done to the column's values, ``identity`` for nothing.
        columns: The columns that it is of.
        options: What its function needs besides, by name.
        by_value: Whether the hash of the column's value says which file group has an entry.
        version: The version of the index, such as ``V2``; empty if the definition says none.
    """

    name: str
    kind: str
    function: str
    columns: tuple[str, ...]
    options: Mapping[str, str]
    by_value: bool
    version: str = ""

    @classmethod
    def parse(cls, name: str, stored: Mapping[str, Any]) -> IndexDefinition:
        """Return the definition that the file stores of the partition ``name``; what it does not say is empty.

        Raises `TableConfigError` if its columns or options are in another shape than Apache Hudi's.
        """
        columns, options = stored.get("sourceFields") or [], options_of(name, stored)
        if not isinstance(columns, list):
            raise refused_definition(name, "sourceFields", columns)
        return cls(
            name,
            str(stored.get("indexType") or ""),
            str(stored.get("indexFunction") or _IDENTITY).lower(),
            tuple(map(str, columns)),
            {str(option): str(value) for option, value in options.items()},
            stored.get("version") == _BY_VALUE,
            str(stored.get("version") or ""),
        )

    @property
    def has_bounds(self) -> bool:
        return self.kind == COLUMN_STATS

    @property
    def has_filters(self) -> bool:
        return self.kind == BLOOM_FILTERS


def index_definitions(storage: Storage) -> dict[str, IndexDefinition]:
    """Return the definitions of a table's indexes by the names of their partitions of the metadata table.

    Raises `TableConfigError` if the file, or one of them, cannot be read.
    """
    return {name: IndexDefinition.parse(name, stored) for name, stored in defined_indexes(storage).items()}


@dataclass(frozen=True, slots=True)
class NewDefinitions:
    """The file of index definitions with some of them changed.

    Attributes:
        replaces: CRC-32 of the file that was read; None if there is none yet.
    """

    content: bytes
    replaces: int | None
    path: str = INDEXES_FILE


def is_typed(config: TableConfig, definition: IndexDefinition | None = None) -> bool:
    """Return whether records of bounds say the types of values: by the definition, else by the table's version."""
    if definition is not None and definition.version:
        return definition.version == _BY_VALUE
    return config.version >= _FIRST_TYPED_VERSION


def definition_of_bounds(columns: Sequence[str], config: TableConfig) -> dict[str, Any]:
    """Return the stored definition of ``column_stats`` over some columns of a table."""
    return {
        "indexName": COLUMN_STATS,
        "indexType": COLUMN_STATS,
        "indexFunction": COLUMN_STATS,
        "sourceFields": list(columns),
        "indexOptions": {},
        "version": _BY_VALUE if is_typed(config) else "V1",
    }


def definition_over(storage: Storage, columns: Sequence[str]) -> dict[str, Any]:
    """Return the stored definition of ``column_stats`` with other columns. Raises as `index_definitions`."""
    return {**defined_indexes(storage)[COLUMN_STATS], "sourceFields": list(columns)}


def new_definitions(storage: Storage, changes: Mapping[str, Mapping[str, Any] | None]) -> NewDefinitions:
    """Return the file in which some stored definitions, by their names, are changed, or removed by None.

    Raises as `index_definitions`.
    """
    before = storage.read(INDEXES_FILE) if storage.exists(INDEXES_FILE) else None
    changed = {**defined_indexes(storage), **changes}
    definitions = {name: definition for name, definition in changed.items() if definition is not None}
    content = json.dumps({"indexDefinitions": definitions}, indent=2).encode()
    return NewDefinitions(content, None if before is None else zlib.crc32(before))
