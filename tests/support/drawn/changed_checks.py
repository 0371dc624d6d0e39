"""What a write of merged rows must leave: the checks that the real tests and the mutations of the code both run."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import DuplicateKeyError
from pyhudi.operations.inspect.history import history, last_commit
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.result import RowCounts
from pyhudi.storage import open_storage
from support.drawn.histories import ROOMY, TABLE, TINY, check_history, part, row
from support.drawn.upkept import OFF
from support.drive import rows_of, write
from support.models.changing import all_merges, based_on
from support.models.everywhere_model import without_twins
from support.models.model import random_history

BASE = part(row("a", ts=1, value=1), row("b", ts=1, value=2), row("c", ts=1, value=3, p="c"))


def check_merges(made: TableSettings) -> None:
    """Assert that merges leave what a dict says, and fail where others have changed what they looked at."""
    sums, conflicts = [0, 0, 0, 0], 0
    for seed in range(2):
        steps = all_merges(without_twins(random_history(seed, steps=5, keys=6)))
        bounds = replace(TINY if seed else ROOMY, upkeep=OFF)
        # Of several ordering fields hudi-rs knows nothing.
        life = check_history(steps, made=made, bounds=bounds, seed=seed, hudi_rs=len(made.ordering_fields or ()) < 2)
        conflicts += life.conflicts
        sums = [sum(one) for one in zip(sums, *map(astuple, life.changes), strict=True)]

    inserts, updates, deletes, moved = sums
    assert min(inserts, deletes, moved) > 2
    assert updates > moved + 2
    assert conflicts


def check_swap(folder: Path) -> None:
    """Assert that the instant says that rows moved, which nobody reads from the files: two rows were updated there."""
    table = folder / "t"
    write(table, BASE, table=TABLE)
    swapped = part(row("b", ts=1, value=1), row("a", ts=1, value=2))
    result = write(table, swapped, settings=based_on(table, ROOMY, RowCounts(updates=2, moved=2)))

    assert (result.inserts, result.updates, result.deletes, result.moved) == (0, 2, 0, 2)
    assert "2 updated, 2 moved" in repr(result)
    assert last_commit(open_storage(str(table))) == result
    newest = history(open_storage(str(table)), 1).select(["inserts", "updates", "deletes"]).to_pylist()
    assert newest == [{"inserts": 0, "updates": 2, "deletes": 0}]
    assert rows_of(table, "id", "value") == [("a", 2), ("b", 1), ("c", 3)]


OTHERWISE: dict[str, tuple[RowCounts, pa.Table]] = {
    "deletes two": (RowCounts(deletes=1), part(row("twice", ts=9, value=0, deleted=True))),
    "updates two": (RowCounts(updates=1), part(row("twice", ts=9, value=0))),
    "new key is there": (RowCounts(inserts=1), part(row("a", ts=9, value=0))),
    "loses": (RowCounts(updates=1), part(row("a", ts=0, value=0))),
    "leaves no delete": (RowCounts(updates=1, moved=1), part(row("a", ts=9, value=0, p="b"))),
}


def check_counted(folder: Path) -> None:
    """Assert that a write which does something else than was counted leaves the table as it was."""
    table = folder / "t"
    twice = part(row("twice", ts=1, value=1), row("twice", ts=2, value=2))
    write(table, pa.concat_tables([BASE, twice]), operation="insert", table=TABLE)
    before = rows_of(table, "id", "value")
    for counts, rows in OTHERWISE.values():
        with pytest.raises(DuplicateKeyError, match="duplicate keys"):
            write(table, rows, settings=based_on(table, ROOMY, counts))

        assert rows_of(table, "id", "value") == before
