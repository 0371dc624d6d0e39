"""Partitions that a failed write opened: gone again, unless somebody else has written to them."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import DuplicateKeyError, WriteSealedError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import Storage
from support.drive import plan, rows_of, task, write
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.write_settings import write_settings

PARTED = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=1)
METAFILE = ".hoodie_partition_metadata"


def rows(*keys: tuple[str, int]) -> pa.Table:
    return pa.table({"p": [p for p, _ in keys], "id": [n for _, n in keys], "ts": [1] * len(keys)})


def test_a_failed_write_takes_back_the_partitions_that_it_opened(tmp_path: Path) -> None:
    """Left behind, it would stand above a partition of a later write."""
    write(tmp_path, rows(("z", 1)), table=PARTED)
    before = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if ".hoodie/" not in str(file)}

    with pytest.raises(DuplicateKeyError):
        write(
            tmp_path,
            rows(("a", 1), ("z", 1)),
            operation="insert",
            settings=write_settings(insert_dup_policy="fail", colocated=True),
        )

    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if ".hoodie/" not in str(file)}
    assert left - {"a"} == before, "but for the empty folder"
    write(tmp_path, rows(("a/b", 1)))
    assert rows_of(tmp_path, "p", "id") == [("a/b", 1), ("z", 1)]
    assert_whole(tmp_path)


@pytest.mark.parametrize("published", [False, True], ids=["before its file", "after its file"])
def test_another_writer_keeps_the_partition_that_it_relied_on(tmp_path: Path, published: bool) -> None:
    write(tmp_path, rows(("z", 1)), table=PARTED)
    colocated = WriteSettings(colocated=True)
    first = plan(tmp_path, rows(("a", 1)).schema, settings=colocated)
    second = plan(tmp_path, rows(("a", 1)).schema, settings=colocated)
    task(first, rows(("a", 1)), 0)
    if published:
        result = task(second, rows(("a", 2)), 0)
        abort_write(first)
    else:
        abort_write(first)
        assert not (tmp_path / "a" / METAFILE).exists()
        result = task(second, rows(("a", 2)), 0)
    commit_write(second, [result])

    assert (tmp_path / "a" / METAFILE).exists()
    assert rows_of(tmp_path, "p", "id") == [("a", 2), ("z", 1)]
    assert_whole(tmp_path)


@pytest.mark.parametrize("used", [False, True], ids=["for nothing", "for another writer"])
def test_a_straggler_takes_back_a_partition_that_it_opened_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: bool
) -> None:
    """Its write was given up between its look at the seal and the metafile, which somebody may have used since."""
    write(tmp_path, rows(("z", 1)), table=PARTED)
    colocated = WriteSettings(colocated=True)
    first, second = (plan(tmp_path, rows(("a", 1)).schema, settings=colocated) for _ in range(2))
    real = read_seam("write the metafile of a partition from a task")

    def slow(storage: Storage, partition_path: str, instant_time: str) -> bool:
        patch_seam(monkeypatch, "write the metafile of a partition from a task", real)
        made = real(storage, partition_path, instant_time)
        if used:
            commit_write(second, [task(second, rows(("a", 2)), 0)])
            abort_write(first)
        else:
            # Its metafile is not there yet when the abort looks for it.
            (tmp_path / partition_path / METAFILE).unlink()
            abort_write(first)
            made = real(storage, partition_path, instant_time)
        return made

    patch_seam(monkeypatch, "write the metafile of a partition from a task", slow)
    with pytest.raises(WriteSealedError):
        task(first, rows(("a", 1)), 0)

    assert (tmp_path / "a" / METAFILE).exists() is used
    assert rows_of(tmp_path, "p", "id") == [*([("a", 2)] if used else []), ("z", 1)]
    assert_whole(tmp_path)


def test_giving_up_and_committing_meet_under_the_lock(tmp_path: Path) -> None:
    """Whatever the order, the partition of the commit is one in the end."""
    write(tmp_path, rows(("z", 1)), table=PARTED)
    colocated = WriteSettings(colocated=True)
    for number in range(10):
        name = f"p{number}"
        first = plan(tmp_path, rows((name, 1)).schema, settings=colocated)
        second = plan(tmp_path, rows((name, 1)).schema, settings=colocated)
        task(first, rows((name, 1)), 0)
        result = task(second, rows((name, 2)), 0)
        giving_up = threading.Thread(target=abort_write, args=(first,))
        giving_up.start()
        commit_write(second, [result])
        giving_up.join()

        assert (tmp_path / name / METAFILE).exists()
    assert len(rows_of(tmp_path, "p", "id")) == 11
    assert_whole(tmp_path)
