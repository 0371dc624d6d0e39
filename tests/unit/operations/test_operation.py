"""Which operation a mode, an operation and a policy make together, and how its rows meet."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError, OptionConflictError
from pyhudi.operations.planning.operation import Operation, choose_operation
from pyhudi.operations.planning.request import WriteRequest
from pyhudi.table.merging.merger import MergeRules, RowMeeting
from support.write_settings import write_settings

MERGED, ADDED, DROPPED, FAILED = (MergeRules(meeting, fold=meeting is RowMeeting.MERGE) for meeting in RowMeeting)
FOLDED = MergeRules(RowMeeting.ADD, fold=True)


def choose(operation: str | None, *, overwrite: bool = False, **settings: object) -> Operation:
    request = WriteRequest("/t", operation, overwrite, pa.schema([]), write=write_settings(**settings))
    return choose_operation(request)


@pytest.mark.parametrize(
    ("operation", "settings", "name", "rules"),
    [
        (None, {}, "UPSERT", MERGED),
        ("Upsert", {"combine_before_upsert": False}, "UPSERT", MERGED),
        ("insert", {}, "INSERT", ADDED),
        ("insert", {"combine_before_insert": True}, "INSERT", FOLDED),
        ("insert", {"allow_duplicates_on_insert": False}, "INSERT", MERGED),
        ("insert", {"insert_dup_policy": "drop"}, "INSERT", DROPPED),
        ("insert", {"insert_drop_duplicates": True, "allow_duplicates_on_insert": False}, "INSERT", DROPPED),
        ("insert", {"insert_dup_policy": "fail", "insert_drop_duplicates": True}, "INSERT", FAILED),
        (None, {"insert_drop_duplicates": True}, "INSERT", DROPPED),
        ("upsert", {"insert_dup_policy": "fail"}, "INSERT", FAILED),
        ("bulk_insert", {}, "BULK_INSERT", ADDED),
        ("bulk_insert", {"combine_before_insert": True}, "BULK_INSERT", FOLDED),
        ("delete", {"insert_dup_policy": "fail"}, "DELETE", MERGED),
        ("delete", {"delete_missing_ok": False}, "DELETE", MergeRules(must_find=True)),
        ("upsert", {"delete_missing_ok": False}, "UPSERT", MERGED),
        ("insert_overwrite", {}, "INSERT_OVERWRITE", ADDED),
        ("insert_overwrite", {"overwrite_mode": "static"}, "INSERT_OVERWRITE", ADDED),
        ("insert_overwrite_table", {"combine_before_insert": True}, "INSERT_OVERWRITE_TABLE", FOLDED),
        ("delete_partition", {"partitions_to_delete": ("a",)}, "DELETE_PARTITION", ADDED),
    ],
)
def test_mode_append(operation: str | None, settings: dict[str, object], name: str, rules: MergeRules) -> None:
    chosen = choose(operation, **settings)

    assert (chosen.name, chosen.rules) == (name, rules)


@pytest.mark.parametrize(
    ("operation", "settings", "name", "rules"),
    [
        (None, {}, "INSERT_OVERWRITE_TABLE", ADDED),
        (None, {"overwrite_mode": "static"}, "INSERT_OVERWRITE_TABLE", ADDED),
        (None, {"overwrite_mode": "dynamic"}, "INSERT_OVERWRITE", ADDED),
        ("insert_overwrite_table", {"overwrite_mode": "dynamic"}, "INSERT_OVERWRITE_TABLE", ADDED),
        ("insert_overwrite", {}, "INSERT_OVERWRITE", ADDED),
        ("upsert", {}, "INSERT_OVERWRITE_TABLE", FOLDED),
        ("upsert", {"combine_before_upsert": False, "insert_drop_duplicates": True}, "INSERT_OVERWRITE_TABLE", ADDED),
        ("insert", {}, "INSERT_OVERWRITE_TABLE", ADDED),
        ("bulk_insert", {"combine_before_insert": True}, "INSERT_OVERWRITE_TABLE", FOLDED),
    ],
)
def test_mode_overwrite(operation: str | None, settings: dict[str, object], name: str, rules: MergeRules) -> None:
    """The operation says how rows of one key meet, and what they replace."""
    chosen = choose(operation, overwrite=True, **settings)

    assert (chosen.name, chosen.rules) == (name, rules)


def test_a_bulk_insert_alone_sorts() -> None:
    assert choose("bulk_insert").sorts
    assert choose("bulk_insert", overwrite=True).sorts
    assert not choose("insert").sorts
    assert not choose("insert_overwrite").sorts


@pytest.mark.parametrize("operation", ["delete", "delete_partition"])
def test_nothing_is_deleted_by_mode_overwrite(operation: str) -> None:
    with pytest.raises(OptionConflictError, match=operation):
        choose(operation, overwrite=True)


def test_no_names_of_partitions_are_not_all_partitions() -> None:
    with pytest.raises(InvalidOptionError, match=r"partitions\.to\.delete"):
        choose("delete_partition", partitions_to_delete=())
