"""Archiving seen from outside: what must hold of a table before, in and after it, told from its files alone."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyhudi.operations.result import ServiceResult
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.clock import format_time
from support.drive import at_time, plan, rows_of, task, write
from support.faults.faulty import FaultyStorage
from support.faults.races import COLOCATED, SCHEMA, TABLE, rows
from support.faults.stops import Stop
from support.made.old_archives import archive_files, body_of, records_of
from support.places import copied

# Of six commits four go, in files of which two make one of the next level.
SETTINGS = ArchiveSettings(min_commits=2, max_commits=3, batch=2)
ROWS = [(f"k{number}",) for number in range(6)]
# More than there are.
STEPS = range(1, 200)
HISTORY = ".hoodie/timeline/history"
OLD_ARCHIVE = ".hoodie/archived"
_FLAT = re.compile(r"(\d+)\.(commit|replacecommit)")
_COMPLETED = re.compile(r"(\d+)_(\d+)\.([a-z]+)")


def written(table: Path, count: int, first: int = 0, version: int | None = None) -> Path:
    """Write so many commits, each with a row of its own in a partition of its own: nobody repeats another's."""
    for number in range(first, first + count):
        options = {} if number else {"table": replace(TABLE, version=version)}
        write(table, rows(chr(ord("a") + number), f"k{number}", value=number), write_id=f"id {number}", **options)
    return table


def tables(first: Path, place: Path, steps: Iterable[int] = STEPS) -> Iterator[tuple[int, Path]]:
    """Yield copies of a table, each with the number of the step at which something is to happen."""
    for number in steps:
        table = place / f"t{number}"
        copied(first, table)
        yield number, table
        shutil.rmtree(table)
    raise AssertionError("there are more steps than this looks at")


def move(table: Path | Storage, settings: ArchiveSettings = SETTINGS) -> ServiceResult:
    """Archive."""
    return archive(open_storage(str(table)) if isinstance(table, Path) else table, settings)


def on_timeline(table: Path) -> dict[tuple[str, str, str], bytes]:
    """Return what the completed instants on the timeline hold."""
    if is_flat(table):
        named = ((_FLAT.fullmatch(path.name), path) for path in (table / ".hoodie").iterdir())
        return {(match[1], "", match[2]): _said(path.read_bytes()) for match, path in named if match}
    found = ((_COMPLETED.fullmatch(path.name), path) for path in (table / ".hoodie/timeline").iterdir())
    return {(match[1], match[2], match[3]): path.read_bytes() for match, path in found if match}


def is_flat(table: Path) -> bool:
    """Return whether instants lie in ``.hoodie`` itself, as in version 6."""
    return not (table / ".hoodie/timeline").exists()


def _said(body: bytes) -> bytes:
    """Return what the body of a write says, however it is spelled."""
    return json.dumps(_without_nulls(json.loads(body)), sort_keys=True).encode()


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _in_old_archive(table: Path) -> dict[tuple[str, str, str], bytes]:
    """Return what the archived instants of a table of version 6 hold, all of whose states are there."""
    folder = table / OLD_ARCHIVE
    states: dict[tuple[str, str, str], set[str]] = {}
    archived_bodies = {}
    for record in records_of(folder) if folder.exists() else ():
        identity = record["commitTime"], "", record["actionType"]
        states.setdefault(identity, set()).add(record["actionState"])
        if record["actionState"] == "COMPLETED":
            (body,) = body_of(record).values()
            archived_bodies[identity] = _said(json.dumps(body).encode())
    assert all(len(every) == 3 for every in states.values()), "each state is archived"
    return archived_bodies


def in_archive(table: Path, *, once: bool = True) -> dict[tuple[str, str, str], bytes]:
    """Return what the archived instants hold, by the manifest that ``_version_`` names.

    Args:
        once: Whether each instant is there once; Apache Hudi repeats some where it finishes our rounds. Archives of
            version 6 may repeat any.
    """
    if is_flat(table):
        return _in_old_archive(table)
    folder = table / HISTORY
    if not (folder / "_version_").exists():
        return {}
    manifest = json.loads((folder / f"manifest_{(folder / '_version_').read_text()}").read_text())
    archived_metadata = {}
    for file_entry in manifest["files"]:
        assert (folder / file_entry["fileName"]).stat().st_size == file_entry["fileLen"]
        for row in pq.read_table(folder / file_entry["fileName"]).to_pylist():
            least, greatest, _ = file_entry["fileName"].split("_")
            assert least <= row["instantTime"] <= greatest
            identity = row["instantTime"], row["completionTime"], row["action"]
            assert not once or identity not in archived_metadata, "an instant is archived once"
            archived_metadata[identity] = row["metadata"]
    return archived_metadata


def assert_tidy(table: Path, *, once: bool = True) -> None:
    """Assert that the archive is one that Apache Hudi goes on from, and that nobody is held up by what is over."""
    if is_flat(table):
        timeline = table / ".hoodie"
        assert [path.name for path in archive_files(table / OLD_ARCHIVE)] == sorted(
            path.name for path in (table / OLD_ARCHIVE).iterdir()
        )
    else:
        folder, timeline = table / HISTORY, table / ".hoodie/timeline"
        numbers = sorted(int(path.name.partition("_")[2]) for path in folder.glob("manifest_*"))
        assert numbers[-1:] == [int((folder / "_version_").read_text())]
    assert not list((table / ".hoodie/.pyhudi").glob("archiving/*"))
    first = min(time for time, _, action in on_timeline(table) if action.endswith("commit"))
    assert all(time < first for time, _, _ in in_archive(table, once=once))
    files = [path.name.lstrip(".") for path in timeline.iterdir() if path.is_file()]
    assert [name for name in files if name[:17].isdecimal() and name[:17] < first] == []


def check_nothing_is_lost(folder: Path, version: int | None = None) -> None:
    """Assert that what leaves the timeline is in the archive, byte by byte, and that its rows stay."""
    table = written(folder / "t", 6, version=version)
    before = on_timeline(table)
    done = move(table)

    assert (done.instants, done.files) == (4, 0)
    assert len(on_timeline(table)) == 2
    assert on_timeline(table) | in_archive(table) == before
    assert rows_of(table, "id") == [(f"k{number}",) for number in range(6)]
    assert_tidy(table)
    assert move(table).instants == 0


def check_rolled_back_without_markers(folder: Path, version: int | None = None) -> None:
    """Assert that a file does not become part of the table that a rollback by Apache Hudi left for want of markers."""
    table = written(folder / "t", 6, version=version)
    (source,) = (table / "c").glob("*.parquet")
    later = int(source.stem.rpartition("_")[2]) + 1
    # A file group of its own, as an insert makes it.
    left = table / "c" / f"00000000-0000-4000-8000-000000000000-0_0-1-1_{later}.parquet"
    shutil.copy(source, left)
    # In version 6 the name of a log file does not say who wrote it, and a copy-on-write table has none.
    numbers = () if is_flat(table) else (1, 2)
    logs = [table / "c" / f".{left.name[:38]}_{later}.log.{number}_0-1-1" for number in numbers]
    for file in logs:
        file.write_bytes(b"#HUDI#")
    expected = rows_of(table, "id")
    result = move(table)

    assert rows_of(table, "id") == expected
    assert not any(one.exists() for one in (left, *logs))
    assert (result.files, result.bytes) == (1 + len(logs), source.stat().st_size + 6 * len(logs))
    assert result.instants == 4


def check_replaced_groups_stay_away(folder: Path, version: int | None = None) -> None:
    """Assert that what an overwrite replaced is not brought back while its files are there."""
    table = written(folder / "t", 2, version=version)
    write(table, rows("a", "over", value=9), operation="insert_overwrite")
    written(table, 5, first=2)
    expected = [*((f"k{number}",) for number in range(1, 7)), ("over",)]
    result = move(table)

    assert rows_of(table, "id") == expected
    assert result.instants == 2
    # A clean takes the files away, and with them the reason.
    min((table / "a").glob("*.parquet"), key=lambda path: path.name.rpartition("_")[2]).unlink()
    assert move(table).instants == 4
    assert rows_of(table, "id") == expected
    assert_tidy(table)


def check_begins_late(folder: Path) -> None:
    """Assert that a write with a time before what is archived is seen by the archiver, or takes a later time."""
    table, first = written(folder / "t", 3), folder / "first"
    planned = plan(table, SCHEMA, settings=COLOCATED)
    chosen = format_time(int(time.time() * 1000), "UTC")
    written(table, 3, first=3)
    shutil.move(table, first)
    later = begun = 0
    # At one of the steps alone the write still begins with its time.
    for number, copy in tables(first, folder):
        # The plan knows its table by its path.
        shutil.rmtree(table, ignore_errors=True)
        copied(copy, table)
        at_time(planned, chosen)
        taken: list[str] = []

        def begin(taken: list[str] = taken) -> None:
            taken.append(commit_write(planned, [task(planned, rows("w", "mine", value=1), 0)]).instant)

        stop = Stop(at=number, awake=True, meanwhile=begin)
        move(FaultyStorage(open_storage(str(table)), stop))
        name = f"step {number} ({stop.name_of(number)})"
        expected = sorted([*ROWS, *(("mine",) for _ in taken)])
        assert rows_of(table, "id") == expected, name
        move(table)
        assert rows_of(table, "id") == expected, name
        assert len(on_timeline(table) | in_archive(table)) == 6 + len(taken), name
        if len(stop.steps) < number:
            break
        later, begun = later + (taken[0] > chosen), begun + (taken[0] == chosen)
    assert later > 3
    assert begun > 3
