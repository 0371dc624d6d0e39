"""Checks of what indexes leave of the recorded tables with a metadata table; each takes the folder of all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from pyhudi.errors import UnreadableTimeError
from pyhudi.reader.query import AsOf
from pyhudi.reader.row_condition import read_condition
from pyhudi.reader.scan import scan
from pyhudi.reader.skipping.answers import NOTHING
from pyhudi.reader.skipping.predicates import AnyOf, Compare, IsNull, OneOf, OnExpression
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.table.files.file_group import log_file
from support.recorded.index_answers import Row, assert_left, left_by, rows_of, sources
from support.recorded.recorded_metadata import MADE, partitions_of

NAMES = [made.name for made in MADE]
# Its writer kept keys unique within partitions alone.
COPIED = "spared_6_by_0_15"
KEYS = [f"k{number}" for number in (*range(7), 10, 13, 20, 30, 31, 99)]
VALUES = [f"Version {number}" for number in range(1, 10)]


def with_partition(folder: Path, name: str) -> list[str]:
    """Return the tables whose metadata table has a partition."""
    return [table for table in NAMES if name in partitions_of(folder / table)]


def check_record_index(folder: Path) -> None:
    """Of each key, and of any two, it names the file group alone that has the row; of those without a row none."""
    answered = 0
    for table in with_partition(folder, "record_index"):
        snapshot = open_snapshot(str(folder / table))
        rows = rows_of(snapshot)
        copied = copied_keys(rows)
        assert not copied or table == COPIED, "whose writer looked keys up in single partitions"
        known = [key for key in KEYS if key not in copied]
        for keys in [*((key,) for key in known), *combinations(known[::2], 2)]:
            wanted = OneOf("id", keys)
            holds = lambda row, keys=keys: row["id"] in keys  # noqa: E731
            # An index by partitions says nothing of a partition where log files deleted rows.
            exact = "partitioned" not in table
            answered += assert_left(snapshot, rows, "record_index", holds, wanted, exact=exact) is not None
    assert answered > len(KEYS)


def check_filters(folder: Path) -> None:
    """A filter of a base file leaves the files of its keys, and says nothing of a slice with log files."""
    for table in with_partition(folder, "bloom_filters"):
        snapshot = open_snapshot(str(folder / table))
        rows = rows_of(snapshot)
        logged = all(file_slice.logs for file_slice in snapshot.slices())
        for key in KEYS:
            wanted = Compare("id", "=", key)
            if logged:
                assert left_by(snapshot, "bloom_filters", wanted) is None
            else:
                assert_left(snapshot, rows, "bloom_filters", lambda row, key=key: row["id"] == key, wanted)
        (source,) = [each for each in sources(snapshot, Compare("id", "=", "absent")) if each.name == "bloom_filters"]
        plain = [replace(file_slice, logs=()) for file_slice in snapshot.slices()]
        answer = source.slices_left(plain, NOTHING)
        assert answer is not None
        assert not answer.slices
        log = log_file(f"a/.{'0' * 8}-0000-0000-0000-000000000000-0_20260101000000000.log.1_0-0-0", 1)
        assert log is not None
        with_logs = [replace(file_slice, logs=(log,)) for file_slice in plain]
        answer = source.slices_left(with_logs, NOTHING)
        assert answer is None or list(answer.slices) == with_logs


def check_secondary_index(folder: Path) -> None:
    """Of each value it leaves the file groups that have it, in both versions of its hashes."""
    tables = with_partition(folder, "secondary_index_by_name")
    assert len(tables) > 1
    answered = 0
    for table in tables:
        snapshot = open_snapshot(str(folder / table))
        rows = rows_of(snapshot)
        for names in [*((name,) for name in VALUES), *combinations(VALUES[::3], 2)]:
            holds = lambda row, names=names: row["name"] in names  # noqa: E731
            left = assert_left(snapshot, rows, "secondary", holds, OneOf("name", names), exact=True)
            answered += left is not None
            either = AnyOf(tuple((Compare("name", "=", name),) for name in names))
            assert_left(snapshot, rows, "secondary", holds, either, exact=True)
        assert_left(snapshot, rows, "secondary", lambda row: row["name"] is None, IsNull("name"), exact=True)
        assert left_by(snapshot, "secondary", Compare("name", ">", "Version 2")) is None
    assert answered > len(VALUES)


def check_expressions(folder: Path) -> None:
    """By bounds and by filters of lower names, of conditions on them and on names, in slices with log files, too."""
    tables = with_partition(folder, "expr_index_low")
    fewer = 0
    for table in tables:
        snapshot = open_snapshot(str(folder / table))
        rows = rows_of(snapshot)
        for name in VALUES:
            low = name.lower()
            said = OnExpression("lower", "name", (), OneOf("name", (low, "other")))
            left = assert_left(snapshot, rows, "expr", lambda row, low=low: (row["name"] or "").lower() == low, said)
            assert left is not None
            fewer += left < len(snapshot.slices())
            assert_left(snapshot, rows, "expr", lambda row, name=name: row["name"] == name, Compare("name", "=", name))
            above = OnExpression("lower", "name", (), Compare("name", ">=", low))
            if left_by(snapshot, "expr", above) is not None:
                assert_left(snapshot, rows, "expr", lambda row, low=low: (row["name"] or "").lower() >= low, above)
        assert left_by(snapshot, "expr", OnExpression("upper", "name", (), Compare("name", "=", "VERSION 1"))) is None
    assert fewer > len(tables)


def check_shown_rows(folder: Path) -> None:
    """With all sources together, whatever a condition asks for."""
    conditions = [f"id = '{key}'" for key in KEYS] + [f"name = '{name}'" for name in VALUES]
    conditions += [
        "name is null",
        "id in ('k1', 'k30', 'k3') and name <> 'Version 1'",
        "id = 'k1' or name = 'Version 7'",
    ]
    # Of copies of a key a record index names one, as it does to Apache Hudi's readers.
    for table in [name for name in NAMES if name != COPIED]:
        snapshot = open_snapshot(str(folder / table))
        every = list(scan(snapshot))
        for text in conditions:
            where = read_condition(text, snapshot.schema)
            wanted = [row["id"] for batch in every for row in batch.filter(where.holds(batch)).to_pylist()]
            found = shown(snapshot, text)
            assert sorted(found) == sorted(wanted), (table, text)


def check_other_moments(folder: Path) -> None:
    """A past moment and base files alone show rows that log files or later writes took away."""
    for table in NAMES:
        path = str(folder / table)
        for snapshot in (open_snapshot(path, bases_alone=True), *past(path)):
            rows = [row for batch in scan(snapshot) for row in batch.to_pylist()]
            for row in rows[::2]:
                assert row["id"] in shown(snapshot, f"id = '{row['id']}'"), (table, row["id"])
                assert row["name"] is None or row["id"] in shown(snapshot, f"name = '{row['name']}'"), table


def past(path: str) -> list[Snapshot]:
    """Return a table as of some of its newest writes, which it can still show."""
    now = open_snapshot(path)
    times = [instant.requested_time for instant in now.timeline.writes]
    shows = [open_snapshot(path, query=AsOf(time)) for time in times[-5::2]]
    return [snapshot for snapshot in shows if _is_whole(snapshot)]


def _is_whole(snapshot: Snapshot) -> bool:
    try:
        return bool(snapshot.slices())
    except UnreadableTimeError:
        return False


def copied_keys(rows: list[Row]) -> set[str]:
    """Return the keys of several rows."""
    return {key for key, count in Counter(row["id"] for row in rows).items() if count > 1}


def shown(snapshot: Snapshot, text: str) -> list[str]:
    where = read_condition(text, snapshot.schema)
    return sorted(key for batch in scan(snapshot, ["id"], where=where) for key in batch["id"].to_pylist())
