"""Backfills beside a writer like Apache Hudi's in Flink, which begins the next instant as it completes one.

So an instant of its is open at all times, for as long as no rows come, and nothing shows that it lives.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import RetryError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.operations.upkeep.after_write import means_of
from pyhudi.operations.upkeep.service_entry import Call
from pyhudi.operations.upkeep.service_round import run_services
from pyhudi.storage import open_storage
from pyhudi.timeline.writers.patience import Patience
from support.drive import carry_out, plan
from support.made.compacting import SCHEMA, Row, append, begin, merged, new_table, rows, timeline_of
from support.seams import patch_seam
from support.write_settings import write_settings

HOURS = 5
SMALL = Upkeep(
    clean=CleanSettings(commits=1), archive=ArchiveSettings(min_commits=2, max_commits=3, delta_commits=None)
)


class Open:
    """A table whose open instant is checked after everything that happens beside it, and the rows that it must hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = {("a", "k1"): 0, ("b", "k1"): 0}
        self.at = ""
        self.refused = 0
        new_table(path, ("k1", "a", 0, 0), ("k1", "b", 0, 0))

    def begin(self) -> None:
        self.at = begin(self.path)

    def checkpoint(self, key: str, partition: str, value: int) -> None:
        """Complete the open instant with a row, and begin the next."""
        append(self.path, (key, partition, value, value), at=self.at)
        self.rows[partition, key] = value
        self.begin()

    def beside(self, act: Callable[[], object], rows: dict[tuple[str, str], int] | None = None) -> None:
        """Do something that passes, which leaves rows, or is refused."""
        try:
            act()
        except RetryError as error:
            assert self.at in str(error), error
            self.refused += 1
        else:
            self.rows |= rows or {}
        assert (self.path / ".hoodie" / "timeline" / f"{self.at}.deltacommit.inflight").exists()
        assert [one.action for one in timeline_of(self.path).instants if one.action == "rollback"] == []

    def holds_all(self) -> bool:
        return merged(self.path) == sorted((p, key, value) for (p, key), value in self.rows.items())


def backfill(table: Open, row: Row, *, operation: str, settings: WriteSettings) -> Callable[[], object]:
    def act() -> object:
        planned = plan(table.path, SCHEMA, operation=operation, settings=settings)
        return carry_out(planned, [rows(row)])

    return act


def services(table: Open) -> object:
    storage, settings = open_storage(str(table.path)), WriteSettings()
    done = run_services(Call(storage, Patience(), lambda: SMALL, lambda: means_of(settings)))
    assert done.failed == ()
    return done


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
@pytest.mark.parametrize("retried", [False, True], ids=["at once", "merged again"])
def test_no_backfill_rolls_an_open_instant_back(
    tmp_path: Path, operation: str, retried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some begin before the instant, and are decided after it; its writer then gets rows and completes it."""
    table, now = Open(tmp_path / "t"), [time.time()]
    patch_seam(monkeypatch, "time of a local store", lambda self: now[0])
    settings = write_settings(upkeep=SMALL, retry_s=0.01 if retried else 0.0)
    early = plan(table.path, SCHEMA, operation=operation, settings=settings)
    table.begin()
    table.beside(lambda: carry_out(early, [rows(("early", "a", 1, 1))]), {("a", "early"): 1})
    for hour in range(1, HOURS + 1):
        now[0] += 3600
        other = f"k{hour}"
        for row in ((other, "a", hour, hour), (other, "c", hour, hour)):
            act = backfill(table, row, operation=operation, settings=settings)
            table.beside(act, {(row[1], other): hour})
        table.beside(lambda: services(table))
    for number in range(3):
        table.checkpoint("k1", "a", 10 + number)
        table.beside(
            backfill(table, ("k1", "b", number, number), operation="upsert", settings=settings),
            {("b", "k1"): number},
        )
        table.beside(lambda: services(table))

    assert table.refused, "an instant of which nothing is known keeps writes out"
    assert table.holds_all()


def test_only_the_users_word_ends_an_open_instant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An age beyond the idle hours leaves it alone, and an age within them gives it up."""
    table, now = Open(tmp_path / "t"), [time.time()]
    patch_seam(monkeypatch, "time of a local store", lambda self: now[0])
    table.begin()
    now[0] += HOURS * 3600

    def aged(hours: int) -> WriteSettings:
        return replace(WriteSettings(), patience=Patience(foreign_age_s=hours * 3600.0))

    table.beside(backfill(table, ("k2", "a", 1, 1), operation="upsert", settings=aged(HOURS + 1)))
    assert table.refused == 1

    carry_out(plan(table.path, SCHEMA, settings=aged(HOURS - 1)), [rows(("k2", "a", 1, 1))])

    assert not (table.path / ".hoodie" / "timeline" / f"{table.at}.deltacommit.inflight").exists()
    table.rows["a", "k2"] = 1
    assert table.holds_all()
