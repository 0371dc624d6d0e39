"""Rows read by their keys, as a merge reads them: the rows that a scan finds, from the files that can hold any."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.matches.key_values import KeyNumbers, key_columns, keys_of_values, number_columns
from pyhudi.reader.matches.sought_keys import SoughtKeys
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.table.schema.columns import RECORD_KEY
from support.drawn.near_rows import KEYS, SCHEMA, check_hashed, check_shape, matching, row, shapes, written
from support.drive import read, write
from support.made.stated_sizes import state_sizes
from support.seams import patch_seam, read_seam


@pytest.mark.parametrize("shape", shapes(1, 10), ids=lambda shape: "-".join(map(str, shape.values())))
def test_rows_of_keys_are_those_that_a_scan_finds(tmp_path: Path, shape: dict[str, Any]) -> None:
    check_shape(tmp_path / "t", shape)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_the_values_of_a_bucket_are_those_that_a_scan_finds(tmp_path: Path, table_type: str) -> None:
    """Where buckets are made of a part of the key, the other columns of the key may have any value."""
    check_hashed(tmp_path / "t", table_type)


ODD: dict[str, Any] = {"s": "", "d": datetime.date(1582, 10, 4), "p": ""}


@pytest.mark.parametrize("name", ODD)
def test_values_that_writers_spell_in_several_ways_tell_no_key(tmp_path: Path, name: str) -> None:
    draw = random.Random(3)
    shape = {"keys": {"s": "text", "d": "day", "p": "number"}[name], "partitions": "text", "hive_style": False}
    written(tmp_path / "t", {**shape, "table_type": "COPY_ON_WRITE", "index": "buckets"}, draw)
    snapshot = open_snapshot(str(tmp_path / "t"))
    names = [*KEYS[shape["keys"]], "p"]
    plain, odd = (
        pa.Table.from_pylist([{**row(1, draw), **more}], SCHEMA).select(names) for more in ({}, {name: ODD[name]})
    )

    assert keys_of_values(snapshot.config, snapshot.schema, plain) is not None
    assert keys_of_values(snapshot.config, snapshot.schema, odd) is None


def test_keys_whose_values_have_several_spellings_are_not_sought(tmp_path: Path) -> None:
    values = {
        "t": pa.array([1], pa.timestamp("us", "UTC")),
        "m": pa.array([1], pa.int64()).cast(pa.decimal128(21, 2)),
        "id": pa.array([1], pa.int64()),
    }
    for name, value in values.items():
        rows = pa.table({name: value, "n": [1]})
        path = tmp_path / name
        write(path, rows, table=TableSettings(record_key_fields=(name,), bucket_count=1))
        snapshot = open_snapshot(str(path))
        names = [name] if name == "id" else None

        assert key_columns(snapshot.config, snapshot.schema, {name, "n"}) == names
        assert key_columns(snapshot.config, snapshot.schema, {"n"}) is None


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_of_other_buckets_and_partitions_are_never_opened(
    tmp_path: Path, table_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(4)
    shape = {"table_type": table_type, "index": "buckets", "keys": "number", "partitions": "text", "hive_style": False}
    written(tmp_path / "t", shape, draw)
    rows = read(tmp_path / "t").to_pylist()
    snapshot = open_snapshot(str(tmp_path / "t"))
    wanted = next(one for one in rows if one["p"] == "b")
    opened: list[str] = []
    open_input = read_seam("open a local file")
    patch_seam(monkeypatch, "open a local file", lambda self, path: opened.append(path) or open_input(self, path))
    [place] = [
        one for one in snapshot.slices() if wanted["_hoodie_file_name"] in {path.split("/")[-1] for path in one.files}
    ] or [
        one
        for one in snapshot.slices()
        if one.partition_path == "b" and one.file_id[:8] == wanted["_hoodie_file_name"][:8]
    ]
    places = pa.table({"p": ["b"]})
    opened.clear()

    found = matching(snapshot, SoughtKeys.of(pa.array([wanted[RECORD_KEY]], pa.string()), places))

    assert found == [wanted]
    assert {path for path in opened if not path.startswith(".hoodie")} <= set(place.files)


def test_base_files_whose_footers_exclude_the_keys_are_read_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key beyond the range of a file's keys opens its footer alone."""
    for start in (100, 200, 300):
        rows = pa.table({"id": pa.array(range(start, start + 9), pa.int64()), "n": [1] * 9})
        settings = TableSettings(record_key_fields=("id",), index_type="BLOOM")
        write(tmp_path / "t", rows, table=settings, operation="insert")
    snapshot = open_snapshot(str(tmp_path / "t"))
    read_keys: list[object] = []
    probe = read_seam("look for keys in a batch of matching rows")
    patch_seam(
        monkeypatch,
        "look for keys in a batch of matching rows",
        lambda self, batch: read_keys.append(batch.num_rows) or probe(self, batch),
    )

    found = matching(snapshot, SoughtKeys.of(pa.array(["205", "250"], pa.string())))

    assert [one["id"] for one in found] == [205]
    assert len(read_keys) <= 2 * (len(snapshot.slices()) > 1) + 1


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_keys_of_numbers_are_looked_for_only_where_rows_have_such_numbers(
    tmp_path: Path, table_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(5)
    shape = {"table_type": table_type, "index": "one bucket", "keys": "numbers", "partitions": "one"}
    written(tmp_path / "t", {**shape, "hive_style": False}, draw)
    snapshot, rows = open_snapshot(str(tmp_path / "t")), read(tmp_path / "t").to_pylist()
    looked_up: list[int] = []
    mask = read_seam("look for keys in a batch of matching rows")
    patch_seam(
        monkeypatch,
        "look for keys in a batch of matching rows",
        lambda self, batch: looked_up.append(batch.num_rows) or mask(self, batch),
    )
    wanted = rows[7]

    found = matching(snapshot, SoughtKeys.of(pa.array([wanted[RECORD_KEY]], pa.string())))

    assert found == [wanted]
    assert 1 <= sum(looked_up) <= 2, "a row of the base file, or its newer version in a log file"


@pytest.mark.parametrize(
    ("fields", "keys", "numbers"),
    [
        (("id",), ["7", "-3", "7"], {"id": [7, -3]}),
        (("q", "id"), ["q:1,id:30", "q:1,id:40"], {"q": [1], "id": [30, 40]}),
        (("q", "id"), ["q:9000000000,id:30"], {"id": [30]}),
        (("q", "id"), ["q:__null__,id:30"], {"id": [30]}),
        (("id",), ["7", "seven"], None),
        (("s",), ["7"], None),
        (("id", "s"), ["id:7,s:x,id:8"], None),
    ],
)
def test_keys_tell_the_numbers_in_their_columns(
    tmp_path: Path, fields: tuple[str, ...], keys: list[str], numbers: dict[str, list[int]] | None
) -> None:
    write(
        tmp_path / "t",
        pa.Table.from_pylist([row(1, random.Random(6))], SCHEMA),
        table=TableSettings(record_key_fields=fields, bucket_count=1),
    )
    snapshot = open_snapshot(str(tmp_path / "t"))

    columns = map(snapshot.schema.field, number_columns(snapshot.config, snapshot.schema))
    key_numbers = KeyNumbers.of(columns, pa.array(keys, pa.string()))

    lists = key_numbers and [column.to_pylist() for column in key_numbers.numbers]
    assert (key_numbers and dict(zip(key_numbers.schema.names, lists, strict=True))) == numbers


def test_a_text_that_is_no_list_of_keys_is_refused() -> None:
    for text in ("", "keys", "eA=="):
        with pytest.raises(ValueError, match=r"."):
            SoughtKeys.parse(text)


def test_a_row_without_a_key_is_always_read(tmp_path: Path) -> None:
    """No writer leaves such a row, so a merge that meets it must not take it for the row of another key."""
    settings = TableSettings(record_key_fields=("id",), bucket_count=1)
    write(tmp_path / "t", pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": [1, 2, 3]}), table=settings)
    (file,) = (tmp_path / "t").glob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    keyless = {**rows[1], RECORD_KEY: None, "id": None}
    pq.write_table(pa.Table.from_pylist([rows[0], keyless, rows[2]], pq.read_schema(file)), file)
    state_sizes(tmp_path / "t")

    found = matching(open_snapshot(str(tmp_path / "t")), SoughtKeys.of(pa.array(["3"])))

    assert sorted(one["n"] for one in found) == [2, 3]
