"""Writes to tables of many shapes that die or fail at their steps: each pair of properties meets a fault somewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.drawn.shaped import work_of
from support.drawn.shapes import Shape, covering, shapes_of_today
from support.drawn.upkept import OFF
from support.faults.failures import check_deaths, check_failures
from support.faults.faulty import Faults
from support.faults.steps import Share, steps_of


def drawn(shapes: list[dict[str, str]]) -> list[Any]:
    """Return shapes with their names."""
    return [pytest.param(one, id="-".join(one.values())) for one in shapes]


def local() -> list[dict[str, str]]:
    """Return the shapes of today that differ but for the store and the metadata table.

    What is left behind is copied from a folder.
    """
    found = {tuple(one.values()): one for one in (replaced(one) for one in shapes_of_today())}
    return [*found.values()]


def replaced(shape: Shape) -> dict[str, str]:
    return {**shape, "store": "local", "metadata": "none"}


@pytest.mark.parametrize("shape", drawn(covering(local(), 12)))
@steps_of("write", 12)
def test_a_writer_that_dies_is_rolled_back_by_the_next(
    tmp_path: Path, faults: Faults, shape: Shape, share: Share
) -> None:
    """The process is gone at step n, nobody aborts; the next write finds the old rows, or the new ones, and goes on.

    Each of the twelve shapes is gone on from what two deaths or so leave behind.
    """
    check_deaths(faults, work_of(shape), tmp_path, share)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("shape", drawn(covering(local(), 12)))
@steps_of("write", 4)
def test_a_failing_step_leaves_the_table_whole(
    tmp_path: Path, faults: Faults, shape: Shape, after: bool, share: Share
) -> None:
    """Whatever step fails, the write raises and leaves the old rows, or holds; the next write is good."""
    work = work_of(shape)
    # What fails after the write is complete does not fail it, and another test looks at it.
    quiet = replace(work, bounds=replace(work.bounds, upkeep=OFF))
    check_failures(faults, quiet, tmp_path, share, after=after)
