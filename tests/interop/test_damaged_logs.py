"""Log files that were cut, given up by name: Apache Hudi and hudi-rs read and continue what a repair leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import read_hudi_rs
from interop.writer import write_without_spark
from pyhudi.errors import CorruptFileError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.services.compaction.repair import repair
from pyhudi.operations.upkeep.after_write import means_of
from pyhudi.storage import open_storage
from support.made.compacting import run, schedule
from support.readers import read_without_spark
from support.recorded.hudi_options import SMALL
from support.rules.health import codes, errors

pytestmark = pytest.mark.interop

OPTIONS = {
    **SMALL,
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
}
FORM = "hoodie.logfile.data.block.format"


def rows(*keys: int, ts: int, p: str = "a") -> pa.Table:
    count = len(keys)
    columns = {"id": [f"k{key}" for key in keys], "p": [p] * count, "ts": pa.array([ts] * count, pa.int64())}
    return pa.table({**columns, "n": pa.array([ts * 10] * count, pa.int64())})


def shown(found: pa.Table) -> dict[str, int]:
    assert len(set(found["id"].to_pylist())) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


def check(path: Path, apache: ApacheHudi, expected: dict[str, int]) -> None:
    for reader, stored_rows in {
        "pyhudi": read_without_spark(path),
        "Apache Hudi": apache.read(path),
        "hudi-rs": read_hudi_rs(path),
    }.items():
        assert shown(stored_rows) == expected, reader
    assert errors(path) == []


def cut_newest_log(path: Path) -> str:
    """Cut the end off the newest log file, and return its name."""
    logs = [one for one in path.rglob(".*.log.*") if not one.name.endswith(".crc")]
    log = max(logs, key=lambda one: one.name.partition(".log.")[0].rpartition("_")[2])
    log.write_bytes(log.read_bytes()[:-5])
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    return log.relative_to(path).as_posix()


@pytest.mark.parametrize("form", ["parquet", "avro"])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_what_a_repair_leaves_is_read_and_continued_by_all(
    tmp_path: Path, apache: ApacheHudi, writer: str, form: str
) -> None:
    path, options = tmp_path / "t", {**OPTIONS, FORM: form}

    def write(some: pa.Table) -> None:
        if writer == "ours":
            write_without_spark(path, some, options)
        else:
            apache.write(path, some, options)

    write(rows(1, 2, 3, ts=1))
    write(rows(1, ts=2))
    write(rows(2, 4, ts=3))
    check(path, apache, {"k1": 2, "k2": 3, "k3": 1, "k4": 3})
    name = cut_newest_log(path)
    for refused in (read_without_spark, run):
        with pytest.raises(CorruptFileError, match=re.escape(f"repair(accept_loss=['{name}'])")):
            refused(path)
    assert "LOG_DAMAGED" in codes(path)

    repair(open_storage(str(path)), [name], means_of(WriteSettings()))

    check(path, apache, {"k1": 2, "k2": 1, "k3": 1})
    apache.write(path, rows(2, 4, ts=4), options)
    check(path, apache, {"k1": 2, "k2": 4, "k3": 1, "k4": 4})
    write_without_spark(path, rows(3, 5, ts=5), options)
    schedule(path)
    assert apache.sql(
        f"call run_compaction(op => 'run', path => '{path}', "
        "options => 'hoodie.datasource.write.recordkey.field=id,hoodie.bucket.index.num.buckets=1,"
        "hoodie.metadata.enable=false')"
    )
    check(path, apache, {"k1": 2, "k2": 4, "k3": 5, "k4": 4, "k5": 5})


@pytest.mark.parametrize(
    ("index", "continues"),
    [("SIMPLE", "ours"), ("BLOOM", "theirs"), ("GLOBAL_SIMPLE", "theirs"), ("GLOBAL_BLOOM", "ours")],
)
def test_the_next_upsert_after_a_repair_finds_its_keys(
    tmp_path: Path, apache: ApacheHudi, index: str, continues: str
) -> None:
    """Under every index that looks keys up; the test above has the BUCKET index."""
    path = tmp_path / "t"
    options = {key: value for key, value in OPTIONS.items() if "bucket" not in key} | {"hoodie.index.type": index}
    for keys, ts in (((1, 2, 3), 1), ((1,), 2), ((2,), 3)):
        write_without_spark(path, rows(*keys, ts=ts), options)
    name = cut_newest_log(path)
    with pytest.raises(CorruptFileError, match=re.escape(f"repair(accept_loss=['{name}'])")):
        read_without_spark(path)

    repair(open_storage(str(path)), [name], means_of(WriteSettings()))

    check(path, apache, {"k1": 2, "k2": 1, "k3": 1})
    # Where keys are unique in the whole table, a row of another partition updates the one that is there.
    newer = rows(2, 4, ts=4, p="b" if index.startswith("GLOBAL") else "a")
    if continues == "ours":
        write_without_spark(path, newer, options)
    else:
        apache.write(path, newer, options)
    check(path, apache, {"k1": 2, "k2": 4, "k3": 1, "k4": 4})
