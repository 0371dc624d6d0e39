"""The metadata table under examination, and what its entries are compared with: files of completed writes, and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ...reader.scan import MergeTerms, RowReader
from ...storage.base import join, split
from ...table.arrow.arrays import mask
from ...table.files.base_file import BaseFileReader
from ...table.files.cleaned import files_of
from ...table.files.file_group import DataFile, FileSlice, data_file, is_change_data
from ...table.latest_schema import latest_schema
from ...table.metadata.index_definitions import IndexDefinition, index_definitions
from ...table.metadata.kinds import by_partition, groups_of
from ...table.metadata.metadata_table import FOLDER, MetadataPartition, MetadataTable
from ...table.schema.columns import with_meta
from .check_catalogue import METADATA_MISPLACED, TORN_INSTANT
from .finding import Check
from .subject import Subject


@dataclass(frozen=True)
class MetadataSubject:
    """A metadata table that has all completed writes, and its table."""

    subject: Subject
    metadata: MetadataTable

    def add(self, check: Check, partition: str, what: str) -> None:
        """Report what is wrong with one partition of the metadata table."""
        self.subject.findings.add(check, f"{partition} of the metadata table: {what}", file=join(FOLDER, partition))

    @cached_property
    def listed(self) -> Mapping[str, DataFile]:
        """The data files of the table's folders by their paths, files of change data too."""
        parsed = (
            data_file(info.path, info.size, changes=True)
            for files in self.subject.folders.partitions.values()
            for info in files
        )
        return {file.path: file for file in parsed if file is not None}

    @cached_property
    def makers(self) -> Mapping[str, frozenset[str]]:
        """The instants that wrote each listed file; none for a log file of which a rollback took back every block."""
        files = list(self.listed.values())
        made_by = self.subject.table.format.makers_of_each(files, self.subject.timeline)
        return {file.path: makers for file, makers in zip(files, made_by, strict=True)}

    @cached_property
    def committed(self) -> Mapping[str, DataFile]:
        """The listed files with rows that completed writes made; their file groups may be replaced since."""
        subject = self.subject
        return {
            path: file
            for path, file in self.listed.items()
            if self.makers[path] and all(map(subject.is_complete, self.makers[path])) and not is_change_data(file)
        }

    @cached_property
    def indexes(self) -> Mapping[str, IndexDefinition]:
        """The definitions of the table's indexes."""
        return index_definitions(self.subject.storage)

    @cached_property
    def newest(self) -> tuple[FileSlice, ...]:
        return tuple(group.newest for group in self.subject.live)

    @cached_property
    def absent(self) -> frozenset[str]:
        """The files of newest slices that the listing of the folders lacks.

        Such a file is lost, which `check_files` reports, or younger than the listing.
        """
        view = self.subject.view()
        return frozenset(file.path for partition in view.named_partitions() for file in view.lost(partition))

    @cached_property
    def leaving(self) -> frozenset[str]:
        """The files that pending cleans delete; the metadata table lists them until the cleans complete."""
        subject = self.subject
        paths: set[str] = set()
        for instant in subject.timeline.pending:
            if instant.action == "clean":
                with subject.turning(TORN_INSTANT, instant):
                    plan = subject.timeline.files.read_clean(instant)
                    parts = files_of([plan]).values() if plan else ()
                    paths.update(file.path for files in parts for file in files)
        return frozenset(paths)

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's columns, meta columns included."""
        return with_meta(latest_schema(self.subject.config, self.subject.timeline) or pa.schema([]))

    def rows(self, file_slice: FileSlice, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a slice's rows, as readers see them."""
        storage = self.subject.storage
        if file_slice.base is not None and not file_slice.logs:
            with BaseFileReader(storage, file_slice.base.path) as reader:
                yield from reader.batches(columns)
            return
        terms = MergeTerms(self.subject.config)
        yield from RowReader(storage, columns, self.schema, terms=terms).merged(file_slice)

    def entries(self, partition: MetadataPartition) -> Iterator[pa.StructArray]:
        """Yield all records of a partition, and report keys whose hash leads to another file group."""
        for file_ids in by_partition(list(partition.slices)).values():
            for group_number, file_id in enumerate(file_ids):  # O(file groups)
                for records in partition.records_in(file_id):
                    self.check_hashes(partition, records.field("key"), file_id, group_number, len(file_ids))
                    yield records

    def check_hashes(
        self, partition: MetadataPartition, keys: pa.StringArray, file_id: str, group_number: int, count: int
    ) -> None:
        """Report the keys of a file group whose hash leads to another file group.

        ``group_number`` is the number of the file group among the ``count`` file groups of its index.
        """
        if not partition.kind.by_hash:
            return
        misplaced = groups_of(keys, count) != group_number
        if misplaced.any():
            first_key = keys[int(misplaced.argmax())].as_py()  # one value, to be named
            what = (
                f"the file group {file_id} has {int(misplaced.sum())} keys of other file groups, {first_key!r} first."
            )
            self.add(METADATA_MISPLACED, partition.name, what)


def first_of(values: pa.Array, chosen: pa.Array) -> str:
    """Return the first of the chosen values for a sentence, with their number if there are several."""
    count = int(mask(chosen).sum())
    value = values[int(mask(chosen).argmax())].as_py()  # one value, to be named
    return f"{count}, of which {value!r} is the first" if count > 1 else repr(value)


def name_of(path: str) -> str:
    return split(path)[1]


def any_in(chosen: pa.Array) -> bool:
    """Return whether a mask has any True; a mask without rows has none."""
    return bool(pc.any(chosen, min_count=0).as_py())  # one value a call
