"""Which instants may leave the timeline, of a timeline given by its instants alone."""

from __future__ import annotations

import pytest
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archivable import archivable_prefix, candidates
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.timeline import Timeline
from support.made.timelines import timeline_of

FEW = ArchiveSettings(min_commits=2, max_commits=4)


def done(number: int, action: str = "commit") -> Instant:
    return Instant(f"{number:03d}", action, State.COMPLETED, f"{number}9")


def pending(number: int, action: str, state: State = State.REQUESTED) -> Instant:
    return Instant(f"{number:03d}", action, state)


def timeline(*others: Instant, commits: int = 8) -> Timeline:
    """Commits 10, 20, …, and others between them."""
    known = [done(10 * number) for number in range(1, commits + 1)]
    return timeline_of(sorted([*known, *others], key=lambda one: one.identity))


def archivable(
    given: Timeline, retained: str = "", held: tuple[Instant, ...] = (), settings: ArchiveSettings = FEW
) -> list[int]:
    return [int(one.requested_time) for one in candidates(given, settings, retained, held)]


@pytest.mark.parametrize(
    ("commits", "gone"), [(0, []), (1, []), (4, []), (5, [10, 20, 30]), (8, [10, 20, 30, 40, 50, 60])]
)
def test_more_than_the_most_go_down_to_the_least(commits: int, gone: list[int]) -> None:
    assert archivable(timeline(commits=commits)) == gone


def test_what_cleaning_keeps_stays_and_two_more() -> None:
    """The most that stay grow as much as the least do."""
    assert archivable(timeline(), "060") == [10, 20, 30]
    assert archivable(timeline(), "070") == [10, 20, 30, 40]
    assert archivable(timeline(), "050") == []
    assert archivable(timeline(), "080") == [10, 20, 30, 40, 50]


def test_the_newest_stays_however_few_are_to_stay() -> None:
    assert archivable(timeline(commits=3), settings=ArchiveSettings(min_commits=0, max_commits=0)) == [10, 20]


def test_cleans_and_rollbacks_go_along_and_nothing_else_does() -> None:
    others = [done(5, "clean"), done(25, "rollback"), done(35, "restore"), done(45, "indexing"), done(65, "clean")]

    assert archivable(timeline(*others)) == [5, 10, 20, 25, 30, 40, 50, 60]


@pytest.mark.parametrize(
    "one",
    [
        pending(35, "clean"),
        done(30, "savepoint"),
        pending(30, "savepoint", State.INFLIGHT),
        Instant("035", "commit", State.COMPLETED),
    ],
    ids=["a pending clean", "a savepoint", "a savepoint in the making", "a commit without its time"],
)
def test_nothing_goes_from_the_first_on_that_has_to_stay(one: Instant) -> None:
    left = archivable(timeline(one))

    assert left == [10, 20, 30][: 3 if one.requested_time == "035" else 2]


@pytest.mark.parametrize(("second", "gone"), [("0205", [10, 20, 30]), ("0365", [10])])
def test_what_completed_after_an_indexing_began_stays_while_it_is_pending(second: str, gone: list[int]) -> None:
    """An archived write counts as complete, whenever it completed, and the index has it twice then."""
    times = {number: f"{number:03d}5" for number in range(10, 90, 10)} | {20: second}
    commits = [Instant(f"{number:03d}", "commit", State.COMPLETED, time) for number, time in times.items()]
    index = pending(35, "indexing", State.INFLIGHT)

    assert archivable(timeline_of(sorted([*commits, index], key=lambda each: each.identity))) == gone


@pytest.mark.parametrize("action", ["commit", "clustering", "compaction"])
def test_a_commit_stays_before_the_first_pending_write(action: str) -> None:
    assert archivable(timeline(pending(35, action))) == [10, 20]
    assert archivable(timeline(pending(5, action))) == []


@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_nothing_goes_while_something_is_being_undone(action: str) -> None:
    assert archivable(timeline(pending(90, action, State.INFLIGHT))) == []


def test_what_the_archive_holds_goes_however_few_are_left() -> None:
    """Somebody died before he took it off the timeline."""
    assert archivable(timeline(commits=4), held=(done(10), done(20))) == [10, 20]
    assert archivable(timeline(pending(15, "clean"), commits=4), held=(done(10), done(20))) == [10]


def test_what_turned_up_since_is_in_the_way() -> None:
    wanted = [done(number) for number in (10, 20, 30)]

    assert [one.requested_time for one in archivable_prefix(timeline(done(15)), wanted)] == ["010"]
    assert archivable_prefix(timeline(commits=0), wanted) == ()
    assert [*archivable_prefix(timeline(), wanted)] == wanted


@pytest.mark.parametrize(
    ("compacted", "most", "gone"),
    [
        # The last compaction stays, from which somebody counts, until enough delta commits follow it.
        ((30, 60), 5, [10, 20, 30, 40, 50]),
        ((30,), 5, [10, 20, 30]),
        ((30,), 4, [10, 20, 30, 40]),
        ((30,), 0, [10, 20, 30, 40, 50, 60]),
        ((), 5, [10, 20, 30]),
        # There are not enough to make the first compaction due, so that the first stays.
        ((), 9, []),
        ((30,), None, [10, 20, 30, 40, 50, 60]),
    ],
)
def test_delta_commits_stay_that_make_a_compaction_due(
    compacted: tuple[int, ...], most: int | None, gone: list[int]
) -> None:
    instants = [done(at, "commit" if at in compacted else "deltacommit") for at in range(10, 90, 10)]
    settings = ArchiveSettings(min_commits=2, max_commits=4, delta_commits=most)

    assert archivable(timeline_of(instants), settings=settings) == gone


def test_nothing_goes_beyond_a_pending_compaction() -> None:
    """Nor does the delta commit before it, whatever is enough to make the next one due."""
    instants = [*(done(at, "deltacommit") for at in range(10, 90, 10)), pending(45, "compaction", State.INFLIGHT)]
    given = timeline_of(sorted(instants, key=lambda one: one.identity))

    assert archivable(given, settings=ArchiveSettings(min_commits=2, max_commits=4, delta_commits=1)) == [10, 20, 30]
