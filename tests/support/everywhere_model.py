"""What a copy-on-write table should hold whose index looks in all partitions, so that a key is there once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from support.logged_model import without_copies
from support.model import Counts, Key, Model, Row, Step, key_of, stamp


@dataclass
class EverywhereModel(Model):
    """The live rows by (partition, key); rows move to the partition with which they come."""

    def _merge(self, rows: Iterable[Row], *, deletes: bool) -> Counts:
        counts = Counts()
        for row in rows:
            places = [key for key in self.rows if key[1] == row["id"]]
            if deletes or row["_hoodie_is_deleted"]:
                counts.not_found += not places
                for key in places:
                    self._leave(key, row, counts, whatever=deletes)
                continue
            home = key_of(row)
            elsewhere = [key for key in places if key != home]
            if any(self._newer(key, row) for key in elsewhere):
                continue
            for key in elsewhere:
                self._leave(key, row, counts)
            if not self._newer(home, row):
                known = len(self.rows.get(home, ()))
                counts.inserts += not known
                counts.updates += bool(known)
                counts.deletes += max(known - 1, 0)
                self.rows[home] = [row]
        return counts

    def _insert(self, rows: Iterable[Row], policy: str) -> Counts | None:
        there = {key[1] for key in self.rows}
        known = [row for row in rows if policy != "none" and row["id"] in there]
        if policy == "fail" and any(not row["_hoodie_is_deleted"] for row in known):
            return None
        counts = super()._insert([row for row in rows if row not in known], "none")
        assert counts is not None
        for row in known:
            counts.not_found += bool(row["_hoodie_is_deleted"])
            counts.dropped += not row["_hoodie_is_deleted"]
        return counts

    def _folded(self, rows: Iterable[Row]) -> list[Row]:
        newest: dict[str, Row] = {}
        for row in rows:
            known = newest.get(str(row["id"]))
            if known is None or not self.ordered or stamp(row) >= stamp(known):
                newest[str(row["id"])] = row
        return list(newest.values())

    def _newer(self, key: Key, row: Row) -> list[Row]:
        return [one for one in self.rows.get(key, ()) if self.ordered and stamp(one) > stamp(row)]

    def _leave(self, key: Key, row: Row, counts: Counts, *, whatever: bool = False) -> None:
        """Delete what is not newer than a row, or everything."""
        left = [] if whatever else self._newer(key, row)
        counts.deletes += len(self.rows.pop(key)) - len(left)
        if left:
            self.rows[key] = left


def without_twins(history: Sequence[Step]) -> list[Step]:
    """Return a history in which no write adds a key that is there, in whatever partition."""
    return [
        replace(step, operation="insert_overwrite_table") if step.operation == "insert_overwrite" else step
        for step in without_copies(history)
    ]
