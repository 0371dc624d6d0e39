"""Rescales in both directions: Apache Hudi reads, writes and compacts after pyhudi's, and pyhudi after its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.undone import call, newest
from interop.writer import write_without_spark
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.services.repair.repair_table import repair_table
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.timeline.writers.reserve import Reserve
from support.made.compacting import means, timeline_of
from support.made.rescales import leave_rescale, numbers, rescale
from support.readers import read_without_spark
from support.recorded.hudi_options import SMALL
from support.rules.health import errors

pytestmark = pytest.mark.interop

BUCKETS = "hoodie.bucket.index.num.buckets"
OF_FOUR = {**SMALL, BUCKETS: "4"}
QUERY, BEGIN = "hoodie.datasource.query.type", "hoodie.datasource.read.begin.instanttime"
WITHOUT_CLEAN = {"hoodie.clean.automatic": "false"}


def rows(*keys: int, ts: int) -> pa.Table:
    columns = {"id": [f"k{key}" for key in keys], "p": ["ab"[key % 2] for key in keys]}
    return pa.table({**columns, "ts": pa.array([ts] * len(keys), pa.int64())})


def shown(found: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def of_type(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The options of a table of each type, with four buckets."""
    yield {**OF_FOUR, "hoodie.datasource.write.table.type": request.param, "hoodie.compact.inline": "false"}


def held(path: Path, apache: ApacheHudi, expected: dict[str, int]) -> None:
    """Assert that both read the same rows, and that nothing is wrong."""
    wanted = sorted(expected.items())
    assert shown(read_without_spark(path)) == wanted
    assert shown(apache.read(path)) == wanted
    assert errors(path) == []


def test_apache_hudi_reads_writes_and_compacts_after_a_rescale(
    tmp_path: Path, apache: ApacheHudi, of_type: dict[str, str]
) -> None:
    path, expected = tmp_path / "t", {f"k{key}": 1 for key in range(40)}
    apache.write(path, rows(*range(40), ts=1), of_type)
    write_without_spark(path, rows(*range(0, 40, 3), ts=2), {BUCKETS: "4", **WITHOUT_CLEAN})
    expected |= {f"k{key}": 2 for key in range(0, 40, 3)}
    last = timeline_of(path).writes[-1].visible_since

    leave = leave_rescale(path, inflight=True)
    assert shown(apache.read(path)) == sorted(expected.items())
    Reserve(open_storage(str(path)), leave.requested_time).release()
    rescale(path, 8, ["a"])

    assert timeline_of(path).find(leave.requested_time) is None
    held(path, apache, expected)
    assert apache.read(path, {QUERY: "incremental", BEGIN: last}).num_rows == 0
    # The rule beats their option, which the properties agree with until all partitions have another number.
    apache.write(path, rows(*range(0, 60, 2), ts=3), {**of_type, **WITHOUT_CLEAN})
    expected |= {f"k{key}": 3 for key in range(0, 60, 2)}
    held(path, apache, expected)
    last = timeline_of(path).writes[-1].visible_since
    rescale(path, 8)
    assert apache.read(path, {QUERY: "incremental", BEGIN: last}).num_rows == 0
    with pytest.raises(ApacheHudiError, match="Config conflict"):
        apache.write(path, rows(0, ts=4), of_type)
    apache.write(path, rows(*range(0, 60, 2), ts=4), {**of_type, BUCKETS: "8", **WITHOUT_CLEAN})
    expected |= {f"k{key}": 4 for key in range(0, 60, 2)}
    held(path, apache, expected)
    if of_type["hoodie.datasource.write.table.type"] == "MERGE_ON_READ":
        options = "options => 'hoodie.metadata.enable=false'"
        apache.sql(f"call run_compaction(op => 'scheduleAndExecute', path => '{path}', {options})")
        held(path, apache, expected)
    write_without_spark(path, rows(1, 2, 99, ts=5), {})
    held(path, apache, expected | {"k1": 5, "k2": 5, "k99": 5})


def test_each_rescales_after_the_other(tmp_path: Path, apache: ApacheHudi) -> None:
    path, expected = tmp_path / "t", {f"k{key}": 1 for key in range(40)}
    apache.write(path, rows(*range(40), ts=1), OF_FOUR)
    write_without_spark(path, rows(0, ts=1), {BUCKETS: "4"})
    rescale(path, 8, ["a"])
    apache.sql(f"create table if not exists rescaled using hudi location '{path}'")

    manager = "call partition_bucket_index_manager(table => 'rescaled', {}, bucket_number => 4, dry_run => false)"
    apache.sql(manager.format("add => '^b$,2'"))

    assert (numbers(path).of("a"), numbers(path).of("b"), numbers(path).of("c")) == (8, 2, 4)
    held(path, apache, expected)
    write_without_spark(path, rows(*range(0, 60), ts=2), {})
    expected = {f"k{key}": 2 for key in range(60)}
    held(path, apache, expected)
    rescale(path, 16)
    held(path, apache, expected)
    apache.write(path, rows(*range(0, 60, 2), ts=3), {**SMALL, BUCKETS: "16"})
    held(path, apache, expected | {f"k{key}": 3 for key in range(0, 60, 2)})


def test_a_rolled_back_rescale_leaves_apache_hudi_the_old_number(tmp_path: Path, apache: ApacheHudi) -> None:
    path = tmp_path / "t"
    apache.write(path, rows(*range(40), ts=1), OF_FOUR)
    write_without_spark(path, rows(0, ts=1), {BUCKETS: "4"})
    done = rescale(path, 8, ["a"])

    rollback(open_storage(str(path)), done.instant)

    apache.write(path, rows(*range(0, 60, 2), ts=3), OF_FOUR)
    held(path, apache, {f"k{key}": 1 for key in range(40)} | {f"k{key}": 3 for key in range(0, 60, 2)})


@pytest.mark.parametrize("partitions", [["a"], None])
def test_a_repair_takes_back_what_rollback_to_instant_leaves_of_a_rescale(
    tmp_path: Path, apache: ApacheHudi, of_type: dict[str, str], partitions: list[str] | None
) -> None:
    """When its keys are no longer there twice without the repair, docs/buckets.md has to change."""
    path, expected = tmp_path / "t", {f"k{key}": 1 for key in range(40)}
    apache.write(path, rows(*range(40), ts=1), of_type)
    write_without_spark(path, rows(0, ts=1), {BUCKETS: "4", **WITHOUT_CLEAN})
    rescale_result = rescale(path, 8, partitions, whole_table=partitions is None)
    storage = open_storage(str(path))
    call(apache, path, "rollback_to_instant", f"instant_time => '{rescale_result.instant}'")
    assert [one["instant"] for one in errors(path) if one["code"] == "RESCALE_UNDONE"] == [rescale_result.instant]

    # They go by the rule that is left, whatever they say, or have to say what the property says.
    number = "4" if partitions else "8"
    apache.write(path, rows(*range(0, 60, 2), ts=3), {**of_type, BUCKETS: number, **WITHOUT_CLEAN})
    assert apache.read(path).num_rows > 50, "keys are there twice"
    since = newest(path)
    [finding] = [one for one in validate(storage).to_pylist() if one["code"] == "RESCALE_UNDONE"]
    assert since in finding["what"]
    assert since in repair_table(storage, means(storage)).skipped
    rollback(storage, since)

    repair_table(storage, means(storage))

    held(path, apache, expected)
    apache.write(path, rows(*range(0, 60, 2), ts=4), {**of_type, **WITHOUT_CLEAN})
    write_without_spark(path, rows(1, 99, ts=5), {})
    held(path, apache, expected | {f"k{key}": 4 for key in range(0, 60, 2)} | {"k1": 5, "k99": 5})
