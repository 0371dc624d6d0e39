"""Partition paths of times beyond what the golden values hold: options, types, zones, refusals."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import InvalidOptionError, MissingOptionError, PartitionValueError, UnsupportedTypeError
from pyhudi.table.config import property_keys as key
from pyhudi.table.keys.time_partitions import TimeOptions

MILLIS = {key.TIME_TYPE: "EPOCHMILLISECONDS", key.TIME_OUTPUT_FORMAT: "yyyy-MM-dd", key.TIME_OUTPUT_ZONE: "UTC"}
TEXTS = {key.TIME_TYPE: "DATE_STRING", key.TIME_INPUT_FORMAT: "yyyy-MM-dd HH:mm", key.TIME_OUTPUT_FORMAT: "yyyyMMddHH"}
EPOCH = dt.datetime(1970, 1, 1)
MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59))


def paths(options: dict[str, str], column: pa.Array) -> list[str]:
    made = TimeOptions(options, "t").partitions()
    made.check_type(column.type, "p")
    return made.paths(column, "p").to_pylist()


@given(st.lists(st.none() | MOMENTS, max_size=8), st.sampled_from(["%Y-%m-%d", "%Y/%m/%d/%H", "%Y%j"]))
def test_numbers_make_the_paths_that_strftime_makes(moments: list[dt.datetime | None], shape: str) -> None:
    pattern = {"%Y-%m-%d": "yyyy-MM-dd", "%Y/%m/%d/%H": "yyyy/MM/dd/HH", "%Y%j": "yyyyDDD"}[shape]
    numbers = [None if one is None else (one - EPOCH) // dt.timedelta(milliseconds=1) for one in moments]
    expected = [(one or EPOCH).strftime(shape.replace("%Y", f"{(one or EPOCH).year:04d}")) for one in moments]

    assert paths({**MILLIS, key.TIME_OUTPUT_FORMAT: pattern}, pa.array(numbers, pa.int64())) == expected


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ({}, pa.array([1709210096789, None], pa.int64())),
        ({}, pa.array([1709210096789.7, None])),
        ({}, pa.array([Decimal("1709210096789.7"), None])),
        ({key.TIME_TYPE: "UNIX_TIMESTAMP"}, pa.array([1709210096, None], pa.int32())),
        ({key.TIME_TYPE: "EPOCHMICROSECONDS"}, pa.array([1709210096789123, None]).view(pa.timestamp("us", "UTC"))),
        ({key.TIME_TYPE: "EPOCHMICROSECONDS"}, pa.array([1709210096789123, None]).view(pa.timestamp("us"))),
        ({key.TIME_TYPE: "SCALAR", key.TIME_UNIT: "HOURS"}, pa.array([474780, None])),
        ({key.TIME_TYPE: "DATE_STRING", key.TIME_INPUT_FORMAT: "yyyy-MM-dd"}, pa.array(["2024-02-29", None])),
        ({key.TIME_TYPE: "DATE_STRING", key.TIME_INPUT_FORMAT: "yyyy"}, pa.array([], pa.large_string())),
    ],
)
def test_columns_of_each_type_are_understood_and_null_is_1970(options: dict[str, str], column: pa.Array) -> None:
    given = {**MILLIS, key.TIME_OUTPUT_FORMAT: "yyyy-MM", key.TIME_INPUT_ZONE: "UTC", **options}

    assert paths(given, column) == ["2024-02", "1970-01"][: len(column)]


def test_a_date_counts_days_and_null_is_its_second_day() -> None:
    column = pa.array([dt.date(2024, 2, 29), None])

    assert paths({**MILLIS, key.TIME_TYPE: "SCALAR", key.TIME_UNIT: "DAYS"}, column) == ["2024-02-29", "1970-01-02"]


def test_a_column_of_nulls_alone_is_understood() -> None:
    assert paths(MILLIS, pa.nulls(2)) == ["1970-01-01"] * 2
    assert paths(TEXTS, pa.nulls(2)) == ["1970010100"] * 2


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        ({}, "2024022923"),
        ({key.TIME_INPUT_ZONE: "Asia/Tokyo"}, "2024022923"),
        ({key.TIME_INPUT_ZONE: "Asia/Tokyo", key.TIME_OUTPUT_ZONE: "UTC"}, "2024022914"),
        ({key.TIME_ZONE: "Asia/Tokyo", key.TIME_OUTPUT_ZONE: "UTC"}, "2024022923"),
        ({key.TIME_INPUT_ZONE: "UTC", key.TIME_OUTPUT_ZONE: "GMT+8:00"}, "2024030107"),
    ],
)
def test_texts_without_a_zone_are_read_in_one_and_shown_in_the_other(zones: dict[str, str], expected: str) -> None:
    assert paths({**TEXTS, **zones}, pa.array(["2024-02-29 23:30"])) == [expected]


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        ({}, "2024022923"),
        ({key.TIME_INPUT_ZONE: "Asia/Tokyo"}, "2024030110"),
        ({key.TIME_OUTPUT_ZONE: "UTC"}, "2024030101"),
    ],
)
def test_texts_with_an_offset_need_no_zone(zones: dict[str, str], expected: str) -> None:
    options = {**TEXTS, key.TIME_INPUT_FORMAT: "yyyy-MM-dd HH:mmZ", **zones}

    assert paths(options, pa.array(["2024-02-29 23:30-0130"])) == [expected]


def test_the_first_pattern_that_fits_a_text_reads_it_even_if_it_is_no_date() -> None:
    options = {**TEXTS, key.TIME_INPUT_FORMAT: "yyyy-dd-MM;yyyy-MM-dd;yyyy", key.TIME_INPUT_DELIMITER: ";"}

    assert paths(options, pa.array(["2024-02-03", "2024"])) == ["2024030200", "2024010100"]
    with pytest.raises(PartitionValueError, match="2024-02-13"):
        paths(options, pa.array(["2024-02-03", "2024-02-13"]))


def test_a_time_that_a_zone_skips_is_refused() -> None:
    with pytest.raises(PartitionValueError, match="2024-03-10 02:30"):
        paths({**TEXTS, key.TIME_ZONE: "America/New_York"}, pa.array(["2024-03-10 01:30", "2024-03-10 02:30"]))


@pytest.mark.parametrize(
    "value", [2**62, -(2**62), 253402300800000, -62135596800001, float("nan"), float("inf"), 1e300]
)
def test_a_number_beyond_the_years_of_four_digits_is_refused(value: float) -> None:
    with pytest.raises(PartitionValueError, match=r"'p'.*EPOCHMILLISECONDS"):
        paths(MILLIS, pa.array([0, value]))


@pytest.mark.parametrize("text", ["", "2024-02-30 00:00", "2024-02-29", " 2024-02-29 00:00", "now"])
def test_a_text_that_is_no_such_time_is_refused(text: str) -> None:
    with pytest.raises(PartitionValueError) as raised:
        paths(TEXTS, pa.array(["2024-02-29 00:00", None, text]))

    assert repr(text) in raised.value.what
    assert key.TIME_INPUT_FORMAT in raised.value.todo


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        (MILLIS, pa.string(), "EPOCHMILLISECONDS"),
        (MILLIS, pa.bool_(), "milliseconds"),
        (MILLIS, pa.date32(), "DAYS"),
        (MILLIS, pa.timestamp("us", "UTC"), "EPOCHMICROSECONDS"),
        (TEXTS, pa.int64(), "texts"),
        (TEXTS, pa.date32(), "DAYS"),
        ({**TEXTS, key.TIME_TYPE: "MIXED"}, pa.timestamp("us"), "EPOCHMICROSECONDS"),
    ],
)
def test_a_column_that_is_not_what_the_options_say_is_refused(options, kind: pa.DataType, says: str) -> None:
    """Apache Hudi writes dates and timestamps by whatever unit is said, and so all of them to 1970 or to year 56000."""
    with pytest.raises(UnsupportedTypeError) as raised:
        TimeOptions(options, "t").partitions().check_type(kind, "p")

    assert says in str(raised.value)
    assert "'p'" in raised.value.what


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({}, []),
        ({key.TIME_OUTPUT_ZONE: None}, [key.TIME_OUTPUT_ZONE]),
        ({key.TIME_OUTPUT_ZONE: None, key.TIME_ZONE: "UTC"}, []),
        ({key.TIME_TYPE: None}, [key.TIME_TYPE]),
        ({key.TIME_OUTPUT_FORMAT: None}, [key.TIME_OUTPUT_FORMAT]),
        ({key.TIME_TYPE: "MIXED"}, [key.TIME_INPUT_FORMAT]),
        ({key.TIME_TYPE: "MIXED", key.TIME_INPUT_FORMAT: "yyyy"}, [key.TIME_INPUT_ZONE]),
        ({key.TIME_TYPE: "MIXED", key.TIME_INPUT_FORMAT: "yyyyZ"}, []),
        ({key.TIME_TYPE: "MIXED", key.TIME_INPUT_FORMAT: "yyyyZ,yyyy"}, [key.TIME_INPUT_ZONE]),
        ({key.TIME_TYPE: "MIXED", key.TIME_INPUT_FORMAT: "yyyy", key.TIME_OUTPUT_ZONE: None}, []),
    ],
)
def test_what_would_differ_from_machine_to_machine_is_missing(changes, absent: list[str]) -> None:
    options = {name: value for name, value in {**MILLIS, **changes}.items() if value is not None}

    assert TimeOptions(options, "t").missing() == absent
    if absent:
        with pytest.raises(MissingOptionError, match=f"table t .*{absent[0]}"):
            TimeOptions(options, "t").partitions()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (key.TIME_TYPE, "EPOCHSECONDS"),
        (key.TIME_UNIT, "FORTNIGHTS"),
        (key.TIME_OUTPUT_FORMAT, "yyyy-MM-dd zzz"),
        (key.TIME_OUTPUT_FORMAT, "yyyyZ"),
        (key.TIME_INPUT_FORMAT, "yyyy,ww"),
        (key.TIME_INPUT_DELIMITER, "("),
        (key.TIME_OUTPUT_ZONE, "Europe/Atlantis"),
        (key.TIME_ZONE, "PST"),
        (key.TIME_PARSER, "com.acme.Parser"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_with_the_table(option: str, value: str) -> None:
    base = TEXTS if option.startswith("hoodie.keygen.timebased.input") else {**MILLIS, key.TIME_TYPE: "SCALAR"}

    with pytest.raises(InvalidOptionError) as raised:
        TimeOptions({**base, option: value}, "trips").partitions()

    assert option in raised.value.what
    assert "trips" in raised.value.what
