"""Mistakes in how a merge reads the rows of its source's keys: each must turn the checks of the real tests red."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyhudi.reader.matches.key_values import KeyNumbers
from pyhudi.reader.matches.sought_keys import SoughtKeys
from support.drawn.near_rows import check_hashed, check_shape, shapes
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam


def check_shapes(place: Path) -> None:
    for number, shape in enumerate(shapes(1, 10)):
        check_shape(place / str(number), shape)


def check_values_of_buckets(place: Path) -> None:
    check_hashed(place / "t", "MERGE_ON_READ")


def keys_are_sought_in_all_partitions(patch: Patch) -> None:
    original = read_seam("sought keys by partition")
    patch_seam(
        patch,
        "sought keys by partition",
        lambda sought, config, schema: original(SoughtKeys(sought.rows.select([0]), sought.by), config, schema),
    )


def a_key_has_one_row_at_most(patch: Patch) -> None:
    """Under an index without buckets an insert adds a key that is there."""
    original = read_seam("look for keys in a batch of matching rows")

    def first_of_each(chosen: Any, rows: pa.RecordBatch) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = original(chosen, rows)
        _, first = np.unique(chosen.keys_of(rows).to_numpy(zero_copy_only=False).astype(str), return_index=True)
        return found & np.isin(np.arange(len(found)), first)

    patch_seam(patch, "look for keys in a batch of matching rows", first_of_each)


def a_number_of_the_keys_is_not_looked_for(patch: Patch) -> None:
    original = read_seam("numbers of sought keys")

    def but_the_first(fields: Any, keys: pa.StringArray) -> KeyNumbers | None:
        found: KeyNumbers | None = original(fields, keys)
        return found and replace(found, numbers=tuple(one[1:] for one in found.numbers))

    patch_seam(patch, "numbers of sought keys", but_the_first)


def a_slice_of_each_partition_is_left_out(patch: Patch) -> None:
    original = read_seam("file slices of sought keys")

    def places(snapshot: Any) -> Any:
        find_places = original(snapshot)

        def but_the_last(path: str, keys: pa.StringArray, slices: Sequence[Any]) -> Iterator[Any]:
            return iter([*find_places(path, keys, slices)][:-1])

        return but_the_last

    patch_seam(patch, "file slices of sought keys", places)


def the_other_columns_of_a_key_count(patch: Patch) -> None:
    original = read_seam("keys by the columns of a bucket")
    patch_seam(
        patch,
        "keys by the columns of a bucket",
        lambda config, schema, rows, by: original(
            config, schema, rows, [name for name in config.record_key_fields if name in rows.schema.names]
        ),
    )


def keys_are_spelled_by_their_first_number(patch: Patch) -> None:
    original = read_seam("keys by the columns of a bucket")
    patch_seam(
        patch,
        "keys by the columns of a bucket",
        lambda config, schema, rows, by: original(config, schema, rows, by[:1]),
    )


@pytest.mark.parametrize("check", [check_shapes, check_values_of_buckets])
def test_without_a_mistake_the_checks_are_green(tmp_path: Path, check: Check) -> None:
    check(tmp_path)


@each(
    [
        (keys_are_sought_in_all_partitions, check_shapes),
        (a_key_has_one_row_at_most, check_shapes),
        (a_number_of_the_keys_is_not_looked_for, check_shapes),
        (a_slice_of_each_partition_is_left_out, check_shapes),
        (keys_are_spelled_by_their_first_number, check_shapes),
        (the_other_columns_of_a_key_count, check_values_of_buckets),
    ]
)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutate: Mutate, check: Check) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check)
