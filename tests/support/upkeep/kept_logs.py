"""Upkeep of merge-on-read tables: checks that the contract tests and the mutations run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi.errors import MissingFileError
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.table.files.lost import open_view
from support.made.logged import Logged
from support.rules.ends import assert_whole
from support.rules.health import errors

NEWEST = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)


def appended(path: Path) -> Logged:
    """Make two buckets of a partition, with a base file each and an append to both; in another a group without one."""
    made = Logged(path).made(1, 2, 3, 4)
    made.append(2, 3, value=5)
    made.append(9, value=9, partition="b")
    return made


def assert_sound(table: Logged) -> None:
    """Assert that nothing is wrong with a table, by the rules in the code and by those written down in the tests."""
    assert_whole(table.path, deep=True)


def check_merged_slices_go(folder: Path) -> None:
    """Assert that a clean takes what compactions merged, and nothing else."""
    table = appended(folder / "t")
    before, rows = table.files(), table.content()
    compaction = table.compact()
    merged = {path for path in table.files() if compaction in path}
    assert table.files() == before | merged

    result = clean(table.storage, NEWEST)

    assert table.files() == merged
    assert result.files == len(before)
    assert table.content() == rows
    assert_sound(table)
    assert clean(table.storage, NEWEST).instant == ""


def check_saved_slices_stay(folder: Path) -> None:
    """Assert that a savepoint keeps the log files of its moment."""
    table = appended(folder / "t")
    at, rows = table.append(1, value=6), table.content()
    saved = savepoint(table.storage, at)
    saved_files = table.files()
    assert saved.files == len(saved_files)
    table.append(1, value=7)
    table.compact()
    table.append(1, value=8)

    clean(table.storage, NEWEST)

    assert saved_files < table.files()
    assert table.content(lambda timeline: timeline.as_of_request(at)) == rows


def check_archived_appends_stay_in_place(folder: Path) -> None:
    """Assert that an archived append stays in the slice in which it was, which only the archive can tell of one that
    completed after a compaction was requested."""
    table = appended(folder / "t")
    late = table.begin(1, value=6)
    pending = table.plan_compaction()
    table.finish(late)
    table.finish(table.execute(pending))
    for value in range(10, 16):
        table.append(2, value=value)
    rows = table.content()
    assert ("a", "k1", 6) in rows, "the compaction did not see it"
    layout = [(one.base_time, len(one.logs)) for one in table.slices("a")]

    done = archive(table.storage, ArchiveSettings(min_commits=2, max_commits=3, delta_commits=3))

    assert done.instants == 8
    assert late.instant < table.timeline.writes[0].requested_time
    assert [(one.base_time, len(one.logs)) for one in table.slices("a")] == layout
    assert table.content() == rows
    assert_sound(table)


def check_lost_log_is_missed(folder: Path) -> None:
    """Assert that a log file that is gone is missed until a compaction takes its slice's place."""
    table = appended(folder / "t")
    at = table.append(1, value=6)
    (path,) = (path for path in table.files() if at in path)
    copy = table.storage.read(path)
    table.storage.delete(path)

    with pytest.raises(MissingFileError, match=rf"The log file {path} .* which the deltacommit {at} made"):
        open_view(table.timeline).slices("a")
    assert [(one["code"], one["file"]) for one in errors(table.path)] == [("LOST_FILE", path)]
    table.storage.write(path, copy)
    table.compact()
    table.storage.delete(path)
    assert len(open_view(table.timeline).slices("a")) == 2
    assert errors(table.path) == []
