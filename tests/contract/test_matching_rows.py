"""Rows read by their keys, as a merge reads them: the rows that a scan finds, from the files that can hold any."""

from __future__ import annotations

import datetime
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.matches.key_values import KeyNumbers, hashed_columns, key_columns, keys_of_values, number_columns
from pyhudi.reader.matches.matching_rows import MatchingRows
from pyhudi.reader.matches.sought_keys import SoughtKeys
from pyhudi.reader.matches.sought_slices import SoughtSlices
from pyhudi.reader.scan import MergeTerms
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.table.schema.columns import PARTITION_PATH, RECORD_KEY
from support.drive import read, write
from support.seams import patch_seam, read_seam

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("p", pa.string()),
        ("q", pa.int32()),
        ("n", pa.int64()),
    ]
)
Row = dict[str, Any]

KEYS: dict[str, tuple[str, ...]] = {
    "number": ("id",),
    "text": ("s",),
    "composite": ("id", "s"),
    "day": ("d", "id"),
    "numbers": ("q", "id"),
}
PARTITIONS: dict[str, tuple[str, ...]] = {"one": (), "text": ("p",), "two": ("q", "p")}
INDEXES: dict[str, dict[str, Any]] = {
    "buckets": {"bucket_count": 5},
    "one bucket": {"bucket_count": 1},
    "simple": {"index_type": "SIMPLE"},
    "bloom": {"index_type": "BLOOM"},
    "global": {"index_type": "GLOBAL_SIMPLE"},
}
HASHED = {"bucket_count": 5, "hash_fields": ("id",)}


def shapes(seed: int, count: int) -> list[dict[str, Any]]:
    """Draw shapes of tables, each property of which is in one of every five."""
    drawn = random.Random(seed)
    found = []
    for number in range(count):
        index = list(INDEXES)[number % len(INDEXES)]
        found.append(
            {
                "table_type": ("COPY_ON_WRITE", "MERGE_ON_READ")[(number // len(INDEXES)) % 2],
                "index": index,
                "keys": drawn.choice(list(KEYS)),
                "partitions": drawn.choice(list(PARTITIONS)),
                "hive_style": drawn.random() < 0.3,
                "seed": drawn.randrange(1 << 30),
            }
        )
    return found


def row(number: int, draw: random.Random) -> Row:
    """Return a row whose key and partition its number fixes."""
    return {
        "id": number,
        "s": ("k%d", "k%d,id:3", "ü%d")[number % 3] % number,
        "d": datetime.date(2024, 1, 1) + datetime.timedelta(number // 4),
        "p": ("a", "b", "c/1", None)[number % 4] if number % 8 else "a",
        "q": number % 2,
        "n": draw.randrange(1 << 20),
    }


def written(path: Path, shape: dict[str, Any], draw: random.Random) -> None:
    """Write a table of two upserts, a delete and, under an index without buckets, an insert of keys that it has."""
    table = TableSettings(
        record_key_fields=KEYS[shape["keys"]],
        partition_fields=PARTITIONS[shape["partitions"]],
        ordering_fields=("n",),
        table_type=shape["table_type"],
        hive_style=shape["hive_style"],
        merge_mode="COMMIT_TIME_ORDERING",
        **{**INDEXES, "hashed buckets": HASHED}[shape["index"]],
    )
    rows = [row(number, draw) for number in range(80)]
    write(path, pa.Table.from_pylist(rows, SCHEMA), table=table)
    write(path, pa.Table.from_pylist([row(one["id"], draw) for one in draw.sample(rows, 15)], SCHEMA))
    write(path, pa.Table.from_pylist(draw.sample(rows, 5), SCHEMA), operation="delete")
    write(path, pa.Table.from_pylist([row(number, draw) for number in range(80, 90)], SCHEMA))
    if "bucket" not in shape["index"]:
        write(
            path,
            pa.Table.from_pylist([row(one["id"], draw) for one in draw.sample(rows, 3)], SCHEMA),
            operation="insert",
        )


def matching(snapshot: Snapshot, sought: SoughtKeys) -> list[Row]:
    """Read by the keys, as the tasks of a merge do, which get their splits and the keys through pickle and text."""
    slices = SoughtSlices.of(snapshot, SoughtKeys.parse(sought.spell()))
    reader = MatchingRows(snapshot.storage, snapshot.schema, snapshot.schema, MergeTerms(snapshot.config))
    splits = pickle.loads(pickle.dumps(slices.splits(1 << 20)))  # noqa: S301
    return in_order(batch_row for split in splits for batch in reader.read(split) for batch_row in batch.to_pylist())


def in_order(rows: Any) -> list[Row]:
    return sorted(rows, key=lambda one: [str(value) for value in one.values()])


def drawn_keys(rows: Sequence[Row], draw: random.Random) -> list[Row]:
    """Return rows of the table and rows that it lacks, some of them twice."""
    absent = [row(number, draw) for number in draw.sample(range(90, 500), 6)]
    found = [*draw.sample(list(rows), 7), *absent]
    return found + found[:2]


@pytest.mark.parametrize("shape", shapes(1, 10), ids=lambda shape: "-".join(map(str, shape.values())))
def test_rows_of_keys_are_those_that_a_scan_finds(tmp_path: Path, shape: dict[str, Any]) -> None:
    draw = random.Random(shape["seed"])
    written(tmp_path / "t", shape, draw)
    snapshot, rows = open_snapshot(str(tmp_path / "t")), read(tmp_path / "t").to_pylist()

    check_keys(snapshot, rows, draw)
    names = KEYS[shape["keys"]]
    # Where partition columns are among the values, keys are sought in these partitions, else in all.
    for known in (names, (*names, *PARTITIONS[shape["partitions"]])):
        check_values(snapshot, rows, list(dict.fromkeys(known)), draw)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_the_values_of_a_bucket_are_those_that_a_scan_finds(tmp_path: Path, table_type: str) -> None:
    """Where buckets are made of a part of the key, the other columns of the key may have any value."""
    draw = random.Random(7)
    shape = {"index": "hashed buckets", "keys": "day", "partitions": "text", "hive_style": False}
    written(tmp_path / "t", {**shape, "table_type": table_type}, draw)
    again = [{**row(number, draw), "d": datetime.date(2030, 1, 1)} for number in range(0, 80, 3)]
    write(tmp_path / "t", pa.Table.from_pylist([*again, {**again[0], "id": None}], SCHEMA))
    snapshot, rows = open_snapshot(str(tmp_path / "t")), read(tmp_path / "t").to_pylist()

    for names in (["id"], ["id", "p"]):
        check_values(snapshot, rows, names, draw)
    assert hashed_columns(snapshot.config, snapshot.schema, ["d", "p"]) is None


def check_keys(snapshot: Snapshot, rows: list[Row], draw: random.Random) -> None:
    place = RECORD_KEY, PARTITION_PATH
    wanted = [[one[name] for name in place] for one in draw.sample(rows, 9)] + [["no", "a"], ["no", "nowhere"]]
    # A key may be sought in a partition that has it not, while another has it.
    wanted += [[wanted[0][0], wanted[1][1]]]
    keys, paths = (pa.array(list(column), pa.string()) for column in zip(*wanted, strict=True))

    found = matching(snapshot, SoughtKeys.of(keys, pa.table({PARTITION_PATH: paths})))
    anywhere = matching(snapshot, SoughtKeys.of(keys))

    assert found == in_order(one for one in rows if [one[name] for name in place] in wanted)
    assert anywhere == in_order(one for one in rows if one[RECORD_KEY] in keys.to_pylist())


def check_values(snapshot: Snapshot, rows: list[Row], names: list[str], draw: random.Random) -> None:
    told = snapshot.config, snapshot.schema, names
    assert (key_columns(*told) or hashed_columns(*told)) == names
    drawn = [one for one in drawn_keys(rows, draw) if None not in [one[name] for name in names]]
    values = pa.Table.from_pylist(drawn, SCHEMA).select(names)
    sought = keys_of_values(snapshot.config, snapshot.schema, values)
    assert sought is not None
    wanted = [[one[name] for name in names] for one in drawn]
    there = [one for one in rows if [one[name] for name in names] in wanted]

    found = matching(snapshot, sought)

    assert [one for one in found if [one[name] for name in names] in wanted] == in_order(there)
    assert {one[RECORD_KEY] for one in found} == {one[RECORD_KEY] for one in there}, "no row of another key is read"


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
    found = KeyNumbers.of(columns, pa.array(keys, pa.string()))

    lists = found and [column.to_pylist() for column in found.numbers]
    assert (found and dict(zip(found.schema.names, lists, strict=True))) == numbers


def test_a_text_that_is_no_list_of_keys_is_refused() -> None:
    for text in ("", "keys", "eA=="):
        with pytest.raises(ValueError, match=r"."):
            SoughtKeys.parse(text)
