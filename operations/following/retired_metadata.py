"""The metadata table of a table of version 6, which pyhudi does not keep: each change takes it out of use first."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...storage.base import Storage, join
from ...table.config import TableConfig
from ...table.config.property_keys import (
    BUCKET,
    INDEX_DEFINITIONS,
    METADATA_INFLIGHT,
    METADATA_PARTITIONS,
    RECORD_INDEX_LOOKUP,
)
from ...table.format import format_of
from ...table.infer_index import infer_index, is_unnoted
from ...table.metadata.kinds import FILES
from ...table.metadata.metadata_table import FOLDER
from ...table.record_index import kind_by_record_index
from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.instants import Instant
from .follower import FileChanges, Preparation

# A file of the time at which the metadata table came out of use: its folder stays for a day after that.
OUT_OF_USE = join(FOLDER, ".hoodie", "pyhudi_out_of_use")
# The same of one partition, by its name.
_OF_PARTITION = f"{OUT_OF_USE}."


class RetiredMetadataTable:
    """The metadata table, taken out of use before readers would trust old entries.

    Does what Apache Hudi does for ``hoodie.metadata.enable=false``: readers trust the property
    ``hoodie.table.metadata.partitions``, so that they list files again once it is empty (``HoodieTableMetadataUtil``).
    The folder stays: queries of Apache Hudi that began before read on in it, and its writers build anew in it before
    they set the property. A clean deletes it (`operations/services/unused_metadata.py`). A record index also says where
    its keys are unique; without it the table's properties have to say so.
    """

    def properties(self, table: Table, config: TableConfig) -> Mapping[str, str | None]:
        if format_of(config).keeps_metadata or not config.metadata_partitions:
            return {}
        return retired_properties(table, config)

    def follows(self, table: Table) -> bool:
        return False

    def bounded_columns(self, table: Table) -> tuple[str, ...]:
        return ()

    def prepare(self, seen: SeenTable, instant: Instant, changes: FileChanges) -> Preparation:
        raise NotImplementedError


def retired_properties(table: Table, config: TableConfig) -> dict[str, str | None]:
    """Return the properties that take a metadata table out of use, and note when it came out of use."""
    if table.storage.has_files(FOLDER):
        table.storage.write(OUT_OF_USE, b"")
    gone = {METADATA_PARTITIONS: "", METADATA_INFLIGHT: "", INDEX_DEFINITIONS: None}
    return {**gone, **noted_index(table, config)}


def out_of_use_since(storage: Storage, names: Collection[str]) -> None:
    """Note the time at which partitions come out of use, all of them with ``files``."""
    if storage.has_files(FOLDER):
        for path in [OUT_OF_USE] if FILES in names else map(out_of_use_note, names):
            storage.write(path, b"")


def out_of_use_note(partition: str) -> str:
    """Return the path of the note that one partition came out of use."""
    return f"{_OF_PARTITION}{partition}"


def noted_index(table: Table, config: TableConfig) -> Mapping[str, str]:
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
