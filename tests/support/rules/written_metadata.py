"""What each operation wrote to a metadata table, by its log files, and what its list of files says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.storage.inputs import part_of
from pyhudi.table.files.file_group import LogFile, data_file
from pyhudi.table.files.logs.log_blocks import BlockType
from pyhudi.table.files.logs.log_contents import BlockContent
from pyhudi.table.files.logs.log_file import blocks_of, open_log
from pyhudi.table.hfile.entries import joined
from pyhudi.table.hfile.reader import HFile
from pyhudi.table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from pyhudi.table.metadata.metadata_table import FOLDER, MetadataTable
from pyhudi.table.metadata.record_keys import PARTITIONS
from pyhudi.table.metadata.records import decode
from pyhudi.table.table import Table, open_table
from pyhudi.timeline.instants import State
from support.made.begun_metadata import BEGUN, assert_in_use
from support.places import Place, on_disk
from support.rules.health import of_metadata

# What a log file may say of its partition, as docs/metadata-table.md calls it.
ADDS, REMOVES, WIDENS, EXACT = "adds", "removes", "widens", "exact bounds"
# The type of records of files; those of the list of partitions have another.
_OF_FILES = 2
# Of the instants that began partitions.
BEGINNING = "00000000000000"
Said = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class MetadataState:
    """The delta commits of a metadata table.

    Attributes:
        said: What each says of each partition, by its requested time; an empty mapping where it has no log file.
        committed: The completed instants of the table, archived ones too.
        built: Those of them that built partitions.
        names: The partitions in use.
    """

    said: Mapping[str, Said]
    committed: frozenset[str]
    built: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()

    def since(self, before: MetadataState) -> Mapping[str, Said]:
        """Return what instants say that were not there before."""
        return {time: said for time, said in self.said.items() if time not in before.said}

    def undone(self, before: MetadataState) -> set[str]:
        """Return the instants that were there before, and neither they nor those of the table are any more."""
        return {time for time in before.said if time in before.committed} - {*self.said} - self.committed


def written_metadata(path: Place) -> MetadataState:
    """Return what is written in the log files of a metadata table; none of a table without one."""
    storage = open_storage(str(path))
    table = open_table(storage)
    metadata = MetadataTable.of(table, table.timeline())
    if metadata is None:
        return MetadataState({}, frozenset())
    logs: dict[str, dict[str, set[str]]] = {}
    for name in metadata.names:
        for info in storage.list(f"{FOLDER}/{name}"):
            file = data_file(info.path, info.size)
            if isinstance(file, LogFile):
                for time, kinds in _said(storage, name, file):
                    logs.setdefault(time, {}).setdefault(name, set()).update(kinds)
    completed = {instant.requested_time for instant in metadata.timeline.completed}
    every = (*table.timeline().completed, *table.archive.instants())
    times = {instant.requested_time for instant in every}
    built = {instant.requested_time for instant in every if instant.action == "indexing"}
    said = {time: {name: frozenset(kinds) for name, kinds in logs.get(time, {}).items()} for time in completed}
    return MetadataState(said, frozenset(times), frozenset(built), metadata.names)


def assert_no_left_overs(path: Place) -> None:
    """Assert that no file of a metadata table is of an instant that the table does not have, or has not completed.

    Readers would take what it says for true once such an instant is no longer pending.
    """
    storage = open_storage(str(path))
    table = open_table(storage)
    metadata = MetadataTable.of(table, table.timeline())
    if metadata is None:
        return
    committed = {one.requested_time for one in (*table.timeline().completed, *table.archive.instants())}
    made = {one.requested_time for one in metadata.timeline.completed if one.action != "deltacommit"}
    instants = {one.requested_time for one in metadata.timeline.instants} - made
    logs: set[str] = set()
    for name in metadata.names:
        files = (data_file(info.path) for info in storage.list(f"{FOLDER}/{name}"))
        logs |= {file.named_time for file in files if isinstance(file, LogFile)}
    _check_times(table, metadata)
    wrong = sorted(time for time in instants | logs if not time.startswith(BEGINNING) and time not in committed)
    assert not wrong, f"the metadata table has files of {wrong}, which did not complete in the table"


def _check_times(table: Table, metadata: MetadataTable) -> None:
    """Assert that each instant completed once in the metadata table, before it completed in its table."""
    times = {one.requested_time: str(one.completion_time) for one in table.timeline().completed}
    paths = metadata.timeline.files.paths()
    for instant in metadata.timeline.completed:
        if instant.requested_time in times:
            made = paths[instant.identity][State.COMPLETED]
            assert len(made) == 1, f"{instant.requested_time} completed twice in the metadata table: {made}"
            assert str(instant.completion_time) < times[instant.requested_time], (
                f"{instant.requested_time} completed later there"
            )


def check_listing(path: Place) -> None:
    """Assert that the list of files names what completed instants left in the folders, each with its size."""
    storage = open_storage(str(path))
    table = open_table(storage)
    metadata = MetadataTable.of(table, table.timeline())
    assert metadata is not None
    assert _listed(metadata) == _in_folders(table)


def _listed(metadata: MetadataTable) -> dict[str, int]:
    sizes_by_path = {}
    for records in metadata.partition(FILES).records():
        for key, files in zip(records.field("key").to_pylist(), records.field("filesystemMetadata"), strict=True):
            if key != PARTITIONS:
                folder = "" if key == "." else f"{key}/"
                sizes_by_path.update({f"{folder}{name}": info["size"] for name, info in files.as_py() or ()})
    return sizes_by_path


def _in_folders(table: Table) -> dict[str, int]:
    timeline = table.timeline()
    pending = {instant.requested_time for instant in timeline.pending}
    sizes_by_path = {}
    for info in table.storage.list("", recursive=True):
        file = None if info.path.startswith(".hoodie/") else data_file(info.path, changes=True)
        if file is not None and pending.isdisjoint(table.format.makers([file], timeline)):
            sizes_by_path[info.path] = info.size
    return sizes_by_path


def _said(storage: Storage, partition: str, file: LogFile) -> Iterator[tuple[str, set[str]]]:
    with open_log(storage, file.path) as source:
        for block in blocks_of(storage, file.path, source):
            if block.type == BlockType.DELETE:
                deletes = len(BlockContent(storage, block, source).deletes().keys)
                yield block.instant_time, {REMOVES} if deletes else set()
            elif block.type == BlockType.HFILE:
                with part_of(source, block.content_offset, block.content_size) as part:
                    content = HFile(part, file.path)
                    values = joined(list(content.scan())).values
                    yield block.instant_time, _kinds(partition, decode(values, content.schema))


def _kinds(partition: str, records: pa.StructArray) -> set[str]:
    if partition == FILES:
        types = records.field("type").to_pylist()
        named = zip(types, records.field("filesystemMetadata").to_pylist(), strict=True)
        return {
            REMOVES if info["isDeleted"] else ADDS for kind, files in named if kind == _OF_FILES for _, info in files
        }
    stats = records.field("ColumnStatsMetadata")
    deleted = pc.fill_null(pc.struct_field(stats, "isDeleted"), False)
    kinds = {REMOVES} if pc.any(deleted).as_py() else set()
    live_stats = stats.filter(pc.invert(deleted))
    if not len(live_stats):
        return kinds
    if partition == COLUMN_STATS:
        return kinds | {ADDS}
    assert partition == PARTITION_STATS
    tight = pc.fill_null(pc.struct_field(live_stats, "isTightBound"), False)
    return kinds | {EXACT if one else WIDENS for one in pc.unique(tight).to_pylist()}


def check_metadata(path: Place, names: Sequence[str] = BEGUN) -> None:
    """Assert that partitions of a table's metadata table are in use, by default those of its beginning, and right."""
    assert_in_use(path, names)
    with on_disk(path) as copy:
        wrong = of_metadata(copy)
        assert_no_left_overs(copy)
    assert not wrong, wrong
