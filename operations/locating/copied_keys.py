"""The check of keys that a table holds several times, for rows that a write made of stored rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...index.base import KeyedRows, LookupIndex, Positions, Tags
from ...index.lookup import TableLookup
from ...table.merging.stored_copies import only_some
from ...writer.moved_rows import OldRows


def check_copies(incoming: KeyedRows, rows: KeyedRows, tags: Tags, old_rows: OldRows, index: LookupIndex) -> None:
    """Raise `DuplicateKeyError` if rows that a write made of stored rows cover only some of the stored rows of a key.

    Such a write would change some of the copies alone. The check counts stored rows only of keys that several file
    groups hold, or that a file group holds several times. ``incoming`` are all rows of the write, ``rows`` the rows
    that were looked up in ``index``, and ``tags`` the file groups that hold their keys. ``old_rows`` reads the stored
    rows.
    """
    anywhere = index.is_global
    # The last element is for keys that the table lacks, whose code is -1.
    repeating = np.zeros(len(tags.groups) + 1, np.bool_)
    # An index of another package does not tell how often a file group holds a key.
    repeating[[*tags.repeating] if isinstance(index, TableLookup) else slice(len(tags.groups))] = True
    repeated_rows = np.union1d(tags.copied, np.flatnonzero(repeating[tags.codes]))
    if not len(repeated_rows):
        return
    # All copies of a key are counted at the position of its first row.
    one_of_each = repeated_rows[np.unique(_places(rows, repeated_rows, anywhere), return_index=True)[1]]
    is_copy = np.isin(tags.copied, one_of_each)
    pair_rows = np.append(one_of_each, tags.copied[is_copy])
    codes = np.append(tags.codes[one_of_each], tags.copy_codes[is_copy])
    keys = rows.record_keys.take(pa.array(pair_rows))
    stored = np.zeros(len(rows), np.int64)
    np.add.at(stored, pair_rows, old_rows.stored(keys, tags.groups, codes))
    all_rows = KeyedRows(
        pa.concat_arrays([rows.record_keys.take(pa.array(one_of_each)), incoming.record_keys]),
        pa.concat_arrays(
            [rows.paths.take(pa.array(one_of_each)).dictionary_decode(), incoming.paths.dictionary_decode()]
        ).dictionary_encode(),
    )
    places = _places(all_rows, np.arange(len(all_rows)), anywhere)
    made_counts = np.bincount(places[len(one_of_each) :], minlength=int(places.max()) + 1)[places[: len(one_of_each)]]
    partial_places = np.flatnonzero((stored[one_of_each] > 1) & (stored[one_of_each] > made_counts))
    if len(partial_places):
        row = int(one_of_each[partial_places[0]])
        where = "" if anywhere else f"partition {rows.paths[row].as_py()!r} of "  # one value, for the error
        key = rows.record_keys[row].as_py()  # one value, for the error
        raise only_some(
            key, int(stored[row]), int(made_counts[partial_places[0]]), f"{where}the table {old_rows.storage.path}"
        )


def _places(rows: KeyedRows, at: Positions, anywhere: bool) -> Positions:
    """Return a number for each row at some positions, equal for rows of one key and partition.

    If keys are unique ``anywhere`` in the table, the partition does not count.
    """
    keys = rows.record_keys.take(pa.array(at)).dictionary_encode()
    numbers: Positions = keys.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if anywhere:
        return numbers
    paths = rows.paths.indices.to_numpy(zero_copy_only=False)[at].astype(np.int64)
    return np.unique(paths * len(keys.dictionary) + numbers, return_inverse=True)[1]
