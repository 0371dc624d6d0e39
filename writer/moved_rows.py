"""Rows whose key lies in another partition than theirs, under an index whose keys are unique in the whole table.

Such a row moves if it wins against the stored row: one commit deletes that and adds the row to its own partition. A
delete goes to the place of its key, and so do all rows if the table does not move rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..index.base import NOT_FOUND, Buckets, KeyedRows, Positions, Tags
from ..storage.base import Storage
from ..storage.threads import for_each
from ..table.arrow.arrays import Mask
from ..table.files.file_group import FileSlice
from ..table.files.names import FileGroupId
from ..table.merging.deletes import IS_DELETED
from ..table.merging.key_probe import KeyProbe
from ..table.merging.row_spec import RowSpec
from ..table.merging.winners import base_wins
from ..table.schema.columns import RECORD_KEY


@dataclass(frozen=True, slots=True)
class PairState:
    """For n pairs (incoming row, file group that holds its key): is a stored row live, and does it win?

    Attributes:
        live: False if a log file has deleted the key from the file group.
        wins: Whether the stored row wins against the incoming row.
        since: Instant time of the slice's base file as a number: the greater, the newer the group.
    """

    live: Mask
    wins: Mask
    since: Positions

    def take(self, at: Positions, seen: PairState) -> None:
        """Set the states of the pairs at some positions to those ``seen``."""
        self.live[at], self.wins[at], self.since[at] = seen.live, seen.wins, seen.since


Look = Callable[[Positions, Buckets], PairState]


@dataclass(frozen=True, slots=True)
class ResolvedRows:
    """Where n rows go, whose keys differ; rows that lose against a stored row go nowhere.

    Attributes:
        rows: Positions of rows that go to a file group with a stored row of their key, once for each such group.
        codes: The code of that file group, for each of `rows`.
        new: Positions of rows whose keys are new to their partitions, ascending.
        leaving: Positions of rows that delete their key from another partition, once for each file group.
        left: The code of that file group, for each of `leaving`.
    """

    rows: Positions
    codes: Buckets
    new: Positions
    leaving: Positions
    left: Buckets


def resolve(keyed: KeyedRows, tags: Tags, deletes: Mask, look: Look, *, moves: bool) -> ResolvedRows:
    """Return where rows go, once their keys were looked up in the whole table. Rows that may move have distinct keys.

    `keyed` has the keys and the partitions of the rows, `tags` the file groups that hold these keys.
    `deletes` says which rows delete their keys, `moves` whether rows move to the partition of their own columns.
    `look` compares incoming with stored rows; it is called for rows that could move or whose key has several places.
    """
    stored = np.flatnonzero(tags.codes != NOT_FOUND)
    rows, codes = np.append(stored, tags.copied), np.append(tags.codes[stored], tags.copy_codes)
    numbers_by_path = {path: at for at, path in enumerate(keyed.paths.dictionary.to_pylist())}  # O(partitions)
    # The partition of each file group as a number among those of the rows; -1 for a partition without rows.
    home = np.array([numbers_by_path.get(group.partition_path, -1) for group in tags.groups], np.int64)
    is_elsewhere = home[codes] != keyed.paths.indices.to_numpy(zero_copy_only=False)[rows]
    places = np.bincount(rows, minlength=len(keyed))
    pairs_to_read = np.flatnonzero((is_elsewhere | (places[rows] > 1)) & ~deletes[rows])
    states = _unread_states(len(rows))
    live, wins = states.live, states.wins
    if len(pairs_to_read):
        states.take(pairs_to_read, look(rows[pairs_to_read], codes[pairs_to_read]))
    live |= _newest_deleted_places(rows, states, ~is_elsewhere)
    is_moving = is_elsewhere & ~deletes[rows] & moves
    is_beaten = np.zeros(len(keyed), np.bool_)
    is_beaten[rows[is_moving & live & wins]] = True
    is_shown = live & ~is_beaten[rows]
    meets_stored_row, leaves_partition = is_shown & ~is_moving, is_shown & is_moving
    is_new = ~is_beaten
    is_new[rows[meets_stored_row]] = False
    return ResolvedRows(
        rows[meets_stored_row],
        codes[meets_stored_row],
        np.flatnonzero(is_new),
        rows[leaves_partition],
        codes[leaves_partition],
    )


def living(tags: Tags, deletes: Mask, look: Look) -> Tags:
    """Return tags without places from which log files deleted the key, if the key has other places.

    An insert without a lookup may have put the key elsewhere since. A row that went to both places would bring it back.
    `deletes` says which rows delete their keys: these go to all places.
    """
    if not len(tags.copied):
        return tags
    rows_with_copies = np.unique(tags.copied)
    rows, codes = np.append(rows_with_copies, tags.copied), np.append(tags.codes[rows_with_copies], tags.copy_codes)
    states = _unread_states(len(rows))
    pairs_to_read = np.flatnonzero(~deletes[rows])
    states.take(pairs_to_read, look(rows[pairs_to_read], codes[pairs_to_read]))
    live = states.live | _newest_deleted_places(rows, states, np.ones(len(rows), np.bool_))
    rows, codes = rows[live], codes[live]
    # The first place that stays becomes the row's own, and further places are copies.
    first_places = np.unique(rows, return_index=True)[1]
    home = tags.codes.copy()
    home[rows[first_places]] = codes[first_places]
    return replace(tags, codes=home, copied=np.delete(rows, first_places), copy_codes=np.delete(codes, first_places))


def _unread_states(count: int) -> PairState:
    """Return the states of pairs that need no look at stored rows."""
    return PairState(np.ones(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.int64))


def _newest_deleted_places(rows: Positions, states: PairState, is_allowed: Mask) -> Mask:
    """Return a mask of pairs: for each row whose key is live in no place, the newest place among those ``is_allowed``.

    ``rows`` has the row of each pair, and a pair stands for one place of the row's key. The rows meet the delete there.
    A key comes to a newer file group only after its delete in an older group.
    """
    dead_places = np.flatnonzero(is_allowed & ~np.isin(rows, rows[states.live]))
    dead_places = dead_places[np.argsort(-states.since[dead_places], kind="stable")]
    chosen = np.zeros(len(rows), np.bool_)
    chosen[dead_places[np.unique(rows[dead_places], return_index=True)[1]]] = True
    return chosen


@dataclass(frozen=True, slots=True)
class OldRows:
    """The stored rows to compare with incoming rows that could move, or whose keys have several places."""

    storage: Storage
    spec: RowSpec
    judges: bool  # whether it matters which row wins
    slice_of: Callable[[FileGroupId], FileSlice]
    read: Callable[[FileSlice, pa.Schema, pa.StringArray], Iterator[pa.RecordBatch]]

    def look(self, incoming: pa.RecordBatch, groups: Sequence[FileGroupId]) -> Look:
        """Return a function that compares n incoming rows with stored rows; it opens each file once.

        The function gets positions in ``incoming`` and, for each of them, the position among ``groups`` of a file group
        that holds the row's key.
        """
        ordering = self.spec.ordering(incoming) if self.judges else ()

        def look(rows: Positions, codes: Buckets) -> PairState:
            """Return the state of each pair of an incoming row and a file group."""
            states = _unread_states(len(rows))
            file_slices = {code: self.slice_of(groups[code]) for code in np.unique(codes).tolist()}
            for code, file_slice in file_slices.items():
                states.since[codes == code] = int(file_slice.base_time)
            # Without log files each key that was found is live; the rows are read only to compare ordering values.
            wanted = [(code, file_slice) for code, file_slice in file_slices.items() if ordering or file_slice.logs]
            pairs_of_slices = [np.flatnonzero(codes == code) for code, _ in wanted]

            def states_of(unit: tuple[FileSlice, Positions]) -> tuple[Mask, Mask]:
                """Return for the pairs of one slice, given by position, whether stored rows are live, and win."""
                chosen = pa.array(rows[unit[1]])
                keys = incoming.column(RECORD_KEY).take(chosen)
                return self._states(unit[0], keys, [values.take(chosen) for values in ordering])

            units = list(zip((file_slice for _, file_slice in wanted), pairs_of_slices, strict=True))
            for (_, pairs), (live, wins) in zip(units, for_each(self.storage, states_of, units), strict=True):
                states.live[pairs], states.wins[pairs] = live, wins
            return states

        return look

    def stored(self, keys: pa.StringArray, groups: Sequence[FileGroupId], codes: Buckets) -> Positions:
        """Return for each of n keys how many rows its file group shows; ``codes`` has its position in ``groups``."""
        counts = np.zeros(len(keys), np.int64)
        for code in np.unique(codes).tolist():
            pairs = np.flatnonzero(codes == code)
            probe = KeyProbe(keys.take(pa.array(pairs)))
            for batch in self.read(
                self.slice_of(groups[code]), pa.schema([pa.field(RECORD_KEY, pa.string())]), probe.keys
            ):
                hits = probe.find(batch.column(RECORD_KEY))
                np.add.at(counts, pairs[hits[hits >= 0]], 1)
        return counts

    def _states(self, file_slice: FileSlice, keys: pa.StringArray, ordering: Sequence[pa.Array]) -> tuple[Mask, Mask]:
        """Return for each key whether a slice has a live row of it, and whether that row wins against the incoming row.

        ``ordering`` has the ordering values of the incoming rows; empty if it does not matter which row wins.
        """
        ordering_columns = [
            self.spec.schema.field(name).with_nullable(True) for name in self.spec.ordering_fields if ordering
        ]
        wanted = pa.schema([pa.field(RECORD_KEY, pa.string()), *ordering_columns])
        unique = keys.dictionary_encode()
        probe = KeyProbe(unique.dictionary)
        live, wins = np.zeros(len(unique.dictionary), np.bool_), np.zeros(len(unique.dictionary), np.bool_)
        for batch in self.read(file_slice, wanted, unique.dictionary):
            positions = probe.find(batch.column(RECORD_KEY))
            at = np.flatnonzero(positions >= 0)
            hits = positions[at]
            live[hits] = True
            if len(at) and ordering:
                old = [batch.column(column.name).take(pa.array(at)) for column in ordering_columns]
                wins[hits[base_wins(old, [values.take(pa.array(hits)) for values in ordering])]] = True
        row_of_pair = unique.indices.to_numpy(zero_copy_only=False)
        return live[row_of_pair], wins[row_of_pair]


def tombstones(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows as deletes with the same ordering values, which win if the rows would have won."""
    at = rows.schema.get_field_index(IS_DELETED)
    return rows.set_column(at, rows.schema.field(at), pa.array(np.ones(rows.num_rows, np.bool_)))
