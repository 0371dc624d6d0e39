"""Mistakes of partial updates, put into the code on purpose: each must turn the checks of the real tests red."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyhudi.table.merging.overlay import Overlay
from pyhudi.writer.data_files import LogFormat
from support.drawn.partial_checks import (
    check_deletes_and_partial_rows,
    check_late_partial_rows,
    check_mode_in_one_write,
    check_mode_on_copy_on_write,
    check_partial_rows_in_logs,
    check_random_steps,
    check_unknown_keys,
    check_whole_rows_in_logs,
)
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam


def columns_that_are_missing_become_null(patch: Patch) -> None:
    laid = read_seam("lay new values over rows")

    def empty(self: Overlay, *given: Any) -> Any:
        rows, changed = laid(self, *given)
        columns = [
            rows.column(name) if name in self._states else pa.nulls(rows.num_rows, rows.column(name).type)
            for name in rows.schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, rows.schema.names), changed

    patch_seam(patch, "lay new values over rows", empty)


def an_older_row_wins(patch: Patch) -> None:
    patch_seam(patch, "base rows that win over partial updates", lambda base, _: np.zeros(len(base[0]), dtype=np.bool_))


def blocks_do_not_say_that_they_are_partial(patch: Patch) -> None:
    patch_seam(patch, "format of log files", lambda kind, block, file, _: LogFormat(kind, block, file))


def nobody_looks_whether_keys_are_there(patch: Patch) -> None:
    patch_seam(patch, "look up keys of partial updates", lambda _, file_slice, live, where: iter((live,)))


def rows_are_put_together_as_they_come(patch: Patch) -> None:
    patch_seam(patch, "order rows of partial updates", lambda _, rows: rows)


def rows_of_a_write_are_folded_to_one_of_them(patch: Patch) -> None:
    patch_seam(patch, "rows that give a column", lambda *_: None)


def a_row_may_come_after_the_delete_of_its_key(patch: Patch) -> None:
    patch_seam(patch, "refuse rows after the delete of their key", lambda *_: None)


def an_older_row_fills_nothing(patch: Patch) -> None:
    laid = read_seam("lay new values over rows")

    def covered(self: Overlay, batch: Any, rows: Any, states: Any, stays: Any) -> Any:
        return laid(self, batch, rows, states, stays)[0], ~stays

    patch_seam(patch, "lay new values over rows", covered)


def tables_with_a_delete_flag_get_partial_blocks(patch: Patch) -> None:
    patch_seam(patch, "whether a write makes partial blocks", property(lambda plan: plan.partial_columns is not None))


def whole_rows_are_made_of_older_ones(patch: Patch) -> None:
    patch_seam(patch, "base rows that win over whole rows", lambda base, _: np.zeros(len(base[0]), dtype=np.bool_))


def whole_rows_are_those_of_the_table(patch: Patch) -> None:
    patch_seam(patch, "make whole rows of partial updates", lambda _, stored, newer: stored)


def whole_rows_of_unknown_keys_are_passed_over(patch: Patch) -> None:
    patch_seam(patch, "refuse unknown keys of partial updates", lambda *_: None)


MUTATIONS: list[tuple[Mutate, Check]] = [
    (columns_that_are_missing_become_null, check_deletes_and_partial_rows),
    (columns_that_are_missing_become_null, check_random_steps),
    (an_older_row_wins, check_late_partial_rows),
    (blocks_do_not_say_that_they_are_partial, check_partial_rows_in_logs),
    (nobody_looks_whether_keys_are_there, check_unknown_keys),
    (rows_are_put_together_as_they_come, check_mode_in_one_write),
    (rows_of_a_write_are_folded_to_one_of_them, check_mode_in_one_write),
    (a_row_may_come_after_the_delete_of_its_key, check_deletes_and_partial_rows),
    (an_older_row_fills_nothing, check_mode_on_copy_on_write),
    (tables_with_a_delete_flag_get_partial_blocks, check_whole_rows_in_logs),
    (whole_rows_are_made_of_older_ones, check_whole_rows_in_logs),
    (whole_rows_are_those_of_the_table, check_whole_rows_in_logs),
    (whole_rows_of_unknown_keys_are_passed_over, check_whole_rows_in_logs),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)


def test_the_random_steps_are_green_without_mistakes(tmp_path: Path) -> None:
    """The other checks are run as tests of their own."""
    check_random_steps(tmp_path)
