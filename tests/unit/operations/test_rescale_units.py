"""Which buckets exchange rows, and which tasks that makes."""

from __future__ import annotations

import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.operations.services.rescale.units import (
    BucketChange,
    gathering_units,
    partitions_by_instant,
    units_of,
)
from pyhudi.table.arrow.spill import SpillFile
from pyhudi.table.files.file_group import BaseFile, FileSlice
from pyhudi.table.files.names import FileGroupId
from pyhudi.timeline.rescales import KEY, Rescale


def slices(*buckets: int) -> list[FileSlice]:
    return [
        FileSlice(FileGroupId("p", f"{bucket:08d}-x-0"), "1", BaseFile("p/f", 10, f"{bucket:08d}-x-0", "0-0-0", "1"))
        for bucket in buckets
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (2, 4, [((0,), (0, 2)), ((1,), (1, 3))]),
        (4, 2, [((0, 2), (0,)), ((1, 3), (1,))]),
        (4, 6, [((0, 2), (0, 2, 4)), ((1, 3), (1, 3, 5))]),
        (3, 4, [((0, 1, 2), (0, 1, 2, 3))]),
        (1, 3, [((0,), (0, 1, 2))]),
    ],
)
def test_a_class_of_buckets_is_a_unit(old: int, new: int, expected: list[tuple[object, ...]]) -> None:
    units = units_of(BucketChange("p", old, new), slices(*range(old)), "t")

    assert [(tuple(int(one.file_id[:8]) for one in unit.sources), unit.targets) for unit in units] == expected
    assert not any(unit.divides for unit in units)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([0, 0], [(0, 1)]),
        ([600, 1, 1], [(0,), (1, 2)]),
        ([256, 256, 1, 512], [(0, 1), (2,), (3,)]),
        ([0] * 1001, [tuple(range(1000)), (1000,)]),
    ],
)
def test_partitions_share_an_instant_as_long_as_it_has_room(sizes: list[int], expected: list[tuple[int, ...]]) -> None:
    """The sizes are MiB, of two file slices each."""
    half = {size: BaseFile("p/f", size << 19, "00000000-x-0", "0-0-0", "1") for size in sizes}
    slices_by_partition = {
        str(at): [FileSlice(FileGroupId("p", f"{bucket:08d}-x-0"), "1", half[size]) for bucket in range(2)]
        for at, size in enumerate(sizes)
    }

    assert partitions_by_instant(slices_by_partition) == [tuple(map(str, paths)) for paths in expected]


def test_every_key_stays_in_its_class() -> None:
    change = BucketChange("p", 12, 18)

    for key in range(200):
        assert key % 18 in change.targets(key % 12 % change.classes)


def test_a_large_class_is_divided_by_its_sources_and_gathered_by_its_targets() -> None:
    units = units_of(BucketChange("p", 7, 9), slices(*range(7)), "t")

    assert [unit.divides for unit in units] == [True] * 7
    assert {unit.targets for unit in units} == {tuple(range(9))}
    gathering = gathering_units([(unit, SpillFile(f"s{at}", 90, 1)) for at, unit in enumerate(units)])
    assert [(unit.targets, len(unit.spills), unit.divides) for unit in gathering] == [
        ((target,), 7, False) for target in range(9)
    ]


@pytest.mark.parametrize("file_id", ["abcdef01-x-0", "00000009-x-0"])
def test_a_file_group_of_no_bucket_is_refused(file_id: str) -> None:
    stranger = FileSlice(FileGroupId("p", file_id), "1", None)

    with pytest.raises(UnsupportedTableError, match=file_id):
        units_of(BucketChange("p", 4, 8), [stranger], "t")


def test_what_a_later_release_says_counts_as_a_rescale_of_the_whole_table() -> None:
    assert Rescale.read({}) is None
    assert Rescale.read({KEY: Rescale(8, ("a",)).spell()}) == Rescale(8, ("a",))
    for text in ("{", '{"buckets": 8, "partitions": ["a"], "format": 9}', "[]"):
        found = Rescale.read({KEY: text})
        assert found is not None
        assert found.holds("b")
