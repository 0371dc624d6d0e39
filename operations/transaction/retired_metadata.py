"""The metadata table, which pyhudi does not maintain yet, taken out of use before it could tell readers old news.

Follows what Apache Hudi does for ``hoodie.metadata.enable=false``: readers trust ``hoodie.table.metadata.partitions``
in ``hoodie.properties``, so that clearing it makes them list files again (``HoodieTableMetadataUtil``).
"""

from __future__ import annotations

from ...errors import UnsupportedTableError
from ...storage.base import Storage
from ...table.config import TableConfig, load_config

FOLDER = ".hoodie/metadata"
INDEX_DEFINITIONS = ".hoodie/.index_defs"
_CHEAP = frozenset({"files", "column_stats", "partition_stats"})


def check_retirable(config: TableConfig, metadata_enable: bool | None, path: str) -> None:
    """Refuse a write that would throw away an index that takes hours to rebuild, unless the user said so.

    Raises:
        UnsupportedTableError: The metadata table holds record, secondary, expression or bloom partitions.
    """
    costly = sorted(set(config.metadata_partitions) - _CHEAP)
    if costly and metadata_enable is not False:
        raise UnsupportedTableError(
            f"The metadata table of {path} holds {', '.join(costly)}, which pyhudi does not maintain and would have to "
            "drop.",
            "Say hoodie.metadata.enable=false to drop it (Apache Hudi can rebuild it), or write with Apache Hudi.",
        )


def retirement(config: TableConfig) -> dict[str, str | None]:
    """Return the changes of properties that make readers list files again, none where they do so already.

    They must come before any instant is removed and before the completed file.
    """
    if not config.metadata_partitions:
        return {}
    return {
        "hoodie.table.metadata.partitions": "",
        "hoodie.table.metadata.partitions.inflight": "",
        "hoodie.table.index.defs.path": None,
    }


def remove(storage: Storage) -> None:
    """Delete the files of a metadata table that is out of use, which nobody reads any more."""
    if storage.has_files(FOLDER) and not load_config(storage).metadata_partitions:
        storage.delete_folder(FOLDER)
        storage.delete_folder(INDEX_DEFINITIONS)
