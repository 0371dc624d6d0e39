"""Meetings of a rollback by name, a restore or a savepoint with other instants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers import announcements
from support.upkeep.meetings import Scene, older, stage
from support.upkeep.undoing import condemn

SEAMS = {"rollback": "begin a rollback", "restore": "begin a restore", "savepoint": ""}


def _undo(name: str) -> Callable[[Scene], Any]:
    """Return the call: a rollback of the last write, or a restore to the one before, or a savepoint of the last."""
    if name == "rollback":
        return lambda some: rollback(some.storage, some.instants[-1])
    if name == "restore":
        return lambda some: restore(some.storage, some.instants[-2])
    return lambda some: savepoint(some.storage, some.instants[-1])


def _undoing(name: str) -> None:
    act = _undo(name)
    seam = SEAMS[name]

    def beside(some: Scene, theirs: Instant | None = None) -> str:
        return some.outcome(lambda: act(some), theirs)

    def before_decision(some: Scene, between: Callable[[], object]) -> str:
        with some.counting(seam) as rounds, some.before(seam, between):
            return some.outcome(lambda: act(some), gives_way=lambda _: len(rounds) > 1)

    @stage(f"{name} | restore | pending | - | before plan")
    def _(some: Scene) -> str:
        return beside(some, some.restore(some.instants[0]))

    @stage(f"{name} | clean | pending | files | before plan")
    def _(some: Scene) -> str:
        some.clean(*(one for one in some.files() if some.instants[-2] in one or some.instants[-1] in one))
        return beside(some)

    @stage(f"{name} | clean | pending | - | before plan")
    def _(some: Scene) -> str:
        some.clean(*(one for one in some.files() if some.instants[0] in one and one.startswith("a/")))
        return beside(some)

    @stage(f"{name} | archiving | pending | target | before plan")
    def _(some: Scene) -> str:
        announcements.announce(some.storage, some.instants[-1])
        return beside(some)

    @stage(f"{name} | archiving | pending | - | before plan")
    def _(some: Scene) -> str:
        announcements.announce(some.storage, some.instants[0])
        return beside(some)

    if name == "savepoint":
        return

    @stage(f"{name} | rollback | pending | victim | before plan")
    def _(some: Scene) -> str:
        theirs = some.rollback(some.write(("k1", "a", 4, 4)))
        # A restore forgets the rollbacks of what it has undone besides.
        undo = rollback if name == "rollback" else restore
        return some.outcome(lambda: undo(some.storage, some.instants[-1]), theirs)

    for known in ("living", "foreign"):

        @stage(f"{name} | rollback | {known} | victim | before plan")
        def _(some: Scene, known: str = known) -> str:
            theirs = some.condemned(some.write(("k1", "a", 4, 4)), known)
            undo = rollback if name == "rollback" else restore
            return some.outcome(lambda: undo(some.storage, some.instants[-1]), theirs)

    @stage(f"{name} | write | pending | - | before plan")
    def _(some: Scene) -> str:
        older(some, "commit")
        return beside(some)

    @stage(f"{name} | rollback | pending | - | before plan")
    def _(some: Scene) -> str:
        return beside(some, some.rollback())

    for state, left in (
        ("living", lambda some: some.at_work()),
        ("foreign", lambda some: some.pending("commit", inflight=True)),
        ("dead", lambda some: some.dead()),
    ):

        @stage(f"{name} | write | {state} | later | before plan")
        def _(some: Scene, left: Callable[[Scene], Instant] = left) -> str:
            return beside(some, left(some))

        @stage(f"{name} | write | {state} | later | since plan")
        def _(some: Scene, left: Callable[[Scene], Instant] = left) -> str:
            return before_decision(some, lambda: left(some))

    @stage(f"{name} | write | completed | later | before plan")
    def _(some: Scene) -> str:
        some.write(("k8", "c", 4, 4))
        last = some.timeline().writes[-1]
        return beside(some, last)

    for other in ("compaction", "log compaction"):

        @stage(f"{name} | {other} | pending | later | before plan", table="mor")
        def _(some: Scene, other: str = other) -> str:
            return beside(some, some.compaction(other.replace(" ", "")))

    @stage(f"{name} | clustering | pending | later | before plan")
    def _(some: Scene) -> str:
        return beside(some, some.clustering())

    for saved in ("pending", "completed"):

        @stage(f"{name} | savepoint | {saved} | target | before plan")
        def _(some: Scene, saved: str = saved) -> str:
            if saved == "completed":
                savepoint(some.storage)
            else:
                some.timeline().files.start(Instant(some.instants[-1], "savepoint", State.INFLIGHT))
            return beside(some)

        @stage(f"{name} | savepoint | {saved} | - | before plan")
        def _(some: Scene, saved: str = saved) -> str:
            if saved == "completed":
                savepoint(some.storage, some.instants[-2])
            else:
                some.timeline().files.start(Instant(some.instants[-2], "savepoint", State.INFLIGHT))
            return beside(some)


for _name in ("rollback", "restore", "savepoint"):
    _undoing(_name)


@stage("restore | restore | pending | target | before plan")
def _(some: Scene) -> str:
    theirs = some.restore(some.instants[-2])
    return some.outcome(lambda: restore(some.storage, some.instants[-2]), theirs)


@stage("restore | archiving | pending | target | since plan")
def _(some: Scene) -> str:
    some.restore(some.instants[-2])
    announcements.announce(some.storage, some.instants[-1])
    return some.outcome(lambda: restore(some.storage, some.instants[-2]))


@stage("restore | rollback | pending | victim | since plan")
def _(some: Scene) -> str:
    with (
        some.counting("begin a restore") as rounds,
        some.before("begin a restore", lambda: condemn(some.path, some.instants[-1])),
    ):
        return some.outcome(lambda: restore(some.storage, some.instants[-2]), gives_way=lambda _: len(rounds) > 1)


@stage("restore | rollback | pending | - | since plan")
def _(some: Scene) -> str:
    with some.before("begin a restore", some.rollback):
        return some.outcome(lambda: restore(some.storage, some.instants[-2]))


@stage("savepoint | rollback | pending | target | before plan")
def _(some: Scene) -> str:
    condemn(some.path, some.instants[-1])
    return some.outcome(lambda: savepoint(some.storage, some.instants[-1]))


@stage("savepoint | rollback | pending | - | before plan")
def _(some: Scene) -> str:
    some.rollback()
    return some.outcome(lambda: savepoint(some.storage, some.instants[-1]))


for _name, _call_of in (("rollback", rollback), ("restore", restore), ("savepoint", savepoint)):
    for _other, _left in (
        ("write", lambda some: some.pending("commit", inflight=True)),
        ("compaction", lambda some: some.compaction("compaction")),
        ("log compaction", lambda some: some.compaction("logcompaction")),
        ("clustering", lambda some: some.clustering()),
    ):

        @stage(f"{_name} | {_other} | pending | target | before plan", table="mor")
        def _(some: Scene, call: Any = _call_of, left: Callable[[Scene], Instant] = _left) -> str:
            theirs = left(some)
            return some.outcome(lambda: call(some.storage, theirs.requested_time), theirs)


@stage("restore | rollback | pending | target | before plan")
def _(some: Scene) -> str:
    with some.before("begin a restore", lambda: condemn(some.path, some.instants[-1])):
        return some.outcome(lambda: restore(some.storage, some.instants[-1]))
