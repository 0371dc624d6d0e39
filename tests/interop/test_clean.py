"""Both sides clean one table: the same files by the same settings, each going on from the other's cleans."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import completed, pending
from interop.scenarios import BUCKETS
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.service_settings import KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, CleanSettings
from pyhudi.operations.services.clean import clean
from pyhudi.storage import open_storage
from pyhudi.timeline.metadata.models import CleanMetadata
from support.drive import rows_of, write
from support.faults.long_ago import instants
from support.recorded.hudi_options import SMALL
from support.upkeep.cleans import QUIET, data_files

pytestmark = pytest.mark.interop

TABLE = TableSettings(
    name="t", record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2
)
THEIRS = {**SMALL, BUCKETS: "2", "hoodie.clean.automatic": "false"}
SETTINGS = {
    KEEP_LATEST_COMMITS: CleanSettings(commits=2),
    KEEP_LATEST_FILE_VERSIONS: CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=2),
}
OPTIONS = "hoodie.metadata.enable=false"
TIMELINE = Path(".hoodie/timeline")


def rows(version: int, partition: str, *ids: int) -> pa.Table:
    """Return rows of one partition."""
    return pa.table(
        {"id": [f"k{one}" for one in ids], "p": [partition] * len(ids), "ts": [version] * len(ids), "value": ids}
    )


def go_on(table: Path, first: int) -> None:
    """Write to two partitions of those that are there, and to a new one."""
    for version, partition in enumerate(("a", "b", f"new{first}", "a"), first):
        write(table, rows(version, partition, *range(4)), settings=QUIET)


@pytest.fixture(scope="module")
def history(apache: ApacheHudi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Updates, replaced partitions and a savepoint, by turns of both sides; nothing was cleaned."""
    table = tmp_path_factory.mktemp("history") / "t"
    write(table, pa.concat_tables(rows(1, partition, *range(6)) for partition in "abc"), table=TABLE, settings=QUIET)
    for version in range(2, 6):
        write(table, rows(version, "ab"[version % 2], *range(5)), settings=QUIET)
    apache.write(table, rows(6, "a", *range(3)), THEIRS)
    write(table, rows(7, "b", 1, 2), operation="insert_overwrite", settings=QUIET)
    write(table, rows(8, "c", 1), operation="delete_partition", settings=QUIET)
    apache.write(table, rows(9, "b", 7, 8), THEIRS)
    for version in range(10, 13):
        write(table, rows(version, "a", *range(4)), settings=QUIET)
    register(apache, "history", table)
    saved = instants(table).writes[2].requested_time
    apache.sql(f"call create_savepoint(table => 'history', commit_time => '{saved}')")
    return table


def register(apache: ApacheHudi, name: str, table: Path) -> None:
    """Let Apache Hudi know a table by name."""
    apache.sql(f"set {OPTIONS}")
    apache.sql(f"create table {name} using hudi location '{table}'")


def cleaned_by_apache(apache: ApacheHudi, table: Path, name: str, policy: str) -> Path:
    """Have Apache Hudi clean a copy of a table, which is then in its place for whoever compares."""
    copy = shutil.copytree(table, table.with_name(name))
    register(apache, name, copy)
    apache.sql(
        f"call run_clean(table => '{name}', clean_policy => '{policy}', retain_commits => 2, "
        f"file_versions_retained => 2, options => '{OPTIONS}')"
    )
    return copy


def files(table: Path) -> set[str]:
    """Return the data files of a table, without those of the partition that Apache Hudi deletes as a whole.

    Nothing of it is part of the table, but the savepoint keeps its files; Apache Hudi's plan names the partition among
    those to be deleted all the same. When that is no longer so, docs/upkeep.md has to change.
    """
    return {one for one in data_files(table) if not one.startswith("c/")}


def ours(table: Path, policy: str) -> CleanMetadata:
    """Clean a table, and return what the instant says."""
    result = clean(open_storage(str(table)), SETTINGS[policy])
    assert result.files
    timeline = instants(table)
    [instant] = [one for one in timeline.completed if one.requested_time == result.instant]
    found = timeline.files.read_clean(instant)
    assert isinstance(found, CleanMetadata)
    return found


def shown_by(apache: ApacheHudi, table: Path) -> list[tuple[Any, ...]]:
    read = apache.read(table)
    return sorted(zip(*(read.column(name).to_pylist() for name in ("p", "id", "ts", "value")), strict=True))


@pytest.mark.parametrize("policy", list(SETTINGS))
def test_both_keep_the_same_files_and_go_on_from_each_other(
    apache: ApacheHudi, history: Path, tmp_path: Path, policy: str
) -> None:
    mine = shutil.copytree(history, tmp_path / "t")
    tag = policy.rpartition("_")[2].lower()
    content = rows_of(mine, "p", "id", "ts", "value")
    theirs = cleaned_by_apache(apache, mine, f"first_{tag}", policy)
    told = ours(mine, policy)

    assert files(mine) == files(theirs)
    assert len(files(mine)) < len(files(history))
    assert (data_files(mine) - files(mine), data_files(theirs) - files(theirs)) == (saved_of(history), set())
    their_clean = instants(theirs).files.read_clean(instants(theirs).completed[-1])
    assert isinstance(their_clean, CleanMetadata)
    assert _comparable(told) == _comparable(their_clean)
    for table in (mine, theirs):
        assert rows_of(table, "p", "id", "ts", "value") == shown_by(apache, table) == content

    # Each goes on from what the other cleaned, and with it from what it looked at.
    for number, table in enumerate((mine, theirs)):
        go_on(table, 20)
        copy = cleaned_by_apache(apache, table, f"second_{tag}_{number}", policy)
        ours(table, policy)
        assert files(table) == files(copy)
        assert rows_of(table, "p", "id", "ts", "value") == shown_by(apache, table) == shown_by(apache, copy)
    register(apache, f"mine_{tag}", mine)
    listed = apache.sql(f"call show_cleans(table => 'mine_{tag}')")
    assert sorted(one["clean_time"] for one in listed) == sorted(completed(mine, "clean"))
    assert all(one["total_files_deleted"] for one in listed)


def saved_of(table: Path) -> set[str]:
    """Return the savepoint's files in the partition that was deleted."""
    timeline = instants(table)
    [saved] = [one for one in timeline.completed if one.action == "savepoint"]
    return {f"c/{name}" for name in timeline.files.read_savepoint(saved).partition_metadata["c"].savepoint_data_file}


def _comparable(found: CleanMetadata) -> dict[str, Any]:
    files = {
        partition: (sorted(part.success_delete_files), sorted(part.delete_path_patterns), part.failed_delete_files)
        for partition, part in found.partition_metadata.items()
        if part.delete_path_patterns
    }
    said = found.model_dump(exclude={"start_clean_time", "time_taken_in_millis", "partition_metadata"})
    return {**said, "files": files}


class Killed(BaseException):
    """The process is gone."""


class Dying:
    """A storage whose process is killed when it is about to delete data for the n-th time."""

    def __init__(self, inner: Any, deletions: int) -> None:
        self._inner = inner
        self._left = deletions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def delete(self, *paths: str, **options: Any) -> None:
        if any(one.endswith(".parquet") for one in paths):
            if not self._left:
                raise Killed
            self._left -= 1
        self._inner.delete(*paths, **options)


@pytest.mark.parametrize("deletions", [0, 1], ids=["planned", "half done"])
def test_apache_hudi_finishes_a_clean_of_ours(
    apache: ApacheHudi, history: Path, tmp_path: Path, deletions: int
) -> None:
    table = shutil.copytree(history, tmp_path / "t")
    expected = shutil.copytree(history, tmp_path / "expected")
    ours(expected, KEEP_LATEST_COMMITS)
    storage = Dying(open_storage(str(table)), deletions)
    with pytest.raises(Killed):
        clean(storage, SETTINGS[KEEP_LATEST_COMMITS])  # type: ignore[arg-type]
    if not deletions:
        [instant] = pending(table)
        (table / TIMELINE / f"{instant}.clean.inflight").unlink()
    waiting = pending(table)
    assert len(data_files(table)) > len(data_files(expected))

    # Its own settings would keep ten commits.
    apache.write(table, rows(30, "d", 1), {**THEIRS, "hoodie.clean.automatic": "true"})

    assert pending(table) == set()
    assert set(completed(table, "clean")) == waiting
    assert {one for one in data_files(table) if not one.startswith("d/")} == data_files(expected)
    assert rows_of(table, "p", "id", "ts", "value") == shown_by(apache, table)
    assert clean(open_storage(str(table)), SETTINGS[KEEP_LATEST_COMMITS]).files == 2, "of the commit that is new"


@pytest.mark.parametrize("half", [False, True], ids=["planned", "half done"])
def test_we_finish_a_clean_of_apache_hudi_s(apache: ApacheHudi, history: Path, tmp_path: Path, half: bool) -> None:
    table = shutil.copytree(history, tmp_path / "t")
    name = f"theirs_{'half' if half else 'planned'}"
    register(apache, name, table)
    apache.sql(f"call run_clean(table => '{name}', retain_commits => 2, options => '{OPTIONS}')")
    after = files(table)
    [instant] = completed(table, "clean")
    plan = (table / TIMELINE / f"{instant}.clean.requested").read_bytes()
    # As it was before, with nothing but the plan; the paths in it are this table's own.
    shutil.rmtree(table)
    shutil.copytree(history, table)
    (table / TIMELINE / f"{instant}.clean.requested").write_bytes(plan)
    gone = sorted(files(table) - after)
    if half:
        (table / TIMELINE / f"{instant}.clean.inflight").touch()
        for one in gone[::2]:
            (table / one).unlink()

    done = clean(open_storage(str(table)), CleanSettings())

    assert (done.instant, done.files) == (instant, len(gone))
    assert files(table) == after
    assert saved_of(history) <= data_files(table)
    assert pending(table) == set()
    assert rows_of(table, "p", "id", "ts", "value") == shown_by(apache, table)
    apache.write(table, rows(40, "d", 1), {**THEIRS, "hoodie.clean.automatic": "true"})
    assert completed(table, "clean") == [instant]
