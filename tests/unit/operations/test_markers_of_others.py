"""Markers that name what is not their instant's own: whoever reads them deletes nothing of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers.patience import Patience
from support.drawn.histories import TABLE, part, row
from support.drive import noted, plan, task, write
from support.made.timelines import instants_in
from support.models.model import SCHEMA
from support.places import files_below

DEAD, GONE = "20200101000000000", "20990101000000000"
ROWS = part(row("a", ts=1, value=1))
IMPATIENT = WriteSettings(patience=Patience(eager=True))
STRANGE = [
    "/{0}",
    "../{0}",
    "p/../{0}",
    "./{0}",
    "p//{0}",
    ".hoodie/metadata/files/{0}",
    "p\0/{0}",
    "p" * 300 + "/{0}",
    "/".join(["p" * 200] * 6) + "/{0}",
    "p/{0}/x",
    "p/{0}\r",
    "p",
    ".hoodie",
    "\u00e9" * 1000,
]


def own_files(instant: str) -> list[str]:
    """Return names that Apache Hudi gives to data files of an instant."""
    file_id = "00000007-0000-0000-0000-000000000000-0"
    return [f"{file_id}_0-1-2_{instant}.parquet", f".{file_id}_{instant}.log.1_0-1-2"]


def mark(table: Path, instant: str) -> None:
    """Make data files of an instant, and markers that name these, every other file of the table, and no file at all."""
    named = [*files_below(table), *(one.format(own_files(instant)[0]) for one in STRANGE)]
    for name in own_files(instant):
        (table / "a" / name).write_bytes(b"half")
        named.append(f"a/{name}")
    folder = table / ".hoodie/.temp" / instant
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "MARKERS7").write_bytes("".join(f"{one}.marker.CREATE\n" for one in named).encode())
    (folder / "x\ny.parquet.marker.MERGE").touch()


def swept(table: Path) -> str:
    """The instant is on the timeline no more."""
    mark(table, GONE)
    write(table, ROWS)
    return GONE


def rolled_back(table: Path) -> str:
    """The instant is pending, and its writer is dead."""
    storage = open_storage(str(table))
    dead = Instant(DEAD, "commit", State.INFLIGHT)
    instants_in(storage).request(dead)
    instants_in(storage).start(dead)
    mark(table, DEAD)
    write(table, ROWS, settings=IMPATIENT)
    return DEAD


def aborted(table: Path) -> str:
    planned = plan(table, SCHEMA)
    task(planned, ROWS, 0)
    mark(table, noted(planned))
    abort_write(planned)
    return noted(planned)


def reconciled(table: Path) -> str:
    planned = plan(table, SCHEMA)
    done = task(planned, ROWS, 0)
    mark(table, noted(planned))
    commit_write(planned, [done])
    return noted(planned)


@pytest.mark.parametrize("act", [swept, rolled_back, aborted, reconciled])
def test_only_data_files_of_the_markers_own_instant_are_deleted(
    tmp_path: Path, act: Callable[[Path], str], caplog: pytest.LogCaptureFixture
) -> None:
    """The rest is told of, and stays as it was."""
    table = tmp_path / "t"
    write(table, ROWS, table=TABLE)
    write(table, ROWS)
    (table / "notes.txt").write_text("mine")
    (tmp_path / own_files(GONE)[0]).write_text("mine")
    before = files_below(tmp_path)

    with caplog.at_level(logging.WARNING, logger="pyhudi"):
        instant = act(table)

    after = files_below(tmp_path)
    assert {name: after.get(name) for name in before} == before
    assert [name for name in own_files(instant) if f"t/a/{name}" in after] == []
    assert f".hoodie/.temp/{instant} names '.hoodie/hoodie.properties', which is no data file" in caplog.text
    assert "more such files" in caplog.text
