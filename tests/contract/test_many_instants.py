"""A write to a table with thousands of active instants asks its store what a write beside thirty asks."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pyhudi.operations.result import find_write
from pyhudi.reader.scan import scan
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.files.read_written import NOTE, read_written
from pyhudi.table.files.written import Written
from pyhudi.table.table import open_table
from support.faults.traces import Trace, begin_process, forget_tables, trace_writes
from support.places import copied
from support.scripts import BENCHMARKS, script
from support.seams import patch_seam, read_seam

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
TIMELINE = ".hoodie/timeline"
FEW, MANY, SOME = 30, 2_000, 240
bench = script("many_instants", BENCHMARKS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_a_write_beside_thousands_of_instants_asks_what_it_asks_beside_thirty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Each write in a process that knows nothing; the first beside thousands leaves a note of what they say."""
    trace = trace_writes(monkeypatch)
    few, many = (second_write(trace, str(tmp_path / str(count)), kind, count) for count in (FEW, MANY))

    assert len(many) <= len(few) + 4
    assert sum(map(is_body, many)) <= sum(map(is_body, few)) + 4


def second_write(trace: Trace, path: str, kind: str, instants: int) -> list[str]:
    """Return the calls of the second write to a table with so many instants."""
    bench.make_table(path, kind, instants)
    calls_of(trace, lambda: bench.upsert(path, "k1"))
    found = calls_of(trace, lambda: bench.upsert(path, "k2"))
    assert len(open_table(open_storage(path)).timeline().writes) >= instants + 2
    return found


def is_body(call: str) -> bool:
    """Return whether a call reads the file of an instant."""
    return call.startswith(f"read {TIMELINE}/")


def calls_of(trace: Trace, act: Callable[[], object]) -> list[str]:
    """Return what a process that knows nothing asks of its table's store."""
    before = len(trace.lines)
    begin_process(trace, "a process")
    act()
    return trace.lines[before + 1 :]


@pytest.fixture(scope="module", params=TYPES)
def noted(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Make a table with some instants and their note."""
    made = tmp_path_factory.mktemp("noted") / "t"
    bench.make_table(str(made), request.param, SOME)
    bench.upsert(str(made), "k1")
    assert note_of(str(made))["instants"]
    return made


@pytest.fixture
def path(tmp_path: Path, noted: Path) -> str:
    """Return a copy of that table."""
    return str(copied(noted, tmp_path / "t"))


def note_of(path: str) -> dict[str, list[str]]:
    """Return what a note holds."""
    found = json.loads(open_storage(path).read(NOTE).partition(b"\n")[2])
    assert isinstance(found, dict)
    return found


def said(path: str, *, noted: bool = True) -> Written:
    """Return what the completed writes say to a process that knows nothing, with or without the help of the note."""
    forget_tables()
    storage = open_storage(path)
    note = storage.read(NOTE) if storage.exists(NOTE) and not noted else None
    if note is not None:
        storage.delete(NOTE)
    written = read_written(open_table(storage).timeline())
    if note is not None:
        storage.write(NOTE, note)
    forget_tables()
    return written


def checked(text: bytes) -> bytes:
    """Return the bytes of a note with this text."""
    return b"%08x\n%b" % (zlib.crc32(text), text)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut": lambda data: data[:-1],
    "flipped": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :],
    "no checksum": lambda data: b"checksum" + data[8:],
    "a text": lambda _: checked(b'"note"'),
    "a list": lambda _: checked(b"[]"),
    "nothing in it": lambda _: checked(b"{}"),
    "numbers": lambda _: checked(b'{"instants": [1], "newest": {}, "replaced": [], "logs": {}, "ids": {}}'),
    "pending": lambda _: checked(b'{"instants": ["1.inflight"], "newest": {}, "replaced": [], "logs": {}, "ids": {}}'),
    "newer": lambda data: checked(data.partition(b"\n")[2].replace(b'"format":1', b'"format":2')),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_note_costs_only_time(path: str, damage: Callable[[bytes], bytes]) -> None:
    """The next write makes it anew."""
    storage = open_storage(path)
    expected, good = said(path, noted=False), note_of(path)
    assert said(path) == expected
    storage.write(NOTE, damage(storage.read(NOTE)))

    assert said(path) == expected
    bench.upsert(path, "k2")
    assert set(note_of(path)["instants"]) >= set(good["instants"])
    assert said(path) == said(path, noted=False)


def test_a_lost_note_costs_only_time(path: str) -> None:
    """The next write makes it anew."""
    expected = said(path)
    open_storage(path).delete(NOTE)

    assert said(path) == expected
    bench.upsert(path, "k2")
    assert open_storage(path).exists(NOTE)


def test_a_process_that_cannot_write_the_note_goes_without(path: str) -> None:
    """Its write completes all the same."""
    open_storage(path).delete(NOTE)
    Path(path, NOTE, "in the way").mkdir(parents=True)
    before = len(open_table(open_storage(path)).timeline().writes)

    forget_tables()
    bench.upsert(path, "k2")

    assert len(open_table(open_storage(path)).timeline().writes) == before + 1
    assert rows_of(path) == 40


def rows_of(path: str) -> int:
    """Return how many rows a reader sees."""
    return sum(batch.num_rows for batch in scan(open_snapshot(path)))


def remove(path: str, completed: str) -> None:
    """Remove the files of an instant, of which this is the completed file."""
    for file in Path(path, TIMELINE).glob(f"{completed.partition('_')[0]}*"):
        file.unlink()


def test_a_write_that_is_undone_is_no_part_of_what_writes_say(path: str) -> None:
    """An old one, which the note names; the next write makes the note anew."""
    undone = note_of(path)["instants"][100]
    remove(path, undone)

    assert said(path) == said(path, noted=False)
    bench.upsert(path, "k2")
    assert undone not in note_of(path)["instants"]
    assert said(path) == said(path, noted=False)


def test_a_write_that_came_again_under_its_old_time_is_read_itself(path: str) -> None:
    """Only its completion time tells that it is another one."""
    names = note_of(path)["instants"]
    old, other = names[100], names[101]
    time, _, rest = old.partition("_")
    Path(path, TIMELINE, old).unlink()
    again = f"{time}_{rest[:14]}777.{rest.partition('.')[2]}"
    Path(path, TIMELINE, again).write_bytes(Path(path, TIMELINE, other).read_bytes())

    assert said(path) == said(path, noted=False)
    assert again in {open_table(open_storage(path)).instants.layout.format(one) for one in said(path).instants}
    bench.upsert(path, "k2")
    assert again in note_of(path)["instants"]


def test_archived_writes_leave_the_note_as_useful_as_it_was(path: str) -> None:
    """What was archived since is no part of the answer."""
    for name in note_of(path)["instants"][:50]:
        remove(path, name)

    assert said(path) == said(path, noted=False)


def test_a_repetition_finds_its_write_without_reading_the_others(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the note names it, or it is younger."""
    table = open_table(open_storage(path))
    timeline, reads = table.timeline(), []
    read = read_seam("read the files of a commit")
    patch_seam(monkeypatch, "read the files of a commit", lambda *given: reads.append(given) or read(*given))
    for number in (3, SOME - 5):
        forget_tables()
        found = find_write(table, timeline, f"batch {number}")
        assert found is not None
        assert found.instant.endswith(f"{number:06d}000")
    forget_tables()
    assert find_write(table, timeline, "batch none") is None
    assert len(reads) < 3 * 40


def test_a_process_parses_a_name_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next write, with a clean, lists the timeline again and again, and looks at the names that are new."""
    bench.upsert(path, "k2")
    parsed: list[str] = []
    parse = read_seam("parse the name of an instant")
    patch_seam(monkeypatch, "parse the name of an instant", lambda name: parsed.append(name) or parse(name))

    bench.upsert(path, "k3")

    assert len(list(Path(path, TIMELINE).iterdir())) > 3 * SOME
    assert len(parsed) < 100


def test_a_write_lists_its_timeline_a_few_times(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan, three times in the begin and the seal, the decision; after it once, and for a clean's two decisions."""
    trace = trace_writes(monkeypatch)

    calls = calls_of(trace, lambda: bench.upsert(path, "k2"))

    assert calls.count(f"look {TIMELINE}") <= 8
    assert f"list {TIMELINE}" not in calls
    assert all(TIMELINE not in call for call in calls if call.startswith("sweep"))


def test_a_write_removes_what_a_killed_process_left_beside_its_instants(path: str) -> None:
    """Only where the listing shows it, a sweep lists the timeline once more."""
    unfinished = Path(path, TIMELINE, f".pyhudi-{0:032x}.crc")
    unfinished.write_bytes(b"")
    os.utime(unfinished, (0, 0))

    bench.upsert(path, "k2")

    assert not unfinished.exists()
