"""The check of a whole table itself: it tells every kind of damage from a table that has none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.attempts import rows
from support.drawn.histories import ROOMY, TABLE, check_history, part, row
from support.drive import KEYED, write
from support.faults.failures import Work
from support.interleaving.machine import machine
from support.interleaving.trial import run
from support.models.model import random_history
from support.rules import ends
from support.rules.checks import assert_format, java_bucket
from support.rules.ends import End, assert_whole


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of three commits, the last of which replaced everything."""
    path = tmp_path / "t"
    write(path, part(row("k1", ts=1, value=1), row("k2", ts=1, value=1, p="b")), table=TABLE)
    write(path, part(row("k1", ts=2, value=2)))
    write(path, part(*(row(f"k{n}", ts=3, value=3) for n in range(9))), overwrite=True)
    assert_format(path)
    return path


def newest(table: Path) -> Path:
    return max(table.rglob("*.parquet"), key=lambda one: one.name.split("_")[2])


def a_stray_attempt(table: Path) -> None:
    file = newest(table)
    shutil.copy(file, file.with_name(file.name.replace("_0-0-0_", "_0-0-1_")))


def a_lost_file(table: Path) -> None:
    newest(table).unlink()


def a_file_of_another_size(table: Path) -> None:
    with newest(table).open("ab") as stream:
        stream.write(b"PAR1")


def a_file_of_no_commit(table: Path) -> None:
    file = newest(table)
    shutil.copy(file, file.with_name(file.name.replace(file.name.split("_")[2], f"{'9' * 17}.parquet")))


def files_exchanged(table: Path) -> None:
    first, second = sorted((table / "a").glob(f"*_{newest(table).name.split('_')[2]}"))[:2]
    aside = table / "aside"
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def rows_lost(table: Path) -> None:
    file = newest(table)
    rows = pq.read_table(file, partitioning=None)
    pq.write_table(rows.slice(1), file)


def no_metafile(table: Path) -> None:
    (table / "a/.hoodie_partition_metadata").unlink()


def a_pending_instant(table: Path) -> None:
    (table / ".hoodie/timeline/20990101000000000.commit.requested").touch()


def a_lost_inflight(table: Path) -> None:
    next((table / ".hoodie/timeline").glob("*.inflight")).unlink()


def left(name: str) -> Callable[[Path], None]:
    def leave(table: Path) -> None:
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).touch()

    leave.__name__ = name
    return leave


@pytest.mark.parametrize(
    "damage",
    [
        a_stray_attempt,
        a_lost_file,
        a_file_of_another_size,
        a_file_of_no_commit,
        files_exchanged,
        rows_lost,
        no_metafile,
        a_pending_instant,
        a_lost_inflight,
        left(".hoodie/.temp/20990101000000000/a/x.parquet.marker.CREATE"),
        left(".hoodie/.heartbeat/20990101000000000"),
        left(".hoodie/.pyhudi/20990101000000000/owner.json"),
        left(".hoodie/.pyhudi/20990101000000000/spills/0-1-100.spill"),
        left(".hoodie/.pyhudi/commit.lock"),
        left("a/.pyhudi-00000000.crc"),
    ],
)
def test_damage_is_told(table: Path, damage: Callable[[Path], None]) -> None:
    """Each kind alone."""
    damage(table)
    with pytest.raises(AssertionError):
        assert_format(table)


def test_buckets_are_those_of_java() -> None:
    """Vectors of Apache Hudi 1.2.0 for single keys, and for composite ones whose values hold commas."""
    assert java_bucket("日本語", ["id"], 7) == 1
    assert java_bucket("k0", ["id"], 1 << 30) == 3396
    assert java_bucket("id:k0,x:1", ["id"], 1 << 30) == 3396
    assert java_bucket("a:q,r,b:7", ["a", "b"], 97) == java_bucket("a:q,r,b:7", ["b", "a"], 97)


def test_a_rule_that_is_added_is_asked_at_the_end_of_histories_faults_and_interleavings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[End] = []
    monkeypatch.setattr(ends, "RULES", [*ends.RULES, asked.append])
    check_history(random_history(1, steps=1, keys=2), bounds=ROOMY, seed=1, table=tmp_path / "history")
    of_histories = len(asked)
    work = Work([rows(1, value=2, ts=2)], [rows(1, value=1)], [("k1", 2)], table=KEYED)
    work.prepare(tmp_path / "fault")
    work.check(tmp_path / "fault", [("k1", 1)], "")
    of_faults = len(asked) - of_histories
    with machine() as there:
        run(there, 0)

    assert of_histories
    assert of_faults
    assert len(asked) > of_histories + of_faults


def test_a_table_that_validate_finds_sick_is_not_whole(table: Path) -> None:
    """Even where the second writing-down of the format does not know such tables."""
    a_lost_file(table)

    with pytest.raises(AssertionError, match="LOST_FILE"):
        assert_whole(table, written_down=False)
