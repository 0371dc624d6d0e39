"""Whoever takes something back and stops at any step, for longer than every limit, while somebody else goes on.

What was written meanwhile stays, unless the one who wakes up goes back to a moment before it.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyhudi.errors import PyHudiError
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from support.attempts import parted
from support.drive import write
from support.faults.faulty import FaultyStorage
from support.faults.steps import Share, steps_of
from support.faults.stops import Stop
from support.places import copied, state_of
from support.rules.ends import assert_whole
from support.upkeep.undoing import Life, content, lived

Act = Callable[[Storage, Life], object]


def undo_newest(storage: Storage, life: Life) -> None:
    rollback(storage, life.instants[-1])


def go_back(storage: Storage, life: Life) -> None:
    restore(storage, life.instants[1])


def keep_and_let_go(storage: Storage, life: Life) -> None:
    savepoint(storage, life.instants[-1])
    delete_savepoint(storage, life.instants[-1])


@pytest.mark.parametrize(
    ("act", "end"),
    [(go_back, 2), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((undo_newest, -2), (keep_and_let_go, -1)))],
)
@steps_of("undo")
def test_who_stops_at_any_step_while_another_does_the_same_and_writes(
    tmp_path: Path, act: Act, end: int, share: Share
) -> None:
    """The table is written on once from each state that is left."""
    life, states = lived(tmp_path / "t"), set()
    for number in share.of(range(1, 400)):
        table = tmp_path / f"t{number}"
        copied(life.path, table)

        def another(table: Path = table) -> None:
            act(open_storage(str(table)), life)
            for key in (91, 92):
                write(table, parted("a", key, value=9))

        stop = Stop(at=number, awake=True, meanwhile=another)
        with contextlib.suppress(PyHudiError):
            act(FaultyStorage(open_storage(str(table)), stop), life)
        name = f"step {number} ({stop.name_of(number)})"
        slept = len(stop.steps) >= number
        written = [("a", "k91", 9), ("a", "k92", 9)] if slept else []
        # Who had not decided yet goes back to a moment before the others' writes, as if asked after them.
        may_be = [sorted([*life.contents[end], *rows]) for rows in ([written, []] if act is go_back else [written])]
        stored_rows = content(table)
        assert stored_rows in may_be, name
        state = state_of(table, life.path)
        if state not in states:
            states.add(state)
            write(table, parted("b", 93, value=9))
            assert content(table) == sorted([*stored_rows, ("b", "k93", 9)]), name
            assert_whole(table)
        shutil.rmtree(table)
        if not slept:
            assert number > 8
            return
    raise AssertionError("there are more steps than this looks at")
