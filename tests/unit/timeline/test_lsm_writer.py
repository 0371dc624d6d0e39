"""Files of the archive as Apache Hudi writes them, merged as it merges them, and tidied up."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.archive.lsm import LsmArchive
from pyhudi.timeline.archive.lsm_writer import Row, append, merge_levels, tidy
from pyhudi.timeline.archive.manifest import Manifests
from pyhudi.timeline.instants import Instant, State
from support.faults.faulty import FaultyStorage
from support.faults.stops import Stop
from support.seams import patch_seam

THEIRS = Path(__file__).parents[2] / "fixtures" / "timeline" / "archived"
FOLDER, ASIDE = "history", "aside"


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def instant(number: int, action: str = "commit") -> Instant:
    return Instant(f"{number:04d}", action, State.COMPLETED, f"{number + 5000}")


def some(*numbers: int) -> list[Row]:
    return [Row(instant(number), b"body %d" % number) for number in numbers]


def names(storage: Storage) -> list[str]:
    return sorted(Manifests(storage, FOLDER).newest().names)


def test_a_file_is_like_one_of_apache_hudi(storage: Storage) -> None:
    append(LsmArchive(storage, FOLDER), [*some(1), Row(instant(2, "clean"), b"done", b"plan"), Row(instant(3), b"")])
    (theirs,) = (pq.ParquetFile(path) for path in THEIRS.glob("*926145_0.parquet"))
    ours = pq.ParquetFile(storage.open_input(f"{FOLDER}/0001_0003_0.parquet"))

    assert ours.schema_arrow.remove_metadata() == theirs.schema_arrow.remove_metadata()
    assert ours.metadata.metadata == theirs.metadata.metadata
    assert {ours.metadata.row_group(0).column(leaf).compression for leaf in range(6)} == {"GZIP"}
    assert ours.read().column("plan").to_pylist() == [None, b"plan", None]
    assert ours.read().column("metadata").to_pylist() == [b"body 1", b"done", None]
    assert ours.read().column("version").to_pylist() == [1, 1, 1]


def test_large_instants_are_found_without_reading_all(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "row group size of archive files", 10)
    append(LsmArchive(storage, FOLDER), some(*range(1, 8)))

    assert pq.ParquetFile(storage.open_input(f"{FOLDER}/0001_0007_0.parquet")).num_row_groups == 4
    assert LsmArchive(storage, FOLDER).bodies([instant(3), instant(6)]) == {
        instant(3): b"body 3",
        instant(6): b"body 6",
    }


@pytest.mark.parametrize("there", [b"", b"PAR1 and no more", b"others"], ids=["empty", "torn", "others"])
def test_a_file_that_a_crash_left_is_replaced(storage: Storage, there: bytes) -> None:
    if there == b"others":
        append(LsmArchive(storage, "elsewhere"), some(1, 3))
        there = storage.read("elsewhere/0001_0003_0.parquet")
    storage.write(f"{FOLDER}/0001_0003_0.parquet", there)
    append(LsmArchive(storage, FOLDER), some(1, 2, 3))

    assert LsmArchive(storage, FOLDER).instants() == (instant(1), instant(2), instant(3))


@pytest.mark.parametrize("theirs", [(1, 2), (1, 2, 3, 4), (2, 3)], ids=["fewer", "more", "others"])
@pytest.mark.parametrize("before", [[], [0]], ids=["the first manifest", "a later one"])
def test_what_others_archive_before_the_manifest_is_archived_once(
    storage: Storage, theirs: tuple[int, ...], before: list[int]
) -> None:
    if before:
        append(LsmArchive(storage, FOLDER), some(*before))

    def others() -> None:
        append(LsmArchive(storage, FOLDER), some(*theirs))

    # The file is made, and its manifest is not.
    ours = FaultyStorage(storage, Stop(at=2, awake=True, meanwhile=others))
    append(LsmArchive(ours, FOLDER), some(1, 2, 3))  # type: ignore[arg-type]

    files = Manifests(storage, FOLDER).newest().files
    found = [one.requested_time for file in files for one in LsmArchive(storage, FOLDER).instants_in([file])]
    assert sorted(found) == [f"{number:04d}" for number in sorted({1, 2, 3, *theirs, *before})]


def test_a_file_that_counts_already_is_left_alone(storage: Storage) -> None:
    before = append(LsmArchive(storage, FOLDER), [replace(row, plan=b"plan") for row in some(1, 2)])

    assert append(LsmArchive(storage, FOLDER), some(1, 2)) == before


def test_the_oldest_files_of_each_level_are_merged(storage: Storage) -> None:
    merges = []
    for number in range(1, 9):
        append(LsmArchive(storage, FOLDER), some(2 * number, 2 * number + 1))
        merges.append(merge_levels(LsmArchive(storage, FOLDER), ASIDE, 2))

    assert [[one.name for one in done] for done in merges] == [
        [],
        ["0002_0005_1.parquet"],
        [],
        ["0006_0009_1.parquet", "0002_0009_2.parquet"],
        [],
        ["0010_0013_1.parquet"],
        [],
        ["0014_0017_1.parquet", "0010_0017_2.parquet", "0002_0017_3.parquet"],
    ]
    assert names(storage) == ["0002_0017_3.parquet"]
    assert LsmArchive(storage, FOLDER).instants() == tuple(map(instant, range(2, 18)))
    assert len(LsmArchive(storage, FOLDER).bodies(map(instant, range(2, 18)))) == 16


def test_files_that_are_large_alone_are_not_merged(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 5):
        append(LsmArchive(storage, FOLDER), some(number))
    file_size = Manifests(storage, FOLDER).newest().files[0].size
    patch_seam(monkeypatch, "target size of archive files", file_size - 1)
    assert merge_levels(LsmArchive(storage, FOLDER), ASIDE, 3) == []
    patch_seam(monkeypatch, "target size of archive files", file_size + 1)

    assert [merged.inputs for merged in merge_levels(LsmArchive(storage, FOLDER), ASIDE, 3)] == [
        ("0001_0001_0.parquet", "0002_0002_0.parquet")
    ]


def test_files_of_apache_hudi_are_merged_as_they_are(storage: Storage) -> None:
    for path in THEIRS.iterdir():
        storage.write(f"{FOLDER}/{path.name}", path.read_bytes())
    archived_instants = LsmArchive(storage, FOLDER).instants()
    bodies = LsmArchive(storage, FOLDER).bodies(archived_instants)
    merge_levels(LsmArchive(storage, FOLDER), ASIDE, 2)

    assert names(storage) == ["20261121122910028_20261121122934270_1.parquet"]
    assert LsmArchive(storage, FOLDER).instants() == archived_instants
    assert LsmArchive(storage, FOLDER).bodies(archived_instants) == bodies
    assert storage.read(f"{FOLDER}/_version_") == b"3"


def test_few_manifests_stay_with_what_they_name(storage: Storage) -> None:
    """What no manifest names may be about to be named; in the end it is litter."""
    for number in range(1, 7):
        append(LsmArchive(storage, FOLDER), some(number))
    merge_levels(LsmArchive(storage, FOLDER), ASIDE, 6)
    storage.write(f"{FOLDER}/0090_0091_0.parquet", b"in the making")
    tidy(LsmArchive(storage, FOLDER), 1)
    left = {info.path.rpartition("/")[2] for info in storage.list(FOLDER)}

    assert {name for name in left if name.startswith("manifest")} == {f"manifest_{number}" for number in range(4, 8)}
    assert {"0001_0001_0.parquet", "0001_0006_1.parquet", "0090_0091_0.parquet"} <= left
    for number in range(10, 14):
        append(LsmArchive(storage, FOLDER), some(number))
    tidy(LsmArchive(storage, FOLDER), 0)
    left = {info.path.rpartition("/")[2] for info in storage.list(FOLDER)}
    assert "0001_0001_0.parquet" not in left
    assert "0001_0006_1.parquet" in left
    assert LsmArchive(storage, FOLDER).instants()[-1] == instant(13)


def test_the_youngest_are_found_first(storage: Storage) -> None:
    append(LsmArchive(storage, FOLDER), some(1, 2, 3))
    append(LsmArchive(storage, FOLDER), some(2, 9))
    append(LsmArchive(storage, FOLDER), some(4, 5))
    storage.write(f"{FOLDER}/0001_0003_0.parquet", b"not opened")

    assert LsmArchive(storage, FOLDER).newest(2, frozenset({instant(9).identity})) == (instant(5), instant(4))
