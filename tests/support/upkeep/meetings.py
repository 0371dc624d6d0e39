"""Meetings of two instants of one table, staged on real tables: what a scene offers, and how its outcome is named."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.rollback.rollback import plan_of
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, CompactionSettings, Upkeep
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import (
    ActionInstant,
    CleanerPlan,
    CleanFileInfo,
    CompactionPlan,
    InstantInfo,
    InstantModel,
    RestorePlan,
)
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers.heartbeat import Heartbeat
from pyhudi.timeline.writers.owner import Claim, Owner
from pyhudi.timeline.writers.reserve import Reserve
from support.drive import carry_out, plan, task, write
from support.made.clustering import request_clustering
from support.made.compacting import SCHEMA, Row, compaction_of, rows, slices, timeline_of
from support.places import copied
from support.seams import patch_seam, read_seam

QUIET = WriteSettings(
    upkeep=Upkeep(CleanSettings(automatic=False), ArchiveSettings(automatic=False), CompactionSettings(inline=False))
)
COLOCATED = replace(QUIET, colocated=True)
# Every write opens file groups for its new keys.
APART = replace(QUIET, lookup=LookupSettings(sizes=FileSizes(small=0)))
COW = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=1)
MOR = replace(COW, table_type="MERGE_ON_READ")
FOUND = replace(COW, index_type="SIMPLE", bucket_count=None)
LONG_AGO = "20200101000000000"

A, B = ("k1", "a", 1, 1), ("k2", "b", 1, 1)
# Of each kind of table the writes that made it.
TEMPLATES: dict[str, tuple[TableSettings, list[tuple[Row, ...]]]] = {
    "cow": (COW, [(A, B), (("k1", "a", 2, 2),), (("k1", "a", 3, 3),)]),
    "mor": (MOR, [(A, B), (("k1", "a", 2, 2), ("k2", "b", 2, 2)), (("k1", "a", 3, 3), ("k2", "b", 3, 3))]),
    "found": (FOUND, [(A, B), (("k3", "a", 1, 1),)]),
    "found logs": (replace(FOUND, table_type="MERGE_ON_READ"), [(A, B)]),
}

Left = Callable[[Any], bool]


@dataclass
class Scene:
    """One table on which two instants meet.

    Attributes:
        path: Where it is.
        instants: Its writes, oldest first.
    """

    path: Path
    instants: tuple[str, ...]

    @property
    def storage(self) -> Storage:
        """A store of its own."""
        return open_storage(str(self.path))

    def timeline(self) -> Timeline:
        """Return the timeline as it is."""
        return timeline_of(self.path)

    def groups(self, partition: str = "") -> list[FileSlice]:
        """Return the newest slices, of one partition or of all."""
        return [one for one in slices(self.path) if not partition or one.partition_path == partition]

    def plan(self, settings: WriteSettings = QUIET, **options: Any) -> WritePlan:
        """Plan a write."""
        return plan(self.path, options.pop("schema", SCHEMA), settings=settings, **options)

    def write(self, *some: Row, settings: WriteSettings = QUIET, **options: Any) -> str:
        """Complete a write, and return its time."""
        return write(self.path, rows(*some), settings=settings, **options).instant

    # --- what others leave

    def pending(
        self, action: str, body: InstantModel | None = None, *, at: str = "", inflight: bool = False
    ) -> Instant:
        """Leave an instant of another maker, as no process of ours would be at work on it."""
        timeline = self.timeline()
        at = at or next_time(int(self.storage.now() * 1000), timeline.greatest_time(), "UTC")
        instant = Instant(at, action, State.REQUESTED)
        timeline.files.request(instant, b"" if body is None else timeline.files.codec.encode(body))
        if inflight:
            instant = instant.at(State.INFLIGHT)
            timeline.files.start(instant)
        return instant

    def at_work(self, *some: Row, planned: WritePlan | None = None) -> Instant:
        """Leave a write of ours with its tasks done, by a process that lives: this one."""
        planned = planned or self.plan()
        done = task(planned, rows(*(some or (("k7", "c", 1, 1),))), 0)
        return planned.at(done.instant_time).transaction.inflight

    def dead(self, *some: Row) -> Instant:
        """Leave a write that its process gave up."""
        found = self.at_work(*some)
        Reserve(self.storage, found.requested_time).release()
        return found

    def clustering(self, partition: str = "a") -> Instant:
        """Leave a planned clustering of a partition's file groups."""
        at = request_clustering(self.path, self.groups(partition))
        return Instant(at, "clustering", State.REQUESTED)

    def clustering_untold(self) -> Instant:
        """Leave a planned clustering that names no file group."""
        found = self.clustering()
        (self.path / ".hoodie/timeline" / f"{found.requested_time}.clustering.requested").write_bytes(b"")
        return found

    def compaction(self, action: str = "compaction", partition: str = "") -> Instant:
        """Leave a planned compaction, or log compaction, of the slices as they are."""
        return self.pending(action, self.compaction_plan(partition))

    def compaction_plan(self, partition: str = "") -> CompactionPlan:
        """Return the plan that merges the slices as they are."""
        return compaction_of(self.groups(partition))

    def clean(self, *paths: str) -> Instant:
        """Leave a planned clean of some files."""
        named: dict[str, list[CleanFileInfo]] = {}
        for one in paths:
            named.setdefault(one.partition("/")[0], []).append(CleanFileInfo(file_path=self.storage.uri(one)))
        last = ActionInstant(timestamp=self.instants[-1], action="commit", state="COMPLETED")
        return self.pending(
            "clean",
            CleanerPlan(
                earliest_instant_to_retain=last,
                last_completed_commit_timestamp=self.instants[-1],
                policy="KEEP_LATEST_COMMITS",
                files_to_be_deleted_per_partition={},
                file_paths_to_be_deleted_per_partition=named,
                partitions_to_be_deleted=[],
            ),
        )

    def rollback(self, victim: str = LONG_AGO, *, names_files: bool = True) -> Instant:
        """Leave a rollback that broke off after its plan."""
        found = self.timeline().write_at(victim)
        gone = Instant(victim, "commit" if found is None else found.action, State.INFLIGHT)
        files = [path for path in self.files() if victim in path and names_files]
        return self.pending("rollback", plan_of(open_table(self.storage), gone, files))

    def condemned(self, victim: str, known: str) -> Instant:
        """Leave the rollback of a write at which a process of ours, or another engine's, gives signs of life."""
        rollback_instant = self.rollback(victim)
        if known == "living":
            Claim(self.storage, rollback_instant.requested_time).make(Owner.of_this_process("rollback"))
        Heartbeat(self.storage, rollback_instant.requested_time).touch()
        return rollback_instant

    def restore(self, to: str = "") -> Instant:
        """Leave a restore that broke off after its plan."""
        to = to or self.instants[0]
        undone = [InstantInfo(commit_time=one, action="commit") for one in reversed(self.instants) if one > to]
        return self.pending("restore", RestorePlan(instants_to_rollback=undone, savepoint_to_restore_timestamp=to))

    def files(self) -> list[str]:
        """Return the paths of the data files, the oldest first."""
        found = [one.relative_to(self.path).as_posix() for one in self.path.glob("[a-z]/*")]
        return sorted((one for one in found if "partition_metadata" not in one), key=lambda one: one.rsplit("_", 1)[-1])

    # --- how it ends

    def outcome(self, act: Callable[[], Any], theirs: Instant | None = None, gives_way: Left | None = None) -> str:
        """Return what becomes of a meeting.

        Args:
            act: What mine does.
            theirs: The other instant, where mine may finish or undo it.
            gives_way: Tells of what `act` returned, None where it raised, whether mine gave way.
        """
        error: PyHudiError | None = None
        result = None
        try:
            result = act()
        except PyHudiError as raised:
            error = raised
        if (
            gives_way is not None
            and (error is None or "planned anew" in (gives_way.__doc__ or ""))
            and gives_way(result)
        ):
            return "gives way"
        if error is not None:
            return f"refuses: {type(error).__name__}"
        if theirs is not None:
            same = [one for one in self.timeline().instants if one.identity == theirs.identity]
            if not same:
                return "undoes theirs"
            if same[0].state == State.COMPLETED:
                return "finishes theirs"
        return "goes on" if getattr(result, "instant", "?") else "waits"

    def commits(self, planned: WritePlan, *some: Row, after: Callable[[], object] = lambda: None) -> str:
        """Return what becomes of a planned write whose tasks run now, and which commits after something happened."""

        def act() -> Any:
            given = rows(*some)
            done = [task(planned, given, 0)]
            after()
            return commit_write(planned, done)

        return self.outcome(act)

    def carries_out(self, planned: WritePlan, *some: Row) -> str:
        """Return what becomes of a planned write that is carried out now."""
        return self.outcome(lambda: carry_out(planned, [rows(*some)]))

    def writes(self, *some: Row, theirs: Instant | None = None, **options: Any) -> str:
        """Return what becomes of a write that is planned and carried out now."""
        return self.outcome(lambda: carry_out(self.plan(**options), [rows(*some)]), theirs)

    @contextlib.contextmanager
    def before(self, seam: str, happens: Callable[[], object]) -> Iterator[None]:
        """Let something happen right before the first call of a function."""
        original, waiting = read_seam(seam), [happens]

        def instead(*args: Any, **options: Any) -> Any:
            if waiting:
                waiting.pop()()
            return original(*args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch_seam(patch, seam, instead)
            yield

    @contextlib.contextmanager
    def counting(self, seam: str) -> Iterator[list[int]]:
        """Give a list that grows with each call of a function."""
        original, calls = read_seam(seam), list[int]()

        def instead(*args: Any, **options: Any) -> Any:
            calls.append(1)
            return original(*args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch_seam(patch, seam, instead)
            yield calls


@cache
def _template(kind: str) -> tuple[Path, tuple[str, ...]]:
    """Make a table once in a process."""
    path = Path(tempfile.mkdtemp(prefix="pyhudi-meetings-")) / kind.replace(" ", "-")
    made, writes = TEMPLATES[kind]
    settings = APART if kind.startswith("found") else QUIET
    times = [write(path, rows(*some), table=made, settings=settings).instant for some in writes]
    return path, tuple(times)


def scene(kind: str, folder: Path) -> Scene:
    """Return a scene on a table of a kind."""
    path, instants = _template(kind)
    return Scene(copied(path, folder / "t"), instants)


Stage = Callable[[Scene], str]
# By what meets: mine, theirs, the state of theirs, what both touch, when theirs was asked for; with the kind of table.
STAGES: dict[str, tuple[str, Stage]] = {}
# The meetings of which the rules of a single writer have another verdict.
STAGES_OF_A_SINGLE_WRITER: dict[str, tuple[str, Stage]] = {}


def stage(*keys: str, table: str = "cow", single_writer: bool = False) -> Callable[[Stage], Stage]:
    """Have a function stage some meetings."""
    stages = STAGES_OF_A_SINGLE_WRITER if single_writer else STAGES

    def kept(function: Stage) -> Stage:
        for key in keys:
            parts = " | ".join(one.strip() for one in key.split("|"))
            assert parts not in stages, parts
            stages[parts] = (table, function)
        return function

    return kept


def older(some: Scene, action: str) -> Instant:
    """Leave a pending instant between the first write and the second."""
    return some.pending(action, at=f"{int(some.instants[1]) - 1:017d}")
