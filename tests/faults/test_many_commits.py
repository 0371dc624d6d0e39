"""A write whose plan is old by the time it commits: however much completed since is seen, or the write is refused."""

from __future__ import annotations

from pathlib import Path

from support.faults.long_ago import (
    check_archived_before_it_is_given_up,
    check_archived_while_at_work,
    check_first_write_is_younger,
    check_history_that_is_gone,
    check_many_completed_since,
    check_older_than_all_recent,
)


def test_a_commit_older_than_all_that_are_known_by_name_conflicts(tmp_path: Path) -> None:
    """Planned before over 500 others, it was neither complete nor pending when the younger write was planned."""
    check_older_than_all_recent(tmp_path)


def test_what_was_archived_since_the_plan_conflicts_by_what_it_changed(tmp_path: Path) -> None:
    """The archive tells which file groups it changed; who touches others commits."""
    check_archived_while_at_work(tmp_path)


def test_what_is_archived_is_not_given_up(tmp_path: Path) -> None:
    """Nobody told its writer that it is complete."""
    check_archived_before_it_is_given_up(tmp_path)


def test_a_commit_before_over_500_others_conflicts(tmp_path: Path) -> None:
    """However many completed since the plan, each is looked at."""
    check_many_completed_since(tmp_path)


def test_a_write_is_refused_where_history_does_not_tell_what_it_saw(tmp_path: Path) -> None:
    """Instants that left the timeline without a trace may have taken others with them."""
    check_history_that_is_gone(tmp_path)


def test_a_write_older_than_the_first_on_the_timeline_does_not_begin(tmp_path: Path) -> None:
    """All that were there when it was planned were archived before its first row came."""
    check_first_write_is_younger(tmp_path)
