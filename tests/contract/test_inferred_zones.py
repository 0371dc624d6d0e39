"""A table whose time options lack the zone of its paths: writes take the zone that its stored rows show."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import MissingOptionError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config, update_config
from pyhudi.table.config import property_keys as key
from pyhudi.table.config.key_types import KeyGeneratorType, PartitionType
from support.drive import rows_of, write

ZONE = key.TIME_OUTPUT_ZONE
JANUARY = int(dt.datetime(2025, 1, 10, tzinfo=dt.timezone.utc).timestamp())
HOUR, DAY = 3600, 86_400
WINTER = [JANUARY]
YEAR = [JANUARY + month * 30 * DAY for month in range(12)]
TIMESTAMP = TableSettings(
    record_key_fields=("id",),
    ordering_fields=("ts",),
    bucket_count=1,
    partition_fields=("t",),
    key_generator=KeyGeneratorType.TIMESTAMP,
)
CUSTOM = replace(
    TIMESTAMP,
    partition_fields=("p", "t"),
    partition_types=(PartitionType.SIMPLE, PartitionType.TIMESTAMP),
    key_generator=KeyGeneratorType.CUSTOM,
)


def rows(days: Iterable[int]) -> pa.Table:
    """Return a row for each five minutes of some days."""
    moments = [day + minute * 60 for day in days for minute in range(0, 24 * 60, 5)]
    count = len(moments)
    columns = {"id": range(count), "p": ["x"] * count, "t": moments, "ts": [1] * count}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def options(zone: str, pattern: str = "yyyy/MM/dd") -> Mapping[str, str]:
    return {key.TIME_TYPE: "UNIX_TIMESTAMP", key.TIME_OUTPUT_FORMAT: pattern, ZONE: zone}


def zone_of(path: Path) -> str | None:
    return load_config(open_storage(str(path))).time_options.get(ZONE)


def forget_zone(path: Path) -> None:
    update_config(open_storage(str(path)), {ZONE: None})
    assert zone_of(path) is None


@pytest.mark.parametrize("table", [TIMESTAMP, CUSTOM], ids=["TIMESTAMP", "CUSTOM"])
@pytest.mark.parametrize(
    ("zone", "days", "inferred"),
    [("UTC", YEAR, "UTC"), ("Asia/Shanghai", WINTER, "GMT+8:00"), ("Europe/Rome", YEAR, "Europe/Amsterdam")],
)
def test_the_zone_that_the_rows_show_is_taken_and_kept(
    tmp_path: Path, table: TableSettings, zone: str, days: list[int], inferred: str
) -> None:
    """A region with another name has the same offsets."""
    stored = rows(days)
    write(tmp_path / "t", stored, table=replace(table, time_options=options(zone)))
    before = rows_of(tmp_path / "t", "_hoodie_partition_path", "id")
    forget_zone(tmp_path / "t")

    assert write(tmp_path / "t", stored).updates == stored.num_rows
    assert rows_of(tmp_path / "t", "_hoodie_partition_path", "id") == before
    assert zone_of(tmp_path / "t") == inferred


@pytest.mark.parametrize(
    ("zone", "pattern", "moments", "shown"),
    [
        ("UTC", "yyyyMMddHH", rows(WINTER), "both UTC and Europe/"),
        ("Asia/Tokyo", "yyyyMMdd", rows(WINTER).slice(144, 1), "both UTC and GMT"),
        ("UTC", "yyyy", rows(YEAR[:1]), "both UTC and GMT"),
    ],
    ids=["no summer", "a row at noon", "years alone"],
)
def test_rows_that_show_two_zones_leave_the_choice_to_the_user(
    tmp_path: Path, zone: str, pattern: str, moments: pa.Table, shown: str
) -> None:
    write(tmp_path / "t", moments, table=replace(TIMESTAMP, time_options=options(zone, pattern)))
    forget_zone(tmp_path / "t")

    with pytest.raises(MissingOptionError, match=f"{ZONE} is not given.* {shown}"):
        write(tmp_path / "t", moments)
    assert write(tmp_path / "t", moments, table=TableSettings(time_options={ZONE: zone})).updates == moments.num_rows
    assert zone_of(tmp_path / "t") == zone


def test_rows_of_two_writers_with_two_zones_show_none(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(YEAR), table=replace(TIMESTAMP, time_options=options("UTC")))
    update_config(open_storage(str(tmp_path / "t")), {ZONE: "Asia/Tokyo"})
    later = rows([day + 400 * DAY for day in YEAR])
    write(tmp_path / "t", later)
    forget_zone(tmp_path / "t")

    with pytest.raises(MissingOptionError, match=f"{ZONE} is not given.* no time zone"):
        write(tmp_path / "t", later)


def test_a_table_without_rows_shows_no_zone(tmp_path: Path) -> None:
    write(tmp_path / "t", rows(WINTER).slice(0, 0), table=replace(TIMESTAMP, time_options=options("UTC")))
    forget_zone(tmp_path / "t")

    with pytest.raises(MissingOptionError, match=f"{ZONE} is not given"):
        write(tmp_path / "t", rows(WINTER))
