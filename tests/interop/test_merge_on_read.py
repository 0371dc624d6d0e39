"""Merge-on-read tables that both write: each reads, appends to, compacts and executes plans of what the other wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import read_hudi_rs, read_pyhudi
from interop.scenarios import BUCKETS
from interop.writer import write_without_spark
from pyspark.sql import SparkSession
from support.drive import write_in_one_task
from support.made.compacting import run, schedule, slices
from support.models.logged_model import LoggedModel
from support.models.model import SCHEMA, Row, Step
from support.readers import read_without_spark
from support.recorded.hudi_options import SMALL
from support.rules.checks import java_bucket
from support.rules.newest import newest_metadata

pytestmark = pytest.mark.interop

OPERATION = "hoodie.datasource.write.operation"
BLOCKS = "hoodie.logfile.data.block.format"
OPTIONS = {
    **SMALL,
    BUCKETS: "3",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
}
COLUMNS = ("p", "id", "ts", "value")
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name", *COLUMNS)
READ_OPTIMIZED = {"hoodie.datasource.query.type": "read_optimized"}
INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
BEGIN = "hoodie.datasource.read.begin.instanttime"


@dataclass
class Shared:
    """A table that both write, and what it must hold."""

    path: Path
    spark: SparkSession
    apache: ApacheHudi
    options: Mapping[str, str] = field(default_factory=lambda: OPTIONS)
    model: LoggedModel = field(
        default_factory=lambda: LoggedModel(bucket_of=lambda key: java_bucket(key[1], ["id"], 3))
    )

    def ours(self, rows: str, operation: str = "upsert", **more: str) -> None:
        """Have pyhudi write rows; how many bytes the commit merges itself, only Spark's writes have to say."""
        write = write_in_one_task if NEW_IN_LOGS.keys() & more.keys() else write_without_spark
        write(self.path, self._taken(rows, operation), self._asked(operation, more))

    def theirs(self, rows: str, operation: str = "upsert", **more: str) -> None:
        """Have Apache Hudi write rows."""
        self.apache.write(self.path, self._taken(rows, operation), self._asked(operation, more))

    def begin_in_logs(self) -> None:
        """Expect the file groups of partition c to begin with log files, which remember deletes."""
        self.model.groups |= {("c", bucket) for bucket in range(3)}

    def run_theirs(self) -> None:
        """Have Apache Hudi execute the compaction that is pending."""
        options = "hoodie.metadata.enable=false"
        assert self.apache.sql(f"call run_compaction(op => 'run', path => '{self.path}', options => '{options}')")

    def check(self, *, by_spark: bool = False) -> None:
        """Hold all readers against the model, and their meta columns against one another.

        Apache Hudi and hudi-rs show a base row again beside an older row if its delete has no value.
        """
        theirs = self.apache.read(self.path)
        ours = read_pyhudi(self.spark, self.path) if by_spark else read_without_spark(self.path)
        for reader, rows in {"Apache Hudi": theirs, "hudi-rs": read_hudi_rs(self.path)}.items():
            assert _tuples(rows) == self.model.elsewhere(), reader
        assert _tuples(ours) == self.model.tuples()
        assert self._told_alike(_tuples(ours, META)) == self._told_alike(_tuples(theirs, META))

    def check_queries(self) -> None:
        """Hold what Apache Hudi finds in base files alone, and in what commits wrote, against what pyhudi does.

        It shows rows of a window that older ones beat, too, as it opens no file that is older than the window.
        """
        live = _tuples(read_without_spark(self.path), META)
        first, *_, last = sorted((self.path / ".hoodie" / "timeline").glob("*_*.deltacommit"))
        in_bases = _tuples(self.apache.read(self.path, READ_OPTIMIZED), META)
        assert _tuples(read_without_spark(self.path, READ_OPTIMIZED), META) == in_bases
        for begin in ("000", first.name[18:35], last.name[:17]):
            query = {**INCREMENTAL, BEGIN: begin}
            theirs = _tuples(self.apache.read(self.path, query), META)
            ours = _tuples(read_without_spark(self.path, query), META)
            assert theirs
            assert self._told_alike(ours) == [row for row in self._told_alike(theirs) if row in live]

    def _told_alike(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return rows without those that only some readers show."""
        differing = set(self.model.tuples()) ^ set(self.model.elsewhere())
        return [row for row in rows if row[-len(COLUMNS) :] not in differing]

    def _taken(self, text: str, operation: str) -> pa.Table:
        rows = parsed(text)
        step = Step(operation, rows, 1, 0, hands=(tuple(rows),))
        self.model.apply(step)
        return pa.Table.from_pylist(rows, SCHEMA)

    def _asked(self, operation: str, more: Mapping[str, str]) -> dict[str, str]:
        return {**self.options, OPERATION: operation, **{name.replace("__", "."): text for name, text in more.items()}}


def parsed(text: str) -> list[Row]:
    """Return rows that are written as ``key ts``, or ``-key ts`` for deletes.

    Keys that begin with an l are in partition c; of the others the even ones are in partition a, the odd ones in b.
    """
    rows = []
    for number, one in enumerate(text.split(",")):
        key, ts = one.split()
        name = key.lstrip("-")
        gone = key.startswith("-")
        rows.append({"id": name, "p": partition_of(name), "ts": int(ts), "value": number, "_hoodie_is_deleted": gone})
    return rows


def partition_of(key: str) -> str:
    """Return the partition of a key."""
    return "c" if key.startswith("l") else "ab"[int(key[1:]) % 2]


def _tuples(rows: pa.Table, columns: tuple[str, ...] = COLUMNS) -> list[tuple[Any, ...]]:
    if not rows.num_rows:
        return []
    return sorted(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))


@pytest.fixture
def shared(tmp_path: Path, spark: SparkSession, apache: ApacheHudi) -> Shared:
    return Shared(tmp_path / "a table", spark, apache)


BASE = ", ".join(f"k{n} 10" for n in range(12))
MEETINGS = "k0 20, k1 5, k2 10, -k3 20, -k4 5, n20 10, -n21 20, n22 20"
AGAIN = "k0 15, k3 15, k5 1, -n20 10, n21 15, -n22 15, k7 30"
IN_TIME = "k3 20, k6 11, -k7 30"
# In file groups that begin with log files: what comes first, and what comes to it.
IN_LOGS = "l0 10, l1 10, l2 10, l3 10, -l4 20, l5 10, -l7 20"
TO_LOGS = "l0 20, l1 5, -l2 20, -l3 5, l4 15, l6 1, l7 30"
AFTER_LOGS = "l4 1, l2 1, l0 15, -l6 2"
NEW_IN_LOGS = {"hoodie__pyhudi__commit__merge__max__bytes": "1"}
# Writers that do not block one another know no base files of the others'.
NON_BLOCKING = {
    "hoodie__write__concurrency__mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie__clean__failed__writes__policy": "LAZY",
    "hoodie__write__lock__provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}


def log_only(table: Path) -> int:
    """Return how many of the three file groups of partition c have log files and no base file."""
    file_slices = [file_slice for file_slice in slices(table) if file_slice.group.partition_path == "c"]
    assert len(file_slices) == 3
    return sum(file_slice.base is None and bool(file_slice.logs) for file_slice in file_slices)


def test_ours_is_read_continued_and_compacted_by_them(shared: Shared) -> None:
    """Each kind of meeting of rows and deletes, in blocks of both formats; three file groups begin with log files."""
    shared.ours(BASE)
    shared.begin_in_logs()
    shared.ours(f"{MEETINGS}, {IN_LOGS}", **NEW_IN_LOGS)
    shared.ours("k5 0, k6 0, x99 0", "delete")
    shared.ours(AGAIN, **{BLOCKS.replace(".", "__"): "avro"})
    shared.check()
    shared.check_queries()

    shared.theirs(f"{IN_TIME}, {TO_LOGS}")
    shared.theirs("k8 0, k9 0", "delete")
    shared.check()
    assert log_only(shared.path) == 3

    shared.theirs("k10 99", hoodie__compact__inline="true", hoodie__compact__inline__max__delta__commits="1")
    shared.model.compact(elsewhere=True)
    shared.check()
    assert log_only(shared.path) == 0

    shared.ours(f"k3 1, k8 1, -k10 98, {AFTER_LOGS}")
    shared.check(by_spark=True)


def test_theirs_is_read_continued_and_compacted_by_us(shared: Shared) -> None:
    shared.theirs(BASE)
    shared.begin_in_logs()
    shared.theirs(f"{MEETINGS}, {IN_LOGS}", **{BLOCKS.replace(".", "__"): "parquet"}, **NON_BLOCKING)
    shared.theirs("k5 0, k6 0, x99 0", "delete")
    shared.ours(f"{AGAIN}, {TO_LOGS}")
    shared.ours("k8 0, k9 0", "delete")
    shared.theirs(IN_TIME)
    shared.check()
    shared.check_queries()
    assert log_only(shared.path) == 3

    assert run(shared.path).instant
    shared.model.compact()
    shared.check()
    assert log_only(shared.path) == 0

    shared.theirs(f"k3 1, k8 1, -k10 98, {AFTER_LOGS}")
    shared.ours("k9 1, -k11 9")
    shared.check(by_spark=True)


def test_each_executes_the_others_plan_while_both_append(shared: Shared) -> None:
    shared.theirs(BASE)
    shared.ours("k0 20, -k1 20, k2 20")
    schedules = {"hoodie__compact__schedule__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
    shared.theirs("k3 20, -k4 20", **schedules)
    shared.model.schedule()
    shared.ours("k0 15, k1 15, k5 30")
    shared.theirs("k4 30, k6 30, n20 1")
    shared.check()

    # First what they planned, then what came since.
    assert run(shared.path).instant
    shared.model.compact()
    shared.model.compact()
    shared.check()

    shared.ours("k0 38, -k5 40, k1 1")
    assert schedule(shared.path).instant
    shared.model.schedule()
    shared.theirs("k1 16, -k0 40")
    shared.ours("k7 30, k0 39, k5 39")
    shared.check()

    shared.run_theirs()
    shared.model.compact()
    shared.check()
    shared.ours("k0 1")
    shared.check(by_spark=True)


COUNTED = (
    *("numWrites", "numInserts", "numUpdateWrites", "numDeletes", "totalWriteErrors", "logVersion", "logOffset"),
    *("totalLogRecords", "totalUpdatedRecordsCompacted", "totalLogBlocks", "totalLogFilesCompacted", "baseFile"),
)


def test_our_commits_say_what_theirs_say(shared: Shared, tmp_path: Path) -> None:
    """Of appends and of a compaction, group by group; what they merge is the same, so that each may plan by it."""
    other = replace(shared, path=tmp_path / "theirs", model=LoggedModel(bucket_of=shared.model.bucket_of))
    shared.ours(BASE)
    other.theirs(BASE)
    for rows, operation in ((MEETINGS, "upsert"), ("k5 0, k6 0, x99 0", "delete"), (AGAIN, "upsert")):
        shared.ours(rows, operation)
        other.theirs(rows, operation)

        assert differences(said(shared.path), said(other.path)) == {}

    run(shared.path)
    other.theirs("k11 99", hoodie__compact__inline="true", hoodie__compact__inline__max__delta__commits="1")
    theirs = {group: counts for group, counts in said(other.path).items() if group in said(shared.path)}
    group = next(key for key in theirs if key == ("b", java_bucket("k11", ["id"], 3)))
    assert theirs.pop(group) != {}
    ours = {key: counts for key, counts in said(shared.path).items() if key != group}
    assert differences(ours, theirs) == {}
    assert newest_metadata(shared.path)["operationType"] == newest_metadata(other.path)["operationType"] == "COMPACT"


def said(table: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Return what the newest instant says of each file group, by partition and bucket."""
    return {
        (partition, int(stat["fileId"][:8])): {name: stat[name] or 0 for name in COUNTED}
        for partition, stats in newest_metadata(table)["partitionToWriteStats"].items()
        for stat in stats
    }


def differences(ours: dict[tuple[str, int], dict[str, Any]], theirs: dict[tuple[str, int], dict[str, Any]]) -> Any:
    """Return what is not the same, by file group: ours and theirs."""
    groups = {*ours, *theirs}
    differences_by_group = {
        group: {
            name: (mine, other)
            for name in COUNTED
            if (mine := ours.get(group, {}).get(name)) != (other := theirs.get(group, {}).get(name))
        }
        for group in groups
    }
    return {group: names for group, names in differences_by_group.items() if names}
