"""Whether file groups hold the keys of rows with some of the columns, before these are appended to their log files."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..table.files.file_group import FileSlice
from ..table.merging.key_probe import KeyProbe
from ..table.merging.merger import check_known
from ..table.schema.columns import RECORD_KEY
from .slice_reader import SliceReader

_KEYS = pa.schema([pa.field(RECORD_KEY, pa.string())])


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Looks keys up in the slices that rows are appended to.

    Attributes:
        slices: Reads them.
    """

    slices: SliceReader

    def check(self, piece: FileSlice | None, keys: pa.Array, where: str) -> None:
        """Refuse keys of which the slice shows no row.

        Args:
            piece: The slice; None for a new file group.
            keys: No two alike.
            where: The file group, for messages.

        Raises:
            KeyNotFoundError: There are some.
        """
        known = np.zeros(len(keys), dtype=np.bool_)
        if piece is not None and len(keys):
            probe = KeyProbe.over(keys)
            with closing(self.slices.read(piece, _KEYS, keys)) as batches:
                for batch in batches:
                    found = probe.find(batch.column(RECORD_KEY))
                    known[found[found >= 0]] = True
        check_known(keys.filter(pa.array(~known)), where)
