"""Rows and deletes in log files, ordered by each type of ordering field: Apache Hudi and hudi-rs show what pyhudi does.

Every pair of values of a type meets: a base row with a log entry, and two entries of log files, each a row or a delete.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.readers import read_hudi_rs
from interop.writer import write_without_spark
from pyhudi.errors import UnsupportedTypeError
from support.made.compacting import join, run, schedule
from support.readers import read_without_spark
from support.recorded.hudi_options import SMALL
from support.recorded.ordering_pairs import FAILING, VALUES
from support.seams import patch_seam

pytestmark = pytest.mark.interop

BLOCKS = "hoodie.logfile.data.block.format"
BINARY = pa.binary()
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{name: some for name, some in VALUES.items() if name != "binary"},
    "string": (pa.string(), ["", "a", "b", "10", "9", "é", "\ue000", "\U00010000"]),
    "date": FAILING["date"][:2],
    "decimal": (pa.decimal128(5, 2), [Decimal("-1.50"), Decimal("1.00"), Decimal("10.00"), Decimal("2.00")]),
    "large_decimal": (pa.decimal128(30, 10), [Decimal("-1.5"), Decimal("1"), Decimal("1e12"), Decimal("2")]),
}
# The formats of the blocks of the first and of the second write to the log files of each partition.
PARTITIONS = {"p": ("parquet", "parquet"), "a": ("avro", "avro"), "m": ("parquet", "avro"), "n": ("avro", "parquet")}
MERGED = {
    **SMALL,
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
}
Entry = tuple[str, str, Any, int, bool]
"""Key, column, its value, number of the write, whether it is a delete."""


def entries(name: str) -> Iterator[list[Entry]]:
    """Yield what three writes have of a column that varies: base rows, and two times entries of log files."""
    steps: list[list[Entry]] = [[], [], []]
    values = KINDS[name][1]
    for (one, older), (other, newer) in itertools.product(enumerate(values), repeat=2):
        for deleted in (False, True):
            key = f"{name} {one} {other} {deleted}"
            steps[0].append((f"base {key}", name, older, 1, False))
            steps[1].append((f"base {key}", name, newer, 2, deleted))
            for before in (False, True):
                steps[1].append((f"log {key} {before}", name, older, 2, before))
                steps[2].append((f"log {key} {before}", name, newer, 3, deleted))
    yield from steps


def table_of(some: list[Entry], fields: tuple[str, ...], partition: str) -> pa.Table:
    """Return rows in which an ordering field that does not vary has the first of its values."""
    columns = {
        "id": pa.array([key for key, *_ in some]),
        "p": pa.array([partition] * len(some)),
        **{
            field: pa.array([value if field == column else KINDS[field][1][0] for _, column, value, _, _ in some], kind)
            for field, kind in ((field, KINDS[field][0]) for field in fields)
        },
        "n": pa.array([number for *_, number, _ in some], pa.int32()),
    }
    return pa.table(columns)


def written(path: Path, fields: tuple[str, ...]) -> None:
    """Have pyhudi write a table that is ordered by some fields, each of which varies in some of its keys."""
    steps = [list(itertools.chain(*some)) for some in zip(*(entries(field) for field in fields), strict=True)]
    options = {**MERGED, "hoodie.table.ordering.fields": ",".join(fields)}
    base = [table_of(steps[0], fields, partition) for partition in PARTITIONS]
    write_without_spark(path, pa.concat_tables(base), options)
    for partition, formats in PARTITIONS.items():
        for some, form in zip(steps[1:], formats, strict=True):
            deleted = pa.array([one[-1] for one in some])
            rows = table_of(some, fields, partition).append_column("_hoodie_is_deleted", deleted)
            write_without_spark(path, rows, {**options, BLOCKS: form})


def shown(rows: pa.Table) -> dict[tuple[str, str], int]:
    return dict(
        zip(zip(rows["p"].to_pylist(), rows["id"].to_pylist(), strict=True), rows["n"].to_pylist(), strict=True)
    )


def differing(one: dict[Any, int], other: dict[Any, int]) -> dict[Any, tuple[int | None, int | None]]:
    """Return the keys whose rows are not of the same writes."""
    return {key: (one.get(key), other.get(key)) for key in {*one, *other} if one.get(key) != other.get(key)}


def compacted_by_them(apache: ApacheHudi, path: Path) -> None:
    """Have Apache Hudi carry out a compaction that pyhudi plans, without a metadata table, which costs most of it."""
    schedule(path)
    options = "hoodie.metadata.enable=false"
    assert apache.sql(f"call run_compaction(op => 'run', path => '{path}', options => '{options}')")


@pytest.mark.parametrize(
    "fields",
    [*((name,) for name in KINDS), ("boolean", *(name for name in KINDS if name != "string")), ("boolean", *KINDS)],
    ids=lambda fields: fields[0] if len(fields) == 1 else f"{len(fields)} fields",
)
def test_each_reader_shows_the_same_winners(tmp_path: Path, apache: ApacheHudi, fields: tuple[str, ...]) -> None:
    """Alone, and behind other fields that are equal; also once Apache Hudi has compacted the table."""
    fields = tuple(dict.fromkeys(fields))
    path = tmp_path / "t"
    written(path, fields)
    ours = shown(read_without_spark(path))
    assert set(ours.values()) == {1, 2, 3}

    assert differing(ours, shown(apache.read(path))) == {}
    if len(fields) == 1 and fields != ("timestamp_ntz",):  # which hudi-rs 0.5 does not do
        assert differing(ours, shown(read_hudi_rs(path))) == {}
    compacted_by_them(apache, path)
    assert differing(ours, shown(read_without_spark(path))) == {}


def steps_of(kind: pa.DataType, values: list[Any]) -> list[pa.Table]:
    """Return three writes without deletes, in which each pair of values of the column ts meets."""
    base, *logs = [], [], []
    for (older_index, older), (other, newer) in itertools.product(enumerate(values), repeat=2):
        base.append((f"base {older_index} {other}", older, 1))
        logs[0] += [(f"base {older_index} {other}", newer, 2), (f"log {older_index} {other}", older, 2)]
        logs[1].append((f"log {older_index} {other}", newer, 3))
    return [
        pa.table(
            {
                "id": [row[0] for row in some],
                "p": ["a"] * len(some),
                "ts": pa.array([row[1] for row in some], kind),
                "n": pa.array([row[2] for row in some], pa.int32()),
            }
        )
        for some in (base, *logs)
    ]


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_strings_in_blocks_of_apache_hudi_come_right_by_a_log_compaction(
    tmp_path: Path, apache: ApacheHudi, form: str
) -> None:
    """When the comparison of Parquet blocks fails here, Apache Hudi is cured and pyhudi needs no Avro blocks."""
    path = tmp_path / "t"
    for rows in steps_of(*KINDS["string"]):
        apache.write(path, rows, {**MERGED, BLOCKS: form})
    ours = shown(read_without_spark(path))
    assert differing(ours, shown(read_hudi_rs(path))) == {}
    assert bool(differing(ours, shown(apache.read(path)))) == (form == "parquet")

    assert join(path).instant
    assert differing(ours, shown(apache.read(path))) == {}
    # The greatest value of each key wins, and a tie goes to what came later.
    late = steps_of(*KINDS["string"])[2]
    write_without_spark(path, late.set_column(3, "n", pa.array([4] * late.num_rows, pa.int32())), MERGED)
    ours = shown(read_without_spark(path))
    assert set(ours.values()) == {1, 2, 4}
    assert differing(ours, shown(apache.read(path))) == {}
    compacted_by_them(apache, path)
    assert differing(ours, shown(read_without_spark(path))) == {}


def test_strings_in_parquet_blocks_of_ours_would_lose(
    tmp_path: Path, apache: ApacheHudi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the choice of the format is for."""
    path = tmp_path / "t"
    patch_seam(monkeypatch, "format that keeps all values", lambda wished, *_: wished)
    for rows in steps_of(*KINDS["string"]):
        write_without_spark(path, rows, MERGED)

    assert differing(shown(read_without_spark(path)), shown(apache.read(path)))


def test_binary_values_order_no_log_file_for_apache_hudi(tmp_path: Path, apache: ApacheHudi) -> None:
    """When this fails, pyhudi need not refuse such tables; it reads them, and a compaction by it helps both."""
    path = tmp_path / "t"
    steps = steps_of(BINARY, VALUES["binary"][1])
    for rows in steps:
        apache.write(path, rows, MERGED)
    ours = shown(read_without_spark(path))
    with pytest.raises(ApacheHudiError, match="ClassCastException"):
        apache.read(path)
    with pytest.raises(UnsupportedTypeError, match="'ts' is an ordering field"):
        write_without_spark(path, steps[2], MERGED)

    assert run(path).instant
    assert differing(ours, shown(apache.read(path))) == {}
    assert differing(ours, shown(read_without_spark(path))) == {}


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_strings_and_binary_values_decide_nothing_under_commit_time(
    tmp_path: Path, apache: ApacheHudi, form: str
) -> None:
    options = {**MERGED, BLOCKS: form, "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"}
    for name in ("string", "binary"):
        path = tmp_path / name
        for rows in steps_of(*VALUES[name]):
            write_without_spark(path, rows, options)
        ours = shown(read_without_spark(path))

        assert {key: number for key, number in ours.items() if number != (2 if key[1][0] == "b" else 3)} == {}
        assert differing(ours, shown(apache.read(path))) == {}
        assert differing(ours, shown(read_hudi_rs(path))) == {}
