from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.window import CommitTimes, plan_window
from pyhudi.timeline.instants import Instant, State


def t(n: int) -> str:
    return f"20260101000000{n:03d}"


def write(asked: int, done: int | None) -> Instant:
    return Instant(t(asked), "commit", State.COMPLETED, None if done is None else t(done))


pairs = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), unique_by=lambda one: one[0])
bounds = st.one_of(st.none(), st.integers(0, 60))


@given(pairs, bounds, bounds)
def test_a_window_holds_what_a_naive_reader_of_the_rules_finds(
    commits: list[tuple[int, int]], begin: int | None, end: int | None
) -> None:
    """Open at its beginning, closed at its end, by completion; of all rows shown at its end its own alone belong."""
    inside = {asked for asked, done in commits if (begin is None or done > begin) and (end is None or done <= end)}
    shown = sorted(t(asked) for asked, done in commits if end is None or done <= end)
    window = plan_window(
        [write(asked, done) for asked, done in commits],
        None if begin is None else t(begin),
        None if end is None else t(end),
    )

    assert [one.requested_time for one in window.instants] == sorted(map(t, inside))
    if begin is None or not inside:
        assert window.times is None
    else:
        assert window.times is not None
        mask = window.times.mask(pa.array(shown, pa.string())).to_pylist()
        assert [time for time, belongs in zip(shown, mask, strict=True) if belongs] == sorted(map(t, inside))
        assert window.times.predicate() == Compare("_hoodie_commit_time", ">=", t(min(inside)))


def test_rows_of_archived_commits_are_older_than_the_window() -> None:
    """Nothing on the timeline tells of them."""
    window = plan_window([write(10, 11), write(12, 13)], t(5), None)

    assert window.times == CommitTimes(t(10))


def test_a_commit_that_was_overtaken_is_left_out_by_name() -> None:
    window = plan_window([write(1, 9), write(2, 3), write(4, 5)], t(3), None)

    assert [one.requested_time for one in window.instants] == [t(1), t(4)]
    assert window.times == CommitTimes(t(1), (t(2),))


def test_an_instant_of_an_upgraded_table_completed_when_it_was_requested() -> None:
    window = plan_window([write(1, None), write(2, None)], t(1), t(2))

    assert [one.requested_time for one in window.instants] == [t(2)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_nulls_belong_to_no_window(kind: pa.DataType) -> None:
    mask = CommitTimes(t(1), (t(2),)).mask(pa.array([None, t(0), t(1), t(2), t(3)], kind).cast(pa.string()))

    assert [bool(one) for one in mask.to_pylist()] == [False, False, True, False, True]
