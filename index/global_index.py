"""Indexes that look for a key in all partitions, as ``HoodieGlobalSimpleIndex`` and ``HoodieGlobalBloomIndex`` do."""

from __future__ import annotations

from collections.abc import Iterator

from ..table.files.view import FileView
from .base import KeyedRows
from .bloom import BloomIndex
from .lookup import KeySearch, TableLookup
from .simple import SimpleIndex


class EverywhereLookup(TableLookup):
    @property
    def is_global(self) -> bool:
        return True

    def searches(self, rows: KeyedRows, view: FileView) -> Iterator[KeySearch]:
        yield KeySearch(None, view.all_slices())


class GlobalSimpleIndex(EverywhereLookup, SimpleIndex):
    """Finds a record key by reading the keys of all file slices of the table."""


class GlobalBloomIndex(EverywhereLookup, BloomIndex):
    """Finds a record key by the footers of all base files, then by the key columns of the files that may hold it."""
