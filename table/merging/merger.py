"""Incoming rows of one file group merged with its previous base file, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import KeyNotFoundError
from ..arrow.arrays import Mask, mask
from ..schema.columns import RECORD_KEY
from .key_probe import KeyProbe
from .row_spec import Judged
from .stored_copies import StoredCopies
from .winners import Positions, base_wins, fold

_WAY_OUT = (
    "Leave these keys out, or write whole rows of them by an upsert that is not partial. For rows in which null leaves "
    "a column as it is, make the table with hoodie.table.partial.update.mode=IGNORE_DEFAULTS."
)


class RowMeeting(Enum):
    """What becomes of an incoming row whose key the file group holds already."""

    MERGE = "one of the two wins"
    ADD = "both stay; keys are not looked up"
    DROP = "the incoming row is dropped"
    FAIL = "the write is refused"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How incoming rows meet one another and the base rows.

    Attributes:
        fold: Whether incoming rows of one key are folded into one; they always are if rows are merged.
        must_find: Whether a delete of an absent key is an error.
        known_only: Whether a row with an absent key is an error, because the row lacks columns.
        of_stored: Whether the incoming rows were made of stored rows, so that there must be as many of a key as stored.
    """

    meeting: RowMeeting = RowMeeting.MERGE
    fold: bool = True
    must_find: bool = False
    known_only: bool = False
    of_stored: bool = False


@dataclass(slots=True)
class MergeCounts:
    """What one merge did, in rows.

    Attributes:
        inserts: Incoming rows whose key was absent or not looked up.
        updates: Incoming rows that replaced a base row.
        deletes: Base rows that were removed without a replacement.
        not_found: Incoming deletes that removed nothing.
        dropped: Incoming rows that the rule DROP removed because their key was present, or that a delete outdoes.
        keys: Distinct keys of the incoming rows that met the base, whether or not their rows won.
    """

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    not_found: int = 0
    dropped: int = 0
    keys: int = field(default=0, compare=False)

    @property
    def changed(self) -> bool:
        return bool(self.inserts or self.updates or self.deletes)

    def add(self, counts: MergeCounts) -> None:
        """Add the counts of another merge to these."""
        self.inserts += counts.inserts
        self.updates += counts.updates
        self.deletes += counts.deletes
        self.not_found += counts.not_found
        self.dropped += counts.dropped
        self.keys += counts.keys


def folded(spec: Judged, incoming: pa.RecordBatch) -> Positions:
    """Return the positions of the rows that win among their own key, deletes included, in ascending order."""
    unordered = spec.unordered(incoming, spec.deleted(incoming))
    yielding = spec.yielding(incoming)
    return fold(incoming.column(RECORD_KEY), spec.ordering(incoming), unordered, spec.stood(incoming), yielding)


def hidden_bases(spec: Judged, incoming: pa.RecordBatch, winners: Positions) -> Mask | None:
    """Return for which winners, one for each key, the incoming rows have a delete without an ordering value.

    Such a delete takes the base rows of its key away, even if a row that comes later wins. None: no row is one.
    """
    unordered = spec.unordered(incoming, spec.deleted(incoming))
    if unordered is None or not unordered.any():
        return None
    hidden: Mask = unordered[winners]
    # Such a delete that lost to a later row hides the base rows of its key, too.
    outlived = unordered.copy()
    outlived[winners] = False
    if outlived.any():
        keys = incoming.column(RECORD_KEY)
        won = keys.take(pa.array(winners))
        hidden |= mask(pc.is_in(won, value_set=keys.filter(pa.array(outlived))))
    return hidden


class Merger:
    """Merges the deciding columns of incoming rows, later rows further down, with the base rows of the same keys.

    A base may hold a key several times, because inserts add rows without a lookup. An incoming row then replaces every
    base row of its key that it beats, and does not arrive if any of them beats it. A delete without an ordering
    value among the incoming rows takes all base rows of its key away, and the row that comes after it counts anew.
    ``base_columns`` are the columns of base rows to yield, None for all; ``where`` names the file group in errors.
    ``given_keys`` has the keys of the incoming rows before those of each key were joined, None if they were not.
    """

    def __init__(
        self,
        spec: Judged,
        incoming: pa.RecordBatch,
        rules: MergeRules,
        where: str,
        base_columns: Sequence[str] | None = None,
        given_keys: pa.Array | None = None,
    ) -> None:
        self._spec = spec
        self._rules = rules
        self._where = where
        self._base_columns = None if base_columns is None else list(base_columns)
        self.counts = MergeCounts()
        self._row_count = incoming.num_rows
        self._winners = folded(spec, incoming)
        self._incoming = incoming if len(self._winners) == self._row_count else incoming.take(pa.array(self._winners))
        self._hidden = hidden_bases(spec, incoming, self._winners)
        self._deleted = spec.deleted(self._incoming)
        self._matched = np.zeros(self._incoming.num_rows, dtype=np.bool_)
        self._outdone = np.zeros(self._incoming.num_rows, dtype=np.bool_)
        self._removed = 0
        self._copies: StoredCopies | None = None
        if rules.of_stored:
            given_keys = incoming.column(RECORD_KEY) if given_keys is None else given_keys
            self._copies = StoredCopies.of_keys(self._incoming.column(RECORD_KEY), given_keys)

    def survivors(self, base: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the base rows that no incoming row replaces or deletes, in the columns that the merger yields.

        An incoming row leaves the base row if that has a greater ordering value. The merger remembers which incoming
        rows met a base row, and which lost against one: its counts and the arrivals follow from that.
        """
        probe: KeyProbe | None = None
        ordering = self._spec.ordering(self._incoming)
        for batch in base:
            # A new file group has no base, and needs no probe.
            if probe is None:
                probe = KeyProbe(self._incoming.column(RECORD_KEY))
            positions = probe.find(batch.column(RECORD_KEY))
            rows = np.flatnonzero(positions >= 0)
            selected = batch if self._base_columns is None else batch.select(self._base_columns)
            if not len(rows):
                yield selected
                continue
            hits = positions[rows]
            if self._copies is not None:
                self._copies.add(hits)
            if ordering:
                older = [batch.column(name).take(pa.array(rows)) for name in self._spec.ordering_fields]
                keeps = base_wins(older, [values.take(pa.array(hits)) for values in ordering])
                if self._hidden is not None:
                    # A delete without an ordering value takes the base rows of its key, however great their values.
                    keeps &= ~self._hidden[hits]
                self._outdone[hits[keeps]] = True
                rows = rows[~keeps]
            self._matched[hits] = True
            self._removed += len(rows)
            stays = np.ones(batch.num_rows, dtype=np.bool_)
            stays[rows] = False
            yield selected.filter(pa.array(stays))

    def arrivals(self) -> Mask:
        """Return which incoming rows belong in the new file; call it after `survivors` is exhausted."""
        self._check_found()
        if self._copies is not None:
            self._copies.check(self._where)
        live = ~self._deleted & ~self._outdone
        updates = int(np.count_nonzero(live & self._matched))
        self.counts = MergeCounts(
            inserts=int(np.count_nonzero(live)) - updates,
            updates=updates,
            deletes=self._removed - updates,
            not_found=int(np.count_nonzero(self._deleted & ~self._matched)),
            keys=len(self._winners),
        )
        arriving = np.zeros(self._row_count, dtype=np.bool_)
        arriving[self._winners[live]] = True
        return arriving

    def _check_found(self) -> None:
        """Raise KeyNotFoundError if deletes have to find their keys and one did not."""
        not_found = np.flatnonzero(self._deleted & ~self._matched)
        if self._rules.must_find and len(not_found):
            key = self._incoming.column(RECORD_KEY)[int(not_found[0])].as_py()  # one value, for the error
            raise KeyNotFoundError(
                f"The record key {key!r} was to be deleted and is not in {self._where}; {len(not_found)} keys of this "
                "file group are missing.",
                "Leave these keys out, or allow missing keys (hoodie.pyhudi.delete.missing.ok=true, which is the "
                "default).",
            )


def check_known(missing_keys: pa.Array, where: str) -> None:
    """Raise KeyNotFoundError if keys of rows that lack columns are missing; ``where`` names the file group."""
    if len(missing_keys):
        key = missing_keys[0].as_py()  # one value, for the error
        raise KeyNotFoundError(
            f"The record key {key!r} was to be updated in some of its columns and is not in {where}; "
            f"{len(missing_keys)} keys are missing there.",
            _WAY_OUT,
        )
