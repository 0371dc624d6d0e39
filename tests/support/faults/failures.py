"""A write that fails, or dies, at each of its steps: its table reads as before or as after, and can be written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyhudi.errors import PyHudiError, RetryError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from support.attempts import IMPATIENT, PARTED, attempt, parted
from support.drive import plan, rows_of, task, write, write_after_death
from support.faults.faulty import READS, Faults
from support.faults.steps import Share
from support.places import Place, below, copy_table, files_below, on_disk, put_files, state_of
from support.rules.ends import assert_whole

COMPLETED = re.compile(r".hoodie/(timeline/\d+_)?\d+\.(replace|delta)?commit")
Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Work:
    """A write that fails.

    Attributes:
        parts: What it writes, one task each.
        before: What the table holds, None where there is none yet.
        after: What it holds then.
        dead: What a write that died before has left, for this one to roll back.
        bounds: How it is written, beside whether its rows are placed.
    """

    parts: list[pa.Table]
    before: list[pa.Table] | None
    after: Rows
    operation: str | None = None
    colocated: bool = False
    table: TableSettings = PARTED
    dead: pa.Table | None = None
    bounds: WriteSettings = IMPATIENT

    @property
    def keyed(self) -> bool:
        """Whether rows have keys by which they are found again."""
        return self.table.record_key_fields is not None

    @property
    def settings(self) -> WriteSettings:
        """How it is written."""
        return replace(self.bounds, colocated=self.colocated)

    def prepare(self, path: Place) -> None:
        """Make the table as it is before."""
        if self.before is not None:
            write(path, self.before, operation=None if self.keyed else self.operation, table=self.table)
        if self.dead is not None:
            task(plan(path, self.dead.schema, settings=IMPATIENT), self.dead, 0)

    def attempt(self, path: Place) -> None:
        """Write as Spark does."""
        attempt(path, self.parts, self.settings, self.operation, self.table)

    def content(self, path: Place) -> Rows:
        """Return the table's rows, none where there is none, without a request to its store."""
        with on_disk(path) as copy:
            if not any(COMPLETED.fullmatch(name) for name in files_below(copy)):
                return []
            return rows_of(copy, *self.table.partition_fields or (), "id", "value")

    def go_on(self, path: Place, left: Rows) -> None:
        """Write the same again, unless rows would be there twice then: something that changes nothing."""
        if not self.keyed:
            # Whoever writes next completes what was decided; the same rows would be there twice then.
            write(path, self.parts[0].slice(0, 0), operation=self.operation, settings=self.settings)
            if self.content(path) == self.after:
                return
        if self.operation == "insert" and left == self.after:
            write(path, parted("a", 7, value=0), operation="delete", settings=self.settings)
        else:
            write_after_death(path, self.parts, operation=self.operation, table=self.table, settings=self.settings)

    def check(self, path: Place, left: Rows, name: str) -> None:
        """Go on from what is left of it, and assert that the table holds what it should then."""
        self.go_on(path, left)
        assert self.content(path) == self.after, name
        # The second writing-down of the format knows buckets alone.
        if self.keyed:
            assert_whole(path, unique=False)


def check_failures(faults: Faults, work: Work, folder: Place, share: Share, *, after: bool) -> None:
    """Fail the write before or after the effect of its steps, and assert that the table is whole.

    It is gone on with once from each state that is left, times and invented names aside.

    Args:
        faults: Of every store.
        work: The write.
        folder: Where the tables go.
        share: Which steps fail.
        after: Whether a step fails once it took effect; those that have none are left out then.
    """
    origin, states, steps = below(folder, "origin"), set(), [""]
    work.prepare(origin)
    before = work.content(origin)
    numbers = [0]
    for number in numbers:
        table = below(folder, f"t{number}")
        copy_table(origin, table)
        faults.steps.clear()
        faults.at, faults.after = number, after
        error: PyHudiError | None = None
        try:
            work.attempt(table)
        except PyHudiError as raised:
            error = raised
        if number == 0:
            # The first attempt fails nowhere, and tells what there is to fail.
            steps = ["", *faults.steps]
            numbers += share.of([at for at in range(1, len(steps)) if not (after and steps[at] in READS)])
        faults.at, name = 0, f"step {number} of {len(steps) - 1} ({faults.name_of(number)})"
        assert error is None or isinstance(error, RetryError), name
        left = work.content(table)
        assert left == work.after or (error and left == before), name
        state = (error is None, state_of(table))
        if state not in states:
            states.add(state)
            work.check(table, left, name)
    assert len(steps) > 30


def check_deaths(faults: Faults, work: Work, folder: Place, share: Share) -> None:
    """Let the write's process be gone before each of its steps, and assert that the table is whole.

    What such a process leaves is what lies there at that moment: one write passes through all of them.

    Args:
        faults: Of every store.
        work: The write.
        folder: Where the tables go.
        share: Which of these moments are looked at.
    """
    table = below(folder, "t")
    work.prepare(table)
    before, moments = work.content(table), _Moments(table, folder)
    faults.steps.clear()
    faults.watch = lambda: moments.look(len(faults.steps))
    work.attempt(table)
    faults.watch = lambda: None
    assert work.content(table) == work.after
    assert len(faults.steps) > 30
    assert len(moments.names) > 10
    for left_by, path in share.of([*moments]):
        name = f"step {left_by} ({faults.name_of(left_by)})"
        left = work.content(path)
        assert left in (before, work.after), name
        work.check(path, left, name)


class _Moments:
    """Copies of a table at the moments at which any byte of it was another than the moment before."""

    def __init__(self, table: Place, folder: Place) -> None:
        self.names: list[int] = []
        self._table, self._folder = table, folder
        self._last: dict[str, bytes] = {}

    def look(self, step: int) -> None:
        """Copy the table before a step if it has changed."""
        now = files_below(self._table)
        if now != self._last:
            put_files(below(self._folder, f"t{step + 1}"), now)
            self.names.append(step + 1)
        self._last = now

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return ((one, below(self._folder, f"t{one}")) for one in self.names)
