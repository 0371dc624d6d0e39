"""Which file slices can hold some record keys: by the record index, and by the filters of base files' keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ...table.files.bloom_filter import FilterKeys
from ...table.files.file_group import FileSlice
from ...table.files.key_footers import FooterFilter, KeyFooter
from ...table.metadata.kinds import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from ...table.metadata.metadata_table import MetadataPartition
from ...table.metadata.record_keys import key_of_filter
from ...table.metadata.record_places import RecordPlaces, keys_of, record_places
from ...table.metadata.trusted import TrustedMetadata
from ...table.schema.columns import RECORD_KEY
from .answers import Answer, JudgedFiles, base_paths
from .statistics import StatedByMetadata

_FILTER = "BloomFilterMetadata"
# Filters are large. Of more files the tasks read the footers, which have the same filters.
MOST_FILTERS = 1024
_FILTERS_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class RecordIndexSource:
    """The record index, of which only the answer of now counts: it names one file group a key, the newest."""

    trusted: TrustedMetadata
    keys: pa.StringArray
    name: str = RECORD_INDEX

    def left(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> Answer | None:
        places = places_of(self.trusted, self.keys, slices)
        if places is None:
            return None
        named = in_places(slices, places)
        return Answer(
            named,
            JudgedFiles(
                keys=base_paths([file_slice for file_slice in named if places.covers(file_slice.partition_path)])
            ),
        )


def places_of(trusted: TrustedMetadata, keys: pa.StringArray, slices: Sequence[FileSlice]) -> RecordPlaces | None:
    """Return where the record index has keys in the partitions of slices; None where it says nothing.

    To open a file group of the index takes as long as to open a base file, so no more of them are opened. Of several
    rows with one key the index names one, which is all that Apache Hudi shows by it: here it has to have as many keys
    as the slices have rows.
    """
    partitions = list(dict.fromkeys(file_slice.partition_path for file_slice in slices))
    places = trusted.ask(RECORD_INDEX, lambda index: record_places(index, keys, partitions, len(slices)))
    return places if places is not None and _names_every_row(trusted, places, slices) else None


def _names_every_row(trusted: TrustedMetadata, places: RecordPlaces, slices: Sequence[FileSlice]) -> bool:
    covered: dict[str | None, list[FileSlice]] = {}
    for file_slice in slices:
        if places.covers(file_slice.partition_path):
            partition = None if places.partitions is None else file_slice.partition_path
            covered.setdefault(partition, []).append(file_slice)
    return all(
        rows_in(trusted, of_index) == trusted.ask(RECORD_INDEX, partial(keys_of, partition=partition))
        for partition, of_index in covered.items()
    )


def rows_in(trusted: TrustedMetadata, slices: Sequence[FileSlice]) -> int:
    """Return how many rows the base files of slices have, by the metadata table; -1 where it does not say of each."""
    bases = [file_slice.base for file_slice in slices if file_slice.base is not None]
    if len(bases) < len(slices):
        return -1
    rows = trusted.ask(COLUMN_STATS, lambda partition: StatedByMetadata(partition).rows(bases, RECORD_KEY))
    return -1 if rows is None else rows


def in_places(slices: Sequence[FileSlice], places: RecordPlaces) -> list[FileSlice]:
    """Return slices of which an index names the file group, and those of which it says nothing."""
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

    def left(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> Answer | None:
        asked = {
            key_of_filter(file_slice.partition_path, file_slice.base.name): file_slice.base.path
            for file_slice in slices
            if file_slice.base is not None and not file_slice.logs and file_slice.base.path not in judged.keys
        }
        if not asked or len(asked) > MOST_FILTERS:
            return None
        filters = self.trusted.ask(BLOOM_FILTERS, lambda partition: dict(self._may_hold(partition, asked)))
        if filters is None:
            return None
        without = {path for path, may_hold in filters.items() if not may_hold}
        left = [file_slice for file_slice in slices if file_slice.base is None or file_slice.base.path not in without]
        return Answer(left, JudgedFiles(keys=frozenset(filters) - without))

    def _may_hold(self, partition: MetadataPartition, asked: dict[str, str]) -> Iterator[tuple[str, bool]]:
        """Yield the path of each file that has a filter, and whether the file may have a key."""
        keys = FilterKeys(self.keys)
        names = list(asked)
        for at in range(0, len(names), _FILTERS_AT_ONCE):  # O(files)
            for found in partition.find(pa.array(names[at : at + _FILTERS_AT_ONCE])):
                filters = stored_filters(found, asked)
                for key, footer in zip(found.field("key").to_pylist(), filters, strict=True):  # O(files)
                    if footer is not None:
                        yield asked[key], len(footer.possible(keys)) > 0


def stored_filters(records: pa.StructArray, shown: dict[str, str]) -> Iterator[KeyFooter | None]:
    """Yield the filter of each record, None where it has none; ``shown`` has a name for the log by each key."""
    stored = records.field(_FILTER)
    texts, codes = stored.field("bloomFilter"), stored.field("type")
    for key, text, code in zip(records.field("key").to_pylist(), texts, codes, strict=True):  # O(files)
        data = text.as_py()  # one value a call
        filter_ = FooterFilter(data, str(code).encode(), None, shown.get(key, key)) if data else None
        yield None if filter_ is None or filter_.get() is None else KeyFooter(None, filter_)


def any_of(values: Collection[str]) -> FilterKeys:
    """Return values to look for in filters, in the order of their bytes."""
    return FilterKeys(pa.array(sorted(values, key=str.encode), pa.string()))
