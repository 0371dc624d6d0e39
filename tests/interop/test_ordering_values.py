"""Every pair of ordering values, in every role, merged by Apache Hudi and by pyhudi."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from pyhudi.operations.planning.request import TableSettings
from support.drive import rows_of, write

pytestmark = pytest.mark.interop

INF, NAN = float("inf"), float("nan")
DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(1970, 1, 2)]
VALUES = {
    "int": (pa.int32(), [-1, 0, 1]),
    "long": (pa.int64(), [-1, 0, 1]),
    "float": (pa.float32(), [-INF, -1.5, -0.0, 0.0, 1.5, INF, NAN]),
    "double": (pa.float64(), [-INF, -1.5, -0.0, 0.0, 1.5, INF, NAN]),
    "string": (pa.string(), ["", "a", "a\0", "b", "é", "\ud7ff", "\ue000", "\uffff", "\U00010000"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00"]),
    "boolean": (pa.bool_(), [False, True]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime(1969, 12, 31), dt.datetime(1970, 1, 1)]),
    "timestamp_ntz": (pa.timestamp("us"), [dt.datetime(1969, 12, 31), dt.datetime(1970, 1, 1)]),
}
# Apache Hudi writes such tables and cannot update them.
FAILING = {
    "date": (pa.date32(), DAYS, "ChronoLocalDate"),
    "decimal": (pa.decimal128(5, 2), [Decimal("1.00"), Decimal("2.00")], "BigDecimal"),
}
SETTINGS = TableSettings(name="t", record_key_fields=("id",), ordering_fields=("ts",), bucket_count=1)
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.metadata.enable": "false",
}


def writes(kind: pa.DataType, values: list[Any]) -> tuple[pa.Table, pa.Table]:
    """Return two writes in which every pair meets: row and delete, in the table and within the second write."""
    first, second = [], []
    for one, older in enumerate(values):
        for other, newer in enumerate(values):
            pair = f"{one}.{other}"
            for deleted in (False, True):
                first.append((f"base {pair} {deleted}", older, 1, False))
                second.append((f"base {pair} {deleted}", newer, 2, deleted))
                for before in (False, True):
                    second.append((f"fold {pair} {before} {deleted}", older, 1, before))
                    second.append((f"fold {pair} {before} {deleted}", newer, 2, deleted))
    kinds = [pa.string(), kind, pa.int32(), pa.bool_()]
    names = ["id", "ts", "n", "_hoodie_is_deleted"]
    tables = [
        pa.table([pa.array([row[at] for row in rows], one) for at, one in enumerate(kinds)], names=names)
        for rows in (first, second)
    ]
    return tables[0], tables[1]


@pytest.mark.parametrize("name", VALUES)
def test_ordering_values_compare_as_apache_hudi_compares_them(tmp_path: Path, apache: ApacheHudi, name: str) -> None:
    first, second = writes(*VALUES[name])
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for rows in (first, second):
        write(ours, rows, table=SETTINGS)
        apache.write(theirs, rows, OPTIONS)

    read = apache.read(theirs).select(["id", "n"])
    assert rows_of(ours, "id", "n") == sorted((row["id"], row["n"]) for row in read.to_pylist())


@pytest.mark.parametrize("name", FAILING)
def test_what_apache_hudi_cannot_order_it_still_cannot(tmp_path: Path, apache: ApacheHudi, name: str) -> None:
    """When this fails, the documentation of ordering columns has to change."""
    kind, values, words = FAILING[name]
    first, second = writes(kind, values)
    apache.write(tmp_path / "t", first, OPTIONS)
    with pytest.raises(ApacheHudiError, match=words):
        apache.write(tmp_path / "t", second, OPTIONS)
