"""What a newer release has written in a format of its own is read around, and nothing is written beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyhudi.errors import PyHudiError, UnsupportedTableError
from pyhudi.operations.inspect.history import history
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.result import find_write
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, CompactionSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import open_storage
from pyhudi.table.config import update_config
from pyhudi.table.table import open_table
from pyhudi.timeline import formats
from pyhudi.timeline.writers import decisions, failures, owner
from pyhudi.timeline.writers.failures import NEVER
from pyhudi.timeline.writers.patience import Patience
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import noted, plan, rows_of, task, write
from support.made.compacting import means, schedule
from support.places import files_below
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam

MERGED = replace(PARTED, table_type="MERGE_ON_READ")
ALONE = replace(IMPATIENT, colocated=True, upkeep=OFF)
PATIENCE = ALONE.patience
ROOT = owner.ROOT


@contextmanager
def newer(kind: str, by: int = 1) -> Iterator[None]:
    """Be a release that writes one kind, which a seam names, in a format that this release does not know."""
    with pytest.MonkeyPatch.context() as patch:
        number = read_seam(kind) + by
        patch_seam(patch, kind, number)
        if kind == "format of decisions":
            patch_seam(patch, "format of decisions without first steps", number)
        yield


def upsert(path: Path) -> str:
    """Change rows of one partition, as a release does that meets what is there."""
    return write(path, parted("a", 1, 2, value=9), settings=ALONE).instant


def compaction(path: Path) -> object:
    storage = open_storage(str(path))
    return compact(storage, CompactionSettings(), means(storage))


def cleaning(path: Path) -> object:
    return clean(open_storage(str(path)), CleanSettings(commits=1))


def archiving(path: Path) -> object:
    return archive(open_storage(str(path)), ArchiveSettings(min_commits=1, max_commits=2))


def newest(path: Path) -> str:
    storage = open_storage(str(path))
    return open_table(storage).timeline().writes[-1].requested_time


SERVICES: dict[str, Callable[[Path], object]] = {
    "archive": archiving,
    "clean": cleaning,
    "compaction": compaction,
    "restore": lambda path: restore(open_storage(str(path)), newest(path), patience=PATIENCE),
    "rollback": lambda path: rollback(open_storage(str(path)), newest(path), patience=PATIENCE),
    "savepoint": lambda path: savepoint(open_storage(str(path))),
}


def die(path: Path) -> str:
    """Begin a write of a newer release that ends in its task; return its owner's note."""
    with newer("format of owner's notes"):
        planned = plan(path, parted("b", 5, value=5).schema, settings=ALONE)
        task(planned, parted("b", 5, value=5), 0)
    return f"{ROOT}/{noted(planned)}/owner.json"


def decide_newer(path: Path) -> str:
    with newer("format of decisions"):
        upsert(path)
    return decisions.path_of(decisions.numbers(open_storage(str(path)))[-1])


def commit_newer(path: Path) -> str:
    with newer("format of keys in commits"):
        instant = upsert(path)
    return f"pyhudi.format in .hoodie/timeline/{instant}_"


def fill_newer(path: Path) -> str:
    with newer("format of keys in footers"):
        upsert(path)
    return "pyhudi.format in the footer of the base file a/"


def set_property(path: Path) -> str:
    update_config(open_storage(str(path)), {"pyhudi.format": "2"})
    return "pyhudi.format among its properties"


def leave(name: str, data: bytes = b"") -> Callable[[Path], str]:
    """Return what leaves a file of a newer release, and names the first of its parts that tells its format."""

    def made(path: Path) -> str:
        open_storage(str(path)).write(f"{ROOT}/{name}", data)
        return f"{ROOT}/{name.rpartition('/')[0] if name.endswith('/a') else name}"

    return made


def fail_newer(path: Path) -> str:
    """Note of a compaction plan that it failed."""
    time = schedule(path).instant
    with newer("format of notes of failures"):
        failures.note(open_storage(str(path)), time, NEVER.again("", "out of memory"))
    return f"{failures.FOLDER}/{time}"


@dataclass(frozen=True)
class Case:
    """Something of a newer release.

    Attributes:
        leaves: Puts it there, and returns what errors call it.
        refused: What must not go on.
        number: Its format.
        merged: Whether the table is merge-on-read.
    """

    leaves: Callable[[Path], str]
    refused: Callable[[Path], object] = upsert
    number: int = 2
    merged: bool = False


CASES = {
    "owner": Case(die),
    "decision": Case(decide_newer, number=5),
    "commit keys": Case(commit_newer),
    "footer keys": Case(fill_newer),
    "property": Case(set_property),
    "announcement": Case(leave("archiving/20260101000000000.v2")),
    "announcement for archiving": Case(leave("archiving/20260101000000000.v2"), archiving),
    "seals": Case(leave("sealed/20261125.v3/a"), number=3),
    "unknown folder": Case(leave("leases.v2/a")),
    "unknown file": Case(leave("lease.v2")),
    "failure": Case(fail_newer, compaction, merged=True),
    "note of cleans": Case(leave("cleaned", b'{"format": 2, "until": 1}'), cleaning),
    "note of ids": Case(leave("write_ids", b'{"format": 2, "ids": []}'), archiving),
    **{
        f"decision for {name}": Case(decide_newer, act, number=5, merged=act is compaction)
        for name, act in SERVICES.items()
        # Archiving makes no decision.
        if act is not archiving
    },
    **{f"property for {name}": Case(set_property, act, merged=act is compaction) for name, act in SERVICES.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_a_newer_format_is_read_around_and_nothing_is_written_beside_it(tmp_path: Path, name: str) -> None:
    """The error names the table, what is newer, both numbers, and the cure."""
    case = CASES[name]
    table = MERGED if case.merged else PARTED
    for value in range(4):
        rows = parted("a", 1, 2, 3, value=value)
        write(tmp_path, rows, table=table, settings=ALONE, write_id=f"id {value}")
    what = case.leaves(tmp_path)
    before, instants = rows_of(tmp_path, "id", "value"), completed(tmp_path)
    with pytest.raises(UnsupportedTableError) as raised:
        case.refused(tmp_path)

    text = str(raised.value)
    for words in (str(tmp_path), what, f"the format {case.number}", f"up to {case.number - 1}", "Upgrade pyhudi"):
        assert words in text
    assert rows_of(tmp_path, "id", "value") == before
    assert completed(tmp_path) == instants
    storage = open_storage(str(tmp_path))
    assert history(storage).num_rows >= 4
    assert "DECISION_OPEN" not in validate(storage, stale_s=-1.0)["code"].to_pylist()
    opened = open_table(storage)
    known = [find_write(opened, opened.timeline(), f"id {value}") for value in range(4)]
    assert None not in known


def completed(path: Path) -> list[str]:
    """Return the names of the completed instants and of the archive's files."""
    storage = open_storage(str(path))
    found = open_table(storage).timeline()
    return [one.requested_time for one in found.completed] + [
        info.path for info in storage.list(".hoodie/timeline/history")
    ]


def test_every_file_tells_its_format(tmp_path: Path) -> None:
    """In JSON, or in the name of its folder; what has neither is what the release before the numbers reads by name."""
    for value in range(5):
        rows = parted("a", 1, 2, 3, value=value)
        write(tmp_path, rows, table=MERGED, settings=ALONE, write_id=f"id {value}")
    storage = open_storage(str(tmp_path))
    task(plan(tmp_path, parted("b", 5, value=5).schema, settings=ALONE), parted("b", 5, value=5), 0)
    time = schedule(tmp_path).instant
    failures.note(storage, time, NEVER.again("", "out of memory"))
    cleaning(tmp_path)
    compaction(tmp_path)
    failures.note(storage, time, NEVER.again("", "out of memory"))
    archiving(tmp_path)
    told: dict[str, int] = {}
    for info in storage.list(ROOT, recursive=True):
        name, data = info.path.removeprefix(f"{ROOT}/"), storage.read(info.path)
        kind = name.partition("/")[0]
        if kind == "decisions":
            told[kind] = json.loads(data.split(b"\n")[1])["format"]
        elif kind == "sealed" and name.count("/") == 2:
            told["seal"] = formats.number_of_name(name.split("/")[1])
        elif data.startswith(b"{") and not name.endswith("/reserve"):  # that has bytes of chance
            told[info.path.rpartition("/")[2] if kind.isdecimal() else kind] = json.loads(data)["format"]
        else:
            assert kind == "archiving" or kind.isdecimal(), f"{name} tells no format"

    assert told == {"decisions": 1, "seal": 2, "owner.json": 1, "failed": 1, "cleaned": 1, "write_ids": 1}


@pytest.mark.parametrize("name", ["commit keys", "property"])
def test_a_newer_format_that_a_plan_meets_leaves_no_trace(tmp_path: Path, name: str) -> None:
    write(tmp_path, parted("a", 1, value=1), table=PARTED, settings=ALONE)
    CASES[name].leaves(tmp_path)
    before = files_below(tmp_path)
    with pytest.raises(UnsupportedTableError):
        upsert(tmp_path)

    assert files_below(tmp_path) == before


def test_a_commit_meets_the_keys_of_a_newer_release_that_committed_meanwhile(tmp_path: Path) -> None:
    write(tmp_path, parted("a", 1, value=1), table=PARTED, settings=ALONE)
    patient = replace(ALONE, patience=Patience())
    later = plan(tmp_path, parted("a", 1, value=2).schema, settings=patient)
    planned = plan(tmp_path, parted("b", 1, value=1).schema, settings=patient)
    results = [task(planned, parted("b", 1, value=1), 0)]
    with newer("format of keys in commits"):
        commit_write(later, [task(later, parted("a", 1, value=2), 0)])
    what = f"pyhudi.format in .hoodie/timeline/{noted(later)}_"
    with pytest.raises(UnsupportedTableError) as raised:
        commit_write(planned, results)
    abort_write(planned)

    assert what in str(raised.value)
    assert_whole(tmp_path)


@pytest.mark.parametrize(
    ("leaves", "kind"),
    [
        (die, "format of owner's notes"),
        (decide_newer, "format of decisions"),
        (commit_newer, "format of keys in commits"),
        (fill_newer, "format of keys in footers"),
    ],
)
def test_the_newer_release_goes_on(tmp_path: Path, leaves: Callable[[Path], str], kind: str) -> None:
    """What an older one left when it was refused is in nobody's way."""
    write(tmp_path, parted("a", 1, value=1), table=PARTED, settings=ALONE)
    leaves(tmp_path)
    with suppress(PyHudiError):
        upsert(tmp_path)
    with newer(kind, by=2):
        upsert(tmp_path)
        upsert(tmp_path)

    assert rows_of(tmp_path, "id", "value") == [("k1", 9), ("k2", 9)]
    assert_whole(tmp_path)
