"""Every moment and window of a random past held against a dict: what the real tests and the mutations both run."""

from __future__ import annotations

import random
from itertools import product

import pytest
from pyhudi.errors import UnreadableTimeError
from pyhudi.reader.query import AsOf, Changes, Query
from support.made.cleaning import clean
from support.models.past import Past, Shown, random_past
from support.places import Place, below


def check_past(folder: Place, seed: int, *, merge_on_read: bool = False) -> None:
    """Assert that the past is shown as it was, completions in another order than requests included."""
    past = random_past(below(folder, "t"), seed, steps=6, merge_on_read=merge_on_read)
    past.swap(random.Random(seed))
    for one in past.commits:
        assert past.shown(AsOf(one.instant)) == past.as_of(one.instant)
    for begin, end in _windows(past):
        assert past.shown(Changes(begin or "earliest", end)) == past.changes(begin, end)
    assert past.shown(AsOf("2999-01-01")) == past.shown() == past.as_of("3")


def check_cleaned(folder: Place, seed: int, *, tell: bool = True, finish: bool = True) -> None:
    """Assert that no answer lacks a row after cleaning, and that what a refusal recommends can be read.

    Args:
        folder: Where the table will be.
        seed: Decides everything else.
        tell: Whether the cleans name the earliest commit that they retained.
        finish: Whether the last clean did not die.
    """
    past = random_past(below(folder, "t"), seed, steps=4)
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
            assert _shown_as_told(past, AsOf(first)) == past.as_of(first)
        else:
            assert shown == past.as_of(one.instant)
    for begin, end in _windows(past):
        try:
            shown = past.shown(Changes(begin or "earliest", end))
        except UnreadableTimeError as error:
            assert end is not None
            _check_hints(past, begin, end, error)
        else:
            assert shown == past.changes(begin, end)
    assert past.shown() == past.as_of("3")


def _shown_as_told(past: Past, query: Query) -> list[Shown]:
    """Return what a query shows that an error recommended; a refusal is then a wrong answer."""
    try:
        return past.shown(query)
    except UnreadableTimeError as error:
        raise AssertionError(f"{query} was recommended, and is refused") from error


def _windows(past: Past) -> list[tuple[str | None, str | None]]:
    """Return every window whose bounds are completion times of the past, or open."""
    times = [None, *sorted(one.completed for one in past.commits)]
    return [(begin, end) for begin, end in product(times, times) if begin is None or end is None or begin <= end]


def _check_hints(past: Past, begin: str | None, end: str, error: UnreadableTimeError) -> None:
    """Assert that the windows which an error recommends can be read, and that no wider ones can."""
    ends = [one.completed for one in past.commits]
    for hint in error.what.split(". ")[1:]:
        time = hint.rpartition(" ")[2].rstrip(".")
        if "readable end" in hint:
            assert _shown_as_told(past, Changes(begin or "earliest", time)) == past.changes(begin, time)
            for earlier in (one for one in ends if end <= one < time):
                with pytest.raises(UnreadableTimeError):
                    past.shown(Changes(begin or "earliest", earlier))
        else:
            assert "readable begin" in hint
            assert _shown_as_told(past, Changes(time, end)) == past.changes(time, end)
            for earlier in (one for one in ends if one < time):
                with pytest.raises(UnreadableTimeError):
                    past.shown(Changes(earlier, end))
