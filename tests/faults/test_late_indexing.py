"""A process that carries out late, or without its files, what was decided of an index: no reader misses a row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.errors import ConcurrentWriteError
from pyhudi.operations.following.partitions_in_use import change_partitions
from pyhudi.operations.services.means import Means
from pyhudi.operations.services.metadata import indexing as module
from pyhudi.operations.services.metadata.create_index import create_index
from pyhudi.operations.services.metadata.drop_index import drop_index
from pyhudi.operations.transaction.carried_out import carry_out
from pyhudi.operations.transaction.locks import hold
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.files.output import Output
from pyhudi.table.metadata.metadata_table import instants_of_metadata
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers.decisions import Decision
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import rows_of, write
from support.faults.faulty import Killed
from support.made.following import aside_files
from support.rules.health import of_metadata
from support.seams import patch_seam

QUIET = replace(IMPATIENT, upkeep=OFF)
EVERY = ("column_stats", "files", "partition_stats")


def upsert(path: Path, key: int) -> None:
    write(path, [parted("ab"[key % 2], key, value=key)], table=PARTED, settings=QUIET)


def build(path: Path) -> None:
    create_index(open_storage(str(path)), "partition_stats", Means(QUIET.patience, Output()))


def dies_decided(path: Path, state: State) -> Decision:
    """Let a builder die right after the decision that makes an indexing's file of a state; return the decision."""
    dead: list[Decision] = []

    def carried_out(held: Any, decision: Decision, timeline: Any) -> None:
        if not dead and (decision.instant.action, decision.instant.state) != ("indexing", state):
            carry_out(held, decision, timeline)
            return
        dead.append(decision)
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch_seam(patch, "carry out a decision", carried_out)
        build(path)
    return dead[0]


def carry_out_late(path: Path, decision: Decision) -> None:
    table = open_table(open_storage(str(path)))
    with hold(table) as held:
        carry_out(held, decision, table.timeline())


def names_of(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the partitions in use, and those that are being built."""
    config = load_config(open_storage(str(path)))
    return config.metadata_partitions, config.metadata_being_built


def indexings(path: Path) -> set[Instant]:
    return {each for each in open_table(open_storage(str(path))).timeline().instants if each.action == "indexing"}


@pytest.mark.parametrize("state", [State.REQUESTED, State.COMPLETED])
def test_what_was_decided_of_an_index_does_not_come_back_once_it_is_dropped_and_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State
) -> None:
    path = tmp_path / "t"
    upsert(path, 0)
    late = dies_decided(path, state)
    upsert(path, 1)
    drop_index(open_storage(str(path)), "files")
    upsert(path, 2)
    before = indexings(path)

    carry_out_late(path, late)

    assert names_of(path) == ((), ())
    assert indexings(path) == before
    real = module.build_partitions

    def building(*given: Any) -> Any:
        build_result = real(*given)
        carry_out_late(path, late)
        assert names_of(path) == ((), EVERY), "readers would miss what was written since the drop"
        upsert(path, 3)
        return build_result

    patch_seam(monkeypatch, "build partitions of the metadata table", building)
    build(path)

    assert names_of(path) == (EVERY, ())
    upsert(path, 4)
    assert of_metadata(path) == []
    assert rows_of(path, "id") == [(f"k{key}",) for key in range(5)]


def test_partitions_that_come_and_go_leave_what_others_change_at_the_same_moment(tmp_path: Path) -> None:
    path = tmp_path / "t"
    upsert(path, 0)
    build(path)
    storage = open_storage(str(path))

    def binds() -> bool:
        update_config(storage, {"hoodie.table.metadata.partitions": "column_stats,files"})
        return True

    change_partitions(storage, begins=["record_index"], binds=binds)

    assert names_of(path) == (("column_stats", "files"), ("record_index",))


def test_an_indexing_whose_files_aside_are_lost_builds_nothing_and_the_next_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    upsert(path, 0)
    patch_seam(monkeypatch, "most bytes of a file that a decision holds", 0)
    dies_decided(path, State.COMPLETED)
    for aside in aside_files(path):
        (path / aside).unlink()

    upsert(path, 1)

    assert names_of(path) == ((), ())
    build(path)
    assert names_of(path) == (EVERY, ())
    files = instants_of_metadata(open_table(open_storage(str(path))))
    assert not Timeline.load(files).pending
    assert of_metadata(path) == []


def test_a_builder_whose_files_aside_are_lost_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    upsert(path, 0)
    patch_seam(monkeypatch, "most bytes of a file that a decision holds", 0)
    real = module.build_partitions

    def building(*given: Any) -> Any:
        build_result = real(*given)
        for aside in aside_files(path):
            (path / aside).unlink()
        return build_result

    patch_seam(monkeypatch, "build partitions of the metadata table", building)
    with pytest.raises(ConcurrentWriteError, match="given up"):
        build(path)

    assert names_of(path) == ((), ())
