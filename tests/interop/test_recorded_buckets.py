"""Tables whose buckets Apache Hudi records in files of its own: pyhudi reads them and refuses to write them by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.writer import write_without_spark
from pyhudi.errors import UnsupportedTableError
from support.readers import read_without_spark
from support.recorded.hudi_options import SMALL
from support.rules.health import errors

pytestmark = pytest.mark.interop

RINGS = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "4",
}
# What a job that says nothing of the index gives.
PLAIN = {key: value for key, value in SMALL.items() if key != "hoodie.index.type"}


def rows(*keys: int, ts: int) -> pa.Table:
    count = len(keys)
    columns = {"id": [f"k{key}" for key in keys], "p": ["ab"[key % 2] for key in keys]}
    return pa.table({**columns, "ts": pa.array([ts] * count, pa.int64())})


def shown(found: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    "asked",
    [{}, {"hoodie.index.type": "SIMPLE"}, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}],
    ids=["nothing", "SIMPLE", "BUCKET"],
)
def test_pyhudi_refuses_the_write_and_apache_hudi_goes_on(
    tmp_path: Path, apache: ApacheHudi, asked: dict[str, str]
) -> None:
    path, options = tmp_path / "t", {**SMALL, **RINGS}
    apache.write(path, rows(*range(12), ts=1), options)
    expected = [(f"k{number}", 1) for number in range(12)]
    assert shown(read_without_spark(path)) == sorted(expected)

    with pytest.raises(UnsupportedTableError, match="CONSISTENT_HASHING"):
        write_without_spark(path, rows(1, 2, 20, ts=2), {**PLAIN, **asked})

    assert errors(path) == []
    apache.write(path, rows(1, 2, 20, ts=2), options)
    after = sorted([*(one for one in expected if one[0] not in {"k1", "k2"}), ("k1", 2), ("k2", 2), ("k20", 2)])
    assert shown(apache.read(path)) == shown(read_without_spark(path)) == after
