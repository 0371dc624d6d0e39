"""Tables whose base files are sorted: no row changes, later writers keep the order, and queries read less."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import (
    CommitConflictError,
    InvalidOptionError,
    MissingColumnError,
    MissingOptionError,
    OptionConflictError,
    UnsupportedTypeError,
)
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.inspect.history import history, last_commit
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.services.means import Means
from pyhudi.operations.write_settings import BulkInsertSort
from pyhudi.reader.query import Changes
from pyhudi.reader.scan import scan
from pyhudi.reader.skipping.predicates import Compare, Predicate
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.storage.inputs import SeekableInput
from pyhudi.table.config import load_config
from pyhudi.table.files.output import Output
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers.patience import Patience
from support.drive import carry_out, plan, read, write
from support.made import compacting
from support.made.rescales import leave_rescale, rescale
from support.made.sorting import IMPATIENT, run, schedule, slices
from support.mutations import Mutate, Patch, assert_red, each
from support.rules.ends import assert_whole
from support.rules.sorted_files import unsorted_files
from support.seams import patch_seam, read_seam
from support.write_settings import write_settings

COLUMNS = pa.schema(
    [("id", pa.string()), ("ts", pa.int64()), ("a", pa.int64()), ("b", pa.string()), ("p", pa.string())]
)
TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2)
LOGGED = replace(TABLE, table_type="MERGE_ON_READ")
SORTED = {"sort_by": ("a", "b"), "sort_curve": "zorder"}
BOTH = pytest.mark.parametrize("table", [TABLE, LOGGED], ids=["cow", "mor"])


def rows(count: int, *, first: int = 0, ts: int = 1, partitions: tuple[str, ...] = ("x", "y")) -> pa.Table:
    """Return rows of keys from a number on, with values of chance and some nulls."""
    chance = random.Random(first * 7 + ts)
    return pa.table(
        {
            "id": [f"k{number}" for number in range(first, first + count)],
            "ts": [ts] * count,
            "a": [None if chance.random() < 0.1 else chance.randrange(50) for _ in range(count)],
            "b": [None if chance.random() < 0.1 else f"b{chance.randrange(50):02d}" for _ in range(count)],
            "p": [partitions[number % len(partitions)] for number in range(count)],
        },
        COLUMNS,
    )


def content(path: Path) -> list[str]:
    """Return all rows with the meta columns that say who wrote them, sorted."""
    return sorted(map(str, read(path).drop_columns(["_hoodie_file_name"]).to_pylist()))


def timeline_of(path: Path) -> Timeline:
    return compacting.timeline_of(path)


@pytest.mark.parametrize(("table", "curve"), [(TABLE, "linear"), (TABLE, "hilbert"), (LOGGED, "zorder")])
def test_a_table_is_sorted_and_no_row_changes(tmp_path: Path, table: TableSettings, curve: str) -> None:
    write(tmp_path, rows(200), table=table)
    write(tmp_path, rows(20, first=190, ts=2), table=table)
    before, groups = content(tmp_path), {one.group for one in slices(tmp_path)}
    told = run(tmp_path, by=["a", "b"], curve=curve, dry_run=True)

    assert load_config(open_storage(str(tmp_path))).sort_order is None, "a dry run notes nothing"

    sort_result = run(tmp_path, by=["a", "b"], curve=curve)

    assert (told.file_groups, told.bytes_read, told.dry) == (sort_result.file_groups, sort_result.bytes_read, True)
    assert (sort_result.file_groups, sort_result.files, sort_result.service) == (4, 4, "sort")
    assert content(tmp_path) == before
    assert {one.group for one in slices(tmp_path)} == groups
    assert {one.base_time for one in slices(tmp_path)} == {sort_result.instant}
    assert not any(one.logs for one in slices(tmp_path))
    assert unsorted_files(tmp_path) == []
    assert not run(tmp_path).instant, "all is in order"
    assert validate(open_storage(str(tmp_path)), deep=True).num_rows == 0


@BOTH
def test_queries_of_changes_show_nothing_of_a_sort(tmp_path: Path, table: TableSettings) -> None:
    write(tmp_path, rows(40), table=table)
    write(tmp_path, rows(10, ts=2), table=table)
    until = max(instant.visible_since for instant in timeline_of(tmp_path).writes)
    sort_result = run(tmp_path, by=["b"])
    write(tmp_path, rows(5, ts=3), table=table)

    changed = open_snapshot(str(tmp_path), query=Changes(begin=until))

    found = pa.Table.from_batches(scan(changed), changed.schema)
    assert sort_result.instant
    assert sorted(found.column("ts").to_pylist()) == [3] * 5


@BOTH
def test_history_shows_a_sort_whose_rows_are_no_change(tmp_path: Path, table: TableSettings) -> None:
    written = write(tmp_path, rows(40), table=table).instant
    sort_result = run(tmp_path, by=["b"])

    newest, first = history(open_storage(str(tmp_path))).to_pylist()

    assert (newest["instant"], newest["operation"], newest["files"]) == (sort_result.instant, "SORT", sort_result.files)
    assert first["operation"] == "UPSERT"
    last = last_commit(open_storage(str(tmp_path)))
    assert last is not None
    assert last.instant == written


@pytest.mark.parametrize("given_up", [False, True])
def test_history_shows_the_plan_of_a_sort_that_a_compaction_carried_out(tmp_path: Path, given_up: bool) -> None:
    """Where the table has no order any more, it has sorted nothing."""
    write(tmp_path, rows(40), table=LOGGED)
    planned = schedule(tmp_path, "a")
    if given_up:
        run(tmp_path, by=[])

    compacting.run(tmp_path)

    newest = history(open_storage(str(tmp_path)), 1).to_pylist()[0]
    assert (newest["instant"], newest["operation"]) == (planned, "COMPACT" if given_up else "SORT")
    compacted = write(tmp_path, rows(4, ts=2), table=LOGGED)
    assert compacting.run(tmp_path).instant > compacted.instant
    assert history(open_storage(str(tmp_path)), 1).column("operation").to_pylist() == ["COMPACT"]


def upserts(path: Path, table: TableSettings) -> None:
    write(path, rows(60, first=180, ts=3), table=table)


def inserts(path: Path, table: TableSettings) -> None:
    write(path, rows(60, first=300), table=table, operation="insert")


def inserts_in_bulk(path: Path, table: TableSettings) -> None:
    write(path, rows(60, first=300), table=table, operation="bulk_insert")


def overwrites_partitions(path: Path, table: TableSettings) -> None:
    write(path, rows(60, partitions=("x",)), table=table, operation="insert_overwrite")


def overwrites_all(path: Path, table: TableSettings) -> None:
    write(path, rows(60), table=table, operation="insert_overwrite_table")


def deletes(path: Path, table: TableSettings) -> None:
    write(path, rows(60).select(["id", "p"]), table=replace(table, sort_by=None, sort_curve=None), operation="delete")


def places_rows(path: Path, table: TableSettings) -> None:
    write(path, rows(60, ts=3), table=table, settings=WriteSettings(colocated=True))


def rescales_to_more(path: Path, table: TableSettings) -> None:
    rescale(path, 2 * (table.bucket_count or 1))


def rescales_to_fewer(path: Path, table: TableSettings) -> None:
    rescale(path, 1)


def rescales_by_spills(path: Path, table: TableSettings) -> None:
    """By numbers without a common divisor, of which each has more buckets than one task divides."""
    rescale(path, 11)
    rescale(path, 12)


WRITES = [
    upserts,
    inserts,
    inserts_in_bulk,
    overwrites_partitions,
    overwrites_all,
    deletes,
    places_rows,
    rescales_to_more,
    rescales_to_fewer,
    rescales_by_spills,
]


@pytest.mark.parametrize("writes", WRITES, ids=lambda one: one.__name__)
@pytest.mark.parametrize(("table", "curve"), [(TABLE, "zorder"), (LOGGED, "linear")], ids=["cow", "mor"])
def test_each_write_keeps_the_order_of_the_table(
    tmp_path: Path, table: TableSettings, writes: Callable[[Path, TableSettings], None], curve: str
) -> None:
    table = replace(table, sort_by=("a", "b"), sort_curve=curve)
    write(tmp_path, rows(200), table=table)

    writes(tmp_path, table)
    compacting.run(tmp_path) if table.table_type else None

    assert not any(one.logs for one in slices(tmp_path))
    assert unsorted_files(tmp_path) == []
    assert not run(tmp_path, dry_run=True).file_groups, "each file notes that it is in order"


def check_kept_by_upserts(path: Path) -> None:
    table = replace(TABLE, **SORTED)
    write(path, rows(200), table=table)
    upserts(path, table)

    assert unsorted_files(path) == []


def check_kept_by_compactions(path: Path) -> None:
    table = replace(LOGGED, **SORTED)
    write(path, rows(200), table=table)
    upserts(path, table)
    compacting.run(path)

    assert unsorted_files(path) == []


def a_sort_lost_by_an_upsert(patch: Patch) -> None:
    patch_seam(patch, "order of the rows of a base file", lambda self: None)


MUTATIONS = [
    (a_sort_lost_by_an_upsert, check_kept_by_upserts),
    (a_sort_lost_by_an_upsert, check_kept_by_compactions),
]


@each(MUTATIONS)
def test_a_lost_order_is_seen(
    tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Callable[[Path], None]
) -> None:
    assert_red(tmp_path, monkeypatch, mutate, check)


def test_a_table_without_an_order_is_written_as_it_comes(tmp_path: Path) -> None:
    write(tmp_path, rows(50, partitions=("x",)), table=replace(TABLE, bucket_count=1))

    [only] = slices(tmp_path)

    assert only.base is not None
    footer = pq.read_metadata(tmp_path / only.base.path)
    assert b"pyhudi.sorted.by" not in footer.metadata
    assert pq.read_table(tmp_path / only.base.path).column("id").to_pylist() == [f"k{number}" for number in range(50)]


@pytest.mark.parametrize(
    ("index", "keys"), [("BLOOM", ("id",)), ("SIMPLE", ("id",)), ("GLOBAL_SIMPLE", ("id",)), (None, None)]
)
def test_tables_with_other_indexes_and_without_keys_are_sorted_within_their_file_groups(
    tmp_path: Path, index: str | None, keys: tuple[str, ...] | None
) -> None:
    table = replace(TABLE, index_type=index, record_key_fields=keys, bucket_count=None, **SORTED)
    table = table if keys else replace(table, ordering_fields=None)
    small = WriteSettings(lookup=LookupSettings(sizes=FileSizes(small=0, largest=6000, record_bytes=100)))
    operation = None if keys else "insert"
    write(tmp_path, rows(300), table=table, settings=small, operation=operation)
    write(tmp_path, rows(50, first=280, ts=2), table=table, settings=small, operation=operation)
    before = content(tmp_path)

    done = run(tmp_path, by=["b"], curve="linear")

    assert done.file_groups == len(slices(tmp_path)) > 2
    assert unsorted_files(tmp_path) == []
    assert content(tmp_path) == before
    write(tmp_path, rows(50, first=100, ts=4), table=replace(table, sort_by=None, sort_curve=None), operation=operation)
    assert unsorted_files(tmp_path) == []
    # Filters and ranges of keys are those of the sorted files: each key was found where it is.
    found = read(tmp_path).column("id").to_pylist()
    assert len(found) == (330 if keys else 400)
    assert len(set(found)) == 330


def test_some_partitions_are_sorted(tmp_path: Path) -> None:
    write(tmp_path, rows(40), table=TABLE)

    result = run(tmp_path, by=["a"], partitions=["y"])

    assert result.file_groups == 2
    assert {one.partition_path for one in slices(tmp_path) if one.base_time == result.instant} == {"y"}
    with pytest.raises(InvalidOptionError, match="'z'"):
        run(tmp_path, by=["b"], partitions=["z"])
    order = load_config(open_storage(str(tmp_path))).sort_order
    assert order is not None
    assert order.columns == ("a",)


@BOTH
@pytest.mark.parametrize("partitions", [None, ["x"]])
def test_partitions_that_a_rescale_holds_are_left_out_and_named(
    tmp_path: Path, table: TableSettings, partitions: list[str] | None
) -> None:
    write(tmp_path, rows(40), table=table)
    leave_rescale(tmp_path, "x", inflight=True)

    result = run(tmp_path, by=["a"], partitions=partitions, means=Means(Patience(), Output()))

    assert "a rescale holds the partition 'x'" in result.skipped
    assert result.file_groups == (0 if partitions else 2)


def test_a_sort_by_columns_that_are_gone_is_refused(tmp_path: Path) -> None:
    write(tmp_path, rows(40), table=TABLE)
    run(tmp_path, by=["a"])
    write(tmp_path, rows(40).drop_columns(["a"]), overwrite=True)

    with pytest.raises(MissingColumnError, match="by a, and has no such column"):
        run(tmp_path)


def test_an_order_is_changed_and_given_up(tmp_path: Path) -> None:
    write(tmp_path, rows(40), table=replace(TABLE, sort_by=("a",)))

    changed = run(tmp_path, by=["a", "b"], curve="hilbert")
    again = run(tmp_path, curve="zorder")

    assert (changed.file_groups, again.file_groups) == (4, 4)
    assert unsorted_files(tmp_path) == []
    assert not run(tmp_path, by=[]).changed
    assert load_config(open_storage(str(tmp_path))).sort_order is None
    with pytest.raises(MissingOptionError, match="names a column"):
        run(tmp_path)


@pytest.mark.parametrize(
    ("asked", "error", "named"),
    [
        ({"by": ["c"]}, MissingColumnError, "'c'"),
        ({"by": ["a", "a"]}, InvalidOptionError, "twice"),
        ({"by": ["a"], "curve": "peano"}, InvalidOptionError, "'peano'"),
        ({"by": ["n"]}, UnsupportedTypeError, "'n'"),
    ],
)
def test_what_cannot_be_sorted_is_named(
    tmp_path: Path, asked: dict[str, Any], error: type[Exception], named: str
) -> None:
    nested = rows(4).append_column("n", pa.array([[1]] * 4))
    write(tmp_path, nested, table=TABLE)

    with pytest.raises(error, match=named):
        run(tmp_path, **asked)

    assert load_config(open_storage(str(tmp_path))).sort_order is None


def test_options_of_an_order_are_checked_when_a_table_is_made_and_later(tmp_path: Path) -> None:
    with pytest.raises(OptionConflictError, match=r"hoodie\.pyhudi\.sort\.curve"):
        write(tmp_path, rows(4), table=replace(TABLE, sort_curve="zorder"))
    with pytest.raises(MissingColumnError, match="'c'"):
        write(tmp_path, rows(4), table=replace(TABLE, sort_by=("c",)))
    write(tmp_path, rows(4), table=replace(TABLE, sort_by=("a",)))
    with pytest.raises(OptionConflictError, match=r"hoodie\.pyhudi\.sort\.by"):
        write(tmp_path, rows(4), table=replace(TABLE, sort_by=("b",)))

    write(tmp_path, rows(40), operation="bulk_insert", settings=WriteSettings(sort=BulkInsertSort(columns=("b",))))

    assert read(tmp_path).num_rows == 44
    assert unsorted_files(tmp_path) == [], "the order of the table wins"


@pytest.mark.parametrize("curve", ["linear", "hilbert"])
def test_files_beyond_memory_are_sorted_through_runs(tmp_path: Path, curve: str) -> None:
    write(tmp_path, rows(3000, partitions=("x",)), table=replace(TABLE, bucket_count=1))

    run(tmp_path, by=["a", "b"], curve=curve, means=Means(IMPATIENT, Output(memory=1 << 14)))

    assert unsorted_files(tmp_path) == []
    assert read(tmp_path).num_rows == 3000


def test_the_sorters_of_one_task_share_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of a rescale writes the files of several buckets at once, and each sorter spills what exceeds its run."""
    write(tmp_path, rows(400, partitions=("x",)), table=replace(TABLE, bucket_count=1, sort_by=("a",)))
    sorters: list[Any] = []
    original = read_seam("order of the rows of a base file")

    def sorter(form: Any) -> Any:
        sorters.append(original(form))
        return sorters[-1]

    memory = 1 << 18
    patch_seam(monkeypatch, "order of the rows of a base file", sorter)
    rescale(tmp_path, 8, output=Output(row_group_bytes=1 << 10, memory=memory))

    assert len(sorters) == 8
    assert sum(one._run_bytes for one in sorters) <= memory
    assert unsorted_files(tmp_path) == []


@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_write_that_came_first_keeps_a_sort_in_place_out_of_its_file_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_of_them: bool
) -> None:
    """What it wrote stays; the others are sorted, unless there are none."""
    write(tmp_path, rows(40), table=TABLE)

    original = read_seam("rewrite the slices of a sort in place")

    def execute(*given: Any) -> Any:
        done = original(*given)
        write(tmp_path, rows(40 if all_of_them else 1, ts=9), table=TABLE)
        return done

    with monkeypatch.context() as patch:
        patch_seam(patch, "rewrite the slices of a sort in place", execute)
        if all_of_them:
            with pytest.raises(CommitConflictError, match="completed meanwhile"):
                run(tmp_path, by=["a"])
        else:
            result = run(tmp_path, by=["a"])
            assert (result.file_groups, result.files) == (3, 3)
            [left] = [one for one in slices(tmp_path) if one.base_time != result.instant]
            assert left.group.words in result.skipped
            made = {one.base.path for one in slices(tmp_path) if one.base is not None}
            new_paths = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob(f"*_{result.instant}.parquet")}
            assert new_paths < made, "the sort deletes the file of the group that it leaves out"

    found = read(tmp_path)
    assert found.num_rows == 40
    assert found.column("ts").to_pylist().count(9) == (40 if all_of_them else 1)
    assert not timeline_of(tmp_path).pending
    assert_whole(tmp_path)
    assert not run(tmp_path).file_groups, "the upsert has sorted its file groups"
    assert unsorted_files(tmp_path) == []


def test_a_sort_in_place_that_came_first_keeps_a_write_out(tmp_path: Path) -> None:
    write(tmp_path, rows(40), table=TABLE)
    settings = write_settings(colocated=True, retry_s=0)
    planned = plan(tmp_path, COLUMNS, settings=settings)

    run(tmp_path, by=["a"])

    with pytest.raises(CommitConflictError, match="completed meanwhile"):
        carry_out(planned, [rows(1, ts=9)])
    assert write(tmp_path, rows(1, ts=9), settings=settings).updates == 1
    assert unsorted_files(tmp_path) == []


def test_a_range_of_either_column_reads_a_small_part_of_a_sorted_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all bytes that a query without a filter reads, footers included; the file has 256 row groups."""
    patch_seam(monkeypatch, "least bytes of a column in a row group", 1 << 12)
    chance, count = np.random.default_rng(5), 30_000
    payload = pa.FixedSizeListArray.from_arrays(pa.array(chance.random(count * 64)), 64)
    many = pa.table(
        {
            "id": [f"k{number}" for number in range(count)],
            "day": chance.integers(0, 1_000_000, count),
            "price": chance.random(count),
            "payload": payload.cast(pa.list_(pa.float64())),
        }
    )
    write(tmp_path, many, table=TableSettings(record_key_fields=("id",), bucket_count=1))
    whole = bytes_read(tmp_path, monkeypatch)

    run(tmp_path, by=["day", "price"], curve="zorder")

    days = [Compare("day", ">=", 400_000), Compare("day", "<", 410_000)]
    for query in (days, [Compare("price", "<", 0.005)]):
        assert bytes_read(tmp_path, monkeypatch, *query) <= 0.15 * whole


class Counted(SeekableInput):
    """Counts the bytes that are read of a file."""

    def __init__(self, source: Any, counts: list[int]) -> None:
        super().__init__(source.size())
        self._source = source
        self._counts = counts

    def _between(self, start: int, end: int) -> Any:
        self._counts.append(end - start)
        self._source.seek(start)
        return self._source.read_buffer(end - start)


def bytes_read(path: Path, patch: pytest.MonkeyPatch, *predicates: Predicate) -> int:
    """Return how many bytes of base files a query reads that shows all columns."""
    counts: list[int] = []
    original = read_seam("open a local file")

    def opened(self: Any, name: str) -> Any:
        source = original(self, name)
        return pa.PythonFile(Counted(source, counts), mode="r") if name.endswith(".parquet") else source

    with patch.context() as patched:
        patch_seam(patched, "open a local file", opened)
        found = sum(batch.num_rows for batch in scan(open_snapshot(str(path)), predicates=predicates))
    assert found
    return sum(counts)
