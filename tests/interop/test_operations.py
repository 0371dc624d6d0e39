"""Every operation, by Apache Hudi and by pyhudi in turn, on one table of each scenario; every reader sees the same.

What an operation means is decided below the connector, so pyhudi takes its turns without Spark; the round trips write
and read the same scenarios through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import Readers, read_hudi_rs, read_pyhudi
from interop.scenarios import (
    BUCKETS,
    KEY,
    OF_OPERATIONS,
    PARTITION,
    TIME,
    Row,
    Scenario,
    as_rows,
    comparable,
    without_file_names,
)
from interop.writer import write_without_spark
from support.readers import read_without_spark
from support.rules.newest import newest_write

pytestmark = pytest.mark.interop

OPERATION = "hoodie.datasource.write.operation"
PARTITIONS = "hoodie.datasource.write.partitions.to.delete"
# Keeping a metadata table is the round trips' matter, and would double the time of this test.
THEIRS = {BUCKETS: "2", "hoodie.metadata.enable": "false"}
OPERATIONS = {
    "upsert",
    "insert",
    "bulk_insert",
    "delete",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
}


@dataclass
class Content:
    """What a table must hold: the rows of each key, several where an insert repeated one."""

    scenario: Scenario
    rows: dict[tuple[str, str], list[Row]] = field(default_factory=dict)

    def apply(self, operation: str, rows: Iterable[Row], instant: str, partition: str) -> None:
        """Do what one write did."""
        if operation == "insert_overwrite_table":
            self.rows.clear()
        if operation in {"insert_overwrite", "delete_partition"}:
            self.rows = {key: held for key, held in self.rows.items() if key[0] != partition}
        for row in rows:
            key = self.scenario.partition_path(row), self.scenario.record_key(row)
            if operation == "delete":
                self.rows.pop(key, None)
                continue
            held = self.rows.setdefault(key, [])
            if operation == "upsert":
                held.clear()
            held.append({**row, TIME: instant, PARTITION: key[0], KEY: key[1]})

    def expected(self) -> list[Row]:
        """Return the rows in the order of `as_rows`."""
        rows = comparable(row for held in self.rows.values() for row in held)
        return sorted(rows, key=lambda row: (row[PARTITION], row[KEY], str(row)))


@dataclass(frozen=True)
class Turn:
    """One write.

    Attributes:
        writer: "pyhudi" or "Apache Hudi".
        operation: Hudi's name of it.
        numbers: Numbers of its rows.
        partition: Which of the first rows' partitions all of them lie in; None for wherever they lie.
    """

    writer: str
    operation: str
    numbers: range
    partition: int | None = None


JAVA, OURS = "Apache Hudi", "pyhudi"
TURNS = [
    # Apache Hudi's bulk_insert opens a second file group for a bucket that has one: only a new table survives it.
    Turn(JAVA, "bulk_insert", range(40)),
    Turn(OURS, "upsert", range(30, 50)),
    Turn(JAVA, "upsert", range(40, 60)),
    Turn(OURS, "insert", range(60, 70)),
    Turn(JAVA, "insert", range(70, 80)),
    Turn(OURS, "bulk_insert", range(80, 90)),
    Turn(OURS, "delete", range(0, 66, 11)),
    Turn(JAVA, "delete", range(1, 66, 11)),
    Turn(OURS, "insert", range(2, 6)),
    Turn(OURS, "insert_overwrite", range(200, 240), partition=0),
    Turn(JAVA, "insert_overwrite", range(240, 280), partition=1),
    Turn(OURS, "delete_partition", range(0), partition=0),
    Turn(JAVA, "delete_partition", range(0), partition=1),
    Turn(OURS, "upsert", range(300, 310)),
    Turn(OURS, "insert_overwrite_table", range(400, 420)),
    Turn(JAVA, "upsert", range(410, 430)),
    Turn(JAVA, "insert_overwrite_table", range(500, 520)),
    Turn(OURS, "upsert", range(510, 530)),
]


def test_the_turns_hold_every_operation_of_both_writers() -> None:
    assert {(turn.writer, turn.operation) for turn in TURNS} == {(w, o) for w in (JAVA, OURS) for o in OPERATIONS}


@pytest.mark.parametrize("scenario", OF_OPERATIONS, ids=lambda scenario: scenario.name)
def test_each_operation_of_either_writer_is_understood_by_the_other(
    scenario: Scenario, table: Path, hudi: ApacheHudi, readers: Readers
) -> None:
    content = Content(scenario)
    partitions = sorted({scenario.partition_path(row) for row in scenario.rows(range(40), 1, ts=1)})
    write: Mapping[str, Callable[..., None]] = {
        OURS: lambda rows, options: write_without_spark(table, rows, {BUCKETS: "2", **scenario.told, **options}),
        JAVA: lambda rows, options: hudi.write(table, rows, {**scenario.table_options, **THEIRS, **options}),
    }
    for version, turn in enumerate(TURNS, 1):
        partition = partitions[min(turn.partition or 0, len(partitions) - 1)]
        if turn.operation == "delete_partition" and not scenario.partition_fields:
            continue
        rows = scenario.rows(turn.numbers, version, ts=version)
        if turn.partition is not None:
            rows = [row for row in rows if scenario.partition_path(row) == partition]
        options = {PARTITIONS: partition} if turn.operation == "delete_partition" else {}
        write[turn.writer](scenario.table(rows), {OPERATION: turn.operation, **options})
        content.apply(turn.operation, rows, newest_write(table), partition)

        snapshots = {"pyhudi": read_without_spark(table)}
        if scenario.hudi_rs_fails is None:
            snapshots["hudi-rs"] = read_hudi_rs(table)
        # A row of turns of ours is one thing to Apache Hudi, which reads what its last one left.
        if turn.writer == OURS and (turn is TURNS[-1] or TURNS[version].writer == JAVA):
            snapshots["Apache Hudi"] = readers.by_apache(table, scenario)
        for reader, rows_found in snapshots.items():
            assert without_file_names(as_rows(rows_found)) == content.expected(), f"{reader} after {turn}"
    assert without_file_names(as_rows(read_pyhudi(readers.spark, table))) == content.expected()
