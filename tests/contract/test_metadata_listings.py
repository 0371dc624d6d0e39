"""A reader that lists files by the metadata table shows what it shows by folders, of each moment, errors included."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.errors import PyHudiError, StorageError, UnreadableTimeError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.past import ShownSlices
from pyhudi.reader.query import AsOf, Changes, FileSearch, Query
from pyhudi.reader.row_condition import read_condition
from pyhudi.reader.scan import scan
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.skipping.slices_to_read import FOOTERS, PARTITIONS
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.storage.local import LocalStorage
from pyhudi.table.files.listing import Needed, StoreListing
from pyhudi.table.metadata.listing import MetadataListing
from pyhudi.table.table import open_table
from pyhudi.timeline.watermark import Watermark
from support.drive import write
from support.faults.planted_metadata import Record, plant
from support.made.cleaning import clean
from support.made.metadata_records import ColumnBounds
from support.made.metadata_tables import How, bounds_of, files_of, keys_of, simulate
from support.mutations import Check, Mutate, assert_red, each
from support.recorded.recorded_metadata import unpack
from support.seams import patch_seam, read_seam

FOLDERS = FileSearch(asks_metadata=False)
FILES_ALONE = How(only=["files"])
NESTED = TableSettings(record_key_fields=("id",), partition_fields=("y", "m"), ordering_fields=("ts",), bucket_count=2)
# No bucket leaves anything out.
ONE_BUCKET = replace(NESTED, bucket_count=1)
# By what happened to them: both versions and types, cleaned and archived, and of version 6 with logs of dead writes.
RECORDED = ["live_6_by_0_15", "spared_6_by_0_15", "spared_8_by_1_2", "live_9_by_1_2", "spared_9_by_1_2"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("metadata"))


@pytest.fixture(autouse=True)
def always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the metadata table answer for a single folder, too."""
    patch_seam(monkeypatch, "folders of a disk for which the metadata table answers", 1)
    patch_seam(monkeypatch, "folders that a file of the metadata table takes", 0)
    read_seam("what a reader said of metadata tables").clear()


class Looked:
    """The folders that a process looked into, less those of the table itself."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.folders: list[str] = []
        for name in ("look into a local folder", "list a local folder"):
            patch_seam(patch, name, self._noting(read_seam(name)))

    def _noting(self, call: Callable[..., object]) -> Callable[..., object]:
        def noting(storage: LocalStorage, folder: str, **how: bool) -> object:
            self.folders.append(folder)
            return call(storage, folder, **how)

        return noting

    @property
    def of_data(self) -> list[str]:
        return [folder for folder in self.folders if folder and not folder.startswith(".hoodie")]

    @property
    def of_metadata(self) -> list[str]:
        return [folder for folder in self.folders if folder.startswith(".hoodie/metadata")]


def queries(table: Path) -> Iterator[tuple[Query | None, Watermark | None]]:
    """Yield the present, the past as of each instant, windows, and what was pinned at each."""
    seen = open_table(open_storage(str(table)))
    timeline = seen.timeline()
    times = {one.requested_time for one in (*timeline.instants, *seen.archive.writes())}
    ordered = sorted(times | {one.visible_since for one in timeline.completed})
    yield None, None
    yield from ((AsOf(time), None) for time in ordered)
    yield from ((Changes(begin, end), None) for begin, end in pairwise(ordered))
    yield from ((Changes(begin), None) for begin in ordered[::3])
    yield Changes("earliest", full_scan=True), None
    for count in range(1, len(timeline.instants), 2):
        yield None, Watermark.of(timeline.instants[:count])


def shown(table: Path, query: Query | None, pinned: Watermark | None, how: FileSearch, *, rows: bool = False) -> object:
    """Return the files of the slices that a query shows, or its rows, or its error."""
    try:
        snapshot = open_snapshot(str(table), None, pinned, query, file_search=how)
        if rows:
            return sorted(str(row) for batch in scan(snapshot, ["id", "p", "ts"]) for row in batch.to_pylist())
        return [
            (one.group, one.base_time, [(file.path, file.size) for file in one.data_files]) for one in snapshot.slices()
        ]
    except PyHudiError as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", RECORDED)
def test_each_moment_shows_the_same_files(tables: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """In version 6 the same rows: log files of dead writes, of which no block counts, are in folders alone."""
    table, rows = tables / name, name == "live_6_by_0_15"
    answers = []
    for query, pinned in queries(table):
        expected = shown(table, query, pinned, FOLDERS, rows=rows)
        with pytest.MonkeyPatch.context() as patch:
            looked = Looked(patch)
            assert shown(table, query, pinned, FileSearch(), rows=rows) == expected, (query, pinned)
        answers.append(expected)
        of_archive = isinstance(query, AsOf) and isinstance(expected, list) and looked.of_data
        assert not looked.of_data or of_archive or isinstance(expected, tuple), query

    assert len(answers) > 15
    assert ("spared" in name) == any(isinstance(one, tuple) and one[0] is UnreadableTimeError for one in answers)


def rows_in(*partitions: tuple[int, int], value: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": [f"{year}-{month}" for year, month in partitions],
            "y": [str(year) for year, _ in partitions],
            "m": [f"{month:02d}" for _, month in partitions],
            "ts": pa.array([value] * len(partitions), pa.int64()),
        }
    )


def nested(path: Path) -> Path:
    """Make a table of nine partitions at two levels, updated once, with a metadata table."""
    write(path, rows_in(*((year, month) for year in range(3) for month in range(3))), table=NESTED)
    write(path, rows_in((0, 0), (1, 2), value=1))
    simulate(str(path), bounds=[], how=FILES_ALONE)
    return path


def test_partitions_that_a_query_needs_are_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each level; partitions that it does not need cost a look at each folder, where commits do not name them."""
    snapshot = open_snapshot(str(nested(tmp_path / "t")))
    store, metadata = StoreListing(snapshot.storage), MetadataListing(snapshot.storage, snapshot.metadata)
    paths = [*store.partitions().files]
    chosen = Needed(lambda path: path.startswith(("0", "1/02")) or "/" not in path)
    below = Needed(lambda path: path == "1/02")
    assert len(paths) == 9

    for needed in (None, chosen, below, Needed(lambda path: False), Needed(lambda path: False, paths)):
        listed, expected = metadata.partitions(needed), store.partitions(needed)
        assert names(listed.files) == names(expected.files)
    assert not metadata.partitions(below).by_folders
    assert names(metadata.of(["0/00", "9/09"]).files) == names(store.of(["0/00", "9/09"]).files)
    assert names({"": metadata.files("0/01")}) == names({"": store.files("0/01")})


def test_a_partition_without_its_name_is_looked_up(tmp_path: Path) -> None:
    """A clean takes the name of a partition while a write adds files to it, which commits name."""

    def nameless(records: list[Record]) -> list[Record]:
        for record in records:
            if record["key"] == "__all_partitions__":
                del record["filesystemMetadata"]["1/02"]
        return records

    plant(nested(tmp_path / "t"), "files", nameless)
    snapshot = open_snapshot(str(tmp_path / "t"))
    store, metadata = StoreListing(snapshot.storage), MetadataListing(snapshot.storage, snapshot.metadata)
    needed = Needed(lambda path: path.startswith("1"), ["1/01", "1/02"])

    listed = metadata.partitions(needed)
    assert not listed.by_folders
    assert names(listed.files) == names(store.partitions(needed).files)


@pytest.mark.parametrize("needed", [None, Needed(lambda path: path.startswith("1"))])
def test_an_emptied_list_of_files_is_no_table_without_partitions(tmp_path: Path, needed: Needed | None) -> None:
    """Folders are listed."""
    table = nested(tmp_path / "t")
    for file in (table / ".hoodie" / "metadata" / "files").iterdir():
        file.unlink()
    snapshot = open_snapshot(str(table))

    listed = MetadataListing(snapshot.storage, snapshot.metadata).partitions(needed)
    assert names(listed.files) == names(StoreListing(snapshot.storage).partitions(needed).files)
    assert listed.by_folders


def names(listed: object) -> dict[str, list[tuple[str, int]]]:
    """Return the data files of each partition; the metafile of a partition is in no metadata table."""
    assert isinstance(listed, dict)
    return {
        path: [(info.path, info.size) for info in infos if info.path.endswith(".parquet")]
        for path, infos in listed.items()
    }


def test_few_folders_do_without_the_metadata_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a query by partition those count that it needs; a read may do without it altogether."""
    table = nested(tmp_path / "t")
    looked = Looked(monkeypatch)

    def read(least: int, where: str | None = None, **options: str) -> tuple[int, int]:
        patch_seam(monkeypatch, "folders of a disk for which the metadata table answers", least)
        looked.folders.clear()
        rows = arrow.Table(str(table), options=options).read(where=where).num_rows
        return rows, len(looked.of_metadata)

    assert read(10) == (9, 0)
    assert read(9)[1] > 0
    assert read(4, "y = '1' AND m = '02'") == (1, 0)
    assert read(1, **{"hoodie.metadata.enable": "false"}) == (9, 0)


@pytest.mark.parametrize("fault", ["a damaged file", "a file without bytes", "another size", "an unnamed file"])
def test_a_metadata_table_at_fault_is_read_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """And said once a process."""
    table = nested(tmp_path / "t")
    folder = table / ".hoodie" / "metadata" / "files"
    files = files_of(str(table))
    if fault == "a damaged file":
        (base,) = folder.glob("*.hfile")
        data = bytearray(base.read_bytes())
        data[60] ^= 1
        base.write_bytes(data)
    else:
        shutil.rmtree(table / ".hoodie" / "metadata")
        newest = np.array([time == max(files.times) for time in files.times])
        sizes = files.sizes + 1 if fault == "another size" else 0
        wrong = replace(files, sizes=np.where(newest, sizes, files.sizes))
        less = files.take(np.flatnonzero(~newest))
        simulate(str(table), less if fault == "an unnamed file" else wrong, [], how=FILES_ALONE)
    expected = shown(table, None, None, FOLDERS)

    with caplog.at_level(logging.WARNING, "pyhudi"):
        assert [shown(table, None, None, FileSearch()) for _ in range(2)] == [expected] * 2
    assert isinstance(expected, list)
    what = "partition files" if fault in ("a damaged file", "a file without bytes") else "metadata table"
    assert [f"does without the {what}" in record.message for record in caplog.records] == [True]


@pytest.mark.parametrize("others", [["column_stats"], ["partition_stats"], ["column_stats", "record_index"]])
def test_a_metadata_table_that_is_wrong_about_files_answers_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: list[str]
) -> None:
    """Neither to the query that found it wrong about one partition, nor later, as it may hide rows in another."""
    patch_seam(monkeypatch, "least file slices on a disk", 1)
    table = tmp_path / "t"
    write(table, rows_in(*((year, month) for year in range(3) for month in range(3))), table=ONE_BUCKET)
    write(table, rows_in((0, 0), (2, 2), value=5))
    files = files_of(str(table))
    newest = np.array(files.times) == max(files.times)
    folders = np.array(files.partitions.to_pylist())
    (hidden,) = np.flatnonzero(newest & (folders == "0/00"))
    bounds, keys = bounds_of(str(table), files), keys_of(str(table), files)
    if "record_index" in others:
        where, ids = "id = '0-0'", ["0-0"]
        (other,) = np.flatnonzero(folders == "1/01")
        keys = replace(keys, files=np.where(keys.files == hidden, other, keys.files))
    else:
        where, ids = "ts = 5", ["0-0", "2-2"]
        bounds = [hiding(each, hidden) if each.column == "ts" else each for each in bounds]
    simulate(str(table), replace(files, sizes=files.sizes + newest), bounds, keys, How(only=["files", *others]))
    snapshot = open_snapshot(str(table))
    condition = read_condition(where, snapshot.schema)

    for _ in range(2):
        rows = [row["id"] for batch in scan(snapshot, ["id"], where=condition) for row in batch.to_pylist()]
        assert sorted(rows) == ids
    steps = snapshot.slices_to_read(condition.predicates, counts=True).steps
    assert [step.source for step in steps] == [PARTITIONS, FOOTERS]


def hiding(bounds: ColumnBounds, at: int) -> ColumnBounds:
    """Return bounds that say of one file that all of its values are 0."""
    least, greatest = bounds.least.to_pylist(), bounds.greatest.to_pylist()
    least[at] = greatest[at] = 0
    kind = bounds.least.type
    return replace(bounds, least=pa.array(least, kind), greatest=pa.array(greatest, kind))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    """With what may be at fault."""
    table = nested(tmp_path / "t")
    (gone, *_) = (table / "2" / "01").glob("*.parquet")
    gone.unlink()

    with pytest.raises(StorageError, match=gone.name) as error:
        arrow.Table(str(table)).read()
    assert str(table) in error.value.what
    assert "validate()" in error.value.todo


def check_a_clean_that_died(path: Path) -> None:
    """A clean deletes files before it tells the metadata table: what the past shows of them is gone."""
    table = path / "t"
    write(table, rows_in((0, 0), (0, 1)), table=NESTED)
    first = newest(table)
    write(table, rows_in((0, 0), value=1))
    files = files_of(str(table))
    assert clean(table, retain=1, finish=False)
    simulate(str(table), files, [], how=FILES_ALONE)

    assert arrow.Table(str(table)).read().num_rows == 2
    with pytest.raises(UnreadableTimeError):
        open_snapshot(str(table), query=AsOf(first)).slices()


def check_a_file_that_is_unnamed(path: Path) -> None:
    """A file that a write names and the metadata table does not: an older file would take its place."""
    table = path / "t"
    write(table, rows_in((0, 0)), table=NESTED)
    write(table, rows_in((0, 0), value=1))
    files = files_of(str(table))
    older = [at for at, time in enumerate(files.times) if time < max(files.times)]
    simulate(str(table), files.take(np.array(older)), [], how=FILES_ALONE)

    try:
        assert [row["ts"] for row in arrow.Table(str(table)).read().to_pylist()] == [1]
    except PyHudiError as error:
        raise AssertionError("the file is there") from error


def newest(table: Path) -> str:
    return open_table(open_storage(str(table))).timeline().writes[-1].requested_time


def test_a_clean_that_died_takes_what_it_planned(tmp_path: Path) -> None:
    check_a_clean_that_died(tmp_path)


def answering_for_then(patch: pytest.MonkeyPatch) -> None:
    """Let the metadata table of now answer for a moment whose files a clean may be deleting."""

    def listing(query: ShownSlices) -> MetadataListing | None:
        return None if query.metadata is None else MetadataListing(query.seen.storage, query.metadata)

    patch_seam(patch, "listing of a query by the metadata table", listing)


def believing_it(patch: pytest.MonkeyPatch) -> None:
    """Take a file for gone that the metadata table does not name."""
    partitions = MetadataListing.partitions
    patch_seam(
        patch,
        "partitions by the metadata table",
        lambda listing, needed=None: replace(partitions(listing, needed), by_folders=True),
    )


@each([(answering_for_then, check_a_clean_that_died), (believing_it, check_a_file_that_is_unnamed)])
def test_mistakes_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutate: Mutate, check: Check) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check)


def test_nothing_is_skipped_where_a_read_says_so(tmp_path: Path) -> None:
    """But for partitions and buckets."""

    def sources(search: FileSearch) -> set[str]:
        snapshot = open_snapshot(str(table), file_search=search)
        read = snapshot.slices_to_read([Compare("id", "=", "0-0"), Compare("ts", ">", 5)], counts=True)
        return {step.source for step in read.steps}

    table = nested(tmp_path / "t")
    assert sources(FileSearch(skips_files=False)) < sources(FileSearch())
