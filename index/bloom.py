"""The bloom index: ranges and filters in the footers of base files rule most of them out before any key is read.

Source: ``org.apache.hudi.index.bloom.HoodieBloomIndex``.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import ClassVar

from ..table.config.table_config import TableConfig
from ..table.files.base_file import open_base
from ..table.files.bloom_filter import BloomSettings
from ..table.files.file_group import BaseFile
from ..table.files.key_footers import FEW, FOOTERS, KeyFooter
from ..table.files.output import Output
from .lookup import EverywhereLookup, TableLookup
from .slice_keys import Hits, SliceKeys, WantedKeys, hits_of_base

# Once a local file may hold one wanted key among this many rows, its keys are read as fast as its filter is decoded.
_MANY = 8


class BloomIndex(TableLookup):
    """Finds record keys per partition: file footers exclude most files, the key columns of the others decide."""

    reads_ranges: ClassVar[bool] = True

    def look(self, keys: SliceKeys, wanted: WantedKeys) -> Hits:
        """Return which wanted keys a slice holds; the keys of log files are always read, as they have no filters."""
        base = keys.slice.base
        hits = Hits.none() if base is None else self._look_at_base(keys, base, wanted)
        return hits + keys.hits_of_logs(wanted)

    def _look_at_base(self, keys: SliceKeys, file: BaseFile, wanted: WantedKeys) -> Hits:
        """Return which wanted keys a base file holds.

        The cached range and filter exclude the file, or some keys, first. Its footer comes next, and its keys are read
        only if some may be in it.
        """
        storage, by_range = keys.storage, self.settings.prunes_by_ranges
        # The cache may have dropped the filter; the range alone may exclude the file.
        cached_footer = FOOTERS.peek(storage, file) or KeyFooter(FOOTERS.range_of(storage, file))
        possible = cached_footer.possible(wanted.filtered, by_range=by_range)
        if not len(possible):
            return Hits.none()
        with ExitStack() as stack:
            base = stack.enter_context(open_base(storage, file))
            if cached_footer.filter is None:
                footer = FOOTERS.keep(storage, file, base.parquet)
                possible = KeyFooter(footer.range).possible(wanted.filtered, by_range=by_range)
                # A filter of many keys takes as long to decode as a local key column takes to read.
                if storage.remote or len(possible) <= max(FEW, base.rows // _MANY):
                    possible = footer.possible(wanted.filtered, by_range=by_range)
            if not len(possible):
                return Hits.none(base.parquet.metadata.serialized_size)
            # A part of the keys needs a probe of its own; the probe of all is there already.
            if 2 * len(possible) > len(wanted):
                return hits_of_base(base, file, wanted, keys.gathered)
            return hits_of_base(base, file, wanted.part(possible), keys.gathered).at(possible)


def filters_for(config: TableConfig, output: Output) -> BloomSettings | None:
    """Return the bloom filters of a table's base files; Apache Hudi fails on a file without under a bloom index."""
    if config.generates_keys:
        return None
    return output.bloom if output.bloom_filter or "BLOOM" in (config.index_type or "").upper() else None


class GlobalBloomIndex(EverywhereLookup, BloomIndex):
    """Finds a record key by the footers of all base files, then by the key columns of the files that may hold it."""
