"""What has to follow each change of a table's data files, such as a metadata table or a catalog.

The commit path alone calls followers: before the first data file changes, in the decision that completes an instant,
and once that instant is complete.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from ...errors import UnsupportedTableError
from ...storage.base import Storage, join
from ...table.config import TableConfig, has_config, load_config
from ...table.config.property_keys import (
    BUCKET,
    METADATA_INFLIGHT,
    METADATA_PARTITIONS,
    RECORD_INDEX_LOOKUP,
)
from ...table.infer_index import infer_index, is_unnoted
from ...table.record_index import kind_by_record_index
from ...table.table import Table
from .outcome import Outcome

logger = logging.getLogger("pyhudi")

METADATA_TABLE = ".hoodie/metadata"
# A file of the time at which the metadata table came out of use: its folder stays for a day after that.
OUT_OF_USE = join(METADATA_TABLE, ".hoodie", "pyhudi_out_of_use")
_CHEAP = frozenset({"files", "column_stats", "partition_stats"})


class Follower(Protocol):
    def properties(self, table: Table, config: TableConfig, outcome: Outcome | None) -> Mapping[str, str | None]:
        """Return the property changes that must precede the next file; `outcome` is None before the completion.

        ``config`` are the properties as they are stored, ``table`` has those that its writer adds, too. The commit path
        may ask several times before it makes the changes.
        """

    def completed(self, storage: Storage, outcome: Outcome) -> None:
        """Follow an instant that is complete; an error is logged, and fails nothing."""


class RetiredMetadataTable:
    """The metadata table, which pyhudi does not maintain, taken out of use before readers would trust old entries.

    Does what Apache Hudi does for ``hoodie.metadata.enable=false``: readers trust the property
    ``hoodie.table.metadata.partitions``, so that they list files again once it is empty (``HoodieTableMetadataUtil``).
    The folder stays: queries of Apache Hudi that began before read on in it, and its writers build anew in it before
    they set the property. A clean deletes it (`operations/services/unused_metadata.py`). A record index also says where
    its keys are unique; without it the table's properties have to say so.
    """

    def properties(self, table: Table, config: TableConfig, outcome: Outcome | None) -> Mapping[str, str | None]:
        if not config.metadata_partitions:
            return {}
        if table.storage.has_files(METADATA_TABLE):
            table.storage.write(OUT_OF_USE, b"")
        gone = {METADATA_PARTITIONS: "", METADATA_INFLIGHT: "", "hoodie.table.index.defs.path": None}
        return {**gone, **_noted_index(table, config)}

    def completed(self, storage: Storage, outcome: Outcome) -> None:
        """Do nothing, because the folder stays."""


def _noted_index(table: Table, config: TableConfig) -> Mapping[str, str]:
    """Return the property that notes the kind of a record index which goes out of use; nothing for other tables.

    An index that the write names is added by its completion. The file groups of a bucketed table show their index
    themselves.
    """
    if not is_unnoted(config):
        return {}
    stored, own = Table(table.storage, config), table.config.index_type
    kind = kind_by_record_index(stored)
    if kind is None or (infer_index(stored).kind if own is None else own) == BUCKET:
        return {}
    return {RECORD_INDEX_LOOKUP: kind}


FOLLOWERS: tuple[Follower, ...] = (RetiredMetadataTable(),)


def changed_properties(table: Table, outcome: Outcome | None) -> dict[str, str | None]:
    """Return the properties that all followers of a table want changed; none where the instant makes the table."""
    if outcome is not None and outcome.properties.new_table:
        return {}
    config = None if outcome is None else outcome.properties.current
    if config is None:
        if not has_config(table.storage):
            return {}
        config = load_config(table.storage)
    asked = (follower.properties(table, config, outcome) for follower in FOLLOWERS)
    return {key: value for changes in asked for key, value in changes.items()}


def follow(table: Table, outcome: Outcome) -> None:
    for follower in FOLLOWERS:
        try:
            follower.completed(table.storage, outcome)
        except Exception:  # the instant is complete, so nothing may fail it any more
            logger.warning(
                "table %s: %s did not follow a completed instant", table.path, type(follower).__name__, exc_info=True
            )


def check_retirable(config: TableConfig, metadata_enable: bool | None, path: str) -> None:
    """Refuse a write that would drop an index that takes hours to rebuild, unless the user allows it."""
    costly = sorted(set(config.metadata_partitions) - _CHEAP)
    if costly and metadata_enable is not False:
        raise UnsupportedTableError(
            f"The metadata table of {path} holds {', '.join(costly)}, which pyhudi does not maintain and would have to "
            "drop.",
            "Say hoodie.metadata.enable=false to drop it (Apache Hudi can rebuild it), or write with Apache Hudi.",
        )
