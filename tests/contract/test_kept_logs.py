"""Random lives of merge-on-read tables under every kind of upkeep, held against a dict."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyhudi.errors import UndoError
from pyhudi.operations.service_settings import (
    KEEP_LATEST_COMMITS,
    KEEP_LATEST_FILE_VERSIONS,
    ArchiveSettings,
    CleanSettings,
)
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.reader.query import AsOf
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from support.attempts import parted
from support.drive import rows_of, write
from support.made.compacting import run, schedule
from support.models.past import rows_of as shown
from support.rules.ends import assert_whole
from support.upkeep.cleans import QUIET
from support.upkeep.undoing import MERGED, timeline_at

Content = dict[tuple[str, str], int]


@dataclass
class Kept:
    """A table, what it has to hold, and what it held after each write that is on its timeline or was archived."""

    path: Path
    chance: random.Random
    content: Content = field(default_factory=dict)
    past: dict[str, Content] = field(default_factory=dict)
    saved: list[str] = field(default_factory=list)

    def step(self, value: int) -> None:
        """Do something, and look."""
        some = [self.write] * 5 + [self.compact] * 2 + [self.schedule, self.clean, self.clean, self.archive]
        self.chance.choice([*some, self.save, self.let_go, self.roll_back, self.restore])(value)
        assert rows_of(self.path, "p", "id", "value") == sorted((*key, kept) for key, kept in self.content.items())

    def write(self, value: int) -> None:
        partition, keys = self.chance.choice("ab"), self.chance.sample(range(6), 2)
        operation = self.chance.choice(["upsert", "upsert", "delete"] if self.content else ["upsert"])
        result = write(
            self.path,
            [parted(partition, *keys, value=value)],
            operation=operation,
            settings=QUIET,
            table=MERGED,
        )
        for key in keys:
            self.content.pop((partition, f"k{key}"), None)
            if operation == "upsert":
                self.content[partition, f"k{key}"] = value
        assert result.instant
        self._note()

    def compact(self, _: int) -> None:
        run(self.path)
        self._note()

    def schedule(self, _: int) -> None:
        planned = schedule(self.path).instant
        if planned:
            # It shows what the table held by now, whenever it is carried out.
            self.past.setdefault(planned, dict(self.content))

    def clean(self, _: int) -> None:
        policy, kept = self.chance.choice([KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS]), self.chance.randint(1, 3)
        clean(open_storage(str(self.path)), CleanSettings(policy=policy, commits=kept, file_versions=kept))

    def archive(self, _: int) -> None:
        archive(open_storage(str(self.path)), ArchiveSettings(min_commits=2, max_commits=4, delta_commits=3))

    def save(self, _: int) -> None:
        if timeline_at(self.path).writes:
            self.saved.append(savepoint(open_storage(str(self.path))).instant)

    def let_go(self, _: int) -> None:
        if self.saved:
            time = self.saved.pop()
            self.saved = [one for one in self.saved if one != time]
            delete_savepoint(open_storage(str(self.path)), time)

    def roll_back(self, _: int) -> None:
        writes = timeline_at(self.path).writes
        if len(writes) > 1:
            self._undo(rollback, writes[-1].requested_time, writes[-2].requested_time)

    def restore(self, _: int) -> None:
        writes = timeline_at(self.path).writes
        if len(writes) > 1:
            to = self.chance.choice(writes[-4:]).requested_time
            self._undo(restore, to, to)

    def _undo(self, undo: object, instant: str, left: str) -> None:
        """Take something back, unless files of then are cleaned or kept, or something stands on it."""
        before = rows_of(self.path, "p", "id", "value")
        try:
            undo(open_storage(str(self.path)), instant)  # type: ignore[operator]
        except UndoError:
            assert rows_of(self.path, "p", "id", "value") == before
        else:
            self.content = dict(self.past[left])

    def _note(self) -> None:
        """Remember what the table held after each write that is new, compactions that followed it by themselves too."""
        for one in timeline_at(self.path).writes:
            self.past.setdefault(one.requested_time, dict(self.content))


@pytest.mark.parametrize("seed", range(5))
def test_what_a_table_holds_outlives_its_upkeep(tmp_path: Path, seed: int) -> None:
    table = Kept(tmp_path / "t", random.Random(seed))
    for value in range(1, 4):
        table.write(value)
    for value in range(4, 22):
        table.step(value)

    assert_whole(table.path, deep=True)
    for time in table.saved:
        assert _as_of(table.path, time) == sorted((*key, kept) for key, kept in table.past[time].items())


def _as_of(path: Path, time: str) -> list[tuple[object, ...]]:
    return sorted((p, key, value) for p, key, value, _ in shown(open_snapshot(str(path), query=AsOf(time))))
