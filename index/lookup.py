"""What indexes that read the table share: which slices they search for which keys, and how they combine the hits.

Each index defines how it searches one slice.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..storage.base import Storage
from ..storage.threads import for_each
from ..table.arrow.string_order import unique_in_order
from ..table.files.file_group import FileSlice
from ..table.files.names import FileGroupId
from ..table.files.view import FileView
from .base import NOT_FOUND, Buckets, KeyedRows, LookupFigures, LookupIndex, Positions, Tags
from .settings import LookupSettings
from .slice_keys import Hits, SliceKeys, WantedKeys


@dataclass(frozen=True, slots=True)
class KeySearch:
    """Rows, by position (None for all), whose keys are looked for in the same file slices, each file group once."""

    rows: Positions | None
    file_slices: Sequence[FileSlice]


Unit = tuple[pa.StringArray, FileSlice]
"""Unique keys in the order of their bytes, and a slice in which they are looked for."""


@dataclass(frozen=True)
class TableLookup(LookupIndex):
    """An index that reads the keys of the table's own files."""

    settings: LookupSettings = field(default_factory=LookupSettings)

    # Whether the index excludes files by the key ranges in their footers.
    reads_ranges: ClassVar[bool] = False

    @property
    def is_global(self) -> bool:
        return False

    @abstractmethod
    def look(self, keys: SliceKeys, wanted: WantedKeys) -> Hits:
        """Return which wanted keys one file slice holds, without false positives."""

    def hits(self, keys: SliceKeys, wanted: WantedKeys) -> Hits:
        """Return which wanted keys one file slice holds, with all of its keys if they were gathered."""
        hits = self.look(keys, wanted)
        return hits if keys.gathered is None else replace(hits, all_keys=keys.gathered.all_keys(keys.slice))

    def searches(self, rows: KeyedRows, view: FileView) -> Iterator[KeySearch]:
        """Yield which rows are looked for in which slices: here the rows of each partition in its own slices."""
        rows_by_partition = dict(by_partition(rows))
        slices = for_each(view.storage, view.slices, rows_by_partition)
        for positions, file_slices in zip(rows_by_partition.values(), slices, strict=True):
            yield KeySearch(positions, tuple(file_slices.values()))

    def tag(self, rows: KeyedRows, view: FileView, storage: Storage) -> Tags:
        """Return where each row's key is; each file is opened once."""

        def look(units: Sequence[Unit]) -> list[Hits]:
            return self.look_here([(keys, SliceKeys(storage, file_slice, view.sees)) for keys, file_slice in units])

        return self.tag_by(rows, view, look)

    def look_here(self, units: Sequence[tuple[pa.StringArray, SliceKeys]]) -> list[Hits]:
        """Return which keys each slice holds, looked up in threads of this process.

        Units of one search share their array of keys.
        """
        # All units of a search share one array of keys, so it is prepared once.
        key_arrays = {id(keys): keys for keys, _ in units}
        wanted_by_array = {each: WantedKeys.of(keys) for each, keys in key_arrays.items()}

        def find(number: int) -> Hits:
            keys, of_slice = units[number]
            return self.hits(of_slice, wanted_by_array[id(keys)])

        # Updates mostly hit young files, and files with hits take longest: start with the youngest.
        order = sorted(range(len(units)), key=lambda number: units[number][1].slice.base_time, reverse=True)
        storage = units[0][1].storage if units else None
        hits_by_unit = (
            {} if storage is None else dict(zip(order, for_each(storage, find, order, computes=True), strict=True))
        )
        return [hits_by_unit[number] for number in range(len(units))]

    def tag_by(self, rows: KeyedRows, view: FileView, look: Callable[[Sequence[Unit]], Sequence[Hits]]) -> Tags:
        """Return where each row's key is; `look` opens the files, for instance in Spark tasks.

        `look` gets pairs of keys and a slice; pairs of one search share their array and come together.
        """
        start_time = time.monotonic()
        gathered = _HitsOfRows(len(rows))
        searches = [_KeyedSearch.of(search, rows) for search in self.searches(rows, view)]
        units = [(search, file_slice) for search in searches for file_slice in search.file_slices]
        looks = look([(search.keys, file_slice) for search, file_slice in units])
        hits = {id(search): list[tuple[FileGroupId, Hits]]() for search in searches}
        for (search, file_slice), seen in zip(units, looks, strict=True):
            hits[id(search)].append((file_slice.group, seen))
        for search in searches:
            gathered.add(search, hits[id(search)])
        return gathered.tags(_figures_of(looks, time.monotonic() - start_time))


class EverywhereLookup(TableLookup):
    """Looks for a key in all partitions, as the global indexes of Apache Hudi do."""

    @property
    def is_global(self) -> bool:
        return True

    def searches(self, rows: KeyedRows, view: FileView) -> Iterator[KeySearch]:
        yield KeySearch(None, view.all_slices())


class SimpleIndex(TableLookup):
    """Finds a record key in its partition by reading the keys of all the partition's file slices.

    Source: ``org.apache.hudi.index.simple.HoodieSimpleIndex``, and ``HoodieGlobalSimpleIndex`` for the other.
    """

    def look(self, keys: SliceKeys, wanted: WantedKeys) -> Hits:
        return keys.hits(wanted)


class GlobalSimpleIndex(EverywhereLookup, SimpleIndex):
    """Finds a record key by reading the keys of all file slices of the table."""


def by_partition(rows: KeyedRows) -> Iterator[tuple[str, Positions]]:
    """Yield each partition with the ascending positions of its rows."""
    numbers = rows.paths.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(rows.paths.dictionary) + 1))
    for number, path in enumerate(rows.paths.dictionary.to_pylist()):  # O(partitions)
        if bounds[number] < bounds[number + 1]:
            yield path, order[bounds[number] : bounds[number + 1]]


@dataclass(frozen=True, slots=True)
class _KeyedSearch:
    """A search with its unique keys, and the position of each row's key among them."""

    rows: Positions
    file_slices: Sequence[FileSlice]
    keys: pa.StringArray
    key_of_row: Positions

    @classmethod
    def of(cls, search: KeySearch, rows: KeyedRows) -> _KeyedSearch:
        """Return a search with the unique keys of its rows in byte order."""
        positions = np.arange(len(rows)) if search.rows is None else search.rows
        keys = rows.record_keys if search.rows is None else rows.record_keys.take(pa.array(positions))
        unique, key_of_row = unique_in_order(keys)
        return cls(positions, search.file_slices, unique, key_of_row)


class _HitsOfRows:
    """Gathers which file groups hold the keys of n rows."""

    def __init__(self, count: int) -> None:
        self._groups: dict[FileGroupId, int] = {}
        self._codes: Buckets = np.full(count, NOT_FOUND, np.int32)
        self._copied: list[Positions] = []
        self._copy_codes: list[Buckets] = []
        self._repeating: set[int] = set()

    def add(self, search: _KeyedSearch, hits: Sequence[tuple[FileGroupId, Hits]]) -> None:
        """Add the hits of one search; the first slice that holds a key is its home, further slices hold copies."""
        home = np.full(len(search.keys), NOT_FOUND, np.int32)
        copies: list[tuple[Positions, int]] = []
        for group, seen in hits:
            if not len(seen.positions):
                continue
            code = self._groups.setdefault(group, len(self._groups))
            if seen.repeats:
                self._repeating.add(code)
            is_first_hit = home[seen.positions] == NOT_FOUND
            home[seen.positions[is_first_hit]] = code
            if not is_first_hit.all():
                copies.append((seen.positions[~is_first_hit], code))
        self._codes[search.rows] = home[search.key_of_row]
        if copies:
            self._add_copies(search, copies)

    def _add_copies(self, search: _KeyedSearch, copies: Sequence[tuple[Positions, int]]) -> None:
        """Note the rows of keys that further slices hold, by joining (key, further slice) with (key, row)."""
        keys = np.concatenate([positions for positions, _ in copies])
        codes = np.repeat([code for _, code in copies], [len(positions) for positions, _ in copies]).astype(np.int32)
        order = np.argsort(search.key_of_row, kind="stable")
        ordered = search.key_of_row[order]
        starts, ends = np.searchsorted(ordered, keys), np.searchsorted(ordered, keys, side="right")
        lengths = ends - starts
        # Positions in `order`: for each copied key the range of its rows, one range after the other.
        order_positions = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(int(lengths.sum()))
        self._copied.append(search.rows[order[order_positions]])
        self._copy_codes.append(np.repeat(codes, lengths))

    def tags(self, figures: LookupFigures) -> Tags:
        """Return where all rows are, once all searches are added."""
        groups, repeating = tuple(self._groups), frozenset(self._repeating)
        if not self._copied:
            return Tags(groups, self._codes, figures, repeating=repeating)
        copied, codes = np.concatenate(self._copied), np.concatenate(self._copy_codes)
        return Tags(groups, self._codes, figures, copied, codes, repeating)


def _figures_of(looks: Sequence[Hits], seconds: float) -> LookupFigures:
    """Return what the looks into all slices cost together."""
    return LookupFigures(
        files=len(looks),
        candidates=sum(seen.was_read for seen in looks),
        false_positives=sum(seen.was_read and not len(seen.positions) for seen in looks),
        bytes=sum(seen.bytes for seen in looks),
        seconds=seconds,
    )
