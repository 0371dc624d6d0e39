"""The oracle of storms sees a write that is lost, there twice, there in part, out of order, or there though refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.storms.notes import COUNT, Act, Begun, End
from support.storms.oracle import COUNTERS, HOT, Ended, Row, first_rows, mistakes_of, replay


def _upsert(number: int, *keys: str) -> Act:
    write_id = f"storm-1-0-{number}"
    return Act(write_id, "cow", "upsert", tuple((key, "a", number) for key in (*keys, f"own-{write_id}-0")))


def _count(number: int) -> Act:
    return Act(f"storm-1-0-{number}", "cow", COUNT, ((COUNTERS[0], "a", 0),))


DELETE = Act("storm-1-0-9", "cow", "delete", ((HOT[1], "a", 0),))
ACTS = [_upsert(1, HOT[0], HOT[1]), _count(2), _count(3), _upsert(4, HOT[0]), DELETE]


def _ended(acts: list[Act] = ACTS, rows: list[Row] | None = None) -> Ended:
    """Return a table after writes that are acknowledged and complete, one by one."""
    begun = {one.write_id: Begun(one, 1, (End(one.write_id, f"at {one.write_id}"),)) for one in acts}
    completed = [(one.write_id, f"at {one.write_id}") for one in acts]
    return Ended("cow", begun, completed, list(replay(acts).values()) if rows is None else rows)


def _with_end(ended: Ended, number: int, *ends: End) -> Ended:
    act = ACTS[number]
    return replace(ended, begun={**ended.begun, act.write_id: Begun(act, 1, ends)})


def _refused(act: Act) -> End:
    return End(act.write_id, refused="CommitConflictError: another was first")


def test_a_table_that_holds_all_is_right() -> None:
    assert mistakes_of(_ended()) == []
    assert mistakes_of(_ended([])) == []


def test_a_write_of_a_killed_process_may_be_there_and_may_not() -> None:
    for number in range(len(ACTS)):
        there = _with_end(_ended(), number)
        assert mistakes_of(there) == []
        without = [act for act in ACTS if act is not ACTS[number]]
        assert mistakes_of(_with_end(_ended(without), number)) == []


@pytest.mark.parametrize("number", range(len(ACTS)))
def test_a_lost_write_is_seen(number: int) -> None:
    """The table neither has the rows, nor does its timeline name the write; or it lacks the rows alone."""
    without = [act for act in ACTS if act is not ACTS[number]]
    lost = replace(_ended(), completed=_ended(without).completed, rows=list(replay(without).values()))
    assert any(ACTS[number].write_id in one for one in mistakes_of(lost))
    assert mistakes_of(_ended(rows=list(replay(without).values())))


@pytest.mark.parametrize("number", range(len(ACTS)))
def test_a_write_that_is_there_twice_is_seen(number: int) -> None:
    ended = _ended()
    twice = [*ended.completed, (ACTS[number].write_id, "later")]
    assert any("more than once" in one for one in mistakes_of(replace(ended, completed=twice)))


def test_an_update_that_counts_twice_is_seen() -> None:
    """Whether or not the timeline shows that."""
    rows = list(replay([*ACTS, _count(2)]).values())
    assert any("counter" in one for one in mistakes_of(_ended(rows=rows)))


def test_an_update_of_a_number_that_another_replaced_is_seen() -> None:
    without = [act for act in ACTS if act.write_id != "storm-1-0-2"]
    assert any("counter" in one for one in mistakes_of(_ended(rows=list(replay(without).values()))))


def test_a_row_that_is_there_twice_is_seen() -> None:
    rows = [*replay(ACTS).values(), first_rows()[0]]
    assert any("there 2 times" in one for one in mistakes_of(_ended(rows=rows)))


def test_writes_in_another_order_are_seen() -> None:
    rows = list(replay([*ACTS[1:], ACTS[0]]).values())
    assert any(HOT[0] in one for one in mistakes_of(_ended(rows=rows)))


@pytest.mark.parametrize("number", range(len(ACTS)))
def test_a_refused_write_that_is_there_is_seen(number: int) -> None:
    assert any("refused" in one for one in mistakes_of(_with_end(_ended(), number, _refused(ACTS[number]))))


def test_half_a_write_is_seen() -> None:
    act = Act("storm-1-0-1", "cow", "insert", (("own-1", "a", 1), ("own-2", "a", 1)))
    half = replace(_ended([act], [*first_rows(), act.rows[0]]), begun={act.write_id: Begun(act, 1)})
    assert any("in part" in one for one in mistakes_of(half))
