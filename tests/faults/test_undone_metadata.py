"""Undoes that break off at any step in a table with a metadata table: what readers take from it stays right."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.operations.services.metadata.compaction import compact_metadata
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import write
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.made.metadata_tables import How, simulate
from support.places import copied
from support.rules.ends import assert_whole
from support.rules.health import of_metadata
from support.upkeep.undoing import assert_gone, content, timeline_at

QUIET = replace(IMPATIENT, upkeep=OFF)
PARTITIONS = ("files", "column_stats", "partition_stats")


@pytest.mark.parametrize("how", ["rolled back", "rolled back once it is compacted", "restored"])
@steps_of("undo", 8)
def test_an_undo_that_dies_at_any_step_leaves_no_wrong_record(tmp_path: Path, share: Share, how: str) -> None:
    """Whatever is named in the table's properties is right at once, and the next call ends the undo."""
    origin = tmp_path / "origin"
    write(origin, [parted("a", 1, 2, value=1), parted("b", 1, value=1)], table=PARTED, settings=QUIET)
    simulate(str(origin), how=How(only=PARTITIONS))
    left = write(origin, parted("a", 2, 3, value=2), settings=QUIET).instant
    before = content(origin)
    undone = write(origin, parted("a", 2, 4, value=3), settings=QUIET).instant
    if how == "rolled back once it is compacted":
        compact_metadata(open_table(open_storage(str(origin))))
    steps = undo(copied(origin, tmp_path / "count"), how, left, undone, Faults())
    for number in share.of(failing(steps, "killed")):
        path = copied(origin, tmp_path / f"t{number}")
        with suppress(Killed):
            undo(path, how, left, undone, Faults(at=number, kill=True))
        assert of_metadata(path) == []

        if timeline_at(path).find(undone) is not None or how == "restored":
            undo(path, how, left, undone, Faults())
        write(path, parted("b", 5, value=5), settings=QUIET)

        assert content(path) == sorted([*before, ("b", "k5", 5)])
        assert_gone(path, undone)
        assert_whole(path)


def undo(path: Path, how: str, left: str, undone: str, faults: Faults) -> list[str]:
    """Undo the newest write, and return the steps of the store."""
    storage: Any = FaultyStorage(open_storage(str(path)), faults)
    restore(storage, left) if how == "restored" else rollback(storage, undone)
    return faults.steps
