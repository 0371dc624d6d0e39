"""The life of an instant that writes data files, with the same steps for writes and for all table services.

    claim --> units --> seal --> drop strays --> flush --> complete --> tidy
                    a step before the decision fails --> give up

1. Claim: this process names itself the instant's owner, and touches its heartbeat until the instant is complete.
2. Units: tasks make data files. `Fence` looks for the seal after each file, and deletes the file if the seal is set.
3. Seal: from here on no task adds a file, however late it is, so that a list of the files is final.
4. Drop strays: delete files that no finished task reported, because its attempt failed or ran twice. Readers count each
   file that names a complete instant, so strays go before the decision. A list from before the seal could lack some.
5. Flush: all data files are on the disk before a completed file names them.
6. Complete: the table decides, after a look at all instants since the work began. The decision is binding: if this
   process fails afterwards, the next process that decides makes the completed file.
7. Tidy: markers, heartbeat and claim go last. Without them the pending instant would count as another engine's.

To give up is to seal for good, to decide that this work never completes, and to delete the files of this process alone,
because another process may be at work on the same plan. `Ownership` says which files these are.

A service takes all steps by `live`. A write takes them in several processes: its tasks claim the instant and do units.
Its commit seals the instant, merges the rows that the tasks handed over, and takes the other steps by `finish`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

from ...timeline.timeline import Timeline
from ...timeline.writers.owner import Seal
from ..meeting.transaction import Transaction
from .commit_path import Completed, complete
from .left_overs import try_to_forget
from .outcome import Outcome

logger = logging.getLogger("pyhudi")

Claimed = TypeVar("Claimed")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who may finish an instant: this process alone, or other processes, too.

    Attributes:
        files: Yields, in parts, the data files in some folders that tasks of this process may have left.
        give_up: Undoes what this process did, so that no other process has to wait.
    """

    files: Callable[[Transaction, Collection[str]], Iterable[Collection[str]]]
    give_up: Callable[[Transaction], object]


@dataclass(frozen=True, slots=True)
class Made:
    """What the units of an instant made.

    Attributes:
        paths: The data files that finished units reported.
        folders: The folders to flush, which hold all files of units.
        outcome: Returns what the instant changes, by a timeline; None if it is over. Raises if it must not complete.
        ready: Called right before the decision, for work that would take long during it.
    """

    work: Transaction
    paths: Collection[str]
    folders: Sequence[str]
    outcome: Callable[[Timeline], Outcome | None]
    ready: Callable[[], object] = lambda: None


def live(
    work: Transaction,
    claimed: AbstractContextManager[Claimed],
    units: Callable[[Claimed], tuple[Result, Made | None]],
    ownership: Ownership,
) -> tuple[Result, bool]:
    """Take all steps of an instant; return what its units did, and whether this process completed it.

    Args:
        claimed: Holds the claim, and touches the instant's heartbeat until it ends.
        units: Executes the units; returns None for `Made` if another process has ended the instant.
    """
    with given_up_on_error(work, ownership.give_up), claimed as claim:
        result, made = units(claim)
        if made is not None:
            work = made.work
            seal(work)
        is_completed = made is not None and finish(made, ownership) is not None
    try_to_forget(work.storage, work.instant_time)
    return result, is_completed


@contextmanager
def given_up_on_error(work: Transaction, give_up: Callable[[Transaction], object]) -> Iterator[None]:
    """Give an instant up if the block fails, and raise the block's error.

    ``give_up`` undoes what this process did for the instant ``work``. If that fails, too, the log says so.
    """
    try:
        yield
    except BaseException:
        try:
            give_up(work)
        except Exception:
            logger.warning(
                "table %s: left-overs of the failed %s %s stay until the next write or service",
                work.path,
                work.action,
                work.instant_time or work.write_id,
                exc_info=True,
            )
        raise


def seal(work: Transaction) -> None:
    """Keep all tasks of this process from publishing further files.

    The instant's own seal also stops other processes. So work on a plan that other processes may continue has no key,
    and sets only its own seal.
    """
    if work.key:
        work.seal.set(work.key)
    if work.shared:
        Seal(work.storage, work.seals[-1]).set()


def finish(
    made: Made,
    ownership: Ownership,
    phase: Callable[[str], AbstractContextManager[object]] = lambda _: nullcontext(),
) -> Completed | None:
    """Take the steps from the seal to the completed instant; None if it is over. Raises as `complete`.

    Args:
        made: The sealed work, and the files that its units made.
        ownership: Says which other files this process may delete, because failed or repeated attempts left them.
        phase: Returns the block in which a step of some name runs, such as a block that measures its time.
    """
    work = made.work
    with phase("flush"):
        drop_strays(made, ownership)
        work.storage.flush(made.folders)
    with phase("complete"):
        made.ready()
        # Only work with a key holds a reserve.
        make_room = work.reserve.release if work.key else None
        return complete(work.table, work.inflight, made.outcome, make_room)


def drop_strays(made: Made, ownership: Ownership) -> None:
    """Delete the data files of this process's tasks that no finished unit reported."""
    work, reported = made.work, frozenset(made.paths)
    for paths in ownership.files(work, made.folders):
        # Delete only these files: the undo of the instant would also delete reported files of the same slice.
        work.storage.delete(*(path for path in paths if path not in reported))
