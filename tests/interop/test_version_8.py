"""Tables of version 8, by turns with Apache Hudi 1.0.2, and with 1.2 before it upgrades them and after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi, data_files
from interop.both import BASE, BY, UPKEPT, VERSION, Both, write_defaults_by_turns
from interop.both import OPTIONS as PLAIN
from interop.instants import properties
from interop.readers import read_hudi_rs
from interop.scenarios import BUCKETS
from pyhudi.arrow import Table
from pyhudi.operations.inspect.history import history
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.log_blocks import BlockType
from pyhudi.table.files.logs.log_file import read_blocks
from support.made.compacting import join, run, schedule, slices
from support.readers import read_without_spark

pytestmark = pytest.mark.interop

OPTIONS = {**PLAIN, VERSION: "8"}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheHudi]:
    """Apache Hudi 1.0.2, whose own version 8 is."""
    process = ApacheHudi(tmp_path_factory.mktemp("apache-hudi-1-0"), release="1.0.2")
    yield process
    process.close()


def test_both_write_and_keep_up_a_table_that_pyhudi_made(tmp_path: Path, older: ApacheHudi) -> None:
    """Tables without log files are written by both below, where keys are looked up."""
    both = Both(tmp_path / "a table", older, {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    both.ours(BASE)
    made = properties(both.path)
    both.theirs("k0 20, k1 5, -k2 20, -k3 5, n20 10")
    both.ours("k0 15, k4 20, -k5 20, -n20 5, n21 10")
    both.check()
    # No such key comes back: 1.0.2 reads no slice of log files in which one does, whoever wrote it.
    both.theirs("k6 0, x99 0", "delete")
    both.ours("k7 0, x99 0", "delete")
    both.check()
    assert join(both.path).files
    assert schedule(both.path).instant
    both.theirs("k8 30, -k9 30")
    both.compaction("run")
    both.check()
    both.compaction("schedule")
    both.ours("k8 40, k10 40")
    assert run(both.path).files
    both.check()
    storage = open_storage(str(both.path))
    saved, held = both.ours("k0 50, n22 1"), dict(both.held)
    savepoint(storage, saved)
    both.theirs("k0 60, -n22 60")
    kept = dict(both.held)
    rollback(storage, both.ours("k0 70"))
    both.held = kept
    both.check()
    restore(storage, saved)
    both.held = held
    both.check()
    both.theirs("k0 80, n23 1")
    delete_savepoint(storage, saved)
    for number in range(3):
        both.ours(f"k0 {90 + number}, k11 {20 + number}")
    assert clean(storage, CleanSettings(commits=1)).files
    archive(storage, ArchiveSettings(min_commits=2, max_commits=3, batch=1), CleanSettings(commits=1))
    assert list((both.path / ".hoodie/timeline/history").glob("*.parquet"))
    for number in range(2):
        both.theirs(f"k0 {100 + number}", **UPKEPT)
    both.ours("k0 200")
    both.check()
    assert {key: value for key, value in properties(both.path).items() if "table.metadata." not in key} == made
    assert saved in history(storage).column("instant").to_pylist()


def test_both_write_a_table_without_ordering_fields(tmp_path: Path, older: ApacheHudi) -> None:
    """The later row wins, and a deleted key may come back."""
    options = {key: value for key, value in OPTIONS.items() if key != BY}
    both = Both(tmp_path / "t", older, {**options, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    both.ours(BASE)
    both.theirs("k0 20, k1 5, -k2 20")
    both.ours("-k0 1, k3 1")
    both.ours("k1 0, k4 0", "delete")
    both.check()
    both.theirs("k0 2, k1 1, k4 3")
    both.check()


def test_several_blocks_of_one_write_are_read_and_compacted(tmp_path: Path, older: ApacheHudi) -> None:
    """1.0.2 reads the header that keeps our checksum as the numbers of an attempt and of a block."""
    form = {"hoodie.logfile.data.block.format": "avro", "hoodie.logfile.data.block.max.size": "64"}
    options = {**OPTIONS, BUCKETS: "1", "hoodie.datasource.write.table.type": "MERGE_ON_READ", **form}
    both = Both(tmp_path / "t", older, options)
    both.ours(BASE)
    written = both.ours(", ".join([*(f"k{n} 20" for n in range(6)), "-k6 20", "-k7 20", "n20 10"]))
    both.ours("k8 0, k9 0", "delete")
    both.check()
    storage = open_storage(str(both.path))
    logs = [log.path for file_slice in slices(both.path) for log in file_slice.logs if log.named_time == written]
    kinds = [block.type for path in logs for block in read_blocks(storage, path)]
    assert kinds.count(BlockType.AVRO) > 2
    assert BlockType.DELETE in kinds

    both.theirs("k0 30, k1 5, -k2 30")
    both.ours("k3 30, -k4 30, k5 5")
    both.check()
    both.compaction("schedule")
    both.compaction("run")
    both.check()
    assert not any(file_slice.logs for file_slice in slices(both.path))


# The other four are in test_lookup_indexes.py.
@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ("SIMPLE", "MERGE_ON_READ"),
        ("BLOOM", "COPY_ON_WRITE"),
        ("GLOBAL_SIMPLE", "COPY_ON_WRITE"),
        ("GLOBAL_BLOOM", "MERGE_ON_READ"),
    ],
)
def test_each_finds_the_rows_of_the_other(index: str, kind: str, tmp_path: Path, older: ApacheHudi) -> None:
    """Whose small files take in new keys, which on merge on read makes base files of their groups."""
    options = {key: value for key, value in OPTIONS.items() if key != BUCKETS}
    said = {"hoodie.index.type": index, "hoodie.datasource.write.table.type": kind}
    both = Both(tmp_path / "t", older, {**options, **said})
    both.ours(BASE)
    files = data_files(both.path)
    both.theirs("k0 20, k1 5, -k2 20, -k3 5, n20 10, n21 10")
    assert len(data_files(both.path) - files) == len(files), "of each group, and of no other"
    both.ours("k0 15, k1 20, k4 20, n20 20, -n21 20, n22 10, n23 10")
    both.theirs("k5 0, n22 0", "delete")
    both.ours("k6 0, n20 0", "delete")
    both.theirs("k0 30, k4 5, n23 20, n24 10, n25 10")
    both.check()


def test_a_table_of_theirs_with_its_defaults_is_written_by_both(tmp_path: Path, older: ApacheHudi) -> None:
    """A metadata table, lookups by SIMPLE, and keys of one field that are bare though the generator is COMPLEX."""
    path = tmp_path / "t"
    write_defaults_by_turns(path, older, "id:k2")

    for found in (older.read(path), read_without_spark(path), read_hudi_rs(path)):
        assert found.column("_hoodie_record_key").to_pylist() == found.column("id").to_pylist()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_goes_on_when_apache_hudi_upgrades_it(kind: str, tmp_path: Path, apache: ApacheHudi) -> None:
    """Which its newer releases do with every write that does not forbid it."""
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind, "hoodie.write.auto.upgrade": "false"}
    both = Both(tmp_path / "a table", apache, options)
    both.theirs(BASE)
    assert properties(both.path)["hoodie.table.version"] == "8"
    both.ours("k0 20, k1 5, -k2 20, n20 10")
    both.theirs("k0 15, k3 20, -n20 10")
    both.ours("k4 0", "delete")
    both.check()

    newer = {key: value for key, value in options.items() if key != VERSION}
    both.options = {**newer, "hoodie.write.auto.upgrade": "true"}
    both.theirs("k5 20, -k6 20")
    assert properties(both.path)["hoodie.table.version"] == "9"
    both.ours("k5 15, k7 20, -k8 20")
    if kind == "MERGE_ON_READ":
        assert run(both.path).files
    both.theirs("k7 30, n21 10")
    both.check()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_goes_on_when_pyhudi_upgrades_and_downgrades_it(
    kind: str, tmp_path: Path, older: ApacheHudi, apache: ApacheHudi
) -> None:
    """By the release that each version is of, with a metadata table, which is built anew."""
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind, "hoodie.metadata.enable": "true"}
    both, table = Both(tmp_path / "a table", older, options), Table(tmp_path / "a table")
    both.theirs(BASE)
    both.theirs("k0 20, k1 5, -k2 20, n20 10")
    assert "files" in properties(both.path)["hoodie.table.metadata.partitions"]
    done = table.upgrade()
    assert (done.from_version, done.to_version, done.changed_keys) == (8, 9, 0)
    assert "files" in properties(both.path)["hoodie.table.metadata.partitions"]

    both.apache, both.options = apache, {key: value for key, value in options.items() if key != VERSION}
    both.check()
    both.theirs("k0 15, k3 20, -n20 20, n21 10")
    assert properties(both.path)["hoodie.table.version"] == "9"
    both.ours("k4 20, -k5 20")
    both.theirs("k6 30, k7 5")
    both.check()
    table.downgrade()
    assert properties(both.path)["hoodie.table.version"] == "8"

    both.apache, both.options = older, options
    both.check()
    both.theirs("k8 20, k0 17, -k9 20, n22 10")
    both.ours("k10 20, n22 5")
    both.theirs("k11 20, k10 10")
    # The downgrade built base files in the schema of 1.2, and 1.0.2 writes log files in its own: hudi-rs wants one.
    assert table.compact_metadata().instant
    both.check()
    assert properties(both.path)["hoodie.table.version"] == "8"
