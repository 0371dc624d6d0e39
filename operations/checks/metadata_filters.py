"""Compares the bloom filters of the metadata table with footers of base files, and if these differ with rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...storage.base import split
from ...table.arrow.arrays import plain
from ...table.files.base_file import BaseFileReader
from ...table.files.bloom_filter import FILTER, OLD_FILTER, BloomFilter
from ...table.files.file_group import BaseFile
from ...table.metadata.kinds import BLOOM_FILTERS
from ...table.metadata.record_keys import key_of_filter
from ...table.schema.columns import RECORD_KEY
from .check_catalogue import METADATA_FILTER, METADATA_FILTER_MISSING, METADATA_LEFT
from .column_facts import Change
from .metadata_subject import MetadataSubject


def check_filters_of_metadata(judged: MetadataSubject) -> None:
    """Compare each filter with its base file, and look for base files of newest slices without a filter."""
    seen = check_filters(judged, BLOOM_FILTERS, pa.field(RECORD_KEY, pa.string()))
    for file_slice in judged.newest:
        file = file_slice.base
        if file is None or file.path in seen:
            continue
        with judged.subject.unreadable(file.path), BaseFileReader(judged.subject.storage, file.path) as reader:
            if _filter_in_footer(reader) is not None:
                judged.add(METADATA_FILTER_MISSING, BLOOM_FILTERS, f"there is none of {file.path}.")


def check_filters(
    judged: MetadataSubject, partition: str, column: pa.Field, change: Change | None = None
) -> frozenset[str]:
    """Report filters that lack values of their files' column, after ``change``; return the files that have filters.

    ``change`` is None for filters of record keys, which footers have, too.
    """
    files = {key_of_filter(*split(path)): file for path, file in judged.committed.items() if isinstance(file, BaseFile)}
    seen: set[str] = set()
    for records in judged.entries(judged.metadata.partition(partition)):
        filters = records.field("BloomFilterMetadata").filter(records.field("BloomFilterMetadata").is_valid())
        keys = records.field("key").filter(records.field("BloomFilterMetadata").is_valid())
        for at, key in enumerate(keys.to_pylist()):  # O(files)
            file = files.get(key)
            if file is None:
                judged.add(METADATA_LEFT, partition, f"it has a filter with the key {key!r}, which no base file has.")
                continue
            seen.add(file.path)
            with judged.subject.unreadable(file.path):
                entry = filters[at].as_py()  # O(files): a filter of each
                _check_filter(judged, partition, file, entry, column, change)
    return frozenset(seen)


def _check_filter(
    judged: MetadataSubject, partition: str, file: BaseFile, entry: Any, column: pa.Field, change: Change | None
) -> None:
    """Report a filter that cannot be read, or lacks a value of the column in its file.

    ``partition`` of the metadata table ``judged`` has the filter, and ``entry`` is the field ``BloomFilterMetadata`` of
    its record. ``change`` is the expression of the column whose values the filter has; None for a filter of record
    keys. Such a filter that equals the filter in the file's footer is not compared with rows: `check_rows` does that.
    """
    text = bytes(entry["bloomFilter"] or b"")
    with BaseFileReader(judged.subject.storage, file.path) as reader:
        in_footer = _filter_in_footer(reader)
        # An empty filter is right if the footer has none, either.
        if change is None and (text == in_footer or (not text and in_footer is None)):
            return
        try:
            bloom = BloomFilter.decode(text, entry["type"])
        except ValueError as error:
            judged.add(METADATA_FILTER, partition, f"the filter of {file.path} cannot be read ({error}).")
            return
        for rows in reader.batches(pa.schema([column])):
            values = plain(rows.column(column.name)).drop_null()
            looked_up = values if change is None else change(values)
            is_lacking = pa.array(~bloom.may_hold(looked_up))
            if pc.any(is_lacking, min_count=0).as_py():  # one value a batch
                value = looked_up.filter(is_lacking)[0].as_py()  # one value, to be named
                judged.add(METADATA_FILTER, partition, f"the filter of {file.path} lacks {value!r} in {column.name}.")
                return


def _filter_in_footer(reader: BaseFileReader) -> bytes | None:
    """Return the bloom filter of record keys in a base file's footer; None without."""
    footer = dict(reader.parquet.metadata.metadata or {})
    return footer.get(FILTER.encode()) or footer.get(OLD_FILTER.encode())
