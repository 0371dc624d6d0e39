"""Every pair of ordering values, in every role: two writes of which Apache Hudi's merge is recorded."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyhudi.operations.planning.request import TableSettings
from support.recorded.hudi_options import unpartitioned

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
OPTIONS = unpartitioned(1)


def writes(kind: pa.DataType, values: list[Any]) -> tuple[pa.Table, pa.Table]:
    """Return two writes in which every pair meets: row and delete, in the table and within the second write."""
    first, second = [], []
    for current, older in enumerate(values):
        for other, newer in enumerate(values):
            pair = f"{current}.{other}"
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
