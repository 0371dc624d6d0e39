"""New file groups that tasks open for themselves end where they are full, and are sorted across their files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write_settings import BulkInsertSort
from pyhudi.storage import open_storage
from pyhudi.table.files.names import BaseFileName
from pyhudi.table.files.output import Output
from support.drive import plan, read, rows_of, task, write
from support.write_settings import write_settings

LARGEST = 100_000
SIZES = LookupSettings(sizes=FileSizes(largest=LARGEST))
KEYLESS = TableSettings(partition_fields=("p",))


def rows(count: int, seed: int = 0) -> pa.Table:
    """Return rows of about a thousand bytes, that hardly become fewer in a file, in no order."""
    random = np.random.default_rng(seed)
    texts = [random.bytes(375).hex() for _ in range(count)]
    return pa.table({"id": random.permutation(count) + count * seed, "p": ["x"] * count, "text": texts})


def files_of(path: Path) -> list[Path]:
    """Return the table's base files, those that were opened together in their order."""
    named_files = [(BaseFileName.parse(one.name), one) for one in path.glob("x/*.parquet")]
    return [
        one
        for _, _, one in sorted(
            (name.write_token.partition, int(name.file_id.rpartition("-")[2]), one) for name, one in named_files if name
        )
    ]


@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("row_group_bytes", [50_000, 1 << 27])
def test_files_are_filled_up_to_the_largest_size(tmp_path: Path, spilled: bool, row_group_bytes: int) -> None:
    output = replace(Output(memory=200_000) if spilled else Output(), row_group_bytes=row_group_bytes)
    bounds = {"batch_size": 50_000} if spilled else {}
    given = [rows(1000), rows(300, seed=1)]

    result = write(
        tmp_path / "t",
        given,
        operation="bulk_insert",
        table=KEYLESS,
        settings=write_settings(lookup=SIZES, output=output, **bounds),
    )

    files = files_of(tmp_path / "t")
    sizes = [one.stat().st_size for one in files]
    tokens = [BaseFileName.parse(one.name).write_token.partition for one in files]  # type: ignore[union-attr]
    last = [place for place, one in enumerate(tokens) if one not in tokens[place + 1 :]]
    # What the footer says of each row group comes on top.
    assert max(sizes) <= LARGEST * 1.15
    assert min(size for place, size in enumerate(sizes) if place not in last) >= LARGEST * 0.75
    assert len({BaseFileName.parse(one.name).file_id for one in files}) == len(files) > 6  # type: ignore[union-attr]
    assert (result.inserts, result.files, result.bytes) == (1300, len(files), sum(sizes))
    assert rows_of(tmp_path / "t", "id", "text") == sorted(
        (one["id"], one["text"]) for part in given for one in part.to_pylist()
    )
    assert len(set(read(tmp_path / "t").column("_hoodie_commit_seqno").to_pylist())) == 1300


def test_rows_stay_in_their_order_where_nothing_is_sorted(tmp_path: Path) -> None:
    given = rows(1000)
    write(tmp_path / "t", given, operation="bulk_insert", table=KEYLESS, settings=WriteSettings(lookup=SIZES))

    found = [pq.read_table(one, columns=["id"])["id"].to_pylist() for one in files_of(tmp_path / "t")]

    assert [id_ for file in found for id_ in file] == given["id"].to_pylist()


@pytest.mark.parametrize("memory", [1 << 30, 400_000])
def test_a_sort_is_across_the_files_of_a_task(tmp_path: Path, memory: int) -> None:
    settings = WriteSettings(lookup=SIZES, sort=BulkInsertSort(columns=("id",)), output=Output(memory=memory))
    write(tmp_path / "t", rows(1000), operation="bulk_insert", table=KEYLESS, settings=settings)

    ids_by_file = [pq.read_table(one, columns=["id"])["id"].to_pylist() for one in files_of(tmp_path / "t")]

    assert len(ids_by_file) > 4
    assert [id_ for file in ids_by_file for id_ in file] == list(range(1000))


def test_a_row_that_is_larger_than_a_file_gets_one_of_its_own(tmp_path: Path) -> None:
    sizes = LookupSettings(sizes=FileSizes(largest=1))

    result = write(tmp_path / "t", rows(3), operation="insert", table=KEYLESS, settings=WriteSettings(lookup=sizes))

    assert (result.inserts, result.files) == (3, 3)
    assert rows_of(tmp_path / "t", "id") == [(0,), (1,), (2,)]


def test_two_attempts_of_a_task_open_the_same_file_groups_and_one_is_kept(tmp_path: Path) -> None:
    planned = plan(
        tmp_path / "t", rows(1).schema, operation="bulk_insert", table=KEYLESS, settings=WriteSettings(lookup=SIZES)
    )
    lost, committed = (task(planned, rows(500), 0, attempt=attempt) for attempt in (1, 2))
    commit_write(planned, [committed])

    assert [one.group for one in lost.written] == [one.group for one in committed.written]
    assert len(committed.written) > 2
    assert {one.path for one in committed.written} == {
        info.path for info in open_storage(str(tmp_path / "t")).list("x") if info.path.endswith(".parquet")
    }
    assert len(rows_of(tmp_path / "t", "id")) == 500
