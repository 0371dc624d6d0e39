"""The metadata table, which pyhudi does not maintain yet, taken out of use before it could tell readers old news.

Follows what Apache Hudi does for ``hoodie.metadata.enable=false``: readers trust ``hoodie.table.metadata.partitions``
in ``hoodie.properties``, so that clearing it makes them list files again (``HoodieTableMetadataUtil``).
"""

from __future__ import annotations

import logging

from ..errors import UnsupportedTableError
from ..storage.base import Storage
from ..table.config import TableConfig, load_config, update_config

logger = logging.getLogger("pyhudi")

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


def stop_using(storage: Storage) -> None:
    """Make readers list files again; must come before any instant is removed and before the completed file."""
    if load_config(storage).metadata_partitions:
        update_config(
            storage,
            {
                "hoodie.table.metadata.partitions": "",
                "hoodie.table.metadata.partitions.inflight": "",
                "hoodie.table.index.defs.path": None,
            },
        )
        logger.info("table %s: the metadata table is retired; readers list files again", storage.path)


def remove(storage: Storage) -> None:
    """Delete the files of a metadata table that is out of use, which nobody reads any more."""
    if storage.has_files(FOLDER) and not load_config(storage).metadata_partitions:
        storage.delete_folder(FOLDER)
        storage.delete_folder(INDEX_DEFINITIONS)
