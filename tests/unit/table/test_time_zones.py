"""Time zones, held against `zoneinfo` one moment at a time."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.table.keys.time_zones import TimeZone

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
REGIONS = ["America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata"]
MOMENTS = st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29), timezones=st.just(dt.timezone.utc))


def millis(moment: dt.datetime) -> int:
    return (moment.replace(tzinfo=dt.timezone.utc) - EPOCH) // dt.timedelta(milliseconds=1)


@given(st.lists(MOMENTS, max_size=5), st.sampled_from(REGIONS))
def test_a_clock_shows_what_zoneinfo_says(moments: list[dt.datetime], name: str) -> None:
    expected = [millis(moment.astimezone(ZoneInfo(name))) for moment in moments]

    assert TimeZone(name).local(np.array([millis(one) for one in moments], np.int64)).tolist() == expected


@given(st.lists(MOMENTS, max_size=5), st.sampled_from(REGIONS))
def test_a_time_that_a_clock_shows_is_found_again(moments: list[dt.datetime], name: str) -> None:
    zone = TimeZone(name)
    local = zone.local(np.array([millis(one) for one in moments], np.int64))

    instants, exists = zone.instants(local)

    assert exists.all()
    assert zone.local(instants).tolist() == local.tolist()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("2024-03-10T01:59:59", "2024-03-10T06:59:59"),
        ("2024-03-10T02:30:00", None),
        ("2024-03-10T03:00:00", "2024-03-10T07:00:00"),
        ("2024-11-03T01:30:00", "2024-11-03T05:30:00"),
        ("2024-11-03T02:00:00", "2024-11-03T07:00:00"),
    ],
)
def test_a_skipped_time_is_none_and_a_repeated_one_the_first(shown: str, expected: str | None) -> None:
    instants, exists = TimeZone("America/New_York").instants(np.array([millis(dt.datetime.fromisoformat(shown))]))

    assert exists.tolist() == [expected is not None]
    assert expected is None or instants.tolist() == [millis(dt.datetime.fromisoformat(expected))]


@pytest.mark.parametrize(
    ("name", "hours"), [("UTC", 0), ("GMT", 0), ("GMT+8:00", 8), ("GMT-3", -3), ("GMT+0530", 5.5), ("GMT+05:30", 5.5)]
)
def test_a_zone_may_be_an_offset(name: str, hours: float) -> None:
    assert TimeZone(name).local(np.array([0, 10**15])).tolist() == [hours * 3_600_000, 10**15 + hours * 3_600_000]


@pytest.mark.parametrize(
    "name", ["Europe/Atlantis", "EST", "PST", "UTC+8", "GMT+24", "GMT+5:99", "../UTC", "/etc/passwd"]
)
def test_a_name_that_java_takes_for_something_else_is_none(name: str) -> None:
    """Java takes a zone that it does not know for UTC, in silence."""
    with pytest.raises(ValueError, match="time zone"):
        TimeZone(name)
