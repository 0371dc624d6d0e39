"""What a commit says it did: the same of Apache Hudi and of pyhudi after the same write on equal tables."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import newest_metadata
from interop.scenarios import BUCKETS, SMALL
from interop.writer import write_without_spark

pytestmark = pytest.mark.interop

OPERATION = "hoodie.datasource.write.operation"
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"
OPTIONS = {**SMALL, BUCKETS: "2"}
COUNTS = ("numWrites", "numInserts", "numUpdateWrites", "numDeletes", "totalWriteErrors")
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])


def rows(*given: tuple[str, str, int, bool]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], schema=SCHEMA)


# Ten keys in each of a, b and c; every bucket has a file.
FIRST = rows(*((f"k{n}", "abc"[n % 3], 10, False) for n in range(30)))
SECOND = rows(
    ("k0", "a", 11, False),  # newer
    ("k3", "a", 9, False),  # older
    ("k6", "a", 10, False),  # tied
    ("k9", "a", 11, True),
    ("k1", "b", 9, True),  # older than what it would delete
    ("new", "b", 1, False),
    ("new", "b", 2, False),
    ("absent", "b", 2, True),
    ("new", "d", 1, False),
    ("absent", "e", 1, True),
)
# Apache Hudi counts deletes that remove nothing among numDeletes; pyhudi, as not_found, elsewhere.
ABSENT = {("b", "numDeletes"): 1, ("e", "numDeletes"): 1}
AMONG_NEW_ROWS = {("a", "numDeletes"): 1, ("b", "numDeletes"): 2, ("e", "numDeletes"): 1}
# It rewrites the file of five rows in which nothing changes; pyhudi leaves it alone.
UNCHANGED = {("b", "numWrites"): 5}


@dataclass(frozen=True)
class Case:
    """One write, and what Apache Hudi counts on top of what pyhudi does, by partition and statistic."""

    operation: str
    rows: pa.Table
    options: Mapping[str, str] = field(default_factory=dict)
    counted_by_apache: Mapping[tuple[str, str], int] = field(default_factory=dict)


CASES = [
    # The older delete of b loses against the table's row; nobody counts it.
    Case("upsert", SECOND, counted_by_apache={**ABSENT, **UNCHANGED}),
    # Where there is a file, a delete among inserts counts as an insert too.
    Case(
        "insert",
        SECOND,
        counted_by_apache={**AMONG_NEW_ROWS, ("a", "numInserts"): 1, ("b", "numInserts"): 2, **UNCHANGED},
    ),
    # A second file for a bucket would be Apache Hudi's last. It stores a delete as a row.
    Case(
        "bulk_insert",
        rows(("new", "d", 1, False), ("new", "d", 2, False), ("absent", "d", 1, True)),
        counted_by_apache={("d", "numWrites"): 1, ("d", "numInserts"): 1},
    ),
    # The partitions d and e are not there, and nobody counts what would be deleted in them.
    Case("delete", SECOND, counted_by_apache={("b", "numDeletes"): 2, **UNCHANGED}),
    Case("insert_overwrite", SECOND, counted_by_apache=AMONG_NEW_ROWS),
    Case("insert_overwrite_table", SECOND, counted_by_apache=AMONG_NEW_ROWS),
    Case("delete_partition", SECOND.slice(0, 0), {PARTITIONS: "a,b"}),
]


@pytest.fixture(scope="module")
def first(apache: ApacheHudi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table that each writer gets a copy of."""
    table = tmp_path_factory.mktemp("statistics") / "first"
    apache.write(table, FIRST, {**OPTIONS, OPERATION: "bulk_insert"})
    return table


def statistics(table: Path) -> Counter[tuple[str, str]]:
    """Return the newest instant's write statistics, summed over the files of each partition."""
    found: Counter[tuple[str, str]] = Counter()
    for partition, stats in newest_metadata(table)["partitionToWriteStats"].items():
        for stat in stats:
            found.update({(partition, name): stat[name] for name in COUNTS})
    return found


def replaced(table: Path) -> dict[str, int]:
    """Return how many file groups the newest instant takes away, by partition."""
    metadata = newest_metadata(table)
    found = {name: len(ids) for name, ids in (metadata.get("partitionToReplaceFileIds") or {}).items()}
    # Whether a table's overwrite names the partitions that it opens means nothing; a partition's must name its own.
    return {name: n for name, n in found.items() if n or metadata["operationType"] == "INSERT_OVERWRITE"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.operation)
def test_a_commit_says_what_apache_hudis_says(case: Case, first: Path, apache: ApacheHudi, tmp_path: Path) -> None:
    ours, theirs = (Path(shutil.copytree(first, tmp_path / name)) for name in ("ours", "theirs"))
    options = {**OPTIONS, OPERATION: case.operation, **case.options}
    write_without_spark(ours, case.rows, options)
    apache.write(theirs, case.rows, options)

    assert newest_metadata(ours)["operationType"] == newest_metadata(theirs)["operationType"]
    assert statistics(theirs) == statistics(ours) + Counter(case.counted_by_apache)
    assert replaced(ours) == replaced(theirs)
