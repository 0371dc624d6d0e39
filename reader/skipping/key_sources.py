"""Which file slices can hold some record keys: by the record index, and by the filters of base files' keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ...table.files.bloom_filter import FilterKeys
from ...table.files.file_group import FileSlice
from ...table.files.key_footers import FooterFilter, KeyFooter
from ...table.metadata.kinds import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.record_keys import key_of_filter
from ...table.metadata.record_places import RecordPlaces, has_all_keys, record_places
from ...table.metadata.trusted import TrustedMetadata
from ...table.schema.columns import RECORD_KEY
from .answers import Answer, JudgedFiles, base_paths
from .statistics import StatedByMetadata

_FILTER = "BloomFilterMetadata"
# Filters are large. For more files, the tasks read the footers, which have the same filters.
MOST_FILTERS = 1024
_FILTERS_AT_ONCE = 128
# The keys of a larger index are not counted.
_MOST_GROUPS = 256


@dataclass(frozen=True)
class IndexedRows:
    """The rows of all file slices of a query, before any source skips some, and their entries in indexes.

    ``is_whole`` says whether these are the slices of all partitions.
    """

    trusted: TrustedMetadata
    slices: Sequence[FileSlice]
    is_whole: bool

    def places(self, keys: pa.StringArray) -> RecordPlaces | None:
        """Return where the record index has keys; None if it may lack rows."""
        rows = self._rows
        if rows is None:
            return None
        most = self._most_groups
        return self.trusted.ask(
            RECORD_INDEX,
            lambda index: record_places(index, keys, rows, is_whole=self.is_whole, most_groups=most),
        )

    def are_all_in(self, name: str) -> bool:
        """Return whether an index of the whole table has an entry for each row."""
        rows = self._rows if self.is_whole else None
        if rows is None:
            return False
        count = sum(rows.values())
        return self.trusted.ask(name, lambda index: has_all_keys(index, count, self._most_groups)) is True

    @property
    def _most_groups(self) -> int:
        """How many file groups of an index may be opened: each takes as long as a base file, which it may save."""
        return min(len(self.slices), _MOST_GROUPS)

    @cached_property
    def _rows(self) -> Mapping[str, int] | None:
        """The number of rows in the base files of each partition, by the metadata table; None if it does not tell."""
        bases = [file_slice.base for file_slice in self.slices if file_slice.base is not None]
        if len(bases) < len(self.slices):
            return None
        counts = self.trusted.ask(COLUMN_STATS, lambda partition: StatedByMetadata(partition).rows(bases, RECORD_KEY))
        if counts is None:
            return None
        rows: dict[str, int] = {}
        for file_slice, count in zip(self.slices, counts, strict=True):  # O(files)
            rows[file_slice.partition_path] = rows.get(file_slice.partition_path, 0) + count
        return rows


@dataclass(frozen=True, slots=True)
class RecordIndexSource:
    """The record index, which answers only for the present: it names the newest file group of each key."""

    rows: IndexedRows
    keys: pa.StringArray
    name: str = RECORD_INDEX

    def slices_left(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> Answer | None:
        """Return the slices that the record index names for the keys; None if the index may lack rows."""
        places = self.rows.places(self.keys)
        if places is None:
            return None
        slices_named = in_places(slices, places)
        covered = [file_slice for file_slice in slices_named if places.covers(file_slice.partition_path)]
        return Answer(slices_named, JudgedFiles(keys=base_paths(covered)))


def in_places(slices: Sequence[FileSlice], places: RecordPlaces) -> list[FileSlice]:
    """Return the slices whose file group an index names, and those that the index does not cover."""
    return [
        file_slice
        for file_slice in slices
        if file_slice.group in places.groups or not places.covers(file_slice.partition_path)
    ]


@dataclass(frozen=True, slots=True)
class BloomFilterSource:
    """The filters of base files' keys; they say nothing of keys in log files."""

    trusted: TrustedMetadata
    keys: pa.StringArray
    name: str = BLOOM_FILTERS

    def slices_left(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> Answer | None:
        """Return the slices whose filters allow a wanted key.

        A slice with log files, without a filter, or already judged by its keys stays. None if there are too many
        filters, or no answer.
        """
        paths_by_key = {
            key_of_filter(file_slice.partition_path, file_slice.base.name): file_slice.base.path
            for file_slice in slices
            if file_slice.base is not None and not file_slice.logs and file_slice.base.path not in judged.keys
        }
        if not paths_by_key or len(paths_by_key) > MOST_FILTERS:
            return None
        filters = self.trusted.ask(BLOOM_FILTERS, lambda partition: dict(self._may_hold(partition, paths_by_key)))
        if filters is None:
            return None
        paths_without_keys = {path for path, may_hold in filters.items() if not may_hold}
        remaining = [
            file_slice
            for file_slice in slices
            if file_slice.base is None or file_slice.base.path not in paths_without_keys
        ]
        return Answer(remaining, JudgedFiles(keys=frozenset(filters) - paths_without_keys))

    def _may_hold(self, partition: MetadataPartition, paths_by_key: dict[str, str]) -> Iterator[tuple[str, bool]]:
        """Yield the path of each file that has a filter, and whether the file may have a key."""
        keys = FilterKeys(self.keys)
        names = list(paths_by_key)
        for at in range(0, len(names), _FILTERS_AT_ONCE):  # O(files)
            for records in partition.find(pa.array(names[at : at + _FILTERS_AT_ONCE])):
                filters = stored_filters(records, paths_by_key)
                for key, footer in zip(records.field("key").to_pylist(), filters, strict=True):  # O(files)
                    if footer is not None:
                        yield paths_by_key[key], len(footer.possible(keys)) > 0


def stored_filters(records: pa.StructArray, shown: dict[str, str]) -> Iterator[KeyFooter | None]:
    """Yield the filter of each record, None if it has none; ``shown`` has a name for the log by each key."""
    stored = records.field(_FILTER)
    texts, codes = stored.field("bloomFilter"), stored.field("type")
    for key, text, code in zip(records.field("key").to_pylist(), texts, codes, strict=True):  # O(files)
        data = text.as_py()  # one value a call
        filter_ = FooterFilter(data, str(code).encode(), None, shown.get(key, key)) if data else None
        yield None if filter_ is None or filter_.get() is None else KeyFooter(None, filter_)


def any_of(values: Collection[str]) -> FilterKeys:
    """Return values, of which any may be in a filter, in the order of their bytes, hashed to be looked for."""
    return FilterKeys(pa.array(sorted(values, key=str.encode), pa.string()))
