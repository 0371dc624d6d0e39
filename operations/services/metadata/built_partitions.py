"""Builds base files of the metadata table's partitions from a table's files; a later decision publishes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....errors import TableConfigError
from ....storage.base import Storage, join, split
from ....table.config import TableConfig
from ....table.config.property_keys import METADATA_INFLIGHT
from ....table.files.file_group import data_file
from ....table.hfile.entries import Entries
from ....table.metadata.encoding import Records, entries_of_group
from ....table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from ....table.metadata.metadata_table import FOLDER, MetadataTable
from ....table.metadata.new_files import base_name, hfile_bytes
from ....table.metadata.record_schema import record_schema, schema_of_commits
from ....table.seen_table import SeenTable
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers.first_steps import DeleteFile, FirstSteps, MakeFile, Step
from ...following.before_completion import file_step
from ...following.follower import FileChanges
from ...following.indexed_columns import BOUNDED, IndexedColumns, bounds_definition, columns_of
from ...following.metadata_commit import ACTION, right_before
from ...result import MetadataWritten
from ..means import Means
from .built_records import BoundsOfTable, CommittedFiles, committed_files, files_records
from .first_files import group_ids, placeholder, placeholder_path

if TYPE_CHECKING:
    from ....timeline.metadata.models import CommitMetadata, WriteStat


@dataclass(frozen=True, slots=True)
class BuiltBase:
    """The base file of one file group; ``step`` publishes it."""

    partition: str
    file_id: str
    path: str
    size: int
    records: int
    step: Step


@dataclass(frozen=True)
class BuiltIndex:
    """The base files of new partitions of a metadata table; an indexing publishes them as it completes.

    Attributes:
        time: The requested time of the indexing, which the base files have in their names.
        names: The partitions.
        empty: The partition and file id of each file group without records, which gets no base file.
        sets_aside: Whether files wait in the instant's working folder until the decision copies them into place.
        report: What the steps write, for the user; None, as the indexing has a result of its own.
    """

    metadata: MetadataTable
    time: str
    names: tuple[str, ...]
    bases: tuple[BuiltBase, ...]
    empty: tuple[tuple[str, str], ...]
    sets_aside: bool = True
    report: MetadataWritten | None = None

    @property
    def records(self) -> int:
        """The number of records in all base files."""
        return sum(base.records for base in self.bases)

    @property
    def bytes(self) -> int:
        """The size of all base files."""
        return sum(base.size for base in self.bases)

    def ready_after(self, timeline: Timeline, config: TableConfig) -> str:
        """Return the greatest time of the metadata table now: the indexing has to complete after it.

        It needs neither argument: the indexing itself checks whether it has to build again.
        """
        return self.metadata.timeline.reload().greatest_time() or ""

    def steps(self, completed: Instant) -> FirstSteps:
        """Return the steps that publish the base files and complete the metadata table's instant.

        The instant completes right before `completed`, the table's own indexing instant.
        """
        files, pending = self.metadata.timeline.files, Instant(self.time, ACTION, State.REQUESTED)
        metadata_instant = files.layout.completed(pending, right_before(str(completed.completion_time)))
        # hudi-rs fails at a file group that has a base file and a log file without entries.
        surplus = [placeholder_path(base.partition, base.file_id, self.time) for base in self.bases]
        return FirstSteps(
            (
                MakeFile(files.path(pending), b""),
                MakeFile(files.path(pending.at(State.INFLIGHT)), b""),
                *(placeholder(partition, file_id, self.time) for partition, file_id in self.empty),
                *(base.step for base in self.bases),
                *(DeleteFile(path) for path in surplus),
                MakeFile(files.path(metadata_instant), files.codec.encode(_completed_body(self.bases))),
            ),
            # Only one indexing builds at a time, so after this nothing is being built.
            {METADATA_INFLIGHT: ""},
            adds=self.names,
        )


def new_bases(
    storage: Storage, time: str, partition: str, records: Sequence[Records]
) -> tuple[list[BuiltBase], list[tuple[str, str]]]:
    """Write the base files of a partition; return them, and the partition and file id of groups without a base file.

    ``time`` is the requested time of the indexing, which file names have.

    A small file is held by the decision to complete the indexing; a large file is written to the instant's working
    folder, from which the decision publishes it. A file group without records needs a file only if an earlier
    partition of that name left files in it.
    """
    ids = group_ids(storage, partition)
    groups_with_files = _ids_of_groups_with_files(storage, partition, time)
    bases: list[BuiltBase] = []
    empty_groups: list[tuple[str, str]] = []
    for number, file_id in enumerate(ids):
        # One group at a time, as the records of all groups may be hundreds of megabytes.
        entries = entries_of_group(records, number, len(ids))
        if len(entries) or file_id in groups_with_files:
            bases.append(_new_base(storage, time, partition, file_id, entries, len(ids)))
        else:
            empty_groups.append((partition, file_id))
    return bases, empty_groups


def _ids_of_groups_with_files(storage: Storage, partition: str, time: str) -> frozenset[str]:
    """Return the ids of file groups with more files than the placeholder that the indexing of a time made.

    An earlier partition of that name, or later writes, made these files.
    """
    listed = (data_file(info.path) for info in storage.list(join(FOLDER, partition), strict=False))
    files = [file for file in listed if file is not None]
    return frozenset([file.file_id for file in files if file.path != placeholder_path(partition, file.file_id, time)])


def _new_base(storage: Storage, time: str, partition: str, file_id: str, entries: Entries, groups: int) -> BuiltBase:
    """Return the base file of one file group, made of its entries, with the step that publishes it."""
    content = hfile_bytes([entries], record_schema())
    path = join(FOLDER, partition, base_name(file_id, time))
    # Up to two other partitions with as many file groups may be built in the same decision.
    step = file_step(storage, time, path, content, other_files=3 * groups)
    return BuiltBase(partition, file_id, path, len(content), len(entries), step)


def _completed_body(bases: Sequence[BuiltBase]) -> CommitMetadata:
    """Return the body of the completed instant, as Apache Hudi writes it for the first records of partitions."""
    from ....timeline.metadata.models import CommitMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

    stats: dict[str, list[WriteStat]] = {}
    for base in bases:
        stats.setdefault(base.partition, []).append(_write_stat(base))
    extra: Mapping[str, str] = {"schema": schema_of_commits(record_schema())}
    return CommitMetadata(
        partition_to_write_stats=stats, operation_type="BULK_INSERT_PREPPED", extra_metadata=dict(extra)
    )


def _write_stat(base: BuiltBase) -> WriteStat:
    """Return the write statistic of a new base file."""
    from ....timeline.metadata.models import WriteStat  # noqa: PLC0415 (as above)

    return WriteStat(
        file_id=base.file_id,
        path=join(base.partition, split(base.path)[1]),
        prev_commit="null",
        num_writes=base.records,
        num_inserts=base.records,
        total_write_bytes=base.size,
        partition_path=base.partition,
        file_size_in_bytes=base.size,
    )


@dataclass(frozen=True, slots=True)
class Built:
    """The base files that were built, and from how many data files.

    Attributes:
        indexed: The columns that ``column_stats`` indexed then; a later write may change them. Empty if no bounds were
            built.
    """

    index: BuiltIndex
    files: int
    indexed: tuple[str, ...]


def build_partitions(
    seen: SeenTable, metadata: MetadataTable, names: Sequence[str], indexing: Instant, means: Means
) -> Built:
    """Build base files of partitions as of the moment at which the table is seen; a later decision publishes them.

    Args:
        metadata: The metadata table as it is now.
        indexing: The instant that was requested at that moment.
    """
    files, time = committed_files(seen), indexing.requested_time
    indexed = _columns_with_bounds(seen, indexing) if set(BOUNDED) & set(names) else None
    bounds = None if indexed is None else BoundsOfTable(seen, files, indexed, means, PARTITION_STATS in names)
    bases: list[BuiltBase] = []
    empty_groups: list[tuple[str, str]] = []
    for name in names:
        new_files, without_records = new_bases(seen.storage, time, name, _records(name, files, bounds))
        bases += new_files
        empty_groups += without_records
    index = BuiltIndex(metadata, time, tuple(names), tuple(bases), tuple(empty_groups))
    return Built(index, len(files), () if indexed is None else indexed.names)


def _records(name: str, files: CommittedFiles, bounds: BoundsOfTable | None) -> Sequence[Records]:
    """Return the records of a partition; only the bounds' partitions need `bounds`."""
    if name == FILES or bounds is None:
        return [files_records(files, record_schema())]
    return bounds.file_records() if name == COLUMN_STATS else bounds.partition_records()


def _columns_with_bounds(seen: SeenTable, indexing: Instant) -> IndexedColumns:
    """Return the columns to index by the table's definition; raise `TableConfigError` if it names none."""
    indexed = columns_of(seen, indexing, FileChanges(), bounds_definition(seen.storage))
    if indexed is None or not indexed.fields:
        raise TableConfigError(
            f"No definition says which columns of the table {seen.table.path} have bounds.",
            "Run drop_index('column_stats'), then create_index again.",
        )
    return indexed
