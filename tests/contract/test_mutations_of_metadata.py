"""Mistakes in how a metadata table is kept, and that the tests of what it holds see each of them."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.test_kept_metadata import lived
from faults.test_kept_metadata import Faults, died, finish, made
from pyhudi.operations.following.partitions_in_use import change_partitions
from pyhudi.operations.services.metadata.create_index import create_index
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.config.property_keys import METADATA_PARTITIONS
from pyhudi.table.metadata.kinds import COLUMN_STATS, FILE_GROUPS, FILES
from pyhudi.timeline.clock import format_time
from support.attempts import PARTED, parted
from support.drive import write
from support.made.begun_metadata import begin_metadata
from support.made.compacting import means
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.rules.ends import assert_whole
from support.rules.health import of_metadata
from support.seams import patch_seam, read_seam

_COMPLETED = re.compile(r"(?P<begin>\.hoodie/metadata/\.hoodie/timeline/\d{17}_)\d{17}(?P<end>\..*)")


def check_operations(place: Path) -> None:
    """Take each operation, whose metadata table is looked at after each."""
    for _ in lived(place / "t", "cow"):
        pass


def check_deaths(place: Path) -> None:
    """Let a write die between its decision and its completed file, and another one finish."""
    origin = made(place / "origin")
    steps = died(origin, "write", Faults())
    for number in range(len(steps) - 12, len(steps)):
        path = made(place / f"t{number}")
        died(path, "write", Faults(at=number, kill=True))
        finish(path, 0)
        assert_whole(path)


def check_few_records(place: Path) -> None:
    """Build an index that has fewer records than file groups, and write on."""
    write(place, parted("a", 1, value=1), table=PARTED)
    storage = open_storage(str(place))
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "file groups of new partitions of a metadata table", {**FILE_GROUPS, COLUMN_STATS: 7})
        create_index(storage, COLUMN_STATS, means(storage), columns=("value", "ts"))
    for value in (2, 3):
        write(place, [parted(name, *range(9), value=value) for name in ("a", "b", "c")])
    assert of_metadata(place) == []
    assert COLUMN_STATS in load_config(storage).metadata_partitions


def check_changes_by_others(place: Path) -> None:
    """Drop a partition of the metadata table after other software has dropped another one, which stays dropped."""
    write(place, parted("a", 1, value=1), table=PARTED)
    begin_metadata(place)
    storage = open_storage(str(place))
    change_partitions(storage, drops=("record_index",))
    update_config(storage, {METADATA_PARTITIONS: f"{COLUMN_STATS},{FILES}"})
    change_partitions(storage, drops=(COLUMN_STATS,))
    assert load_config(storage).metadata_partitions == (FILES,)


def log_files_of_undone_instants_stay(patch: Patch) -> None:
    patch_seam(patch, "files that undone instants left in a metadata table", lambda *_: [])


def whoever_finishes_chooses_the_time_of_the_metadata_table(patch: Patch) -> None:
    original = read_seam("make a file before the completed file")

    def make(storage: Any, step: Any) -> None:
        now = format_time(int(time.time() * 1000), "UTC")
        match = _COMPLETED.fullmatch(step.path)
        original(storage, step if match is None else replace(step, path=f"{match['begin']}{now}{match['end']}"))

    patch_seam(patch, "make a file before the completed file", make)


def partitions_are_not_widened(patch: Patch) -> None:
    original = read_seam("bounds by which a commit widens those of partitions")

    def records(files: Any, bounds: Any, schema: str, *, typed: bool, tight: bool) -> Any:
        assert not tight
        return original(files, bounds, schema, typed=typed, tight=True)

    patch_seam(patch, "bounds by which a commit widens those of partitions", records)


def tombstones_are_ignored(patch: Patch) -> None:
    """What a clean deleted stays in the list."""
    original = read_seam("records of files in a metadata table")

    def records(partitions: Any, names: Any, sizes: Any, deleted: Any, schema: str) -> Any:
        return original(partitions, names, np.maximum(sizes, 1), np.zeros(len(deleted), np.bool_), schema)

    patch_seam(patch, "records of files in a metadata table", records)


def placeholders_are_left_out(patch: Patch) -> None:
    """A file group without records has no file, so that a listing shows fewer than the hashes of the build took."""
    patch_seam(patch, "placeholders of an indexing that begins", lambda *_: [])
    original = read_seam("placeholder of a file group that stays empty")

    def elsewhere(partition: str, file_id: str, at: str) -> Any:
        step = original(partition, file_id, at)
        return replace(step, path=f".hoodie/.pyhudi/{file_id}")

    patch_seam(patch, "placeholder of a file group that stays empty", elsewhere)


def the_property_is_written_from_memory(patch: Patch) -> None:
    original, cached_configs = read_seam("properties that a change of partitions sets"), list[Any]()

    def changed(config: Any, **how: Any) -> Any:
        if config.metadata_partitions and not cached_configs:
            cached_configs.append(config)
        remembered = original(cached_configs[0] if cached_configs else config, **how)
        return {key: text for key, text in remembered.items() if config.properties.get(key, "") != text}

    patch_seam(patch, "properties that a change of partitions sets", changed)


MUTATIONS: list[tuple[Mutate, Check]] = [
    (log_files_of_undone_instants_stay, check_operations),
    (whoever_finishes_chooses_the_time_of_the_metadata_table, check_deaths),
    (partitions_are_not_widened, check_operations),
    (tombstones_are_ignored, check_operations),
    (placeholders_are_left_out, check_few_records),
    (the_property_is_written_from_memory, check_changes_by_others),
]


@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in MUTATIONS))
def test_what_is_right_is_not_red(tmp_path: Path, check: Check) -> None:
    check(tmp_path)


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
