from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import CorruptInstantError, InvalidOptionError
from pyhudi.timeline.clock import Parity, format_time, free_time_before, next_time, parse_time, query_time

# 2026-11-20 22:46:44.250 UTC
MOMENT = 1795214804250


@pytest.fixture
def in_rome(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Rome")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "20261120224644250"),
        ("utc", "20261120224644250"),
        ("Asia/Tokyo", "20261121074644250"),
        ("America/New_York", "20261120174644250"),
    ],
)
def test_times_are_those_of_the_zone(zone: str, text: str) -> None:
    assert format_time(MOMENT, zone) == text
    assert parse_time(text, zone) == MOMENT


@pytest.mark.usefixtures("in_rome")
def test_local_is_the_zone_of_the_process() -> None:
    assert format_time(MOMENT, "LOCAL") == "20261120234644250"
    assert parse_time("20261120234644250", "LOCAL") == MOMENT
    # Summer time.
    assert format_time(parse_time("20260701120000000", "UTC"), "LOCAL") == "20260701140000000"


def test_a_time_in_seconds_means_their_last_millisecond() -> None:
    assert parse_time("20261120224644", "UTC") == MOMENT - 250 + 999


@pytest.mark.parametrize(
    "text", ["", "20261120", "2026112022464425", "202611202246442500", "20261320224644250", "2026-11-20", "٢" * 17]
)
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text, "UTC")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc", "/etc/localtime"])
def test_an_unknown_zone_is_named(zone: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"time zone '{zone}'"):
        format_time(MOMENT, zone)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_parsing_undoes_formatting_in_utc(moment: int) -> None:
    text = format_time(moment, "UTC")

    assert len(text) == 17
    assert parse_time(text, "UTC") == moment


@given(st.lists(st.integers(0, 4_102_444_800_000), min_size=2, max_size=2))
def test_texts_sort_as_the_moments_do(moments: list[int]) -> None:
    first, second = sorted(moments)

    assert format_time(first, "UTC") <= format_time(second, "UTC")


def test_the_next_time_is_now_where_nothing_is_later() -> None:
    now = format_time(MOMENT, "UTC")

    assert next_time(MOMENT, None, "UTC") == now
    assert next_time(MOMENT, format_time(MOMENT - 1, "UTC"), "UTC") == now
    assert next_time(MOMENT, "20261120224643", "UTC") == now


@pytest.mark.parametrize(
    ("greatest", "following"),
    [
        ("20261120224644250", "20261120224644251"),
        ("20261120235959999", "20261121000000000"),
        ("20270228235959999", "20270301000000000"),
        ("20261231235959999", "20270101000000000"),
    ],
)
def test_the_next_time_follows_the_greatest_by_a_millisecond(greatest: str, following: str) -> None:
    assert next_time(MOMENT, greatest, "UTC") == following


@pytest.mark.parametrize("greatest", [None, "20261120235959998", "20261120235959999"])
def test_writes_and_services_take_times_of_their_own(greatest: str | None) -> None:
    taken = {parity: next_time(MOMENT, greatest, "UTC", parity=parity) for parity in Parity}

    assert [int(taken[parity][-1]) % 2 for parity in (Parity.EVEN, Parity.ODD)] == [0, 1]
    assert min(taken.values()) >= next_time(MOMENT, greatest, "UTC")


def test_running_far_ahead_of_the_clock_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pyhudi"):
        next_time(MOMENT, format_time(MOMENT + 300_000 - 1, "UTC"), "UTC")
    assert caplog.messages == []

    with caplog.at_level(logging.WARNING, "pyhudi"):
        next_time(MOMENT, "20990101000000000", "UTC")
    (message,) = caplog.messages
    assert "20990101000000000" in message


@pytest.mark.parametrize("greatest", ["99991231235959999", "99999999999999999", "20261399000000000"])
def test_a_greatest_time_that_nothing_can_follow_is_named(greatest: str) -> None:
    with pytest.raises(CorruptInstantError, match=greatest):
        next_time(MOMENT, greatest, "UTC")


def test_times_grow_through_the_hour_that_summer_time_repeats() -> None:
    # In Rome 2026-10-25 03:00 turns back to 02:00, at 01:00 UTC.
    turn = parse_time("20261025010000000", "UTC")
    last = next_time(turn - 1, None, "Europe/Rome")
    assert last == "20261025025959999"

    after = [last]
    for moment in (turn, turn + 1, turn + 1000):
        after.append(next_time(moment, after[-1], "Europe/Rome"))

    assert after == sorted(set(after))
    assert next_time(turn + 3_600_000 + 5, after[-1], "Europe/Rome") == "20261025030000005"


zones = st.sampled_from(["UTC", "Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo"])


@given(zones, st.lists(st.integers(1_700_000_000_000, 1_800_000_000_000), min_size=2, max_size=8))
def test_times_grow_whatever_the_clock_does(zone: str, moments: list[int]) -> None:
    times: list[str] = []
    for moment in moments:
        times.append(next_time(moment, times[-1] if times else None, zone))

    assert times == sorted(set(times))
    assert times[0] == format_time(moments[0], zone)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("20261121034806510", "20261121034806510"),
        ("20261121034806", "20261121034806"),
        ("2026-11-21", "20261121000000000"),
        ("2026-11-21 03:48:06", "20261121034806999"),
        ("2026-11-21T03:48:06", "20261121034806999"),
        ("2026-11-21 03:48:06.510", "20261121034806510"),
        ("2026-11-21T03:48:06.510", "20261121034806510"),
        ("2026-11-21 03:48:06.5", "20261121034806500"),
        ("2026-11-21 03:48:06.510999", "20261121034806510"),
        ("2026-11-21T03:48:06.510999999", "20261121034806510"),
        ("2026-11-21T03:48:06Z", "20261121034806999"),
        ("2026-11-21T03:48:06.510Z", "20261121034806510"),
        ("2026-11-21 03:48:06.510000+00:00", "20261121034806510"),
        ("2026-11-21T00:48:06.510-0330", "20261121041806510"),
        ("2026-11-21T00:48:06.510+02", "20261120224806510"),
        ("1795214804", "20261120224644000"),
        ("1795214804250", "20261120224644250"),
        ("2028-02-29", "20280229000000000"),
    ],
)
def test_the_time_of_a_query_is_spelled_in_many_ways(text: str, time: str) -> None:
    assert query_time(text, "UTC") == time


@pytest.mark.parametrize(
    ("taken", "found"),
    [([], "20251231235959999"), (["20251231235959999", "20251231235959998", "20260101000000001"], "20251231235959997")],
)
def test_a_free_time_is_right_before_another(taken: list[str], found: str) -> None:
    """Over the end of a year, too, and past what others have."""
    assert free_time_before("20260101000000000", taken) == found


def test_an_epoch_is_shown_by_the_clock_of_the_zone() -> None:
    assert query_time("1795214804250", "Asia/Tokyo") == "20261121074644250"
    assert query_time("2026-11-21 03:48:06.510", "Asia/Tokyo") == "20261121034806510"


def test_a_time_that_names_its_zone_is_shown_by_the_clock_of_the_timeline() -> None:
    assert query_time("2026-11-21T03:48:06.510Z", "Asia/Tokyo") == "20261121124806510"
    assert query_time("2026-11-21T12:48:06.510+09:00", "Asia/Tokyo") == "20261121124806510"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "junk",
        "000",
        "2026",
        "20261121",
        "2026-1-1",
        "2026-13-01",
        "2026-02-30",
        "2026-02-30 00:00:00",
        "2026-11-21 24:00:00",
        "2026-11-21 03:48",
        "2026-11-21 03:48:06.",
        "2026-11-21 03:48:06.5101234567",
        "2026-11-21 03:48:06z",
        "2026-11-21 03:48:06 UTC",
        "2026-11-21Z",
        "2026-11-21 03:48:06+24:00",
        "0001-01-01 00:00:00.000+01:00",
        "2026/11/21",
        " 2026-11-21",
        "20269921120000000",
        "20261121034860",
        "202611210348065100",
        "-1795214804",
        "٢٠٢٦-١١-٢١",
        "earliest",
    ],
)
def test_what_is_no_time_of_a_query_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        query_time(text, "UTC")
