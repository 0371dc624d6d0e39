"""The pipelines in examples/ end with what they expect, with fewer files than when they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.scripts import EXAMPLES, script


@pytest.mark.slow
def test_rides_are_cleaned_and_summed_up(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rides = script("rides", EXAMPLES)

    assert rides.run(spark, rides.Places(str(tmp_path)), files=6, every=0.2)
    assert f"{6 * rides.RIDES_A_FILE:,} rides of 6 files" in capsys.readouterr().out


@pytest.mark.slow
def test_a_stream_and_a_batch_write_one_table_beside_services(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meters = script("meters", EXAMPLES)

    assert meters.run(spark, str(tmp_path), files=8, hour=1.0)
    assert f"{meters.METERS:,} meters" in capsys.readouterr().out
