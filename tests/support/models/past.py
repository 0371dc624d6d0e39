"""Tables with a past that is known: after each write, what each partition held and which commit wrote each row."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.reader.query import Query
from pyhudi.reader.scan import RowReader
from pyhudi.reader.skipping.predicates import Predicate
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.storage import open_storage
from support.drive import write
from support.places import Place, files_below

TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), bucket_count=2)
PARTITIONS = ("a", "b", "c")
TIMELINE = ".hoodie/timeline"

# (partition, key, value, commit time)
Shown = tuple[str, str, int, str]


@dataclass
class Commit:
    """One completed write: its times, and what each partition that it touched held after it."""

    instant: str
    completed: str
    action: str
    left: dict[str, dict[str, tuple[int, str]]]

    @property
    def file(self) -> str:
        """Where its completed instant is."""
        return f"{TIMELINE}/{self.instant}_{self.completed}.{self.action}"


@dataclass
class Past:
    """A table and all that was ever in it.

    Attributes:
        path: The table.
        commits: In the order of the writes, which is that of their requested times.
        merge_on_read: Whether it is of that type, so that what comes to a file group that is there goes to log files.
    """

    path: Place
    commits: list[Commit] = field(default_factory=list)
    merge_on_read: bool = False

    def upsert(self, partition: str, keys: Sequence[str], value: int) -> Commit:
        """Write rows of one partition."""
        return self._write("upsert", partition, keys, value)

    def delete(self, partition: str, keys: Sequence[str]) -> Commit:
        """Delete keys of one partition."""
        return self._write("delete", partition, keys, 0)

    def overwrite(self, partition: str, keys: Sequence[str], value: int) -> Commit:
        """Replace the whole table by rows of one partition."""
        return self._write("insert_overwrite_table", partition, keys, value)

    def shown(self, query: Query | None = None, *predicates: Predicate) -> list[Shown]:
        """Return what pyhudi shows."""
        return rows_of(open_snapshot(str(self.path), query=query), *predicates)

    def as_of(self, instant: str) -> list[Shown]:
        """Return what the table holds of commits requested until a time."""
        return self._state([one for one in self.commits if one.instant <= instant])

    def changes(self, begin: str | None, end: str | None) -> list[Shown]:
        """Return what a window should show: its commits' rows, as the table was at its end."""
        until = [one for one in self.commits if end is None or one.completed <= end]
        inside = {one.instant for one in until if begin is None or one.completed > begin}
        return [row for row in self._state(until) if row[3] in inside]

    def swap(self, chance: random.Random) -> None:
        """Let some neighbours that touched different partitions complete in the other order."""
        for first, second in zip(self.commits[::2], self.commits[1::2], strict=False):
            apart = not first.left.keys() & second.left.keys()
            if apart and chance.random() < 0.7:
                self.exchange(first, second)

    def exchange(self, first: Commit, second: Commit) -> None:
        """Let two commits have completed at each other's time, which is in their files' names."""
        storage = open_storage(str(self.path))
        files = [one.file for one in (first, second)]
        first.completed, second.completed = second.completed, first.completed
        for commit, file in zip((first, second), files, strict=True):
            storage.write(commit.file, storage.read(file))
            storage.delete(file)

    def _write(self, operation: str, partition: str, keys: Sequence[str], value: int) -> Commit:
        rows = pa.table({"id": list(keys), "p": [partition] * len(keys), "value": pa.array([value] * len(keys))})
        table = replace(TABLE, table_type="MERGE_ON_READ") if self.merge_on_read else TABLE
        result = write(
            self.path,
            rows,
            operation=operation,
            table=TableSettings() if self.commits else table,
            settings=WriteSettings(colocated=self.merge_on_read),
        )
        [file] = [name for name in files_below(self.path) if name.startswith(f"{TIMELINE}/{result.instant}_")]
        held = dict(self._partitions(self.commits).get(partition, {}))
        left = {partition: held}
        if operation == "insert_overwrite_table":
            left = {name: {} for name in PARTITIONS}
        for key in keys:
            if operation == "delete":
                held.pop(key, None)
            else:
                left[partition][key] = (value, result.instant)
        completed, _, action = file.rpartition("_")[2].partition(".")
        self.commits.append(Commit(result.instant, completed, action, left))
        return self.commits[-1]

    def _partitions(self, commits: Sequence[Commit]) -> dict[str, dict[str, tuple[int, str]]]:
        held: dict[str, dict[str, tuple[int, str]]] = {}
        for one in commits:
            held |= one.left
        return held

    def _state(self, commits: Sequence[Commit]) -> list[Shown]:
        held = self._partitions(commits)
        return sorted((p, key, value, time) for p, rows in held.items() for key, (value, time) in rows.items())


def rows_of(snapshot: Snapshot, *predicates: Predicate) -> list[Shown]:
    """Return the rows of a snapshot, read as Spark reads them."""
    asked = pa.schema([snapshot.schema.field(name) for name in ("p", "id", "value", "_hoodie_commit_time")])
    batches = [
        batch
        for split in snapshot.plan(asked, predicates, 1 << 27)
        for batch in RowReader(snapshot.storage, asked, snapshot.schema, predicates, snapshot.times).read(split)
    ]
    rows = pa.Table.from_batches(batches, asked)
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def random_past(path: Place, seed: int, *, steps: int, merge_on_read: bool = False) -> Past:
    """Return a table with a random past."""
    chance = random.Random(seed)
    past = Past(path, merge_on_read=merge_on_read)
    for number in range(steps):
        keys = [f"k{n}" for n in chance.sample(range(8), chance.randint(1, 5))]
        act = (
            chance.choice([past.upsert, past.upsert, past.upsert, past.overwrite, past.delete])
            if number
            else past.upsert
        )
        if act == past.delete:
            past.delete(chance.choice(PARTITIONS), keys)
        else:
            act(chance.choice(PARTITIONS), keys, number)  # type: ignore[call-arg]
    return past
