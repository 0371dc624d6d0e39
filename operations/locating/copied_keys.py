"""The check of keys that a table holds several times, for rows that a write made of stored rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...index.base import KeyedRows, LookupIndex, Positions, Tags
from ...index.lookup import TableLookup
from ...table.merging.stored_copies import only_some
from ...writer.moved_rows import OldRows


def check_copies(incoming: KeyedRows, rows: KeyedRows, tags: Tags, old: OldRows, index: LookupIndex) -> None:
    """Raise `DuplicateKeyError` if rows were made of only some of the stored rows of a key.

    ``incoming`` are all rows of the write, ``rows`` the rows that were looked up.
    """
    anywhere = index.is_global
    repeating = np.zeros(len(tags.groups) + 1, np.bool_)
    # An index of another package does not tell how often a file group holds a key.
    repeating[[*tags.repeating] if isinstance(index, TableLookup) else slice(len(tags.groups))] = True
    several = np.union1d(tags.copied, np.flatnonzero(repeating[tags.codes]))
    if not len(several):
        return
    chosen = several[np.unique(_places(rows, several, anywhere), return_index=True)[1]]
    further = np.isin(tags.copied, chosen)
    of_pair = np.append(chosen, tags.copied[further])
    codes = np.append(tags.codes[chosen], tags.copy_codes[further])
    keys = rows.record_keys.take(pa.array(of_pair))
    stored = np.zeros(len(rows), np.int64)
    np.add.at(stored, of_pair, old.stored(keys, tags.groups, codes))
    every = KeyedRows(
        pa.concat_arrays([rows.record_keys.take(pa.array(chosen)), incoming.record_keys]),
        pa.concat_arrays(
            [rows.paths.take(pa.array(chosen)).dictionary_decode(), incoming.paths.dictionary_decode()]
        ).dictionary_encode(),
    )
    places = _places(every, np.arange(len(every)), anywhere)
    made = np.bincount(places[len(chosen) :], minlength=int(places.max()) + 1)[places[: len(chosen)]]
    partly = np.flatnonzero((stored[chosen] > 1) & (stored[chosen] > made))
    if len(partly):
        row = int(chosen[partly[0]])
        where = "" if anywhere else f"partition {rows.paths[row].as_py()!r} of "  # one value, for the error
        key = rows.record_keys[row].as_py()  # one value, for the error
        raise only_some(key, int(stored[row]), int(made[partly[0]]), f"{where}the table {old.storage.path}")


def _places(rows: KeyedRows, at: Positions, anywhere: bool) -> Positions:
    """Return a number for each row, equal for rows of one key and partition, or of one key ``anywhere``."""
    keys = rows.record_keys.take(pa.array(at)).dictionary_encode()
    numbers: Positions = keys.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if anywhere:
        return numbers
    paths = rows.paths.indices.to_numpy(zero_copy_only=False)[at].astype(np.int64)
    return np.unique(paths * len(keys.dictionary) + numbers, return_inverse=True)[1]
