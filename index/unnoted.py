"""The lookup of a table of another engine that notes no index, whose keys may be unique in the whole table.

A key is looked for in its own partition. A key that its partition lacks is looked for in the others, too: under a
global index of the other engine the row would move, and a row that is added beside it doubles the key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import MissingOptionError
from ..storage.threads import for_each
from ..table.arrow.string_order import unique_in_order
from ..table.config import property_keys as names
from ..table.files.bloom_filter import FilterKeys
from ..table.files.file_group import FileSlice
from ..table.files.key_footers import FOOTERS, KeyFooter
from ..table.files.view import FileView
from .base import NOT_FOUND, KeyedRows, LookupFigures, Positions, Tags
from .lookup import SimpleIndex, Unit
from .slice_keys import Hits

# As many footers are read before the number of candidates is judged again.
_FOOTERS_AT_ONCE = 256


class UnnotedIndex(SimpleIndex):
    """Finds a record key in its partition, and refuses rows whose keys other partitions hold."""

    reads_ranges: ClassVar[bool] = True

    def tag_by(self, rows: KeyedRows, view: FileView, look: Callable[[Sequence[Unit]], Sequence[Hits]]) -> Tags:
        """Return where each row's key is; raise `MissingOptionError` as `refuse_elsewhere`."""
        tags = super().tag_by(rows, view, look)
        absent = np.flatnonzero(tags.codes == NOT_FOUND)
        if not len(absent):
            return tags
        return replace(tags, figures=tags.figures + self.refuse_elsewhere(rows, absent, view, look))

    def refuse_elsewhere(
        self, rows: KeyedRows, absent: Positions, view: FileView, look: Callable[[Sequence[Unit]], Sequence[Hits]]
    ) -> LookupFigures:
        """Look in all other partitions for the keys of rows that their own partitions lack; return what it cost.

        ``absent`` has the positions of these rows. ``look`` looks for keys in file slices, and returns the keys that it
        found, slice by slice in their order. Raises `MissingOptionError` if another partition holds a key, or if
        footers leave too many files to be opened.
        """
        at = pa.array(absent)
        keys, _ = unique_in_order(rows.record_keys.take(at))
        own_partitions = set(rows.paths.take(at).unique().dictionary_decode().to_pylist())  # O(partitions)
        # If the rows are of several partitions, each of these may hold keys of the others.
        slices = [file_slice for file_slice in view.all_slices() if own_partitions != {file_slice.partition_path}]
        candidates = self._candidates(keys, slices, view)
        if len(candidates) > self.settings.most_elsewhere:
            raise self.too_many(f"{len(keys):,}", keys[0].as_py(), view)  # one value, for the error
        looks = look([(keys, file_slice) for file_slice in candidates]) if candidates else []
        for file_slice, hits in zip(candidates, looks, strict=True):
            if len(hits.positions):
                key = keys[int(hits.positions[0])].as_py()  # one value, for the error
                row = pc.index(rows.record_keys.take(at), key).as_py()  # O(1)
                path = rows.paths[int(absent[row])].as_py()  # one value, for the error
                raise self.key_elsewhere(key, path, file_slice.partition_path, view)
        # None of these slices holds a key, so each that was read is a false positive.
        slices_read = sum(hits.was_read for hits in looks)
        return LookupFigures(len(slices), len(candidates), slices_read, sum(hits.bytes for hits in looks))

    def _candidates(self, keys: pa.StringArray, slices: Sequence[FileSlice], view: FileView) -> list[FileSlice]:
        """Return the slices that may hold some of the keys by their footers.

        The search ends after a part of the slices if more were found than may be opened.
        """
        filter_keys = FilterKeys(keys)

        def may_hold(file_slice: FileSlice) -> bool:
            """Return whether a slice may hold some of the keys; True if it has log files, whose keys no footer has."""
            base = file_slice.base
            if base is None or file_slice.logs:
                return True
            # A range that this process has kept may exclude the file, which is then not opened for its filter. If none
            # is kept, all keys are possible here.
            keys_in_range = KeyFooter(FOOTERS.range_of(view.storage, base)).possible(filter_keys)
            return len(keys_in_range) > 0 and len(FOOTERS.read(view.storage, base).possible(filter_keys)) > 0

        candidates: list[FileSlice] = []
        for start in range(0, len(slices), _FOOTERS_AT_ONCE):
            part = slices[start : start + _FOOTERS_AT_ONCE]
            may_hold_keys = for_each(view.storage, may_hold, part, computes=True)
            candidates += [file_slice for file_slice, may_be in zip(part, may_hold_keys, strict=True) if may_be]
            if len(candidates) > self.settings.most_elsewhere:
                break
        return candidates

    def too_many(self, count: str, key: str, view: FileView) -> MissingOptionError:
        """Return the error of a search that would open too many files for some number of keys."""
        return unknown_index(
            f"More than {self.settings.most_elsewhere} files of other partitions may hold some of {count} record keys "
            f"that their own partitions lack, such as {key!r} (hoodie.pyhudi.unnoted.index.max.files)",
            view.storage.path,
        )

    def key_elsewhere(self, key: str, path: str, home: str, view: FileView) -> MissingOptionError:
        """Return the error of a row whose key another partition holds."""
        return unknown_index(
            f"The record key {key!r} of a row for partition {path!r} is in partition {home!r}", view.storage.path
        )


def unknown_index(what: str, where: str) -> MissingOptionError:
    """Return the error of a write whose result would depend on the index that a table does not note, given its path."""
    return MissingOptionError(
        f"{what}. The table {where} notes no index, so that it is unknown whether its keys are unique in the whole "
        "table or within their partitions.",
        f"Say once which of both, as the table's other writers do; pyhudi remembers it in the table. "
        f"{names.INDEX_TYPE}={names.GLOBAL_SIMPLE} or {names.GLOBAL_BLOOM}: such a row leaves its old partition. "
        f"{names.INDEX_TYPE}={names.SIMPLE} or {names.BLOOM}: a key may be in several partitions.",
    )
