"""Which slices go, on timelines and listings made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyhudi.operations.service_settings import (
    KEEP_LATEST_BY_HOURS,
    KEEP_LATEST_COMMITS,
    KEEP_LATEST_FILE_VERSIONS,
    CleanSettings,
)
from pyhudi.operations.services.clean_plan import Survey, earliest_to_retain, plan_clean
from pyhudi.storage.base import FileInfo
from pyhudi.table.files.names import FileGroupId
from pyhudi.table.files.view import FileView
from pyhudi.table.files.written import Written
from pyhudi.timeline.clock import parse_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.timeline import Timeline
from support.made.timelines import timeline_of

HOUR_MS = 3_600_000
COMMITS = CleanSettings(policy=KEEP_LATEST_COMMITS, commits=2)
VERSIONS = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)


def t(hour: int) -> str:
    return f"20260101{hour:02d}0000000"


def write(hour: int, action: str = "commit") -> Instant:
    return Instant(t(hour), action, State.COMPLETED, t(hour)[:-3] + "500")


def pending(hour: int, action: str = "commit") -> Instant:
    return Instant(t(hour), action, State.INFLIGHT)


def earliest(timeline: Timeline, settings: CleanSettings, now: int = 12) -> str:
    found = earliest_to_retain(timeline, settings, parse_time(t(now), "UTC"), "UTC")
    return found.requested_time[8:10] if found else ""


@pytest.mark.parametrize(
    ("instants", "commits", "expected"),
    [
        ((1, 2, 3), 3, ""),
        ((1, 2, 3, 4), 3, "02"),
        ((1, 2, 3, 4), 1, "04"),
        ((1, 2, 3, 4), 0, "04"),
        ((1, -2, 3, 4), 1, "01"),
        ((1, 2, 3, -4), 1, "03"),
        ((-1, 2, 3, 4), 1, ""),
        ((1, 2, 3, -4, 5), 3, "02"),
    ],
)
def test_commits_are_counted_from_the_newest_and_never_beyond_a_pending_one(
    instants: tuple[int, ...], commits: int, expected: str
) -> None:
    timeline = timeline_of(write(n) if n > 0 else pending(-n) for n in instants)

    assert earliest(timeline, replace(COMMITS, commits=commits)) == expected


@pytest.mark.parametrize("action", ["clustering", "replacecommit"])
def test_a_pending_clustering_holds_the_earliest_commit_back(action: str) -> None:
    assert earliest(timeline_of([write(1), pending(2, action), write(3), write(4)]), COMMITS) == "01"
    assert earliest(timeline_of([write(1), pending(2, "clean"), write(3), write(4)]), COMMITS) == "03"


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(2_147_483_647, "01"), (24, "01"), (9, "03"), (8, "07"), (5, "07"), (4, ""), (0, "")],
    ids=str,
)
def test_hours_are_counted_back_from_now(hours: int, expected: str) -> None:
    by_hours = CleanSettings(policy=KEEP_LATEST_BY_HOURS, hours=hours)

    assert earliest(timeline_of([write(1), write(3), write(7)]), by_hours) == expected


def test_hours_do_not_go_beyond_a_pending_write() -> None:
    timeline = timeline_of([write(1), write(3), pending(4), write(7), write(9)])

    assert earliest(timeline, CleanSettings(policy=KEEP_LATEST_BY_HOURS, hours=6)) == "03"


def test_hours_are_those_of_the_timeline_s_zone() -> None:
    settings = CleanSettings(policy=KEEP_LATEST_BY_HOURS, hours=5)
    timeline = timeline_of([write(1), write(7)])
    now = parse_time(t(12), "UTC")

    assert earliest_to_retain(timeline, settings, now, "UTC") == write(7)
    assert earliest_to_retain(timeline, settings, now, "Asia/Tokyo") is None
    assert earliest_to_retain(timeline, settings, now, "America/New_York") == write(7)
    assert earliest_to_retain(timeline, settings, now - 6 * HOUR_MS, "UTC") == write(1)


# --- slices


def name(hour: int, group: str = "g") -> str:
    return f"p/{group}-0_0-0-0_{t(hour)}.parquet"


def survey(timeline: Timeline, settings: CleanSettings, *paths: str, replaced: int = 0, **given: object) -> Survey:
    listing = tuple(FileInfo(path, 10, 0.0) for path in sorted(paths))
    taken = {write(replaced, "replacecommit"): frozenset({("p", "g-0")})} if replaced else {}
    view = FileView(timeline, Written(replaced_by=taken), {"p": listing})
    made = Survey(
        timeline=timeline,
        earliest=earliest_to_retain(timeline, settings, parse_time(t(12), "UTC"), "UTC"),
        listings={"p": listing},
        view=view,
        replaced_at={("p", "g-0"): t(replaced)} if replaced else {},
        savepoints={},
        held=frozenset(),
        compacting={},
        settings=settings,
    )
    return replace(made, **given)  # type: ignore[arg-type]


def taken(one: Survey) -> list[int]:
    """Return the hours of the files that go."""
    return [int(path.rpartition("_")[2][8:10]) for path in plan_clean(one).files.get("p", ())]


FOUR = timeline_of(write(n) for n in (1, 2, 3, 4))


@pytest.mark.parametrize(
    ("slices", "by_commits", "by_versions"),
    [((1, 2, 3, 4), [1], [1, 2, 3]), ((1, 2), [1], [1]), ((1, 4), [], [1]), ((3, 4), [], [3]), ((2,), [], [])],
)
def test_one_slice_from_before_the_earliest_commit_stays(
    slices: tuple[int, ...], by_commits: list[int], by_versions: list[int]
) -> None:
    paths = [name(n) for n in slices]

    assert taken(survey(FOUR, COMMITS, *paths)) == by_commits
    assert taken(survey(FOUR, VERSIONS, *paths)) == by_versions


def test_two_versions_stay_where_two_are_asked_for() -> None:
    assert taken(survey(FOUR, replace(VERSIONS, file_versions=2), *map(name, (1, 2, 3, 4)))) == [1, 2]
    assert taken(survey(FOUR, replace(VERSIONS, file_versions=0), *map(name, (1, 2)))) == [1]


def test_nothing_goes_that_is_not_committed() -> None:
    timeline = timeline_of([write(1), write(2), write(3), write(4), pending(5)])

    assert taken(survey(timeline, VERSIONS, *map(name, (1, 2, 5, 6)))) == [1]


def test_a_group_that_was_taken_away_goes_as_a_whole_once_nobody_can_see_it() -> None:
    paths = [name(1), name(2)]

    assert taken(survey(FOUR, COMMITS, *paths, replaced=2)) == [1, 2]
    assert taken(survey(FOUR, COMMITS, *paths, replaced=3)) == []
    assert taken(survey(FOUR, VERSIONS, *paths, replaced=4)) == [1, 2]


def test_the_slice_that_a_pending_write_reads_stays_under_file_versions() -> None:
    timeline = timeline_of([write(1), write(2), pending(3), write(4), write(5)])
    paths = list(map(name, (1, 2, 4, 5)))

    assert taken(survey(timeline, VERSIONS, *paths)) == [1, 4]
    assert taken(survey(timeline, VERSIONS, *paths[:2], replaced=4)) == [1]
    assert taken(survey(timeline, VERSIONS, *paths[:2], replaced=2)) == [1, 2]


def test_a_savepoint_s_slices_and_the_groups_of_a_pending_clustering_stay() -> None:
    saved = {t(1): frozenset({name(1).partition("/")[2]})}
    paths = list(map(name, (1, 2, 3)))

    assert taken(survey(FOUR, VERSIONS, *paths, savepoints=saved)) == [2]
    assert taken(survey(FOUR, VERSIONS, *paths, replaced=4, savepoints=saved)) == [2, 3]
    assert taken(survey(FOUR, VERSIONS, *paths, held=frozenset({FileGroupId("p", "g-0")}))) == []


def test_change_data_goes_with_its_slice_and_nothing_else_does() -> None:
    mine = [name(1), f"p/.g-0_{t(1)}.log.1_0-0-0.cdc"]
    others = [name(2), f"p/.g-0_{t(2)}.log.1_0-0-0.cdc", name(1, "h"), f"p/.h-0_{t(1)}.log.1_0-0-0.cdc", "p/x.txt"]

    plan = plan_clean(survey(FOUR, VERSIONS, *mine, *others))

    assert sorted(plan.files["p"]) == sorted(mine)
    assert (plan.bytes, plan.count) == (20, 2)


# --- slices with log files


def log(hour: int, *, cdc: bool = False) -> str:
    return f"p/.g-0_{t(hour)}.log.1_0-0-0{'.cdc' if cdc else ''}"


def gone(one: Survey) -> set[str]:
    """Return the paths of the files that go."""
    return {path for paths in plan_clean(one).files.values() for path in paths}


def delta(hour: int) -> Instant:
    return write(hour, "deltacommit")


def test_a_slice_goes_with_its_log_files_and_their_change_data() -> None:
    """Slices are counted, not files: an append begins none, and a compaction does."""
    instants = [delta(1), delta(2), delta(3), write(4), delta(5), write(6), delta(7)]
    old = [name(1), log(2), log(3), log(3, cdc=True)]
    files = [*old, name(4), log(5), name(6), log(7), log(7, cdc=True)]

    assert gone(survey(timeline_of(instants), CleanSettings(commits=1), *files)) == {*old, name(4), log(5)}
    assert gone(survey(timeline_of(instants), CleanSettings(commits=3), *files)) == set(old)
    assert gone(survey(timeline_of(instants), CleanSettings(commits=4), *files)) == set()
    assert gone(survey(timeline_of(instants), VERSIONS, *files)) == {*old, name(4), log(5)}


def test_the_log_files_of_a_slice_without_a_base_file_go_once_they_are_merged() -> None:
    instants = [delta(1), delta(2), delta(3), write(4), delta(5), delta(6)]
    files = [log(1), log(2), name(4), log(5)]

    assert gone(survey(timeline_of(instants), CleanSettings(commits=1), *files)) == {log(1), log(2)}
    assert gone(survey(timeline_of(instants[:3]), VERSIONS, *files[:2])) == set()


def test_a_savepoint_of_one_file_keeps_its_whole_slice() -> None:
    instants = [delta(1), delta(2), delta(3), write(4), delta(5), write(6), delta(7)]
    files = [name(1), log(2), log(3), name(4), log(5), name(6), log(7)]
    kept = {t(2): frozenset({log(2).partition("/")[2]})}

    assert gone(survey(timeline_of(instants), VERSIONS, *files, savepoints=kept)) == {name(4), log(5)}


@pytest.mark.parametrize(("versions", "expected"), [(1, {1, 2, 3}), (2, {1, 2}), (3, {1}), (4, set()), (9, set())])
def test_what_a_pending_compaction_merges_stays_and_counts_as_a_version(versions: int, expected: set[int]) -> None:
    """As in Apache Hudi, where its own slice, to come, takes up one of those that are kept."""
    instants = [*(write(hour) for hour in (1, 2, 3, 4)), delta(5), pending(6, "compaction"), delta(7)]
    files = [*(name(hour) for hour in (1, 2, 3, 4)), log(5), log(7)]
    settings = replace(VERSIONS, file_versions=versions)
    one = survey(timeline_of(instants), settings, *files, compacting={FileGroupId("p", "g-0"): t(4)})

    assert gone(one) == {name(hour) for hour in expected}


def test_a_pending_compaction_holds_up_no_other_file_group() -> None:
    """It may wait for long, and its plan says what it needs; of that, a replaced file group stays too."""
    instants = [write(1), pending(2, "compaction"), write(3), write(4, "replacecommit"), write(5), write(6)]
    files = [name(1), name(3), name(1, "h"), name(3, "h")]
    table_survey = survey(timeline_of(instants), CleanSettings(commits=1), *files, replaced=4)

    assert earliest(table_survey.timeline, table_survey.settings) == "06"
    assert gone(table_survey) == {name(1), name(3), name(1, "h")}
    assert gone(replace(table_survey, compacting={FileGroupId("p", "g-0"): t(3)})) == {name(1), name(1, "h")}
