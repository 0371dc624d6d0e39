"""Every moment and every window of a table's past is shown as Apache Hudi shows it, by the answers that it left."""

from __future__ import annotations

import pytest
from pyhudi.errors import UnreadableTimeError
from support.recorded.recorded_past import (
    AS_OF,
    BEGIN,
    CLEANED,
    CLUSTERED,
    END,
    FULL_SCAN,
    TURNS,
    Query,
    Recorded,
    Row,
    commits,
    moments,
    ours,
    queries_after_cleaning,
    spelled_times,
    window,
    windows,
)

PARTITION, TIME = "_hoodie_partition_path", "_hoodie_commit_time"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded.unpack(tmp_path_factory.mktemp("recorded"))


def asked(recorded: Recorded, name: str, queries: list[dict[str, str]]) -> list[tuple[Query, list[Row] | None]]:
    """Return the answers to some queries of a table, each of which must be there."""
    found = {str(query): (query, rows) for query, rows in recorded.answers[name]}
    return [found[str(query)] for query in queries]


def test_the_table_at_each_of_its_instants(recorded: Recorded) -> None:
    table = recorded.table(TURNS)
    answers = asked(recorded, TURNS, moments(table))

    assert [ours(table, query) for query, _ in answers] == [rows for _, rows in answers]
    assert len({str(rows) for _, rows in answers}) == 10


def test_every_window(recorded: Recorded) -> None:
    """Apache Hudi counts an overwrite that completed after the window, if a younger commit is in the window."""
    table, overtaken = recorded.table(TURNS), 0
    all_commits = commits(table)
    for query, other in asked(recorded, TURNS, windows(table)):
        assert other is not None
        begin, end = query[BEGIN], query.get(END)
        inside = [one.instant for one in all_commits if one.completed > begin and (end is None or one.completed <= end)]
        late = [one for one in all_commits if end and one.completed > end and inside and one.instant < max(inside)]
        mine = ours(table, query)
        if any(one.action == "replacecommit" for one in late):
            missed = [row for row in mine if row not in other]
            assert {row[PARTITION] for row in missed} <= {"a", "b"}
            assert [row for row in mine if row not in missed] == other
            overtaken += bool(missed)
        else:
            assert mine == other, query
        assert {row[TIME] for row in mine} <= set(inside)

    assert overtaken


def test_the_spellings_of_a_time(recorded: Recorded) -> None:
    table = recorded.table(TURNS)
    answers = asked(recorded, TURNS, spelled_times(table))

    assert [ours(table, query) for query, _ in answers] == [rows for _, rows in answers]


def test_a_clustering_is_no_change_and_hides_none(recorded: Recorded) -> None:
    """The rows of a window are found where a clustering of the window, or before it, has put them."""
    table = recorded.table(CLUSTERED)

    assert [one.action for one in commits(table)].count("replacecommit") == 2
    for query, rows in asked(recorded, CLUSTERED, [*moments(table), *windows(table)]):
        assert ours(table, query) == rows, query


def test_what_apache_hudi_cleaned_and_archived(recorded: Recorded) -> None:
    """Where it answers whole, the answers are alike; where it leaves rows out or refuses, ours never lacks one."""
    table = recorded.table(CLEANED)
    all_commits = commits(table)
    answers = {str(query): rows for query, rows in asked(recorded, CLEANED, queries_after_cleaning(table))}
    assert (table / ".hoodie" / "timeline" / "history" / "_version_").exists()

    answered, refused = 0, 0
    for commit in all_commits:
        try:
            mine = ours(table, {AS_OF: commit.instant})
        except UnreadableTimeError:
            refused += 1
            assert answers[str({AS_OF: commit.instant})] is None
        else:
            answered += 1
            assert mine == recorded.held[commit.instant]
    assert answered >= 2
    assert refused

    for commit in all_commits:
        assert ours(table, window(commit.completed)) == answers[str(window(commit.completed))]
    # What the archived commits wrote is in the archive.
    searched = answers[str({**window("2020-01-01"), FULL_SCAN: "true"})]
    assert ours(table, window("2020-01-01")) == searched == ours(table, window("earliest"))
    last = all_commits[-2]
    whole = [row for row in recorded.held[last.instant] if row[TIME] >= all_commits[1].instant]
    assert ours(table, window(all_commits[0].completed, last.completed)) == whole


def test_nothing_else_is_recorded(recorded: Recorded) -> None:
    turns, clustered, cleaned = (recorded.table(name) for name in (TURNS, CLUSTERED, CLEANED))

    assert {name: [query for query, _ in answers] for name, answers in recorded.answers.items()} == {
        TURNS: [*moments(turns), *windows(turns), *spelled_times(turns)],
        CLUSTERED: [*moments(clustered), *windows(clustered)],
        CLEANED: queries_after_cleaning(cleaned),
    }
