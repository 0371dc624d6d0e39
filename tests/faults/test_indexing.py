"""A process that builds an index and dies or fails at one of its steps: readers miss no file, the next builds."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import PyHudiError
from pyhudi.operations.services.means import Means
from pyhudi.operations.services.metadata.create_index import create_index
from pyhudi.operations.services.metadata.drop_index import drop_index
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.files.output import Output
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import rows_of, write, write_after_death
from support.faults.faulty import Faults, FaultyStorage, Killed, failing
from support.faults.steps import Share, steps_of
from support.places import copied, state_of
from support.rules.health import of_metadata

QUIET = replace(IMPATIENT, upkeep=OFF)
EVERY = ("column_stats", "files", "partition_stats")


def build(storage: Any) -> None:
    create_index(storage, "partition_stats", Means(QUIET.patience, Output()))


def drop(storage: Any) -> None:
    drop_index(storage, "column_stats")


def names_of(path: Path) -> tuple[str, ...]:
    return load_config(open_storage(str(path))).metadata_partitions


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose metadata table was in use, and left files behind."""
    path = tmp_path_factory.mktemp("first") / "t"
    write(path, [parted("a", 0, value=0)], table=PARTED, settings=QUIET)
    build(open_storage(str(path)))
    write(path, [parted("b", 1, value=1)], table=PARTED, settings=QUIET)
    drop_index(open_storage(str(path)), "files")
    write(path, [parted("a", 2, value=2)], table=PARTED, settings=QUIET)
    return path


@pytest.mark.parametrize("how", [pytest.param("before", marks=pytest.mark.slow), "killed"])
@steps_of("metadata", 7)
def test_whatever_a_dead_builder_left_the_next_write_and_the_next_builder_find_right(
    first: Path, tmp_path: Path, share: Share, how: str
) -> None:
    count, states = Faults(), set()
    build(FaultyStorage(open_storage(str(copied(first, tmp_path / "count"))), count))
    assert len(count.steps) > 60
    for number in share.of(failing(count.steps, how)):
        path = copied(first, tmp_path / f"t{number}")
        faults = Faults(at=number, kill=how == "killed")
        with contextlib.suppress(PyHudiError, Killed):
            build(FaultyStorage(open_storage(str(path)), faults))
        state = state_of(path, first)
        if state not in states:
            states.add(state)
            write_after_death(path, [parted("b", 7, value=7)], settings=QUIET)
            assert of_metadata(path) == [], faults.name_of(number)
            build(open_storage(str(path)))
            write(path, [parted("a", 8, value=8)], settings=QUIET)
            assert names_of(path) == EVERY
            assert of_metadata(path) == [], faults.name_of(number)
            assert rows_of(path, "id") == [("k0",), ("k1",), ("k2",), ("k7",), ("k8",)]
        shutil.rmtree(path)
    assert states


@steps_of("metadata", 9)
def test_a_drop_that_dies_leaves_the_index_in_use_or_out_of_use(first: Path, tmp_path: Path, share: Share) -> None:
    built, count, ends = copied(first, tmp_path / "built"), Faults(), set()
    build(open_storage(str(built)))
    drop(FaultyStorage(open_storage(str(copied(built, tmp_path / "count"))), count))
    for number in share.of(failing(count.steps, "killed")):
        path = copied(built, tmp_path / f"t{number}")
        with contextlib.suppress(PyHudiError, Killed):
            drop(FaultyStorage(open_storage(str(path)), Faults(at=number, kill=True)))
        write_after_death(path, [parted("b", 7, value=7)], settings=QUIET)
        ends.add(names_of(path))
        assert of_metadata(path) == []
        build(open_storage(str(path)))
        assert names_of(path) == EVERY
        assert of_metadata(path) == []
        shutil.rmtree(path)
    assert ends <= {EVERY, ("files",)}
