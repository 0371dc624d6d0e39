"""Tables whose rows are read by keys, as a merge reads them, and what is to be found."""

from __future__ import annotations

import datetime
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.matches.key_values import hashed_columns, key_columns, keys_of_values
from pyhudi.reader.matches.matching_rows import MatchingRows
from pyhudi.reader.matches.sought_keys import SoughtKeys
from pyhudi.reader.matches.sought_slices import SoughtSlices
from pyhudi.reader.plan import plan_splits
from pyhudi.reader.scan import MergeTerms
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.table.schema.columns import PARTITION_PATH, RECORD_KEY
from support.drive import read, write

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
    table_shapes = []
    for number in range(count):
        index = list(INDEXES)[number % len(INDEXES)]
        table_shapes.append(
            {
                "table_type": ("COPY_ON_WRITE", "MERGE_ON_READ")[(number // len(INDEXES)) % 2],
                "index": index,
                "keys": drawn.choice(list(KEYS)),
                "partitions": drawn.choice(list(PARTITIONS)),
                "hive_style": drawn.random() < 0.3,
                "seed": drawn.randrange(1 << 30),
            }
        )
    return table_shapes


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
    splits = pickle.loads(pickle.dumps(slices.splits(plan_splits(slices.slices, {}, 1 << 20))))  # noqa: S301
    return in_order(batch_row for split in splits for batch in reader.read(split) for batch_row in batch.to_pylist())


def in_order(rows: Any) -> list[Row]:
    return sorted(rows, key=lambda one: [str(value) for value in one.values()])


def drawn_keys(rows: Sequence[Row], draw: random.Random) -> list[Row]:
    """Return rows of the table and rows that it lacks, some of them twice."""
    absent = [row(number, draw) for number in draw.sample(range(90, 500), 6)]
    found = [*draw.sample(list(rows), 7), *absent]
    return found + found[:2]


def check_keys(snapshot: Snapshot, rows: list[Row], draw: random.Random) -> None:
    place = RECORD_KEY, PARTITION_PATH
    drawn = draw.sample(rows, 12)
    wanted = [[one[name] for name in place] for one in drawn[:9]] + [["no", "a"], ["no", "nowhere"]]
    # A key may be sought in a partition that has it not, while another has it, in which it is sought too or not.
    wanted += [[one[RECORD_KEY], drawn[1][PARTITION_PATH]] for one in (drawn[0], *drawn[9:])]
    keys, paths = (pa.array(list(column), pa.string()) for column in zip(*wanted, strict=True))

    matched_rows = matching(snapshot, SoughtKeys.of(keys, pa.table({PARTITION_PATH: paths})))
    anywhere = matching(snapshot, SoughtKeys.of(keys))

    assert matched_rows == in_order(one for one in rows if [one[name] for name in place] in wanted)
    assert anywhere == in_order(one for one in rows if one[RECORD_KEY] in keys.to_pylist())


def check_values(snapshot: Snapshot, rows: list[Row], names: list[str], draw: random.Random) -> None:
    told = snapshot.config, snapshot.schema, names
    assert (key_columns(*told) or hashed_columns(*told)) == names
    drawn = [one for one in drawn_keys(rows, draw) if None not in [one[name] for name in names]]
    values = pa.Table.from_pylist(drawn, SCHEMA).select(names)
    sought = keys_of_values(snapshot.config, snapshot.schema, values)
    assert sought is not None
    wanted = [[one[name] for name in names] for one in drawn]
    expected_rows = [one for one in rows if [one[name] for name in names] in wanted]

    matched_rows = matching(snapshot, sought)

    assert [one for one in matched_rows if [one[name] for name in names] in wanted] == in_order(expected_rows)
    assert {one[RECORD_KEY] for one in matched_rows} == {one[RECORD_KEY] for one in expected_rows}, (
        "no row of another key is read"
    )


def check_shape(path: Path, shape: dict[str, Any]) -> None:
    """Assert that the rows of drawn keys of a table of a shape are those that a scan finds."""
    draw = random.Random(shape["seed"])
    written(path, shape, draw)
    snapshot, rows = open_snapshot(str(path)), read(path).to_pylist()

    check_keys(snapshot, rows, draw)
    names = KEYS[shape["keys"]]
    # Where partition columns are among the values, keys are sought in these partitions, else in all.
    for known in (names, (*names, *PARTITIONS[shape["partitions"]])):
        check_values(snapshot, rows, list(dict.fromkeys(known)), draw)


def check_hashed(path: Path, table_type: str) -> None:
    """Assert it of values that make the bucket, where the other columns of the key may have any value."""
    draw = random.Random(7)
    shape = {"index": "hashed buckets", "keys": "day", "partitions": "text", "hive_style": False}
    written(path, {**shape, "table_type": table_type}, draw)
    again = [{**row(number, draw), "d": datetime.date(2030, 1, 1)} for number in range(0, 80, 3)]
    write(path, pa.Table.from_pylist([*again, {**again[0], "id": None}], SCHEMA))
    snapshot, rows = open_snapshot(str(path)), read(path).to_pylist()

    for names in (["id"], ["id", "p"]):
        check_values(snapshot, rows, names, draw)
    assert hashed_columns(snapshot.config, snapshot.schema, ["d", "p"]) is None
