"""What a merge-on-read table of looked-up keys should hold, given the file groups that a write put new keys in."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from support.models.logged_model import Group, Logged, LoggedModel
from support.models.model import Counts, Key, Model, Row, Step, key_of, stamp


@dataclass
class LookedUpModel(LoggedModel):
    """The rows of a merge-on-read table by the file groups in which their keys were found.

    Attributes:
        alone: True: the commit has all rows.
        homes: The file group of each key that was ever in one.
        stood: The keys of which a log file has a row, whether or not a later one deletes it.
        stood_since: The same of log files that a pending compaction leaves.
        writes: Counts the writes.
        placed: Where the write that is being taken left each row that it left: which file groups new keys joined, or
            opened, is a matter of bytes, and told. A new key of which nothing is told left no row.
        aimed: The file groups that rows were told to join, some of which may leave no row.
        smallest: The file group that new keys of each partition are to join.
        joined: The file groups of earlier writes that new keys join, whose base files the write makes anew.
    """

    alone: bool = True
    homes: dict[Key, Hashable] = field(default_factory=dict)
    stood: set[Key] = field(default_factory=set)
    stood_since: set[Key] = field(default_factory=set)
    writes: int = 0
    placed: Mapping[Key, str] = field(default_factory=dict)
    aimed: Collection[str] = ()
    smallest: Mapping[str, str] = field(default_factory=dict)
    joined: set[Group] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.bucket_of = self.home

    def go_back(self, moment: Model) -> None:
        """Become what the model was, and ask itself where keys are, not the one that it was."""
        super().go_back(moment)
        self.bucket_of = self.home

    def home(self, key: Key) -> Hashable:
        """Return the file group of a key: a new one where it was in none."""
        return self.homes.get(key, self.placed.get(key, self.writes))

    def assert_new_keys_placed(self) -> None:
        """Assert that new keys joined their partition's smallest file, or opened file groups."""
        for key, name in self.placed.items():
            of = {group[0] for group in self.groups if group[1] == name}
            assert of <= {key[0]}, f"a row of the partition {key[0]} is in a file group of {of}"
            if of and (key[0], name) not in self._holding(key):
                assert name == self.smallest.get(key[0]), f"the new key {key} joined a file that is not the smallest"

    def apply(self, step: Step) -> Counts | None:
        """Take one write, for which the keys of base and log files count as there."""
        self.writes += 1
        for key in map(key_of, step.rows):
            if not self.bases.get(key) and key not in self.stood:
                # What log files say of it is in a file group that has it no more.
                for place in (self.homes, self.logs, *([self.planned.since] if self.planned else [])):
                    place.pop(key, None)
        return self._joining(step)

    def _joining(self, step: Step) -> Counts | None:
        """Take one write whose new keys join the file groups that they were told to be in."""
        self.joined = {group for group in self.groups if group[1] in self.aimed}
        for key, name in self.placed.items():
            self.joined |= {(key[0], name)} & (self.groups - self._holding(key))
        assert not self.joined & {self._group(key) for key in self.logs}, "rows that join log files would be hidden"
        assert self.planned is None or not self.joined & self.planned.held, "what joins a plan's base file is lost"
        assert len({path for path, _ in self.joined}) == len(self.joined), "one small file of a partition is enough"
        counts = super().apply(step)
        self.placed, self.aimed, self.joined = {}, (), set()
        return counts

    def _holding(self, key: Key) -> set[Group]:
        """Return the file groups in which a key was found."""
        return {(key[0], self.homes[key])} if key in self.homes else set()

    def _appended(self) -> set[Group]:
        return super()._appended() - self.joined

    def _carried(self, key: Key) -> int | None:
        """Return the greatest ordering value of the rows that a delete found by its look-up."""
        return max(map(stamp, self.rows[key])) if self.ordered and key in self.rows else None

    def schedule(self) -> None:
        """Plan to write base files anew."""
        held = set(self.planned.held) if self.planned else set()
        super().schedule()
        assert self.planned is not None
        fresh = self.planned.held - held
        self.stood_since = {key for key in self.stood_since if self._group(key) not in fresh}

    def compact(self, *, elsewhere: bool = False) -> None:
        """Write base files anew, of whose log files those count that came since they were planned."""
        planned = self.planned
        super().compact(elsewhere=elsewhere)
        if planned is not None:
            self.stood = {key for key in self.stood if self._group(key) not in planned.groups}
            self.stood |= self.stood_since

    def join(self) -> None:
        """Join log files, by which rows go that later ones delete, but for those that a pending compaction holds."""
        held = set() if self.planned is None else self.planned.held
        gone = {key for key, said in self.logs.items() if said.row is None and self._group(key) not in held}
        self.stood -= gone
        self.stood_since -= gone

    def _log(self, key: Key, newer: Logged) -> None:
        if newer.row is not None:
            self.stood.add(key)
            self.stood_since.add(key)
        super()._log(key, newer)

    def _write_bases(self, groups: set[Group]) -> None:
        placed = {key: self._group(key) for key in {*self.rows, *self.bases, *self.logs}}
        super()._write_bases(groups)
        for key, (path, name) in placed.items():
            if (path, name) in groups:
                self.stood.discard(key)
                if self.bases.get(key):
                    self.homes[key] = name

    def _insert(self, rows: Iterable[Row], policy: str) -> Counts | None:
        self._forget()
        return super()._insert(rows, policy)

    def _forget(self) -> None:
        """Have keys of partitions that were emptied be in no file group."""
        self.homes = {key: name for key, name in self.homes.items() if (key[0], name) in self.groups}
        self.stood = {key for key in self.stood if key in self.homes}
