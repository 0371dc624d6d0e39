"""Partition paths made of times in each form that they come in, by Apache Hudi and pyhudi in turn."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import upserted
from interop.readers import Readers
from interop.scenarios import BUCKETS, Model, Row, Scenario
from interop.writer import write_without_spark

pytestmark = pytest.mark.interop

TIMES = "hoodie.keygen.timebased."
# Its days end at 16:00 in UTC, so that a path in a wrong zone is another path.
ZONE = dt.timezone(dt.timedelta(hours=8))


def moment(i: int) -> dt.datetime:
    """Return the time of row number i: of four rows a day, two lie in the next day of `ZONE`."""
    start = dt.datetime(2024, 2, 26, 14, 30, tzinfo=dt.timezone.utc)
    return start + dt.timedelta(days=i // 4, hours=i % 2 * 3)


def timed(kind: str, column: pa.DataType, value: Callable[[dt.datetime], Any], path: str, **options: str) -> Scenario:
    """Return the table of one type of times.

    Args:
        kind: Hudi's name of it.
        column: The column's type.
        value: Makes the column's value of a time.
        path: What `strftime` makes the partition path by.
        options: Further options of the key generator, ``__`` for a dot.
    """

    def row(i: int, n: int) -> Row:
        return {"id": i, "t": value(moment(i)), "name": f"{i}.{n}", "path": moment(i).astimezone(ZONE).strftime(path)}

    return Scenario(
        name=f"{kind} {options.get('timestamp__scalar__time__unit', '')}".strip().lower(),
        columns=pa.schema([("id", pa.int64()), ("t", column), ("name", pa.string()), ("path", pa.string())]),
        key_fields=("id",),
        partition_fields=("t",),
        row=row,
        record_key=lambda row: str(row["id"]),
        partition_path=lambda row: row["path"],
        options={
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
            f"{TIMES}timestamp.type": kind,
            f"{TIMES}output.timezone": "GMT+8:00",
            **{TIMES + name.replace("__", "."): value for name, value in options.items()},
        },
        texts_to_apache=("t",),
    )


def with_or_without_offset(time: dt.datetime) -> str:
    """Return the time as text; every other hour names its offset."""
    return time.strftime("%Y%m%d%H%M") if time.hour % 2 else f"{time:%Y-%m-%dT%H:%M:%S}+0000"


SCENARIOS = [
    timed(
        "UNIX_TIMESTAMP", pa.int64(), lambda time: int(time.timestamp()), "%Y/%m/%d", output__dateformat="yyyy/MM/dd"
    ),
    timed(
        "SCALAR",
        pa.int32(),
        lambda time: int(time.timestamp()) // 3600,
        "%Y-%m-%d",
        timestamp__scalar__time__unit="HOURS",
        output__dateformat="yyyy-MM-dd",
    ),
    timed(
        "SCALAR",
        pa.date32(),
        lambda time: time.astimezone(ZONE).date(),
        "%Y-%m-%d",
        timestamp__scalar__time__unit="DAYS",
        output__dateformat="yyyy-MM-dd",
    ),
    timed(
        "DATE_STRING",
        pa.string(),
        lambda time: f"{time:%Y-%m-%d %H:%M}",
        "%Y/%m/%d",
        input__dateformat="yyyy-MM-dd HH:mm",
        input__timezone="UTC",
        output__dateformat="yyyy/MM/dd",
    ),
    timed(
        "MIXED",
        pa.string(),
        with_or_without_offset,
        "%Y-%m-%d",
        input__dateformat="yyyy-MM-dd'T'HH:mm:ssZ;yyyyMMddHHmm",
        input__dateformat__list__delimiter__regex=";",
        input__timezone="UTC",
        output__dateformat="yyyy-MM-dd",
    ),
]


# Each makes tables of some types, and of one both do: whoever made it, each finds the rows of the other.
FIRST = ["pyhudi first", "Apache Hudi first"]
TURNS = [*((scenario, FIRST[number % 2]) for number, scenario in enumerate(SCENARIOS)), (SCENARIOS[-1], FIRST[1])]


@pytest.mark.parametrize(("scenario", "first"), TURNS, ids=lambda value: getattr(value, "name", value))
def test_either_writer_finds_the_rows_of_the_other(
    scenario: Scenario, first: str, table: Path, hudi: ApacheHudi, readers: Readers
) -> None:
    """The first write has days of its own, the second adds to its last ones, and the third to those of both."""
    model = Model(scenario)
    options = {**scenario.table_options, BUCKETS: "1", "hoodie.metadata.enable": "false"}
    for version, numbers in enumerate([range(12), range(8, 16), range(12, 20)], 1):
        rows = scenario.rows(numbers, version, ts=version)
        if (version % 2 == 1) == (first == "pyhudi first"):
            write_without_spark(table, scenario.table(rows), options)
        else:
            hudi.write(table, scenario.table(rows), options)
        upserted(table, model, rows)

    readers.check(table, model, by_spark=False)
