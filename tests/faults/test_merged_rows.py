"""Merges take no steps of their own, of which one could fail."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.result import RowCounts
from support.drawn.changed_checks import BASE
from support.drawn.histories import LOGGED, ROOMY, TABLE, part, row
from support.drive import write
from support.faults.faulty import Faults
from support.models.changing import based_on


@pytest.mark.parametrize("made", [TABLE, LOGGED], ids=["cow", "mor"])
def test_a_merge_takes_the_steps_of_an_upsert(tmp_path: Path, faults: Faults, made: TableSettings) -> None:
    """So that whoever looks at each failure and death of an upsert's has looked at those of merges."""
    steps = []
    for name in ("upsert", "merge"):
        table = tmp_path / name
        write(table, BASE, table=made)
        settings = ROOMY if name == "upsert" else based_on(table, ROOMY, RowCounts(updates=1, moved=1))
        faults.steps.clear()
        write(table, part(row("a", ts=1, value=1, p="b"), row("a", ts=1, value=1, deleted=True)), settings=settings)
        steps.append([*faults.steps])

    assert len(steps[0]) > 30
    assert Counter(steps[1]) == Counter(steps[0])
