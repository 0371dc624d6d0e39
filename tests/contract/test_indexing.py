"""Indexes built and dropped beside all that may happen to a table meanwhile: the metadata table says what is there."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyhudi import arrow
from pyhudi.errors import (
    CommitConflictError,
    ConcurrentWriteError,
    InvalidOptionError,
    MissingColumnError,
    OptionConflictError,
    PyHudiError,
    UnsupportedTableError,
)
from pyhudi.operations.following.follower import FileChanges, Preparation
from pyhudi.operations.following.kept_metadata import KeptMetadataTable
from pyhudi.operations.result import CommitResult, ServiceResult
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, IndexSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.means import Means
from pyhudi.operations.services.metadata import indexing as module
from pyhudi.operations.services.metadata.create_index import create_index, create_indexes
from pyhudi.operations.services.metadata.drop_index import drop_index
from pyhudi.operations.services.metadata.indexing import begin_indexing
from pyhudi.operations.services.metadata.upkeep import upkeep_where_due
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.storage.base import FileInfo
from pyhudi.table.config import load_config
from pyhudi.table.config.properties_file import update_config
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.output import Output
from pyhudi.table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from pyhudi.table.metadata.metadata_table import MetadataTable
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata import models
from support.attempts import IMPATIENT, PARTED, parted
from support.drawn.upkept import OFF
from support.drive import plan, rows_of, task, write
from support.faults.faulty import Killed
from support.made.metadata_tables import How, simulate
from support.rules.health import findings, of_metadata
from support.seams import patch_seam
from support.write_settings import write_settings

QUIET = replace(IMPATIENT, upkeep=OFF)
MEANS = Means(QUIET.patience, Output())
PATIENT = replace(QUIET.patience, heartbeat_misses=9, foreign_age_s=None)
EVERY = (COLUMN_STATS, FILES, PARTITION_STATS)
FOLDER = ".hoodie/metadata"
MOR = replace(PARTED, table_type="MERGE_ON_READ")
Act = Callable[[Path], object]


def upsert(path: Path, key: int, table: TableSettings = PARTED) -> str:
    settings = write_settings(QUIET, reconcile=True)
    return write(path, [parted("ab"[key % 2], key, value=key)], table=table, settings=settings).instant


def build(path: Path, name: str = PARTITION_STATS, **how: Any) -> ServiceResult:
    return create_index(open_storage(str(path)), name, MEANS, **how)


def drop(path: Path, name: str = FILES, **how: Any) -> ServiceResult:
    return drop_index(open_storage(str(path)), name, **how)


def in_use(path: Path) -> tuple[str, ...]:
    return load_config(open_storage(str(path))).metadata_partitions


def being_built(path: Path) -> str:
    return load_config(open_storage(str(path))).properties.get("hoodie.table.metadata.partitions.inflight", "")


def check(path: Path, *keys: int, names: tuple[str, ...] = EVERY) -> None:
    assert in_use(path) == names
    assert not being_built(path)
    assert of_metadata(path) == []
    assert rows_of(path, "id") == sorted((f"k{key}",) for key in keys)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of two partitions and three writes."""
    path = tmp_path / "t"
    for key in (0, 1, 2):
        upsert(path, key)
    return path


@contextmanager
def before_completion(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], times: int = 1
) -> Iterator[list[int]]:
    """Let something happen after the first builds, right before the indexing completes."""
    builds: list[int] = []
    real = module.build_partitions

    def building(*given: Any) -> Any:
        result = real(*given)
        builds.append(1)
        if len(builds) <= times:
            act()
        return result

    patch_seam(monkeypatch, "build partitions of the metadata table", building)
    yield builds


FLAT = replace(PARTED, partition_fields=())
TABLES = {
    "cow": (PARTED, PARTITION_STATS, EVERY),
    "mor": (MOR, PARTITION_STATS, EVERY),
    "mor of version 8": (replace(MOR, version=8), PARTITION_STATS, EVERY),
    "flat": (FLAT, COLUMN_STATS, (COLUMN_STATS, FILES)),
}


@pytest.mark.parametrize("kind", TABLES)
def test_an_index_is_built_kept_dropped_and_built_again_over_its_left_overs(tmp_path: Path, kind: str) -> None:
    settings, name, names = TABLES[kind]
    path = tmp_path / "t"
    for key in (0, 1, 0, 2):
        upsert(path, key, settings)

    first_build = build(path, name)

    assert first_build.indexes == tuple(sorted(names, key=[FILES, COLUMN_STATS, PARTITION_STATS].index))
    assert first_build.records
    assert first_build.bytes
    check(path, 0, 1, 2, names=names)
    upsert(path, 3, settings)
    check(path, 0, 1, 2, 3, names=names)
    assert drop(path).indexes == names
    assert in_use(path) == ()
    assert open_storage(str(path)).list(f"{FOLDER}/files"), "for queries that run"
    upsert(path, 4, settings)
    rolled_back = upsert(path, 5, settings)
    rollback(open_storage(str(path)), rolled_back, patience=QUIET.patience)
    assert build(path, name).indexes == first_build.indexes
    check(path, 0, 1, 2, 3, 4, names=names)
    upsert(path, 6, settings)
    check(path, 0, 1, 2, 3, 4, 6, names=names)


def test_an_empty_table_gets_a_list_of_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, [parted("a", 1, value=1).slice(0, 0)], table=PARTED, settings=QUIET)

    build(path)

    check(path)
    upsert(path, 1)
    check(path, 1)


def test_what_depends_on_an_index_goes_with_it_and_comes_back_with_it(table: Path) -> None:
    build(table)

    assert drop(table, COLUMN_STATS, dry_run=True).indexes == (COLUMN_STATS, PARTITION_STATS)
    assert in_use(table) == EVERY
    drop(table, COLUMN_STATS)

    check(table, 0, 1, 2, names=(FILES,))
    upsert(table, 3)
    assert build(table, dry_run=True).indexes == (COLUMN_STATS, PARTITION_STATS)
    done = build(table, columns=["value"])
    assert done.indexes == (COLUMN_STATS, PARTITION_STATS)
    check(table, 0, 1, 2, 3)
    again = build(table)
    assert (again.indexes, again.instant) == ((), "")
    assert "drop_index" in again.skipped
    drop(table, PARTITION_STATS)
    check(table, 0, 1, 2, 3, names=(COLUMN_STATS, FILES))


REFUSED: dict[str, tuple[type[PyHudiError], str, dict[str, Any]]] = {
    "record_index": (InvalidOptionError, "does not build", {}),
    "files": (InvalidOptionError, "has no columns", {"columns": ["value"]}),
    "column_stats": (MissingColumnError, "'nothing'", {"columns": ["nothing"]}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_built_is_refused(table: Path, name: str) -> None:
    kind, text, how = REFUSED[name]
    with pytest.raises(kind, match=text):
        build(table, name, **how)
    assert (in_use(table), being_built(table)) == ((), "")


def test_tables_that_cannot_have_an_index_say_so(tmp_path: Path) -> None:
    flat, old = tmp_path / "flat", tmp_path / "old"
    write(flat, [parted("a", 1, value=1)], table=FLAT, settings=QUIET)
    write(old, [parted("a", 1, value=1)], table=replace(PARTED, version=6), settings=QUIET)

    with pytest.raises(UnsupportedTableError, match="not partitioned"):
        build(flat)
    with pytest.raises(UnsupportedTableError, match="version 6"):
        build(old, FILES)
    with pytest.raises(InvalidOptionError, match="no index"):
        drop(flat)


def late_write(path: Path) -> Callable[[], object]:
    """Return what completes a write that was planned, and has written its files, before now."""
    rows = parted("a", 7, value=7)
    planned = plan(path, rows.schema, settings=QUIET)
    written = [task(planned, rows, 0)]
    return lambda: commit_write(planned, written)


def cleaned(path: Path) -> None:
    upsert(path, 0)
    assert clean(open_storage(str(path)), CleanSettings(commits=1)).files


def archived(path: Path) -> None:
    for key in (7, 7, 7):
        upsert(path, key)
    archive(open_storage(str(path)), ArchiveSettings(min_commits=1, max_commits=1, delta_commits=None))


def rolled_back(path: Path) -> None:
    storage = open_storage(str(path))
    rollback(storage, open_table(storage).timeline().writes[-1].requested_time, patience=QUIET.patience)


def restored(path: Path) -> None:
    storage = open_storage(str(path))
    restore(storage, open_table(storage).timeline().writes[0].requested_time, patience=QUIET.patience)


def widened(path: Path) -> None:
    rows = parted("b", 7, value=7)
    write(path, [rows.append_column("more", rows.column("value"))], settings=QUIET)


# What happens, the keys that the table has then, and how often the index is built.
MEANWHILE: dict[str, tuple[Act, tuple[int, ...], int]] = {
    "a write": (lambda path: upsert(path, 7), (0, 1, 2, 7), 1),
    "a write of another column": (widened, (0, 1, 2, 7), 1),
    "a clean": (cleaned, (0, 1, 2), 1),
    "archiving": (archived, (0, 1, 2, 7), 1),
    "a rollback": (rolled_back, (0, 1), 2),
    "a restore": (restored, (0,), 2),
}


@pytest.mark.parametrize("kind", MEANWHILE)
def test_an_index_holds_what_happens_while_it_is_built(table: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    act, keys, times = MEANWHILE[kind]
    with before_completion(monkeypatch, lambda: act(table)) as builds:
        build(table)

    assert len(builds) == times
    check(table, *keys)
    upsert(table, 9)
    check(table, *keys, 9)


def test_a_write_that_was_planned_before_an_indexing_writes_to_it(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complete, later = late_write(table), late_write(table)
    with before_completion(monkeypatch, complete):
        build(table)
    check(table, 0, 1, 2, 7)

    with pytest.raises(CommitConflictError):
        later()
    check(table, 0, 1, 2, 7)


def test_a_write_that_was_planned_without_an_index_keeps_it(table: Path) -> None:
    complete = late_write(table)
    build(table)
    complete()
    check(table, 0, 1, 2, 7)


@dataclass
class Pausing(KeptMetadataTable):
    """Lets something happen between what it prepares for the first write and the decision."""

    act: Callable[[], object] | None

    def prepare(self, seen: SeenTable, instant: Instant, changes: FileChanges) -> Preparation:
        made = super().prepare(seen, instant, changes)
        act, self.act = self.act, None
        if act is not None:
            act()
        return made


def test_a_write_that_prepared_before_an_index_was_dropped_and_begun_anew_prepares_again(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apache Hudi takes an indexed column that a file's records do not name for one of nulls."""
    build(table, COLUMN_STATS, columns=["id"])

    def begun_anew() -> None:
        drop(table)
        begin_indexing(open_table(open_storage(str(table))), MEANS, (FILES, COLUMN_STATS), ["value"])

    with monkeypatch.context() as patch:
        patch_seam(patch, "followers of a table", (Pausing(begun_anew),))
        instant = upsert(table, 7)

    opened = open_table(open_storage(str(table)))
    bounds = MetadataTable.with_partitions(opened, opened.timeline(), [COLUMN_STATS]).partition(COLUMN_STATS)
    stated = [each for part in bounds.records() for each in part.field("ColumnStatsMetadata").to_pylist()]
    columns = {each["columnName"] for each in stated if instant in each["fileName"]}
    assert "value" in columns
    assert "id" not in columns


def test_of_two_builders_the_second_leaves_the_first_alone(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Means(PATIENT, Output())

    def second() -> None:
        with pytest.raises(ConcurrentWriteError, match="Another process builds"):
            create_index(open_storage(str(table)), FILES, patient)

    with before_completion(monkeypatch, second):
        create_index(open_storage(str(table)), PARTITION_STATS, patient)

    check(table, 0, 1, 2)


def test_a_builder_whose_index_is_dropped_or_taken_over_completes_nothing(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        before_completion(monkeypatch, lambda: drop(table, FILES)),
        pytest.raises(ConcurrentWriteError, match="given up"),
    ):
        build(table)
    assert (in_use(table), being_built(table)) == ((), "")
    assert not [each for each in open_table(open_storage(str(table))).timeline().instants if each.action == "indexing"]

    with before_completion(monkeypatch, lambda: build(table)), pytest.raises(ConcurrentWriteError, match="given up"):
        build(table)
    check(table, 0, 1, 2)


def test_a_drop_takes_along_what_another_process_built_on_it_meanwhile(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds of partitions come from bounds of files, so that they would stay as they are, whatever is written."""
    build(table, COLUMN_STATS)

    def meanwhile(*_: object) -> list[object]:
        build(table, PARTITION_STATS)
        return []

    patch_seam(monkeypatch, "give up the indexings of an index that is dropped", meanwhile)

    dropped = drop(table, COLUMN_STATS)

    assert dropped.indexes == (COLUMN_STATS, PARTITION_STATS)
    check(table, 0, 1, 2, names=(FILES,))


def died(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process begin an indexing and die."""
    with monkeypatch.context() as patch:
        patch_seam(patch, "give up an indexing that failed", lambda *_: None)
        patch_seam(patch, "build partitions of the metadata table", partial(failing, Killed()))
        with pytest.raises(Killed):
            build(path)
    assert being_built(path) == "column_stats,files,partition_stats"


def failing(error: BaseException, *_: Any) -> None:
    raise error


def test_an_indexing_of_a_dead_process_is_given_up_by_the_next_upkeep(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each write would log to it for ever, and archiving would stop at it."""
    died(table, monkeypatch)

    upkeep_where_due(open_storage(str(table)), OFF, QUIET.patience)

    assert (in_use(table), being_built(table)) == ((), "")
    assert not open_table(open_storage(str(table))).timeline().pending
    with before_completion(monkeypatch, lambda: upkeep_where_due(open_storage(str(table)), OFF, PATIENT)):
        create_index(open_storage(str(table)), PARTITION_STATS, Means(PATIENT, Output()))
    check(table, 0, 1, 2)


def test_a_write_that_asks_for_an_index_builds_what_a_dead_process_began(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died(table, monkeypatch)
    settings = IndexSettings(names=(FILES,))
    with before_completion(monkeypatch, lambda: None) as builds:
        assert create_indexes(open_storage(str(table)), settings, Means(PATIENT, Output())) is None
        assert not builds
        create_indexes(open_storage(str(table)), settings, MEANS)

    check(table, 0, 1, 2, names=(FILES,))


def test_an_indexing_of_apache_hudi_that_broke_off_gives_way(table: Path) -> None:
    """It left a plan, an inflight file, and half of a metadata table of another version."""
    storage = open_storage(str(table))
    files = open_table(storage).instants
    broken = Instant("20260101000000000", "indexing", State.REQUESTED)
    info = models.IndexPartitionInfo(metadata_partition_path=COLUMN_STATS, index_upto_instant="0")
    files.request(broken, files.codec.encode(models.IndexPlan(index_partition_infos=[info])))
    files.start(broken.at(State.INFLIGHT))
    update_config(storage, {"hoodie.table.metadata.partitions.inflight": COLUMN_STATS})
    storage.write(f"{FOLDER}/.hoodie/hoodie.properties", b"hoodie.table.name=t\nhoodie.table.version=6\n")
    storage.write(f"{FOLDER}/column_stats/col-stats-0002-0_0-0-0_20250101000000000.hfile", b"damaged")

    with pytest.raises(ConcurrentWriteError, match="Another process builds"):
        create_index(storage, FILES, Means(replace(QUIET.patience, foreign_age_s=None), Output()))
    build(table)

    check(table, 0, 1, 2)
    assert findings(table) == []


def test_a_partition_that_no_indexing_builds_is_built_anew(table: Path) -> None:
    """A process may have died right before the instant, or another engine after it."""
    storage = open_storage(str(table))
    build(table, FILES)
    update_config(storage, {"hoodie.table.metadata.partitions.inflight": COLUMN_STATS})
    assert drop(table, COLUMN_STATS).indexes == (COLUMN_STATS,)
    update_config(storage, {"hoodie.table.metadata.partitions.inflight": COLUMN_STATS})

    build(table)

    check(table, 0, 1, 2)


def test_an_index_that_apache_hudi_builds_beside_an_old_indexing_has_the_writes_between_them(table: Path) -> None:
    """Its instants have the least times, though they come after the indexing, which stays on the timeline."""
    build(table, FILES)
    drop(table)
    upsert(table, 4)
    shutil.rmtree(table / FOLDER / FILES)
    simulate(str(table), how=How(only=[FILES]))
    upsert(table, 5)

    check(table, 0, 1, 2, 4, 5, names=(FILES,))


def test_tasks_of_an_engine_read_the_files(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a task gets and returns travels; in the end the index is the same."""
    build(table, COLUMN_STATS)
    by_this_process = {info.path.split("/")[-2]: info.size for info in bases(table)}
    drop(table)
    asked: list[int] = []

    def tasks(call: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        asked.extend(range(len(units)))
        return [pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(call))(unit))) for unit in units]  # noqa: S301

    patch_seam(monkeypatch, "files that this process indexes sooner", 0)
    patch_seam(monkeypatch, "files of a unit of an indexing", 2)
    create_index(open_storage(str(table)), PARTITION_STATS, Means(QUIET.patience, Output(), executor=tasks))

    assert len(asked) > 1
    check(table, 0, 1, 2)
    assert by_this_process.keys() < {info.path.split("/")[-2] for info in bases(table)}


def bases(path: Path) -> list[FileInfo]:
    return [info for info in open_storage(str(path)).list(FOLDER, recursive=True) if info.path.endswith(".hfile")]


def arrow_write(path: Path, key: int, **options: str) -> CommitResult:
    given = {f"hoodie.{name.replace('__', '.')}": text for name, text in options.items()}
    return arrow.write(path, parted("a", key, value=key), record_key="id", partition_by="p", **given)


def test_a_write_builds_what_its_options_ask_for_and_later_writes_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    done = arrow_write(path, 1, metadata__enable="true", metadata__index__column__stats__column__list="value")

    assert [service.indexes for service in done.services if service.service == "create_index"] == [
        (FILES, COLUMN_STATS, PARTITION_STATS)
    ]
    check(path, 1)
    again = arrow_write(path, 2, metadata__enable="true")
    assert "create_index" not in {service.service for service in again.services}
    arrow_write(path, 3)
    check(path, 1, 2, 3)
    with pytest.raises(OptionConflictError, match="drop_index"):
        arrow_write(path, 4, metadata__enable="false")
    assert arrow.Table(path, options={"hoodie.metadata.enable": "false"}).read().num_rows == 3
    drop(path)
    arrow_write(path, 4, metadata__enable="false")
    assert in_use(path) == ()
    arrow_write(path, 5, metadata__enable="true", metadata__index__column__stats__enable="false")
    check(path, 1, 2, 3, 4, 5, names=(FILES,))


def test_a_write_may_name_columns_beside_an_index_without_columns(tmp_path: Path) -> None:
    options = {"enable": "true", "index__column__stats__enable": "false", "index__column__stats__column__list": "value"}
    arrow_write(tmp_path, 1, **{f"metadata__{name}": text for name, text in options.items()})

    check(tmp_path, 1, names=(FILES,))


@pytest.mark.parametrize("version", [6, 9])
def test_any_partition_of_the_metadata_table_can_be_dropped(tmp_path: Path, version: int) -> None:
    path = tmp_path / "t"
    global_keys = replace(PARTED, version=version, index_type="GLOBAL_SIMPLE", bucket_count=None)
    upsert(path, 1, global_keys)
    storage = open_storage(str(path))
    names = ["files", "record_index", "secondary_index_x", "expr_index_y", "bloom_filters", "column_stats"]
    update_config(storage, {"hoodie.table.metadata.partitions": ",".join(names), "hoodie.index.type": None})
    storage.write(f"{FOLDER}/x", b"x")
    with pytest.raises(UnsupportedTableError, match="drop_index"):
        upsert(path, 2, global_keys)

    assert drop(path, "record_index").indexes == ("record_index", "secondary_index_x")
    assert load_config(storage).index_type == "GLOBAL_SIMPLE", "it noted where keys are unique"
    for name in ("expr_index_y", "bloom_filters"):
        assert drop(path, name).indexes == (name,)
    assert in_use(path) == ("column_stats", "files")
    drop(path, "files")
    upsert(path, 2, global_keys)

    assert rows_of(path, "id") == [("k1",), ("k2",)]
    assert storage.exists(f"{FOLDER}/x")
