"""Base files of other writers: what Parquet says of a value otherwise than the table's columns do."""

from __future__ import annotations

import datetime as dt
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.skipping.search import Search
from pyhudi.reader.skipping.statistics import comparable_bounds
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.files.base_file import BaseFileReader
from pyhudi.table.files.old_days import widened_days
from pyhudi.table.metadata.column_spans import ColumnSpans
from pyhudi.table.metadata.read_bounds import bounds_of_base_file

PATH = "p/f_0-1-2_20260101000000000.parquet"
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_000)


STORAGE = MemoryStorage.open("memory:base-file")
OLD = {"org.apache.spark.version": "3.5.1", "org.apache.spark.legacyDateTime": ""}
OLD_INT96 = {"org.apache.spark.version": "3.0.1"}
# From which day on, as the old calendar counts it, how many days are added: Spark's own table.
SWITCHES = [-719164, -682945, -646420, -609895, -536845, -500320, -463795, -390745, -354220, -317695, -244645, -208120]
SWITCHES += [-171595, -141427]
ADDED = [*range(2, -11, -1), 0]


def opened(rows: pa.Table, footer: Mapping[str, str] | None = None, **how: Any) -> BaseFileReader:
    """Return a reader of a file with some rows, which Parquet writes as ``how`` says; ``footer`` is what it says."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, **how) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(dict(footer or {}))
    STORAGE.write(PATH, sink.getvalue().to_pybytes())
    return BaseFileReader(STORAGE, PATH)


@pytest.mark.parametrize("kind", [pa.timestamp(unit, zone) for unit in ("us", "ms") for zone in ("UTC", None)], ids=str)
def test_times_in_int96_are_those_of_the_column(kind: pa.DataType) -> None:
    """INT96 has no zone, and holds years that nanoseconds do not."""
    stored = pa.array([dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 1), None, LAST], pa.timestamp("us"))
    wanted = pa.schema([pa.field("t", kind)])

    with opened(pa.table({"t": stored}), use_deprecated_int96_timestamps=True) as reader:
        (batch,) = reader.batches(wanted)

    assert batch.column("t").cast(pa.int64()) == stored.cast(pa.timestamp(kind.unit)).cast(pa.int64())
    assert batch.schema == wanted


def shaped(days: list[int]) -> pa.Table:
    """Return days by their numbers, alone and inside other columns."""

    def columns(kind: pa.DataType) -> pa.Schema:
        nested = {"l": pa.list_(pa.struct([("x", kind)])), "m": pa.map_(pa.string(), kind)}
        return pa.schema({"d": kind, **nested})

    rows: list[dict[str, Any]] = [{"d": day, "l": [{"x": day}, None, {"x": None}], "m": [("k", day)]} for day in days]
    return pa.Table.from_pylist([*rows, {}], columns(pa.int32())).cast(columns(pa.date32()))


@pytest.mark.parametrize("footer", [OLD, {"org.apache.spark.version": "2.4.8"}, {"org.apache.spark.version": "4.0.0"}])
def test_days_of_the_old_calendar_keep_their_names(footer: dict[str, str]) -> None:
    """By Spark's table, in which the days after one of its days are like it, at any depth."""
    days = [day + near for day in SWITCHES for near in (-1, 0, 300)][1:]
    of_now = [day + ADDED[bisect_right(SWITCHES, day) - 1] for day in days]
    stored = shaped(days)

    with opened(stored, footer) as reader:
        (batch,) = reader.batches(stored.schema)

    expected = stored if footer["org.apache.spark.version"] == "4.0.0" else shaped(of_now)
    assert pa.Table.from_batches([batch]).cast(stored.schema) == expected


def test_widened_bounds_hold_a_day_by_its_number_in_either_calendar() -> None:
    days = [day + near for day in SWITCHES for near in (-1, 0, 300)][1:]
    of_now = [day + ADDED[bisect_right(SWITCHES, day) - 1] for day in days]
    least, greatest = widened_days(*[pa.array([*days, None], pa.int32())] * 2)

    assert all(
        low <= min(pair) and max(pair) <= high
        for low, high, pair in zip(
            least.to_pylist()[:-1], greatest.to_pylist()[:-1], zip(days, of_now, strict=True), strict=True
        )
    )
    assert (least[-1].as_py(), greatest[-1].as_py(), least[-2].as_py()) == (None, None, days[-1])


def test_the_first_days_of_the_calendars_have_the_same_names() -> None:
    """Before the first year, too, which Spark's table leaves out, and of a leap day that is none now."""
    julian_leap_day = dt.date(1500, 3, 10)

    with opened(shaped([_number(julian_leap_day), -719_529]), OLD) as reader:
        (batch,) = reader.batches(pa.schema([("d", pa.date32())]))

    assert batch.column("d").cast(pa.int32()).to_pylist() == [_number(dt.date(1500, 3, 1)), -719_527, None]


@pytest.mark.parametrize(
    ("footer", "how", "refused"),
    [
        (OLD, {}, True),
        (OLD_INT96, {}, False),
        (OLD_INT96, {"use_deprecated_int96_timestamps": True}, True),
        ({"org.apache.spark.version": "3.5.1"}, {"use_deprecated_int96_timestamps": True}, False),
    ],
)
def test_moments_of_the_old_calendar_are_refused(footer: dict[str, str], how: dict[str, bool], refused: bool) -> None:
    """Their numbers depend on a time zone, unlike those of local times; from 1900 on all are as they are now."""
    first = dt.datetime(1900, 1, 1)
    early, late = ([first - dt.timedelta(microseconds=early), None] for early in (1, 0))
    moments, local = pa.timestamp("us", "UTC"), pa.timestamp("us")
    rows = pa.table({"late": pa.array(late, moments), "local": pa.array(early, local), "t": pa.array(early, moments)})

    with opened(rows, footer, **how) as reader:
        (batch,) = reader.batches(rows.schema.remove(2))
        read = pa.Table.from_batches([batch])
        if refused:
            with pytest.raises(UnsupportedTableError, match=f"(?s){PATH} .*'t'.*RebaseModeInWrite=CORRECTED"):
                list(reader.batches(rows.schema))
        else:
            assert pa.Table.from_batches(reader.batches(rows.schema)) == rows

    assert read == rows.select(["late", "local"])


def test_bounds_in_the_old_calendar_leave_out_no_row() -> None:
    """Rows are read with other days than the footer has for its least; what is stated of the file is of the rows."""
    day, field = _number(dt.date(1500, 3, 10)), pa.field("d", pa.date32())

    with opened(shaped([day]), OLD) as reader:
        search = Search((Compare("d", "=", dt.date(1500, 3, 1)),), pa.schema([field]))
        assert search.row_groups(reader.parquet, PATH) == [0]

    rows, (bounds,) = bounds_of_base_file(STORAGE, PATH, [field])
    assert (rows, bounds.nulls) == (2, 1)
    assert bounds.least == bounds.greatest == struct.pack("<i", _number(dt.date(1500, 3, 1)))


_MOMENTS = pa.timestamp("us", "UTC")
_FIRST = dt.datetime(1900, 1, 1)
_MICRO, _DAYS_11, _DAYS_3 = dt.timedelta(microseconds=1), dt.timedelta(days=11), dt.timedelta(days=3)


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize(
    ("least", "greatest", "widened"),
    [
        (dt.datetime(1500, 1, 1), dt.datetime(1899, 1, 1), (_DAYS_11, _DAYS_3)),
        (_FIRST - _MICRO, _FIRST, (_DAYS_11, _DAYS_3)),
        (_FIRST - _MICRO, dt.datetime(2024, 1, 1), (_DAYS_11, 0 * _DAYS_3)),
        (_FIRST, dt.datetime(2024, 1, 1), (0 * _DAYS_11, 0 * _DAYS_3)),
    ],
)
def test_bounds_of_old_moments_are_those_of_the_footer_and_wider(
    least: dt.datetime, greatest: dt.datetime, widened: tuple[dt.timedelta, dt.timedelta], old: bool
) -> None:
    """Their rows are refused, and Apache Hudi would take a column without bounds for one of nulls."""
    field = pa.field("t", _MOMENTS)
    opened(pa.table({"t": pa.array([greatest, None, least], _MOMENTS)}), OLD if old else {}).close()

    rows, (bounds,) = bounds_of_base_file(STORAGE, PATH, [field])

    assert (rows, bounds.nulls) == (3, 1)
    ends = least - widened[0] * old, greatest + widened[1] * old
    assert (bounds.least, bounds.greatest) == tuple(
        struct.pack("<q", pa.scalar(end, pa.timestamp("us")).cast(pa.int64()).as_py()) for end in ends
    )


@pytest.mark.parametrize(("zone", "widens"), [("UTC", True), (None, False)])
def test_what_a_metadata_table_states_of_old_moments_leaves_out_no_row(zone: str | None, widens: bool) -> None:
    """Apache Hudi states them as the file has them; the least number of all becomes no greatest."""
    moments = pa.array([dt.datetime(1500, 1, 1), _FIRST, None], pa.timestamp("us", zone))
    least = pa.concat_arrays([moments, pa.array([-(1 << 63)]).cast(moments.type)])
    flags = np.ones(len(least), np.bool_)

    low, high = comparable_bounds(ColumnSpans(least, least, flags, flags))

    numbers = least.cast(pa.int64()).to_pylist()
    down, up = (days // _MICRO * widens for days in (_DAYS_11, _DAYS_3))
    assert low.to_pylist() == [numbers[0] - down, numbers[1], None, numbers[3]]
    assert high.to_pylist() == [numbers[0] + up, numbers[1] + up, None, numbers[3] + up]


def test_a_row_group_whose_texts_are_too_many_for_a_batch_is_read_in_smaller_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parquet C++ refuses more than 2 GiB of texts in a nested column at once, perhaps after some batches."""
    rows = pa.table({"l": [[str(number)] for number in range(100)]})
    iterate, sizes = pq.ParquetFile.iter_batches, []

    def limited(file: pq.ParquetFile, batch_size: int, **how: Any) -> Iterator[pa.RecordBatch]:
        sizes.append(batch_size)
        for number, batch in enumerate(iterate(file, batch_size, **how)):
            if batch_size > 2 and number == 1:
                raise pa.ArrowNotImplementedError
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", limited)
    with opened(rows) as reader:
        batches = list(reader.batches(rows.schema, batch_rows=48))

    assert pa.Table.from_batches(batches).to_pydict() == rows.to_pydict()
    assert sizes == [48, 3, 1]


def test_a_read_makes_the_schema_of_a_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file with many columns, that takes longer than to read a small row group."""
    rows = pa.table({"x": [1, 2, 3], "l": [["a"], None, []]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=1)
    STORAGE.write(PATH, sink.getvalue().to_pybytes())
    made, schema = [], pq.ParquetFile.schema_arrow.fget

    def counted(file: pq.ParquetFile) -> pa.Schema:
        made.append(file)
        return schema(file)

    monkeypatch.setattr(pq.ParquetFile, "schema_arrow", property(counted))
    with BaseFileReader(STORAGE, PATH) as reader:
        assert reader.parquet.num_row_groups == 3
        assert pa.Table.from_batches(reader.batches(rows.schema)).to_pydict() == rows.to_pydict()

    assert len(made) == 1


def _number(day: dt.date) -> int:
    return day.toordinal() - dt.date(1970, 1, 1).toordinal()
