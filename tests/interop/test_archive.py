"""Apache Hudi goes on from an archive of pyhudi's and pyhudi from one of Apache Hudi's, wherever the other one died."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import read_hudi_rs
from pyhudi.operations.inspect.history import history
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.storage import open_storage
from support.drive import rows_of, write
from support.faults.faulty import FaultyStorage, Killed
from support.faults.races import TABLE, rows
from support.upkeep.archiving import HISTORY, assert_tidy, in_archive, on_timeline

pytestmark = pytest.mark.interop

SETTINGS = ArchiveSettings(min_commits=3, max_commits=4, batch=2)
# The same, said to Apache Hudi.
THEIRS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.timeline.compaction.batch.size": "2",
}


class Table:
    """A table that both write, each commit with a row and a partition of its own."""

    def __init__(self, path: Path, apache: ApacheHudi) -> None:
        self.path = path
        self.apache = apache
        self.known: dict[tuple[str, str, str], bytes] = {}
        self.count = 0

    def ours(self, commits: int) -> None:
        """Write with pyhudi."""
        for _ in range(commits):
            write(self.path, self._next(), **({} if self.count > 1 else {"table": TABLE}))
        self.known |= on_timeline(self.path)

    def theirs(self, commits: int) -> None:
        """Write with Apache Hudi, which archives after each write."""
        for _ in range(commits):
            before = on_timeline(self.path)
            self.apache.write(self.path, self._next(), THEIRS)
            self.known |= before | on_timeline(self.path)

    def archive(self) -> None:
        """Archive with pyhudi."""
        archive(open_storage(str(self.path)), SETTINGS)

    def check(self, *, by_apache: bool = True) -> None:
        """Assert that all rows are there for every reader, and all history in one place or the other.

        Args:
            by_apache: Whether Apache Hudi reads too; not where the next look at the same rows follows at once.
        """
        expected = sorted(f"k{number}" for number in range(self.count))
        assert [one for (one,) in rows_of(self.path, "id")] == expected
        if by_apache:
            assert sorted(self.apache.read(self.path).column("id").to_pylist()) == expected
        assert sorted(read_hudi_rs(self.path).column("id").to_pylist()) == expected
        assert on_timeline(self.path) | in_archive(self.path, once=False) == self.known
        assert history(open_storage(str(self.path))).num_rows == len(self.known)

    def _next(self) -> pa.Table:
        self.count += 1
        return rows(chr(ord("a") + self.count), f"k{self.count - 1}", value=self.count)


@pytest.fixture
def table(tmp_path: Path, apache: ApacheHudi) -> Table:
    return Table(tmp_path / "t", apache)


def test_each_goes_on_from_the_others_archive(table: Table) -> None:
    """Levels are merged across both: Apache Hudi's of files that are ours, and ours of files that are its."""
    table.ours(5)
    table.archive()
    assert len(in_archive(table.path, once=False)) == 2
    table.theirs(5)
    table.check()
    assert any(name.name.endswith("_1.parquet") for name in (table.path / HISTORY).iterdir())
    assert len(on_timeline(table.path)) <= 5
    table.ours(4)
    table.archive()
    table.check()
    assert_tidy(table.path, once=False)
    table.ours(2)
    table.archive()
    table.theirs(2)
    table.check()
    assert len(in_archive(table.path, once=False)) >= 12


class Dying(FaultyStorage):
    """A storage whose process dies once a step took effect."""

    def __init__(self, inner: Any, step: str, part: str) -> None:
        self._inner, self._step, self._part, self._dead = inner, step, part, False

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name not in {"create", "write", "delete", "list", "read"}:
            return attribute

        def call(*args: Any, **options: Any) -> Any:
            if self._dead:
                raise Killed(name)
            result = attribute(*args, **options)
            if name == self._step and args and self._part in args[0]:
                self._dead = True
                raise Killed(name)
            return result

        return call


@pytest.mark.parametrize(
    ("step", "part"),
    [
        ("create", "_0.parquet"),
        ("create", "manifest_"),
        ("write", "_version_"),
        ("delete", ".requested"),
        ("delete", "_"),
    ],
    ids=["file", "manifest", "version", "pending files deleted", "one completed file deleted"],
)
def test_apache_hudi_finishes_what_we_began(table: Table, step: str, part: str) -> None:
    """Its next write finds each step done or does it again."""
    table.ours(6)
    dying = Dying(open_storage(str(table.path)), step, part)
    with pytest.raises(Killed):
        archive(dying, SETTINGS)  # type: ignore[arg-type]
    table.theirs(1)
    table.check(by_apache=False)
    table.archive()
    table.check()
    assert_tidy(table.path, once=False)


def _torn_file(folder: Path, instants: list[str]) -> None:
    (folder / f"{instants[0]}_{instants[1]}_0.parquet").write_bytes(b"PAR1")


def _torn_manifest(folder: Path, _: list[str]) -> None:
    number = int((folder / "_version_").read_text()) + 1
    (folder / f"manifest_{number}").write_text('{"files":[{"fileN')


def _no_version(folder: Path, _: list[str]) -> None:
    (folder / "_version_").unlink()
    (folder / "._version_.crc").unlink(missing_ok=True)


STATES: list[Callable[[Path, list[str]], None]] = [_torn_file, _torn_manifest, _no_version]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__[1:])
def test_we_finish_what_apache_hudi_began(table: Table, state: Callable[[Path, list[str]], None]) -> None:
    """It died before its file was whole, or its manifest, or before it made its version anew."""
    table.ours(5)
    table.theirs(1)
    assert in_archive(table.path, once=False)
    table.ours(3)
    state(table.path / HISTORY, sorted(time for time, _, _ in on_timeline(table.path)))
    table.archive()
    table.check(by_apache=False)
    assert_tidy(table.path, once=False)
    table.theirs(1)
    table.check()


def test_we_take_off_what_apache_hudi_archived_and_left_there(table: Table, tmp_path: Path) -> None:
    """It died before it deleted anything, or half-way."""
    table.ours(5)
    before = tmp_path / "before"
    shutil.copytree(table.path / ".hoodie/timeline", before)
    table.theirs(1)
    gone = sorted(
        {path.name for path in before.iterdir()} - {path.name for path in (table.path / ".hoodie/timeline").iterdir()}
    )
    assert gone
    for name in gone[len(gone) // 2 :]:
        shutil.copy(before / name, table.path / ".hoodie/timeline" / name)
    table.ours(3)
    table.archive()
    table.check()
    assert_tidy(table.path, once=False)
