"""Meetings of a rescale with other instants, and of others with a rescale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyhudi.errors import ConcurrentWriteError
from pyhudi.operations.rollback.rollback import carry_out_rollback
from pyhudi.operations.services.rollback import rollback
from pyhudi.table.table import open_table
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import RestoreMetadata
from pyhudi.timeline.writers import owner
from pyhudi.timeline.writers.patience import Patience
from pyhudi.timeline.writers.reserve import Reserve
from support.made.compacting import append, plan_join, schedule
from support.made.rescales import leave_rescale, rescale
from support.upkeep.meetings import Scene, stage
from support.upkeep.meetings_of_services import call_between, claimed
from support.upkeep.undoing import condemn

PATIENT = Patience()
K1, IN_B, IN_C = ("k1", "a", 9, 9), ("k2", "b", 9, 9), ("k8", "c", 9, 9)


def of_a(some: Scene, theirs: Instant | None = None, **changes: Any) -> str:
    """Return what becomes of a rescale of partition a that waits for nothing."""

    waited: list[bool] = []

    def act() -> Any:
        try:
            return rescale(some.path, 2, ["a"], **{"patience": PATIENT, "wait_s": 0.0, **changes})
        except ConcurrentWriteError as error:
            waited.append(" waited 0 s " in str(error))
            raise

    found = some.outcome(act, theirs)
    return "waits" if any(waited) else found


def while_read(some: Scene, between: Callable[[], object]) -> str:
    """Let something happen once the rescale has read and written its files."""
    return of_a(some, executor=call_between([], between))


def dead(some: Scene, found: Instant) -> Instant:
    """Have a process give an instant up."""
    Reserve(some.storage, found.requested_time).release()
    return found


# --- others beside a rescale


@stage("write | rescale | living | partition | before plan")
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=leave_rescale(some.path))


@stage("write | rescale | dead | partition | before plan")
def _(some: Scene) -> str:
    return some.writes(IN_C, theirs=dead(some, leave_rescale(some.path)))


@stage("write | rescale | pending | - | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    leave_rescale(some.path, "b", inflight=True)
    return some.carries_out(mine, K1)


@stage("write | rescale | pending | partition | since plan")
def _(some: Scene) -> str:
    mine = some.plan()
    leave_rescale(some.path, "a", inflight=True)
    return some.carries_out(mine, K1)


for _name, _schedules in (("compaction", schedule), ("log compaction", plan_join)):

    @stage(f"{_name} | rescale | pending | partition | before plan", table="mor")
    def _(some: Scene, schedules: Callable[..., Any] = _schedules) -> str:
        leave_rescale(some.path, "a")
        return some.outcome(lambda: schedules(some.path), gives_way=lambda told: told.file_groups == 1)


# --- a rescale beside writes


@stage("rescale | write | living | - | before plan")
def _(some: Scene) -> str:
    return of_a(some, some.at_work())


@stage("rescale | write | foreign | - | before plan")
def _(some: Scene) -> str:
    return of_a(some, some.pending("commit", inflight=True))


@stage("rescale | write | dead | - | before plan")
def _(some: Scene) -> str:
    return of_a(some, some.dead())


@stage("rescale | rescale | living | - | before plan")
def _(some: Scene) -> str:
    return of_a(some, leave_rescale(some.path, "b"))


@stage("rescale | rescale | dead | - | before plan")
def _(some: Scene) -> str:
    return of_a(some, dead(some, leave_rescale(some.path, "b")))


@stage("rescale | write | completed | - | since plan")
def _(some: Scene) -> str:
    return while_read(some, lambda: some.write(IN_B))


@stage("rescale | write | completed | partition | since plan", table="mor")
def _(some: Scene) -> str:
    # A writer that takes no part in decisions.
    return while_read(some, lambda: append(some.path, K1))


# --- beside plans


def _plans(name: str, schedules: Callable[..., Any]) -> None:
    action = name.replace(" ", "")

    @stage(f"rescale | {name} | pending | - | before plan", table="mor")
    def _(some: Scene) -> str:
        return of_a(some, some.compaction(action, "b"))

    @stage(f"rescale | {name} | pending | partition | before plan", table="mor")
    def _(some: Scene) -> str:
        return of_a(some, some.compaction(action, "a"))

    @stage(f"rescale | {name} | living | partition | before plan", table="mor")
    def _(some: Scene) -> str:
        claimed(some, schedules)
        return of_a(some)

    @stage(f"rescale | {name} | foreign | partition | before plan", table="mor")
    def _(some: Scene) -> str:
        at = schedules(some.path).instant
        some.timeline().files.start(Instant(at, action, State.INFLIGHT))
        return of_a(some)

    @stage(f"rescale | {name} | dead | partition | before plan", table="mor")
    def _(some: Scene) -> str:
        owner.Seal(some.storage, claimed(some, schedules)).set_for_good()
        return of_a(some, next(one for one in some.timeline().pending if one.action == action))


_plans("compaction", schedule)
_plans("log compaction", plan_join)


@stage("rescale | clustering | pending | - | before plan")
def _(some: Scene) -> str:
    return of_a(some, some.clustering("b"))


@stage("rescale | clustering | pending | partition | before plan")
def _(some: Scene) -> str:
    return of_a(some, some.clustering("a"))


@stage("rescale | clustering | pending | untold | before plan")
def _(some: Scene) -> str:
    return of_a(some, some.clustering_untold())


# --- beside what undoes


@stage("rescale | rollback | pending | victim | before plan")
def _(some: Scene) -> str:
    condemn(some.path, some.instants[-1])
    return of_a(some, next(one for one in some.timeline().pending if one.action == "rollback"))


for _known in ("living", "foreign"):

    @stage(f"rescale | rollback | {_known} | victim | before plan")
    def _(some: Scene, known: str = _known) -> str:
        return of_a(some, some.condemned(some.instants[-1], known))


@stage("rescale | rollback | pending | - | before plan")
def _(some: Scene) -> str:
    return of_a(some, some.rollback())


@stage("rescale | rollback | pending | - | since plan")
def _(some: Scene) -> str:
    return while_read(some, some.rollback)


@stage("rescale | rollback | completed | - | since plan")
def _(some: Scene) -> str:
    return while_read(some, lambda: rollback(some.storage, some.at_work().requested_time))


@stage("rescale | rollback | pending | basis | since plan")
def _(some: Scene) -> str:
    return while_read(some, lambda: some.rollback(some.instants[-1], names_files=False))


@stage("rescale | rollback | completed | basis | since plan")
def _(some: Scene) -> str:
    def undone() -> None:
        found = some.rollback(some.instants[-1], names_files=False)
        carry_out_rollback(open_table(some.storage), some.timeline(), found.requested_time)

    return while_read(some, undone)


@stage("rescale | restore | pending | - | before plan")
def _(some: Scene) -> str:
    return of_a(some, some.restore())


@stage("rescale | restore | pending | - | since plan")
def _(some: Scene) -> str:
    return while_read(some, some.restore)


@stage("rescale | restore | completed | - | since plan")
def _(some: Scene) -> str:
    def restored() -> None:
        # Ours would refuse to go back beside a rescale.
        pending, timeline = some.restore(), some.timeline()
        completion_time = next_time(int(some.storage.now() * 1000), timeline.greatest_time(), "UTC")
        body = RestoreMetadata(
            start_restore_time=completion_time,
            time_taken_in_millis=1,
            instants_to_rollback=[],
            hoodie_restore_metadata={},
        )
        instant = Instant(pending.requested_time, "restore", State.COMPLETED, completion_time)
        timeline.complete(instant, timeline.files.codec.encode(body))

    return while_read(some, restored)
