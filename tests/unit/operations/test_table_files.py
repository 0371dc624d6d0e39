"""Files, sizes, partitions and instants of a table, held against what the disk and the commits' bodies show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError, UnreadableTimeError
from pyhudi.operations.inspect.files import FILES, files
from pyhudi.operations.inspect.instants import TIMELINE, list_instants
from pyhudi.operations.inspect.partitions import PARTITIONS, partitions
from pyhudi.operations.inspect.sizes import SIZES, sizes
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.storage import open_storage
from support.drive import plan, read, task, write
from support.made.compacting import SCHEMA, rows
from support.recorded.recorded_version_6 import unpack
from support.upkeep.meetings import COW, MOR, QUIET


def on_disk(path: Path) -> Iterator[tuple[str, str, str, int]]:
    """Yield partition, file id, instant and size of each data file, by names alone."""
    for file in path.glob("[!.]*/*"):
        name = file.name.removeprefix(".")
        if "_" in name and not name.startswith("hoodie"):
            time = name.split("_")[1] if ".log." in name else name.split("_")[2].partition(".")[0]
            yield file.parent.name, name.split("_")[0], time.partition(".")[0], file.stat().st_size


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Make a merge-on-read table: two partitions, log files in the first, and a write that never completes."""
    path = tmp_path_factory.mktemp("files") / "t"
    parts = [(("k1", "a", 1, 1), ("k2", "b", 1, 1), ("k3", "b", 1, 1)), (("k1", "a", 2, 2),), (("k1", "a", 3, 3),)]
    times = [write(path, rows(*part), table=MOR, settings=QUIET).instant for part in parts]
    task(plan(path, SCHEMA, settings=QUIET), rows(("k2", "b", 9, 9)), 0)
    return path, times


def test_files_are_those_of_the_newest_slices(logged: tuple[Path, list[str]]) -> None:
    path, times = logged

    files_table = files(open_storage(str(path)))

    assert files_table.schema.equals(FILES.schema)
    first, second = files_table.to_pylist()
    assert (first["partition"], first["bucket"], first["instant"], len(first["log_files"])) == ("a", 0, times[0], 2)
    assert (second["partition"], second["log_files"], second["log_bytes"]) == ("b", [], 0)
    assert [row["rows"] for row in (first, second)] == [1, 2]
    assert [row["log_records"] for row in (first, second)] == [2, 0]
    listed = {(row["partition"], row["file_id"]): row["bytes"] for row in (first, second)}
    sums: dict[tuple[str, str], int] = {}
    for partition, file_id, time, size in on_disk(path):
        if time in times:
            sums[partition, file_id] = sums.get((partition, file_id), 0) + size
    assert listed == sums
    assert first["base_bytes"] + first["log_bytes"] == first["bytes"]
    assert (path / first["base_file"]).stat().st_size == first["base_bytes"]


def test_files_of_an_earlier_moment(logged: tuple[Path, list[str]]) -> None:
    path, times = logged

    found = files(open_storage(str(path)), times[1])

    assert [len(row["log_files"]) for row in found.to_pylist()] == [1, 0]
    assert files(open_storage(str(path)), times[0])["log_bytes"].to_pylist() == [0, 0]


def test_writes_that_append_to_one_log_file_state_its_records_together(tmp_path: Path) -> None:
    path = unpack(tmp_path) / "mor_non_defaults"
    first, second = sorted(file for file in path.rglob(".*.log.*") if ".hoodie" not in file.parts)
    records = 0
    for file in (path / ".hoodie").glob("*.deltacommit"):
        file.write_text(file.read_text().replace(second.name, first.name))
        stats = [stat for stats in json.loads(file.read_text())["partitionToWriteStats"].values() for stat in stats]
        records += sum(stat["numWrites"] + stat["numDeletes"] for stat in stats if stat["path"].endswith(first.name))
    second.unlink()

    (row,) = files(open_storage(str(path))).to_pylist()

    assert [path / file for file in row["log_files"]] == [first]
    assert row["log_records"] == records == 5


def test_sizes_tell_live_bytes_from_those_of_writes_that_never_completed(logged: tuple[Path, list[str]]) -> None:
    path, times = logged

    sizes_table = sizes(open_storage(str(path)))

    assert sizes_table.schema.equals(SIZES.schema)
    counted: dict[tuple[str, str, bool], int] = {}
    for partition, file_id, time, size in on_disk(path):
        key = (partition, file_id, time in times)
        counted[key] = counted.get(key, 0) + size
    for row in sizes_table.to_pylist():
        place = row["partition"], row["file_id"]
        assert row["live_bytes"] == counted.get((*place, True), 0)
        assert row["unfinished_bytes"] == counted.get((*place, False), 0)
        assert row["dead_files"] == 0
    assert sum(row["unfinished_files"] for row in sizes_table.to_pylist()) == 1


def test_partitions_state_their_rows_where_no_log_file_changes_them(logged: tuple[Path, list[str]]) -> None:
    path, times = logged

    partitions_table = partitions(open_storage(str(path)))

    assert partitions_table.schema.equals(PARTITIONS.schema)
    values = [
        [row[name] for name in ("partition", "buckets", "file_groups", "files", "log_files", "rows")]
        for row in partitions_table.to_pylist()
    ]
    assert values == [["a", 1, 1, 3, 2, None], ["b", 1, 1, 1, 0, 2]]
    assert partitions_table["newest_instant"].to_pylist() == [times[2], times[0]]


def test_old_slices_and_replaced_file_groups_are_dead_until_they_are_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, rows(("k1", "a", 1, 1), ("k2", "b", 1, 1)), table=COW, settings=QUIET)
    write(path, rows(("k1", "a", 2, 2)), settings=QUIET)
    last = write(path, rows(("k9", "b", 1, 1)), operation="insert_overwrite", settings=QUIET).instant
    storage = open_storage(str(path))

    found = {(row["partition"], row["live_files"], row["dead_files"]) for row in sizes(storage).to_pylist()}

    assert found == {("a", 1, 1), ("b", 1, 0), ("b", 0, 1)}
    everything = sum(size for *_, size in on_disk(path))
    dead = sum(sizes(storage)["dead_bytes"].to_pylist())
    assert sum(sizes(storage)["live_bytes"].to_pylist()) + dead == everything
    assert clean(storage, CleanSettings(policy="KEEP_LATEST_FILE_VERSIONS", file_versions=1)).bytes == dead
    assert sum(sizes(storage)["dead_bytes"].to_pylist()) == 0
    assert partitions(storage)["newest_instant"].to_pylist()[1] == last
    with pytest.raises(UnreadableTimeError):
        files(storage, list_instants(storage)["instant"].to_pylist()[-1])


def test_the_timeline_continues_in_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "t"
    times = [write(path, rows(("k1", "a", n, n)), table=COW, settings=QUIET).instant for n in range(5)]
    pending = task(plan(path, SCHEMA, settings=QUIET), rows(("k2", "a", 1, 1)), 0).instant_time
    storage = open_storage(str(path))
    archive(storage, ArchiveSettings(min_commits=2, max_commits=2))

    instants_table = list_instants(storage)

    assert instants_table.schema.equals(TIMELINE.schema)
    assert instants_table["instant"].to_pylist() == [pending, *reversed(times)]
    assert instants_table["state"].to_pylist()[:2] == ["INFLIGHT", "COMPLETED"]
    assert instants_table["archived"].to_pylist() == [False, False, False, True, True, True]
    seconds = instants_table["seconds"].to_pylist()
    assert seconds[0] is None
    assert all(0 < number < 60 for number in seconds[1:])
    assert list_instants(storage, 4).equals(instants_table.slice(0, 4))
    assert list_instants(storage, 0).num_rows == 0
    with pytest.raises(InvalidOptionError, match="timeline is -1"):
        list_instants(storage, -1)


def test_an_empty_table_has_columns_and_no_rows(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(("k1", "a", 1, 1)), table=COW, settings=QUIET)
    write(tmp_path / "t", rows(), operation="insert_overwrite_table", settings=QUIET)
    storage = open_storage(str(tmp_path / "t"))

    assert files(storage).num_rows == 0
    assert files(storage).schema.equals(FILES.schema)
    assert read(tmp_path / "t").num_rows == 0
    assert isinstance(sizes(storage), pa.Table)
