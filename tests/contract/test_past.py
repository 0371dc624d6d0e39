"""Every moment and every window of random histories, against what a dict kept of them."""

from __future__ import annotations

import random
import tempfile
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.errors import UnreadableTimeError
from pyhudi.reader.query import AsOf, Changes
from support.cleaning import clean
from support.past import Past, random_past

seeds = st.integers(0, 1 << 32)


def windows(past: Past) -> list[tuple[str | None, str | None]]:
    """Every window whose bounds are completion times of the past, or open."""
    times = [None, *sorted(one.completed for one in past.commits)]
    return [(begin, end) for begin, end in product(times, times) if begin is None or end is None or begin <= end]


@settings(max_examples=8, deadline=None)
@given(seeds)
def test_the_past_is_shown_as_it_was(seed: int) -> None:
    """Completions in another order than requests change windows, and time travel not at all."""
    with tempfile.TemporaryDirectory() as folder:
        past = random_past(Path(folder) / "t", seed, steps=6)
        past.swap(random.Random(seed))

        for one in past.commits:
            assert past.shown(AsOf(one.instant)) == past.as_of(one.instant)
        for begin, end in windows(past):
            assert past.shown(Changes(begin or "earliest", end)) == past.changes(begin, end)
        assert past.shown(AsOf("2999-01-01")) == past.shown() == past.as_of("3")


@pytest.mark.parametrize(
    ("tell", "finish"), [(True, True), (False, True), (True, False)], ids=["by commits", "by versions", "killed"]
)
@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_what_was_cleaned_is_refused_and_all_else_is_as_it_was(seed: int, tell: bool, finish: bool) -> None:
    """No answer lacks a row; and the first readable time that a refusal names can be read."""
    with tempfile.TemporaryDirectory() as folder:
        past = random_past(Path(folder) / "t", seed, steps=4)
        clean(past.path, retain=1 + seed % 3, tell_earliest=tell)
        past.upsert("a", ["k1", "k2"], 77)
        past.upsert("b", ["k1"], 78)
        clean(past.path, retain=1 + seed % 2, tell_earliest=tell, finish=finish)

        for one in past.commits:
            try:
                shown = past.shown(AsOf(one.instant))
            except UnreadableTimeError as error:
                first = error.what.rpartition(" ")[2].rstrip(".")
                assert first > one.instant
                assert past.shown(AsOf(first)) == past.as_of(first)
            else:
                assert shown == past.as_of(one.instant)
        for begin, end in windows(past):
            try:
                shown = past.shown(Changes(begin or "earliest", end))
            except UnreadableTimeError as error:
                assert end is not None
                check_hints(past, begin, end, error)
            else:
                assert shown == past.changes(begin, end)
        assert past.shown() == past.as_of("3")


def check_hints(past: Past, begin: str | None, end: str, error: UnreadableTimeError) -> None:
    """Assert that the windows which an error recommends can be read, and that no wider ones can."""
    ends = [one.completed for one in past.commits]
    for hint in error.what.split(". ")[1:]:
        time = hint.rpartition(" ")[2].rstrip(".")
        if "readable end" in hint:
            assert past.shown(Changes(begin or "earliest", time)) == past.changes(begin, time)
            for earlier in (one for one in ends if end <= one < time):
                with pytest.raises(UnreadableTimeError):
                    past.shown(Changes(begin or "earliest", earlier))
        else:
            assert "readable begin" in hint
            assert past.shown(Changes(time, end)) == past.changes(time, end)
            for earlier in (one for one in ends if one < time):
                with pytest.raises(UnreadableTimeError):
                    past.shown(Changes(earlier, end))
