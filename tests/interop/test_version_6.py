"""Copy-on-write tables of version 6, by turns with Apache Hudi 0.15, and with 1.2 that is told to leave the version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi, data_files
from interop.both import BASE, BY, OPTIONS, UPKEPT, VERSION, Both, write_defaults_by_turns
from interop.instants import properties
from interop.scenarios import BUCKETS
from pyhudi.arrow import Table
from pyhudi.operations.inspect.history import history
from pyhudi.storage import open_storage

pytestmark = pytest.mark.interop

STAYS = {VERSION: "6", "hoodie.write.auto.upgrade": "false"}
# 0.15 has the newest row win unless each write says otherwise.
EVENT_TIME = {
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.payload.ordering.field": "ts",
}
SIX = {**OPTIONS, **STAYS, **EVENT_TIME}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheHudi]:
    """Apache Hudi 0.15, which makes tables of version 6 alone."""
    process = ApacheHudi(tmp_path_factory.mktemp("apache-hudi-0-15"), release="0.15.0")
    yield process
    process.close()


def test_both_write_and_keep_up_a_table_that_pyhudi_made(tmp_path: Path, older: ApacheHudi) -> None:
    both = Both(tmp_path / "a table", older, SIX)
    table = Table(both.path)
    both.ours(BASE)
    made = properties(both.path)
    both.theirs("k0 20, k1 5, -k2 20, -k3 5, n20 10")
    both.ours("k0 15, k4 20, -k5 20, -n20 5, n21 10")
    both.check()
    both.theirs("k6 0, x99 0", "delete")
    both.ours("k7 0, n20 0", "delete")
    both.check()

    saved = table.savepoint().instant
    held = dict(both.held)
    both.theirs("k8 20, n22 10")
    both.ours("k8 30")
    table.restore(saved)
    both.held = held
    both.check()
    table.delete_savepoint(saved)
    both.theirs("k9 20, n23 10")
    held = dict(both.held)
    table.rollback(both.ours("k9 30"))
    both.held = held
    both.check()

    for number in range(3):
        both.ours(f"k0 {90 + number}, k11 {20 + number}")
    assert table.clean(retain=1).files
    table.archive(keep=2)
    assert list((both.path / ".hoodie/archived").glob(".commits_.archive.*"))
    for number in range(4):
        both.theirs(f"k0 {100 + number}", **UPKEPT)
    both.ours("k0 200")
    both.check()
    assert {name: text for name, text in properties(both.path).items() if "table.metadata." not in name} == made
    assert saved in history(open_storage(str(both.path))).column("instant").to_pylist()


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
def test_each_finds_the_rows_of_the_other(index: str, tmp_path: Path, older: ApacheHudi, apache: ApacheHudi) -> None:
    """One of the others is as new as pyhudi, and its files take in new keys."""
    options = {name: text for name, text in SIX.items() if name != BUCKETS}
    both = Both(tmp_path / "t", older, {**options, "hoodie.index.type": index})
    both.ours(BASE)
    files = data_files(both.path)
    both.theirs("k0 20, k1 5, -k2 20, -k3 5, n20 10, n21 10")
    assert len(data_files(both.path) - files) == len(files), "of each group, and of no other"
    both.ours("k0 15, k1 20, k4 20, n20 20, -n21 20, n22 10, n23 10")
    both.apache = apache
    both.theirs("k5 0, n22 0", "delete")
    both.ours("k6 0, n20 0", "delete")
    both.theirs("k0 30, k4 5, n23 20, n24 10, n25 10")
    both.check()
    assert properties(both.path)["hoodie.table.version"] == "6"


def test_a_table_without_ordering_fields_is_written_by_three(
    tmp_path: Path, older: ApacheHudi, apache: ApacheHudi
) -> None:
    """The later row wins, and a deleted key may come back."""
    both = Both(tmp_path / "t", older, {**{name: text for name, text in OPTIONS.items() if name != BY}, **STAYS})
    both.theirs(BASE)
    both.ours("k0 20, k1 5, -k2 20")
    both.apache = apache
    both.theirs("-k0 1, k3 1")
    both.ours("k1 0, k4 0", "delete")
    both.apache = older
    both.theirs("k0 2, k1 1, k4 3")
    both.check()


@pytest.mark.parametrize("release", ["0.15.0", "1.2.0"])
def test_a_table_of_theirs_with_its_defaults_is_written_by_both(
    release: str, tmp_path: Path, older: ApacheHudi, apache: ApacheHudi
) -> None:
    """A metadata table, which goes out of use, lookups by SIMPLE, and keys of one field under the generator COMPLEX."""
    theirs, path = {"0.15.0": older, "1.2.0": apache}[release], tmp_path / "t"
    write_defaults_by_turns(path, theirs, "k2", **STAYS, **{"hoodie.write.complex.keygen.validation.enable": "false"})
    assert properties(path)["hoodie.table.version"] == "6"
