"""What commits say of bounds in the metadata table: they contain what files hold, and no condition misses a row."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import arrow
from pyhudi.operations.write.commit import commit_write
from pyhudi.storage import open_storage
from pyhudi.table.config import update_config
from pyhudi.table.metadata.bounds_of_files import FileBounds
from pyhudi.table.metadata.bounds_records import bounds_records
from pyhudi.table.metadata.group_schemas import schema_of_group
from pyhudi.table.metadata.index_definitions import index_definitions
from pyhudi.table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from pyhudi.table.metadata.metadata_table import MetadataTable
from pyhudi.table.metadata.read_bounds import bounds_of_base_file, bounds_of_log_file
from pyhudi.table.metadata.records import decode
from pyhudi.table.schema.columns import with_meta
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from support.drawn.upkept import OFF
from support.drive import plan, task
from support.made.begun_metadata import asked_always
from support.made.metadata_of_logs import with_log_files
from support.made.metadata_tables import How, files_of, simulate
from support.recorded.recorded_metadata import unpack
from support.rules.health import of_metadata
from support.seams import patch_seam
from support.write_settings import write_settings

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
NAN = float("nan")
# By the name of a column: its type, and values that come one after the other.
VALUES: Mapping[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False, None]),
    "small": (pa.int32(), [5, -7, None, 2**31 - 1]),
    "large": (pa.int64(), [5, -7, None, 2**62]),
    "single": (pa.float32(), [1.5, NAN, None, -0.0, 0.0]),
    "double": (pa.float64(), [1.5, -2.5, None, 0.0, NAN]),
    "text": (pa.string(), ["a", "é" * 50, None, "x" * 5000, "", "\U0010ffff" * 40, "\U00010000\uffff"]),
    "octets": (pa.binary(), [b"a", b"\xff" * 80, None, b""]),
    "day": (pa.date32(), [date(1969, 1, 1), date(2026, 5, 5), None]),
    "cost": (pa.decimal128(10, 2), [Decimal("1.20"), Decimal("-3.50"), None]),
    "wide": (pa.decimal128(38, 10), [Decimal("1.2"), Decimal("-12345678901234567890.5"), None]),
    "at": (
        pa.timestamp("us", "UTC"),
        [datetime(2020, 1, 1, tzinfo=timezone.utc), datetime(1960, 1, 1, tzinfo=timezone.utc), None],
    ),
    "local": (pa.timestamp("us"), [datetime(2020, 1, 1), datetime(1960, 1, 1), None]),
    "nothing": (pa.int32(), [None]),
    "nested": (pa.struct([("inner", pa.int32())]), [{"inner": 1}]),
}
CONDITIONS = [
    *("flag", "small < 0", "small > 2000000000", "large > 1000000000000", "large is null", "nothing is null"),
    *("single > 1e30", "single < 1", "double > 1e300", "double < -2", "double = 0"),
    *("text = ''", "text > 'x'", "text < 'b'", "day < date '1970-01-01'", "cost < 0", "wide < -1000"),
    *("at < timestamp '1970-01-01 00:00:00'", "local < '1970-01-01 00:00:00'", "nothing = 1"),
    *("small = 5 and large = 5", "id = '12'", "nested.inner = 1"),
]
OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}


def rows(*ids: int, partitions: int = 2) -> pa.Table:
    every = {name: pa.array([said[one % len(said)] for one in ids], kind) for name, (kind, said) in VALUES.items()}
    keys = {"id": pa.array(map(str, ids), pa.string()), "part": [f"p{one % partitions}" for one in ids]}
    return pa.table({**keys, "version": pa.array(ids, pa.int64()), **every})


def begun(
    path: Path, *, version: int = 9, table_type: str = COW, first: pa.Table | None = None, buckets: int = 2
) -> arrow.Table:
    """Return a table whose metadata table began after its first write."""
    first = rows(*range(8)) if first is None else first
    how = {
        "record_key": "id",
        "partition_by": "part",
        "order_by": "version",
        "buckets": buckets,
        "table_type": table_type,
    }
    arrow.Table.create(
        str(path), first.schema, timestamps="local", options={"hoodie.write.table.version": version}, **how
    )
    table = arrow.Table(str(path), options=OPTIONS)
    table.upsert(first)
    files, bounds = with_log_files(str(path), files_of(str(path)))
    # An older index has no bounds of such decimals.
    indexed = [each for each in bounds if version == 9 or each.column != "wide"]
    simulate(str(path), files, indexed, how=How(only=(FILES, COLUMN_STATS, PARTITION_STATS)))
    return table


def assert_right(path: Path, conditions: Sequence[str] = CONDITIONS[:3]) -> None:
    """Assert that the metadata table is in use and right, and that no condition misses a row by it."""
    assert open_table(open_storage(str(path))).config.metadata_partitions == (COLUMN_STATS, FILES, PARTITION_STATS)
    assert not of_metadata(path)
    without = path.parent / "without"
    shutil.copytree(path, without)
    update_config(open_storage(str(without)), {"hoodie.table.metadata.partitions": ""})
    columns = arrow.Table(str(path)).read().column_names
    for condition in conditions:
        if all(name in columns for name in VALUES if name in condition):
            with asked_always():
                found = arrow.Table(str(path)).read(where=condition)["id"].to_pylist()
            assert sorted(found) == sorted(arrow.Table(str(without)).read(where=condition)["id"].to_pylist()), condition
    shutil.rmtree(without)


@pytest.mark.parametrize(
    ("version", "table_type", "block"), [(8, MOR, "parquet"), (9, COW, "parquet"), (9, MOR, "avro")]
)
def test_bounds_of_all_types_contain_what_files_hold(tmp_path: Path, version: int, table_type: str, block: str) -> None:
    table = begun(tmp_path / "t", version=version, table_type=table_type)
    logged = {"hoodie.logfile.data.block.format": block}

    table.upsert(rows(*range(4, 20)), **logged)
    table.delete(rows(3, 4).select(["id", "part", "version"]), **logged)
    table.upsert(rows(30, partitions=31), **logged)

    assert_right(tmp_path / "t", CONDITIONS)


def records(path: Path, partition: str) -> list[dict[str, Any]]:
    """Return the records of bounds in a partition of the metadata table."""
    seen = SeenTable.now(open_table(open_storage(str(path))))
    metadata = MetadataTable.of(seen.table, seen.timeline)
    assert metadata is not None
    found = [row["ColumnStatsMetadata"] for part in metadata.partition(partition).records() for row in part.to_pylist()]
    return sorted(found, key=lambda record: (record["fileName"], record["columnName"]))


def _value(wrapped: Mapping[str, Any] | None) -> Any:
    return next((value for value in (wrapped or {}).values() if value is not None), None)


# Of `VALUES`, as records of version 9 wrap them: the least and the greatest, and how many of 120 rows are nulls.
SPANS: Mapping[str, tuple[Any, Any, int]] = {
    "flag": (False, True, 40),
    "small": (-7, 2**31 - 1, 30),
    "large": (-7, 2**62, 30),
    "single": ("-0.0", "nan", 24),
    "double": ("-2.5", "nan", 24),
    "text": ("", "\U0010ffff" * 40, 17),
    "octets": (b"", b"\xff" * 80, 30),
    "day": (-365, 20578, 40),
    "cost": (b"\xfe\xa2", b"\x78", 40),
    "at": (-315619200000000, 1577836800000000, 40),
    "local": (-315619200000000, 1577836800000000, 40),
    "nothing": (None, None, 120),
    "_hoodie_partition_path": ("p9", "p9", 0),
}


@pytest.mark.parametrize(("table_type", "block"), [(COW, "parquet"), (MOR, "parquet"), (MOR, "avro")])
def test_bounds_are_exact(tmp_path: Path, table_type: str, block: str) -> None:
    """But those of texts and binary values with more than 64 bytes, unless no short one is greater."""
    table = begun(tmp_path / "t", table_type=table_type, first=rows(0), buckets=1)
    many = rows(*range(120)).set_column(1, "part", pa.array(["p9"] * 120))
    for _ in range(1 if table_type == COW else 2):
        table.upsert(many, **{"hoodie.logfile.data.block.format": block})

    for partition in (COLUMN_STATS, PARTITION_STATS):
        of_rows = [one for one in records(tmp_path / "t", partition) if one["valueCount"] >= 120]
        newest = {one["columnName"]: one for one in reversed(of_rows)}
        times = newest["id"]["valueCount"] // 120
        column_bounds = {
            name: (_value(one["minValue"]), _value(one["maxValue"]), one["nullCount"]) for name, one in newest.items()
        }
        plain = {
            name: tuple(str(one) if isinstance(one, float) else one for one in said)
            for name, said in column_bounds.items()
        }
        assert "nested" not in plain
        assert {name: plain[name] for name in SPANS} == {
            name: (least, greatest, nulls * times) for name, (least, greatest, nulls) in SPANS.items()
        }
        if table_type == MOR:
            assert newest["id"]["fileName"].startswith("." if partition == COLUMN_STATS else "p9")


def test_logs_of_partial_rows_widen_partitions_alone(tmp_path: Path) -> None:
    """Judged alone, neither the base file nor such a log file has a row that meets a condition on two columns."""
    table = begun(tmp_path / "t", table_type=MOR)

    table.upsert(
        rows(*range(4)).select(["id", "part", "version", "large"]).set_column(3, "large", _longs(77)), partial=True
    )

    assert not [one for one in records(tmp_path / "t", COLUMN_STATS) if one["fileName"].startswith(".")]
    assert _spans(tmp_path / "t", PARTITION_STATS, "large") == {"p0": (5, 77), "p1": (-7, 2**62)}
    assert_right(tmp_path / "t", ["large = 77 and small = 5", "large = 77 and small = -7"])


def test_logs_have_no_bounds_where_nulls_keep_older_values(tmp_path: Path) -> None:
    how = {"record_key": "id", "partition_by": "part", "order_by": "version", "buckets": 1, "table_type": MOR}
    arrow.Table.create(str(tmp_path / "t"), rows(0).schema, partial_update_mode="IGNORE_DEFAULTS", **how)
    table = arrow.Table(str(tmp_path / "t"), options=OPTIONS)
    table.upsert(rows(*range(4)))
    simulate(str(tmp_path / "t"), how=How(only=(FILES, COLUMN_STATS, PARTITION_STATS)))

    table.upsert(rows(*range(4)))

    assert not [one for one in records(tmp_path / "t", COLUMN_STATS) if one["fileName"].startswith(".")]
    assert_right(tmp_path / "t")


def test_built_bounds_of_cut_texts_are_no_finding(tmp_path: Path) -> None:
    """A build calls its bounds of partitions tight; the greatest text has to be made greater where it is cut."""
    path, first = tmp_path / "t", rows(*range(8))
    long_texts = pa.array(["a" * 63 + "é" * 3] * 8, pa.string())
    table = begun(path, first=first.set_column(first.column_names.index("text"), "text", long_texts))

    table.drop_index("files")
    table.create_index("partition_stats")

    assert_right(path, ["text > 'a'"])


def _longs(*values: int) -> pa.Array:
    return pa.array(values * 4, pa.int64())


def _spans(path: Path, partition: str, column: str) -> dict[str, tuple[Any, Any]]:
    found = [one for one in records(path, partition) if one["columnName"] == column]
    return {one["fileName"]: (_value(one["minValue"]), _value(one["maxValue"])) for one in found}


def _small(*values: int, kind: pa.DataType) -> pa.Table:
    keys = {"id": pa.array(map(str, values), pa.string()), "part": ["p0"] * len(values)}
    return pa.table({**keys, "version": pa.array(values, pa.int64()), "n": pa.array(values, kind)})


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_widened_column_leaves_the_definition(tmp_path: Path, table_type: str) -> None:
    path = tmp_path / "t"
    table = begun(path, table_type=table_type, first=_small(1, 2, kind=pa.int32()))

    result = table.upsert(_small(2, 1 << 40, kind=pa.int64()))

    assert result.metadata is not None
    assert [warning.partition(":")[0] for warning in result.metadata.warnings] == [
        "partition_stats went out of use",
        "The metadata table keeps no bounds of n any more",
    ]
    assert "n" not in index_definitions(open_storage(str(path)))[COLUMN_STATS].columns
    assert table.upsert(_small(3, kind=pa.int64())).metadata.warnings == ()
    told = [one["minValue"] for one in records(path, COLUMN_STATS) if one["columnName"] == "n"]
    assert sorted(one["Int"] for one in told) == [1, 2]
    # Apache Hudi would leave out a new partition without bounds of n beside others with such bounds.
    assert open_table(open_storage(str(path))).config.metadata_partitions == (COLUMN_STATS, FILES)
    with asked_always():
        assert arrow.Table(str(path)).read(where=f"n = {1 << 40}")["id"].to_pylist() == [str(1 << 40)]
    arrow.Table(str(path)).create_index("partition_stats")
    assert "n" not in {one["columnName"] for one in records(path, PARTITION_STATS)}
    table.clean(retain=1)
    assert_right(path)


def test_a_new_column_has_no_bounds_until_it_is_indexed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = begun(path, first=_small(1, 2, kind=pa.int32()))

    result = table.upsert(_small(2, 3, kind=pa.int32()).append_column("more", pa.array([7, 8], pa.int64())))

    assert result.metadata is not None
    assert result.metadata.warnings == ()
    assert not [one for one in records(path, COLUMN_STATS) if one["columnName"] == "more"]
    assert_right(path)
    with asked_always():
        assert arrow.Table(str(path)).read(where="more = 8")["id"].to_pylist() == ["3"]


def test_a_clean_takes_bounds_of_files_and_of_partitions_without_files(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = begun(path)
    table.upsert(rows(0, 2, 4))
    table.delete_partitions("p1")
    table.upsert(rows(0))

    cleaned = table.clean(retain=1)

    assert cleaned.instant
    assert {one["fileName"] for one in records(path, PARTITION_STATS)} == {"p0"}
    left = {file.name for file in path.glob("p*/*.parquet")}
    assert {one["fileName"] for one in records(path, COLUMN_STATS)} == left
    assert _partitions(path) == ["p0"]
    table.upsert(rows(1, 3))
    assert _partitions(path) == ["p0", "p1"]
    assert_right(path)


def _partitions(path: Path) -> list[str]:
    """Return the partitions that the metadata table names."""
    seen = SeenTable.now(open_table(open_storage(str(path))))
    metadata = MetadataTable.of(seen.table, seen.timeline)
    assert metadata is not None
    found = {row["key"]: row for part in metadata.partition(FILES).records() for row in part.to_pylist()}
    names = sorted(name for name, _ in found.pop("__all_partitions__")["filesystemMetadata"])
    assert sorted(found) == names
    return names


@pytest.mark.parametrize("name", ["live_8_by_1_0", "live_9_by_1_2", "spared_8_by_1_2", "live_9_by_1_2_of_base_files"])
def test_records_of_files_are_those_of_apache_hudi(tmp_path: Path, name: str) -> None:
    """But for the type in records of a log file of deletes, which Apache Hudi calls null."""
    path = unpack(tmp_path) / name
    seen = SeenTable.now(open_table(open_storage(str(path))))
    metadata = MetadataTable.of(seen.table, seen.timeline)
    assert metadata is not None and seen.schema is not None
    definition = index_definitions(seen.storage)[COLUMN_STATS]
    fields = [with_meta(seen.schema).field(column) for column in definition.columns]
    partition = metadata.partition(COLUMN_STATS)
    theirs = {row["key"]: row["ColumnStatsMetadata"] for part in partition.records() for row in part.to_pylist()}
    places = {file.name: file.relative_to(path) for file in path.rglob("*") if ".hoodie" not in file.parts}
    files = []
    for file in {record["fileName"] for record in theirs.values()}:
        read = bounds_of_base_file if file.endswith(".parquet") else bounds_of_log_file
        found = read(seen.storage, str(places[file]), fields)
        files.append(FileBounds(str(places[file].parent).removeprefix("."), file, *found))
    schema = schema_of_group(metadata, COLUMN_STATS, partition.file_ids[0])

    made = bounds_records(files, fields, schema, typed=definition.version == "V2")

    decoded = decode(made.values, schema).field("ColumnStatsMetadata").to_pylist()
    ours = dict(zip(made.keys.to_pylist(), decoded, strict=True))
    for key, record in theirs.items():
        if record["valueCount"] == 0 and record.get("valueType"):
            assert record["valueType"]["typeOrdinal"] == 1
            record["valueType"] = ours[key]["valueType"]
    assert ours == theirs


def test_a_write_that_began_before_the_metadata_table_reads_the_bounds_of_its_files(tmp_path: Path) -> None:
    """A later commit of Apache Hudi's calls bounds of the partition tight, which lack those files."""
    path = tmp_path / "t"
    arrow.Table.create(
        str(path), _small(0, kind=pa.int64()).schema, record_key="id", partition_by="part", order_by="version"
    )
    table = arrow.Table(str(path), options=OPTIONS)
    table.insert(_small(0, 2, kind=pa.int64()))
    planned = plan(
        path,
        _small(0, kind=pa.int64()).schema,
        operation="bulk_insert",
        settings=write_settings(retry_s=0.0, upkeep=OFF),
    )
    results = [task(planned, _small(100, 102, kind=pa.int64()), 0)]
    later = table.insert(_small(4, 6, kind=pa.int64()))
    simulate(str(path), how=How(logged=[later.instant], only=(FILES, COLUMN_STATS, PARTITION_STATS)))

    commit_result = commit_write(planned, results)

    assert commit_result.metadata is not None
    assert [warning.partition(":")[0] for warning in commit_result.metadata.warnings] == [
        "partition_stats went out of use"
    ]
    assert open_table(open_storage(str(path))).config.metadata_partitions == (COLUMN_STATS, FILES)
    written = [one for one in records(path, COLUMN_STATS) if one["columnName"] == "n"]
    assert {one["minValue"]["Long"] for one in written} == {0, 2, 4, 6, 100, 102}
    assert not of_metadata(path)


@pytest.mark.parametrize("waits", [True, False])
def test_a_partition_is_called_gone_only_while_no_older_write_is_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """Another engine's clean does so all the same: then its partition is hidden, and the metadata table not kept."""
    path = tmp_path / "t"
    schema = _small(0, kind=pa.int64()).schema
    arrow.Table.create(str(path), schema, record_key="id", partition_by="part", order_by="version")
    table = arrow.Table(str(path), options=OPTIONS)
    table.insert(_small(0, 1, kind=pa.int64()))
    table.insert(_small(2, kind=pa.int64()).set_column(1, "part", pa.array(["p1"])))
    simulate(str(path), how=How(only=(FILES, COLUMN_STATS, PARTITION_STATS)))
    table.delete_partitions("p0")
    planned = plan(path, schema, operation="bulk_insert", settings=write_settings(retry_s=0.0, upkeep=OFF))
    results = [task(planned, _small(100, kind=pa.int64()), 0)]
    table.insert(_small(3, kind=pa.int64()).set_column(1, "part", pa.array(["p1"])))
    if not waits:
        patch_seam(monkeypatch, "instants that may add files to a partition without files", frozenset())
    assert table.clean(retain=1, **{"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}).instant

    commit_result = commit_write(planned, results)

    assert commit_result.metadata is not None
    assert (commit_result.metadata.warnings == ()) is waits
    assert bool(open_table(open_storage(str(path))).config.metadata_partitions) is waits
    assert not of_metadata(path)
    with asked_always():
        assert sorted(arrow.Table(str(path)).read(where="n >= 0")["id"].to_pylist()) == ["100", "2", "3"]
