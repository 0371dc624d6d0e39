from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.operations.inspect.detail import DETAIL_SCHEMA, detail
from pyhudi.operations.inspect.history import history
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.write.after_commit import describe
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig
from support import drive
from support.seams import patch_seam, read_seam

KEYED = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2)


def rows(*ids: int) -> pa.Table:
    n = len(ids)
    return pa.table({"id": ids, "p": [f"p{one % 2}" for one in ids], "ts": [1] * n, "text": ["x" * 100] * n})


def test_a_row_says_what_the_table_is_and_how_large(tmp_path: Path) -> None:
    path = tmp_path / "t"
    drive.write(path, rows(*range(40)), table=KEYED)
    last = drive.write(path, rows(0))

    detail_table = detail(open_storage(str(path)))

    assert detail_table.schema.equals(DETAIL_SCHEMA)
    [row] = detail_table.to_pylist()
    assert (row["name"], row["path"], row["type"], row["version"]) == ("t", str(path), "COPY_ON_WRITE", 9)
    assert (row["record_key"], row["partition_by"], row["order_by"]) == (["id"], ["p"], ["ts"])
    assert (row["index"], row["buckets"], row["partitions"], row["files"]) == ("BUCKET", 2, 2, 4)
    groups: dict[str, list[Path]] = {}
    for file in path.rglob("*.parquet"):
        groups.setdefault(f"{file.parent}/{file.name.partition('_')[0]}", []).append(file)
    newest = [max(files, key=lambda file: file.name.rpartition("_")[2]) for files in groups.values()]
    assert sum(map(len, groups.values())) == len(newest) + 1
    assert row["bytes"] == sum(file.stat().st_size for file in newest)
    assert row["newest_instant"] == last.instant < row["completed"]
    assert dict(row["properties"])["hoodie.bucket.index.num.buckets"] == "2"


def test_the_history_opens_only_the_instants_that_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instants = [drive.write(tmp_path / "t", rows(number), table=KEYED).instant for number in range(4)]
    opened: list[str] = []
    result_of = read_seam("result of a commit in the history")

    def counted(timeline, instant):
        opened.append(instant.requested_time)
        return result_of(timeline, instant)

    patch_seam(monkeypatch, "result of a commit in the history", counted)
    storage = open_storage(str(tmp_path / "t"))

    assert history(storage, 2)["instant"].to_pylist() == [instants[3], instants[2]]
    assert sorted(opened) == instants[2:]
    assert history(storage)["instant"].to_pylist() == instants[::-1]
    assert history(storage, 0).num_rows == 0
    with pytest.raises(InvalidOptionError, match="history is -1"):
        history(storage, -1)


def test_the_write_that_makes_a_table_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="pyhudi.tables")
    path = tmp_path / "t"
    for number in range(2):
        drive.write(path, rows(number), table=KEYED)

    assert [record.getMessage() for record in caplog.records if record.name == "pyhudi.tables"] == [
        f"The new table {path} is partitioned by p. Its key is id, unique within its partition; of two rows with one "
        "key the row with the greater ts wins. Its index is BUCKET, with 2 buckets for each partition, until a rescale."
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"record_key_fields": ("id",), "bucket_count": 8}, "the later row wins"),
        (
            {"record_key_fields": ("id",), "bucket_count": 8},
            "8 buckets, the number where none is given, for each table",
        ),
        ({"record_key_fields": ("a", "b"), "bucket_count": 3, "ordering_fields": ("x", "y")}, "greater x, then y wins"),
        (
            {
                "record_key_fields": ("id",),
                "bucket_count": 3,
                "ordering_fields": ("ts",),
                "merge_mode": "COMMIT_TIME_ORDERING",
            },
            "the later row wins",
        ),
        ({"record_key_fields": (), "partition_fields": ("p",)}, "partitioned by p and has no record key"),
        (
            {"record_key_fields": ("id",), "partition_fields": ("p",), "index_type": "BLOOM"},
            "unique within its partition; of two rows with one key the later row wins. Its index is BLOOM, which looks",
        ),
        (
            {"record_key_fields": ("id",), "partition_fields": ("p",), "index_type": "GLOBAL_SIMPLE"},
            "unique within its table",
        ),
    ],
)
def test_a_new_table_is_described_in_words(options: dict[str, object], words: str) -> None:
    config = TableConfig.new(TableSettings(**{"name": "t", "index_type": "BUCKET", **options}))  # type: ignore[arg-type]

    assert words in describe(config, "/t")
