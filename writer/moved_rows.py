"""Rows whose key lies in another partition than theirs, under an index whose keys are unique in the whole table.

Such a row moves: it is deleted where it was and added to its own partition, in one commit, if it wins against the row
that it was. Where rows are not to move, and where a row is a delete, it goes to where its key is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..index.base import NOT_FOUND, Buckets, KeyedRows, Positions, Tags
from ..storage.base import Storage
from ..storage.parallel import for_each
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
    """For n pairs of an incoming row and a file group that holds its key: is a stored row live, and does it win?

    Attributes:
        live: Whether the file group holds a row of the key; it may have been deleted by a log file since.
        wins: Whether such a row wins against the incoming one.
        since: When the base file of the file group's slice was begun, as a number: the greater, the later the group.
    """

    live: Mask
    wins: Mask
    since: Positions

    def take(self, at: Positions, seen: PairState) -> None:
        """Note the states of some of the pairs."""
        self.live[at], self.wins[at], self.since[at] = seen.live, seen.wins, seen.since


Look = Callable[[Positions, Buckets], PairState]


@dataclass(frozen=True, slots=True)
class Settled:
    """Where n rows go of which each has a key of its own; those that lose against a row that is there go nowhere.

    Attributes:
        rows: Positions of rows that meet rows of their keys, one for each place.
        codes: The place of the file group of each among those that were found.
        new: Positions of rows whose keys their partitions are to get, ascending.
        leaving: Positions of rows that delete their key where it was, once for each place.
        left: The place of the file group that each of them leaves.
    """

    rows: Positions
    codes: Buckets
    new: Positions
    leaving: Positions
    left: Buckets


def settle(keyed: KeyedRows, tags: Tags, deletes: Mask, look: Look, *, moves: bool) -> Settled:
    """Return where rows go whose keys were looked up in the whole table.

    Args:
        keyed: n rows, no two of one key where rows move.
        tags: Where their keys are.
        deletes: Which of the rows are deletes, which go to wherever their key is; none of what adds rows alone.
        look: Looks at rows of the table, where a row could move or has several places.
        moves: Whether rows move to their own partitions.
    """
    found = np.flatnonzero(tags.codes != NOT_FOUND)
    rows, codes = np.append(found, tags.copied), np.append(tags.codes[found], tags.copy_codes)
    number = {path: at for at, path in enumerate(keyed.paths.dictionary.to_pylist())}  # O(partitions)
    home = np.array([number.get(group.partition_path, -1) for group in tags.groups], np.int64)
    elsewhere = home[codes] != keyed.paths.indices.to_numpy(zero_copy_only=False)[rows]
    places = np.bincount(rows, minlength=len(keyed))
    asked = np.flatnonzero((elsewhere | (places[rows] > 1)) & ~deletes[rows])
    states = _untold(len(rows))
    live, wins = states.live, states.wins
    if len(asked):
        states.take(asked, look(rows[asked], codes[asked]))
    live |= _last_of_dead(rows, states, ~elsewhere)
    moving = elsewhere & ~deletes[rows] & moves
    lost = np.zeros(len(keyed), np.bool_)
    lost[rows[moving & live & wins]] = True
    stays = live & ~lost[rows]
    meets, gone = stays & ~moving, stays & moving
    absent = ~lost
    absent[rows[meets]] = False
    return Settled(rows[meets], codes[meets], np.flatnonzero(absent), rows[gone], codes[gone])


def living(tags: Tags, deletes: Mask, look: Look) -> Tags:
    """Return tags without the places of keys that log files took a row away from, where it has others.

    An insert that looked for no key may have put it elsewhere since; a row that went to both would bring it back.

    Args:
        tags: Where n rows' keys are, each in the row's own partition.
        deletes: Which of the rows are deletes, which go to wherever their key is; none of what adds rows alone.
        look: Looks at rows of the table.
    """
    if not len(tags.copied):
        return tags
    several = np.unique(tags.copied)
    rows, codes = np.append(several, tags.copied), np.append(tags.codes[several], tags.copy_codes)
    states = _untold(len(rows))
    asked = np.flatnonzero(~deletes[rows])
    states.take(asked, look(rows[asked], codes[asked]))
    live = states.live | _last_of_dead(rows, states, np.ones(len(rows), np.bool_))
    rows, codes = rows[live], codes[live]
    first = np.unique(rows, return_index=True)[1]
    home = tags.codes.copy()
    home[rows[first]] = codes[first]
    return replace(tags, codes=home, copied=np.delete(rows, first), copy_codes=np.delete(codes, first))


def _untold(count: int) -> PairState:
    """Return the states of pairs that need no look at stored rows."""
    return PairState(np.ones(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.int64))


def _last_of_dead(rows: Positions, states: PairState, may: Mask) -> Mask:
    """Return the last place of each row that has no live one, of those that it may have: there it meets the delete.

    A row comes to a newer file group after it was deleted in an older one, whose delete is the older one of the two.
    """
    dead = np.flatnonzero(may & ~np.isin(rows, rows[states.live]))
    dead = dead[np.argsort(-states.since[dead], kind="stable")]
    chosen = np.zeros(len(rows), np.bool_)
    chosen[dead[np.unique(rows[dead], return_index=True)[1]]] = True
    return chosen


@dataclass(frozen=True, slots=True)
class OldRows:
    """The rows of the table against which incoming rows are held that could move, or whose keys have several places.

    Attributes:
        storage: Rooted at the table.
        spec: What incoming rows hold.
        judges: Whether it matters which row wins.
        piece_of: Returns the slice of a file group.
        read: Yields some columns of the rows of a slice, those of the given unique keys at least.
    """

    storage: Storage
    spec: RowSpec
    judges: bool
    piece_of: Callable[[FileGroupId], FileSlice]
    read: Callable[[FileSlice, pa.Schema, pa.StringArray], Iterator[pa.RecordBatch]]

    def look(self, incoming: pa.RecordBatch, groups: Sequence[FileGroupId]) -> Look:
        """Return what looks at the rows that n incoming rows could meet; each file is opened once.

        Args:
            incoming: The deciding columns of the rows.
            groups: The file groups that were found.
        """
        ordering = self.spec.ordering(incoming) if self.judges else ()

        def look(rows: Positions, codes: Buckets) -> PairState:
            states = _untold(len(rows))
            file_slices = {code: self.piece_of(groups[code]) for code in np.unique(codes).tolist()}
            for code, file_slice in file_slices.items():
                states.since[codes == code] = int(file_slice.base_time)
            wanted = [(code, file_slice) for code, file_slice in file_slices.items() if ordering or file_slice.logs]
            places = [np.flatnonzero(codes == code) for code, _ in wanted]

            def one(unit: tuple[FileSlice, Positions]) -> tuple[Mask, Mask]:
                some = pa.array(rows[unit[1]])
                keys = incoming.column(RECORD_KEY).take(some)
                return self._states(unit[0], keys, [values.take(some) for values in ordering])

            units = list(zip((file_slice for _, file_slice in wanted), places, strict=True))
            for (_, pairs), (live, wins) in zip(units, for_each(self.storage, one, units), strict=True):
                states.live[pairs], states.wins[pairs] = live, wins
            return states

        return look

    def _states(self, file_slice: FileSlice, keys: pa.StringArray, ordering: Sequence[pa.Array]) -> tuple[Mask, Mask]:
        """Return whether one slice has rows of the keys of some, and whether they win.

        Args:
            file_slice: The slice.
            keys: Their keys, which differ where any ordering is given.
            ordering: Their ordering values; none where nothing is to be judged.
        """
        judges = [self.spec.schema.field(name).with_nullable(True) for name in self.spec.ordering_fields if ordering]
        wanted = pa.schema([pa.field(RECORD_KEY, pa.string()), *judges])
        unique = keys.dictionary_encode()
        probe = KeyProbe.over(unique.dictionary)
        live, wins = np.zeros(len(unique.dictionary), np.bool_), np.zeros(len(unique.dictionary), np.bool_)
        for batch in self.read(file_slice, wanted, unique.dictionary):
            found = probe.find(batch.column(RECORD_KEY))
            at = np.flatnonzero(found >= 0)
            hits = found[at]
            live[hits] = True
            if len(at) and ordering:
                old = [batch.column(one.name).take(pa.array(at)) for one in judges]
                wins[hits[base_wins(old, [values.take(pa.array(hits)) for values in ordering])]] = True
        of_each = unique.indices.to_numpy(zero_copy_only=False)
        return live[of_each], wins[of_each]


def tombstones(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows as deletes of their keys, with the same ordering values: they win where the rows would have won.

    Args:
        rows: Rows with the flag that says so.
    """
    at = rows.schema.get_field_index(IS_DELETED)
    return rows.set_column(at, rows.schema.field(at), pa.array(np.ones(rows.num_rows, np.bool_)))
