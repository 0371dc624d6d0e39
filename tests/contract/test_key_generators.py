"""Tables of each key generator, through writes and reads without Spark."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import MissingOptionError, OptionConflictError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.scan import RowReader
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.config import property_keys as key
from pyhudi.table.config.key_types import KeyGeneratorType, PartitionType
from support.drive import rows_of, write
from support.places import Place, below, some_on_s3

HIVE = "__HIVE_DEFAULT_PARTITION__"
DAY = 86_400_000
MILLIS = {key.TIME_TYPE: "EPOCHMILLISECONDS", key.TIME_OUTPUT_FORMAT: "yyyy/MM/dd"}
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "p": ["x", "y/z", None, ""],
        "t": pa.array([0, 30 * DAY - 1, 30 * DAY, None], pa.int64()),
        "a": [{"b": "m"}, {"b": None}, None, {"b": "n"}],
        "ts": [1, 1, 1, 1],
    }
)
TIMESTAMP = {"partition_fields": ("t",), "key_generator": KeyGeneratorType.TIMESTAMP, "time_options": MILLIS}
CUSTOM = {
    "partition_fields": ("p", "t"),
    "partition_types": (PartitionType.SIMPLE, PartitionType.TIMESTAMP),
    "time_options": MILLIS,
}
GENERATORS = {
    "timestamp": (TIMESTAMP, ["1970/01/01", "1970/01/30", "1970/01/31", "1970/01/01"]),
    "timestamp, hive style": (
        {**TIMESTAMP, "hive_style": True},
        ["t=1970/01/01", "t=1970/01/30", "t=1970/01/31", "t=1970/01/01"],
    ),
    "timestamp, escaped": (
        {**TIMESTAMP, "url_encode": True},
        ["1970%2F01%2F01", "1970%2F01%2F30", "1970%2F01%2F31", "1970%2F01%2F01"],
    ),
    "timestamp elsewhere": (
        {**TIMESTAMP, "time_options": {**MILLIS, key.TIME_ZONE: "America/New_York"}},
        ["1969/12/31", "1970/01/30", "1970/01/30", "1969/12/31"],
    ),
    "custom": (CUSTOM, ["x/1970/01/01", "y/z/1970/01/30", f"{HIVE}/1970/01/31", f"{HIVE}/1970/01/01"]),
    "custom, hive style and escaped": (
        {**CUSTOM, "hive_style": True, "url_encode": True},
        [
            "p=x/t=1970%2F01%2F01",
            "p=y%2Fz/t=1970%2F01%2F30",
            f"p={HIVE}/t=1970%2F01%2F31",
            f"p={HIVE}/t=1970%2F01%2F01",
        ],
    ),
    "custom without partitions": ({"key_generator": KeyGeneratorType.CUSTOM}, [""] * 4),
    "simple, nested": ({"partition_fields": ("a.b",)}, ["m", HIVE, HIVE, "n"]),
    "complex, nested": (
        {"partition_fields": ("p", "a.b"), "url_encode": True},
        ["x/m", f"y%2Fz/{HIVE}", f"{HIVE}/{HIVE}", f"{HIVE}/n"],
    ),
}


def settings(**said: Any) -> TableSettings:
    return TableSettings(**{"record_key_fields": ("id",), "ordering_fields": ("ts",), "bucket_count": 2, **said})


def read(path: Place, *predicates: Compare) -> list[int]:
    snapshot = open_snapshot(str(path))
    splits = snapshot.plan(snapshot.schema, predicates, 1 << 27)
    batches = [
        one for split in splits for one in RowReader(snapshot.storage, snapshot.schema, snapshot.schema).read(split)
    ]
    return sorted(value for batch in batches for value in batch.column("id").to_pylist())


@some_on_s3("name", GENERATORS, len(GENERATORS))
def test_rows_go_where_their_generator_says_and_stay_what_they_are(anywhere: Place, name: str) -> None:
    """Later writes need no option, update in place, and columns come back as they were written."""
    said, paths = GENERATORS[name]
    path = below(anywhere, "t")
    write(path, ROWS, table=settings(**said))
    result = write(path, ROWS.slice(1, 2))

    assert (result.inserts, result.updates) == (0, 2)
    assert [row[1] for row in rows_of(path, "id", "_hoodie_partition_path")] == paths
    assert rows_of(path, "id", "p", "t") == sorted(
        zip(*(ROWS.column(one).to_pylist() for one in ("id", "p", "t")), strict=True)
    )
    assert write(path, ROWS.slice(0, 3), operation="delete").deletes == 3
    assert rows_of(path, "id") == [(4,)]


@some_on_s3("name", GENERATORS, len(GENERATORS))
def test_a_filter_leaves_out_no_partition_that_holds_its_rows(anywhere: Place, name: str) -> None:
    """A folder named by a time is not taken for the column's value."""
    path = below(anywhere, "t")
    write(path, ROWS, table=settings(**GENERATORS[name][0]))

    for row in ROWS.select(["id", "p", "t"]).to_pylist():
        for column in ("p", "t"):
            if row[column] is not None:
                assert row["id"] in read(path, Compare(column, "=", row[column]))


def test_the_simple_part_of_a_custom_path_leaves_out_partitions(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, ROWS, table=settings(**CUSTOM, url_encode=True))

    assert read(path, Compare("p", "=", "y/z")) == [2]


def test_zones_that_nobody_named_are_noted_as_utc(anywhere: Place) -> None:
    """Apache Hudi would take that of the machine it runs on."""
    path = below(anywhere, "t")
    write(path, ROWS, table=settings(**TIMESTAMP))

    assert load_config(open_storage(str(path))).time_options == {**MILLIS, key.TIME_OUTPUT_ZONE: "UTC"}


def forget(path: Place, *options: str) -> None:
    update_config(open_storage(str(path)), dict.fromkeys(options))


def test_a_table_that_does_not_tell_its_times_is_told_once(anywhere: Place) -> None:
    """Apache Hudi keeps these options for TIMESTAMP, but for its machine's zone, and none of them for CUSTOM."""
    path = below(anywhere, "t")
    write(path, ROWS, table=settings(**CUSTOM, url_encode=True))
    forget(path, *MILLIS, key.TIME_OUTPUT_ZONE)

    assert read(path, Compare("p", "=", "x")) == [1]
    with pytest.raises(MissingOptionError, match=key.TIME_TYPE):
        write(path, ROWS)
    with pytest.raises(MissingOptionError, match=key.TIME_OUTPUT_ZONE):
        write(path, ROWS, table=TableSettings(time_options=MILLIS))
    told = {**MILLIS, key.TIME_OUTPUT_ZONE: "UTC"}
    assert write(path, ROWS, table=TableSettings(time_options=told)).updates == 4
    assert load_config(open_storage(str(path))).time_options == told
    assert write(path, ROWS).updates == 4


def test_a_table_is_not_told_a_zone_that_its_rows_contradict(anywhere: Place) -> None:
    """Even by a write that touches none of those rows."""
    path = below(anywhere, "t")
    write(path, ROWS, table=settings(**TIMESTAMP))
    forget(path, key.TIME_OUTPUT_ZONE)
    new = ROWS.set_column(2, "t", pa.array([900 * DAY] * 4, pa.int64()))

    with pytest.raises(OptionConflictError, match=r"1970/01/01.*t=0.*1969/12/31"):
        write(path, new, table=TableSettings(time_options={key.TIME_OUTPUT_ZONE: "America/New_York"}))
    assert key.TIME_OUTPUT_ZONE not in load_config(open_storage(str(path))).time_options
    assert write(path, new, table=TableSettings(time_options={key.TIME_OUTPUT_ZONE: "UTC"})).inserts == 4


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"time_options": {key.TIME_OUTPUT_FORMAT: "yyyyMMdd"}}, r"'yyyyMMdd' here and 'yyyy/MM/dd'"),
        ({"time_options": {key.TIME_OUTPUT_ZONE: "Asia/Tokyo"}}, "'Asia/Tokyo' here and 'UTC'"),
        ({"time_options": {key.TIME_ZONE: "Asia/Tokyo"}}, "'Asia/Tokyo' here and 'UTC'"),
        ({"key_generator": KeyGeneratorType.SIMPLE}, "SIMPLE here and TIMESTAMP"),
        ({"partition_fields": ("t",), "partition_types": (PartitionType.SIMPLE,)}, "'SIMPLE' here and 'TIMESTAMP'"),
    ],
)
def test_options_that_disagree_with_the_table_are_refused(anywhere: Place, said: dict[str, Any], says: str) -> None:
    path = below(anywhere, "t")
    write(path, ROWS, table=settings(**TIMESTAMP))

    with pytest.raises(OptionConflictError, match=says):
        write(path, ROWS, table=TableSettings(**said))


def test_times_of_a_table_without_such_partitions_are_refused(anywhere: Place) -> None:
    path = below(anywhere, "t")
    with pytest.raises(OptionConflictError, match=key.TIME_TYPE):
        write(path, ROWS, table=settings(partition_fields=("p",), time_options=MILLIS))
    write(path, ROWS, table=settings(partition_fields=("p",)))
    with pytest.raises(OptionConflictError, match=key.TIME_TYPE):
        write(path, ROWS, table=TableSettings(time_options=MILLIS))


def test_timestamps_and_dates_are_partitioned_by_their_own_counts(anywhere: Place) -> None:
    moment = dt.datetime(2024, 2, 29, 23, 30, tzinfo=dt.timezone.utc)
    rows = pa.table({"id": [1], "d": [moment.date()], "t": pa.array([moment], pa.timestamp("us", "UTC")), "ts": [1]})
    micros = {**MILLIS, key.TIME_TYPE: "EPOCHMICROSECONDS", key.TIME_ZONE: "Asia/Tokyo"}
    days = {**MILLIS, key.TIME_TYPE: "SCALAR", key.TIME_UNIT: "DAYS"}
    for column, options in {"t": micros, "d": days}.items():
        said = {**TIMESTAMP, "partition_fields": (column,), "time_options": options}
        write(below(anywhere, column), rows, table=settings(**said))

    assert rows_of(below(anywhere, "t"), "_hoodie_partition_path", "t") == [("2024/03/01", moment)]
    assert rows_of(below(anywhere, "d"), "_hoodie_partition_path", "d") == [("2024/02/29", moment.date())]
