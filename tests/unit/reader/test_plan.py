from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyhudi.reader.plan import LEAST_TASKS, OPEN_COST, RowGroup, plan_splits
from pyhudi.table.files.file_group import BaseFile, FileSlice
from pyhudi.table.files.names import FileGroupId

MIB = 1 << 20
SPLIT = 128 * MIB


TIME = "20260101000000000"


def part(number: int, size: int) -> FileSlice:
    path = f"p/{number:08d}-0000-0000-0000-000000000000-0_0-0-0_20260101000000000.parquet"
    return FileSlice(FileGroupId("p", f"{number:08d}"), TIME, BaseFile(path, size, f"{number:08d}", "0-0-0", TIME))


def test_no_slices_make_no_splits() -> None:
    assert plan_splits([], {}, SPLIT) == []


def test_small_files_are_spread_over_tasks_before_they_share_one() -> None:
    splits = plan_splits([part(number, 1_000) for number in range(8)], {}, SPLIT)

    assert [len(split.parts) for split in splits] == [1] * 8


def test_many_small_files_share_tasks() -> None:
    splits = plan_splits([part(number, 1_000) for number in range(1_000)], {}, SPLIT)

    assert LEAST_TASKS <= len(splits) <= LEAST_TASKS + 4


def test_files_are_spread_evenly_over_as_many_tasks_as_asked_for() -> None:
    splits = plan_splits([part(number, MIB) for number in range(14)], {}, SPLIT, least_tasks=4)

    assert sorted(len(split.parts) for split in splits) == [3, 3, 4, 4]


def test_a_file_whose_footer_is_known_is_cut_between_row_groups() -> None:
    file = part(0, 500 * MIB)
    groups = [RowGroup(number, 100 * MIB) for number in (0, 1, 3, 4)]

    splits = plan_splits([file], {file.base_file.path: groups}, 256 * MIB)

    assert sorted(split.parts[0].row_groups for split in splits) == [(0, 1), (3, 4)]


def test_a_file_of_which_no_row_group_can_match_is_left_out() -> None:
    file = part(0, 500 * MIB)

    assert plan_splits([file], {file.base_file.path: []}, SPLIT) == []


@given(st.lists(st.integers(1, 600 * MIB), max_size=40), st.integers(8 * MIB, 256 * MIB))
def test_every_file_is_read_once_and_no_split_is_too_large(sizes: list[int], split_size: int) -> None:
    files = [part(number, size) for number, size in enumerate(sizes)]

    splits = plan_splits(files, {}, split_size)

    read = [one.path for split in splits for one in split.parts]
    assert sorted(read) == sorted(file.base_file.path for file in files)
    for split in splits:
        assert len(split.parts) == 1 or sum(one.size + OPEN_COST for one in split.parts) <= split_size
