"""Files and partitions that bounds in metadata tables leave out: never one with a row that a query wants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.timeline.timeline import Timeline
from support.drawn.stated_bounds import LONG, check_slices, check_text
from support.recorded.bounds_checks import NOW_AND_THEN, check_answer, check_pending, check_rows, check_then
from support.recorded.recorded_metadata import unpack
from support.seams import patch_seam
from support.share import share_of


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("bounds"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the metadata table be asked about a few file slices, too."""
    patch_seam(monkeypatch, "least file slices on a disk", 0)


@settings(max_examples=share_of(25), deadline=None)
@given(st.integers(0, 1 << 32))
def test_no_slice_with_a_wanted_row_is_left_out(seed: int) -> None:
    """Of slices of every type, as Apache Hudi states bounds of base files, log files and partial log files."""
    check_slices(seed)


@pytest.mark.parametrize("logs", [False, True], ids=["base", "log"])
@pytest.mark.parametrize(
    ("least", "greatest", "value"),
    [
        # Cut, and not made greater.
        ("a", LONG, LONG + "z"),
        # Java has a character of two surrogates before the last one of one, bytes have it behind.
        ("a", "\uffff", "\U00010000"),
        ("\U00010000", "\uffff", "\uffff"),
    ],
)
def test_a_text_is_found_whatever_its_bounds_are_in_doubt(least: str, greatest: str, value: str, logs: bool) -> None:
    check_text(least, greatest, value, logs=logs)


def test_tables_by_apache_hudi_keep_their_rows(tables: Path) -> None:
    check_rows(tables)


@pytest.mark.usefixtures("asked")
def test_bounds_of_partitions_hold_for_now_alone(tables: Path) -> None:
    check_then(tables)


def test_bounds_of_partitions_need_writes_that_complete_in_the_order_of_their_requests(tables: Path) -> None:
    """Else the later request may have stated bounds without the files of the earlier."""
    trusted = open_snapshot(str(tables / NOW_AND_THEN)).metadata.trusted
    assert trusted is not None
    instants, files = trusted.table.timeline.instants, trusted.table.timeline.files
    earlier, _ = [one for one in instants if one.action == "deltacommit"][-2:]
    late = replace(earlier, completion_time="29991231000000000")
    swapped = tuple(late if one == earlier else one for one in instants)
    other = replace(trusted.table, timeline=Timeline(swapped, files))

    assert (trusted.table.completes_in_order(), other.completes_in_order()) == (True, False)


def test_what_a_pending_write_states_counts_for_nothing(tables: Path) -> None:
    check_pending(tables)


@pytest.mark.usefixtures("asked")
def test_a_read_by_bounds_has_all_rows(tables: Path) -> None:
    check_answer(tables)
