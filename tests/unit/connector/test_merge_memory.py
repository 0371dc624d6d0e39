"""Whose option bounds the memory of merging: followed from where a user writes it to what waits on disk."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.connector.jobs import main
from pyhudi.connector.source.reader import HudiReader
from pyhudi.options.parsing import parse_options
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.table.merging.meet import Encounter
from support.by_options import write_without_spark
from support.made.compacting import SCHEMA, in_bases, merged
from support.recorded.hudi_options import SMALL
from support.seams import patch_seam, read_seam

ROWS = 8_000
TIGHT, ROOMY = str(1 << 20), str(1 << 28)
OPTIONS = {
    **SMALL,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline": "false",
}


def upsert(table: Path, value: int, count: int = ROWS, **more: str) -> None:
    """Write rows whose keys alone, of which nothing can be left for later, are two megabytes."""
    keys = [f"{n:0250}" for n in range(count)]
    some = {"id": keys, "p": ["a"] * count, "ts": [value] * count, "value": [value] * count}
    options = {**OPTIONS, **{name.replace("__", "."): text for name, text in more.items()}}
    write_without_spark(table, pa.table(some, schema=SCHEMA), options)


@pytest.fixture
def spilt(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """In how many parts each merge was spread on disk."""
    seen: list[int] = []
    deal_out = read_seam("spill rows of a merge")

    def counted(self: Encounter, batches: Any, parts: int, writer: Any) -> None:
        seen.append(parts)
        deal_out(self, batches, parts, writer)

    patch_seam(monkeypatch, "spill rows of a merge", counted)
    return seen


def read(table: Path, memory: str) -> None:
    options = parse_options({"hoodie.memory.merge.max.size": memory})
    snapshot = open_snapshot(str(table))
    reader = pickle.loads(pickle.dumps(HudiReader(snapshot, snapshot.schema, options)))  # noqa: S301
    values = [
        one for split in reader.partitions() for batch in reader.read(split) for one in batch["value"].to_pylist()
    ]
    assert values == [2] * ROWS


def compact_by_job(table: Path, memory: str) -> None:
    assert main(["compact", "--path", str(table), "--option", f"hoodie.write.task.max.size={memory}"]) == 0


def compact_by_write(table: Path, memory: str) -> None:
    more = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    upsert(table, 2, 1, **more, **{"hoodie.write.task.max.size": memory})


@pytest.mark.parametrize("merge", [read, compact_by_job, compact_by_write])
def test_what_merging_may_take_is_what_the_option_says(
    tmp_path: Path, spilt: list[int], merge: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    tables = [tmp_path / memory for memory in (ROOMY, TIGHT)]
    for table in tables:
        upsert(table, 1)
        upsert(table, 2)
    assert not spilt

    merge(tables[0], ROOMY)
    assert not spilt
    merge(tables[1], TIGHT)
    assert spilt
    assert all(parts > 1 for parts in spilt)
    if merge is not read:
        assert in_bases(tables[0]) == in_bases(tables[1]) == merged(tables[1])
        assert len(in_bases(tables[1])) == ROWS
    for line in capsys.readouterr().out.splitlines():
        assert json.loads(line)["log_files"] == 1
