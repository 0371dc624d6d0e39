"""The simple index: reads the keys of all files that may hold a wanted key.

Source: ``org.apache.hudi.index.simple.HoodieSimpleIndex`` and ``HoodieGlobalSimpleIndex``.
"""

from __future__ import annotations

from .lookup import EverywhereLookup, TableLookup
from .slice_keys import Hits, SliceKeys, WantedKeys


class SimpleIndex(TableLookup):
    """Finds a record key in its partition by reading the keys of all the partition's file slices."""

    def look(self, keys: SliceKeys, wanted: WantedKeys) -> Hits:
        return keys.hits(wanted)


class GlobalSimpleIndex(EverywhereLookup, SimpleIndex):
    """Finds a record key by reading the keys of all file slices of the table."""
