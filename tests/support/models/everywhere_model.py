"""What a table should hold whose index looks in all partitions, so that a key is there once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from support.models.logged_model import Group, Logged, without_copies
from support.models.looked_up_model import LookedUpModel
from support.models.model import Counts, Key, Model, Row, Step, key_of, stamp


@dataclass
class EverywhereModel(Model):
    """The live rows of a copy-on-write table by (partition, key).

    Attributes:
        moves: Whether rows move to the partition with which they come; else they are updated where their key is.
        names: What a record key is made of.
    """

    moves: bool = True
    names: Sequence[str] = ("id",)

    def _merge(self, rows: Iterable[Row], *, deletes: bool) -> Counts:
        counts = Counts()
        for row in rows:
            places = [key for key in self.rows if same_key(self.names, key, row)]
            if deletes or row["_hoodie_is_deleted"]:
                counts.not_found += not places
                for key in places:
                    self._leave(key, row, counts, whatever=deletes)
                continue
            home = key_of(row) if self.moves or not places else places[0]
            elsewhere = [key for key in places if key != home]
            if any(self._newer(key, row) for key in elsewhere):
                continue
            for key in elsewhere:
                self._leave(key, row, counts)
            if not self._newer(home, row):
                copies_count = len(self.rows.get(home, ()))
                counts.inserts += not copies_count
                counts.updates += bool(copies_count)
                counts.deletes += max(copies_count - 1, 0)
                self.rows[home] = [row]
        return counts

    def _insert(self, rows: Iterable[Row], policy: str) -> Counts | None:
        known_rows = [
            row for row in rows if policy != "none" and any(same_key(self.names, key, row) for key in self.rows)
        ]
        if policy == "fail" and any(not row["_hoodie_is_deleted"] for row in known_rows):
            return None
        counts = super()._insert([row for row in rows if row not in known_rows], "none")
        assert counts is not None
        for row in known_rows:
            counts.not_found += bool(row["_hoodie_is_deleted"])
            counts.dropped += not row["_hoodie_is_deleted"]
        return counts

    def _folded(self, rows: Iterable[Row]) -> list[Row]:
        return folded_by(self.names, rows, ordered=self.ordered)

    def _newer(self, key: Key, row: Row) -> list[Row]:
        return [one for one in self.rows.get(key, ()) if self.ordered and stamp(one) > stamp(row)]

    def _leave(self, key: Key, row: Row, counts: Counts, *, whatever: bool = False) -> None:
        """Delete what is not newer than a row, or everything."""
        left = [] if whatever else self._newer(key, row)
        counts.deletes += len(self.rows.pop(key)) - len(left)
        if left:
            self.rows[key] = left


@dataclass
class EverywhereLoggedModel(LookedUpModel):
    """The rows of a merge-on-read table by the file group that they are in.

    What models of log files keep by key is kept here by a spot: a partition, a key, and a file group. A row that moves
    leaves a delete in a log file of the file group where it was, which has the key until that is merged: a row that
    comes back meets it there, unless the key is elsewhere by now.

    Attributes:
        moves: Whether rows move to the partition with which they come; else they are updated where their key is.
        names: What a record key is made of.
        based: Which write made the newest base file of each file group.
    """

    moves: bool = True
    names: Sequence[str] = ("id",)
    based: dict[Group, int] = field(default_factory=dict)

    def home(self, key: Key) -> Hashable:
        """Return the file group of a spot."""
        return key[2]

    def apply(self, step: Step) -> Counts | None:
        """Take one write, for which the keys of base and log files count as there."""
        self.writes += 1
        return self._joining(step)

    def _merge(self, rows: Iterable[Row], *, deletes: bool) -> Counts:
        counts, new = Counts(), []
        for row in rows:
            spots = self._spots(row)
            if deletes or row["_hoodie_is_deleted"]:
                counts.not_found += not spots
                self._leave(spots, None if deletes else stamp(row), counts, deletes=deletes)
                continue
            elsewhere = [spot for spot in spots if self.moves and spot[0] != row["p"] and spot in self.rows]
            if any(self._newer(spot, stamp(row)) for spot in elsewhere):
                continue
            meets = self._met(spots, row)
            self._leave(elsewhere, stamp(row), counts)
            for spot in meets:
                counts.updates += self._put(spot, row)
            if not meets:
                new.append(row)
        self._add(new, counts)
        return counts

    def _insert(self, rows: Iterable[Row], policy: str) -> Counts | None:
        counts, added, again = Counts(), [], set[Group]()
        rows = list(rows)
        spots = [self._spots(row) if policy != "none" else [] for row in rows]
        known_flags = [any(spot in self.rows for spot in some) for some in spots]
        if policy == "fail" and any(
            one and not row["_hoodie_is_deleted"] for one, row in zip(known_flags, rows, strict=True)
        ):
            return None
        for row, some, is_known in zip(rows, spots, known_flags, strict=True):
            if row["_hoodie_is_deleted"]:
                counts.not_found += 1
            elif is_known:
                counts.dropped += 1
            elif dead := self._met(some, row):
                # What looks whether a row is there writes the file group anew.
                self.rows[dead[0]] = [row]
                again.add(self._group(dead[0]))
                counts.inserts += 1
            else:
                added.append(row)
        self._write_bases(again)
        self._add(added, counts)
        return counts

    def _folded(self, rows: Iterable[Row]) -> list[Row]:
        return folded_by(self.names, rows, ordered=self.ordered)

    def _empty(self, goes: Callable[[str], bool]) -> None:
        super()._empty(goes)
        self.stood, self.stood_since = (
            {one for one in some if not goes(one[0])} for some in (self.stood, self.stood_since)
        )

    def _spots(self, row: Row) -> list[Key]:
        """Return every file group that has the key of a row, be it deleted there by a log file."""
        spots = [spot for spot in self._there() if same_key(self.names, spot, row)]
        return sorted(spots, key=lambda spot: self.based[self._group(spot)])

    def _there(self) -> set[Key]:
        return {spot for spot, rows in self.bases.items() if rows} | self.stood

    def _met(self, spots: Sequence[Key], row: Row) -> list[Key]:
        """Return the places of its key that a row goes to: live ones, else the last that a log file took it from."""
        live = [spot for spot in spots if spot in self.rows]
        own = [spot for spot in spots if spot[0] == row["p"]]
        if not live:
            return own[-1:]
        return [spot for spot in live if spot in own] if self.moves else live

    def _newer(self, spot: Key, at: int | None) -> bool:
        return self.ordered and at is not None and any(stamp(one) > at for one in self.rows[spot])

    def _put(self, spot: Key, row: Row) -> bool:
        """Have a row meet what is in a place, and return whether it counts: log files take what comes."""
        if self._group(spot) not in self.joined:
            self._log(spot, Logged(row, stamp(row)))
        elif self._newer(spot, stamp(row)):
            return False
        else:
            self.rows[spot] = [row]
        return True

    def _leave(self, spots: Sequence[Key], at: int | None, counts: Counts, *, deletes: bool = False) -> None:
        for spot in spots:
            if self._group(spot) not in self.joined:
                at = self._carried(spot) if deletes else at
                self._log(spot, Logged(None, at, hides=at is None))
            elif self._newer(spot, at):
                continue
            else:
                del self.rows[spot]
            counts.deletes += 1

    def _holding(self, key: Key) -> set[Group]:
        return {self._group(spot) for spot in self._there() if spot[:2] == key}

    def _write_bases(self, groups: set[Group]) -> None:
        super()._write_bases(groups)
        self.based |= dict.fromkeys(groups, self.writes)

    def _add(self, rows: Sequence[Row], counts: Counts) -> None:
        """Write rows of new keys to the base files of the file groups that they joined or opened."""
        spots = {(*key_of(row), self.placed.get(key_of(row), self.writes)): row for row in rows}
        self.rows |= {spot: [row] for spot, row in spots.items()}
        self._write_bases({self._group(spot) for spot in spots})
        counts.inserts += len(rows)


def same_key(names: Sequence[str], key: Sequence[object], row: Row) -> bool:
    """Return whether a row has the record key of a place, wherever that is.

    Args:
        names: What record keys are made of.
        key: A partition, a key, and maybe more.
        row: The row.
    """
    return all(key[("p", "id").index(name)] == row[name] for name in names)


def folded_by(names: Sequence[str], rows: Iterable[Row], *, ordered: bool) -> list[Row]:
    """Return the row of each record key that wins, whatever the partitions."""
    newest: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        known = newest.get(key)
        if known is None or not ordered or stamp(row) >= stamp(known):
            newest[key] = row
    return list(newest.values())


def without_twins(history: Sequence[Step]) -> list[Step]:
    """Return a history in which no write adds a key that is there, in whatever partition."""
    return [
        replace(step, operation="insert_overwrite_table") if step.operation == "insert_overwrite" else step
        for step in without_copies(history)
    ]
