"""Tables as lazy frames of Polars, datasets for DuckDB and DataFrames of pandas: the rows, the rules, what is read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from pyhudi.arrow import Table
from pyhudi.errors import CorruptFileError, InvalidOptionError, MissingColumnError
from support.drawn.foreign_conditions import COLUMNS, CONDITIONS, for_arrow, for_duckdb, for_polars, rows
from support.share import share_of

EXAMPLES = settings(max_examples=share_of(40), deadline=None)


class Copied:
    """A table with updates and deletes, in log files of a merge-on-read table, and a plain Parquet file of its rows.

    The copy has no statistics: DuckDB believes those of Parquet, which do not tell of NaN.
    """

    def __init__(self, folder: Path, table_type: str) -> None:
        terms: dict[str, Any] = {"record_key": "id", "partition_by": "part", "buckets": 1, "table_type": table_type}
        self.table = Table.create(folder / "t", COLUMNS, timestamps="local", **terms)
        self.table.upsert(rows())
        self.table.upsert(rows(turn=1).slice(2, 30))
        self.table.delete("id IN (3, 19, 33)")
        self.copy = folder / "copy.parquet"
        pq.write_table(self.table.read(), self.copy, write_statistics=False)
        self.connection = duckdb.connect()
        self.frame, self.dataset = self.table.to_polars(), self.table.to_duckdb()


@pytest.fixture(scope="module", params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def copied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copied:
    made = Copied(tmp_path_factory.mktemp(request.param), request.param)
    assert (made.table.detail()["log_files"][0].as_py() > 0) == (request.param == "MERGE_ON_READ")
    return made


@EXAMPLES
@given(condition=CONDITIONS)
def test_polars_keeps_the_rows_that_it_keeps_of_a_parquet_file(copied: Copied, condition: Any) -> None:
    wanted = pl.scan_parquet(copied.copy).filter(for_polars(condition)).select("id").collect()

    shown = copied.frame.filter(for_polars(condition)).select("id").collect()

    assert sorted(shown["id"]) == sorted(wanted["id"])


@EXAMPLES
@given(condition=CONDITIONS)
def test_duckdb_keeps_the_rows_that_it_keeps_of_a_parquet_file(copied: Copied, condition: Any) -> None:
    trips = copied.dataset
    query = f"select id from {{}} where {for_duckdb(condition)} order by id"  # noqa: S608 (drawn)
    wanted = copied.connection.sql(query.format(f"'{copied.copy}'")).fetchall()

    shown = copied.connection.sql(query.format("trips")).fetchall()

    assert trips is copied.dataset
    assert shown == wanted


@EXAMPLES
@given(condition=CONDITIONS)
def test_pyarrow_keeps_the_rows_that_it_keeps_of_a_parquet_file(copied: Copied, condition: Any) -> None:
    expression = for_arrow(condition)
    wanted = sorted(ds.dataset(copied.copy).to_table(["id"], filter=expression)["id"].to_pylist())

    assert sorted(copied.table.read("id", where=expression)["id"].to_pylist()) == wanted
    assert sorted(copied.dataset.to_table(["id"], filter=expression)["id"].to_pylist()) == wanted


def damage(table: Table, *partitions: str) -> None:
    """Fill the data files of partitions with zeros, so that what reads them fails."""
    for partition in partitions:
        for file in (Path(table.path) / partition).glob("*.parquet"):
            file.write_bytes(bytes(file.stat().st_size))


def spoil(table: Table, column: str, partition: str) -> None:
    """Overwrite the pages of a column in the base files of a partition, so that what reads them fails."""
    for path in (Path(table.path) / partition).glob("*.parquet"):
        metadata = pq.read_metadata(path)
        for number in range(metadata.num_row_groups):
            chunk = metadata.row_group(number).column(metadata.schema.names.index(column))
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            with path.open("r+b") as file:
                file.seek(start)
                file.write(b"\xff" * chunk.total_compressed_size)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table.create(tmp_path / "t", COLUMNS, record_key="id", partition_by="part", buckets=1, timestamps="local")
    made.upsert(rows())
    return made


def ids_of_polars(frame: pl.LazyFrame, trips: ds.Dataset) -> list[int]:
    return frame.filter(pl.col("part") == "some").select("id").collect()["id"].to_list()


def ids_of_duckdb(frame: pl.LazyFrame, trips: ds.Dataset) -> list[int]:
    return [key for (key,) in duckdb.sql("select id from trips where part = 'some'").fetchall()]


def ids_of_pyarrow(frame: pl.LazyFrame, trips: ds.Dataset) -> list[int]:
    shown = trips.filter(pc.field("part") == "some").to_table({"key": pc.field("id") + 1})
    return pc.subtract(shown["key"], 1).to_pylist()


@pytest.mark.parametrize("ids", [ids_of_polars, ids_of_duckdb, ids_of_pyarrow])
def test_only_columns_and_files_that_a_query_needs_are_read(
    table: Table, ids: Callable[[pl.LazyFrame, ds.Dataset], list[int]]
) -> None:
    """The files of other partitions are damaged, and so are the pages of other columns."""
    frame, trips = table.to_polars(), table.to_duckdb()
    damage(table, "nan", "null", "zero", "more")
    spoil(table, "city", "some")

    assert sorted(ids(frame, trips)) == list(range(24, 32))
    with pytest.raises(Exception, match="PyHudiError"):
        frame.collect()
    with pytest.raises(Exception, match="PyHudiError"):
        duckdb.sql("from trips").fetchall()


def test_the_first_rows_of_a_lazy_frame_need_the_first_files_alone(table: Table) -> None:
    frame = Table(table.path, threads=1).to_polars()
    damage(table, "nan", "null", "zero", "some")

    assert set(frame.head(2).collect()["part"]) == {"more"}
    # Polars means the condition for the first rows, and not for all.
    assert frame.head(3).filter(pl.col("part") == "zero").collect().is_empty()
    assert frame.head(3).filter(pl.col("part") == "more").collect().height == 3


def test_frames_and_datasets_show_the_moment_of_their_making_however_often_they_are_read(copied: Copied) -> None:
    table = copied.table
    before = sorted(table.read("id")["id"].to_pylist())
    frame, trips = table.to_polars("id", where="id >= 0"), table.to_duckdb(["id"])  # noqa: F841 (DuckDB finds it)
    table.upsert(rows(100))
    try:
        for _ in range(2):
            assert sorted(frame.collect()["id"]) == before
            assert [key for (key,) in duckdb.sql("select id from trips order by id").fetchall()] == before
        assert frame.join(frame, on="id").select(pl.len()).collect().item() == len(before)
        assert duckdb.sql("select count(*) from trips join trips as again using (id)").fetchall() == [(len(before),)]
        assert table.to_polars().select(pl.len()).collect().item() == len(before) + 40
        since = table.history()["completed"].to_pylist()[1]
        assert table.to_polars(since=since).select(pl.len()).collect().item() == 40
        assert table.to_duckdb(since=since).count_rows() == 40
    finally:
        table.delete("id >= 100")


@pytest.mark.parametrize("writes", [0, 1, 12], ids=["cleans nothing", "cleans", "cleans and archives"])
def test_rows_that_were_cleaned_since_are_refused_however_much_was_archived(tmp_path: Path, writes: int) -> None:
    """A reader may hold rows of a file whose write was archived before, and whose clean was archived since."""
    options = {"hoodie.clean.commits.retained": 1, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    table = Table.create(tmp_path / "t", COLUMNS, record_key="id", partition_by="part", timestamps="local")
    table = Table(table.path, options={**options, "hoodie.pyhudi.durable": False})
    table.upsert(rows())
    for turn in range(6):
        table.upsert(rows(turn=turn).slice(24, 8))
    frame, trips, stream = table.to_polars(where="part <> 'some'"), table.to_duckdb(), table.scan()
    own_stream = pa.RecordBatchReader.from_stream(table)
    table.delete_partitions("nan", "null", "zero", "more")
    for turn in range(writes):
        table.upsert(rows(turn=turn).slice(24, 8))

    reads: list[Callable[[], int]] = [
        *(lambda: frame.collect().height + 8, trips.count_rows),
        *(lambda: stream.read_all().num_rows, lambda: own_stream.read_all().num_rows),
    ]
    for read in reads:
        if not writes:
            assert read() == 40
            continue
        with pytest.raises(Exception, match=r"UNREADABLE_TIME.*Make the DataFrame anew"):
            read()


def test_a_table_itself_is_a_stream_of_its_newest_rows(copied: Copied) -> None:
    trips, count = copied.table, copied.table.read("id").num_rows

    assert duckdb.sql("select count(*) from trips").fetchall() == [(count,)]
    assert pl.DataFrame(trips).height == count
    assert pa.table(trips).schema == COLUMNS
    narrow = pa.RecordBatchReader.from_stream(trips.scan("number"), schema=pa.schema([("number", pa.int64())]))
    assert narrow.read_all().schema.types == [pa.int64()]


def test_a_query_takes_rows_only_as_it_asks_for_them(table: Table) -> None:
    """A scanner of pyarrow would read far ahead."""
    reader = Table(table.path, threads=1).to_duckdb(["id", "part"]).scanner(batch_size=2).to_reader()
    first = reader.read_next_batch()
    damage(table, "nan", "null", "some", "zero")

    assert first.num_rows == 2 and set(first["part"].to_pylist()) == {"more"}
    with pytest.raises(CorruptFileError):
        reader.read_all()


def test_pandas_gets_what_a_read_shows(copied: Copied) -> None:
    frame = copied.table.to_pandas("id,number", where="id > 30", limit=2)
    exact = copied.table.to_pandas(["number"], types_mapper=pd.ArrowDtype)

    assert list(frame.columns) == ["id", "number"]
    assert len(frame) == 2 and set(frame["id"]) <= set(range(31, 40))
    assert str(exact["number"].dtype) == "int32[pyarrow]"
    with pytest.raises(InvalidOptionError, match=r"as_of=\.\.\."):
        copied.table.to_pandas(version=3)  # type: ignore[call-arg]


def test_a_dataset_is_one_of_pyarrow_and_is_read_by_its_scanner_alone(copied: Copied) -> None:
    trips = copied.dataset
    some = trips.filter(pc.field("id") < 8)

    assert isinstance(trips, ds.Dataset)
    assert trips.schema == COLUMNS
    assert some.count_rows() == 7
    assert some.filter(pc.field("id") > 5).to_table(["id"])["id"].to_pylist() == [6, 7]
    assert trips.head(2, columns=["id"]).num_rows == 2
    assert sum(batch.num_rows for batch in trips.to_batches(columns=["id"], batch_size=3)) == trips.count_rows()
    assert pl.scan_pyarrow_dataset(trips).filter(pl.col("id") < 8).collect().height == 7
    assert copied.table.to_duckdb("id").scanner().projected_schema.names == ["id"]
    with pytest.raises(MissingColumnError, match="'fee'"):
        trips.to_table(["fee"])
    with pytest.raises(InvalidOptionError, match="fee"):
        trips.count_rows(pc.field("fee") == 1)
    assert trips.take([0, 1], columns=["id"]).num_rows == 2
    with pytest.raises(InvalidOptionError, match="'chunk'"):
        trips.scanner(chunk=3)
    # What reads it in another way gets an error, and not an empty table.
    with pytest.raises(OSError, match="by the scanner of its dataset alone"):
        trips.sort_by("id")
    with pytest.raises(OSError, match="by the scanner of its dataset alone"):
        ds.dataset([trips, trips]).to_table()


@pytest.mark.parametrize(
    ("package", "method"), [("polars", "to_polars"), ("duckdb", "to_duckdb"), ("pandas", "to_pandas")]
)
def test_an_error_names_the_package_that_is_absent(
    copied: Copied, package: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(InvalidOptionError, match=f"{method}\\(\\).*not installed.*pip install {package}"):
        getattr(copied.table, method)()


def test_a_duckdb_that_loses_rows_is_refused(copied: Copied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "__version__", "1.5.6")

    with pytest.raises(InvalidOptionError, match=r"DuckDB 1\.5\.6.*pip install 'duckdb>=2'"):
        copied.table.to_duckdb()
