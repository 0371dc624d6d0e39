"""What `validate` says of merge-on-read tables, healthy and sick."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyhudi.operations.checks.check_catalogue import ALL
from support.made.logged import Logged
from support.places import files_below
from support.rules.health import codes, findings
from support.sick.log_symptoms import LOG_SYMPTOMS, instant_in, make_logged, newest_logs, tear_unstated
from support.sick.spoiling import Symptom


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("healthy") / "t"
    make_logged(path)
    return path


@pytest.fixture
def table(healthy: Path, tmp_path: Path) -> Path:
    """A copy of the healthy table."""
    return Path(shutil.copytree(healthy, tmp_path / "t"))


def test_nothing_is_wrong_with_a_healthy_table_and_nothing_is_changed(table: Path) -> None:
    before = files_below(table)

    assert findings(table, stale_s=0) == []
    assert files_below(table) == before


def test_a_compaction_that_waits_is_healthy_whatever_completes_meanwhile(table: Path) -> None:
    """Nobody tells of it before it is old; a log file that completed after its request is none of its."""
    logged = Logged(table)
    late = logged.begin(1, value=7, partition="x")
    pending = logged.plan_compaction()
    logged.finish(late)
    logged.append(2, value=8, partition="x")

    assert findings(table) == []
    logged.finish(logged.execute(pending))
    assert findings(table) == []


@pytest.mark.parametrize("case", LOG_SYMPTOMS, ids=lambda case: f"{case.code}-{case.name}".replace(" ", "-"))
def test_each_sickness_is_told_with_its_place_and_cure(table: Path, case: Symptom) -> None:
    case.spoil(table)
    if case.deep:
        assert case.code not in codes(table, deep=False)

    case_findings = [one for one in findings(table, deep=case.deep, stale_s=0) if one["code"] == case.code]

    assert any(case.says in f"{one['file']} {one['what']}" for one in case_findings), case_findings
    (sickness,) = (one for one in ALL if one.code == case.code)
    assert {(one["severity"], one["cure"]) for one in case_findings} == {(sickness.severity, sickness.cure)}


def test_a_torn_block_is_told_with_its_file_and_place(table: Path) -> None:
    whole = newest_logs(table)[0].stat().st_size
    log = tear_unstated(table, b"#HUDI#\0\0\0\0\0\0\xff\xff")

    [finding] = [one for one in findings(table) if one["code"] == "TORN_BLOCK"]

    assert (finding["file"], finding["instant"]) == (log.relative_to(table).as_posix(), instant_in(log))
    assert f"14 bytes from byte {whole} on" in finding["what"]


def test_noise_in_any_log_file_raises_nothing(table: Path) -> None:
    for log in newest_logs(table):
        data = log.read_bytes()
        half = len(data) // 2
        for bad in (b"", data[:half], data[:half] + b"\xff\0\xee" + data[half + 3 :]):
            log.write_bytes(bad)
            assert findings(table)
        log.write_bytes(data)
    assert findings(table) == []
