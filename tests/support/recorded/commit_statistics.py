"""What commits say they did: writes of which Apache Hudi's statistics are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.rules.newest import newest_metadata

OPERATION = "hoodie.datasource.write.operation"
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"
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

    @property
    def asked(self) -> dict[str, str]:
        """The options of the write, operation and all."""
        return {OPERATION: self.operation, **self.options}


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


def told(table: Path) -> dict[str, Any]:
    """Return what the newest instant says: its operation, its statistics, and how many file groups it takes away.

    The statistics are sums over the files of each partition.
    """
    metadata = newest_metadata(table)
    counts = {
        partition: {name: sum(stat[name] for stat in stats) for name in COUNTS}
        for partition, stats in metadata["partitionToWriteStats"].items()
    }
    operation, ids = metadata["operationType"], metadata.get("partitionToReplaceFileIds") or {}
    # Whether a table's overwrite names the partitions that it opens means nothing; a partition's must name its own.
    replaced = {name: len(of) for name, of in ids.items() if of or operation == "INSERT_OVERWRITE"}
    return {"operation": operation, "counts": counts, "replaced": replaced}
