"""Mistakes of log files, put into the code on purpose: each must turn the checks of the real tests red."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyhudi.errors import CorruptFileError, DuplicateKeyError
from pyhudi.operations.result import RowCounts
from pyhudi.operations.write.commit import commit_write
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.table.files.logs.log_blocks import MAGIC, PREFIX, BlockType, LogBlock, Read
from pyhudi.table.files.names import LogFileName
from pyhudi.table.slices import log_rows
from pyhudi.writer import log_handle
from support.drawn.deleted_rows import check_hidden_rows, check_late_rows, check_looked_up_rows
from support.drawn.histories import LOGGED, ROOMY, UNORDERED, check_history, part, row
from support.drawn.upkept import OFF
from support.drive import plan, rows_of, task, write
from support.made import compacting
from support.models.logged_model import with_copies, without_copies
from support.models.model import random_history
from support.mutations import RED, Check, Mutate, Patch, assert_red, each, further_rows_of_a_key_stay_in_the_base
from support.readers import rows_by_hudi_rs
from support.recorded.fixture_tables import unpack
from support.recorded.recorded_merges import assert_recorded, check_recorded
from support.seams import patch_seam, read_seam
from support.write_settings import write_settings

Blocks = tuple[LogBlock, ...]


def the_last_block_is_dropped(patch: Patch) -> None:
    _blocks(patch, lambda blocks: blocks[:-1])


def deletes_come_before_rows(patch: Patch) -> None:
    _blocks(patch, lambda blocks: tuple(sorted(blocks, key=lambda one: one.type != BlockType.DELETE)))


def versions_are_ordered_as_texts(patch: Patch) -> None:
    def order(name: LogFileName) -> Any:
        return name.named_time, str(name.version), str(name.write_token), name.is_cdc

    patch_seam(patch, "order of log files", property(order))


def every_task_counts_its_files_from_one(patch: Patch) -> None:
    patch_seam(patch, "versions of log files of a task", lambda *_: log_handle.Versions())


def nothing_is_looked_for_after_a_torn_block(patch: Patch) -> None:
    patch_seam(patch, "find the next sound log block", lambda blocks, _: blocks.size)


def a_torn_block_is_taken(patch: Patch) -> None:
    def end(read: Read, offset: int, _: int) -> int:
        (length,) = struct.unpack(">q", read(offset + len(MAGIC), 8))
        return offset + PREFIX + int(length)

    patch_seam(patch, "end of a sound log block", end)


def ordering_is_ignored_between_base_and_log(patch: Patch) -> None:
    patch_seam(patch, "base rows that win in a merge", lambda base, _: np.zeros(len(base[0]), dtype=np.bool_))


def rows_of_some_copies_alone_pass(patch: Patch) -> None:
    patch_seam(patch, "refuse rows of some copies alone", lambda *_: None)


def copies_are_appended_to(patch: Patch) -> None:
    patch_seam(patch, "look for copies before an append", lambda *_: None)


def outdone_rows_are_written(patch: Patch) -> None:
    patch_seam(patch, "deletes that outdo new rows", lambda _, rows: np.zeros(rows.num_rows, dtype=np.bool_))


def deletes_have_no_ordering(patch: Patch) -> None:
    patch_seam(patch, "mark of a delete in rows of logs", log_rows.RESET)


def deletes_without_ordering_have_one(patch: Patch) -> None:
    patch_seam(patch, "deletes without an ordering value", lambda *_: None)


def deletes_without_ordering_end_with_their_task(patch: Patch) -> None:
    patch_seam(patch, "whether deletes may lack an ordering value", False)
    patch_seam(
        patch,
        "deletes without an ordering value in a write",
        lambda _, rows: np.zeros(rows.num_rows, dtype=np.bool_),
    )


def tombstones_are_forgotten(patch: Patch) -> None:
    original = read_seam("deletes in a delete block")

    def none(*given: Any) -> Any:
        return (batch.slice(0, 0) for batch in original(*given))

    patch_seam(patch, "deletes in a delete block", none)


def a_log_belongs_to_the_base_before_its_request(patch: Patch) -> None:
    patch_seam(patch, "base file that a log file belongs to", _by_request)


def a_compaction_leaves_a_log_out(patch: Patch) -> None:
    original = read_seam("compact a slice")
    patch_seam(patch, "compact a slice", lambda it, unit: original(it, replace(unit, logs=unit.logs[:-1])))


def _by_request(log: Any, times: Any, _: Callable[[str], str]) -> str | None:
    return max((one for one in times if one <= log.named_time), default=None)


def _blocks(patch: Patch, change: Callable[[Blocks], Blocks]) -> None:
    original = read_seam("log blocks that count")
    patch_seam(patch, "log blocks that count", lambda *given: change(original(*given)))


def check_avro(folder: Path) -> None:
    check_recorded(folder, "v9_mor_avro")


def check_torn(folder: Path) -> None:
    """Assert that a whole block behind half a block is read."""
    table = Path(unpack("v9_mor_avro", folder))
    for log in table.glob("a/.*.log.*"):
        data = log.read_bytes()
        log.write_bytes(data[:60] + b"rubbish #HUD" + data)

    assert_recorded(str(table), "v9_mor_avro")


def check_torn_trailer(folder: Path) -> None:
    """Assert that a block does not count whose end says another length than its beginning."""
    table = folder / "t"
    for value in range(3):
        write(table, part(row("k", ts=value, value=value)), table=LOGGED)
    newest = max(table.rglob("*.log.*"), key=lambda log: log.name)
    newest.write_bytes(newest.read_bytes()[:-1] + b"\0")

    with pytest.raises(CorruptFileError, match="no whole block"):
        rows_of(table, "value")


def check_orders(_: Path) -> None:
    """Assert that what tasks append wins as it was dealt, under both modes."""
    for seed in range(2):
        for made in (LOGGED, replace(UNORDERED, table_type="MERGE_ON_READ")):
            history = without_copies(random_history(seed, steps=5, keys=6))
            check_history(history, bounds=replace(ROOMY, upkeep=OFF), seed=seed, made=made, hudi_rs=False)


def check_all_copies(_: Path) -> None:
    """Assert that log files speak of every row that inserts have put into a key's base file."""
    for seed in range(2):
        history = with_copies(random_history(seed, steps=6, keys=3))
        check_history(history, bounds=replace(ROOMY, upkeep=OFF), seed=seed, made=LOGGED, hudi_rs=False)


def check_made_of_copies(folder: Path) -> None:
    """Assert that a write made of stored rows takes all rows of a key or none, for readers of the first row too."""
    table, settings = folder / "t", write_settings(ROOMY, upkeep=OFF, of_stored=True)
    single_row = part(row("k", ts=1, value=1))
    write(table, [single_row, single_row], operation="insert", table=LOGGED)
    with pytest.raises(DuplicateKeyError):
        write(table, single_row, operation="delete", settings=settings)
    write(table, [single_row, single_row], operation="delete", settings=settings)

    assert rows_by_hudi_rs(table, "value") == []


def check_outdone(folder: Path) -> None:
    """Assert that a new row of a merge which loses against a delete is not written, and counted."""
    table, settings = folder / "t", write_settings(ROOMY, upkeep=OFF, counted=RowCounts(inserts=1))
    write(table, part(row("k", ts=1, value=1), row("l", ts=1, value=1)), table=LOGGED)
    write(table, part(row("k", ts=9, value=1, deleted=True)))
    new = part(row("k", ts=5, value=2)).append_column("_pyhudi_arrives", pa.array([1], pa.int8()))

    assert write(table, new, settings=settings).dropped == 1


def check_resets(_: Path) -> None:
    """Assert that deletes without an ordering value hold for what other tasks have of their keys."""
    for seed in range(4):
        history = without_copies(random_history(seed, steps=4, keys=3, resets=True))
        check_history(history, bounds=replace(ROOMY, upkeep=OFF), seed=seed, made=LOGGED, hudi_rs=False)


def check_many_tasks(folder: Path) -> None:
    """Assert that the later of some tasks wins a tie, and of many."""
    for count in (3, 12):
        table = folder / f"t{count}"
        write(table, part(row("k", ts=1, value=0)), table=LOGGED)
        parts = [part(row("k", ts=1, value=number)) for number in range(count)]
        write(table, parts, settings=replace(ROOMY, logs=LogSettings(per_group=16)))

        assert rows_of(table, "value") == [(count - 1,)]


def check_late_append(folder: Path) -> None:
    """Assert that an append which was at work when a compaction was planned is in the slice that this begins."""
    table = folder / "t"
    write(table, part(row("k", ts=1, value=1)), table=LOGGED)
    write(table, part(row("k", ts=2, value=2)))
    late = plan(table, part().schema, settings=replace(ROOMY, upkeep=OFF))
    done = task(late, part(row("k", ts=3, value=3), row("new", ts=1, value=4)), 0)
    assert compacting.schedule(table).instant
    commit_write(late, [done])
    expected = rows_of(table, "id", "value")
    assert expected == [("k", 3), ("new", 4)]
    [instant] = [one for one in compacting.timeline_of(table).pending if one.action == "compaction"]
    compacting.run(table)

    assert rows_of(table, "id", "value") == expected
    assert instant.requested_time in {one.requested_time for one in compacting.timeline_of(table).completed}


def an_outlived_delete_hides_nothing(patch: Patch) -> None:
    patch_seam(patch, "base rows that an outlived delete hides", lambda *_: None)


def joined_files_forget_outlived_deletes(patch: Patch) -> None:
    patch_seam(patch, "deletes in front of joined rows", lambda _: iter(()))


def deletes_forget_what_was_read(patch: Patch) -> None:
    patch_seam(patch, "ordering values that deletes carry", lambda *_: ())


def deletes_forget_what_was_looked_up(patch: Patch) -> None:
    patch_seam(patch, "ordering values of rows that a look-up found", property(lambda _: ()))


MUTATIONS: list[tuple[Mutate, Check]] = [
    (an_outlived_delete_hides_nothing, check_late_rows),
    (an_outlived_delete_hides_nothing, check_hidden_rows),
    (joined_files_forget_outlived_deletes, check_late_rows),
    (deletes_forget_what_was_read, check_late_rows),
    (deletes_forget_what_was_looked_up, check_looked_up_rows),
    (the_last_block_is_dropped, check_avro),
    (deletes_come_before_rows, check_avro),
    (deletes_have_no_ordering, check_avro),
    (deletes_without_ordering_have_one, check_orders),
    (deletes_without_ordering_end_with_their_task, check_resets),
    (tombstones_are_forgotten, check_avro),
    (ordering_is_ignored_between_base_and_log, check_avro),
    (further_rows_of_a_key_stay_in_the_base, check_all_copies),
    (rows_of_some_copies_alone_pass, check_made_of_copies),
    (copies_are_appended_to, check_made_of_copies),
    (outdone_rows_are_written, check_outdone),
    (nothing_is_looked_for_after_a_torn_block, check_torn),
    (a_torn_block_is_taken, check_torn_trailer),
    (versions_are_ordered_as_texts, check_many_tasks),
    (every_task_counts_its_files_from_one, check_many_tasks),
    (a_log_belongs_to_the_base_before_its_request, check_late_append),
    (a_compaction_leaves_a_log_out, check_late_append),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check, (*RED, CorruptFileError))


@each([(lambda _: None, one) for one in dict.fromkeys(check for _, check in MUTATIONS)])
def test_the_checks_are_green_without_mistakes(
    tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check
) -> None:
    """Or they would prove nothing."""
    mutate(monkeypatch)
    check(tmp_path)
