"""The rules and the property that say numbers of buckets, at each step of a rescale and after it is undone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import CommitConflictError, UnsupportedTableError
from pyhudi.operations.services.rescale.rescale import rescale_buckets
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.transaction.bucket_rules import show_rule
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import BucketRule, delete_bucket_rule, write_bucket_rule
from pyhudi.table.config import update_config
from support.drive import rows_of, write
from support.faults.faulty import Faults, FaultyStorage
from support.made import rescaling
from support.made.compacting import means, rows, timeline_of
from support.made.rescales import numbers, rescale
from support.made.rescaling import table_at
from support.seams import patch_seam, read_seam
from support.upkeep.meetings import COW, QUIET
from support.upkeep.rescales import check_rule, java_goes_by

ROWS = rows(*((f"k{key}", "ab"[key % 2], 0, key) for key in range(40)))


def make(path: Path, version: int = 9) -> Path:
    """Make a table of two partitions with four buckets each."""
    write(path, ROWS, table=replace(COW, bucket_count=4, version=version), settings=QUIET)
    return path


def upgrade(path: Path) -> None:
    """Give a table of version 8 the version that an upgrade by Apache Hudi gives it."""
    update_config(open_storage(str(path)), {"hoodie.table.version": "9"})


def test_a_rescale_ends_where_the_numbers_become_unknown_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rule would say a number for the partitions whose numbers nothing told, and their rows would be lost to it."""
    path, stray = make(tmp_path / "t"), "20991231000000000"
    usual = read_seam("divide the rows of a rescale")

    def divide(*given: Any, **named: Any) -> Any:
        write_bucket_rule(table_at(path), BucketRule(stray, 9))
        return usual(*given, **named)

    with monkeypatch.context() as patch:
        patch_seam(patch, "divide the rows of a rescale", divide)
        with pytest.raises(UnsupportedTableError, match=stray):
            rescale(path, 8, ["a"])

    delete_bucket_rule(table_at(path), stray)
    assert (numbers(path).of("a"), numbers(path).of("b")) == (4, 4)
    assert write(path, ROWS, settings=QUIET).updates == 40


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("undo", [rollback, restore])
def test_the_property_goes_back_with_the_rule(tmp_path: Path, version: int, undo: Any) -> None:
    """Apache Hudi's writers compare their option with it, and where they know no rules they place rows by it."""
    path = make(tmp_path / "t", version)
    first, rescaled = timeline_of(path).writes[-1].requested_time, rescale(path, 8)
    assert table_at(path).config.bucket_count == 8

    undone = undo(open_storage(str(path)), rescaled.instant if undo is rollback else first)

    assert numbers(path).default == table_at(path).config.bucket_count == 4
    assert ("buckets=4" in undone.todo) == (version == 8)


def test_apache_hudi_finds_a_rule_at_each_step_after_an_upgrade(tmp_path: Path) -> None:
    """The rules of earlier rescales are where only pyhudi looks for them."""
    path = make(tmp_path / "t", 8)
    rescale(path, 8)
    upgrade(path)
    faults = Faults()
    storage: Any = FaultyStorage(open_storage(str(path)), faults)
    faults.watch = lambda: check_rule(path, f"before step {len(faults.steps) + 1}")

    rescaled = rescale_buckets(storage, 16, means(storage), partitions=["a"])

    assert (numbers(path).of("a"), numbers(path).of("b")) == (16, 8)
    rollback(open_storage(str(path)), rescaled.instant)
    check_rule(path, "rolled back")
    assert (numbers(path).of("a"), numbers(path).of("b")) == (8, 8)


def test_a_rule_that_is_undone_meanwhile_is_not_shown_to_apache_hudi(tmp_path: Path) -> None:
    path = make(tmp_path / "t", 8)
    rescaled = rescale(path, 8)
    upgrade(path)
    table, before, told = table_at(path), timeline_of(path), numbers(path)
    rollback(open_storage(str(path)), rescaled.instant)

    with pytest.raises(CommitConflictError, match=rescaled.instant):
        show_rule(table, before, told)

    assert not java_goes_by(path)
    assert numbers(path).default == 4


def test_no_folder_without_rules_stays_after_the_first_rescale_of_apache_hudi(tmp_path: Path) -> None:
    path = make(tmp_path / "t")
    instant = rescaling.rescale(path, {"a": 8}, notes_first=False)

    rollback(open_storage(str(path)), instant)

    assert java_goes_by(path) is None
    assert numbers(path).of("a") == 4


def test_a_partition_with_an_end_of_a_line_in_its_name_is_written_beside_rescaled_ones(tmp_path: Path) -> None:
    path = tmp_path / "t"
    those = rows(*((f"k{key}", ["a", "x\u2028y"][key % 2], 0, key) for key in range(40)))
    write(path, those, table=replace(COW, bucket_count=4), settings=QUIET)

    rescale(path, 8, ["a"])

    assert write(path, those, settings=QUIET).updates == 40
    assert len(rows_of(path, "id")) == 40
