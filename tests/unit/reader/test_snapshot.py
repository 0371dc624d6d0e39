from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import CorruptFileError, UnsupportedTableError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.plan import Split
from pyhudi.reader.scan import RowReader
from pyhudi.reader.skipping.predicates import Compare, IsNull, OneOf, Predicate
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig, create_config, load_config, update_config
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import META_COLUMNS
from support.drive import write
from support.recorded.fixture_tables import unpack
from support.write_settings import write_settings

MIB = 1 << 20
UTC = datetime.timezone.utc

FULL_ROW = {
    "id": 1,
    "sh": -8,
    "lo": 2**40,
    "fl": 1.5,
    "do": -2.25,
    "bo": True,
    "st": "é日本",
    "bi": b"\x00\xff",
    "de": Decimal("12.30"),
    "de2": Decimal("-1234567890.0123456789"),
    "da": datetime.date(2024, 2, 29),
    "ts": datetime.datetime(2024, 2, 29, 12, 34, 56, 789123, tzinfo=UTC),
    "nt": datetime.datetime(2024, 2, 29, 12, 34, 56, 789123),
    "ar": [1, 2],
    "st2": {"a": 5, "b": "x"},
    "ma": [("k", 9), ("l", None)],
    "nested": [{"x": 1, "y": ["u", "v"]}, {"x": 2, "y": []}],
}


def rows(
    snapshot: Snapshot, *columns: str, predicates: tuple[Predicate, ...] = (), split_size: int = 128 * MIB
) -> pa.Table:
    schema = pa.schema([snapshot.schema.field(name) for name in columns]) if columns else snapshot.schema
    splits = snapshot.plan(schema, predicates, split_size)
    batches = [
        one for split in splits for one in RowReader(snapshot.storage, schema, snapshot.schema, predicates).read(split)
    ]
    return pa.Table.from_batches(batches, schema)


def values(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def test_every_type_that_apache_hudi_writes_is_read(tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack("v9_cow_types", tmp_path))

    read = rows(snapshot).select([*FULL_ROW, "p"]).to_pylist()

    assert snapshot.schema.names == [*META_COLUMNS, *FULL_ROW, "p"]
    read = [{**row, "ma": row["ma"] and sorted(row["ma"])} for row in read]
    by_key = {(row["p"], row["id"]): row for row in read}
    nulls = dict.fromkeys(FULL_ROW) | {"id": 2}
    assert by_key == {(p, row["id"]): {**row, "p": p} for p in ("a", "b") for row in (FULL_ROW, nulls)}


def test_batches_have_exactly_the_schema_asked_for(tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack("v9_cow_types", tmp_path))

    [split] = [Split(tuple(part for one in snapshot.plan(snapshot.schema, (), MIB) for part in one.parts))]

    for batch in RowReader(snapshot.storage, snapshot.schema, snapshot.schema).read(split):
        assert batch.schema.equals(snapshot.schema)
        batch.validate(full=True)


def test_replaced_file_groups_are_gone_and_partition_values_come_back(tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack("v9_cow_hive_urlencoded", tmp_path))

    assert values(rows(snapshot, "id", "s", "n")) == [(1, "x/y", 1), (2, None, 1), (4, "é", 2), (5, "x y", 2)]


@pytest.mark.parametrize(
    ("predicate", "partitions"),
    [
        (Compare("s", "=", "x/y"), ["s=x%2Fy/n=1"]),
        (Compare("s", "=", "é"), ["s=é/n=2"]),
        (Compare("n", ">", 1), ["s=x y/n=2", "s=é/n=2"]),
        (IsNull("s"), ["s=__HIVE_DEFAULT_PARTITION__/n=1"]),
    ],
)
def test_only_partitions_that_can_match_are_listed(tmp_path: Path, predicate: Predicate, partitions: list[str]) -> None:
    snapshot = open_snapshot(unpack("v9_cow_hive_urlencoded", tmp_path))

    assert sorted(one.partition_path for one in snapshot.slices([predicate])) == partitions


def test_older_files_are_widened_and_lack_the_new_column(tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack("v9_cow_evolved", tmp_path))

    assert values(rows(snapshot, "id", "n", "extra")) == [
        (0, 0, None),
        (1, 2**40, "new"),
        (2, 20, None),
        (3, 30, None),
        (4, 40, None),
        (5, 50, None),
    ]


def test_a_column_that_a_file_lacks_can_be_read_alone(tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack("v9_cow_evolved", tmp_path))

    assert sorted(rows(snapshot, "extra").column(0).to_pylist(), key=str) == [None] * 5 + ["new"]


def test_row_groups_without_a_match_are_left_out(tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack("v9_cow_evolved", tmp_path))

    assert rows(snapshot, "id", predicates=(Compare("extra", "=", "new"),)).num_rows == 3
    assert rows(snapshot, "id", predicates=(Compare("n", "<", 0),)).num_rows == 0


def test_the_past_moment_stays_in_sight(tmp_path: Path) -> None:
    path = unpack("v9_cow_evolved", tmp_path)
    watermark = open_snapshot(path).timeline.watermark()
    before = values(rows(open_snapshot(path)))
    write(path, table(range(6), 0).append_column("extra", pa.array([""] * 6)), table=TableSettings(bucket_count=2))

    assert values(rows(open_snapshot(path, watermark=watermark))) == before
    assert values(rows(open_snapshot(path), "n")) == [(0,)] * 6


def table(ids: range, n: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "n": pa.array([n] * len(ids), pa.int64())})


def test_a_key_is_looked_for_in_its_bucket_alone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, table(range(1000), 1), table=TableSettings(record_key_fields=("id",), bucket_count=16))
    snapshot = open_snapshot(str(path))

    assert len(snapshot.slices()) == 16
    assert len(snapshot.slices([Compare("id", "=", 7)])) == 1
    assert len(snapshot.slices([OneOf("id", (7, 8))])) <= 2
    for number in range(0, 1000, 97):
        assert (number,) in values(rows(snapshot, "id", predicates=(Compare("id", "=", number),)))


def test_a_large_file_is_cut_between_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "t"
    settings = write_settings(output=Output(row_group_bytes=1), batch_size=MIB)
    asked = TableSettings(record_key_fields=("id",), bucket_count=1)
    write(path, [table(range(start, start + 70_000), 1) for start in (0, 70_000)], table=asked, settings=settings)
    snapshot = open_snapshot(str(path))
    [slice_] = snapshot.slices()

    splits = snapshot.plan(snapshot.schema, (), slice_.base_file.size // 2)

    assert len(splits) > 1
    numbers = [number for split in splits for part in split.parts for number in part.row_groups or ()]
    assert sorted(numbers) == list(range(len(numbers)))
    assert rows(snapshot, "id", split_size=slice_.base_file.size // 2).num_rows == 140_000


def test_a_damaged_file_is_named_with_partition_and_table(tmp_path: Path) -> None:
    path = Path(unpack("v9_cow_types", tmp_path))
    [first, *_] = sorted((path / "b").glob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-100])

    with pytest.raises(CorruptFileError, match="partition 'b'") as caught:
        rows(open_snapshot(str(path)))

    assert first.name in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_damaged_page_is_named_too(tmp_path: Path) -> None:
    path = Path(unpack("v9_cow_evolved", tmp_path))
    newest = max(path.glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])
    data = bytearray(newest.read_bytes())
    data[4:400] = bytes(396)
    newest.write_bytes(data)

    with pytest.raises(CorruptFileError, match=newest.name):
        rows(open_snapshot(str(path)))


def test_a_table_that_nobody_wrote_to_has_the_columns_it_was_created_with(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "t"))
    config = TableConfig.new(TableSettings(name="t", record_key_fields=("id",), bucket_count=2))
    create_config(storage, config)

    assert open_snapshot(str(tmp_path / "t")).schema.names == [*META_COLUMNS]

    avro = '{"type":"record","name":"t_record","fields":[{"name":"id","type":["null","int"],"default":null}]}'
    update_config(storage, {"hoodie.table.create.schema": avro})
    snapshot = open_snapshot(str(tmp_path / "t"))
    assert snapshot.schema.names == [*META_COLUMNS, "id"]
    assert snapshot.plan(snapshot.schema, (), MIB) == []


def test_a_kind_of_table_that_pyhudi_does_not_read_is_refused(tmp_path: Path) -> None:
    path = unpack("v9_cow_types", tmp_path)
    storage = open_storage(path)
    assert load_config(storage).table_type == "COPY_ON_WRITE"
    update_config(storage, {"hoodie.table.base.file.format": "ORC"})

    with pytest.raises(UnsupportedTableError, match="ORC"):
        open_snapshot(path)
