"""The simple index: the keys of all files that may hold one are read and met with those that are looked for.

Source: ``org.apache.hudi.index.simple.HoodieSimpleIndex``, which joins them likewise.
"""

from __future__ import annotations

from .lookup import TableLookup
from .slice_keys import Hits, SliceKeys, WantedKeys


class SimpleIndex(TableLookup):
    """Finds a record key in its partition by reading the keys of all its file slices."""

    def look(self, keys: SliceKeys, wanted: WantedKeys) -> Hits:
        """Return which of some keys one file slice holds."""
        return keys.hits(wanted)
