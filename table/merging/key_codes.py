"""Integer codes for arrays of record keys: equal keys have equal codes.

A dictionary of strings yields codes, but takes some eighty bytes for each key, most of it while it grows. Many keys are
therefore coded by their hashes, in a few times eight bytes for each key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.string_hash import hash64

Codes = np.ndarray[Any, np.dtype[np.int32]]
_COMPARED_AT_ONCE = 1 << 18
# A dictionary is faster up to _FEW keys, even if no two keys are equal, and up to _SOME keys if some are.
_FEW, _SOME = 1 << 16, 1 << 20


def key_codes(keys: pa.Array) -> Codes | None:
    """Return a code for each key, none of which is null; None if no two keys are equal."""
    if len(keys) <= _FEW:
        return _by_dictionary(keys)
    hashes = hash64(keys)
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    del ordered
    if len(keys) <= _SOME:
        return _by_dictionary(keys)
    order = np.argsort(hashes)
    hashes = hashes[order]
    like_the_last = hashes[1:] == hashes[:-1]
    del hashes
    if not _are_equal(keys, order, np.flatnonzero(like_the_last)):
        # Different keys with one hash hardly ever occur by chance, but can be made on purpose.
        return _by_dictionary(keys)
    codes = np.empty(len(keys), dtype=np.int32)
    codes[order] = np.cumsum(np.append(False, ~like_the_last), dtype=np.int32)
    return codes


def _by_dictionary(keys: pa.Array) -> Codes | None:
    """Return codes by Arrow's dictionary of the keys; None if no two keys are equal."""
    encoded = keys.dictionary_encode()
    return None if len(encoded.dictionary) == len(keys) else encoded.indices.to_numpy(zero_copy_only=False)


def _are_equal(keys: pa.Array, order: np.ndarray[Any, Any], pairs: np.ndarray[Any, Any]) -> bool:
    """Return whether at each of these positions of an order the key equals the key at the next position."""
    for start in range(0, len(pairs), _COMPARED_AT_ONCE):
        compared = pairs[start : start + _COMPARED_AT_ONCE]
        keys_here, next_keys = (keys.take(pa.array(order[compared + step])) for step in (0, 1))
        if not pc.all(pc.equal(keys_here, next_keys)).as_py():  # one value
            return False
    return True
