"""What a table should hold after a history of writes, kept in a dict."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from hypothesis import strategies as st

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("p", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)

# With an ordering field of this type Apache Hudi takes a 0 for its stand-in for no value.
INT_ORDERED = SCHEMA.set(2, pa.field("ts", pa.int32()))

Key = tuple[str, str]
Row = dict[str, object]

FOLD = "hoodie.combine.before.insert"
POLICY = "hoodie.datasource.insert.dup.policy"
DROP = "hoodie.datasource.write.insert.drop.duplicates"
ADD = "hoodie.merge.allow.duplicate.on.inserts"
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"
SORT = "hoodie.bulkinsert.sort.mode"
SORT_COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"

# The options under which each operation appears in histories, and how often it does.
OPERATIONS: dict[str, list[dict[str, str]]] = {
    "upsert": [{}],
    "insert": [
        {},
        {FOLD: "true"},
        {POLICY: "drop"},
        {POLICY: "fail"},
        {DROP: "true"},
        {DROP: "true", FOLD: "false"},
        {ADD: "false"},
    ],
    "bulk_insert": [{}, {FOLD: "true", SORT: "GLOBAL_SORT"}, {SORT_COLUMNS: "value,id"}],
    "delete": [{}],
    "insert_overwrite": [{}, {FOLD: "true"}],
    "insert_overwrite_table": [{}, {FOLD: "true"}],
    "delete_partition": [{}, {PARTITIONS: "a"}, {PARTITIONS: "none,ab*"}, {PARTITIONS: "*"}],
}
WEIGHTS = {"upsert": 6, "insert": 4, "bulk_insert": 2, "delete": 3}


@dataclass(frozen=True)
class Step:
    """One write of a history: its operation and options, its rows, and how they are dealt out over tasks.

    Attributes:
        hands: The rows of each task, once they are dealt.
        schema: Their columns.
    """

    operation: str
    rows: list[Row]
    tasks: int
    shuffle: int
    options: Mapping[str, str] = field(default_factory=dict)
    hands: tuple[tuple[Row, ...], ...] = ()
    schema: pa.Schema = SCHEMA

    def parts(self) -> list[pa.Table]:
        """Return the rows shuffled and dealt out, one table a task."""
        return [pa.Table.from_pylist(hand, self.schema) for hand in self._hands()]

    def as_dealt(self) -> Step:
        """Return the step with its rows in the order of the tasks, by which ties are decided."""
        hands = self._hands()
        return replace(self, rows=[row for hand in hands for row in hand], hands=tuple(map(tuple, hands)))

    def _hands(self) -> list[list[Row]]:
        order = sorted(range(len(self.rows)), key=lambda n: hash((self.shuffle, n)))
        return [[self.rows[n] for n in order[task :: self.tasks]] for task in range(self.tasks)]


@dataclass
class Counts:
    """What a write should say that it did."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    not_found: int = 0
    dropped: int = 0


@dataclass
class Model:
    """The live rows by (partition, key), as copy-on-write leaves them.

    A key has several rows where inserts added them without looking.

    Attributes:
        ordered: Whether the greater ordering value wins, as under EVENT_TIME_ORDERING; otherwise the later row does.
        resets: Whether deletes with the ordering value 0 have none.
        taken: Keys of the write that is being taken which such a delete is of: it takes stored rows, whatever follows.
    """

    ordered: bool = True
    resets: bool = False
    rows: dict[Key, list[Row]] = field(default_factory=dict)
    taken: set[Key] = field(default_factory=set)

    def apply(self, step: Step) -> Counts | None:
        """Take one write; None where it is to be refused because a key is there."""
        rows = self._folded(step.rows) if self._folds(step) else step.rows
        self.taken = {key_of(row) for row in step.rows if self._is_reset(row)}
        if step.operation == "delete_partition":
            self._remove(step.rows, step.options.get(PARTITIONS))
            return Counts()
        if step.operation.startswith("insert_overwrite"):
            self._remove(rows, "*" if step.operation == "insert_overwrite_table" else None)
            return self._insert(rows, "none")
        if not merges(step):
            policy = step.options.get(POLICY, "drop" if step.options.get(DROP) == "true" else "none")
            return self._insert(rows, policy)
        return self._merge(rows, deletes=step.operation == "delete")

    def moment(self) -> Model:
        """Return the model as it is now, to go back to."""
        return copy.deepcopy(self)

    def go_back(self, moment: Model) -> None:
        """Become what the model was."""
        vars(self).update(vars(moment.moment()))

    def known(self) -> Iterable[Key]:
        """Return the keys of which anything is known."""
        return self.rows

    def least(self, key: Key) -> int:
        """Return the ordering value below which no row of a key is seen that comes."""
        return max(map(stamp, self.rows.get(key, ())), default=0)

    def tuples(self) -> list[tuple[object, ...]]:
        """Return the live rows as sorted tuples of (p, id, ts, value)."""
        return shown(self.rows)

    def elsewhere(self) -> list[tuple[object, ...]]:
        """Return what Apache Hudi and hudi-rs show, to whom a delete without a value hides nothing from a later row."""
        return self.tuples()

    def _folds(self, step: Step) -> bool:
        return merges(step) or step.options.get(FOLD, step.options.get(DROP)) == "true"

    def _remove(self, rows: Iterable[Row], patterns: str | None) -> None:
        """Remove the partitions that patterns name, or those that rows belong to."""
        named = {re.escape(str(row["p"])) for row in rows}
        if patterns is not None:
            named = {pattern.replace("*", ".*") for pattern in patterns.split(",")}
        self._empty(lambda partition: any(re.fullmatch(one, partition) for one in named))

    def _empty(self, goes: Callable[[str], bool]) -> None:
        """Remove what is in some partitions."""
        self.rows = {key: kept for key, kept in self.rows.items() if not goes(key[0])}

    def _insert(self, rows: Iterable[Row], policy: str) -> Counts | None:
        counts, before = Counts(), set(self.rows)
        if policy == "fail" and any(key_of(row) in before and not row["_hoodie_is_deleted"] for row in rows):
            return None
        for row in rows:
            if row["_hoodie_is_deleted"]:
                counts.not_found += 1
            elif policy == "drop" and key_of(row) in before:
                counts.dropped += 1
            else:
                counts.inserts += 1
                self.rows.setdefault(key_of(row), []).append(row)
        return counts

    def _merge(self, rows: Iterable[Row], *, deletes: bool) -> Counts:
        counts = Counts()
        for row in rows:
            base = self.rows.pop(key_of(row), [])
            takes_all = deletes or not self.ordered or key_of(row) in self.taken
            newer = [] if takes_all else [one for one in base if stamp(one) > stamp(row)]
            gone = len(base) - len(newer)
            left = list(newer)
            if not newer and not deletes and not row["_hoodie_is_deleted"]:
                left.append(row)
                counts.inserts += not base
                counts.updates += bool(base)
                gone -= bool(base)
            elif not base and (deletes or row["_hoodie_is_deleted"]):
                counts.not_found += 1
            counts.deletes += gone
            if left:
                self.rows[key_of(row)] = left
        return counts

    def _folded(self, rows: Iterable[Row]) -> list[Row]:
        """Return the row of each key that wins, deletes among them."""
        newest: dict[Key, Row] = {}
        for row in rows:
            known = newest.get(key_of(row))
            anew = known is None or not self.ordered or self._is_reset(row) or self._is_reset(known)
            if known is None or anew or stamp(row) >= stamp(known):
                newest[key_of(row)] = row
        return list(newest.values())

    def _is_reset(self, row: Row) -> bool:
        """Return whether a row is a delete without an ordering value, among rows that have one."""
        return self.resets and self.ordered and bool(row["_hoodie_is_deleted"]) and stamp(row) == 0


def shown(rows: Mapping[Key, list[Row]]) -> list[tuple[object, ...]]:
    """Return rows as sorted tuples of (p, id, ts, value)."""
    return sorted((row["p"], row["id"], row["ts"], row["value"]) for some in rows.values() for row in some)


def merges(step: Step) -> bool:
    """Return whether a write meets the rows that are there, and neither adds to them nor takes their place."""
    adds = step.operation in {"insert", "bulk_insert"} and step.options.get(ADD) != "false"
    return not adds and not step.operation.startswith(("insert_overwrite", "delete_partition"))


def key_of(row: Row) -> Key:
    """Return a row's partition and record key."""
    return str(row["p"]), str(row["id"])


def stamp(row: Row) -> int:
    """Return a row's ordering value."""
    return int(str(row["ts"]))


def random_history(
    seed: int, *, steps: int, keys: int, partitions: Sequence[str] = ("a", "ab"), resets: bool = False
) -> list[Step]:
    """Return a history whose (key, ordering value) pairs are unique, so that arrival order cannot matter.

    Args:
        seed: Decides everything else.
        steps: Number of writes.
        keys: Number of keys of each partition, few enough for writes to meet each other's rows.
        partitions: Values of the partition column.
        resets: Whether many deletes have no ordering value, so that it does matter what came before them.
    """
    chance = random.Random(seed)
    most = 2 * keys
    stamps = chance.sample(range(10 * steps * most), steps * most)
    history = []
    for number in range(steps):
        choice = chance.choices(list(OPERATIONS), [WEIGHTS.get(name, 1) for name in OPERATIONS])[0]
        operation = choice if number or choice.startswith(("upsert", "insert")) else "bulk_insert"
        rows: list[Row] = [
            {
                "id": f"k{chance.randrange(keys)}",
                "p": chance.choice(partitions),
                "ts": stamps.pop(),
                "value": chance.randrange(1000),
                "_hoodie_is_deleted": chance.random() < 0.25,
            }
            for _ in range(chance.randint(0 if number else 1, most))
        ]
        options = chance.choice(OPERATIONS[operation])
        history.append(Step(operation, rows, chance.randint(1, 7), chance.randrange(1000), options))
    return [_with_resets(step, chance) for step in history] if resets else history


def _with_resets(step: Step, chance: random.Random) -> Step:
    """Return a write in few tasks, in which many deletes have no ordering value, beside other rows of their keys."""
    rows: list[Row] = []
    for row in step.rows:
        rows.append(row)
        if chance.random() < 0.4:
            rows.append({**row, "ts": 0, "_hoodie_is_deleted": True})
            rows.append({**row, "ts": chance.randrange(1, 200), "_hoodie_is_deleted": chance.random() < 0.2})
    # What an append says is looked at where upserts follow one another.
    mostly = {"operation": "upsert", "options": {}} if chance.random() < 0.8 else {}
    return replace(step, rows=rows, tasks=1 + step.tasks % 3, schema=INT_ORDERED, **mostly)


def histories(*, steps: int = 5, keys: int = 10) -> st.SearchStrategy[list[Step]]:
    """Draw random histories; a seed rather than each value, because drawn values hardly ever meet each other."""
    return st.builds(random_history, st.integers(0, 1 << 32), steps=st.integers(1, steps), keys=st.integers(1, keys))
