"""Mistakes of log compaction, put into the code on purpose: each must turn a check of real tables red."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyhudi.storage import open_storage
from pyhudi.table.files.logs import log_scan
from pyhudi.table.files.logs.log_blocks import BlockType, Header, LogBlock
from pyhudi.table.slices import merged_slice
from support.made.compacting import append, begin, blocks, in_bases, join, merged, new_table, run, slices
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam


def replaced_blocks_are_read_again(patch: Patch) -> None:
    patch_seam(patch, "order instants of log blocks", list)


def what_was_joined_comes_where_its_oldest_block_was(patch: Patch) -> None:
    def oldest(instants: dict[str, list[LogBlock]]) -> list[str]:
        final = {old: time for time, found in instants.items() for old in found[0].compacted_times}
        return list(dict.fromkeys(final.get(one, one) for one in instants if not instants[one][0].compacted_times))

    patch_seam(patch, "order instants of log blocks", oldest)


def what_replaces_nothing_counts(patch: Patch) -> None:
    original = read_seam("order instants of log blocks")

    def counting(instants: dict[str, list[LogBlock]]) -> list[str]:
        found = original(instants)
        return [*found, *(one for one in instants if one not in found and instants[one][0].compacted_times)]

    patch_seam(patch, "order instants of log blocks", counting)


def deletes_are_lost(patch: Patch) -> None:
    patch_seam(patch, "join delete blocks", lambda some: some[0].filter(pa.array(np.zeros(len(some[0]), np.bool_))))


def deletes_lose_their_values(patch: Patch) -> None:
    original = read_seam("join delete blocks")

    def reset(some):  # type: ignore[no-untyped-def]
        found = original(some)
        return replace(found, default=pa.array(np.ones(len(found), np.bool_)))

    patch_seam(patch, "join delete blocks", reset)


def one_log_is_left_out(patch: Patch) -> None:
    original = read_seam("compact the log files of a slice")
    patch_seam(
        patch, "compact the log files of a slice", lambda it, unit: original(it, replace(unit, logs=unit.logs[1:]))
    )


def nobody_waits_for_writes_at_work(patch: Patch) -> None:
    patch_seam(patch, "whether an instant may append log files", lambda _: False)


def made(folder: Path) -> Path:
    """Make a table whose file groups have two log files."""
    table = folder / "t"
    new_table(table, *((f"k{number}", "a", 10, number) for number in range(6)))
    append(table, ("k1", "a", 20, 11), ("k2", "a", 5, 12), ("new", "a", 1, 13))
    append(table, ("k1", "a", 15, 21), ("k4", "a", 10, 24), gone=[("k3", "a", 30), ("k5", "a", None)])
    return table


def check_what_counts(folder: Path) -> None:
    """Assert that of all blocks those that were joined count, and come to what there was."""
    table = made(folder)
    before = merged(table, "_hoodie_commit_time", "id", "value")
    log_compaction = join(table)

    assert merged(table, "_hoodie_commit_time", "id", "value") == before
    assert {one for file_slice in slices(table) for one in blocks(table, file_slice)} == {log_compaction.instant}


def check_deletes(folder: Path) -> None:
    """Assert that deletes and their values outlive it."""
    table = made(folder)
    join(table)
    append(table, ("k3", "a", 29, 1), ("k4", "a", 9, 2))
    assert {key for _, key, _ in merged(table)} == {"k0", "k1", "k2", "k4", "new"}
    append(table, ("k3", "a", 30, 1), ("k5", "a", 0, 2))
    run(table)

    assert in_bases(table) == merged(table)
    assert {("a", "k3", 1), ("a", "k4", 24)} <= {*merged(table)}


def check_places(_: Path) -> None:
    """Assert that a block stands where the newest stood of those that it replaces, and nowhere where none does."""

    def block(time: str, replaces: str = "") -> LogBlock:
        said = {Header.INSTANT_TIME: time, Header.COMPACTED_BLOCK_TIMES: replaces}
        return LogBlock("f", 0, BlockType.AVRO, said, 0, 0)

    for given, expected in (
        ([block("1"), block("late"), block("2"), block("m", "1,2"), block("3")], "late m 3"),
        ([block("m", "1,2"), block("3")], "3"),
    ):
        found = log_scan.effective_blocks([given], lambda _: True)
        assert " ".join(one.instant_time for one in found) == expected


def check_older_writes(folder: Path) -> None:
    """Assert that nothing comes to lie between what is joined and what it is joined of."""
    table = made(folder)
    older = begin(table)
    join(table)
    append(table, ("k1", "a", 20, 31), at=older)
    join(table)
    storage = open_storage(str(table))
    for file_slice in slices(table):
        times = [log.named_time for log in file_slice.logs]
        for log in file_slice.logs:
            for block in merged_slice.read_log(storage, log):
                if block.compacted_times:
                    last = times.index(log.named_time)
                    assert set(times[:last]) <= {*block.compacted_times, *_below(table, file_slice, block)}


def _below(table: Path, file_slice, block: LogBlock) -> set[str]:  # type: ignore[no-untyped-def]
    """Return what was replaced by those that a block replaces."""
    storage = open_storage(str(table))
    found = [one for log in file_slice.logs for one in merged_slice.read_log(storage, log)]
    return {old for one in found if one.instant_time in block.compacted_times for old in one.compacted_times}


MUTATIONS: list[tuple[Mutate, Check]] = [
    (replaced_blocks_are_read_again, check_what_counts),
    (what_was_joined_comes_where_its_oldest_block_was, check_places),
    (what_replaces_nothing_counts, check_places),
    (deletes_are_lost, check_deletes),
    (deletes_lose_their_values, check_deletes),
    (one_log_is_left_out, check_what_counts),
    (nobody_waits_for_writes_at_work, check_older_writes),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)


@pytest.mark.parametrize("check", [check_what_counts, check_deletes, check_places, check_older_writes])
def test_without_a_mistake_the_checks_are_green(tmp_path: Path, check: Check) -> None:
    check(tmp_path)
