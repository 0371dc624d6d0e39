"""Mistakes put into the code on purpose: each must turn the checks of the real tests red."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import SchemaMismatchError
from pyhudi.operations.planning.operation import INSERT, OVERWRITE
from pyhudi.operations.write.replacement import Replacement
from pyhudi.table.files.base_file import BaseFileWriter
from pyhudi.table.merging.meet import Inserter
from pyhudi.table.merging.merger import Merger, MergeRules, RowMeeting
from pyhudi.table.merging.row_spec import RowSpec
from pyhudi.table.merging.winners import Ordering
from pyhudi.table.schema.columns import RECORD_KEY
from pyhudi.table.schema.evolution import Evolution
from pyhudi.writer.buffer import GroupRows
from pyhudi.writer.group_writer import FileGroupWrite, GroupWriter
from support.drawn.evolving import check_evolutions
from support.drawn.histories import (
    ROOMY,
    TINY,
    check_abort,
    check_deleted_partitions,
    check_duplicates,
    check_history,
    check_lost_attempts,
    check_many_row_groups,
    check_placed_ties,
    check_ties,
)
from support.faults.races import (
    check_begun_again,
    check_given_up_by_another_release,
    check_new_column_beside_a_delete,
    check_one_new_bucket,
    check_partition_fills,
    check_publish_during_end,
    check_publish_during_rollback,
    check_start_after_abort,
    check_start_after_commit,
    check_start_during_abort,
    check_straggler,
    check_two_new_columns,
)
from support.models.model import Step, histories
from support.mutations import Check, Mutate, Patch, always, assert_red, each, further_rows_of_a_key_stay_in_the_base
from support.recorded.orderings import check_many_of_two_fields, check_marked_deletes, check_two_fields
from support.seams import patch_seam, read_seam


def check_histories(_: Path, *, colocated: bool = False) -> None:
    """Run histories until one is red, always the same ones."""

    @always(60)
    @given(histories(), st.booleans(), st.integers(0, 1 << 30))
    def run(history: list[Step], spills: bool, seed: int) -> None:
        check_history(history, bounds=replace(TINY if spills else ROOMY, colocated=colocated), seed=seed)

    run()


def check_colocated_histories(folder: Path) -> None:
    check_histories(folder, colocated=True)


def check_straggler_of_groups(folder: Path) -> None:
    check_straggler(folder, colocated=True)


def check_publish_during_commit(folder: Path) -> None:
    check_publish_during_end(folder, "commit")


def check_publish_during_abort(folder: Path) -> None:
    check_publish_during_end(folder, "abort")


# --- merging


def tombstones_are_dropped(patch: Patch) -> None:
    """Deletes vanish before rows of one key are folded, so that an older row of the same write comes back."""
    original = read_seam("fold incoming rows of a merge")

    def folded(spec: RowSpec, incoming: pa.RecordBatch) -> Any:
        live = np.flatnonzero(~spec.deleted(incoming))
        return live[original(spec, incoming.take(pa.array(live)))]

    patch_seam(patch, "fold incoming rows of a merge", folded)


def tombstones_are_kept_as_rows(patch: Patch) -> None:
    patch_seam(patch, "deleted rows", lambda self, rows: np.zeros(rows.num_rows, dtype=np.bool_))


def tombstones_win_always(patch: Patch) -> None:
    """A delete removes the base row, however old it is."""
    original = read_seam("rows that survive a merge")

    def survivors(self: Merger, base: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gone = self._incoming.column(RECORD_KEY).filter(pa.array(self._deleted))
        for batch in original(self, base):
            yield batch.filter(pc.invert(pc.is_in(batch.column(RECORD_KEY), gone)))
        self._outdone[self._deleted] = False

    patch_seam(patch, "rows that survive a merge", survivors)


def ties_go_to_the_earlier_row(patch: Patch) -> None:
    def fold(keys: pa.Array, ordering: Ordering, *_: Any) -> Any:
        return np.sort(len(keys) - 1 - original(keys[::-1], [values[::-1] for values in ordering]))

    original = read_seam("fold rows of a merge by key")
    patch_seam(patch, "fold rows of a merge by key", fold)


def moved_rows_forget_where_they_stood(patch: Patch) -> None:
    patch_seam(patch, "former positions of rows", lambda self, rows: None)


def ties_go_to_the_base(patch: Patch) -> None:
    patch_seam(
        patch,
        "base rows that win in a merge",
        lambda base, incoming: np.asarray(pc.greater_equal(base[0], incoming[0])),
    )


def tasks_are_folded_backwards(patch: Patch) -> None:
    patch_seam(patch, "order write tokens", lambda one, other: one.partition > other.partition)


def ordering_values_are_ignored(patch: Patch) -> None:
    patch_seam(patch, "ordering values of rows", lambda self, rows: ())


def ordering_values_of_the_base_are_ignored(patch: Patch) -> None:
    patch_seam(patch, "base rows that win in a merge", lambda base, incoming: np.zeros(len(base[0]), dtype=np.bool_))


def rows_are_not_folded(patch: Patch) -> None:
    patch_seam(patch, "fold rows of a merge by key", lambda keys, *_: np.arange(len(keys)))


def only_the_first_ordering_field_folds(patch: Patch) -> None:
    original = read_seam("fold rows of a merge by key")
    patch_seam(patch, "fold rows of a merge by key", lambda keys, ordering, *rest: original(keys, ordering[:1], *rest))


def only_the_first_ordering_field_of_the_base_counts(patch: Patch) -> None:
    original = read_seam("base rows that win in a merge")
    patch_seam(patch, "base rows that win in a merge", lambda base, incoming: original(base[:1], incoming[:1]))


def delete_markers_are_ignored(patch: Patch) -> None:
    patch_seam(patch, "rows with a delete marker", lambda self, column: np.zeros(len(column), dtype=np.bool_))


# --- file groups and their files


def the_base_is_ignored(patch: Patch) -> None:
    original = read_seam("write a file group")

    def write(self: GroupWriter, job: FileGroupWrite, rows: GroupRows, sequence: str) -> Any:
        return original(self, replace(job, file_slice=None), rows, sequence)

    patch_seam(patch, "write a file group", write)


def known_file_groups_are_ignored(patch: Patch) -> None:
    patch_seam(patch, "known file groups of a partition", lambda self, partition_path: {})


def file_ids_are_random(patch: Patch) -> None:
    patch_seam(patch, "file id of a new bucket", lambda _, __, number: f"{number:08d}{str(uuid.uuid4())[8:]}-0")


def buckets_are_off_by_one(patch: Patch) -> None:
    original = read_seam("bucket of each key")
    patch_seam(patch, "bucket of each key", lambda self, *keys: (original(self, *keys) + 1) % self.bucket_count)


def the_last_row_group_is_lost(patch: Patch) -> None:
    original = read_seam("close a new base file")

    def close(self: BaseFileWriter) -> None:
        self._waiting = []
        original(self)

    patch_seam(patch, "close a new base file", close)


def kept_rows_name_their_old_file(patch: Patch) -> None:
    original = read_seam("column of one value")
    patch_seam(
        patch, "column of one value", lambda value, length: original(value.replace("_0-0-0_", "_9-9-9_"), length)
    )


def sequence_numbers_repeat(patch: Patch) -> None:
    original = read_seam("write a file group")
    patch_seam(patch, "write a file group", lambda self, job, rows, sequence: original(self, job, rows, "0"))


def metafiles_are_not_written(patch: Patch) -> None:
    patch_seam(patch, "write the metafile of a partition from a commit", lambda *_: True)
    patch_seam(patch, "write the metafile of a partition from a task", lambda *_: True)


def replaced_groups_are_not_named(patch: Patch) -> None:
    patch_seam(patch, "file groups that an overwrite replaces", lambda self, storage: {})


def overwrites_replace_nothing(patch: Patch) -> None:
    """The partitions that an overwrite names lose no file group."""
    original = read_seam("file groups that an overwrite replaces")
    patch_seam(
        patch,
        "file groups that an overwrite replaces",
        lambda self, storage: {name: [] for name in original(self, storage)},
    )


def replaced_ids_are_of_another_partition(patch: Patch) -> None:
    original = read_seam("file groups that an overwrite replaces")

    def groups(self: Replacement, storage: Any) -> dict[str, list[str]]:
        found = original(self, storage)
        return dict(zip(found, reversed(list(found.values())), strict=True))

    patch_seam(patch, "file groups that an overwrite replaces", groups)


def overwrites_touch_every_partition(patch: Patch) -> None:
    patch_seam(patch, "operation that overwrites the table", OVERWRITE)


def wildcards_are_not_anchored(patch: Patch) -> None:
    original = read_seam("pattern of partitions")
    patch_seam(patch, "pattern of partitions", lambda text: original(f"*{text}*"))


def inserts_fold(patch: Patch) -> None:
    original = read_seam("begin to insert into a file group")

    def init(self: Inserter, spec: RowSpec, incoming: pa.RecordBatch, rules: MergeRules, where: str) -> None:
        original(self, spec, incoming, replace(rules, fold=True), where)

    patch_seam(patch, "begin to insert into a file group", init)


def inserts_never_fold(patch: Patch) -> None:
    patch_seam(patch, "fold incoming rows of an insert", lambda spec, incoming: np.arange(incoming.num_rows))


def inserts_look_keys_up(patch: Patch) -> None:
    """Every insert drops the rows whose keys are there."""
    original = read_seam("make writers of a task")

    def writers(plan: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(plan, *args, **kwargs)
        looking = replace(made.bases, rules=replace(made.bases.rules, meeting=RowMeeting.DROP))
        return replace(made, bases=looking) if plan.operation == INSERT else made

    patch_seam(patch, "make writers of a task", writers)


def inserts_keep_deletes_as_rows(patch: Patch) -> None:
    original = read_seam("begin to insert into a file group")

    def init(self: Inserter, spec: RowSpec, incoming: pa.RecordBatch, *rest: Any) -> None:
        original(self, spec, incoming, *rest)
        self._added[:] = True

    patch_seam(patch, "begin to insert into a file group", init)


def only_the_first_copy_of_a_key_is_dropped(patch: Patch) -> None:
    """Of several incoming rows of a key that is there one is left out, and the others go in."""
    original = read_seam("rows that survive an insert")

    def survivors(self: Inserter, base: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before, keys = self._added.copy(), self._keys.to_pylist()
        yield from original(self, base)
        self._added |= before & np.array([key in keys[:at] for at, key in enumerate(keys)], dtype=np.bool_)

    patch_seam(patch, "rows that survive an insert", survivors)


# --- attempts, writers, ends


def nothing_is_reconciled(patch: Patch) -> None:
    patch_seam(patch, "remove files that no task reported", lambda made, ownership: None)


def markers_are_not_written(patch: Patch) -> None:
    patch_seam(patch, "write markers", lambda *_: None)


def aborts_leave_data_files(patch: Patch) -> None:
    patch_seam(patch, "files that markers name", lambda storage, rule, instant_time: [])


def tasks_do_not_look_for_the_seal_at_their_start(patch: Patch) -> None:
    patch_seam(patch, "write that a seal ended", lambda self: None)
    patch_seam(patch, "refuse to begin a completed instant", lambda work, found: None)


def tasks_do_not_look_for_the_seal_after_their_start(patch: Patch) -> None:
    patch_seam(patch, "take back the begin of an abandoned write", lambda work: None)


def tasks_do_not_look_for_the_seal_when_they_publish(patch: Patch) -> None:
    patch_seam(patch, "refuse a task whose write is over", lambda self: None)
    patch_seam(patch, "refuse a task whose write is sealed", lambda self: None)
    tasks_do_not_look_whether_another_release_gave_up(patch)


def tasks_do_not_look_for_the_seal_again(patch: Patch) -> None:
    patch_seam(patch, "look for the seal after a file", lambda self, path: None)
    tasks_do_not_look_whether_another_release_gave_up(patch)


def tasks_do_not_look_whether_another_release_gave_up(patch: Patch) -> None:
    patch_seam(patch, "look whether a write was given up after a task's last file", lambda self: None)


def nothing_is_sealed(patch: Patch) -> None:
    patch_seam(patch, "seal a write", lambda self, key="": None)
    patch_seam(patch, "seal a write for good", lambda *_: None)


def conflicts_are_not_looked_for(patch: Patch) -> None:
    patch_seam(patch, "check conflicts", lambda *_: None)


def buckets_do_not_conflict(patch: Patch) -> None:
    """Conflicts are judged by file id alone, and two new file groups of one bucket have two ids."""
    patch_seam(patch, "what two writers of one bucket share", lambda self, group: group.file_id)


def new_file_groups_of_replaced_partitions_do_not_conflict(patch: Patch) -> None:
    original = read_seam("changes of a commit")
    patch_seam(patch, "changes of a commit", lambda *given: replace(original(*given), covers=lambda partition: False))


def ownership_is_not_looked_at(patch: Patch) -> None:
    patch_seam(patch, "check ownership of an instant", lambda *_: None)


def rollbacks_are_not_looked_at(patch: Patch) -> None:
    patch_seam(patch, "rollbacks of an instant by others", lambda *_: [])


# --- columns


def new_columns_are_forgotten(patch: Patch) -> None:
    """The files that a write makes, and its commit, have the columns that the table had."""
    original = read_seam("evolve columns")

    def evolve(table: pa.Schema, *more: Any) -> Evolution:
        known = [one for one in original(table, *more).schema if one.name in table.names]
        return Evolution(pa.schema(known), ())

    patch_seam(patch, "evolve columns", evolve)


def old_types_are_kept(patch: Patch) -> None:
    original = read_seam("evolve columns")

    def evolve(table: pa.Schema, *more: Any) -> Evolution:
        after = [table.field(one.name) if one.name in table.names else one for one in original(table, *more).schema]
        return Evolution(pa.schema(after), ())

    patch_seam(patch, "evolve columns", evolve)


def kept_rows_lack_new_fields(patch: Patch) -> None:
    """Rows of the base come out of a merge without what their file had in structs."""
    original = read_seam("conform a struct")

    def build(self: Any, array: pa.StructArray, *more: Any) -> list[pa.Array]:
        parts: list[pa.Array] = original(self, array, *more)
        return [pa.nulls(len(array), one.type) for one in parts]

    patch_seam(patch, "conform a struct", build)


def values_move_as_arrow_casts_them(patch: Patch) -> None:
    patch_seam(patch, "cast values", lambda array, kind: array.cast(kind, safe=False))


def text_counts_for_the_number_that_it_reads_as(patch: Patch) -> None:
    """ " 7" and "07" are taken for 7."""

    def exact(array: pa.Array, kind: pa.DataType) -> Any:
        try:
            return array.cast(kind), None
        except pa.ArrowInvalid:
            return array, pa.array([True] * len(array))

    patch_seam(patch, "cast values that have an exact equal", exact)


def columns_of_other_writers_are_not_looked_at(patch: Patch) -> None:
    patch_seam(patch, "check columns of other commits", lambda *_: None)


def the_last_to_commit_is_taken_for_the_newest(patch: Patch) -> None:
    """Readers take the columns of the greatest requested time."""
    original = read_seam("newest columns of the timeline")

    def newest(timeline: Any) -> Any:
        found = original(timeline)
        return None if found is None else (replace(found[0], requested_time="0"), found[1])

    patch_seam(patch, "newest columns of the timeline", newest)


def check_random_evolutions(_: Path) -> None:
    """Run histories of changing columns until one is red; an error where none belongs is red too."""
    for seed in range(12):
        try:
            check_evolutions(seed)
        except (SchemaMismatchError, KeyError) as error:
            raise AssertionError(str(error)) from error


MUTATIONS: list[tuple[Mutate, Check]] = [
    (tombstones_are_dropped, check_histories),
    (tombstones_are_kept_as_rows, check_histories),
    (tombstones_win_always, check_histories),
    (ties_go_to_the_earlier_row, check_ties),
    (moved_rows_forget_where_they_stood, check_placed_ties),
    (ties_go_to_the_base, check_ties),
    (tasks_are_folded_backwards, check_ties),
    (ordering_values_are_ignored, check_histories),
    (ordering_values_of_the_base_are_ignored, check_histories),
    (rows_are_not_folded, check_histories),
    (only_the_first_ordering_field_folds, check_two_fields),
    (only_the_first_ordering_field_folds, check_many_of_two_fields),
    (only_the_first_ordering_field_of_the_base_counts, check_two_fields),
    (only_the_first_ordering_field_of_the_base_counts, check_many_of_two_fields),
    (delete_markers_are_ignored, check_marked_deletes),
    (the_base_is_ignored, check_histories),
    (known_file_groups_are_ignored, check_histories),
    (file_ids_are_random, check_lost_attempts),
    (file_ids_are_random, check_histories),
    (buckets_are_off_by_one, check_histories),
    (the_last_row_group_is_lost, check_many_row_groups),
    (kept_rows_name_their_old_file, check_histories),
    (sequence_numbers_repeat, check_histories),
    (metafiles_are_not_written, check_histories),
    (replaced_groups_are_not_named, check_histories),
    (overwrites_replace_nothing, check_histories),
    (replaced_ids_are_of_another_partition, check_histories),
    (overwrites_touch_every_partition, check_histories),
    (wildcards_are_not_anchored, check_deleted_partitions),
    (inserts_fold, check_histories),
    (inserts_never_fold, check_histories),
    (inserts_look_keys_up, check_histories),
    (inserts_keep_deletes_as_rows, check_histories),
    (only_the_first_copy_of_a_key_is_dropped, check_duplicates),
    (further_rows_of_a_key_stay_in_the_base, check_histories),
    (nothing_is_reconciled, check_lost_attempts),
    (nothing_is_reconciled, check_colocated_histories),
    (markers_are_not_written, check_lost_attempts),
    (markers_are_not_written, check_abort),
    (aborts_leave_data_files, check_abort),
    (tasks_do_not_look_for_the_seal_at_their_start, check_start_after_commit),
    (tasks_do_not_look_for_the_seal_after_their_start, check_start_during_abort),
    (tasks_do_not_look_for_the_seal_when_they_publish, check_straggler_of_groups),
    (tasks_do_not_look_for_the_seal_again, check_publish_during_commit),
    (tasks_do_not_look_for_the_seal_again, check_publish_during_abort),
    (tasks_do_not_look_for_the_seal_again, check_publish_during_rollback),
    (tasks_do_not_look_whether_another_release_gave_up, check_given_up_by_another_release),
    (nothing_is_sealed, check_start_after_abort),
    (nothing_is_sealed, check_publish_during_commit),
    (conflicts_are_not_looked_for, check_one_new_bucket),
    (buckets_do_not_conflict, check_one_new_bucket),
    (new_file_groups_of_replaced_partitions_do_not_conflict, check_partition_fills),
    (ownership_is_not_looked_at, check_begun_again),
    (rollbacks_are_not_looked_at, check_begun_again),
    (new_columns_are_forgotten, check_random_evolutions),
    (old_types_are_kept, check_random_evolutions),
    (kept_rows_lack_new_fields, check_random_evolutions),
    (values_move_as_arrow_casts_them, check_random_evolutions),
    (text_counts_for_the_number_that_it_reads_as, check_random_evolutions),
    (columns_of_other_writers_are_not_looked_at, check_two_new_columns),
    (columns_of_other_writers_are_not_looked_at, check_new_column_beside_a_delete),
    (the_last_to_commit_is_taken_for_the_newest, check_new_column_beside_a_delete),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
