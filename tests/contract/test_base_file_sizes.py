"""A base file of another size than its completed write states, such as an older file from a backup, is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyhudi.errors import CorruptFileError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.table.files.output import Output
from support.attempts import PARTED, parted, rows
from support.drawn.upkept import OFF
from support.drive import KEYED, rows_of, write
from support.faults.traces import begin_process, forget_tables, trace_writes
from support.made import compacting, sorting
from support.made.cleaning import archive
from support.readers import read_without_spark
from support.rules.health import errors
from support.sick.spoiling import commits, stat

INDEXES = ["BUCKET", "SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"]
CHANGES = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}
SETTINGS = WriteSettings(upkeep=OFF)


def make(path: Path, kind: str, index: str) -> list[str]:
    """Make a table of one file group with 40 rows; return the times of its writes."""
    table = replace(KEYED, table_type=kind, index_type=index, bucket_count=1 if index == "BUCKET" else None)
    settings = replace(SETTINGS, output=Output(bloom_filter=True if "BLOOM" in index else None))
    times = [write(path, rows(*range(40), value=0), table=table, settings=settings).instant]
    times.append(write(path, rows(*range(40), value=1, ts=2), settings=SETTINGS).instant)
    if kind == "MERGE_ON_READ":
        compacting.run(path)
        times.append(write(path, rows(1, value=2, ts=3), settings=SETTINGS).instant)
    return times


def put_back(path: Path) -> Path:
    """Put a file with ten of the rows in the place of the newest base file, as of an older backup; return its path."""
    newest = max(path.glob("*.parquet"), key=lambda file: file.stem[-17:])
    pq.write_table(pq.read_table(newest).slice(0, 10), newest)
    forget_tables()
    return newest


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_way_that_opens_the_file_refuses_it(tmp_path: Path, kind: str, index: str) -> None:
    path = tmp_path / "t"
    times = make(path, kind, index)
    file = put_back(path)
    ways: list[Callable[[], object]] = [
        lambda: read_without_spark(path),
        lambda: read_without_spark(path, CHANGES),
        lambda: read_without_spark(path, {"as.of.instant": times[-1]}),
        lambda: sorting.run(path, by=["value"]),
    ]
    if kind == "MERGE_ON_READ":
        ways += [
            lambda: compacting.run(path),
            lambda: read_without_spark(path, {"hoodie.datasource.query.type": "read_optimized"}),
        ]
    if kind == "COPY_ON_WRITE" or index != "BUCKET":
        ways += [lambda: write(path, rows(1, 50, value=9, ts=9), settings=SETTINGS)]
    for way in ways:
        with pytest.raises(CorruptFileError, match=rf"{file.name} .*has [\d,]+ bytes, and .* states [\d,]+"):
            way()

    assert ("SIZE_MISMATCH", file.name) in {(one["code"], Path(one["file"]).name) for one in errors(path, deep=False)}
    write(path, rows(1, 2, value=3, ts=9), operation="insert_overwrite_table", settings=SETTINGS)
    assert rows_of(path, "id", "value") == [("k1", 3), ("k2", 3)]


def test_a_compaction_that_another_process_planned_refuses_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    make(path, "MERGE_ON_READ", "BUCKET")
    compacting.schedule(str(path))
    file = put_back(path)

    with pytest.raises(CorruptFileError, match=file.name):
        compacting.run(path)


@pytest.mark.parametrize("size", [0, None])
def test_a_write_that_states_no_size_is_believed(tmp_path: Path, size: int | None) -> None:
    path = tmp_path / "t"
    make(path, "COPY_ON_WRITE", "BUCKET")
    stat(fileSizeInBytes=size)(path)
    put_back(path)

    assert len(rows_of(path, "id")) == 10


def test_sizes_take_no_request_and_archived_writes_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose write is archived is read as it is; `validate` looks into the archive, and names it."""
    path, trace = tmp_path / "t", trace_writes(monkeypatch)
    write(path, parted("a", *range(40), value=0), table=replace(PARTED, bucket_count=1), settings=SETTINGS)

    def calls() -> list[str]:
        before = len(trace.lines)
        begin_process(trace, "a process")
        read_without_spark(path)
        return trace.lines[before + 1 :]

    stated, [commit] = calls(), commits(path)
    body = commit.read_bytes()
    stat(fileSizeInBytes=0)(path)
    assert calls() == stated
    commit.write_bytes(body)
    file = put_back(path / "a")
    with pytest.raises(CorruptFileError):
        rows_of(path, "id")
    write(path, parted("b", 1, value=2), settings=SETTINGS)
    archive(path, 1)

    assert len(rows_of(path, "id")) == 11
    assert not any("history" in call for call in calls())
    assert ("SIZE_MISMATCH", file.name) in {(one["code"], Path(one["file"]).name) for one in errors(path, deep=False)}
