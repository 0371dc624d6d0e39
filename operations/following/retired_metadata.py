"""The metadata table of a table of version 6, which pyhudi does not keep: a change first takes it out of use."""

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
from ...table.inferred.index import infer_index, is_unnoted
from ...table.metadata.kinds import FILES
from ...table.metadata.metadata_table import FOLDER
from ...table.record_index import kind_by_record_index
from ...table.seen_table import SeenTable
from ...table.table import Table
from ...timeline.instants import Instant
from .follower import FileChanges, Preparation

# A file from the time at which the metadata table went out of use; the folder stays for a day after that.
OUT_OF_USE = join(FOLDER, ".hoodie", "pyhudi_out_of_use")
# The same for one partition; its name follows.
_OF_PARTITION = f"{OUT_OF_USE}."


class RetiredMetadataTable:
    """The follower that takes the metadata table out of use before readers could trust old entries.

    It does what Apache Hudi does for ``hoodie.metadata.enable=false``: readers trust the property
    ``hoodie.table.metadata.partitions``, so they list files again once it is empty (``HoodieTableMetadataUtil``). The
    folder stays, because running queries of Apache Hudi still read it, and its writers build anew in it before they set
    the property. A clean deletes it (`operations/services/unused_metadata.py`). A record index also says whether keys
    are unique in the whole table; without it the table's properties must say so.
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
    """Return the properties that take a metadata table out of use, and note the time at which it goes out of use."""
    if table.storage.has_files(FOLDER):
        table.storage.write(OUT_OF_USE, b"")
    removed_properties = {METADATA_PARTITIONS: "", METADATA_INFLIGHT: "", INDEX_DEFINITIONS: None}
    return {**removed_properties, **noted_index(table, config)}


def note_out_of_use(storage: Storage, names: Collection[str]) -> None:
    """Write notes by which a clean sees since when partitions are out of use; ``files`` takes all others with it.

    Queries of Apache Hudi that began before may read their files for a day more.
    """
    if storage.has_files(FOLDER):
        for path in [OUT_OF_USE] if FILES in names else map(out_of_use_note, names):
            storage.write(path, b"")


def out_of_use_note(partition: str) -> str:
    """Return the path of the note that one partition went out of use."""
    return f"{_OF_PARTITION}{partition}"


def noted_index(table: Table, config: TableConfig) -> Mapping[str, str]:
    """Return the property that notes the kind of a record index that goes out of use; nothing for other tables.

    Without it, later writes could not see by which index the table finds its keys. The file groups of a table with
    buckets show their index, so it is not noted.

    Args:
        table: As a write sees it, with the index that the write names, if any. The completed write notes that index.
        config: The stored properties.
    """
    if not is_unnoted(config):
        return {}
    stored_table, named_index = Table(table.storage, config), table.config.index_type
    index_kind = kind_by_record_index(stored_table)
    if index_kind is None or (infer_index(stored_table).kind if named_index is None else named_index) == BUCKET:
        return {}
    return {RECORD_INDEX_LOOKUP: index_kind}
