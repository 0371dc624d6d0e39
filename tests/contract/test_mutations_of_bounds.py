"""Mistakes with the bounds of metadata tables: each must turn the checks of the real tests red."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.drawn.stated_bounds import LONG, check_text
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.recorded.bounds_checks import check_pending, check_rows, check_then
from support.recorded.recorded_metadata import unpack
from support.seams import patch_seam


def check_cut_text(_: Path) -> None:
    check_text("a", LONG, LONG + "z", logs=False)


def check_orders(_: Path) -> None:
    """Java has the character of two surrogates before the last one of one, the bytes have it behind."""
    check_text("a", "\uffff", "\U00010000", logs=True)


def one_file_for_its_slice(patch: Patch) -> None:
    patch_seam(patch, "bounds of a slice's files", lambda spans, **_: spans[0])


def cut_texts_are_exact(patch: Patch) -> None:
    patch_seam(patch, "greatest texts that nobody cut", lambda bounds: bounds)


def java_orders_texts_as_bytes(patch: Patch) -> None:
    patch_seam(patch, "texts on which orders agree", lambda bounds: bounds)


def every_instant_counts(patch: Patch) -> None:
    patch_seam(patch, "whether an instant counts in a metadata table", lambda *_: True)


def now_answers_for_then(patch: Patch) -> None:
    patch_seam(patch, "least file slices on a disk", 0)
    patch_seam(patch, "whether a query shows all rows of now", True)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("bounds"))


@each(
    [
        (one_file_for_its_slice, check_rows),
        (cut_texts_are_exact, check_cut_text),
        (java_orders_texts_as_bytes, check_orders),
        (every_instant_counts, check_pending),
        (now_answers_for_then, check_then),
    ]
)
def test_a_mistake_is_seen(tables: Path, monkeypatch: pytest.MonkeyPatch, mutate: Mutate, check: Check) -> None:
    assert_red(tables, monkeypatch, mutate, check)
