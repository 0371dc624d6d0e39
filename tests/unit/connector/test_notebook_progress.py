"""Beneath the cell of a notebook a long call shows how far it is; a short call, and a terminal, show nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import pytest
from pyhudi.connector.table.notebook_progress import observer
from pyhudi.connector.table.notebook_progress import shown_in_notebook as shown
from pyhudi.operations.words.progress import Progress
from support.cells import Cell, open_notebook
from support.seams import patch_seam

HOSTILE = "/t/<img src=x onerror=alert(1)>\x1b[2J"


def wait_for(holds: Callable[[], bool]) -> None:
    while not holds():
        pass


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    patch_seam(monkeypatch, "patience of notebooks", 0.0)
    patch_seam(monkeypatch, "pause between lines of notebooks", 0.001)
    return open_notebook(monkeypatch)


def test_a_line_changes_and_is_empty_at_the_end(cell: Cell) -> None:
    with shown(f"compact {HOSTILE}", switched_on=True):
        wait_for(lambda: cell.shows("at work after 0 s"))
        report = observer()
        assert report is not None
        report(Progress("compaction", 3, 8, 4 << 20))
        wait_for(lambda: cell.shows("compaction: 3 of 8 done (4.0 MiB) after 0 s"))

    assert (len(cell.outputs), cell.outputs[0][-1]) == (1, "")
    assert "&lt;img src=x" in cell.outputs[0][0]
    assert not [text for text in cell.outputs[0] if "<img" in text or "\x1b" in text]
    assert observer() is None


def test_a_call_within_another_reports_to_the_line_of_that(cell: Cell) -> None:
    with shown("merge /t", switched_on=True), shown("upsert /t", switched_on=True):
        wait_for(lambda: cell.shows("merge /t: at work"))

    assert len(cell.outputs) == 1
    assert not cell.shows("upsert")


def test_the_line_goes_where_the_call_fails(cell: Cell) -> None:
    with pytest.raises(KeyError), shown("clean /t", switched_on=True):
        wait_for(lambda: cell.shows("clean /t"))
        raise KeyError

    assert cell.outputs[0][-1] == ""
    assert observer() is None


def test_a_short_call_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = open_notebook(monkeypatch)

    with shown("clean /t", switched_on=True):
        assert observer() is not None

    assert cell.outputs == []


@pytest.mark.parametrize("ipython", [None, SimpleNamespace(get_ipython=lambda: None), "terminal"])
def test_no_call_is_shown_outside_of_a_kernel(
    cell: Cell, ipython: ModuleType | str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without IPython, with IPython as a library, and in its shell on a terminal."""
    shell = SimpleNamespace(get_ipython=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "IPython", shell if ipython == "terminal" else ipython)

    with shown("clean /t", switched_on=True):
        assert observer() is None

    assert cell.outputs == []


def test_no_call_is_shown_where_the_option_says_so_or_in_a_thread_of_its_own(cell: Cell) -> None:
    def call() -> None:
        with shown("write /t", switched_on=True):
            assert observer() is None

    with shown("clean /t", switched_on=False):
        assert observer() is None
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()

    assert cell.outputs == []
