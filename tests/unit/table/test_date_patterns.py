"""Joda-Time's patterns: what is refused by name, and that what is written is read again."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.table.keys.date_patterns import DatePattern
from pyhudi.table.keys.date_reader import check_readable, read_times

MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59))
WHOLE = [
    "yyyy-MM-dd HH:mm:ss.SSS",
    "yyyyMMddHHmmssSSS",
    "y/M/d H:m:s.SSS",
    "yyyy-DDD'T'kk:mm:ss,SSS",
    "EEEE, d MMMM yyyy hh:mm:ss.SSS a",
    "SSS ss mm K aa E dd MMM YYYY",
    "yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    "'year' yyyy 'o''clock' HH'h' mm:ss.SSSSSS MM dd",
]


def millis(moment: dt.datetime) -> int:
    return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)


@given(st.lists(MOMENTS, max_size=4), st.sampled_from(WHOLE))
def test_what_is_written_is_read_again(moments: list[dt.datetime], text: str) -> None:
    pattern = DatePattern.parse(text)
    check_readable(pattern)
    times = [millis(moment) for moment in moments]

    read = read_times(pattern, pa.array(pattern.write(times, 3_600_000), pa.string()))

    assert read.local.tolist() == times
    assert read.valid.all()
    assert set(read.offset.tolist()) <= {3_600_000 if pattern.tells_offset else 0}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no letter"),
        ("'yyyy'", "no letter"),
        ("yyyy-'MM", "quote"),
        ("yyyy-MM-dd G", "'G'"),
        ("CC", "'CC'"),
        ("yyyy-MM-dd z", "'z'"),
        ("yyyy-MM-dd ZZZ", "'ZZZ'"),
        ("YYYY-ww-uu", "'uu'"),
        ("yyyy-QQ", "'QQ'"),
    ],
)
def test_a_pattern_without_a_known_meaning_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DatePattern.parse(text)


def test_a_zone_offset_is_not_written() -> None:
    with pytest.raises(ValueError, match="'Z'"):
        DatePattern.parse("yyyy-MM-ddZ").check_writable()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("xxxx-ww", "week year"),
        ("yyyy-ww", "week"),
        ("yyyy-MM-dd e", "day of the week"),
        ("yyyy/yyyy", "both tell the year"),
        ("HH kk", "both tell the hour"),
        ("yyyy-MM-dd DDD", "both tell the day"),
        ("EEEMMM yyyy", "where 'EEE' ends"),
        ("MMM'th' yyyy", "where 'MMM' ends"),
        ("HH:mmZyyyy", "where 'Z' ends"),
        ("HH:mmZ:ss", "where 'Z' ends"),
    ],
)
def test_a_pattern_that_is_only_written_is_refused_for_reading(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_readable(DatePattern.parse(text))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("HHmm", "12"),
        ("yyyyMMdd", "2024229"),
        ("yyyy-MM-dd", "2024-02-29\n"),
        ("yyyy-MM-dd", "2024-02-2９"),
        ("ss.SSS", "1."),
    ],
)
def test_digits_are_not_given_back(pattern: str, text: str) -> None:
    read = read_times(DatePattern.parse(pattern), pa.array([text, None]))

    assert not read.valid.any()


def test_two_digits_mean_a_year_near_this_one() -> None:
    now = dt.datetime.now(dt.timezone.utc).year
    years = [now - 80, now - 79, now, now + 19]
    read = read_times(DatePattern.parse("yy"), pa.array([f"{year % 100:02d}" for year in years]))

    assert (read.local.astype("M8[ms]").astype("M8[Y]").astype(int) + 1970).tolist() == years


def test_times_that_a_pattern_writes_alike_are_apart_by_less_than_its_precision() -> None:
    day = np.datetime64("2024-02-29", "ms").astype(int)
    for text, precision in {"yyyy": 86_400_000, "a": 43_200_000, "HH": 3_600_000, "s": 1000, "S": 1}.items():
        pattern = DatePattern.parse(text)
        first, last = pattern.write([int(day), int(day) + precision - 1])

        assert (pattern.precision, first) == (precision, last)
