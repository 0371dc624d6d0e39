"""What Apache Hudi and hudi-rs make of each type, as docs/types.md says it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.readers import read_hudi_rs
from pyhudi.connector.source.spark_types import to_arrow
from pyhudi.operations.planning.request import TableSettings
from pyspark.sql import types as T  # noqa: N812
from support.drive import rows_of, write
from support.recorded.hudi_options import unpartitioned
from support.scripts import script

pytestmark = pytest.mark.interop

SETTINGS = TableSettings(name="t", record_key_fields=("id",), ordering_fields=("ts",), bucket_count=1)
OPTIONS = unpartitioned(1)
REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"


made = script("make_types")


def test_every_type_comes_back_as_the_page_says(tmp_path: Path, apache: ApacheHudi) -> None:
    """Both as pyhudi wrote it and after Apache Hudi merged it."""
    stored = {f"c{number}": one for number, one in enumerate(made.STORED)}
    fields = [T.StructField(name, one.kind) for name, one in stored.items()]
    columns = to_arrow(T.StructType([T.StructField("id", T.StringType()), T.StructField("ts", T.LongType()), *fields]))
    rows = pa.Table.from_pylist([{"id": "a", "ts": 1}], columns)
    table = tmp_path / "t"
    write(table, rows, table=SETTINGS)
    expected = {name: made.spark_reads(one).replace(" ", "") for name, one in stored.items()}
    ours = apache.types(table)
    apache.write(table, rows, OPTIONS)
    theirs = apache.types(table)

    assert {name: ours[name] for name in stored} == expected
    assert {name: theirs[name] for name in stored} == expected


def test_every_type_is_read_by_hudi_rs_as_the_page_says(tmp_path: Path) -> None:
    for number, stored_type in enumerate(made.STORED):
        columns = to_arrow(
            T.StructType(
                [
                    T.StructField("id", T.StringType()),
                    T.StructField("ts", T.LongType()),
                    T.StructField("c", stored_type.kind),
                ]
            )
        )
        table = tmp_path / f"t{number}"
        write(table, pa.Table.from_pylist([{"id": "a", "ts": 1}], columns), table=SETTINGS)
        if stored_type.hudi_rs:
            with pytest.raises(BaseException, match=stored_type.hudi_rs):  # a panic is no Exception
                read_hudi_rs(table)
        else:
            assert str(read_hudi_rs(table).schema.field("c").type) == made.arrow_type(stored_type), stored_type.kind


OLD = pa.table(
    {
        "id": ["a", "b", "c"],
        "ts": [1, 1, 1],
        "day": [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(1582, 10, 4)],
        "moment": pa.array(
            [dt.datetime(1, 1, 1), dt.datetime(1582, 10, 10, 1), dt.datetime(1899, 12, 31, 23, 59, 59, 999_999)],
            pa.timestamp("us", "UTC"),
        ),
        "local": pa.array([dt.datetime(1, 1, 1), dt.datetime(1582, 10, 10, 1), None], pa.timestamp("us")),
    }
)


def test_days_before_1582_are_read_by_apache_hudi_until_it_writes_them_itself(
    tmp_path: Path, apache: ApacheHudi
) -> None:
    """Its own files do not say which calendar they count by; pyhudi's do, and pyhudi reads both."""
    ours = tmp_path / "t"
    write(ours, OLD, table=SETTINGS)
    assert apache.read(ours).select(OLD.column_names).sort_by("id").to_pylist() == OLD.to_pylist()

    apache.write(ours, OLD.slice(0, 1), OPTIONS)
    with pytest.raises(ApacheHudiError, match="READ_ANCIENT_DATETIME"):
        apache.read(ours)
    columns = tuple(OLD.column_names)
    assert rows_of(ours, *columns) == sorted(tuple(row.values()) for row in OLD.to_pylist())
    apache.sql(f"SET {REBASE}=CORRECTED")
    try:
        assert apache.read(ours).select(OLD.column_names).sort_by("id").to_pylist() == OLD.to_pylist()
    finally:
        apache.sql(f"RESET {REBASE}")

    write(ours, OLD.slice(1, 1))
    assert apache.read(ours).select(OLD.column_names).sort_by("id").to_pylist() == OLD.to_pylist()


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("null", "has type null"),
        ("array()", "has type null"),
        ("map(1, 2)", "Unexpected Spark DataType: MapType"),
        ("interval '1-2' year to month", "Cannot save interval data type"),
        ("interval '1 2:3:4.5' day to second", "Cannot save interval data type"),
    ],
)
def test_what_pyhudi_refuses_apache_hudi_refuses_too(
    tmp_path: Path, apache: ApacheHudi, expression: str, words: str
) -> None:
    with pytest.raises(ApacheHudiError, match=words):
        apache.call(
            "write_sql", table=str(tmp_path / "t"), text=f"select 'a' id, 1L ts, {expression} c", options=OPTIONS
        )
