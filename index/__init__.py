"""Which file group holds a record key; this package exports what the author of an index needs."""

from __future__ import annotations

from ..table.files.names import FileGroupId
from .base import NOT_FOUND, GroupKeys, Index, KeyedRows, LookupFigures, LookupIndex, Tags
from .outside import News, OutsideIndex
from .settings import LookupSettings

__all__ = [
    "NOT_FOUND",
    "FileGroupId",
    "GroupKeys",
    "Index",
    "KeyedRows",
    "LookupFigures",
    "LookupIndex",
    "LookupSettings",
    "News",
    "OutsideIndex",
    "Tags",
]
