"""The encoding of log blocks by the type of a table's ordering fields, and the types that order no log file."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import UnsupportedTypeError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.storage import open_storage
from pyhudi.table.files.logs.block_format import LogSettings
from pyhudi.table.files.logs.log_blocks import BlockType
from pyhudi.table.files.logs.log_file import read_blocks
from support.drawn.upkept import OFF
from support.drive import plan, rows_of, write
from support.made import compacting
from support.recorded.ordering_pairs import FAILING, VALUES
from support.seams import patch_seam

KEPT = WriteSettings(upkeep=OFF)
LOGS = TableSettings(record_key_fields=("id",), ordering_fields=("ts",), bucket_count=1, table_type="MERGE_ON_READ")
BY_TEXT = [("ts",), ("first", "ts"), ("ts", "first")]
DAYS, DECIMALS = FAILING["date"], FAILING["decimal"]
OTHERS = {name: some for name, some in VALUES.items() if name not in {"string", "binary"}}
OTHERS |= {"date": DAYS[:2], "decimal": DECIMALS[:2], "short": (pa.int16(), [1, 2])}


def rows(*given: tuple[str, Any, int], kind: pa.DataType | None = None, deleted: bool | None = None) -> pa.Table:
    """Return rows of (id, ts, n), with a second ordering field that is the same in all of them."""
    columns = {
        "id": pa.array([row[0] for row in given]),
        "first": pa.array([7] * len(given), pa.int32()),
        "ts": pa.array([row[1] for row in given], kind or pa.string()),
        "n": pa.array([row[2] for row in given], pa.int32()),
    }
    if deleted is not None:
        columns["_hoodie_is_deleted"] = pa.array([deleted] * len(given))
    return pa.table(columns)


def formats(path: Path) -> set[BlockType]:
    """Return the kinds of the blocks of all log files."""
    storage = open_storage(str(path))
    logs = [file.relative_to(path).as_posix() for file in path.rglob(".*.log.*")]
    return {block.type for log in logs for block in read_blocks(storage, log)}


@pytest.mark.parametrize("fields", BY_TEXT, ids=",".join)
@pytest.mark.parametrize("how", ["tasks", "commit", "colocated", "asked"])
def test_strings_that_order_rows_get_avro_blocks(
    tmp_path: Path, fields: tuple[str, ...], how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever writes them: the tasks, the commit, a task that holds the whole file group; whatever was asked for."""
    path = tmp_path / "t"
    logs = LogSettings(block_format="parquet" if how == "asked" else None, per_group=1 if how == "commit" else 8)
    settings = replace(KEPT, logs=logs, colocated=how == "colocated")
    write(path, rows(("k", "b", 1), ("l", "b", 1), ("m", "b", 1)), table=replace(LOGS, ordering_fields=fields))
    parts = [rows(("k", "a", 2)), rows(("l", "c", 2))]
    with caplog.at_level(logging.WARNING, "pyhudi"):
        result = write(path, pa.concat_tables(parts) if how == "colocated" else parts, settings=settings)
    write(path, rows(("m", "c", 3), deleted=True), settings=settings)

    assert result.log_files == (1 if how == "colocated" else 2)
    assert formats(path) == {BlockType.AVRO, BlockType.DELETE}
    assert rows_of(path, "id", "n") == [("k", 1), ("l", 2)]
    assert ("not those of hoodie.logfile.data.block.format=parquet" in caplog.text) == (how == "asked")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("asked", ["parquet", "avro", None])
def test_other_types_get_the_blocks_that_were_asked_for(tmp_path: Path, name: str, asked: str | None) -> None:
    kind, values = OTHERS[name]
    path = tmp_path / "t"
    write(path, rows(("k", values[0], 1), kind=kind), table=LOGS)
    settings = replace(KEPT, logs=LogSettings(block_format=asked))
    write(path, rows(("k", values[-1], 2), kind=kind), settings=settings)

    assert formats(path) == {BlockType[(asked or "parquet").upper()]}
    assert rows_of(path, "id", "n") == [("k", 2)]


def test_strings_get_the_blocks_that_were_asked_for_where_they_order_nothing(tmp_path: Path) -> None:
    """Under commit time the later row wins, in each reader."""
    path = tmp_path / "t"
    write(path, rows(("k", "b", 1)), table=replace(LOGS, merge_mode="COMMIT_TIME_ORDERING"))
    write(path, rows(("k", "a", 2)), settings=KEPT)

    assert formats(path) == {BlockType.PARQUET}
    assert rows_of(path, "id", "n") == [("k", 2)]


def test_a_partial_update_that_strings_order_gets_an_avro_block(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, rows(("k", "b", 1), ("l", "b", 1)), table=LOGS)
    some = rows(("k", "c", 2), ("l", "a", 2)).drop_columns(["first"])
    write(path, some, settings=replace(KEPT, partial_update=True))

    assert formats(path) == {BlockType.AVRO}
    assert rows_of(path, "id", "ts", "first", "n") == [("k", "c", 7, 2), ("l", "b", 7, 1)]


def test_a_log_compaction_writes_parquet_blocks_anew_as_avro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older releases of pyhudi, and Apache Hudi where it is asked to, wrote strings that order rows as Parquet."""
    path = tmp_path / "t"
    with monkeypatch.context() as patch:
        patch_seam(patch, "format that keeps all values", lambda wished, *_: wished)
        write(path, rows(("k", "b", 1), ("l", "b", 1)), table=LOGS, settings=KEPT)
        write(path, rows(("k", "c", 2), ("l", "a", 2)), settings=KEPT)
        write(path, rows(("k", "a", 3), ("l", "c", 3)), settings=KEPT)
    assert formats(path) == {BlockType.PARQUET}
    (before,) = compacting.slices(path)

    assert compacting.join(path).instant
    (after,) = compacting.slices(path)
    storage = open_storage(str(path))
    new = {log.path for log in after.logs} - {log.path for log in before.logs}
    assert [block.type for log in new for block in read_blocks(storage, log)] == [BlockType.AVRO]
    assert rows_of(path, "id", "n") == [("k", 2), ("l", 3)]


BINARY = pa.binary()


@pytest.mark.parametrize("fields", BY_TEXT, ids=",".join)
def test_binary_values_order_no_merge_on_read_table(tmp_path: Path, fields: tuple[str, ...]) -> None:
    asked = replace(LOGS, ordering_fields=fields)
    some = rows(("k", b"b", 1), kind=BINARY)
    with pytest.raises(UnsupportedTypeError, match=r"binary column 'ts' is an ordering field of the merge-on-read"):
        plan(tmp_path / "t", some.schema, table=asked)
    plan(tmp_path / "t", some.schema, table=replace(asked, table_type="COPY_ON_WRITE"))
    plan(tmp_path / "t", some.schema, table=replace(asked, merge_mode="COMMIT_TIME_ORDERING"))


def test_a_table_that_binary_values_order_is_read_and_made_anew_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older releases of pyhudi made such tables, and Apache Hudi does."""
    path = tmp_path / "t"
    with monkeypatch.context() as patch:
        patch_seam(patch, "check ordering columns of logs", lambda *_: None)
        write(path, rows(("k", b"b", 1), ("l", b"b", 1), kind=BINARY), table=LOGS, settings=KEPT)
        write(path, rows(("k", b"a", 2), ("l", b"c", 2), kind=BINARY), settings=KEPT)

    for operation in ("upsert", "insert", "delete"):
        with pytest.raises(UnsupportedTypeError, match="'ts'"):
            write(path, rows(("k", b"d", 3), kind=BINARY), operation=operation)
    assert rows_of(path, "id", "n") == [("k", 1), ("l", 2)]
    assert compacting.run(path).instant
    assert rows_of(path, "id", "n") == [("k", 1), ("l", 2)]
    write(path, rows(("k", "b", 4)), overwrite=True)
    assert rows_of(path, "id", "n") == [("k", 4)]
