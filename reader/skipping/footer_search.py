"""Which file slices and row groups a search leaves, by the footers of their base files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...storage.base import Storage
from ...storage.threads import for_each
from ...table.config import TableConfig
from ...table.files.base_file import open_base
from ...table.files.file_group import BaseFile, FileSlice
from ...table.files.footers import leaves_of
from ...table.files.key_footers import FOOTERS
from ...table.schema.columns import RECORD_KEY
from .answers import NOTHING, JudgedFiles
from .search import Search

# With more files, the tasks read the footers instead.
_MOST_KEY_FOOTERS = 1024
# These footers are not cached, and Spark's own reader skips row groups by them, too.
_MOST_FOOTERS = 256


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group to read; ``size`` counts the bytes of the columns that are read."""

    number: int
    size: int


def matching_slices(
    storage: Storage, config: TableConfig, search: Search, slices: Sequence[FileSlice], judged: JudgedFiles = NOTHING
) -> list[FileSlice]:
    """Return the slices that may hold rows of a search, by the keys and bounds in the footers of their base files.

    ``slices`` have no log files, of whose rows a footer does not tell. ``storage`` and ``config`` are the table's.
    Footers are not read for what other sources have ``judged`` already, nor if there are too many: then the tasks of
    the read look into them.
    """
    slices_left = list(slices)
    # First by the keys of whole files, then by the bounds of columns in row groups.
    if search.keys is not None:
        unjudged = [file_slice for file_slice in slices_left if file_slice.base_file.path not in judged.keys]
        if len(unjudged) <= _MOST_KEY_FOOTERS:
            matching = _filtered(
                storage, unjudged, lambda file_slice: search.may_be_in(FOOTERS.read(storage, file_slice.base_file))
            )
            slices_left = _without_mismatches(slices_left, unjudged, matching)
    by_value = search.columns - {*config.partition_fields}
    # Values of the keys' own columns say no more than keys.
    by_key = by_value <= {RECORD_KEY, *config.record_key_fields}
    unjudged = [
        file_slice
        for file_slice in slices_left
        if file_slice.base_file.path not in judged.bounds and not (by_key and file_slice.base_file.path in judged.keys)
    ]
    if not by_value or len(unjudged) > _MOST_FOOTERS:
        return slices_left
    matching = _filtered(storage, unjudged, lambda file_slice: bool(row_groups(storage, file_slice.base_file, search)))
    return _without_mismatches(slices_left, unjudged, matching)


def row_groups(storage: Storage, file: BaseFile, search: Search, columns: Sequence[str] = ()) -> list[RowGroup]:
    """Return the row groups of a base file that a search leaves, each with the size of some columns."""
    with open_base(storage, file) as reader:
        metadata = reader.parquet.metadata
        leaves = leaves_of(reader.parquet, columns)
        return [
            RowGroup(number, sum(metadata.row_group(number).column(leaf).total_compressed_size for leaf in leaves))
            for number in search.row_groups(reader.parquet, file.path)
        ]


def _without_mismatches(
    slices: Sequence[FileSlice], tested: Sequence[FileSlice], matching: Sequence[FileSlice]
) -> list[FileSlice]:
    """Return the slices without those of ``tested`` that are not ``matching``."""
    mismatches = {file_slice.base_file.path for file_slice in tested} - {
        file_slice.base_file.path for file_slice in matching
    }
    return [file_slice for file_slice in slices if file_slice.base_file.path not in mismatches]


def _filtered(storage: Storage, slices: Sequence[FileSlice], may_match: Callable[[FileSlice], bool]) -> list[FileSlice]:
    """Return the slices for which a test holds, which runs in several threads."""
    answers = for_each(storage, may_match, slices, computes=True)
    return [file_slice for file_slice, may in zip(slices, answers, strict=True) if may]
