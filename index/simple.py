"""The simple index: the keys of all files that may hold one are read and met with those that are looked for.

Source: ``org.apache.hudi.index.simple.HoodieSimpleIndex``, which joins them likewise.
"""

from __future__ import annotations

from collections.abc import Callable

from ..storage.base import Storage
from ..table.files.file_group import FileSlice
from .lookup import TableLookup
from .slice_keys import Hits, WantedKeys, confirm


class SimpleIndex(TableLookup):
    """Finds a record key in its partition by reading the keys of all its file slices."""

    def look(self, storage: Storage, piece: FileSlice, wanted: WantedKeys, sees: Callable[[str], bool]) -> Hits:
        """Return which of some keys one file slice holds."""
        return confirm(storage, piece, wanted, sees)
