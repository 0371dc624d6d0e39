"""The upkeep of metadata tables: what merges leave of records, and what becomes of Apache Hudi's pending plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.means import Means
from pyhudi.operations.services.metadata.create_index import create_index
from pyhudi.operations.services.metadata.slices import MetadataSlices
from pyhudi.operations.services.metadata.upkeep import keep_up
from pyhudi.storage import open_storage
from pyhudi.table.files.output import Output
from pyhudi.table.hfile import entries
from pyhudi.table.hfile.entries import Entries
from pyhudi.table.hfile.reader import HFile
from pyhudi.table.metadata.encoded_again import encoded_again
from pyhudi.table.metadata.file_groups import AllEntries, GroupReader, WantedEntries
from pyhudi.table.metadata.group_merge import merged_group
from pyhudi.table.metadata.kinds import COLUMN_STATS, FILES
from pyhudi.table.metadata.merging import SaidRecords, merged
from pyhudi.table.metadata.metadata_table import MetadataTable
from pyhudi.table.metadata.record_schema import record_schema
from pyhudi.table.metadata.records import decode
from pyhudi.table.metadata.trusted import TrustedMetadata
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import CompactionOperation, CompactionPlan
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import rows_of, write
from support.made.many_groups import ManyGroups, make
from support.made.metadata_tables import How, simulate
from support.places import files_below
from support.recorded.recorded_metadata import MADE, unpack
from support.rules.ends import assert_whole
from support.rules.health import of_metadata
from support.seams import patch_seam

FOLDER = ".hoodie/metadata"
QUIET = replace(IMPATIENT, upkeep=OFF)
TABLE = replace(PARTED, table_type="MERGE_ON_READ")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("metadata"))


def said(batches: Iterator[pa.StructArray]) -> dict[str, Any]:
    """Return records by their keys, without the fields that they leave empty, which releases have or lack."""
    return {record["key"]: _filled(record) for batch in batches for record in batch.to_pylist()}


def _filled(value: Any) -> Any:
    if isinstance(value, list) and value and all(isinstance(each, tuple) for each in value):
        value = dict(value)
    if isinstance(value, dict):
        filled = {name: _filled(each) for name, each in value.items() if each is not None}
        return {name: each for name, each in filled.items() if each != {}}
    return value


def read_back(content: bytes) -> Iterator[pa.StructArray]:
    file = HFile(pa.BufferReader(content), "merged")
    for part in file.scan():
        if len(part):
            yield merged([SaidRecords(part, file.schema)], adds_up=True)


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        *((made.name, "of the group") for made in MADE),
        # Those of version 6 lack a field that says false in another schema.
        *((made.name, "another") for made in MADE if made.version > 6),
    ],
)
def test_a_merged_file_says_what_the_files_of_its_group_say_together(recorded: Path, name: str, schema: str) -> None:
    """For each kind of record, by each release, as bytes and where all are encoded again."""
    table = open_table(open_storage(str(recorded / name)))
    metadata = MetadataTable.of(table, table.timeline())
    assert metadata is not None
    for kind in metadata.names:
        partition = metadata.partition(kind)
        for file_id, file_slice in partition.slices.items():
            before = said(partition.records_in(file_id))

            reader = partition.reader(file_slice)
            if schema == "another":
                # Where a log file has a schema of its own, all records get another.
                logs = [*reader.said_in_logs(AllEntries()), SaidRecords(entries.NONE, "another")]
                reader = with_logs(reader, logs)
            merged_file = merged_group(reader, lists=kind == FILES)

            assert said(read_back(merged_file.content)) == before
            assert merged_file.records >= len(before)


def with_logs(reader: GroupReader, logs: list[SaidRecords]) -> GroupReader:
    """Return a reader of a file group that has other log files."""

    class Reader(GroupReader):
        def said_in_logs(self, wanted: WantedEntries) -> list[SaidRecords]:
            return logs

    return Reader(reader.storage, reader.file_slice, reader.counts, reader.adds_up)


def deletes(keys: pa.BinaryArray) -> SaidRecords:
    return SaidRecords(Entries(keys, pa.nulls(len(keys), pa.binary())), deletes=True)


@pytest.mark.parametrize("touched", ["no block", "some blocks", "the last block", "all keys"])
def test_blocks_that_no_log_file_touches_are_copied(tmp_path: Path, touched: str) -> None:
    simulate(str(tmp_path), *make(str(tmp_path), ManyGroups(30, 40, 6, there=False)))
    table = open_table(open_storage(str(tmp_path)))
    metadata = MetadataTable.of(table, table.timeline())
    assert metadata is not None
    partition = metadata.partition(COLUMN_STATS)
    newest = next(iter(partition.slices.values()))
    reader = partition.reader(newest)
    with reader.open_base() as base:
        assert base is not None
        blocks, schema = len(base.blocks), base.schema
        said_by_base = base.entries_in(range(blocks))
        count, last = len(said_by_base), len(base.entries_in([blocks - 1]))
    assert blocks > 10
    rows = {"no block": [], "some blocks": [5, count // 2], "the last block": range(count - last, count)}
    rows["all keys"] = range(count)
    keys = said_by_base.keys.take(pa.array(rows[touched], pa.int64()))
    new = pa.array([*(f"{at:05d}" for at in range(700)), "~"], pa.binary()) if touched == "some blocks" else keys[:0]
    gone = keys if touched == "the last block" else keys[1:]
    of_new = pa.concat_arrays([keys, new])
    order = pa.compute.sort_indices(of_new)
    values = said_by_base.values.take(pa.array([0] * len(of_new), pa.int64()))
    logs = [deletes(keys), SaidRecords(Entries(of_new.take(order), values), schema), deletes(gone)]

    merged_file = merged_group(with_logs(reader, logs), lists=False)

    file = HFile(pa.BufferReader(merged_file.content), "new")
    got = file.entries_in(range(len(file.blocks)))
    wanted = dict(zip(said_by_base.keys.to_pylist(), said_by_base.values.to_pylist(), strict=True))
    wanted |= dict(zip(of_new.to_pylist(), values.to_pylist(), strict=True))
    left = [key for key in sorted(wanted) if key not in gone.to_pylist()]
    assert got.keys.to_pylist() == left
    assert got.values.to_pylist() == [wanted[key] for key in left]
    assert merged_file.records == file.count == len(left)
    assert left[-1] in file.info[b"hfile.LASTKEY"]
    copied = sum(place.size == other.size for place in file.blocks for other in base.blocks if place.key == other.key)
    assert (copied > blocks - 5) == (touched in ("no block", "some blocks"))
    assert len(file.find(pa.array(left[::100], pa.binary()))) == len(left[::100])


def test_records_of_a_schema_without_a_type_of_bounds_are_refused() -> None:
    """Instead of losing a bound, which would say that all values are null."""
    schema = record_schema()
    narrow = schema.replace('"LocalDateWrapper"', '"OtherWrapper"')
    records = decode(encoded_again(decode(pa.array([], pa.binary()), schema), schema), schema)
    assert len(records) == 0
    dates = pa.array([{"ColumnStatsMetadata": {"minValue": {"LocalDate": 1}}}])
    with pytest.raises(ValueError, match="LocalDate"):
        encoded_again(dates, narrow)


def table_with_logs(path: Path, count: int = 4) -> None:
    write(path, [parted("a", 0, value=0)], table=TABLE, settings=QUIET)
    simulate(str(path), how=How(only=["files"]))
    for value in range(1, count):
        upsert(path, value)


def upsert(path: Path, value: int) -> None:
    write(path, [parted("a", value, value=value)], table=TABLE, settings=QUIET)


def slices_of(path: Path) -> MetadataSlices:
    table = open_table(open_storage(str(path)))
    found = MetadataSlices.of(table, table.timeline())
    assert found is not None
    return found


def upkept(path: Path, **settings: Any) -> Any:
    upkeep = Upkeep(archive=ArchiveSettings(min_commits=1, max_commits=1), **settings)
    return keep_up(open_storage(str(path)), upkeep)


def plan_of_apache_hudi(path: Path, action: str) -> Instant:
    """Put a plan on the timeline of the metadata table, as another engine leaves it."""
    slices = slices_of(path)
    [(name, newest)] = slices.newest
    operation = CompactionOperation(
        base_instant_time=newest.base_time,
        delta_file_paths=[log.path.rpartition("/")[2] for log in newest.logs],
        data_file_path=newest.base_file.name,
        file_id=newest.file_id,
        partition_path=name,
        metrics={"TOTAL_LOG_FILES": 1.0},
    )
    time = f"{int(str(slices.timeline.greatest_time())) + 1}"
    instant, files = Instant(time, action, State.REQUESTED), slices.timeline.files
    assert files.request(instant, files.codec.encode(CompactionPlan(operations=[operation], version=2)))
    return instant


@pytest.mark.parametrize("begun", [False, True])
def test_a_pending_compaction_of_apache_hudi_is_carried_out(tmp_path: Path, begun: bool) -> None:
    """With what its engine left of it, which readers would prefer to the new file."""
    table_with_logs(tmp_path)
    asked = plan_of_apache_hudi(tmp_path, "compaction")
    if begun:
        files = slices_of(tmp_path).timeline.files
        assert files.start(asked)
        left = tmp_path / FOLDER / f"files/files-0000-0_0-12-30_{asked.requested_time}.hfile"
        left.write_bytes(b"begun")
    upsert(tmp_path, 5)
    assert of_metadata(tmp_path) == []

    compaction = upkept(tmp_path)

    slices = slices_of(tmp_path)
    compacted = [each.requested_time for each in slices.timeline.completed if each.action == "commit"]
    assert compacted == [asked.requested_time, compaction.instant]
    assert not slices.timeline.pending
    assert [one.logs for _, one in slices.newest] == [()]
    assert rows_of(tmp_path, "id") == [("k0",), ("k1",), ("k2",), ("k3",), ("k5",)]
    assert of_metadata(tmp_path) == []
    assert_whole(tmp_path)


def test_a_pending_log_compaction_of_apache_hudi_is_taken_back(tmp_path: Path) -> None:
    """Carried out later, it would put log blocks over the base file that has them merged."""
    table_with_logs(tmp_path)
    asked = plan_of_apache_hudi(tmp_path, "logcompaction")
    made = tmp_path / FOLDER / f"files/.files-0000-0_{asked.requested_time}.log.1_0-1-2"
    made.write_bytes(b"begun")

    upkept(tmp_path)

    slices = slices_of(tmp_path)
    assert not made.exists()
    assert not slices.timeline.pending
    assert [one.logs for _, one in slices.newest] == [()]
    assert of_metadata(tmp_path) == []


def test_a_plan_that_comes_again_once_it_was_carried_out_is_taken_back(tmp_path: Path) -> None:
    table_with_logs(tmp_path)
    compaction = upkept(tmp_path)
    upsert(tmp_path, 5)
    timeline = tmp_path / FOLDER / ".hoodie/timeline"
    plan = (timeline / f"{compaction.instant}.compaction.requested").read_bytes()
    upkept(tmp_path)
    for name in [one.name for one in timeline.iterdir() if one.name.startswith(compaction.instant)]:
        (timeline / name).unlink()
    (timeline / f"{compaction.instant}.compaction.requested").write_bytes(plan)

    upkept(tmp_path)

    assert not slices_of(tmp_path).timeline.pending
    assert of_metadata(tmp_path) == []


def test_nothing_is_merged_while_a_rollback_is_pending(tmp_path: Path) -> None:
    table_with_logs(tmp_path)
    (tmp_path / ".hoodie/timeline/20991231000000000.rollback.requested").write_bytes(b"")

    assert not upkept(tmp_path).instant
    assert [len(one.logs) for _, one in slices_of(tmp_path).newest] == [4]


def test_a_metadata_table_is_trusted_through_all_of_its_upkeep(tmp_path: Path) -> None:
    """Both archives follow its compactions, however often either runs."""
    upkeep = Upkeep(archive=ArchiveSettings(min_commits=2, max_commits=3, delta_commits=None))
    settings = replace(QUIET, upkeep=upkeep)
    table_with_logs(tmp_path)
    for value in range(60):
        write(tmp_path, [parted("a", value % 5, value=value)], settings=settings)
        table = open_table(open_storage(str(tmp_path)))
        metadata = MetadataTable.of(table, table.timeline())
        assert metadata is not None
        assert metadata.lacks() == ()
        assert metadata.is_of_now()
        assert TrustedMetadata.of(table, table.timeline()) is not None
    assert len(metadata.timeline.instants) < 60
    assert len(table.timeline().instants) < 30
    assert metadata.timeline.files.archive.instants()
    assert of_metadata(tmp_path) == []
    assert_whole(tmp_path)


def test_a_write_compacts_with_the_tenth_delta_commit_of_a_small_table(tmp_path: Path) -> None:
    """Since the last compaction, whoever made the others; and where services are switched off it does not."""
    settings = replace(QUIET, upkeep=replace(OFF, metadata=True))
    table_with_logs(tmp_path, 6)
    ran = []
    for value in range(26):
        done = write(tmp_path, [parted("a", value % 5, value=value)], settings=settings)
        ran += [value for each in done.services if each.service == "metadata" and each.instant]

    # The instant that began the metadata table counts.
    assert ran == [3, 13, 23]
    assert not Upkeep().called_for().metadata


def test_a_dry_run_says_what_a_compaction_would_merge(tmp_path: Path) -> None:
    table_with_logs(tmp_path, 4)
    before = files_below(tmp_path)

    foretold = arrow.Table(str(tmp_path)).compact_metadata(dry_run=True)

    assert files_below(tmp_path) == before
    compaction = arrow.Table(str(tmp_path)).compact_metadata()
    assert (foretold.file_groups, foretold.log_files) == (compaction.file_groups, compaction.log_files) == (1, 4)
    assert foretold.bytes_read == compaction.bytes_read
    assert "1 file group merged, 4 log files read" in str(compaction)


def test_bodies_that_a_decision_cannot_hold_wait_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a compaction and a clean grow with the files that they name."""
    table_with_logs(tmp_path)
    upkept(tmp_path)
    for key in range(20):
        upsert(tmp_path, key % 4)
    patch_seam(monkeypatch, "bytes of base files that a decision holds", 0)
    patch_seam(monkeypatch, "most bytes of a file that a decision holds", 0)
    patch_seam(monkeypatch, "bytes of all files that a decision holds", 0)

    compaction = upkept(tmp_path)

    timeline = slices_of(tmp_path).timeline
    assert not timeline.pending
    assert [each.action for each in timeline.completed if each.requested_time >= compaction.instant] == [
        "commit",
        "clean",
    ]
    assert [path for path in files_below(tmp_path) if "/first/" in path] == []
    assert of_metadata(tmp_path) == []
    assert_whole(tmp_path)


def test_a_dry_run_counts_the_instants_that_move_once_the_metadata_table_is_compacted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for value in range(6):
        write(path, [parted("a", value % 3, value=value)], table=TABLE, settings=QUIET)
        if not value:
            create_index(open_storage(str(path)), "files", Means(QUIET.patience, Output()))
    table = arrow.Table(str(path))

    counted = table.archive(keep=1, dry_run=True).instants
    assert counted == table.archive(keep=1).instants > 0


def test_instants_of_a_metadata_table_that_pyhudi_built_move_into_its_archive(tmp_path: Path) -> None:
    """Though the indexing stays on the timeline of the table, as in Apache Hudi."""
    path, means = tmp_path / "t", Means(QUIET.patience, Output())
    storage, settings = open_storage(str(path)), ArchiveSettings(min_commits=1, max_commits=1, delta_commits=None)
    upkeep = Upkeep(archive=settings)
    write(path, [parted("a", 0, value=0)], table=TABLE, settings=QUIET)
    create_index(storage, "files", means)
    moved = []
    for round_ in range(2):
        for key in range(21):
            write(path, [parted("a", key % 3, value=round_)], settings=QUIET)
        keep_up(storage, upkeep)
        archive(storage, settings)
        clean(storage, CleanSettings(commits=1))
        moved.append(keep_up(storage, upkeep).instants)

    assert moved[-1]
    slices = MetadataSlices.of(open_table(storage), open_table(storage).timeline())
    assert slices is not None
    assert len(slices.timeline.completed) < 40
    assert of_metadata(path) == []
    assert rows_of(path, "id") == [("k0",), ("k1",), ("k2",)]
