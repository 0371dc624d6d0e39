"""Values of composite record keys by which two rows would share one key.

A record key of several columns reads ``a:1,b:2`` and escapes nothing: (``x,b:y``, ``z``) and (``x``, ``y,b:z``) make
one key. Null and the empty text have words of their own, which are texts, too. Of two rows that make one key, a value
of one row continues with the name of the next column.

Source: ``KeyGenUtils.getRecordKey`` of Apache Hudi 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.arrays import Mask, mask
from ..arrow.string_hash import string_buffers
from .generator import EMPTY_KEY, NULL_KEY, KeyPart


@dataclass(frozen=True, slots=True)
class KeyReadings:
    """Finds values with a second reading, in n rows of the columns of a key that hold texts.

    Attributes:
        fields: All columns of the key.
    """

    fields: tuple[str, ...]

    def refused(self, columns: Sequence[KeyPart]) -> Mask | None:
        """Return which rows have a value that continues as a later column, or is a word for null or empty; None: none.

        Without such rows, different values make different keys.
        """
        rows = None
        for name, texts in columns:
            rows = _either(rows, _named_in(texts, self.fields[self.fields.index(name) + 1 :]))
            rows = _either(rows, _any(pc.or_(pc.equal(texts, NULL_KEY), pc.equal(texts, EMPTY_KEY))))
        return rows

    def shared(self, columns: Sequence[KeyPart]) -> Mask | None:
        """Return which rows make a key that a row with other values can make, too; None if none.

        These are the rows that `refused` finds and their counterparts, such as rows with a null or an empty text.
        """
        rows = self.refused(columns)
        for name, texts in columns:
            rows = _either(rows, _named_in(texts, self.fields[1 : self.fields.index(name) + 1]))
            rows = _either(rows, _any(pc.fill_null(pc.equal(texts, ""), True)))
        return rows

    def is_refused(self, field: str, text: str | None) -> bool:
        """Return whether `refused` finds a value of a key column."""
        later = self.fields[self.fields.index(field) + 1 :]
        return text in {NULL_KEY, EMPTY_KEY} or any(_next_name(name) in (text or "") for name in later)


def _next_name(name: str) -> str:
    return f",{name}:"


def _named_in(texts: pa.StringArray, names: Sequence[str]) -> Mask | None:
    rows = None
    for name in names:
        if _is_in_buffer(texts, _next_name(name).encode()):
            rows = _either(rows, _any(pc.match_substring(texts, _next_name(name))))
    return rows


def _is_in_buffer(texts: pa.StringArray, part: bytes) -> bool:
    """Return whether the joined texts hold some bytes, a fifth of the time that it takes to ask text by text."""
    data, _ = string_buffers(texts)
    return re.search(re.escape(part), data.data) is not None


def _any(rows: pa.BooleanArray) -> Mask | None:
    return mask(pc.fill_null(rows, False)) if pc.any(rows).as_py() else None  # O(1)


def _either(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return np.asarray(left | right)
