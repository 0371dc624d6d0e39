"""Late rows of deleted keys: what Apache Hudi and hudi-rs show of deletes with an ordering value, and of those without.

Where a test expects Apache Hudi to show an erased row and fails, docs/merge-on-read.md can promise more.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.readers import read_hudi_rs
from interop.test_merge_on_read import Shared
from pyspark.sql import SparkSession
from support.drawn.deleted_rows import LOGGED, QUIET, READ, indexed, rows, shown, write
from support.made.compacting import join, run, schedule
from support.models.model import SCHEMA
from support.recorded.hudi_options import unpartitioned
from support.write_settings import write_settings

pytestmark = pytest.mark.interop

# The type of the ordering field, a value, and a greater one.
KINDS: dict[str, tuple[pa.DataType, Any, Any]] = {
    "int": (pa.int32(), 5, 10),
    "long": (pa.int64(), 5, 10),
    "string": (pa.string(), "a", "b"),
    "boolean": (pa.bool_(), False, True),
    "float": (pa.float32(), 1.5, 2.5),
    "double": (pa.float64(), 1.5, 2.5),
    "date": (pa.date32(), dt.date(1960, 1, 1), dt.date(2021, 1, 1)),
    "timestamp": (pa.timestamp("us", "UTC"), dt.datetime(1960, 1, 1), dt.datetime(2021, 1, 1)),
    "decimal": (pa.decimal128(10, 2), Decimal("1.50"), Decimal("2.50")),
}
# Types of ordering fields whose tables Apache Hudi cannot update.
UNCHANGED = {"date", "decimal"}
OPTIONS = {**unpartitioned(1), "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheHudi]:
    """Apache Hudi 1.0.2, whose own version 8 is."""
    process = ApacheHudi(tmp_path_factory.mktemp("apache-hudi-1-0"), release="1.0.2")
    yield process
    process.close()


def values(found: pa.Table) -> dict[str, int]:
    """Return the value of each key that a reader shows."""
    return dict(zip(found["id"].to_pylist(), found["value"].to_pylist(), strict=True)) if found.num_rows else {}


def check(path: Path, java: ApacheHudi, expected: dict[str, int], elsewhere: dict[str, int] | None = None) -> None:
    """Assert what pyhudi shows, and what the other readers do."""
    assert shown(path) == expected
    others = expected if elsewhere is None else elsewhere
    assert values(java.read(path)) == others, "Apache Hudi"
    assert values(read_hudi_rs(path)) == others, "hudi-rs"


def compacted_by_them(java: ApacheHudi, path: Path) -> None:
    schedule(path)
    assert java.sql(f"call run_compaction(op => 'run', path => '{path}', options => 'hoodie.metadata.enable=false')")


def deleted(path: Path, kind: pa.DataType, less: Any, stored: Any, **made: Any) -> None:
    """Delete two keys with the value of the stored row; of the one comes an older row then, of the other one as new."""
    write(path, rows("gone", "again", "stays", ts=stored, value=1, kind=kind), table=replace(LOGGED, **made))
    write(path, rows("gone", "again", ts=stored, value=2, kind=kind), operation="delete", settings=READ)
    write(path, rows("gone", ts=less, value=3, kind=kind))
    write(path, rows("again", ts=stored, value=3, kind=kind))


@pytest.mark.parametrize("name", KINDS)
def test_every_reader_hides_older_rows_behind_a_delete_with_a_value(
    tmp_path: Path, apache: ApacheHudi, name: str
) -> None:
    """Also rows that Apache Hudi writes, of log files that were joined, and once it has compacted them."""
    path, expected = tmp_path / "t", {"again": 3, "stays": 1}
    kind, less, stored = KINDS[name]
    deleted(path, kind, less, stored)
    check(path, apache, expected)
    assert join(path).files
    if name not in UNCHANGED:
        apache.write(path, rows("gone", ts=less, value=4, kind=kind), OPTIONS)
    check(path, apache, expected)

    compacted_by_them(apache, path)
    check(path, apache, expected)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "decimal"])
def test_apache_hudi_1_0_reads_each_value(tmp_path: Path, older: ApacheHudi, name: str) -> None:
    path, expected = tmp_path / "t", {"again": 3, "stays": 1}
    deleted(path, *KINDS[name], version=8)
    check(path, older, expected)
    assert join(path).files
    check(path, older, expected)


def test_apache_hudi_1_0_reads_decimals_because_they_are_left_out(tmp_path: Path, older: ApacheHudi) -> None:
    path = tmp_path / "t"
    kind, _, stored = KINDS["decimal"]
    write(path, rows("gone", "stays", ts=stored, value=1, kind=kind), table=replace(LOGGED, version=8))
    write(path, rows("gone", ts=stored, value=2, kind=kind), operation="delete", settings=READ)

    check(path, older, {"stays": 1})


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_BLOOM"])
def test_every_reader_hides_older_rows_of_a_key_that_was_looked_up(
    tmp_path: Path, apache: ApacheHudi, index: str
) -> None:
    path = tmp_path / "t"
    write(path, rows("gone", "stays", ts=10, value=1), table=indexed(index))
    write(path, rows("gone", ts=1, value=2), operation="delete")
    write(path, rows("gone", ts=5, value=3))
    check(path, apache, {"stays": 1})

    compacted_by_them(apache, path)
    check(path, apache, {"stays": 1})


def test_other_readers_show_the_base_row_again_behind_a_delete_by_key_alone(tmp_path: Path, apache: ApacheHudi) -> None:
    """Joined log files change nothing of that; a compaction by pyhudi before theirs makes all readers agree."""
    for compacts in (run, lambda path: compacted_by_them(apache, path)):
        path = tmp_path / f"by {'us' if compacts is run else 'them'}"
        write(path, rows("gone", "never", "stays", ts=10, value=1), table=LOGGED)
        write(path, rows("gone", "never", ts=10, value=2), operation="delete")
        write(path, rows("gone", ts=5, value=3))
        ours, theirs = {"gone": 3, "stays": 1}, {"gone": 1, "stays": 1}
        check(path, apache, ours, theirs)
        assert join(path).files
        check(path, apache, ours, theirs)

        compacts(path)
        check(path, apache, ours if compacts is run else theirs)


def test_apache_hudi_1_0_shows_it_too_or_fails(tmp_path: Path, older: ApacheHudi) -> None:
    """It compares its Integer 0 with the values of the column."""
    for name, kind in {"int": pa.int32(), "long": pa.int64()}.items():
        path = tmp_path / name
        write(path, rows("gone", "stays", ts=10, value=1, kind=kind), table=replace(LOGGED, version=8))
        write(path, rows("gone", ts=10, value=2, kind=kind), operation="delete")
        assert values(older.read(path)) == {"stays": 1}
        write(path, rows("gone", ts=5, value=3, kind=kind))
        assert shown(path) == {"gone": 3, "stays": 1}
        if name == "int":
            assert values(older.read(path)) == {"gone": 1, "stays": 1}
        else:
            with pytest.raises(ApacheHudiError, match="ClassCastException"):
                older.read(path)


@pytest.mark.parametrize("seed", range(3))
def test_histories_of_deletes_and_late_rows(tmp_path: Path, spark: SparkSession, apache: ApacheHudi, seed: int) -> None:
    """Both write and delete; log files are joined, and then compacted by us or by Apache Hudi."""
    chance = random.Random(seed)
    shared = Shared(tmp_path / "a table", spark, apache)
    keys = [f"k{number}" for number in range(8)]
    shared.ours(", ".join(f"{key} {chance.randrange(20, 60)}" for key in keys))
    for step in range(9):
        some = chance.sample(keys, 4)
        writes = shared.theirs if chance.random() < 0.3 else shared.ours
        act = chance.choice(["upsert", "upsert", "delete", "read"]) if step % 4 != 3 else "join"
        if act == "upsert":
            writes(", ".join(f"{chance.choice(['', '', '-'])}{key} {chance.randrange(1, 99)}" for key in some))
        elif act == "delete":
            writes(", ".join(f"{key} 0" for key in some), "delete")
        elif act == "read":
            gone = [row for (_, key), rows in shared.model.rows.items() if key in some for row in rows]
            if gone:
                write(shared.path, pa.Table.from_pylist(gone, SCHEMA), operation="delete", settings=READ)
                shared.model.delete_read(gone)
        else:
            join(shared.path)
        shared.check()
    if seed % 2:
        assert run(shared.path).instant
        shared.model.compact()
    else:
        compacted_by_them(apache, shared.path)
        shared.model.compact(elsewhere=True)
    shared.check()


COPIES = {
    "by key alone": (QUIET, 1),
    "by keys that must be there": (write_settings(QUIET, delete_missing_ok=False), 1),
    "by a condition": (write_settings(READ, of_stored=True), 2),
}


@pytest.mark.parametrize("way", COPIES)
def test_other_readers_lose_a_key_with_copies_where_its_file_group_was_written_anew(
    tmp_path: Path, apache: ApacheHudi, way: str
) -> None:
    """Log entries they hold against the first row, also in a compaction of theirs, which keeps the other for good."""
    path, (settings, count) = tmp_path / "t", COPIES[way]
    write(path, rows("gone", "stays", ts=10, value=1), table=LOGGED)
    write(path, rows("gone", ts=10, value=2), operation="insert")
    write(path, rows(*["gone"] * count, ts=10, value=3), operation="delete", settings=settings)
    theirs = {"stays": 1, **({"gone": 2} if way == "by key alone" else {})}
    check(path, apache, {"stays": 1}, theirs)

    apache.write(path, rows("new", ts=1, value=4), OPTIONS)
    compacted_by_them(apache, path)
    check(path, apache, {**theirs, "new": 4})
