"""A follower that keeps a list of a table's data files, by both kinds of first steps, and what its list has to hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyhudi.operations.following.before_completion import set_aside
from pyhudi.operations.following.follower import FileChanges
from pyhudi.operations.result import MetadataWritten
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
        asked: The properties for which it was asked for changes.
        prepared: The instants and changes for which it prepared.
        meanwhile: What happens while it prepares the first time.
        touches: Whether each other instant touches what it wrote.
        columns: Whose bounds it asks for.
    """

    asked: list[TableConfig] = field(default_factory=list)
    prepared: list[tuple[Instant, FileChanges]] = field(default_factory=list)
    meanwhile: Callable[[], None] | None = None
    touches: bool = True
    columns: tuple[str, ...] = ()

    def properties(self, table: Table, config: TableConfig) -> Mapping[str, str | None]:
        self.asked.append(config)
        return {}

    def follows(self, table: Table) -> bool:
        return OUT_OF_USE not in table.config.properties

    def bounded_columns(self, table: Table) -> tuple[str, ...]:
        return self.columns

    def prepare(self, seen: SeenTable, instant: Instant, changes: FileChanges) -> KeptList:
        self.prepared.append((instant, changes))
        time = instant.requested_time
        added = sorted(file.path for file in changes.written)
        change = {"added": added, "removed": sorted(changes.removed)}
        files = sorted({*kept(seen.storage, seen.timeline), *added} - {*changes.removed})
        published = set_aside(seen.storage, time, f"{FOLDER}/{time}.list", json.dumps(files).encode())
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        made = MakeFile(f"{FOLDER}/{time}.change", json.dumps(change).encode())
        return KeptList(FirstSteps((made, published), {OUT_OF_USE: "true"}), seen.timeline, self.touches)


@dataclass(frozen=True)
class KeptList:
    """What it prepared, as of a timeline."""

    first: FirstSteps
    seen: Timeline
    touches: bool
    sets_aside: bool = True
    report: MetadataWritten | None = None

    def ready_after(self, timeline: Timeline, config: TableConfig) -> str | None:
        return None if self.touches and not set(timeline.completed) <= set(self.seen.completed) else ""

    def steps(self, completed: Instant) -> FirstSteps:
        return self.first


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
