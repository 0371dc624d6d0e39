"""All record keys that file groups hold, read as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

import pyarrow as pa
import pyarrow.compute as pc

from ...index.base import GroupKeys
from ...reader.merging import MergeTerms, merge_slice
from ...storage.parallel import for_each
from ...table.files.base_file import BaseFileReader
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ...table.files.view import FileView
from ...table.schema.columns import RECORD_KEY
from ...table.table import Table

_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])
# So many file groups are read beside each other, and their keys held.
_AT_ONCE = 8


def read_keys(table: Table, view: FileView, schema: pa.Schema, groups: Sequence[FileGroupId]) -> Iterator[GroupKeys]:
    """Yield the keys of some file groups, of a few of them read at once.

    Args:
        table: The table.
        view: The table's file slices at the moment wanted.
        schema: The table's data columns, by which log files are merged.
        groups: The file groups, in order; one that the view does not have is yielded without keys.

    Raises:
        CorruptFileError: A file cannot be read.
    """
    slices = lru_cache(maxsize=1)(view.slices)
    for start in range(0, len(groups), _AT_ONCE):
        some = groups[start : start + _AT_ONCE]
        pieces = [slices(one.partition_path).get(one.file_id) for one in some]
        found = for_each(table.storage, partial(_keys_of, table, schema), pieces)
        yield from (GroupKeys(group, keys) for group, keys in zip(some, found, strict=True))


def _keys_of(table: Table, schema: pa.Schema, piece: FileSlice | None) -> pa.Array:
    if piece is None:
        return pa.array([], pa.string())
    if piece.logs:
        rows = merge_slice(table.storage, piece, _KEYS, (), schema, MergeTerms(table.config), None)
        return _distinct([one.column(RECORD_KEY) for one in rows])
    with BaseFileReader(table.storage, piece.base_file.path) as reader:
        return _distinct([one.column(RECORD_KEY) for one in reader.batches(_KEYS)])


def _distinct(parts: Sequence[pa.Array]) -> pa.Array:
    return pc.unique(pa.chunked_array(parts, pa.string()).drop_null())
