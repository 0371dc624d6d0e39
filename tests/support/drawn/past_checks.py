"""Every moment and window of a random past held against a dict: what the real tests and the mutations both run."""

from __future__ import annotations

import random
from itertools import product

import pytest
from pyhudi.errors import UnreadableTimeError
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from pyhudi.operations.services import archive as archiving
from pyhudi.operations.services import clean as cleaning
from pyhudi.reader.query import AsOf, Changes, Query
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.made import compacting
from support.made.cleaning import clean
from support.models.past import PARTITIONS, Past, Shown, random_past
from support.places import Place, below, files_below

CLEANS = (
    CleanSettings(commits=1),
    CleanSettings(commits=3),
    CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=2),
)


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
    for commit in past.commits:
        try:
            shown = past.shown(AsOf(commit.instant))
        except UnreadableTimeError as error:
            first = error.what.rpartition(" ")[2].rstrip(".")
            assert first > commit.instant
            assert _shown_as_told(past, AsOf(first)) == past.as_of(first)
        else:
            assert shown == past.as_of(commit.instant)
    for begin, end in _windows(past):
        try:
            shown = past.shown(Changes(begin or "earliest", end))
        except UnreadableTimeError as error:
            assert end is not None
            _check_hints(past, begin, end, error)
        else:
            assert shown == past.changes(begin, end)
    assert past.shown() == past.as_of("3")


def check_archived(folder: Place, seed: int, *, merge_on_read: bool = False) -> int:
    """Assert that a past is shown as it was until files of then are gone, whatever was archived.

    Args:
        folder: Where the table will be.
        seed: Decides everything else.
        merge_on_read: Whether the table is of that type.

    Returns:
        How many archived moments were shown.
    """
    chance = random.Random(seed)
    past = Past(below(folder, "t"), merge_on_read=merge_on_read)
    storage = open_storage(str(past.path))
    needed: dict[str, frozenset[str]] = {}
    for number in range(9):
        keys = [f"k{n}" for n in chance.sample(range(6), chance.randint(1, 4))]
        kind = chance.random() if number else 1.0
        if kind < 0.15:
            commit = past.delete(chance.choice(PARTITIONS), keys)
        else:
            act = past.overwrite if kind < 0.3 else past.upsert
            commit = act(chance.choice(PARTITIONS), keys, number)
        # The write itself may have compacted.
        then = open_snapshot(str(past.path), query=AsOf(commit.instant))
        needed[commit.instant] = frozenset(file for one in then.slices() for file in one.files)
        if merge_on_read and chance.random() < 0.25:
            compacting.schedule(past.path)
            compacting.run(past.path)
        if number > 3 and chance.random() < 0.5:
            cleaning.clean(storage, chance.choice(CLEANS))
    archiving.archive(storage, ArchiveSettings(min_commits=1, max_commits=1 + chance.randrange(3), batch=2))
    return _check_archived_moments(past, needed)


def _check_archived_moments(past: Past, needed: dict[str, frozenset[str]]) -> int:
    present = frozenset(files_below(past.path))
    first = open_table(open_storage(str(past.path))).timeline().writes[0].requested_time
    whole = [time for time, files in needed.items() if files <= present]
    shown = 0
    for time in (one.instant for one in past.commits):
        try:
            rows = past.shown(AsOf(time))
        except UnreadableTimeError as error:
            assert time not in whole
            told = error.what.rpartition(" ")[2].rstrip(".")
            assert _shown_as_told(past, AsOf(told)) == past.as_of(told)
            assert told > time
            assert not any(time < other < min(told, first) for other in whole)
        else:
            assert rows == past.as_of(time)
            shown += time < first
    return shown


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
