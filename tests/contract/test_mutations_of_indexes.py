"""Mistakes in the use of indexes of a metadata table: each must turn a check of the real tests red."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.table.files.file_group import FileSlice
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.recorded.index_checks import (
    check_expressions,
    check_filters,
    check_other_moments,
    check_record_index,
    check_secondary_index,
)
from support.recorded.recorded_metadata import unpack
from support.seams import patch_seam, read_seam


def now_taken_for_then(patch: Patch) -> None:
    patch_seam(patch, "least file slices on a disk", 0)
    patch_seam(patch, "whether a query shows all rows of now", property(lambda _: True))


def now_taken_for_base_files(patch: Patch) -> None:
    patch_seam(patch, "least file slices on a disk", 0)
    newest = read_seam("whether a query shows all rows of now")
    patch_seam(
        patch,
        "whether a query shows all rows of now",
        property(lambda snapshot: newest.fget(replace(snapshot, bases_alone=False))),
    )


def filters_taken_for_slices_with_log_files(patch: Patch) -> None:
    left = read_seam("slices that filters leave")

    def without_logs(source: Any, slices: Sequence[FileSlice], judged: Any) -> Any:
        answer = left(source, [replace(file_slice, logs=()) for file_slice in slices], judged)
        if answer is None:
            return None
        groups = {file_slice.group for file_slice in answer.slices}
        return replace(answer, slices=[file_slice for file_slice in slices if file_slice.group in groups])

    patch_seam(patch, "slices that filters leave", without_logs)


def missing_keys_may_be_anywhere(patch: Patch) -> None:
    patch_seam(patch, "slices that a record index leaves", lambda slices, _: list(slices))


def other_partitions_have_no_keys(patch: Patch) -> None:
    """As if a file id of one partition were that of another."""
    places = read_seam("slices that a record index leaves")
    patch_seam(patch, "slices that a record index leaves", lambda slices, found: places(slices, found)[:1])


def whole_entries_are_hashed(patch: Patch) -> None:
    """By the rule of the other version."""
    groups = read_seam("file groups of keys of a metadata table")
    patch_seam(
        patch,
        "file groups of keys of a metadata table",
        lambda keys, count: groups(
            pa.array([f"{key}k2" if key.endswith("$") else key for key in keys.to_pylist()]), count
        ),
    )


def bounds_of_base_files_are_those_of_slices(patch: Patch) -> None:
    files = read_seam("files of a file slice")
    patch_seam(
        patch,
        "files of a file slice",
        property(lambda file_slice: files.fget(file_slice)[: 1 if file_slice.base else None]),
    )


MUTATIONS = (
    (now_taken_for_then, check_other_moments),
    (now_taken_for_base_files, check_other_moments),
    (filters_taken_for_slices_with_log_files, check_filters),
    (missing_keys_may_be_anywhere, check_record_index),
    (other_partitions_have_no_keys, check_record_index),
    (whole_entries_are_hashed, check_secondary_index),
    (bounds_of_base_files_are_those_of_slices, check_expressions),
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("metadata"))


@each(MUTATIONS)
def test_a_mistake_is_seen(mutate: Mutate, check: Check, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_red(tables, monkeypatch, mutate, check)
