"""Real processes write to three tables at once, and are killed and paused: what they know to be written is there."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from support.made.begun_metadata import assert_in_use
from support.rules.ends import assert_whole
from support.storms.storm import Report, Storm, Weather
from support.storms.work import TABLES, WITH_METADATA

# Of make test-long.
MINUTES = float(os.environ.get("PYHUDI_STORM_MINUTES", "30"))
TOLERANCE_S = float(os.environ.get("PYHUDI_STORM_TOLERANCE_S", "120"))
SEED = int(os.environ.get("PYHUDI_STORM_SEED", "0")) or int(time.time())


def pass_through(folder: Path, weather: Weather) -> Report:
    """Let a storm pass; fail where a table does not hold what it must."""
    storm = Storm(folder, weather)
    try:
        storm.rage()
        storm.calm()
        wrong = storm.mistakes()
    finally:
        storm.stop_all()
    for name in TABLES:
        try:
            if name in WITH_METADATA:
                assert_in_use(folder / "tables" / name)
            assert_whole(folder / "tables" / name, written_down=False, deep=True, tolerated=())
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    report = storm.report()
    assert not wrong, "\n".join([str(report), *wrong[:40]])
    return report


@pytest.mark.slow
def test_a_short_storm_without_spark_loses_nothing(tmp_path: Path) -> None:
    report = pass_through(tmp_path, Weather(seconds=6, tolerance_s=2, seed=1, writers=3, spark=False))
    assert report.acknowledged
    assert report.kills


@pytest.mark.long
def test_what_processes_know_to_be_written_outlives_a_storm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each acknowledged write is there, none twice, and three readers agree."""
    report = pass_through(tmp_path, Weather(MINUTES * 60, TOLERANCE_S, SEED))
    with capsys.disabled():
        sys.stdout.write(f"\n{report}\n")
    share = MINUTES / 30
    assert report.acknowledged >= int(200 * share)
    assert report.conflicts >= int(20 * share)
    assert report.kills >= int(5 * share)
    assert report.pauses >= int(3 * share)
    assert report.dead
