from __future__ import annotations

import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.watermark import Watermark
from support.made.timelines import timeline_of
from support.seams import patch_seam

C, I = State.COMPLETED, State.INFLIGHT  # noqa: E741


def t(n: int) -> str:
    return f"20260101{n:09d}"


def done(asked: int, completed: int, action: str = "commit") -> Instant:
    return Instant(t(asked), action, C, t(completed))


@pytest.fixture(autouse=True)
def _few_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "instants that a watermark names", 3)


@pytest.mark.parametrize("count", [10, 500, 50_000])
def test_it_is_small_whatever_the_timelines_length(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """It is a part of every plan, which travels with every task."""
    monkeypatch.undo()
    mark = Watermark.of(done(2 * n, 2 * n + 1) for n in range(count))

    assert len(pickle.dumps(mark)) < 20_000


def test_what_completed_below_those_known_by_name_was_not_seen() -> None:
    """It was neither complete nor pending at that moment: its writer put it on the timeline later."""
    commits = [done(n, n + 1) for n in (10, 20, 30, 40, 50)]
    mark = Watermark.of(commits)
    late = done(15, 60)

    seen = mark.find_completed([*commits, late])

    assert seen is not None
    assert [one for one in [*commits, late] if not seen.saw(one)] == [late]


def test_where_its_clock_lags_nobody_can_tell_it_from_the_others() -> None:
    there = [done(n, n + 1) for n in (10, 20, 30, 40, 50)]

    assert Watermark.of(there).find_completed([*there, done(15, 16)]) is None


def test_what_left_the_timeline_is_looked_for_in_the_archive() -> None:
    commits = [done(n, n + 1) for n in (10, 20, 30, 40, 50)]
    mark = Watermark.of(commits)
    archive = [done(5, 6), *commits[:1], done(15, 70)]

    seen = mark.find_completed(commits[1:], lambda: archive)

    assert seen is not None
    assert [one for one in archive if not seen.saw_archived(one)] == [done(15, 70)]
    assert mark.find_completed(commits[1:], list) is None


def test_the_archive_is_not_asked_where_the_timeline_tells() -> None:
    commits = [done(n, n + 1) for n in (10, 20, 30, 40, 50)]

    def archived() -> list[Instant]:
        raise AssertionError

    assert Watermark.of(commits).find_completed(commits, archived) is not None
    assert Watermark.of(commits[:3]).find_completed([], archived) is not None


def test_a_savepoint_is_no_instant_of_its_commits_time() -> None:
    """It may be made, and deleted without a trace, at any time."""
    commits = [done(n, n + 1) for n in (10, 20, 30, 40, 50)]
    saved = done(10, 55, "savepoint")
    pending = Instant(t(50), "savepoint", I)
    mark = Watermark.of([*commits, saved, pending])

    seen = mark.find_completed([*commits, done(20, 90, "savepoint")])

    assert seen is not None
    assert all(seen.saw(one) for one in [*commits, saved])
    assert not seen.saw(done(20, 90, "savepoint"))


def test_another_action_of_the_same_time_is_another_instant() -> None:
    mark = Watermark.of([done(10, 11, "clean"), done(20, 21)])

    seen = mark.find_completed([])

    assert seen is not None
    assert seen.saw(done(10, 11, "clean"))
    assert not seen.saw(done(10, 30))


@given(st.integers(0, 1 << 30))
def test_what_completed_since_is_told_or_it_is_said_that_nobody_can_tell(seed: int) -> None:
    """Writers of lagging clocks complete in any order; others archive what is oldest, or lose it."""
    dice = random.Random(seed)
    clock, active, archived = 100, [], []
    pending: list[int] = []
    lags, loses = dice.random() < 0.5, dice.random() < 0.3
    mark, before, archived_before, lost, lagged = Watermark(""), [], [], False, False
    look = dice.randrange(40)
    for step in range(60):
        clock += dice.randrange(1, 5)
        if step == look:
            archived_before = list(archived)
            mark = Watermark.of(sorted([*active, *(Instant(t(n), "commit", I) for n in pending)], key=_asked))
            before = list(active)
        event = dice.random()
        if event < 0.4:
            pending.append(clock)
        elif event < 0.85 and pending:
            asked = pending.pop(dice.randrange(len(pending)))
            lag = dice.randrange(60) if lags and dice.random() < 0.3 else 0
            lagged = lagged or lag > 0
            active.append(done(asked, max(asked + 1, clock - lag)))
        elif event > 0.9 and len(active) > 2:
            oldest = min(active, key=_asked)
            if not pending or oldest.requested_time < t(min(pending)):
                active.remove(oldest)
                gone = loses and step > look
                lost = lost or gone
                archived += [] if gone else [oldest]
    seen = mark.find_completed(active, lambda: archived)

    if seen is None:
        assert lost or lagged
        return
    assert {one for one in active if seen.saw(one)} == {*active} & {*before}
    told = {one for one in archived if seen.saw_archived(one)}
    # One that completed last and was archived at once, before the moment, may count as new, which is safe.
    assert all(one.visible_since > mark.completed_until for one in {*archived} & {*before, *archived_before} - told)
    # One that completed since never counts as seen where the moment's timeline reached back as far.
    assert not [
        one for one in told - {*before, *archived_before} if not lagged or one.requested_time >= mark.first_write
    ]
    past = timeline_of(tuple(sorted([*active, *(Instant(t(n), "commit", I) for n in pending)], key=_asked))).as_of(seen)
    unseen = {*active, *archived} - {*before, *archived_before}
    assert lagged or not any(past.is_committed(one.requested_time) for one in unseen)
    assert all(past.is_committed(one.requested_time) for one in active if one in before)


def _asked(instant: Instant) -> str:
    return instant.requested_time
