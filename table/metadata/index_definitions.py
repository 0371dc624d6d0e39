"""What an index of a table is of: its definition, as the file of Apache Hudi's index definitions holds it.

Source: ``org.apache.hudi.common.model.HoodieIndexDefinition``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...storage.base import Storage
from ..record_index import defined_indexes, options_of, refused_definition
from .kinds import BLOOM_FILTERS, COLUMN_STATS

# In this version the hash of the column's value alone says which file group of a secondary index has an entry.
_BY_VALUE = "V2"
_IDENTITY = "identity"


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
    """

    name: str
    kind: str
    function: str
    columns: tuple[str, ...]
    options: Mapping[str, str]
    by_value: bool

    @classmethod
    def parse(cls, name: str, stored: Mapping[str, Any]) -> IndexDefinition:
        """Return a definition; what the file does not say is empty.

        Raises `TableConfigError` where its columns or options are in another shape than Apache Hudi's.
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
        )

    @property
    def has_bounds(self) -> bool:
        return self.kind == COLUMN_STATS

    @property
    def has_filters(self) -> bool:
        return self.kind == BLOOM_FILTERS


def index_definitions(storage: Storage) -> dict[str, IndexDefinition]:
    """Return the definitions of a table's indexes by the names of their partitions of the metadata table.

    Raises `TableConfigError` where the file, or one of them, cannot be read.
    """
    return {name: IndexDefinition.parse(name, stored) for name, stored in defined_indexes(storage).items()}
