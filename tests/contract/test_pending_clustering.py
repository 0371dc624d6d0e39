"""Writes to a table on which a clustering is pending: they leave the file groups alone that it is going to replace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import CommitConflictError, ConcurrentWriteError, UnsupportedTableError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.held import clustered_groups
from pyhudi.timeline.metadata.models import RequestedReplaceMetadata
from pyhudi.timeline.writers.patience import Patience
from support.drawn.lookups import APART, LOGGED, SCHEMA, TABLE, home, rows, said, slices
from support.drive import plan, rows_of, task, write
from support.made.clustering import request_clustering, take_back

BUCKETED = replace(TABLE, index_type=None, bucket_count=4)
PACKED = WriteSettings()


def held_of(table: Path) -> set[tuple[str, str]]:
    """Return what pending clusterings hold, as Apache Hudi reads their plans."""
    storage = open_storage(str(table))
    return set(clustered_groups(open_table(storage).timeline()))


@pytest.mark.parametrize("made", [TABLE, LOGGED], ids=["cow", "mor"])
def test_a_lookup_index_writes_round_a_clustering(tmp_path: Path, made: TableSettings) -> None:
    """New keys join no file group of its, however small; rows that are in one are refused by name, nothing is left."""
    write(tmp_path, rows(1, 2, value=1), table=made, settings=APART)
    write(tmp_path, rows(3, value=1), settings=APART)
    write(tmp_path, rows(1, value=1, p="b"), settings=APART)
    group = home(tmp_path, 2)
    at = request_clustering(tmp_path, [file_slice for file_slice in slices(tmp_path) if file_slice.file_id == group])

    done = write(tmp_path, [rows(3, 4, 5, value=2), rows(1, value=2, p="b")], settings=PACKED)

    assert (done.inserts, done.updates) == (2, 2)
    assert group not in {home(tmp_path, 4), home(tmp_path, 5)}
    before = rows_of(tmp_path, "p", "id", "value")
    attempts: list[Callable[[], object]] = [
        lambda: write(tmp_path, rows(2, 6, value=3), settings=PACKED),
        lambda: write(tmp_path, rows(2, value=3), operation="delete"),
        lambda: write(tmp_path, said(rows(2, value=3), group), settings=replace(PACKED, colocated=True)),
        lambda: write(tmp_path, rows(9, value=3), operation="insert_overwrite"),
        lambda: write(tmp_path, rows(9, value=3, p="a"), operation="insert_overwrite_table"),
    ]
    for attempt in attempts:
        with pytest.raises(ConcurrentWriteError, match=f"clustering {at} is pending.* holds the file group {group} of"):
            attempt()
    assert rows_of(tmp_path, "p", "id", "value") == before
    write(tmp_path, rows(8, value=3, p="b"), operation="insert_overwrite")
    assert held_of(tmp_path) == {("a", group)}

    take_back(tmp_path, at)
    write(tmp_path, rows(2, value=3))
    assert ("a", "k2", 3) in rows_of(tmp_path, "p", "id", "value")


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("colocated", [False, True])
def test_a_bucket_index_writes_to_other_buckets(tmp_path: Path, table_type: str, colocated: bool) -> None:
    keys = range(20)
    write(tmp_path, rows(*keys, value=1), table=replace(BUCKETED, table_type=table_type))
    (first, *rest) = slices(tmp_path)
    assert len(rest) == 3
    at = request_clustering(tmp_path, [first])
    of = {key: home(tmp_path, key) for key in keys}
    settings = WriteSettings(colocated=colocated)

    free = [key for key in keys if of[key] != first.file_id]
    assert write(tmp_path, rows(*free, value=2), settings=settings).updates == len(free)
    with pytest.raises(ConcurrentWriteError, match=at):
        write(tmp_path, rows(*keys, value=3), settings=settings)

    assert {row[1] for row in rows_of(tmp_path, "id", "value")} == {1, 2}
    assert len(rows_of(tmp_path, "id")) == 20


@pytest.mark.parametrize("held", ["a", "b"])
@pytest.mark.parametrize(
    ("operation", "refused"), [("upsert", CommitConflictError), ("insert_overwrite", ConcurrentWriteError)]
)
def test_a_clustering_that_is_requested_while_a_write_is_at_work(
    tmp_path: Path, held: str, operation: str, refused: type[Exception]
) -> None:
    """It is in the way where it holds what tasks have changed, or what the commit replaces; not elsewhere."""
    settings = WriteSettings(colocated=True)
    made = replace(BUCKETED, bucket_count=1)
    write(tmp_path, [rows(1, value=1), rows(1, value=1, p="b")], table=made)
    planned = plan(tmp_path, SCHEMA, operation=operation, settings=settings)
    task_results = [task(planned, rows(1, value=2), 0)]
    at = request_clustering(
        tmp_path, [file_slice for file_slice in slices(tmp_path) if file_slice.partition_path == held]
    )

    if held == "a":
        with pytest.raises(refused, match=f"clustering {at} .* the file group"):
            commit_write(planned, task_results)
    else:
        commit_write(planned, task_results)
        assert rows_of(tmp_path, "p", "value") == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("body", [b"", None], ids=["empty", "of an overwrite"])
def test_a_clustering_that_does_not_say_what_it_holds_is_in_everybody_s_way(tmp_path: Path, body: bytes | None) -> None:
    write(tmp_path, rows(1, value=1), table=TABLE)
    at = request_clustering(tmp_path, slices(tmp_path))
    plan_file = tmp_path / ".hoodie/timeline" / f"{at}.clustering.requested"
    if body is None:
        storage = open_storage(str(tmp_path))
        codec = open_table(storage).timeline().files.codec
        body = codec.encode(RequestedReplaceMetadata(operation_type="INSERT_OVERWRITE"))
    plan_file.write_bytes(body)

    with pytest.raises(UnsupportedTableError, match=f"clustering {at} is pending"):
        write(tmp_path, rows(5, value=1, p="c"))


def test_an_overwrite_that_died_in_the_middle_of_its_first_file_is_rolled_back(tmp_path: Path) -> None:
    """Of version 6 it might have been a clustering, of which nobody could tell any more what it holds."""
    write(tmp_path, rows(1, value=1), table=TABLE)
    at = request_clustering(tmp_path, slices(tmp_path))
    timeline = tmp_path / ".hoodie/timeline"
    (timeline / f"{at}.clustering.requested").rename(timeline / f"{at}.replacecommit.requested")
    with pytest.raises(ConcurrentWriteError, match=f"clustering {at}"):
        write(tmp_path, rows(1, value=2))
    (timeline / f"{at}.replacecommit.requested").write_bytes(b"Obj\x01 torn")

    write(tmp_path, rows(1, value=2), settings=WriteSettings(patience=Patience(eager=True)))

    assert rows_of(tmp_path, "id", "value") == [("k1", 2)]
    assert not list(timeline.glob(f"{at}.*"))
