"""Partial rows, which give some columns only and leave the others to the rows that they are laid over.

Rules of ``BufferedRecordMergerFactory`` and ``PartialUpdateHandler`` in Apache Hudi 1.2. Hudi merges the entries of a
key in turn: of two entries, it lays the entry with the greater ordering value over the other, whichever came first, so
that a late entry still fills open columns. pyhudi computes the result for all keys at once. An entry is *on top* if
no entry before it has a greater ordering value. A column's value comes from the last entry on top that gives it, or,
if no such entry does, from the first other entry that gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..arrow.arrays import Mask
from ..arrow.batches import concat
from ..schema.columns import RECORD_KEY
from .key_codes import key_codes
from .key_probe import KeyProbe
from .merger import MergeCounts, hidden_bases
from .row_spec import Judged
from .winners import Positions, base_wins, joint_ranks, yielding

# (rows with the deciding columns, the column's name, its values) -> which rows give the column; None for all.
Given = Callable[[pa.RecordBatch | None, str, pa.Array], Mask | None]


class Overlay:
    """Lays incoming rows over each other, and the result over base rows or below them.

    ``incoming`` has whole rows, later rows further down. ``given`` gets no batch for base rows. A column that the
    incoming rows lack keeps its base value. Rows of ``complete`` give all columns of the table: such a row takes the
    place of all base rows of its key that it beats, and other rows change each base row of their key.
    """

    def __init__(
        self,
        spec: Judged,
        incoming: pa.RecordBatch,
        given: Given,
        columns: list[str],
        complete: Mask | None = None,
    ) -> None:
        self._spec = spec
        self._given = given
        self._columns = columns
        chains = _Chains.of(spec, incoming)
        self._deleted = chains.deleted[chains.winner]
        tops = incoming.take(pa.array(chains.winner))
        self._keys = tops.column(RECORD_KEY)
        self._ordering = spec.ordering(tops)
        hidden = hidden_bases(spec, incoming, chains.winner)
        self._hidden = np.zeros(len(self._keys), dtype=np.bool_) if hidden is None else hidden
        self._states: dict[str, pa.Array] = {}
        self._is_open: dict[str, Mask] = {}
        for name in (column for column in columns if column in incoming.schema.names):
            values = incoming.column(name)
            giving_rows, is_open = chains.chosen(given(incoming, name, values))
            self._states[name] = values.take(pa.array(giving_rows))
            if is_open is not None:
                self._is_open[name] = is_open
        self._matched, self._changed, self._outdone = (np.zeros(len(self._keys), dtype=np.bool_) for _ in range(3))
        self._complete = chains.complete(complete) & ~self._deleted
        self._removed = 0

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """Yield the base rows that no incoming row removes, in batches, and whether incoming rows changed the batch.

        Unchanged rows have the columns of ``base``, changed rows only those that the overlay lays. It remembers which
        incoming rows met a base row, or lost against one, for its counts and arrivals.
        """
        probe = KeyProbe(self._keys)
        for batch in base:
            positions = probe.find(batch.column(RECORD_KEY))
            rows = np.flatnonzero(positions >= 0)
            if not len(rows):
                yield batch, False
                continue
            # By base row, the position of the incoming row that it meets.
            met = positions[rows]
            stays = self._stays(batch, rows, met)
            self._matched[met] = True
            self._outdone[met[stays]] = True
            # A delete, or a row with all columns, takes the place of the base rows that it beats.
            takes = self._deleted[met] | self._complete[met]
            # No value of a hidden base row counts: the row that came after the delete arrives as if it were new.
            removed = (takes & ~stays) | self._hidden[met]
            self._removed += int(np.count_nonzero(removed))
            # A delete or a whole row with a lesser ordering value does not change its base row.
            is_laid = ~takes & ~removed
            laid, changed = self._laid(batch, rows[is_laid], met[is_laid], stays[is_laid])
            self._changed[met[is_laid][changed]] = True
            untouched = np.ones(batch.num_rows, dtype=np.bool_)
            untouched[rows[removed]] = False
            untouched[rows[is_laid][changed]] = False
            yield batch.filter(pa.array(untouched)), False
            if changed.any():
                yield laid.filter(pa.array(changed)), True

    def arrivals(self) -> pa.RecordBatch:
        """Return the rows of keys that no base row had, and those that replace all base rows of their keys."""
        rows = pa.array(np.flatnonzero(self._unmet | self._replacing))
        names = [name for name in self._columns if name in self._states]
        return pa.RecordBatch.from_arrays([self._states[name].take(rows) for name in names], names)

    @property
    def counts(self) -> MergeCounts:
        """What became of the rows, once `survivors` is exhausted."""
        replacing = int(np.count_nonzero(self._replacing))
        return MergeCounts(
            inserts=int(np.count_nonzero(self._unmet)),
            updates=int(np.count_nonzero(self._changed)) + replacing,
            deletes=self._removed - replacing,
            not_found=int(np.count_nonzero(self._deleted & ~self._matched)),
            keys=len(self._keys),
        )

    @property
    def _unmet(self) -> Mask:
        return ~self._deleted & ~self._matched

    @property
    def _replacing(self) -> Mask:
        """The rows that take the place of all base rows of their keys: whole rows, and those after a hiding delete."""
        return ~self._deleted & self._matched & (self._hidden | (self._complete & ~self._outdone))

    def _stays(self, batch: pa.RecordBatch, rows: Positions, states: Positions) -> Mask:
        """Return which base rows have a greater ordering value than the incoming row of their key."""
        if not self._ordering:
            return np.zeros(len(rows), dtype=np.bool_)
        older = [batch.column(name).take(pa.array(rows)) for name in self._spec.ordering_fields]
        return base_wins(older, [values.take(pa.array(states)) for values in self._ordering]) & ~self._hidden[states]

    def _laid(
        self, batch: pa.RecordBatch, rows: Positions, states: Positions, stays: Mask
    ) -> tuple[pa.RecordBatch, Mask]:
        """Return base rows merged with the incoming rows of their keys, and which base rows are changed.

        The incoming row is laid below a base row that stays. As in Apache Hudi, a base row that an incoming row covers
        counts as changed even if the values are equal; a base row that stays does if it leaves a column open.
        """
        columns, changed = [], ~stays
        for name in self._columns:
            ours = batch.column(name).take(pa.array(rows))
            if name not in self._states:
                columns.append(ours)
                continue
            theirs = self._states[name].take(pa.array(states))
            base_gives = self._given(None, name, ours)
            fills = np.zeros(len(rows), dtype=np.bool_) if base_gives is None else ~base_gives
            covers = ~self._is_open[name][states] if name in self._is_open else True
            changed |= stays & fills
            takes_incoming = np.where(stays, fills, covers)
            places = np.arange(len(rows)) + np.where(takes_incoming, len(rows), 0)
            columns.append(pa.concat_arrays([ours, theirs]).take(pa.array(places)))
        return pa.RecordBatch.from_arrays(columns, self._columns), changed


def merged_partially(spec: Judged, rows: pa.RecordBatch, given: Given) -> pa.RecordBatch:
    """Return one row for each key, with all values that its rows give; a delete if the key is gone.

    ``given`` tells which rows give a column.
    """
    chains = _Chains.of(spec, rows)
    columns = []
    for name in rows.schema.names:
        values = rows.column(name)
        giving_rows = chains.winner if name in spec.ordering_fields else chains.chosen(given(rows, name, values))[0]
        columns.append(values.take(pa.array(giving_rows)))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def after_resets(spec: Judged, rows: pa.RecordBatch, merged: pa.RecordBatch) -> pa.RecordBatch:
    """Return merged rows behind the deletes among ``rows`` that take all base rows of their keys away."""
    unordered = spec.unordered(rows, spec.deleted(rows))
    if unordered is None or not unordered.any():
        return merged
    return concat([rows.filter(pa.array(unordered)), spec.decided(merged)])


@dataclass(frozen=True, slots=True)
class _Chains:
    """The rows sorted by key; *places* count in this order, *positions* in the batch.

    Attributes:
        position: The position of the row at each place.
        first: The places at which keys begin.
        top: By place: whether the row is on top.
        filling: By place: whether the row can fill an open column.
        winner: For each key the position of its last row on top.
        deleted: By position: whether the row is a delete.
    """

    position: Positions
    first: Positions
    top: Mask
    filling: Mask
    winner: Positions
    deleted: Mask

    @classmethod
    def of(cls, spec: Judged, rows: pa.RecordBatch) -> _Chains:
        """Return the chains of a write's rows, or of the entries of logs; later rows lie further down in ``rows``.

        ``spec`` says which rows are deletes, and which ordering values they have. A row is on top if no row of its key
        before it has a greater value.
        """
        codes = key_codes(rows.column(RECORD_KEY))
        code = np.arange(rows.num_rows, dtype=np.int32) if codes is None else codes
        position = np.argsort(code, kind="stable")
        code = code[position]
        begins = np.append(True, code[1:] != code[:-1])
        first = np.flatnonzero(begins)
        deleted = spec.deleted(rows)
        is_deleted = deleted[position]
        nothing = np.zeros(len(code), dtype=np.bool_)
        unordered, yields = spec.unordered(rows, deleted), spec.yielding(rows)
        resets = nothing if unordered is None else unordered[position]
        # These deletes change nothing, as a delete without an ordering value came before them.
        passed = nothing if yields is None else yielding(code, resets, yields[position])
        top = _on_top(begins, resets, passed, joint_ranks(spec.ordering(rows), len(code))[position])
        places = np.arange(len(code))
        last_top = np.maximum.reduceat(np.where(top, places, -1), first)
        # The last delete on top removes all rows before it; the next row on top begins anew.
        ended = np.maximum.accumulate(np.where(top & is_deleted, places, np.where(begins, places - 1, -1)))
        begun = np.maximum.accumulate(np.where(top & ~is_deleted, places, -1))
        last_end = ended[np.append(first[1:], len(code)) - 1]
        counts = np.diff(np.append(first, len(code)))
        filling = (places > np.repeat(last_end, counts)) & (begun > ended) & ~is_deleted
        return cls(position, first, top, filling, position[last_top], deleted)

    def chosen(self, is_given: Mask | None) -> tuple[Positions, Mask | None]:
        """Return for each key the position of the row that gives a column, and whether no row gives it.

        ``is_given`` tells by position which rows give it; None if all do, as is then the second result.
        """
        if is_given is None:
            return self.winner, None
        gives = is_given[self.position] & self.filling
        count = len(self.position)
        places = np.arange(count)
        top_place = np.maximum.reduceat(np.where(gives & self.top, places, -1), self.first)
        filling_place = np.minimum.reduceat(np.where(gives & ~self.top, places, count), self.first)
        place = np.where(top_place >= 0, top_place, filling_place)
        is_open = place == count
        place[is_open] = 0
        return np.where(is_open, self.winner, self.position[place]), is_open

    def complete(self, rows: Mask | None) -> Mask:
        """Return for each key whether its last row on top, or a row under it, is among ``rows``, marked by position."""
        if rows is None or not len(self.first):
            return np.zeros(len(self.first), dtype=np.bool_)
        is_complete: Mask = np.logical_or.reduceat(rows[self.position] & self.filling, self.first)
        return is_complete


def _on_top(begins: Mask, resets: Mask, passed: Mask, rank: Positions) -> Mask:
    """Return which rows, sorted by key, have no greater rank of their key before them since its last reset.

    ``begins`` marks the first row of each key, ``resets`` the deletes without an ordering value, and ``passed`` the
    rows that change nothing, which are never on top. ``rank`` is the place of each row's ordering value among all
    values.
    """
    counts = np.where(resets | passed, 0, rank + 1)
    # Lift each stretch above all stretches before it, so that a single running maximum serves for all.
    stretch = np.cumsum(begins | resets) * (int(counts.max(initial=0)) + 1)
    lifted = stretch + counts
    top: Mask = (lifted == np.maximum.accumulate(lifted)) & ~passed
    return top
