"""The key by which `HudiTable` finds the instant of a write that Spark carries out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyhudi.connector.source.paths import WRITE_KEY
from pyhudi.connector.source.writer import HudiWriter
from pyhudi.errors import InvalidOptionError
from pyhudi.options.model import HudiOptions
from pyhudi.timeline.writers.write_notes import is_key, new_key
from pyspark.sql.types import LongType, StringType, StructField, StructType

SCHEMA = StructType([StructField("id", StringType()), StructField("n", LongType())])


def planned(path: Path, key: str | None) -> HudiWriter:
    options = HudiOptions(record_key=("id",), buckets=1)
    return HudiWriter.planned(str(path / "t"), options, SCHEMA, overwrite=False, spelled={WRITE_KEY: key})


def test_the_plan_has_the_key_that_the_call_chose(tmp_path: Path) -> None:
    key = new_key("UTC")

    assert planned(tmp_path, key)._plan.transaction.key == key


def test_a_plan_without_a_call_chooses_one(tmp_path: Path) -> None:
    assert is_key(planned(tmp_path, None)._plan.transaction.key)


@pytest.mark.parametrize("key", ["x", "../../2026112114/" + "0" * 32, "2026112114/" + "0" * 32 + "\n"])
def test_a_key_that_is_no_key_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidOptionError, match=WRITE_KEY):
        planned(tmp_path, key)
