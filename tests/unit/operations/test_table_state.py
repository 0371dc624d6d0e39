"""The state of a table: what it needs next, and how few requests it takes to find that out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.operations.state.table_state import NEWEST, TableState, table_state
from pyhudi.storage import open_storage
from pyhudi.timeline.clock import format_time
from pyhudi.timeline.writers.patience import Patience
from support.drive import write
from support.made.compacting import rows
from support.made.rescales import leave_rescale
from support.upkeep.meetings import COW, MOR, QUIET, Scene

PARTITIONS, GROUPS, ACTIVE = 40, 25, 30
FEW = Upkeep(CleanSettings(commits=2), ArchiveSettings(min_commits=3, max_commits=4))


class Counted:
    """A store that notes each call that is a request on a store of objects."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.calls: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in {"read", "open_input", "list", "look", "exists", "has_files", "modified"}:
            assert name in {"path", "uri", "now", "remote"}, f"a look at a table calls {name}"
            return attribute

        def call(path: str, *given: Any, **named: Any) -> Any:
            self.calls.append((name, path))
            return attribute(path, *given, **named)

        return call


def state_of(path: Path, upkeep: Upkeep = FEW) -> TableState:
    """Return the state of a table as a process finds it that lets no writer be silent."""
    return table_state(open_storage(str(path)), upkeep, Patience())


def widen(path: Path, instants: int) -> None:
    """Give a table many partitions and file groups of one instant, and a longer timeline, by names alone."""
    (base,) = path.glob("a/*.parquet")
    metafile = next((path / "a").glob(".hoodie_partition_metadata")).read_bytes()
    for number in range(PARTITIONS - 1):
        folder = path / f"p{number:03}"
        folder.mkdir()
        (folder / ".hoodie_partition_metadata").write_bytes(metafile)
        for group in range(GROUPS):
            name = f"{group:08}-0000-4000-8000-{number:012}-0_{base.name.partition('_')[2]}"
            (folder / name).write_bytes(b"x" * 100)
    timeline = path / ".hoodie/timeline"
    (done,) = timeline.glob("*.commit")
    body = done.read_bytes()
    for number in range(instants - 1):
        time = format_time(4_000_000_000_000 + number * 1000, "UTC")
        for ending in (f"{time}.commit.requested", f"{time}.inflight"):
            (timeline / ending).touch()
        (timeline / f"{time}_{time}.commit").write_bytes(body)


@pytest.mark.parametrize("instants", [ACTIVE, NEWEST + 100])
def test_a_look_takes_a_listing_of_each_partition_and_few_other_requests(tmp_path: Path, instants: int) -> None:
    """At most a listing of each partition and 100 requests, whatever the number of file groups and instants is."""
    path = tmp_path / "t"
    write(path, rows(("k1", "a", 1, 1)), table=COW, settings=QUIET)
    widen(path, instants)
    store: Any = Counted(open_storage(str(path)))

    state = table_state(store, Upkeep(), Patience())

    assert (state.partitions, state.file_groups) == (PARTITIONS, (PARTITIONS - 1) * GROUPS + 1)
    assert (state.instants, state.counted_instants) == (instants, min(instants, NEWEST))
    assert sum(state.actions.values()) == min(instants, NEWEST)
    counted = Counter(store.calls)
    assert len(store.calls) <= PARTITIONS + 100
    assert not [path for (_, path) in counted if path.endswith(".parquet")]
    data = [path for (call, path), times in counted.items() if call in {"look", "list"} and times > 1]
    assert [path for path in data if not path.startswith(".hoodie")] == []


def test_a_table_that_needs_nothing_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, rows(("k1", "a", 1, 1)), table=COW, settings=QUIET)

    state = state_of(path)

    assert state.needs == state.pending == ()
    assert (state.index, state.buckets, state.partitions, state.file_groups) == ("BUCKET", 1, 1, 1)
    assert (state.dead_bytes, state.unfinished_bytes) == (0, 0)
    assert [row["inserts"] for row in state.newest_writes] == [1]


def scene(path: Path, table: Any, writes: int) -> Scene:
    """Return a table with so many writes, after which nothing was tidied up."""
    times = [
        write(path, rows(("k1", "a", n, n), ("k2", "b", n, n)), table=table, settings=QUIET).instant
        for n in range(writes)
    ]
    return Scene(path, tuple(times))


# What is done to a table, and what it needs then, by the names of services.
SCENES: dict[str, tuple[Any, int, Callable[[Scene], object], list[str]]] = {
    "old slices": (COW, 4, lambda found: None, ["clean"]),
    "a long timeline": (COW, 6, lambda found: None, ["clean", "archive"]),
    "log files": (MOR, 6, lambda found: None, ["archive", "compact"]),
    "log files that a rescale merges": (MOR, 6, lambda found: leave_rescale(found.path, "a", "b"), ["archive"]),
    "a compaction planned": (MOR, 2, lambda found: found.compaction(), ["compact"]),
    "a write given up": (COW, 2, lambda found: found.dead(), ["rollback"]),
    "a write at work": (COW, 2, lambda found: found.at_work(), []),
    "a restore that broke off": (COW, 3, lambda found: found.restore(), ["restore"]),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_table_needs_the_services_that_have_work(tmp_path: Path, name: str) -> None:
    table, writes, act, services = SCENES[name]
    made = scene(tmp_path / "t", table, writes)
    act(made)

    assert [need.service for need in state_of(tmp_path / "t").needs] == services


def test_a_foreign_write_without_a_heartbeat_is_shown_and_never_called_dead(tmp_path: Path) -> None:
    made = scene(tmp_path / "t", COW, 1)
    foreign = made.pending("commit", inflight=True)

    state = state_of(tmp_path / "t")

    assert [row["instant"] for row in state.pending] == [foreign.requested_time]
    assert state.needs == ()
    assert state.pending_instants == 1
    eager = table_state(open_storage(str(tmp_path / "t")), FEW, replace(Patience(), eager=True))
    assert [need.arguments for need in eager.needs] == [{"instant": foreign.requested_time}]


def test_many_dead_writes_need_one_round(tmp_path: Path) -> None:
    made = scene(tmp_path / "t", COW, 1)
    for number in range(4):
        made.dead((f"k{number + 5}", "c", 1, 1))

    (need,) = state_of(tmp_path / "t").needs

    assert (need.service, need.arguments) == ("services", {"service": "rollback"})
