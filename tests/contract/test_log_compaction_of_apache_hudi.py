"""Log compactions of Apache Hudi's own tables, planned and carried out as it does."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.table.files.logs.log_blocks import BlockType, LogBlock
from pyhudi.table.files.logs.log_contents import BlockContent, columns_of
from pyhudi.table.files.logs.log_file import read_blocks
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import META_COLUMNS
from support.made.compacting import (
    join,
    plan_join,
    slices,
    timeline_of,
)
from support.recorded.fixture_tables import TABLES, recorded, unpack
from support.recorded.recorded_merges import LOGGED, in_order, shown
from support.seams import patch_seam


@pytest.mark.parametrize("format", ["AVRO", pytest.param("PARQUET", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LOGGED)
def test_tables_of_apache_hudi_read_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, format: str
) -> None:
    """Whatever their blocks, types, ordering fields and rules of merging; also where nothing can be joined."""
    # Nothing but writers' rules keep pyhudi from tables that have a mode of partial updates.
    patch_seam(monkeypatch, "check that a service supports the table", lambda *_, **__: None)
    path = unpack(name, tmp_path)
    before = in_order(shown(path, "snapshot"))

    join(path, logs=LogSettings(block_format=format), output=Output(memory=1 if format == "AVRO" else 1 << 24))

    assert in_order(shown(path, "snapshot")) == before
    pending = {one.action for one in timeline_of(path).pending}
    assert pending <= {"compaction"}


JOINED_AT = "20261122130028209"


def without(path: str, *times: str) -> None:
    """Take instants off a table, with all that they left."""
    for file in Path(path).rglob("*"):
        if any(time in file.name for time in times):
            file.unlink()


def theirs(name: str) -> Mapping[str, Any]:
    """Return what Apache Hudi wrote into an instant of its log compacted table."""
    with zipfile.ZipFile(TABLES / "v9_mor_log_compacted.zip") as archive:
        (found,) = [one for one in archive.namelist() if f"timeline/{JOINED_AT}" in one and one.endswith(name)]
        (record,) = fastavro.reader(io.BytesIO(archive.read(found)))
    return record


def ours(path: str, at: str, name: str) -> Any:
    (file,) = Path(path, ".hoodie/timeline").glob(f"{at}*{name}")
    (record,) = fastavro.reader(io.BytesIO(file.read_bytes()))
    return record


def entries(path: str, block: LogBlock, schema: pa.Schema) -> list[dict[str, Any]] | bytes:
    """Return what is in a block, but for the commit time of rows, which pyhudi keeps and Apache Hudi sets anew."""
    storage = open_storage(path)
    if block.type is BlockType.DELETE:
        return storage.read(block.path)[block.content_offset :][: block.content_size]
    wanted = pa.schema([one for one in schema if one.name not in META_COLUMNS[:2]])
    return [row for batch in BlockContent(storage, block).rows(wanted) for row in batch.to_pylist()]


def test_a_plan_says_what_apache_hudi_would_say(tmp_path: Path) -> None:
    path = unpack("v9_mor_log_compacted", tmp_path)
    without(path, JOINED_AT, "20261122130030789")

    plan = plan_join(path)

    assert ours(path, plan.instant, "logcompaction.requested") == theirs("logcompaction.requested")


def test_a_plan_of_apache_hudi_is_carried_out_as_it_does(tmp_path: Path) -> None:
    """The same entries, in blocks with the same headers, and the same figures."""
    path = unpack("v9_mor_log_compacted", tmp_path)
    storage = open_storage(path)
    theirs_by_group = {
        log.file_id: (log, list(read_blocks(storage, log.path)))
        for file_slice in slices(path)
        for log in file_slice.logs
        if log.named_time == JOINED_AT
    }
    schema = pa.schema(columns_of(theirs_by_group[min(theirs_by_group)][1][0]))
    bodies = {(key, one.type): entries(path, one, schema) for key, (_, some) in theirs_by_group.items() for one in some}
    requested = Path(path, f".hoodie/timeline/{JOINED_AT}.logcompaction.requested").read_bytes()
    without(path, JOINED_AT, "20261122130030789")
    Path(path, f".hoodie/timeline/{JOINED_AT}.logcompaction.requested").write_bytes(requested)

    done = join(path, logs=LogSettings(block_format="avro"))

    assert done.instant == JOINED_AT
    for file_slice in slices(path):
        log = file_slice.logs[-1]
        their_blocks = {block.type: block for block in theirs_by_group[log.file_id][1]}
        for block in read_blocks(storage, log.path):
            # pyhudi keeps its checksum in the block's identifier, and Apache Hudi writes none.
            own = {2: block.headers[2], 6: block.headers[6]}
            assert block.headers == {**their_blocks[block.type].headers, **own}
            assert entries(path, block, schema) == bodies[log.file_id, block.type]
    told, expected = ours(path, JOINED_AT, ".deltacommit"), theirs(".deltacommit")
    varying = {"path", "logFiles", "totalWriteBytes", "fileSizeInBytes", "runtimeStats", "totalLogReadTimeMs"}
    for partition, stats in expected.pop("partitionToWriteStats").items():
        for item, other in zip(told["partitionToWriteStats"][partition], stats, strict=True):
            assert {name: value for name, value in item.items() if name not in varying} == {
                name: value for name, value in other.items() if name not in varying
            }
    assert {name: told[name] for name in ("compacted", "operationType", "version")} == {
        name: expected[name] for name in ("compacted", "operationType", "version")
    }


def test_rows_that_have_some_columns_only_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody plans them here; of a plan that has them the result says why they stay."""
    path = unpack("v9_mor_partial", tmp_path)
    assert plan_join(path).instant == ""
    with monkeypatch.context() as patch:
        patch_seam(patch, "whether a log compaction takes a slice", lambda *_: True)
        assert plan_join(path).instant

    done = join(path)

    assert "has some columns only" in done.skipped
    assert in_order(shown(path, "snapshot")) == in_order(recorded("v9_mor_partial"))
    assert timeline_of(path).pending == ()
