"""Traps of tables whose buckets change, each with the tests that fail for it.

What Apache Hudi does with numbers of buckets by partition and with another number of simple buckets loses or doubles
rows in silence. This list says where each such case is held against pyhudi, so that no test goes unnoticed.
"""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
NUMBERS, RESCALES = "contract/test_bucket_numbers.py", "contract/test_rescales.py"
RULES, INTEROP, PLACING = "unit/table/test_bucket_numbers.py", "interop/test_rescales.py", "spark/test_placing.py"

TRAPS: dict[str, tuple[tuple[str, str], ...]] = {
    "a rule is in force though its instant was rolled back": (
        (RULES, "test_the_rule_of_an_instant_that_was_rolled_back_makes_the_number_unknown"),
        (NUMBERS, "test_a_rule_whose_instant_is_gone_stops_writes_by_name_and_no_read"),
    ),
    "a rollback of a rescale leaves its rule": (
        (RESCALES, "test_a_rollback_brings_rows_and_number_back"),
        (INTEROP, "test_a_rolled_back_rescale_leaves_apache_hudi_the_old_number"),
    ),
    "a folder of rules without a usable one stops every reader": (
        (RESCALES, "test_the_number_before_the_first_rescale_is_noted"),
        (INTEROP, "test_apache_hudi_reads_writes_and_compacts_after_a_rescale"),
    ),
    "a rule beats options and properties": ((NUMBERS, "test_a_rescaled_number_counts_whatever_number_a_job_names"),),
    "expressions find parts of a path, and the first counts": (
        (NUMBERS, "test_an_expression_of_many_partitions_is_obeyed"),
    ),
    "a rule of another kind, or a damaged one": (
        (RULES, "test_a_damaged_rule_and_a_newer_format_are_named_and_no_number_is_guessed"),
        (NUMBERS, "test_a_damaged_rule_is_named_by_a_write"),
    ),
    "the first rule of Apache Hudi does not tell the number before": (
        (RULES, "test_a_first_rescale_of_apache_hudi_leaves_no_number_for_the_time_before"),
    ),
    "rules that were archived": ((RULES, "test_rules_that_apache_hudi_archived_still_tell_the_past"),),
    "a rescale beside a pending compaction reads no rows": ((RESCALES, "test_a_pending_compaction_is_given_up"),),
    "file ids of Apache Hudi's rescale end without -0": ((INTEROP, "test_each_rescales_after_the_other"),),
    "the same expressions with another number for the rest": (
        (RESCALES, "test_the_last_partition_brings_the_number_of_those_to_come"),
    ),
    "a rescale stamps rows with its own time": (
        (RESCALES, "test_rows_keep_all_but_the_name_of_their_file"),
        (RESCALES, "test_readers_of_changes_see_none"),
        (RESCALES, "test_a_stream_reads_no_row_twice"),
    ),
    "a reader names a hash field and a number": ((PLACING, "test_options_of_buckets_that_a_reader_gives_lose_no_row"),),
    "pruning by the number of another moment or partition": (
        (NUMBERS, "test_each_reader_prunes_by_the_numbers_of_its_moment"),
    ),
    "a write by the old number passes the check of file ids": (
        (NUMBERS, "test_a_write_by_the_old_number_is_a_conflict_whatever_file_groups_met"),
        (RESCALES, "test_a_write_that_begins_beside_a_rescale_is_refused_by_name"),
    ),
    "rows that were placed by the old number": (
        (PLACING, "test_rows_are_placed_again_for_a_partition_that_was_rescaled"),
    ),
    "a table without buckets is converted unasked": ((RESCALES, "test_a_table_without_buckets_is_refused"),),
    "a wrong number given to a rescale or found in the rows": (
        (RESCALES, "test_a_row_in_a_wrong_bucket_ends_the_rescale_and_is_named"),
    ),
    "simple buckets written with another number": (
        ("contract/test_bad_inputs.py", "test_a_table_of_apache_hudi_with_another_number_of_buckets"),
        ("contract/test_bad_inputs.py", "test_a_wrong_number_of_buckets_is_never_remembered"),
        ("contract/test_log_operations.py", "test_a_wrong_number_of_buckets_is_told_by_the_keys_that_are_there"),
    ),
    "file groups beyond the number of their partition": (
        (NUMBERS, "test_the_number_of_its_own_partition_says_which_file_groups_are_none_of_its_buckets"),
    ),
    "keys in a file of another bucket": (
        (NUMBERS, "test_the_shallow_check_sees_a_file_whose_keys_are_of_another_bucket"),
        ("contract/test_compaction.py", "test_keys_that_another_writer_put_into_a_wrong_bucket_are_refused"),
    ),
}


def test_each_trap_has_a_test_that_is_there() -> None:
    names: dict[str, set[str]] = {}
    for file, _ in {place for places in TRAPS.values() for place in places}:
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        names[file] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

    missing = [f"{file}::{name}" for places in TRAPS.values() for file, name in places if name not in names[file]]

    assert missing == []
