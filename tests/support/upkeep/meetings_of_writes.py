"""Meetings of a write with other instants."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.operations.read_rows import ReadRows
from pyhudi.operations.rollback.rollback import carry_out_rollback
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean as run_clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.transaction.instant_changes import hide
from pyhudi.operations.write.waits import wait_for_restore
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers import announcements
from pyhudi.timeline.writers.owner import SEALS, Claim, Owner
from pyhudi.timeline.writers.patience import Patience
from support.drive import carry_out, choosing_now, noted, plan
from support.made.compacting import SCHEMA, join, plan_join, rows, run, schedule
from support.made.rescaling import rescale
from support.seams import patch_seam
from support.upkeep.meetings import APART, COLOCATED, COW, QUIET, Scene, stage
from support.upkeep.undoing import condemn
from support.write_settings import write_settings

K1, K2, K9 = ("k1", "a", 9, 9), ("k2", "b", 9, 9), ("k9", "a", 9, 9)
ONE_VERSION = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)
IN_C = ("k8", "c", 9, 9)
READS_B = write_settings(QUIET, read=(ReadRows((Compare("p", "=", "b"),)),))


# --- beside writes


@stage("write | write | living | - | before plan")
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=some.at_work())


@stage("write | write | living | - | before plan", single_writer=True)
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=some.at_work(), settings=replace(QUIET, patience=Patience(single_writer=True)))


@stage("write | write | foreign | - | before plan")
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=some.pending("commit", inflight=True))


@stage("write | write | dead | - | before plan")
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=some.dead())


@stage("write | write | pending | - | since plan")
def _(some: Scene) -> str:
    mine, other = some.plan(), some.plan()
    some.at_work(planned=other)
    return some.carries_out(mine, IN_C)


@stage("write | write | completed | - | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    some.write(K2)
    return some.carries_out(mine, K1)


@stage("write | write | completed | file group | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    some.write(K1)
    return some.carries_out(mine, K1)


@stage("write | write | completed | bucket | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    some.write(("k5", "c", 1, 1))
    return some.carries_out(mine, IN_C)


@stage("write | write | completed | partition | since plan", table="found")
def _(some: Scene) -> str:
    mine = some.plan(APART, operation="insert_overwrite")
    some.write(("k5", "a", 1, 1), settings=APART)
    return some.carries_out(mine, K9)


@stage("write | write | completed | number of buckets | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    # No file group of theirs is in the partition of mine, which had no rows.
    rescale(some.path, {"a": 3, "c": 3}, settings=COLOCATED)
    return some.carries_out(mine, IN_C)


@stage("write | write | completed | new key | since plan", table="found")
def _(some: Scene) -> str:
    mine = some.plan(APART)
    some.write(K9, settings=APART)
    return some.carries_out(mine, K9)


@stage("write | write | completed | read rows | since plan")
def _(some: Scene) -> str:
    mine = some.plan(READS_B)
    some.write(K2)
    return some.carries_out(mine, K1)


@stage("write | write | completed | columns | since plan")
def _(some: Scene) -> str:
    def wider(name: str, row: tuple[Any, ...]) -> pa.Table:
        return rows(row).append_column(name, pa.array([1], pa.int64()))

    mine, theirs = wider("x", IN_C), wider("y", K2)
    planned, other = some.plan(schema=mine.schema), some.plan(schema=theirs.schema)
    carry_out(other, [theirs])
    return some.outcome(lambda: carry_out(planned, [mine]))


@stage("write | write | completed | properties | since plan")
def _(some: Scene) -> str:
    path = some.path.parent / "new"
    other = plan(path, SCHEMA, table=replace(COW, bucket_count=2), settings=QUIET)
    mine = plan(path, SCHEMA, table=COW, settings=QUIET)
    carry_out(other, [rows(K2)])
    return some.outcome(lambda: carry_out(mine, [rows(K1)]))


# --- beside compactions


def _action(number: int) -> tuple[str, Callable[[Scene], object], Callable[[Scene], object]]:
    return (
        ("compaction", lambda some: schedule(some.path), lambda some: run(some.path)),
        ("log compaction", lambda some: plan_join(some.path), lambda some: join(some.path)),
    )[number]


def _compactions(number: int) -> None:
    name, schedules, runs = _action(number)

    @stage(f"write | {name} | pending | - | before plan", table="mor")
    def _(some: Scene) -> str:
        schedules(some)
        return some.writes(IN_C, operation="insert")

    @stage(f"write | {name} | pending | file group | before plan", table="mor")
    def _(some: Scene) -> str:
        schedules(some)
        return some.writes(K1)

    @stage(f"write | {name} | pending | base file | before plan", table="mor")
    def _(some: Scene) -> str:
        schedules(some)
        return some.writes(K1, operation="insert")

    @stage(f"write | {name} | pending | - | since plan", table="mor")
    def _(some: Scene) -> str:
        mine = choosing_now(some.plan(operation="insert"))
        schedules(some)
        return some.carries_out(mine, IN_C)

    @stage(f"write | {name} | pending | file group | since plan", table="mor")
    def _(some: Scene) -> str:
        mine = choosing_now(some.plan())
        schedules(some)
        return some.carries_out(mine, K1)

    @stage(f"write | {name} | pending | base file | since plan", table="mor")
    def _(some: Scene) -> str:
        mine = choosing_now(some.plan(operation="insert"))
        schedules(some)
        return some.carries_out(mine, K1)

    for when in ("before", "since"):

        def planned(some: Scene, operation: str = "upsert", when: str = when) -> Any:
            if when == "before":
                schedules(some)
            mine = choosing_now(some.plan(operation=operation))
            runs(some)
            return mine

        @stage(f"write | {name} | completed | - | {when} plan", table="mor")
        def _(some: Scene, planned: Callable[..., Any] = planned) -> str:
            return some.carries_out(planned(some), IN_C)

        @stage(f"write | {name} | completed | file group | {when} plan", table="mor")
        def _(some: Scene, planned: Callable[..., Any] = planned) -> str:
            return some.carries_out(planned(some), K1)

        @stage(f"write | {name} | completed | base file | {when} plan", table="mor")
        def _(some: Scene, planned: Callable[..., Any] = planned) -> str:
            return some.carries_out(planned(some, "insert"), K1)

    @stage(f"write | {name} | pending | room | before plan", table="found logs")
    def _(some: Scene) -> str:
        some.compaction(name.replace(" ", ""), "a")
        return _joins(some)


def _joins(some: Scene) -> str:
    """Write a row of a new key, which would join the small file of its partition."""
    file_ids_before = {one.file_id for one in some.groups("a")}
    return some.outcome(
        lambda: carry_out(some.plan(QUIET), [rows(K9)]),
        gives_way=lambda _: {one.file_id for one in some.groups("a")} != file_ids_before,
    )


_compactions(0)
_compactions(1)


# --- beside clusterings


@stage("write | clustering | pending | - | before plan")
def _(some: Scene) -> str:
    return some.writes(K2, theirs=some.clustering())


@stage("write | clustering | pending | file group | before plan")
def _(some: Scene) -> str:
    return some.writes(K1, theirs=some.clustering())


@stage("write | clustering | pending | partition | before plan")
def _(some: Scene) -> str:
    some.clustering()
    return some.writes(K1, operation="insert_overwrite")


@stage("write | clustering | pending | untold | before plan")
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=some.clustering_untold())


@stage("write | clustering | pending | room | before plan", table="found")
def _(some: Scene) -> str:
    some.clustering()
    return _joins(some)


@stage("write | clustering | pending | - | since plan")
def _(some: Scene) -> str:
    return some.commits(some.plan(COLOCATED), K2, after=some.clustering)


@stage("write | clustering | pending | file group | since plan")
def _(some: Scene) -> str:
    return some.commits(some.plan(COLOCATED), K1, after=some.clustering)


@stage("write | clustering | pending | partition | since plan")
def _(some: Scene) -> str:
    return some.commits(some.plan(operation="insert_overwrite"), K1, after=some.clustering)


@stage("write | clustering | pending | untold | since plan")
def _(some: Scene) -> str:
    return some.commits(some.plan(), K1, after=some.clustering_untold)


# --- beside cleans


@stage("write | clean | pending | - | before plan")
def _(some: Scene) -> str:
    some.clean(some.files()[0])
    return some.writes(K1)


@stage("write | clean | pending | - | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    some.clean(some.files()[0])
    return some.carries_out(mine, K1)


@stage("write | clean | completed | - | since plan", table="found")
def _(some: Scene) -> str:
    some.write(("k1", "a", 5, 5), settings=APART)
    mine = some.plan(APART)
    run_clean(some.storage, ONE_VERSION)
    return some.carries_out(mine, K9)


def _cleaned(some: Scene, *, done: bool) -> str:
    some.write(("k4", "b", 1, 1), settings=APART)
    archive(some.storage, ArchiveSettings(min_commits=1, max_commits=1), ONE_VERSION)
    mine = some.plan(APART)
    old = next(one for one in some.files() if one.startswith("a/"))
    some.write(("k1", "a", 5, 5), settings=APART)
    if done:
        run_clean(some.storage, ONE_VERSION)
    else:
        some.clean(old)
        (some.path / old).unlink()
    return some.carries_out(mine, ("k3", "a", 5, 5))


@stage("write | clean | pending | looked-up keys | since plan", table="found")
def _(some: Scene) -> str:
    return _cleaned(some, done=False)


@stage("write | clean | completed | looked-up keys | since plan", table="found")
def _(some: Scene) -> str:
    return _cleaned(some, done=True)


# --- beside rollbacks


@stage("write | rollback | pending | victim | before plan")
def _(some: Scene) -> str:
    last = some.instants[-1]
    condemn(some.path, last)
    return some.writes(IN_C, theirs=next(one for one in some.timeline().pending if one.action == "rollback"))


for _known in ("living", "foreign"):

    @stage(f"write | rollback | {_known} | victim | before plan")
    def _(some: Scene, known: str = _known) -> str:
        return some.writes(IN_C, theirs=some.condemned(some.instants[-1], known))


@stage("write | rollback | pending | - | before plan")
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=some.rollback())


@stage("write | rollback | dead | - | before plan")
def _(some: Scene) -> str:
    rollback_instant = some.rollback()
    past = time.time() - 7200
    os.utime(some.path / ".hoodie/timeline" / f"{rollback_instant.requested_time}.rollback.requested", (past, past))
    return some.writes(IN_C, theirs=rollback_instant)


def _rolled_back(state: str) -> None:
    def undo(some: Scene, at: str) -> None:
        _ = condemn(some.path, at) if state == "pending" else rollback(some.storage, at)

    @stage(f"write | rollback | {state} | - | since plan")
    def _(some: Scene) -> str:
        mine = some.plan()
        undo(some, some.instants[-1])
        return some.carries_out(mine, K2)

    @stage(f"write | rollback | {state} | mine itself | since plan")
    def _(some: Scene) -> str:
        mine = some.plan()

        def happens() -> None:
            if state == "pending":
                some.rollback(noted(mine))
            else:
                rollback(some.storage, noted(mine))
                # A late task puts it back, once the seal is gone by which its commit learns of the rollback, too.
                some.storage.delete(f"{SEALS}/{noted(mine)}")
                some.pending("commit", at=noted(mine), inflight=True)

        return some.commits(mine, K1, after=happens)

    @stage(f"write | rollback | {state} | basis | since plan")
    def _(some: Scene) -> str:
        def happens() -> None:
            # Its plan names no files, so that only the write that it undoes tells what is taken from mine.
            found = some.rollback(some.instants[-1], names_files=False)
            if state == "completed":
                carry_out_rollback(open_table(some.storage), some.timeline(), found.requested_time)

        return some.commits(some.plan(COLOCATED), K1, after=happens)

    def taken(some: Scene, at: str) -> None:
        """Undo a write, or break off once its files are gone."""
        undo(some, at)
        timeline = some.timeline()
        victim = timeline.write_at(at)
        if victim is not None:
            hide(open_table(some.storage), timeline.files.paths(), victim)
        for one in some.files():
            if at in one:
                (some.path / one).unlink()

    @stage(f"write | rollback | {state} | file group | since plan", table="mor")
    def _(some: Scene) -> str:
        mine = some.plan()
        taken(some, some.instants[-1])
        return some.carries_out(mine, K1)

    @stage(f"write | rollback | {state} | bucket | since plan")
    def _(some: Scene) -> str:
        last = some.write(IN_C)
        mine = some.plan()
        taken(some, last)
        return some.carries_out(mine, IN_C)

    @stage(f"write | rollback | {state} | partition | since plan", table="found")
    def _(some: Scene) -> str:
        mine = some.plan(APART, operation="insert_overwrite")
        taken(some, some.instants[-1])
        return some.carries_out(mine, K9)

    @stage(f"write | rollback | {state} | looked-up keys | since plan", table="found")
    def _(some: Scene) -> str:
        mine = some.plan(APART)
        undo(some, some.instants[-1])
        return some.carries_out(mine, ("k9", "b", 1, 1))

    @stage(f"write | rollback | {state} | read rows | since plan")
    def _(some: Scene) -> str:
        last = some.write(IN_C)
        mine = some.plan(READS_B)
        undo(some, last)
        return some.carries_out(mine, K1)

    @stage(f"write | rollback | {state} | replaced | since plan")
    def _(some: Scene) -> str:
        last = some.write(operation="delete_partition", settings=write_settings(QUIET, partitions_to_delete=("a",)))
        mine = some.plan()
        undo(some, last)
        return some.carries_out(mine, K2)


_rolled_back("pending")
_rolled_back("completed")


# --- beside restores, savepoints and archiving


@stage("write | restore | pending | - | before plan")
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=some.restore())


@stage("write | restore | pending | - | since plan")
def _(some: Scene) -> str:
    return some.commits(some.plan(COLOCATED), K1, after=some.restore)


def _for_a_restore(some: Scene, make: Callable[[str], object]) -> str:
    """Return what a commit does that looks for a restore before it plans anew, where a process has left these signs."""
    work, theirs = some.plan().transaction, some.restore()
    make(theirs.requested_time)
    pauses: list[bool] = []

    def pause() -> None:
        pauses.append(True)
        theirs_gone(some, theirs)

    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "pause between two looks for a restore", pause)
        found = some.outcome(lambda: wait_for_restore(work, time.monotonic() + 60))
    return "waits" if pauses else found


def theirs_gone(some: Scene, theirs: Instant) -> None:
    """Have a restore be over."""
    some.timeline().files.remove_pending(theirs)


@stage("write | restore | living | - | since plan")
def _(some: Scene) -> str:
    mine = Owner.of_this_process("theirs")
    return _for_a_restore(some, lambda at: Claim(some.storage, at).make(mine))


@stage("write | restore | foreign | - | since plan")
def _(some: Scene) -> str:
    return _for_a_restore(some, lambda _: None)


@stage("write | restore | dead | - | since plan")
def _(some: Scene) -> str:
    gone = replace(Owner.of_this_process("theirs"), pid=(1 << 22) + 1)
    return _for_a_restore(some, lambda at: Claim(some.storage, at).make(gone))


@stage("write | restore | completed | - | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    restore(some.storage, some.instants[1])
    return some.carries_out(mine, K2)


@stage("write | savepoint | pending | - | before plan")
def _(some: Scene) -> str:
    some.timeline().files.start(Instant(some.instants[-1], "savepoint", State.INFLIGHT))
    return some.writes(K1)


@stage("write | savepoint | pending | - | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    some.timeline().files.start(Instant(some.instants[-1], "savepoint", State.INFLIGHT))
    return some.carries_out(mine, K1)


@stage("write | archiving | pending | mine itself | since plan")
def _(some: Scene) -> str:
    mine = choosing_now(some.plan())
    first = noted(mine)
    announcements.announce(some.storage, first)

    def takes_a_later_time(_: object) -> bool:
        return noted(mine) > first

    return some.outcome(lambda: carry_out(mine, [rows(K1)]), gives_way=takes_a_later_time)


@stage("write | archiving | pending | - | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    announcements.announce(some.storage, some.instants[0])
    return some.carries_out(mine, K1)
