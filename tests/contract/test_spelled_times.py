"""Every documented spelling of a time names an instant to the services that take one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path

import pytest
from pyhudi.errors import InvalidOptionError, UndoError
from pyhudi.operations.result import ServiceResult
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.reader.query import AsOf, Changes
from pyhudi.reader.scan import scan
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.timeline.clock import parse_time
from support.attempts import PARTED, parted
from support.drive import write
from support.upkeep.undoing import Life, content

PAGE = Path(__file__).parents[2] / "docs" / "times.md"
Spell = Callable[[datetime], str]


def stamp(form: str) -> Spell:
    """Return a spelling with milliseconds in place of three sharps."""
    return lambda moment: moment.strftime(form).replace("###", f"{moment.microsecond // 1000:03d}")


def epoch(moment: datetime) -> int:
    return parse_time(stamp("%Y%m%d%H%M%S###")(moment), "UTC")


# By example of the page: how a moment is spelled so.
TO_THE_MILLISECOND: dict[str, Spell] = {
    "20261121083015123": stamp("%Y%m%d%H%M%S###"),
    "2026-11-21 08:30:15.123": stamp("%Y-%m-%d %H:%M:%S.###"),
    "2026-11-21T08:30:15.123": stamp("%Y-%m-%dT%H:%M:%S.###"),
    "2026-11-21T08:30:15.123456": stamp("%Y-%m-%dT%H:%M:%S.###456"),
    "2026-11-21T10:30:15.123+02:00": lambda moment: stamp("%Y-%m-%dT%H:%M:%S.###+02:00")(moment + timedelta(hours=2)),
    "2026-11-21T08:30:15.123Z": stamp("%Y-%m-%dT%H:%M:%S.###Z"),
    "1795249815123": lambda moment: str(epoch(moment)),
}
TO_THE_SECOND: dict[str, Spell] = {
    "2026-11-21 08:30:15": stamp("%Y-%m-%d %H:%M:%S"),
    "2026-11-21T08:30:15": stamp("%Y-%m-%dT%H:%M:%S"),
    "1795249815": lambda moment: str(epoch(moment) // 1000),
}
DAY = "2026-11-21"
# Digits of an instant's form name that instant alone.
NAME = "20261121083015"
SPELLINGS = {**TO_THE_MILLISECOND, **TO_THE_SECOND}
Service = Callable[[Storage, str], ServiceResult]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Two writes with a whole second between them."""
    path, instants, contents = tmp_path_factory.mktemp("spelled") / "t", [], [[]]
    began = int(time.time())
    for value in (1, 2):
        with pytest.MonkeyPatch.context() as patch:
            # A write is complete before its second ends, however busy the machine is.
            patch.setattr(time, "time", count(began - 10 + 2 * value, 0.0005).__next__)
            instants.append(write(path, [parted("a", value, value=value)], table=PARTED).instant)
        contents.append(content(path))
    return Life(path, tuple(instants), tuple(contents))


@pytest.fixture
def life(made: Life, tmp_path: Path) -> Life:
    return made.copied(tmp_path / "t")


def moment_of(instant: str) -> datetime:
    return datetime.fromtimestamp(parse_time(instant, "UTC") / 1000, timezone.utc)


def test_the_page_lists_these_spellings() -> None:
    table = PAGE.read_text("utf-8").split("| spelling | means |")[1].split("\n\n")[0]
    listed = {spelt for row in table.splitlines() for spelt in re.findall(r"`([^`]+)`", row.split(" | ")[0])}

    assert listed == {*SPELLINGS, DAY, NAME}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_any_spelling_names_the_only_write_of_its_time(life: Life, spell: Spell) -> None:
    storage, (first, second) = open_storage(str(life.path)), life.instants
    savepoint(storage, first)

    assert delete_savepoint(storage, spell(moment_of(first))).instant == first
    assert rollback(storage, spell(moment_of(second))).instants == 1
    assert content(life.path) == life.contents[1]


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_any_spelling_of_a_later_time_names_the_newest_write_until_then(life: Life, spell: Spell) -> None:
    storage, between = open_storage(str(life.path)), spell(moment_of(life.instants[0]) + timedelta(seconds=1))
    if spell is TO_THE_MILLISECOND["20261121083015123"]:
        between = life.instants[0]

    assert savepoint(storage, between).instant == life.instants[0]
    assert restore(storage, between).instants == 1
    assert restore(storage, between).instants == 0
    assert content(life.path) == life.contents[1]


def test_a_day_names_its_only_savepoint_and_for_a_restore_its_first_moment(life: Life) -> None:
    storage, day = open_storage(str(life.path)), moment_of(life.instants[0])
    savepoint(storage, life.instants[0])

    assert savepoint(storage, f"{day + timedelta(days=1):%Y-%m-%d}").instant == life.instants[1]
    with pytest.raises(UndoError, match=f"2 savepoints of .*{life.instants[0]}, {life.instants[1]}"):
        delete_savepoint(storage, f"{day:%Y-%m-%d}")
    delete_savepoint(storage, life.instants[1])
    assert delete_savepoint(storage, f"{day:%Y-%m-%d}").instant == life.instants[0]
    with pytest.raises(UndoError, match=f"no completed write that was requested until .*{life.instants[0]}"):
        restore(storage, f"{day:%Y-%m-%d}")
    assert content(life.path) == life.contents[2]


@pytest.mark.parametrize("service", [rollback, restore, savepoint, delete_savepoint])
def test_digits_of_an_instant_name_it_alone_and_what_is_no_time_is_refused(life: Life, service: Service) -> None:
    storage, (first, second) = open_storage(str(life.path)), life.instants

    for name in (second[:14], f"{int(second) + 1}"):
        with pytest.raises(UndoError, match=name):
            service(storage, name)
    with pytest.raises(InvalidOptionError, match="yesterday"):
        service(storage, "yesterday")
    assert (life.instants, content(life.path)) == ((first, second), life.contents[2])


@pytest.mark.parametrize("service", [rollback, delete_savepoint])
def test_a_time_of_no_write_lists_those_that_there_are(life: Life, service: Service) -> None:
    storage = open_storage(str(life.path))

    with pytest.raises(UndoError, match=r"on its timeline \("):
        service(storage, "1999-12-31")


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_any_spelling_bounds_what_a_query_reads(made: Life, spell: Spell) -> None:
    time = spell(moment_of(made.instants[0]) + timedelta(seconds=1))

    for query, values in ((AsOf(time), [1]), (Changes("earliest", time), [1]), (Changes(time), [2])):
        batches = scan(open_snapshot(str(made.path), query=query))
        assert [value for batch in batches for value in batch.column("value").to_pylist()] == values
