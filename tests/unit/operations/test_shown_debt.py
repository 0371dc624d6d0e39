"""What a merge-on-read table says of its log files, and of what waits to be compacted."""

from __future__ import annotations

from pathlib import Path

from pyhudi.operations.inspect.detail import DETAIL_SCHEMA, detail
from pyhudi.operations.inspect.history import history
from pyhudi.operations.result import CommitResult, result_of
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from support.made.logged import Logged


def told(table: Logged) -> dict[str, object]:
    found = detail(table.storage)
    assert found.schema.equals(DETAIL_SCHEMA)
    [row] = found.to_pylist()
    return row  # type: ignore[no-any-return]


def sizes(table: Logged, *instants: str) -> list[int]:
    return [(table.path / one).stat().st_size for one in table.files() if any(time in one for time in instants)]


def test_log_files_are_counted_beside_the_base_files_that_they_go_with(tmp_path: Path) -> None:
    table = Logged(tmp_path / "t").made(1, 2, 3, 4)
    first = table.timeline.writes[0]
    assert told(table)["compaction_debt"] == []
    assert (told(table)["read_optimized_lacks"], told(table)["read_optimized_until"]) == (0, first.completion_time)
    both = table.append(1, 2, 3, 4, value=1)
    new = table.append(9, value=2, partition="b")
    table.begin(1, value=3)

    row = told(table)

    assert (row["files"], row["log_files"]) == (2, 3)
    assert row["bytes"] == sum(sizes(table, first.requested_time))
    assert row["log_bytes"] == sum(sizes(table, both, new))
    debt = row["compaction_debt"]
    assert isinstance(debt, list)
    assert [one["log_bytes"] for one in debt] == sorted(sizes(table, both, new), reverse=True)
    assert {(one["partition"], one["base_bytes"] > 0, one["log_files"]) for one in debt} == {
        ("a", True, 1),
        ("b", False, 1),
    }
    assert (row["read_optimized_lacks"], row["read_optimized_until"]) == (2, first.completion_time)


def test_a_table_wants_compacting_after_five_delta_commits_and_no_more_afterwards(tmp_path: Path) -> None:
    table = Logged(tmp_path / "t").made(1, 2)
    wants = [told(table)["wants_compaction"]]
    for value in range(5):
        table.append(1, value=value)
        wants.append(told(table)["wants_compaction"])
    assert wants == [False] * 4 + [True, True]

    table.compact()
    row, newest = told(table), table.timeline.writes[-1]

    assert (row["wants_compaction"], row["delta_commits"], row["log_files"]) == (False, 0, 0)
    assert (row["read_optimized_lacks"], row["read_optimized_until"]) == (0, newest.completion_time)


def test_nobody_knows_how_far_queries_lag_behind_what_is_archived(tmp_path: Path) -> None:
    table = Logged(tmp_path / "t").made(1, 2, 3, 4)
    for value in range(6):
        table.append(1, 2, value=value)
    archive(table.storage, ArchiveSettings(min_commits=2, max_commits=3, delta_commits=1))

    assert len(table.timeline.writes) == 2
    assert (told(table)["read_optimized_lacks"], told(table)["read_optimized_until"]) == (6, None)


def test_the_history_tells_log_files_beside_base_files(tmp_path: Path) -> None:
    table = Logged(tmp_path / "t").made(1, 2, 3, 4)
    appended = table.append(1, 2, value=1)
    compacted = table.compact()

    rows = {row["instant"]: row for row in history(table.storage).to_pylist()}

    size = sum(sizes(table, appended))
    assert [rows[appended][name] for name in ("files", "log_files", "bytes", "log_bytes")] == [0, 2, 0, size]
    assert [rows[compacted][name] for name in ("operation", "files", "log_files", "log_bytes")] == ["COMPACT", 2, 0, 0]
    timeline = table.timeline
    result = result_of(timeline, timeline.writes[1])
    assert isinstance(result, CommitResult)
    assert f"; 2 log files, {size:,} bytes" in repr(result)
