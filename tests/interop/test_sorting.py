"""Tables that pyhudi sorts, and Apache Hudi beside it: rows, changes and file groups are to it what they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import read_hudi_rs
from interop.scenarios import BUCKETS
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from support.drawn.upkept import OFF
from support.drive import read, write
from support.made import compacting
from support.made.sorting import run, schedule, slices
from support.recorded.hudi_options import SMALL
from support.rules.newest import newest_metadata
from support.rules.sorted_files import unsorted_files
from support.upkeep.cleans import QUIET

pytestmark = pytest.mark.interop

TABLE = TableSettings(
    name="t", record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2
)
LOGGED = replace(TABLE, table_type="MERGE_ON_READ")
THEIRS = {**SMALL, BUCKETS: "2", "hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
BEGIN = "hoodie.datasource.read.begin.instanttime"
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name", "p", "id", "ts", "value")


def rows(ts: int, *numbers: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{one}" for one in numbers],
            "p": ["ab"[one % 2] for one in numbers],
            "ts": [ts] * len(numbers),
            "value": [(one * 7919) % 101 for one in numbers],
        }
    )


def tuples(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(found.column(name).to_pylist() for name in META), strict=True)) if found.num_rows else []


def check_read_alike(table: Path, java: ApacheHudi) -> None:
    ours = read(table)

    assert tuples(java.read(table)) == tuples(ours)
    assert sorted(read_hudi_rs(table).column("id").to_pylist()) == sorted(ours.column("id").to_pylist())


@pytest.mark.parametrize("settings", [TABLE, LOGGED], ids=["cow", "mor"])
def test_apache_hudi_sees_no_change_in_a_sort_and_goes_on(
    tmp_path: Path, apache: ApacheHudi, settings: TableSettings
) -> None:
    table, checkpoint = tmp_path / "t", tmp_path / "checkpoint"
    write(table, rows(1, *range(40)), table=settings, settings=QUIET)
    write(table, rows(2, *range(6)), settings=QUIET)
    until = max(one.visible_since for one in compacting.timeline_of(table).writes)
    assert apache.read_stream(table, checkpoint).num_rows == 40
    groups = {one.group for one in slices(table)}

    done = run(table, by=["value", "ts"], curve="hilbert")

    assert done.file_groups == 4
    assert {one.group for one in slices(table)} == groups
    assert newest_metadata(table)["operationType"] == ("COMPACT" if settings is LOGGED else "CLUSTER")
    check_read_alike(table, apache)
    # Neither a batch of changes nor a stream has anything of it, and a query over it has what was written before.
    assert apache.read(table, {**INCREMENTAL, BEGIN: until}).num_rows == 0
    assert apache.read_stream(table, checkpoint).num_rows == 0
    changed = apache.read(table, {**INCREMENTAL, BEGIN: "000"})
    assert tuples(changed) == tuples(read(table))

    # It finds the rows that it updates in the file groups where they were, and we sort what it leaves.
    apache.write(table, rows(3, *range(3, 9), 50), THEIRS)
    assert {one.group for one in slices(table)} == groups
    check_read_alike(table, apache)
    again = run(table)
    assert again.file_groups > 0
    assert unsorted_files(table) == []
    check_read_alike(table, apache)

    # Its clean takes what the sorts have replaced, and nothing else.
    slice_files = {file for one in slices(table) for file in one.files}
    apache.write(
        table,
        rows(4, 1),
        {**THEIRS, "hoodie.clean.automatic": "true", "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
        | {"hoodie.clean.fileversions.retained": "1"},
    )
    assert {path for path in slice_files if not (table / path).exists()} <= {
        one for one in slice_files if "/." not in one
    }
    check_read_alike(table, apache)


def test_apache_hudi_carries_out_the_plan_of_a_sort(tmp_path: Path, apache: ApacheHudi) -> None:
    """It leaves the rows as they come, of file slices without log files too; the next call sorts them."""
    table = tmp_path / "t"
    write(table, rows(1, *range(40)), table=LOGGED, settings=QUIET)
    write(table, rows(2, 0, 2, 4), settings=QUIET)
    planned = schedule(table, "value")
    write(table, rows(3, 1, 2), settings=WriteSettings(upkeep=OFF))

    options = "options => 'hoodie.metadata.enable=false'"
    assert apache.sql(f"call run_compaction(op => 'run', path => '{table}', {options})")

    assert not compacting.timeline_of(table).pending
    check_read_alike(table, apache)
    assert planned in {one.base_time for one in slices(table)}
    assert run(table).file_groups == 4
    assert unsorted_files(table) == []
    check_read_alike(table, apache)
