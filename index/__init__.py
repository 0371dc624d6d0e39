"""Which file group holds a record key; what authors of an index need is named here."""

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
