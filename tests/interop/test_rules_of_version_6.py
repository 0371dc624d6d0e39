"""Tables of version 6 that Apache Hudi 0.15, 1.2 and pyhudi write in turns: the same row wins everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import properties
from pyhudi.arrow import Table
from pyhudi.table.config import property_keys as key
from support.readers import read_without_spark
from support.recorded.recorded_version_6 import OLD, shown
from support.rules.health import errors

pytestmark = pytest.mark.interop

MODEL = "org.apache.hudi.common.model"
# Apache Hudi keeps the options of a table's writers nowhere.
KEYED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id,b",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.metadata.enable": "false",
}
SIMPLE = {"hoodie.index.type": "SIMPLE"}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "5"}
AS_SIX = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheHudi]:
    process = ApacheHudi(tmp_path_factory.mktemp("apache-hudi-0.15"), release=OLD)
    yield process
    process.close()


def rows(name: str, ts: int, *keys: str, b: str = "x") -> pa.Table:
    count = len(keys)
    return pa.table(
        {
            "id": list(keys),
            "b": [b] * count,
            "p": ["a"] * count,
            "name": [name] * count,
            "ts": pa.array([ts] * count, pa.int64()),
        }
    )


def names(table: Path) -> dict[str, str]:
    found = read_without_spark(table)
    assert len(set(found["_hoodie_record_key"].to_pylist())) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))


def make(made_by: str, table: Path, old: ApacheHudi, apache: ApacheHudi, options: Mapping[str, str]) -> None:
    first = rows("first", 10, "k0", "k1", "k2", "k3")
    if made_by == "pyhudi":
        said = {"hoodie.write.table.version": "6", **options}
        Table.create(table, first.schema, record_key=["id", "b"], partition_by="p", order_by="ts", options=said)
        Table(table).upsert(first)
    elif made_by == "0.15":
        old.write(table, first, {**KEYED, **options})
    else:
        apache.write(table, first, {**KEYED, **options, **AS_SIX})


@pytest.mark.parametrize(
    ("made_by", "index", "decides", "newest_wins"),
    [
        ("0.15", SIMPLE, {}, True),
        ("0.15", BUCKETS, {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"}, False),
        ("1.2", BUCKETS, {}, False),
        ("pyhudi", SIMPLE, {}, False),
        ("pyhudi", BUCKETS, {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}, True),
    ],
    ids=str,
)
def test_the_same_row_wins_whoever_writes(
    made_by: str,
    index: dict[str, str],
    decides: dict[str, str],
    newest_wins: bool,
    tmp_path: Path,
    old: ApacheHudi,
    apache: ApacheHudi,
) -> None:
    table = tmp_path / "t"
    make(made_by, table, old, apache, {**index, **(decides if made_by == "pyhudi" else {})})

    Table(table).upsert(rows("lower by pyhudi", 5, "k0"), **index, **({} if made_by == "pyhudi" else decides))
    decided = properties(table)
    old.write(table, rows("lower by 0.15", 5, "k1"), {**KEYED, **index})
    apache.write(table, rows("lower by 1.2", 5, "k2"), {**KEYED, **index, **AS_SIX})
    Table(table).upsert(rows("lower by pyhudi", 4, "k1"))
    Table(table).upsert(rows("higher by pyhudi", 20, "k3"))

    lower = {"k0": "lower by pyhudi", "k1": "lower by pyhudi", "k2": "lower by 1.2"}
    expected = lower if newest_wins else dict.fromkeys(lower, "first")
    assert names(table) == {**expected, "k3": "higher by pyhudi"}
    assert shown(old.read(table)) == shown(apache.read(table)) == shown(read_without_spark(table))
    payload = "OverwriteWithLatestAvroPayload" if newest_wins else "DefaultHoodieRecordPayload"
    assert decided[key.PAYLOAD_CLASS] == f"{MODEL}.{payload}"
    assert properties(table) == decided
    assert errors(table) == []


@pytest.mark.parametrize("made_by", ["0.15", "1.2"])
def test_disputed_keys_stay_where_the_release_that_made_the_table_finds_them(
    made_by: str, tmp_path: Path, old: ApacheHudi, apache: ApacheHudi
) -> None:
    """With this value in the key, each release has another bucket for it."""
    table = tmp_path / "t"
    make(made_by, table, old, apache, BUCKETS)
    writer, more = (old, {}) if made_by == "0.15" else (apache, AS_SIX)
    writer.write(table, rows("first", 10, "k5", "k7", b="q,r"), {**KEYED, **BUCKETS, **more})

    Table(table).upsert(rows("second", 20, "k5", "k6", b="q,r"), **BUCKETS)
    writer.write(table, rows("third", 30, "k6", "k7", b="q,r"), {**KEYED, **BUCKETS, **more})

    found = names(table)
    assert {one: found[one] for one in ("k5", "k6", "k7")} == {"k5": "second", "k6": "third", "k7": "third"}
    assert errors(table) == []
