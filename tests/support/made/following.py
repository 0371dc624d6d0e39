"""A follower that keeps a list of a table's data files, by both kinds of first steps, and what its list has to hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pyhudi.operations.transaction.before_completion import set_aside
from pyhudi.operations.transaction.outcome import Outcome
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config import TableConfig, load_config
from pyhudi.table.files.file_group import data_file
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import Table, open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers.first_steps import FirstSteps, MakeFile
from support.places import Place

OUT_OF_USE = "hoodie.fake.out.of.use"
FOLDER = ".hoodie/fake"


@dataclass
class KeepingFollower:
    """It makes a file that says what an instant does to its list, then publishes the whole list after the instant.

    Attributes:
        asked: The outcomes for which it was asked for properties.
        prepared: The instants and outcomes for which it prepared.
        meanwhile: What happens while it prepares the first time.
        touches: Whether each other instant touches what it wrote.
        columns: Whose bounds it asks for.
    """

    asked: list[Outcome | None] = field(default_factory=list)
    prepared: list[tuple[Instant, Outcome]] = field(default_factory=list)
    meanwhile: Callable[[], None] | None = None
    touches: bool = True
    columns: tuple[str, ...] = ()

    def properties(self, table: Table, config: TableConfig, outcome: Outcome | None) -> Mapping[str, str | None]:
        self.asked.append(outcome)
        return {}

    def follows(self, table: Table) -> bool:
        return OUT_OF_USE not in table.config.properties

    def bounded_columns(self, table: Table) -> tuple[str, ...]:
        return self.columns

    def prepare(self, seen: SeenTable, instant: Instant, outcome: Outcome) -> FirstSteps:
        self.prepared.append((instant, outcome))
        time = instant.requested_time
        added = sorted(file.path for file in outcome.written)
        change = {"added": added, "removed": sorted(outcome.removed)}
        files = sorted({*kept(seen.storage, seen.timeline), *added} - {*outcome.removed})
        published = set_aside(seen.storage, time, f"{FOLDER}/{time}.list", json.dumps(files).encode())
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        made = MakeFile(f"{FOLDER}/{time}.change", json.dumps(change).encode())
        return FirstSteps((made, published), {OUT_OF_USE: "true"})

    def is_outdated(self, seen: SeenTable, since: Collection[Instant]) -> bool:
        return self.touches


def kept(storage: Storage, timeline: Timeline) -> list[str]:
    """Return the list after the newest completed instant that the follower followed."""
    followed = filter(_is_followed, timeline.completed)
    for instant in sorted(followed, key=lambda one: str(one.completion_time), reverse=True):
        path = f"{FOLDER}/{instant.requested_time}.list"
        if storage.exists(path):
            return list(json.loads(storage.read(path)))
    return []


def check_steps(path: Place) -> None:
    """Assert that the steps of each completed instant were taken, and those of each other in their order."""
    storage = open_storage(str(path))
    names = {info.path.rpartition("/")[2] for info in storage.list(FOLDER)}
    lists = {name.removesuffix(".list") for name in names if name.endswith(".list")}
    changes = {name.removesuffix(".change") for name in names if name.endswith(".change")}
    assert lists <= changes
    if storage.exists(".hoodie/hoodie.properties"):
        completed = {one.requested_time for one in open_table(storage).timeline().instants if _is_followed(one)}
        assert completed <= lists


def check_kept(path: Place) -> None:
    """Assert that the list holds the table's data files, and that no file waits aside any more."""
    storage = open_storage(str(path))
    table = open_table(storage)
    assert OUT_OF_USE not in load_config(storage).properties
    timeline = table.timeline()
    pending = {instant.requested_time for instant in timeline.pending}
    paths = (info.path for info in storage.list("", recursive=True) if not info.path.startswith(".hoodie/"))
    files = (file for path in paths if (file := data_file(path, changes=True)) is not None)
    # What a dead process made or prepared for a plan goes when the next process takes the plan up.
    made = {file.path for file in files if pending.isdisjoint(table.format.makers([file], timeline))}
    assert sorted(made ^ {*kept(storage, timeline)}) == []
    check_steps(path)
    assert [name for name in aside_files(path) if not any(f"/{time}/" in name for time in pending)] == []


def aside_files(path: Place) -> list[str]:
    listed = open_storage(str(path)).list(".hoodie/.pyhudi", recursive=True)
    return [info.path for info in listed if "/first/" in info.path]


def _is_followed(instant: Instant) -> bool:
    return instant.state == State.COMPLETED and instant.action != "savepoint"
