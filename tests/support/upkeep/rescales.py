"""What holds of rescales at each of their steps and after they are undone, for the tests and for their mutations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pyhudi.operations.services.rescale.rescale import rescale_buckets
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import FIRST
from support.drive import rows_of, write
from support.faults.faulty import Faults, FaultyStorage
from support.made.compacting import means, rows, timeline_of
from support.made.rescales import numbers, rescale
from support.upkeep.meetings import MOR, QUIET
from support.upkeep.merge_steps import META

OLD, NEW = 2, 4


def make_buckets(table: Path) -> Path:
    """Make a table with base and log files of two buckets in two partitions."""
    first = rows(("k1", "a", 1, 1), ("k2", "a", 1, 2), ("k3", "b", 1, 3))
    write(table, first, table=replace(MOR, bucket_count=OLD), settings=QUIET)
    write(table, rows(("k1", "a", 2, 11), ("k4", "b", 1, 4)), settings=QUIET)
    return table


def attempt_rescale(table: Path, faults: Faults) -> None:
    """Rescale both partitions with a storage that counts steps; what another process left counts as dead."""
    storage: Any = FaultyStorage(open_storage(str(table)), faults)
    rescale_buckets(storage, NEW, means(storage))


def java_goes_by(table: Path) -> str | None:
    """Return the instant of the rule that Apache Hudi takes; None without a folder of rules."""
    folder = table / ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
    if not folder.is_dir():
        return None
    pending = {one.requested_time for one in timeline_of(table).pending if one.action == "replacecommit"}
    there = {one.name.partition(".")[0] for one in folder.glob("*.hashing_config")}
    return max(there - pending, default="")


def check_rule(table: Path, name: str) -> None:
    """Assert that the rule that Apache Hudi takes is of a completed instant, and that there is one."""
    found = java_goes_by(table)
    done = {one.requested_time for one in timeline_of(table).writes}
    assert found is None or found in {FIRST, *done}, f"{name}: Apache Hudi goes by the rule of {found!r}"


def check_numbers(table: Path, name: str) -> None:
    """Assert that each partition has the number of the rescale that completed there, else the old one."""
    timeline, told = timeline_of(table), numbers(table)
    bodies = [timeline.files.read_commit(one) for one in timeline.writes if one.action == "replacecommit"]
    rescaled = {path for body in bodies for path in body.partition_to_write_stats}
    assert told.unknown == "", name
    assert {path: told.of(path) for path in "ab"} == {path: NEW if path in rescaled else OLD for path in "ab"}, name


def check_each_step(folder: Path) -> None:
    """Assert before each step of a rescale that readers see the same rows, and the number of their file groups."""
    table = make_buckets(folder / "t")
    before, faults = rows_of(table, *META), Faults()

    def look() -> None:
        name = f"before step {len(faults.steps) + 1}"
        check_rule(table, name)
        check_numbers(table, name)
        assert rows_of(table, *META) == before, name

    faults.watch = look
    attempt_rescale(table, faults)
    look()
    assert len(faults.steps) > 100


def check_rolled_back(folder: Path) -> None:
    """Assert that the number goes with the rescale that is rolled back."""
    table = make_buckets(folder / "t")
    before, done = rows_of(table, *META), rescale(table, NEW, ["a"])
    rollback(open_storage(str(table)), done.instant)
    check_rule(table, "rolled back")
    check_numbers(table, "rolled back")
    assert rows_of(table, *META) == before
