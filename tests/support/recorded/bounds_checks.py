"""Bounds in metadata tables by Apache Hudi, held against the rows of the tables; for the tests and for mutations."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
from pyhudi.errors import UnreadableTimeError
from pyhudi.reader.plan import Split, whole
from pyhudi.reader.query import AsOf
from pyhudi.reader.scan import MergeTerms, RowReader, scan
from pyhudi.reader.skipping.answers import NOTHING
from pyhudi.reader.skipping.column_bounds import ColumnStatsSource
from pyhudi.reader.skipping.partition_bounds import PartitionBounds
from pyhudi.reader.skipping.predicates import Compare, Predicate
from pyhudi.reader.skipping.search import Search
from pyhudi.reader.skipping.slices_to_read import PARTITIONS
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.storage import open_storage
from pyhudi.storage.base import split
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.files.logs.log_blocks import BlockHead, BlockType, Header
from pyhudi.table.hfile.entries import Entries
from pyhudi.table.hfile.reader import HFile
from pyhudi.table.hfile.writer import HFileWriter
from pyhudi.table.metadata.kinds import COLUMN_STATS, groups_of
from pyhudi.table.metadata.record_keys import key_of_file_bounds
from support.recorded.recorded_metadata import MADE

NOW_AND_THEN = "live_9_by_1_2_of_base_files"
_MODEL = "org.apache.hudi.avro.model"


def check_rows(folder: Path) -> None:
    """Assert that no slice is left out whose row has all of the values that a condition names, at any moment."""
    for made in MADE:
        of_others = 0
        for snapshot in moments(folder / made.name):
            shown = {one: rows_of(snapshot, one) for one in snapshot.slices()}
            for file_slice, rows in shown.items():
                for row in rows.to_pylist()[:: max(rows.num_rows - 1, 1)]:
                    predicates = values_of(row)
                    left = left_by_files(snapshot, predicates, [*shown])
                    assert file_slice in left, (made.name, snapshot.query, predicates)
                    of_others += len(shown) - len(left)
                    for without in stated_partitions(snapshot, predicates):
                        assert file_slice.partition_path not in without, (made.name, predicates)
        assert of_others, made.name


def check_then(folder: Path) -> None:
    """Assert that a moment of the past shows its rows of a partition that has others now."""
    table = str(folder / NOW_AND_THEN)
    first = open_snapshot(table).timeline.writes[0].requested_time
    now, then = (Compare("ts", "=", number) for number in (7, 1))

    assert {one.partition_path for one in open_snapshot(table).slices([now])} >= {"a", "b"}
    left = {one.partition_path for one in open_snapshot(table).slices([then])}
    assert "a" not in left, "bounds of the partition and of its newest files say that no row has it"
    past = open_snapshot(table, query=AsOf(first))
    assert {one.partition_path for one in past.slices([then])} >= {"a", "b"}


def check_pending(folder: Path) -> None:
    """Assert that nobody goes by what a write stated that has not completed, or was rolled back."""
    table = Path(shutil.copytree(folder / NOW_AND_THEN, folder / "with_other_bounds"))
    snapshot = open_snapshot(str(table))
    (pending,) = {one.requested_time for one in snapshot.timeline.pending}
    (in_b,) = [one for one in snapshot.slices() if one.partition_path == "b"]
    state_bounds(table, pending, in_b.base_file.path, "ts", 1000)

    now = open_snapshot(str(table))
    assert in_b in left_by_files(now, [Compare("ts", "=", 7)], [*now.slices()])


def check_answer(folder: Path) -> None:
    """Assert that what sources leave of a table together has the rows of a condition, and say which sources asked."""
    table = str(folder / NOW_AND_THEN)
    snapshot = open_snapshot(table)
    every = pa.Table.from_batches(scan(snapshot), snapshot.schema)
    for number in range(9):
        predicates = [Compare("ts", "=", number)]
        rows = pa.Table.from_batches(scan(snapshot, predicates=predicates), snapshot.schema)
        wanted = every.filter(pc.equal(every["ts"], number))
        assert sorted(rows["id"].to_pylist()) == sorted(wanted["id"].to_pylist())
    read = snapshot.slices_to_read([Compare("ts", "=", 1)], counts=True)
    assert [step.source for step in read.steps[:3]] == [PARTITIONS, "partition_stats", "column_stats"]
    assert [step.left_out for step in read.steps[1:2]] == [1]


def moments(table: Path) -> Iterator[Snapshot]:
    """Yield a table as it is now, and as it was at moments that it can show."""
    now = open_snapshot(str(table))
    yield now
    for instant in now.timeline.writes[2:3]:
        then = open_snapshot(str(table), query=AsOf(instant.requested_time))
        try:
            then.slices()
        except UnreadableTimeError:
            continue
        yield then


def rows_of(snapshot: Snapshot, file_slice: FileSlice) -> pa.Table:
    """Return the rows of one slice, read without conditions."""
    reader = RowReader(snapshot.storage, snapshot.schema, snapshot.schema, (), None, MergeTerms(snapshot.config))
    return pa.Table.from_batches(reader.read(Split((whole(file_slice),))), snapshot.schema)


def values_of(row: dict[str, object]) -> list[Predicate]:
    """Return a condition for each value of a row."""
    return [Compare(name, "=", value) for name, value in row.items() if value is not None]


def left_by_files(snapshot: Snapshot, predicates: list[Predicate], slices: list[FileSlice]) -> list[FileSlice]:
    """Return the slices that bounds of files leave."""
    trusted = snapshot.metadata.trusted
    assert trusted is not None
    search = Search.of(predicates, snapshot.schema, None)
    answer = ColumnStatsSource(trusted, snapshot.config, search).slices_left(slices, NOTHING)
    assert answer is not None
    return [*answer.slices]


def stated_partitions(snapshot: Snapshot, predicates: list[Predicate]) -> Iterator[frozenset[str]]:
    """Yield the partitions without rows that bounds of partitions state, where they state any of this moment."""
    trusted = snapshot.metadata.trusted
    assert trusted is not None
    if snapshot.shows_newest:
        search = Search.of(predicates, snapshot.schema, None)
        without = PartitionBounds(trusted, snapshot.config, search).without_rows()
        if without is not None:
            yield without


def state_bounds(table: Path, instant: str, path: str, column: str, value: int) -> None:
    """Let an instant have stated that a file of two rows has one value alone in a column of longs."""
    folder = table / ".hoodie" / "metadata" / COLUMN_STATS
    partition, name = split(path)
    key = key_of_file_bounds(column, partition, name)
    groups = sorted({one.name.partition("_")[0] for one in folder.glob("*.hfile")})
    group = groups[int(groups_of(pa.array([key]), len(groups))[0])]
    for log in folder.glob(f".{group}_{instant}.log.*"):
        log.unlink()
    base = max(folder.glob(f"{group}_*.hfile"))
    with open_storage(str(folder)).open_input(base.name) as source:
        schema = HFile(source, base.name).schema
    wrapped = (f"{_MODEL}.LongWrapper", {"value": value})
    bounds = {"fileName": name, "columnName": column, "minValue": wrapped, "maxValue": wrapped, "isTightBound": True}
    bounds |= {"valueCount": 2, "nullCount": 0, "totalSize": 9, "totalUncompressedSize": 9, "isDeleted": False}
    encoded = io.BytesIO()
    fastavro.schemaless_writer(
        encoded, fastavro.parse_schema(json.loads(schema)), {"key": "", "type": 3, "ColumnStatsMetadata": bounds}
    )
    content = io.BytesIO()
    writer = HFileWriter(content, schema)
    writer.add(Entries(pa.array([key.encode()], pa.binary()), pa.array([encoded.getvalue()], pa.binary())))
    writer.close()
    head = BlockHead(BlockType.HFILE, {Header.INSTANT_TIME: instant, Header.SCHEMA: schema})
    log = folder / f".{base.name.partition('_')[0]}_{instant}.log.1_0-0-0"
    log.write_bytes(b"".join(head.framed([content.getvalue()])))
