"""Meetings of a table service with other instants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyhudi.errors import ConcurrentWriteError
from pyhudi.operations.rollback.rollback import carry_out_rollback
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean as run_clean
from pyhudi.operations.services.execution import claim
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.table.files.lost import open_view
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers import owner
from pyhudi.timeline.writers.patience import Patience
from support.drive import at_time, carry_out, choosing_now
from support.made.compacting import append, join, plan_join, rows, run, schedule
from support.seams import patch_seam
from support.upkeep.meetings import Scene, older, stage
from support.upkeep.undoing import condemn

ONE = CleanSettings(commits=1)
FEW = ArchiveSettings(min_commits=1, max_commits=1)
PATIENT = Patience()


# --- compactions of either kind


def call_between(seen: list[Any], between: Callable[[], object]) -> Callable[..., Any]:
    """Execute units, and have something happen before the plan is completed."""

    def executor(call: Callable[[Any], Any], units: Any) -> list[Any]:
        results = [call(one) for one in units]
        if not seen:
            seen.append(between())
        return results

    return executor


def _compactions(name: str, schedules: Callable[..., Any], runs: Callable[..., Any]) -> None:  # noqa: PLR0915
    action = name.replace(" ", "")

    def held(some: Scene) -> str:
        """Plan beside what holds the file group of partition a; that of b is free."""
        return some.outcome(lambda: schedules(some.path), gives_way=lambda told: told.file_groups == 1)

    def while_carried_out(some: Scene, between: Callable[[], object]) -> str:
        schedules(some.path)
        return some.outcome(lambda: runs(some.path, executor=call_between([], between)))

    for other in ("compaction", "log compaction"):

        @stage(f"{name} | {other} | pending | file group | before plan", table="mor")
        def _(some: Scene, other: str = other) -> str:
            some.compaction(other.replace(" ", ""), "a")
            return held(some)

    @stage(f"{name} | clustering | pending | file group | before plan", table="mor")
    def _(some: Scene) -> str:
        some.clustering("a")
        return held(some)

    @stage(f"{name} | write | pending | - | before plan", table="mor")
    def _(some: Scene) -> str:
        # A write that chose its time before, and began after.
        older = at_time(some.plan(), next_time(int(some.storage.now() * 1000), some.timeline().greatest_time(), "UTC"))
        schedules(some.path)
        some.at_work(planned=older)
        return some.outcome(lambda: runs(some.path))

    @stage(f"{name} | write | pending | - | since plan", table="mor")
    def _(some: Scene) -> str:
        schedules(some.path)
        some.at_work()
        return some.outcome(lambda: runs(some.path))

    @stage(f"{name} | restore | pending | - | before plan", table="mor")
    def _(some: Scene) -> str:
        some.restore()
        return some.outcome(lambda: schedules(some.path))

    @stage(f"{name} | rollback | pending | victim | before plan", table="mor")
    def _(some: Scene) -> str:
        condemn(some.path, some.instants[-1])
        theirs = next(one for one in some.timeline().pending if one.action == "rollback")
        return some.outcome(lambda: schedules(some.path), theirs)

    for known in ("living", "foreign"):

        @stage(f"{name} | rollback | {known} | victim | before plan", table="mor")
        def _(some: Scene, known: str = known) -> str:
            theirs = some.condemned(some.instants[-1], known)
            return some.outcome(lambda: schedules(some.path, patience=PATIENT), theirs)

    @stage(f"{name} | rollback | pending | - | before plan", table="mor")
    def _(some: Scene) -> str:
        theirs = some.rollback()
        return some.outcome(lambda: schedules(some.path), theirs)

    @stage(f"{name} | rollback | pending | basis | since plan", table="mor")
    def _(some: Scene) -> str:
        return while_carried_out(some, lambda: some.rollback(some.instants[-1]))

    @stage(f"{name} | rollback | completed | basis | since plan", table="mor")
    def _(some: Scene) -> str:
        def undone() -> None:
            found = some.rollback(some.instants[-1])
            carry_out_rollback(open_table(some.storage), some.timeline(), found.requested_time)

        return while_carried_out(some, undone)

    @stage(f"{name} | rollback | pending | - | since plan", table="mor")
    def _(some: Scene) -> str:
        return while_carried_out(some, some.rollback)

    @stage(f"{name} | rollback | pending | mine itself | since plan", table="mor")
    def _(some: Scene) -> str:
        def undone() -> None:
            at = next(one.requested_time for one in some.timeline().pending if one.action == action)
            some.rollback(at)

        return while_carried_out(some, undone)

    @stage(f"{name} | restore | completed | - | since plan", table="mor")
    def _(some: Scene) -> str:
        schedules(some.path)
        to = some.write(("k1", "a", 8, 8))
        some.write(("k1", "a", 9, 9))
        return some.outcome(lambda: runs(some.path, executor=call_between([], lambda: restore(some.storage, to))))

    @stage(f"{name} | rollback | completed | - | since plan", table="mor")
    def _(some: Scene) -> str:
        def undone() -> None:
            dead = some.at_work()
            rollback(some.storage, dead.requested_time)

        return while_carried_out(some, undone)

    @stage(f"{name} | write | completed | - | since plan", table="mor")
    def _(some: Scene) -> str:
        return while_carried_out(some, lambda: some.write(("k1", "a", 9, 9)))

    @stage(f"{name} | write | completed | replaced | since plan", table="mor")
    def _(some: Scene) -> str:
        # Of a clustered file group nothing is left either; pyhudi refuses to overwrite what no plan of ours holds.
        return while_carried_out(some, lambda: some.write(("k1", "a", 9, 9), operation="insert_overwrite"))

    @stage(f"{name} | restore | pending | - | since plan", table="mor")
    def _(some: Scene) -> str:
        return while_carried_out(some, some.restore)

    @stage(f"{name} | {name} | living | the plan | before plan", table="mor")
    def _(some: Scene) -> str:
        claimed(some, schedules)
        return some.outcome(lambda: runs(some.path, patience=PATIENT))

    @stage(f"{name} | {name} | foreign | the plan | before plan", table="mor")
    def _(some: Scene) -> str:
        at = schedules(some.path).instant
        some.timeline().files.start(Instant(at, action, State.INFLIGHT))
        return some.outcome(lambda: runs(some.path, patience=PATIENT))

    @stage(f"{name} | {name} | dead | the plan | before plan", table="mor")
    def _(some: Scene) -> str:
        seal = claimed(some, schedules)
        owner.Seal(some.storage, seal).set_for_good()
        undone: list[object] = []

        def act() -> Any:
            told = runs(some.path, patience=PATIENT)
            undone.extend(one for one in some.timeline().completed if one.action == "rollback")
            return told

        told = some.outcome(act)
        return "undoes theirs" if undone else told


def claimed(some: Scene, schedules: Callable[..., Any]) -> str:
    """Have this process begin to carry a plan out, and return the name of its seal."""
    at = schedules(some.path).instant
    found = next(one for one in some.timeline().pending if one.requested_time == at)
    work = claim(open_table(some.storage), found, PATIENT)
    assert work is not None
    return work.seals[-1]


_compactions("compaction", schedule, run)
_compactions("log compaction", plan_join, join)


@stage("log compaction | write | completed | basis | since plan", table="mor")
def _(some: Scene) -> str:
    """A write of an earlier time completes: its log file lies between those that are joined."""
    older = some.pending("deltacommit")
    some.timeline().files.remove_pending(older)
    plan_join(some.path)

    def between() -> None:
        some.pending("deltacommit", at=older.requested_time, inflight=True)
        append(some.path, ("k1", "a", 9, 9), at=older.requested_time)

    return some.outcome(lambda: join(some.path, executor=call_between([], between)))


# --- cleans


def _cleans(some: Scene, theirs: Instant | None = None) -> str:
    return some.outcome(lambda: run_clean(some.storage, ONE), theirs, lambda told: told is not None and not told.files)


def _cleans_after(some: Scene, between: Callable[[], object]) -> str:
    """Clean, and have something happen between the look at the table and the decision."""
    looks: list[int] = []
    with some.counting("progress of cleans") as rounds:

        def happens() -> None:
            between()
            looks.append(len(rounds))

        def act() -> Any:
            try:
                return run_clean(some.storage, ONE)
            except ConcurrentWriteError:
                # It was planned anew, and met what had come in between.
                rounds.append(1)
                return None

        with some.before("request a clean", happens):
            return some.outcome(act, gives_way=lambda _: len(rounds) > looks[0])


for _other in ("rollback", "restore"):

    @stage(f"clean | {_other} | pending | - | before plan")
    def _(some: Scene, other: str = _other) -> str:
        getattr(some, other)()
        return _cleans(some)

    @stage(f"clean | {_other} | pending | - | since plan")
    def _(some: Scene, other: str = _other) -> str:
        return _cleans_after(some, getattr(some, other))


@stage("clean | rollback | completed | - | since plan")
def _(some: Scene) -> str:
    return _cleans_after(some, lambda: rollback(some.storage, some.at_work().requested_time))


@stage("clean | restore | completed | - | since plan")
def _(some: Scene) -> str:
    some.write(("k1", "a", 4, 4))
    return _cleans_after(some, lambda: restore(some.storage, some.instants[-1]))


@stage("clean | clean | pending | - | before plan")
def _(some: Scene) -> str:
    old = next(one for one in some.files() if one.startswith("a/"))
    return some.outcome(lambda: run_clean(some.storage, ONE), some.clean(old))


@stage("clean | clean | pending | - | since plan")
def _(some: Scene) -> str:
    old = next(one for one in some.files() if one.startswith("a/"))
    return _cleans_after(some, lambda: some.clean(old))


@stage("clean | clean | completed | - | since plan")
def _(some: Scene) -> str:
    return _cleans_after(some, lambda: run_clean(some.storage, ONE))


@stage("clean | savepoint | completed | files | before plan")
def _(some: Scene) -> str:
    savepoint(some.storage, some.instants[0])
    return _cleans(some)


@stage("clean | savepoint | completed | files | since plan")
def _(some: Scene) -> str:
    """The savepoint came after the plan was put on the timeline."""
    some.clean(next(one for one in some.files() if one.startswith("a/")))
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "slices that a savepoint names", lambda mine, table, now, moment, *_: _slices(moment))
        savepoint(some.storage, some.instants[0])
    return _cleans(some)


def _slices(moment: Any) -> Any:
    return open_view(moment).all_slices()


@stage("clean | savepoint | completed | - | since plan")
def _(some: Scene) -> str:
    return _cleans_after(some, lambda: savepoint(some.storage, some.instants[-1]))


@stage("clean | savepoint | pending | - | since plan")
def _(some: Scene) -> str:
    return _cleans_after(
        some, lambda: some.timeline().files.start(Instant(some.instants[-1], "savepoint", State.INFLIGHT))
    )


@stage("clean | clustering | pending | file group | before plan")
def _(some: Scene) -> str:
    some.clustering()
    return _cleans(some)


@stage("clean | compaction | pending | file group | before plan", table="mor")
def _(some: Scene) -> str:
    return _compacting(some, "compaction")


@stage("clean | log compaction | pending | file group | before plan", table="mor")
def _(some: Scene) -> str:
    return _compacting(some, "logcompaction")


def _compacting(some: Scene, action: str) -> str:
    """Clean where the slice that would go is to be merged: somebody planned that long ago."""
    plan = some.compaction_plan("a")
    for _ in range(2):
        some.write(("k1", "a", 4, 4), operation="insert")
    some.pending(action, plan)
    return _cleans(some)


def _moved(some: Scene, theirs: Instant) -> Instant:
    """Give a planned instant a time right after the second write's."""
    at = f"{int(some.instants[1]) + 1:017d}"
    folder = some.path / ".hoodie/timeline"
    (folder / f"{theirs.requested_time}.{theirs.action}.requested").rename(folder / f"{at}.{theirs.action}.requested")
    return Instant(at, theirs.action, State.REQUESTED)


@stage("clean | clustering | pending | - | before plan")
def _(some: Scene) -> str:
    _moved(some, some.clustering("b"))
    return _cleans(some)


for _other in ("compaction", "log compaction"):

    @stage(f"clean | {_other} | pending | - | before plan")
    def _(some: Scene, other: str = _other) -> str:
        _moved(some, some.compaction(other.replace(" ", ""), "b"))
        return _cleans(some)

    @stage(f"clean | {_other} | pending | - | since plan")
    def _(some: Scene, other: str = _other) -> str:
        return _cleans_after(some, lambda: some.compaction(other.replace(" ", ""), "b"))


@stage("clean | clustering | pending | - | since plan")
def _(some: Scene) -> str:
    return _cleans_after(some, lambda: some.clustering("b"))


@stage("clean | write | pending | - | before plan")
def _(some: Scene) -> str:
    """The first write at work keeps what it may merge: the slice from before it."""
    work, *others = (some.plan() for _ in range(3))
    some.at_work(planned=work)
    for one in others:
        carry_out(one, [rows((f"k{others.index(one)}", "de"[others.index(one)], 4, 4))])
    return some.outcome(
        lambda: run_clean(some.storage, ONE),
        gives_way=lambda told: any(some.instants[1] in one for one in some.files()),
    )


@stage("clean | write | pending | - | since plan")
def _(some: Scene) -> str:
    return _cleans_after(some, some.at_work)


@stage("clean | write | completed | - | since plan")
def _(some: Scene) -> str:
    return _cleans_after(some, lambda: some.write(("k1", "a", 4, 4)))


@stage("clean | write | completed | earlier | since plan")
def _(some: Scene) -> str:
    """It was requested before the first instant that the clean retains."""
    older, newer = choosing_now(some.plan()), some.plan()
    carry_out(newer, [rows(("k8", "c", 4, 4))])
    return _cleans_after(some, lambda: carry_out(older, [rows(("k9", "d", 4, 4))]))


# --- archiving


def _archives(some: Scene) -> str:
    """Archive all that may go, the last write aside."""
    return some.outcome(lambda: archive(some.storage, FEW), gives_way=lambda told: told.instants < 2)


for _other in ("rollback", "restore"):

    @stage(f"archiving | {_other} | pending | - | before plan")
    def _(some: Scene, other: str = _other) -> str:
        getattr(some, other)()
        return some.outcome(lambda: archive(some.storage, FEW))


for _other, _action in (
    ("write", "commit"),
    ("compaction", "compaction"),
    ("log compaction", "logcompaction"),
    ("clustering", "clustering"),
    ("clean", "clean"),
):

    @stage(f"archiving | {_other} | pending | - | before plan")
    def _(some: Scene, action: str = _action) -> str:
        older(some, action)
        return _archives(some)


@stage("archiving | savepoint | pending | - | before plan")
def _(some: Scene) -> str:
    some.timeline().files.start(Instant(some.instants[1], "savepoint", State.INFLIGHT))
    return _archives(some)


@stage("archiving | savepoint | completed | - | before plan")
def _(some: Scene) -> str:
    savepoint(some.storage, some.instants[1])
    return _archives(some)
