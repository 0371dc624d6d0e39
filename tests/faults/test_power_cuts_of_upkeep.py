"""The power goes at every step of a table service: run again it ends as if nothing had happened."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.storage import open_storage
from support.attempts import IMPATIENT, PARTED, parted
from support.drive import rows_of, write
from support.faults.power import Cut, watched
from support.faults.power import restore as put_back
from support.rules.ends import assert_whole
from support.upkeep.archiving import in_archive, on_timeline
from support.upkeep.cleans import QUIET

SETTINGS = replace(IMPATIENT, upkeep=QUIET.upkeep)
KEPT, FEW = CleanSettings(commits=1), ArchiveSettings(min_commits=1, max_commits=2)
Rows = list[tuple[object, ...]]
Known = dict[tuple[str, str, str], bytes]


@dataclass(frozen=True)
class Past:
    """A table's writes, and what it held after each."""

    instants: tuple[str, ...]
    contents: tuple[Rows, ...]
    known: Known


@dataclass(frozen=True)
class Service:
    """What is done with the table and cut off.

    Attributes:
        act: Does it, and may do it again.
        end: Which of the contents the table has in the end.
        settled: Asserts what else has to hold once it was done again.
    """

    act: Callable[[Path, Past], object]
    end: int = -1
    settled: Callable[[Path, Past], None] = lambda path, past: None


def content(path: Path) -> Rows:
    return rows_of(path, "p", "id", "value")


def lived(path: Path, version: int) -> Past:
    """Make a table by upserts, an overwrite and an upsert after it."""
    table = replace(PARTED, version=version)
    instants, contents = [], []
    for parts, operation in (
        ([parted("a", 1, 2, value=1), parted("b", 1, value=1)], None),
        ([parted("a", 2, value=2), parted("c", 1, value=2)], None),
        ([parted("a", 7, value=3)], "insert_overwrite"),
        ([parted("a", 8, value=4), parted("b", 1, value=4)], None),
    ):
        instants.append(write(path, parts, table=table, settings=SETTINGS, operation=operation).instant)
        contents.append(content(path))
    return Past(tuple(instants), tuple(contents), on_timeline(path))


def nothing_is_left_to_clean(path: Path, past: Past) -> None:
    assert clean(open_storage(str(path)), replace(KEPT, incremental=False), dry_run=True).files == 0


def nothing_is_lost(path: Path, past: Past) -> None:
    left = on_timeline(path)
    assert len([one for one in left if one[2].endswith("commit")]) == 1
    assert past.known.items() <= {**left, **in_archive(path)}.items()


SERVICES = {
    "clean": Service(lambda path, _: clean(open_storage(str(path)), KEPT), settled=nothing_is_left_to_clean),
    "archive": Service(
        lambda path, _: [clean(open_storage(str(path)), KEPT), archive(open_storage(str(path)), FEW)],
        settled=nothing_is_lost,
    ),
    "rollback": Service(lambda path, past: rollback(open_storage(str(path)), past.instants[-1]), end=-2),
    "savepoint": Service(lambda path, past: savepoint(open_storage(str(path)), past.instants[-1])),
    "restore": Service(lambda path, past: restore(open_storage(str(path)), past.instants[1]), end=1),
}


def check(cut: Cut, service: Service, past: Past, place: Path) -> None:
    """Assert that what a cut left shows a moment of the table, and the right one once the service was run again."""
    # Plans name files by their whole path, so that the table has to be where it was.
    shutil.rmtree(place)
    put_back(cut.image, place)
    table, after = place / "t", past.contents[service.end]
    shown = past.contents[service.end :]
    assert content(table) in ([after] if cut.done else shown), cut.at
    service.act(table, past)
    assert content(table) == after, cut.at
    service.settled(table, past)
    write(table, parted("z", 9, value=9), settings=SETTINGS)
    assert content(table) == sorted([*after, ("z", "k9", 9)]), cut.at
    for one in table.rglob(".pyhudi-*.crc"):
        one.unlink()  # what was in the making goes a day later
    assert_whole(table)


@pytest.mark.parametrize(("name", "version"), [*((name, 9) for name in SERVICES), ("archive", 6)])
def test_a_power_cut_at_any_step_leaves_a_service_that_can_be_run_again(
    tmp_path: Path, name: str, version: int
) -> None:
    """On the strictest disk, which keeps nothing but what was flushed; and on one that keeps some of the rest."""
    place = tmp_path / "disk"
    place.mkdir()
    past = lived(place / "t", version)
    with watched(place, careless=1) as disk:
        SERVICES[name].act(place / "t", past)
        disk.say_done()

    assert len(disk.strict) > 3
    cuts = [*disk.strict, *random.Random(1).sample(disk.others, 12), disk.others[-1]]
    for cut in cuts:
        check(cut, SERVICES[name], past, place)
