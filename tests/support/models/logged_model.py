"""What a merge-on-read table should hold after a history of writes, and what its log files remember of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from support.models.model import DROP, FOLD, POLICY, Counts, Key, Model, Row, Step, key_of, merges, shown, stamp

# A file group, by its partition and its bucket.
Group = tuple[str, Hashable]


@dataclass(frozen=True)
class Logged:
    """What the log files of a file group say of one key, folded.

    Attributes:
        row: The row; None where the key is deleted.
        at: The ordering value; None for a delete that holds whatever it meets.
        hides: Whether such a delete is among what they say, which hides base rows whatever comes after it.
    """

    row: Row | None
    at: int | None
    hides: bool = False

    def then(self, newer: Logged, *, ordered: bool) -> Logged:
        """Return which of the two stays, the other one being newer."""
        if not ordered or newer.at is None:
            return newer
        if self.at is None:
            # A delete that holds for what it met holds on, unless a row comes.
            return self if newer.row is None else replace(newer, hides=True)
        return replace(newer if newer.at >= self.at else self, hides=self.hides or newer.hides)

    def live(self, base: Sequence[Row], *, ordered: bool, hides: bool) -> list[Row]:
        """Return what is seen of a key, given its base rows and whether a delete that was outlived hides these."""
        newer = [one for one in base if ordered and self.at is not None and not hides and stamp(one) > self.at]
        return newer or ([] if self.row is None else [self.row])


@dataclass
class Planned:
    """Pending compactions.

    Attributes:
        held: The file groups of the plans.
        groups: Those of them whose base files are going to be the newest.
        bases: What these will hold.
        since: What log files say since then.
    """

    held: set[Group] = field(default_factory=set)
    groups: set[Group] = field(default_factory=set)
    bases: dict[Key, list[Row]] = field(default_factory=dict)
    since: dict[Key, Logged] = field(default_factory=dict)


@dataclass
class LoggedModel(Model):
    """The rows of base files, and what log files say of keys, by (partition, key).

    `rows` stays what is live. A delete is remembered until the file group's base file is written anew.

    Attributes:
        bucket_of: Names the bucket of a key.
        alone: Whether a task holds all rows of its file groups, and appends of each key one thing.
        together: Whether all rows of a key are put together before they are appended, deletes by operation aside.
        bases: The rows of the base files.
        logs: What the log files say.
        groups: The file groups that are there.
        hands: The rows of each task of the write that is being taken.
        planned: What a pending compaction makes of file groups, and what log files say since it was planned.
    """

    bucket_of: Callable[[Key], Hashable] = hash
    alone: bool = False
    together: bool = False
    bases: dict[Key, list[Row]] = field(default_factory=dict)
    logs: dict[Key, Logged] = field(default_factory=dict)
    groups: set[Group] = field(default_factory=set)
    hands: Sequence[Sequence[Row]] = ()
    planned: Planned | None = None

    @property
    def wants_compaction(self) -> bool:
        """Whether there is anything to be merged."""
        return bool(self.logs or self.planned)

    def apply(self, step: Step) -> Counts | None:
        """Take one write; what its tasks append to file groups that are there is counted as it is appended."""
        at_once = self.alone or (self.together and step.operation != "delete")
        self.hands = [step.rows] if at_once else step.hands
        return super().apply(step)

    def known(self) -> Iterable[Key]:
        """Return the keys of which anything is known."""
        return {*self.rows, *self.logs}

    def least(self, key: Key) -> int:
        """Return the ordering value below which no row of a key is seen that comes.

        Deletes are remembered, and what a pending compaction holds comes back where no log file hides it from then on.
        """
        said, planned = self.logs.get(key), self.planned or Planned()
        since = planned.since.get(key)
        base = [] if said and said.hides else self.bases.get(key, [])
        held = [] if since and since.hides else planned.bases.get(key, [])
        return max(super().least(key), (said.at or 0) if said else 0, *map(stamp, [*base, *held]))

    def elsewhere(self) -> list[tuple[object, ...]]:
        """Return what is shown where a row that follows a delete without a value meets the base row."""
        rows = dict(self.rows)
        for key, said in self.logs.items():
            rows[key] = said.live(self.bases.get(key, []), ordered=self.ordered, hides=False)
        return shown(rows)

    def schedule(self) -> None:
        """Plan to write the base files of all file groups anew that have log files now, and are in no plan yet."""
        planned = self.planned = self.planned or Planned()
        groups = {self._group(key) for key in self.logs} - planned.held
        planned.held |= groups
        planned.groups |= groups
        planned.bases |= {key: list(rows) for key, rows in self.rows.items() if self._group(key) in groups}
        planned.since = {key: said for key, said in planned.since.items() if self._group(key) not in groups}

    def compact(self, *, elsewhere: bool = False) -> None:
        """Write base files anew, by which deletes are forgotten: those that are planned, or all.

        Args:
            elsewhere: Whether Apache Hudi does, which writes what it shows; nothing is planned then.
        """
        if elsewhere:
            assert self.planned is None
            for key, said in self.logs.items():
                self.rows[key] = said.live(self.bases.get(key, []), ordered=self.ordered, hides=False)
            self.rows = {key: rows for key, rows in self.rows.items() if rows}
        if self.planned is None:
            self._write_bases(self.groups)
            return
        planned, self.planned = self.planned, None
        for key in {*self.rows, *self.bases, *self.logs, *planned.bases}:
            if self._group(key) in planned.groups:
                self.bases[key] = planned.bases.get(key, [])
                self.logs.pop(key, None)
                if key in planned.since:
                    self.logs[key] = planned.since[key]
                self._show(key)

    def rescale(self, bucket_of: Callable[[Key], Hashable]) -> None:
        """Write all base files anew, in the file groups of other buckets."""
        assert self.planned is None
        self.compact()
        self.bucket_of = bucket_of
        self.groups = {self._group(key) for key in self.rows}

    def delete_read(self, rows: Iterable[Row]) -> None:
        """Log deletes of rows as they are, which were read before."""
        for row in rows:
            self._log(key_of(row), Logged(None, stamp(row)))

    def join(self) -> None:
        """Join log files, which changes nothing of what they say."""

    def _merge(self, rows: Iterable[Row], *, deletes: bool) -> Counts:
        """Log what each task has of file groups that are appended to, nobody looking; the rest makes bases."""
        appended_groups = self._appended()
        new = [row for row in rows if self._group(key_of(row)) not in appended_groups]
        counts = super()._merge(new, deletes=deletes)
        self._write_bases({self._group(key_of(row)) for row in new if key_of(row) in self.rows})
        for hand in self.hands:
            # A delete that asks for no order holds for what other tasks have of its key, whatever else this one has.
            resets = {key_of(row) for row in hand if self._is_reset(row) and not deletes}
            for key in (one for one in resets if self._group(one) in appended_groups):
                self._log(key, Logged(None, None, hides=True))
                counts.deletes += 1
            for row in self._folded(hand):
                if self._group(key_of(row)) in appended_groups and (deletes or not self._is_reset(row)):
                    gone, key = deletes or bool(row["_hoodie_is_deleted"]), key_of(row)
                    at = self._carried(key) if deletes else stamp(row)
                    self._log(key, Logged(None if gone else row, at, hides=at is None))
                    counts.deletes += gone
                    counts.updates += not gone
        return counts

    def _insert(self, rows: Iterable[Row], policy: str) -> Counts | None:
        """Add rows, by which the base files of their file groups are written anew."""
        rows, before = list(rows), set(self.rows)
        counts = super()._insert(rows, policy)
        if counts is not None:
            added = [row for row in rows if policy != "drop" or key_of(row) not in before]
            self._write_bases({self._group(key_of(row)) for row in added if not row["_hoodie_is_deleted"]})
        return counts

    def _empty(self, goes: Callable[[str], bool]) -> None:
        super()._empty(goes)
        self._unplan({group for group in self.groups if goes(group[0])})
        self.groups = {group for group in self.groups if not goes(group[0])}
        self.bases, self.logs = (
            {key: said for key, said in one.items() if not goes(key[0])} for one in (self.bases, self.logs)
        )

    def _carried(self, key: Key) -> int | None:
        """Return the ordering value with which the operation delete logs a key; None where it read no row of it."""
        return None

    def _log(self, key: Key, newer: Logged) -> None:
        for logs in (self.logs, *(() if self.planned is None else (self.planned.since,))):
            logs[key] = logs[key].then(newer, ordered=self.ordered) if key in logs else newer
        self._show(key)

    def _show(self, key: Key) -> None:
        """Hold what the log files say of a key against its base rows once."""
        live = self.bases.get(key, [])
        said = self.logs.get(key)
        if said is not None:
            live = said.live(live, ordered=self.ordered, hides=said.hides)
        self.rows.pop(key, None)
        if live:
            self.rows[key] = live

    def _write_bases(self, groups: set[Group]) -> None:
        self.groups = self.groups | groups
        self._unplan(groups)
        for key in {*self.rows, *self.bases, *self.logs}:
            if self._group(key) in groups:
                self.logs.pop(key, None)
                self.bases[key] = self.rows.get(key, [])

    def _unplan(self, groups: set[Group]) -> None:
        """Have a pending compaction mean nothing to file groups whose base files are newer, or that are gone."""
        if self.planned is not None:
            self.planned.groups -= groups

    def _appended(self) -> set[Group]:
        """Return the file groups to which a write appends what it has for them."""
        return set(self.groups)

    def _group(self, key: Key) -> Group:
        return key[0], self.bucket_of(key)


def with_copies(history: Sequence[Step]) -> list[Step]:
    """Return a history in which every insert of rows adds them a second time beside those that are there."""
    return [_with_copies(step) for step in history]


def _with_copies(step: Step) -> Step:
    if step.operation != "insert":
        return step
    options = {name: text for name, text in step.options.items() if name not in {POLICY, DROP, FOLD}}
    return replace(step, rows=[*step.rows, *step.rows], options=options)


def without_copies(history: Sequence[Step]) -> list[Step]:
    """Return a history in which no write adds a key that is there, as whom of its rows a log speaks is file order."""
    return [_without_copies(step, number) for number, step in enumerate(history)]


def _without_copies(step: Step, number: int) -> Step:
    if merges(step) or step.operation == "delete_partition":
        return step
    if step.operation == "bulk_insert":
        return replace(step, rows=[{**row, "id": f"b{number}-{n}"} for n, row in enumerate(step.rows)])
    kept = {name: text for name, text in step.options.items() if name != FOLD}
    policy = {POLICY: "drop"} if step.operation == "insert" and not {POLICY, DROP} & set(kept) else {}
    return replace(step, options={**kept, FOLD: "true", **policy})
