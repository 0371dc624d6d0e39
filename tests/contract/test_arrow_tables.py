"""`pyhudi.arrow`: the verbs of a table without Spark, from what a user gives to what a user gets."""

from __future__ import annotations

import datetime
import gc
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from pyhudi import arrow
from pyhudi.errors import (
    ColumnValueError,
    CommitConflictError,
    DuplicateColumnError,
    DuplicateKeyError,
    InvalidOptionError,
    KeyNotFoundError,
    MissingColumnError,
    MissingOptionError,
    OptionConflictError,
    PyHudiError,
    StorageError,
    TableNotFoundError,
    UnsupportedTypeError,
)
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.files.names import met_at_file
from support.rules.ends import assert_whole
from support.seams import patch_seam

COLUMNS = pa.schema([("id", pa.int64()), ("city", pa.string()), ("fare", pa.float64())])


def trips(*ids: int, city: str = "Rome", fare: float = 1.0) -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids), "fare": [fare] * len(ids)}, COLUMNS)


def fares(table: arrow.Table, **asked: Any) -> dict[int, float]:
    """Return the fares that a read shows, by key."""
    rows = table.read(["id", "fare"], **asked)
    return dict(zip(rows["id"].to_pylist(), rows["fare"].to_pylist(), strict=True))


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> arrow.Table:
    return arrow.Table.create(
        tmp_path / "t", COLUMNS, record_key="id", partition_by="city", buckets=2, table_type=request.param
    )


def test_the_verbs_of_a_table_change_its_rows_and_count_them(table: arrow.Table) -> None:
    inserted = table.upsert(trips(1, 2, 3))
    table.insert(trips(4, fare=4.0))
    table.append(trips(3, fare=3.0))
    partial = table.upsert(trips(2, fare=2.5).select(["id", "city", "fare"]), partial=True)
    deleted = table.delete(pa.table({"id": [1], "city": ["Rome"], "more": ["ignored"]}))

    assert (inserted.inserts, partial.updates, deleted.deletes) == (3, 1, 1)
    assert fares(table) == {2: 2.5, 3: 3.0, 4: 4.0}

    table.insert_overwrite(trips(9, city="Oslo"))
    table.delete_partitions("Rome")
    assert fares(table) == {9: 1.0}
    table.overwrite(trips(7))
    assert fares(table) == {7: 1.0}
    assert table.last_commit() is not None
    assert table.history().num_rows >= 8
    assert table.validate().num_rows == 0
    assert_whole(Path(table.path))


def test_services_run_and_their_results_are_those_of_the_services(table: arrow.Table) -> None:
    for value in range(3):
        table.upsert(trips(1, fare=float(value)), **{"hoodie.clean.automatic": False})
    compacts = table.detail()["type"].to_pylist() == ["MERGE_ON_READ"]

    compacted = table.compact() if compacts else None
    cleaned = table.clean(retain=1)
    saved = table.savepoint(comment="before")
    named = table.savepoints()["instant"].to_pylist()

    assert compacted is None or compacted.instant
    assert cleaned.files or compacts
    assert named == [saved.instant]
    table.upsert(trips(1, fare=9.0))
    table.restore(saved.instant)
    assert fares(table) == {1: 2.0}
    assert [service.service for service in table.run_services(["clean"]).services] == ["clean"]
    assert table.rescale_buckets(4).instant
    assert fares(table) == {1: 2.0}


def test_a_condition_deletes_exactly_its_rows_and_what_comes_meanwhile_is_deleted_too(table: arrow.Table) -> None:
    table.upsert(trips(1, 2, 3))
    table.upsert(trips(4, city="Oslo", fare=float("nan")))

    by_text = table.delete("id = 1 OR fare > 100")
    by_expression = table.delete(pc.field("fare") + 1 > 1.5)

    # Text follows Spark's rules, by which NaN is the greatest number; for pyarrow no comparison with it holds.
    assert by_text.deletes == 2
    assert by_expression.deletes == 2
    assert fares(table) == {}
    with pytest.raises(KeyNotFoundError):
        table.delete(trips(8), missing_ok=False)
    with pytest.raises(InvalidOptionError, match="neither rows nor a condition"):
        table.delete()


@pytest.mark.parametrize(
    ("options", "defaults"),
    [
        ({"hoodie.datasource.query.type": "read_optimized"}, ""),
        ({}, "hoodie.datasource.query.type=incremental\nhoodie.datasource.read.begin.instanttime=2099-01-01"),
    ],
)
def test_a_condition_deletes_rows_of_the_newest_snapshot_whatever_query_the_options_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], defaults: str
) -> None:
    arrow.Table.create(tmp_path / "t", COLUMNS, record_key="id", buckets=1, table_type="MERGE_ON_READ")
    (tmp_path / "hudi-defaults.conf").write_text(defaults)
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    table = arrow.Table(tmp_path / "t", options=options)
    table.upsert(trips(1, 2))
    # The log file alone has this fare.
    table.upsert(trips(2, fare=5.0))

    assert (table.delete("fare = 1").deletes, table.delete("fare = 5").deletes) == (1, 1)


def test_a_table_that_generates_its_keys_takes_appends_and_deletes_of_rows_as_read(tmp_path: Path) -> None:
    arrow.write(tmp_path / "t", trips(1, 1, 2), record_key=None)
    table = arrow.Table(tmp_path / "t")

    table.append(trips(3))
    table.delete("id = 1")

    assert sorted(table.read("id")["id"].to_pylist()) == [2, 3]
    table.delete(table.read(meta=True, where="id = 2"))
    assert table.read("id")["id"].to_pylist() == [3]
    with pytest.raises(OptionConflictError, match="generates its keys"):
        table.upsert(trips(4))


@pytest.mark.parametrize(
    ("mode", "left"),
    [("append", {1: 2.0, 2: 1.0}), ("upsert", {1: 2.0, 2: 1.0}), ("overwrite", {1: 2.0}), ("ignore", {1: 1.0, 2: 1.0})],
)
def test_modes_do_what_those_of_spark_do(tmp_path: Path, mode: Any, left: dict[int, float]) -> None:
    made = arrow.write(tmp_path / "t", trips(1, 2), mode, record_key="id", partition_by="city")

    arrow.write(tmp_path / "t", trips(1, fare=2.0), mode, record_key="id")

    assert made.inserts == 2
    assert fares(arrow.Table(tmp_path / "t")) == left
    with pytest.raises(OptionConflictError, match="mode is error"):
        arrow.write(tmp_path / "t", trips(1), "error")
    with pytest.raises(InvalidOptionError, match="mode='merge'"):
        arrow.write(tmp_path / "t", trips(1), "merge")  # type: ignore[arg-type]


def test_arguments_and_options_say_the_same_and_no_argument_is_passed_over(tmp_path: Path) -> None:
    """A table may get its key and partitions by Hudi's own options; an argument counts without a record key, too."""
    by_options = {"hoodie.datasource.write.recordkey.field": "id"}
    partitioned = {"hoodie.datasource.write.partitionpath.field": "city"}
    arrow.write(tmp_path / "t", trips(1), **by_options, **partitioned)
    arrow.write(tmp_path / "u", trips(1), record_key="id", **partitioned)

    arrow.write(tmp_path / "v", trips(1), record_key=None, operation="bulk_insert")

    assert arrow.Table(tmp_path / "v").history()["operation"].to_pylist() == ["BULK_INSERT"]
    assert arrow.write(tmp_path / "t", trips(1), "upsert", operation="insert").updates == 1
    for path in (tmp_path / "t", tmp_path / "u"):
        config = load_config(open_storage(str(path)))
        assert (config.record_key_fields, config.partition_fields) == (("id",), ("city",))
        for wrong in ({"partition_by": "fare"}, {"order_by": "fare"}, {"buckets": 3}):
            with pytest.raises(OptionConflictError, match=str(next(iter(wrong.values())))):
                arrow.write(path, trips(1), **wrong)


def test_errors_name_the_key_the_table_above_and_the_column(tmp_path: Path) -> None:
    arrow.write(tmp_path / "t", trips(1), record_key="id")

    with pytest.raises(MissingOptionError, match=f"record_key.*above it, at {tmp_path}/t"):
        arrow.write(tmp_path / "t" / "Rome", trips(1))
    with pytest.raises(TableNotFoundError, match=f"above it, at {tmp_path}/t"):
        arrow.Table(tmp_path / "t" / "Rome").upsert(trips(1))
    with pytest.raises(TableNotFoundError, match="There is no Hudi table"):
        arrow.read(tmp_path / "nothing")
    with pytest.raises(OptionConflictError, match="Open it with pyhudi"):
        arrow.Table.create(tmp_path / "t", COLUMNS, record_key="id")
    with pytest.raises(MissingColumnError):
        arrow.read(tmp_path / "t", ["id", "tip"])
    with pytest.raises(UnsupportedTypeError, match="duration"):
        arrow.write(tmp_path / "u", pa.table({"id": [1], "d": pa.array([1], pa.duration("s"))}), record_key="id")
    with pytest.raises(DuplicateKeyError):
        arrow.Table(tmp_path / "t").insert(trips(1), **{"hoodie.datasource.insert.dup.policy": "fail"})
    with pytest.raises(AttributeError, match=r"Use read\(as_of="):
        arrow.Table(tmp_path / "t").load_as_version(3)  # type: ignore[attr-defined]
    with pytest.raises(InvalidOptionError, match=r"read\(as_of="):
        arrow.Table(tmp_path / "t").read(version=3)  # type: ignore[call-arg]
    assert not arrow.Table.exists(tmp_path / "u")


def test_a_value_that_fits_no_type_of_hudi_fails_the_write_by_its_row_and_leaves_nothing(tmp_path: Path) -> None:
    arrow.write(tmp_path / "t", trips(1), record_key="id")
    numbers = pa.chunked_array([pa.array(range(100_000), pa.uint64()), pa.array([2**63], pa.uint64())])
    rows = pa.table({"id": numbers, "city": ["Rome"] * 100_001, "fare": [1.0] * 100_001})

    with pytest.raises(ColumnValueError, match=f"Column 'id'.*row 100000, {2**63}"):
        arrow.Table(tmp_path / "t").upsert(rows)

    assert fares(arrow.Table(tmp_path / "t")) == {1: 1.0}
    assert_whole(tmp_path / "t")


def sources(rows: pa.Table) -> Iterator[Any]:
    """Yield the same rows in each form in which a user may give them."""
    import duckdb
    import pandas
    import polars

    yield rows
    yield rows.to_batches()[0]
    yield rows.to_batches(max_chunksize=1)
    yield rows.to_reader(max_chunksize=1)
    yield iter(rows.to_batches(max_chunksize=1))
    yield (batch for batch in rows.to_batches())
    yield ds.dataset(rows)
    yield rows.to_pandas()
    # A class made of a DataFrame of pandas, as GeoPandas has one, whose index is no range.
    yield type("Frame", (pandas.DataFrame,), {})(rows.to_pandas().set_index(pandas.Index([7, 9, 8])))
    yield polars.from_arrow(rows)
    yield duckdb.from_arrow(rows)


def test_rows_come_in_each_form_that_arrow_has(tmp_path: Path) -> None:
    for number, rows in enumerate(sources(trips(1, 2, 3))):
        path = tmp_path / str(number)
        assert arrow.write(path, rows, record_key="id").inserts == 3
        assert sorted(arrow.read(path).to_pylist(), key=lambda row: row["id"]) == trips(1, 2, 3).to_pylist()


def test_batches_of_different_columns_are_refused(tmp_path: Path) -> None:
    batches = [pa.record_batch({"id": [1], "x": [value]}) for value in (1, None)]
    for rows in (batches, iter(batches)):
        with pytest.raises(InvalidOptionError, match="has the columns id: int64, x: null, and the first"):
            arrow.write(tmp_path / "t", rows, record_key="id")


@pytest.mark.parametrize("rows", [7, "rows", {"id": 1}, [], iter([1]), pa.chunked_array([[1]])])
def test_what_holds_no_rows_is_refused_by_its_type(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(InvalidOptionError, match="Rows were given as"):
        arrow.write(tmp_path / "t", rows, record_key="id")


def test_columns_of_pandas_without_an_arrow_type_are_refused_by_name(tmp_path: Path) -> None:
    import pandas as pd

    for values in ([1, "x"], [2**70, None], ["\ud800", "x"], pd.arrays.SparseArray([0, 1])):
        with pytest.raises(UnsupportedTypeError, match="The column 'v' of the DataFrame of pandas") as raised:
            arrow.write(tmp_path / "t", pd.DataFrame({"id": [1, 2], "v": values}), record_key="id")
        assert raised.value.text.encode()
    with pytest.raises(DuplicateColumnError, match="several columns of the name '1'"):
        arrow.write(tmp_path / "t", pd.DataFrame([[1, 2]], columns=[1, "1"]), record_key="1")


def test_an_iterator_without_a_batch_is_a_write_without_rows(table: arrow.Table) -> None:
    assert table.upsert(iter([])).inserts == 0


def test_rows_that_come_once_are_written_again_where_another_write_came_first(
    table: arrow.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt has taken some of the rows, more than stay in memory."""
    patch_seam(monkeypatch, "bytes of rows that come once and wait in memory", 100)
    table.upsert(trips(1, 2))
    asked = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(1, 60):
            asked.append(number)
            yield trips(number, fare=5.0).to_batches()[0]

    from pyhudi.operations.write.instant import abort_write
    from pyhudi.operations.write.run import LocalRun

    finish, tries = LocalRun.finish, []

    def conflicting(run: LocalRun, results: Any) -> Any:
        tries.append(run)
        if len(tries) == 1:
            results()
            abort_write(run.plan)
            raise CommitConflictError("Another writer was first.", "Write again.")
        return finish(run, results)

    patch_seam(monkeypatch, "finish a local run", conflicting)
    done = table.upsert(batches())

    assert len(tries) == 2
    assert asked == list(range(1, 60))
    assert done.inserts + done.updates == 59
    assert fares(table) == dict.fromkeys(range(1, 60), 5.0)


@pytest.mark.parametrize(
    "failure",
    [
        CommitConflictError("A row of another table was changed meanwhile.", "Write again."),
        StorageError(
            "A file of another table is gone.", "Look.", met=met_at_file("Rome/0-a_0-0-0_20200101000000000.parquet")
        ),
    ],
)
def test_a_source_that_fails_is_no_conflict_of_the_table_that_is_written(
    table: arrow.Table, failure: PyHudiError
) -> None:
    """A write that ran again would have the rows that came before the failure alone."""
    table.upsert(trips(1, 2))

    def batches() -> Iterator[pa.RecordBatch]:
        yield trips(3).to_batches()[0]
        raise failure

    for write in (table.upsert, table.overwrite):
        with pytest.raises(type(failure)) as raised:
            write(batches())
        assert raised.value is failure
    with pytest.raises(type(failure)):
        table.merge(batches()).when_matched_update_all().when_not_matched_by_source_delete().execute()
    assert fares(table) == {1: 1.0, 2: 1.0}


def test_options_of_a_call_outrank_those_of_the_table_whatever_their_names(table: arrow.Table) -> None:
    inserting = arrow.Table(table.path, options={"operation": "insert"})
    inserting.append(trips(1))
    inserting.append(trips(1))
    assert inserting.upsert(trips(2)).operation == "UPSERT"
    inserting.delete("id = 2")

    past = arrow.Table(table.path, options={"as_of": "2020-01-01"})
    assert past.read(as_of="2999-01-01").num_rows == table.read().num_rows == 2


def test_rows_with_a_key_column_twice_are_refused(table: arrow.Table) -> None:
    with pytest.raises(DuplicateColumnError, match="'id' twice"):
        table.delete(pa.table([[1], [1]], names=["id", "id"]))
    with pytest.raises(DuplicateColumnError, match=r"'fare' .* twice"):
        table.read(["fare", "id", "fare"])


@pytest.mark.parametrize(("fare", "attempts", "left"), [(0.5, 1, {9: 0.5}), (5.0, 2, {})])
def test_a_delete_by_an_expression_is_run_again_only_for_rows_that_satisfy_it(
    table: arrow.Table, fare: float, attempts: int, left: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer adds a row to another file group while the delete is at work."""
    from pyhudi.operations.write.run import LocalRun

    table.upsert(trips(1, 2))
    finish, tries = LocalRun.finish, []

    def beside(run: LocalRun, results: Any) -> Any:
        tries.append(run)
        if len(tries) == 1:
            arrow.Table(table.path).insert(trips(9, city="Oslo", fare=fare))
            tries.pop()
        return finish(run, results)

    patch_seam(monkeypatch, "finish a local run", beside)
    table.delete(pc.field("fare") > 0.75)

    assert len(tries) == attempts
    assert fares(table) == left


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
def test_the_later_of_two_rows_wins_however_many_threads_write(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are more than one task hands to the commit, and cut into many chunks."""
    patch_seam(monkeypatch, "bytes of rows that one task hands to the commit", 1000)
    patch_seam(monkeypatch, "rows of a chunk", 500)
    table = arrow.Table.create(tmp_path / "t", COLUMNS, record_key="id", index=index, threads=4)
    batches = [trips(*range(500), fare=float(value)) for value in range(12)]

    done = table.upsert(pa.concat_tables(batches))

    assert done.inserts == 500
    assert fares(table) == dict.fromkeys(range(500), 11.0)
    assert table.upsert(pa.concat_tables(batches[:3])).updates == 500
    assert set(fares(table).values()) == {2.0}


def test_rows_without_keys_are_written_by_several_tasks_that_share_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_seam(monkeypatch, "bytes of rows that one task hands to the commit", 1000)
    patch_seam(monkeypatch, "bytes that pay for a task", 1000)

    done = arrow.write(tmp_path / "t", trips(*range(5000)).to_batches(max_chunksize=50), record_key=None, threads=3)

    assert done.inserts == 5000
    assert sorted(arrow.read(tmp_path / "t", "id")["id"].to_pylist()) == list(range(5000))


def test_a_scan_is_a_stream_pinned_to_its_moment_that_ends_with_its_caller(table: arrow.Table) -> None:
    for city in "abcdef":
        table.upsert(trips(*range(100), city=city))
    before = threading.active_count()

    stream = table.scan(["id"], where="city < 'f'")
    first = stream.read_next_batch()
    table.delete("id < 50")
    rest = stream.read_all()
    broken_off = table.scan()
    broken_off.read_next_batch()
    del broken_off
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "pyhudi-read":
            thread.join(60)

    assert stream.schema == pa.schema([("id", pa.int64())])
    assert first.num_rows + rest.num_rows == 500
    assert threading.active_count() <= before
    assert pa.table(table).num_rows == 300
    assert table.read(limit=7).num_rows == 7
    assert table.read(limit=0).num_rows == 0


def test_a_process_ends_though_it_has_read_a_part_of_a_scan(table: arrow.Table) -> None:
    for city in "abcdef":
        table.upsert(trips(1, 2, city=city))
    code = (
        "import sys; from pyhudi.arrow import Table\n"
        "rows = Table(sys.argv[1], threads=2).scan(); print(bool(rows.read_next_batch().num_rows))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, table.path], capture_output=True, text=True, timeout=120, check=True
    )

    assert done.stdout == "True\n"


def test_reads_of_the_past_and_of_changes_and_meta_columns(table: arrow.Table) -> None:
    first = table.upsert(trips(1))
    table.upsert(trips(1, fare=2.0))
    table.upsert(trips(2, fare=3.0))

    assert fares(table, as_of=first.instant) == {1: 1.0}
    assert fares(table, since="earliest") == {1: 2.0, 2: 3.0}
    assert table.read(meta=True).schema.names[:5] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    ]
    assert table.schema == COLUMNS
    with pytest.raises(OptionConflictError, match="read_optimized"):
        table.read(since="earliest", read_optimized=True)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("fare >= 2", [2, 3]),
        ("city = 'Rome' AND id IN (1, 3)", [1, 3]),
        ("fare <= id AND NOT fare * 2 = 4", [1]),
        ("city LIKE '_ome' AND id + 1 > 3", [3, 4]),
        (pc.field("fare") >= 2, [2]),
        ((pc.field("id") - 1 == 0) | (pc.field("id") == 3), [1, 3]),
        (pc.is_nan(pc.field("fare")), [3]),
        (pc.scalar(True), [1, 2, 3, 4]),
    ],
)
def test_a_read_returns_exactly_the_rows_of_a_condition(table: arrow.Table, where: Any, ids: list[int]) -> None:
    rows = [(1, 1.0), (2, 2.0), (3, float("nan")), (4, None)]
    table.upsert(pa.table([[key for key, _ in rows], ["Rome"] * 4, [fare for _, fare in rows]], schema=COLUMNS))

    assert sorted(table.read("id", where=where)["id"].to_pylist()) == ids
    for wrong in ("tip > 1", pc.field("tip") > 1, pc.field("city") + 1 > 2, 7):
        with pytest.raises(InvalidOptionError):
            table.read(where=wrong)  # type: ignore[arg-type]


def test_timestamps_without_zone_become_moments_unless_they_are_to_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time = datetime.datetime(2024, 5, 1, 12)
    rows = pa.table({"id": [1], "at": pa.array([time], pa.timestamp("ns"))})

    with caplog.at_level(logging.WARNING, "pyhudi.tables"):
        arrow.write(tmp_path / "utc", rows, record_key="id")
        arrow.write(tmp_path / "local", rows, record_key="id", timestamps="local")
        for path in (tmp_path / "utc", tmp_path / "local"):
            arrow.Table(path).upsert(rows)

    assert [record.getMessage().count("moments in UTC") for record in caplog.records] == [1]
    assert arrow.read(tmp_path / "utc")["at"].to_pylist() == [time.replace(tzinfo=datetime.timezone.utc)]
    assert arrow.read(tmp_path / "local")["at"].to_pylist() == [time]
    with pytest.raises(InvalidOptionError, match="timestamps='zulu'"):
        arrow.write(tmp_path / "x", rows, record_key="id", timestamps="zulu")  # type: ignore[arg-type]


def test_writes_of_threads_all_arrive(table: arrow.Table) -> None:
    table.upsert(trips(0))

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda number: table.upsert(trips(number, fare=7.0)), range(1, 13)))

    assert len({result.instant for result in done}) == 12
    assert fares(table) == {0: 1.0, **dict.fromkeys(range(1, 13), 7.0)}
    assert_whole(Path(table.path))


def test_services_after_a_write_take_no_longer_than_they_may_and_the_result_says_what_is_due(tmp_path: Path) -> None:
    path = tmp_path / "t"
    few = {"hoodie.clean.commits.retained": 1, "upkeep_seconds": 0}
    arrow.write(path, trips(1), record_key="id")
    arrow.Table(path).upsert(trips(1), **few)

    none = arrow.Table(path).upsert(trips(1), **few)
    some = arrow.Table(path).upsert(trips(1), **{**few, "upkeep_seconds": 60})

    assert [service.service for service in none.services if "run_services() runs it" in service.skipped] == ["clean"]
    assert [service.service for service in some.services if service.files] == ["clean"]


def test_a_process_compacts_what_its_seconds_hold_at_once_and_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function in the cloud may write once and end."""
    table = arrow.Table.create(
        tmp_path / "t", COLUMNS, record_key="id", buckets=4, table_type="MERGE_ON_READ", options={"upkeep_seconds": 60}
    )
    for fare in range(5):
        table.upsert(trips(*range(20), fare=float(fare)), upkeep_seconds=0)
    patch_seam(monkeypatch, "part of the seconds that a first plan may take by a guess", 0.0)
    (first,) = (done for done in table.upsert(trips(*range(20))).services if done.service == "compaction")
    rest = table.compact()

    assert first.file_groups == 1
    assert "too few for other file groups" in first.skipped
    assert "compact() merges them" in first.skipped
    assert rest.file_groups == 3


def test_a_write_that_waits_for_no_disk_cleans_without_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table services after a write take the durability of the write."""
    path, rows = str(tmp_path / "t"), pa.table({"id": [1, 2]})
    options = {"hoodie.pyhudi.durable": "false", "hoodie.clean.commits.retained": 1}
    table = arrow.Table.create(path, rows, record_key="id", options=options)
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)

    results = [table.upsert(rows) for _ in range(4)]

    assert any(service.files for result in results for service in result.services)
    assert flushed == []
