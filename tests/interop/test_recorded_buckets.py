"""Tables whose buckets Apache Hudi records in files of its own.

Those with consistent hashing pyhudi reads and refuses to write by name; those with numbers by partition it writes.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.writer import write_without_spark
from pyhudi.errors import UnsupportedTableError
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.table.buckets.numbers import BucketRule, expression_of, write_bucket_rule
from support.made.rescaling import numbers_at, rescale, table_at
from support.readers import read_without_spark
from support.recorded.hudi_options import SMALL
from support.rules.health import errors

pytestmark = pytest.mark.interop

RINGS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
}
# What a job that says nothing of the index gives.
PLAIN = {key: value for key, value in SMALL.items() if key != "hoodie.index.type"}


def rows(*keys: int, ts: int) -> pa.Table:
    count = len(keys)
    columns = {"id": [f"k{key}" for key in keys], "p": ["ab"[key % 2] for key in keys]}
    return pa.table({**columns, "ts": pa.array([ts] * count, pa.int64())})


def shown(found: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


def test_pyhudi_refuses_the_write_and_apache_hudi_goes_on(tmp_path: Path, apache: ApacheHudi) -> None:
    path, options = tmp_path / "t", {**SMALL, **RINGS}
    apache.write(path, rows(*range(12), ts=1), options)
    expected = [(f"k{number}", 1) for number in range(12)]
    assert shown(read_without_spark(path)) == sorted(expected)

    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
    for asked in ({}, {"hoodie.index.type": "SIMPLE"}, buckets):
        with pytest.raises(UnsupportedTableError, match="CONSISTENT_HASHING"):
            write_without_spark(path, rows(1, 2, 20, ts=2), {**PLAIN, **asked})
        assert shown(read_without_spark(path)) == sorted(expected), asked

    assert errors(path) == []
    apache.write(path, rows(1, 2, 20, ts=2), options)
    after = sorted([*(one for one in expected if one[0] not in {"k1", "k2"}), ("k1", 2), ("k2", 2), ("k20", 2)])
    assert shown(apache.read(path)) == shown(read_without_spark(path)) == after


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_writes_what_the_other_rescaled(tmp_path: Path, apache: ApacheHudi, kind: str) -> None:
    """Apache Hudi's manager rescales a partition, pyhudi another, and either upserts after both with its old option."""
    path, four = tmp_path / "t", {"hoodie.bucket.index.num.buckets": "4", "hoodie.compact.inline": "false"}
    options = {**SMALL, **four, "hoodie.datasource.write.table.type": kind}
    apache.write(path, rows(*range(40), ts=1), options)
    name = f"rescaled_{kind.lower()}"
    apache.sql(f"create table {name} using hudi location '{path}'")
    manager = f"call partition_bucket_index_manager(table => '{name}', overwrite => '^a$,8', bucket_number => 4"
    [row] = apache.sql(f"{manager}, dry_run => false)")
    assert row["result"] == "SUCCESS"
    expected = dict.fromkeys((f"k{number}" for number in range(40)), 1)

    assert [numbers_at(path).of(one) for one in "ab"] == [8, 4]
    assert shown(read_without_spark(path)) == sorted(expected.items())
    write_without_spark(path, rows(*range(10), 41, 42, ts=2), {})
    expected |= dict.fromkeys((f"k{number}" for number in (*range(10), 41, 42)), 2)
    rescale(path, {"b": 6})
    apache.write(path, rows(*range(5, 15), 43, 44, ts=3), options)
    expected |= dict.fromkeys((f"k{number}" for number in (*range(5, 15), 43, 44)), 3)
    write_without_spark(path, rows(*range(12, 20), 45, 46, ts=4), four)
    expected |= dict.fromkeys((f"k{number}" for number in (*range(12, 20), 45, 46)), 4)

    assert shown(apache.read(path)) == shown(read_without_spark(path)) == sorted(expected.items())
    snapshot = open_snapshot(str(path))
    assert len(snapshot.slices([Compare("id", "=", "k7")])) == 2 < len(snapshot.slices())
    assert {int(one.file_id[:8]) < {"a": 8, "b": 6}[one.partition_path] for one in snapshot.slices()} == {True}
    assert errors(path) == []


def test_apache_hudi_reads_every_expression_that_pyhudi_writes(tmp_path: Path, apache: ApacheHudi) -> None:
    """The names of partitions hold what means something in an expression, or ends it."""
    names = ["a.b", "a+b", "x,y", "x;y", "(z", "[q]", "{3}", "w|v", "n^m$", "ü 日本", "back\\slash", "p=1"]
    path, options = tmp_path / "t", {**SMALL, "hoodie.bucket.index.num.buckets": "2"}
    keys = [f"k{number}" for number in range(8)]

    def of_all(ts: int) -> pa.Table:
        columns = {"id": [key for key in keys for _ in names], "p": names * len(keys)}
        return pa.table({**columns, "ts": pa.array([ts] * len(names) * len(keys), pa.int64())})

    apache.write(path, of_all(1).slice(0, 0), options)
    table = table_at(path)
    write_bucket_rule(
        table, BucketRule("0" * 14, 2, tuple((expression_of(one), 3 + at % 3) for at, one in enumerate(names)))
    )
    apache.write(path, of_all(2), options)
    write_without_spark(path, of_all(3), {})

    assert read_without_spark(path).num_rows == apache.read(path).num_rows == len(names) * len(keys)
    assert errors(path) == []
