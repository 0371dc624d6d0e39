"""The power goes at every step of a write: what the disk kept reads as before or after, once it is done as after."""

from __future__ import annotations

import errno
import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import StorageError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from support.attempts import IMPATIENT, PARTED, attempt, parted
from support.drive import choosing_now, noted, plan, rows_of, task, write
from support.faults.power import Cut, Disk, Image, restore, watched
from support.made.begun_metadata import asked_always, assert_in_use, begin_metadata
from support.rules.checks import DATA_FILE
from support.rules.ends import assert_whole
from support.seams import patch_seam

FIRST = [parted("a", 1, 2, value=1), parted("b/c", 3, value=1)]
SECOND = [parted("a", 2, 4, value=2), parted("d/e", 5, value=2)]
BEFORE = [("k1", 1), ("k2", 1), ("k3", 1)]
AFTER = [("k1", 1), ("k2", 2), ("k3", 1), ("k4", 2), ("k5", 2)]
COLOCATED = replace(IMPATIENT, colocated=True)
# The folder above the table's is made by the write that creates the table.
TABLE = "lake/t"
# Tables of version 6 have their instants in the folder above.
OLD = replace(PARTED, version=6)
INSTANT = re.compile(r"\.hoodie/(?:timeline/)?(?P<time>\d{17})(?:_\d{17})?\.(?P<rest>[a-z.]+)")

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Work:
    """Something that is done with a table and cut off.

    Attributes:
        prepare: Brings the table into the state from which it starts; all of it is kept.
        act: Does it.
        before: The rows at the start, None where there is no table.
        after: The rows in the end.
        needs: The states that stand on the timeline wherever there is a file of an instant that is not completed.
        table: What the next write makes where nothing is left.
    """

    prepare: Callable[[Path], Any]
    act: Callable[[Path, Any], Any]
    before: Rows | None
    after: Rows
    needs: frozenset[str] = frozenset({"requested", "inflight"})
    table: TableSettings = PARTED


def nothing(path: Path) -> None:
    """Leave the place empty."""


def first(path: Path) -> None:
    write(path, FIRST, table=PARTED)


def first_with_metadata(path: Path) -> None:
    first(path)
    begin_metadata(path, by_apache_hudi=True)


def first_of_version_6(path: Path) -> None:
    write(path, FIRST, table=OLD)


def dead(path: Path, make: Callable[[Path], None] = first) -> None:
    """Leave a table with a write that died after it had published its files."""
    make(path)
    planned = plan(path, SECOND[0].schema, table=PARTED, settings=COLOCATED)
    for number, part in enumerate(SECOND):
        task(planned, part, number)


def begun(path: Path) -> Any:
    """Leave a table with a write that has published its files and is alive."""
    first(path)
    planned = plan(path, SECOND[0].schema, table=PARTED, settings=COLOCATED)
    return planned, [task(planned, part, number) for number, part in enumerate(SECOND)]


def create(path: Path, _: Any) -> None:
    attempt(path, FIRST, IMPATIENT, table=PARTED)


def create_in_version_6(path: Path, _: Any) -> None:
    attempt(path, FIRST, IMPATIENT, table=OLD)


def upsert(path: Path, _: Any) -> None:
    attempt(path, SECOND, IMPATIENT, table=PARTED)


def upsert_by_files_aside(path: Path, _: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "most bytes of a file that a decision holds", 0)
        attempt(path, SECOND, IMPATIENT, table=PARTED)


def upsert_colocated(path: Path, _: Any) -> None:
    attempt(path, SECOND, COLOCATED, table=PARTED)


def delete_partition(path: Path, _: Any) -> None:
    attempt(path, [parted("a", 1, value=0)], IMPATIENT, "delete_partition", table=PARTED)


def commit_one_of_two_attempts(path: Path, begun: Any) -> None:
    """Commit a write of which one task ran twice, so that the first attempt's files go."""
    planned, results = begun
    again = task(planned, SECOND[0], 0, attempt=7)
    commit_write(planned, [again, *results[1:]])


WORKS = {
    "creation": Work(nothing, create, None, BEFORE),
    "upsert": Work(first, upsert, BEFORE, AFTER),
    "colocated": Work(first, upsert_colocated, BEFORE, AFTER),
    "delete_partition": Work(first, delete_partition, BEFORE, [("k3", 1)]),
    "two attempts": Work(begun, commit_one_of_two_attempts, BEFORE, AFTER),
    "rollback": Work(dead, upsert, BEFORE, AFTER),
    "creation in version 6": Work(nothing, create_in_version_6, None, BEFORE, table=OLD),
    "upsert with a metadata table": Work(first_with_metadata, upsert, BEFORE, AFTER),
    "upsert by files aside": Work(first_with_metadata, upsert_by_files_aside, BEFORE, AFTER),
    "upsert in version 6": Work(first_of_version_6, upsert, BEFORE, AFTER),
    "rollback in version 6": Work(lambda path: dead(path, first_of_version_6), upsert, BEFORE, AFTER),
    "abort": Work(begun, lambda _, state: abort_write(state[0]), BEFORE, BEFORE, frozenset({"requested"})),
}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a write take the same steps every time."""
    patch_seam(monkeypatch, "most workers of a merge", 1)


def cuts_of(place: Path, work: Work, *, careless: int = 0) -> Disk:
    """Do the work and return what is left of it at every step."""
    place.mkdir()
    state = work.prepare(place / TABLE)
    with watched(place, careless=careless) as disk:
        work.act(place / TABLE, state)
        disk.say_done()
    return disk


def below(image: Image) -> Image:
    """Return the table's own part of an image."""
    return {name[len(TABLE) + 1 :]: data for name, data in image.items() if name.startswith(f"{TABLE}/")}


def states_of(image: Image) -> dict[str, set[str]]:
    """Return the states of each instant on the timeline; "completed" for any completed one."""
    states_by_time: dict[str, set[str]] = {}
    for name in image:
        match = INSTANT.fullmatch(name)
        if match is not None:
            state = match["rest"].rpartition(".")[2]
            states_by_time.setdefault(match["time"], set()).add(
                state if state in {"requested", "inflight"} else "completed"
            )
    return states_by_time


def assert_in_order(cut: Cut, needs: frozenset[str]) -> None:
    """Assert that whatever is there has what had to be there before it."""
    image = below(cut.image)
    states = states_of(image)
    for name in image:
        data = DATA_FILE.fullmatch(name.rpartition("/")[2])
        if data is None or name.startswith(".hoodie/"):
            continue
        time = data["instant"]
        if "completed" not in states.get(time, ()):
            assert needs <= states.get(time, set()), f"{cut.at}: {name} without its instant"
            markers = (image[one] or b"" for one in image if one.startswith(f".hoodie/.temp/{time}/MARKERS"))
            assert any(name.encode() in one for one in markers), f"{cut.at}: {name} without its marker"
    for time, found in states.items():
        rollback = any(f".hoodie/{folder}{time}.rollback.requested" in image for folder in ("timeline/", ""))
        if "completed" not in found and not rollback:
            owner = image.get(f".hoodie/.pyhudi/{time}/owner.json")
            assert json.loads(owner or b"{}").get("write_id"), f"{cut.at}: whose {time} is cannot be told"


def after_the_boot(image: Image) -> Image:
    """Return an image with the processes of another boot than this one."""
    rebooted_image = dict(image)
    for name, data in image.items():
        if data and name.endswith("/owner.json") and data.startswith(b"{") and data.endswith(b"}"):
            rebooted_image[name] = json.dumps({**json.loads(data), "boot_id": "of another boot"}).encode()
    return rebooted_image


def check(cut: Cut, work: Work, place: Path) -> None:
    """Assert that what a cut left reads as it should, and that the next write is good."""
    assert_in_order(cut, work.needs)
    restore(after_the_boot(cut.image), place)
    table = place / TABLE
    committed = any("completed" in states for states in states_of(below(cut.image)).values())
    with asked_always():
        left = rows_of(table, "id", "value") if committed else None
    assert left == work.after if cut.done else left in (work.before, work.after), cut.at
    if not table.exists():
        return
    write(table, parted("z", 9, value=3), table=work.table if left is None else PARTED, settings=IMPATIENT)
    # What was decided right before the cut, the next write completes.
    expected = [sorted([*(rows or []), ("k9", 3)]) for rows in ((left,) if cut.done else (left, work.after))]
    assert rows_of(table, "id", "value") in expected, cut.at
    for one in table.rglob(".pyhudi-*.crc"):
        one.unlink()  # what was in the making goes a day later
    if work.prepare is first_with_metadata:
        assert_in_use(table)
    assert_whole(table)


@pytest.mark.parametrize("name", WORKS)
def test_a_power_cut_at_any_step_leaves_the_rows_of_before_or_after(tmp_path: Path, name: str) -> None:
    """On the strictest disk: nothing is kept but what was flushed."""
    disk = cuts_of(tmp_path / "disk", WORKS[name])
    assert len(disk.strict) > 4
    for number, cut in enumerate(disk.strict):
        check(cut, WORKS[name], tmp_path / f"cut{number}")


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 6))])
@pytest.mark.parametrize("name", WORKS)
def test_whatever_else_the_disk_kept_does_no_harm(tmp_path: Path, name: str, seed: int) -> None:
    """A name may be there without its bytes, and a later change without an earlier one."""
    disk = cuts_of(tmp_path / "disk", WORKS[name], careless=1)
    cuts = random.Random(seed).sample(disk.others, 8)
    for number, cut in enumerate([*cuts, disk.others[-1]]):
        check(cut, WORKS[name], tmp_path / f"cut{number}")
    for cut in disk.others:
        assert_in_order(cut, WORKS[name].needs)


def test_a_task_that_finds_the_write_begun_does_not_come_before_its_instant(tmp_path: Path) -> None:
    """The task that begins a write is about to flush the timeline when another sees the instant and is done first."""
    place = tmp_path / "disk"
    place.mkdir()
    table = place / TABLE
    first(table)
    planned = choosing_now(plan(table, SECOND[0].schema, table=PARTED, settings=COLOCATED))
    inflight = table / f".hoodie/timeline/{noted(planned)}.inflight"
    results = []
    with watched(place) as disk:

        def overtaken(path: Path) -> None:
            if path.name == "timeline" and inflight.exists() and not results:
                results.append(None)
                results[:] = [task(planned, SECOND[1], 1)]
                disk.say_done()

        disk.before_flush = overtaken
        results.append(task(planned, SECOND[0], 0))
    cut = next(one for one in disk.strict if one.done)

    assert results[0].written
    assert states_of(below(cut.image))[noted(planned)] == {"requested", "inflight"}


def test_a_commit_whose_last_file_the_disk_refuses_is_not_called_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instant is there for everybody, and stays; that it lasts nobody may say."""
    table = tmp_path / "t"
    first(table)
    planned = plan(table, SECOND[0].schema, table=PARTED, settings=IMPATIENT)
    results = [task(planned, part, number) for number, part in enumerate(SECOND)]

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.name == "timeline" and list(path.glob(f"{noted(planned)}_*.commit")):
            raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match="the disk could not keep it"):
            commit_write(planned, results)
        abort_write(planned)

    assert rows_of(table, "id", "value") == AFTER
    assert_whole(table)


def test_a_write_that_asks_for_no_durability_flushes_nothing(tmp_path: Path) -> None:
    """The option trades it away."""
    place = tmp_path / "disk"
    place.mkdir()
    with watched(place) as disk:
        attempt(place / TABLE, FIRST, replace(IMPATIENT, durable=False), table=PARTED)

    assert rows_of(place / TABLE, "id", "value") == BEFORE
    assert len(disk.strict) == 1
