"""Tables that are made with a payload class, by pyhudi and by Apache Hudi: the same properties, and the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import properties
from interop.writer import write_without_spark
from pyhudi.table.config.payloads import PAYLOADS
from support.drive import rows_of

pytestmark = pytest.mark.interop

COLUMNS = ("id", "ts", "n", "Op")
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("Op", pa.string())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.enable": "false",
}
# What pyhudi writes down of the table and Apache Hudi does not, and the zone of times, in which they differ.
OURS = ("hoodie.index.", "hoodie.bucket.", "hoodie.table.timeline.timezone", "hoodie.table.create.schema")
WRITES = [
    [("a", 10, 1, "I"), ("b", 10, 1, "I"), ("c", 10, 1, "I"), ("f", 10, None, "I"), ("z", 10, 1, "D")],
    [("a", 5, 2, "U"), ("b", 5, 2, "D"), ("c", 20, 2, "D"), ("d", 1, 2, "D"), ("e", 1, 2, None), ("a", 3, 3, "U")],
    [("b", 1, 4, "I"), ("c", 30, 4, "I"), ("e", 1, 4, "d"), ("a", 40, None, None), ("f", 2, 5, None)],
]


def rows(number: int, order: str) -> pa.Table:
    table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in WRITES[number]], SCHEMA)
    return table.rename_columns([order if name == "ts" else name for name in COLUMNS])


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_class_makes_the_table_that_apache_hudi_makes(
    tmp_path: Path, apache: ApacheHudi, payload: str
) -> None:
    order = ",".join(PAYLOADS[payload].ordering_fields) or "ts"
    options = {**OPTIONS, "hoodie.datasource.write.payload.class": PAYLOADS[payload].java_class}
    options["hoodie.table.ordering.fields"] = order
    columns = [order if name == "ts" else name for name in COLUMNS]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_without_spark(ours, rows(0, order), options)
    apache.write(theirs, rows(0, order), options)
    made = properties(ours), properties(theirs)

    one, other = ({key: text for key, text in said.items() if not key.startswith(OURS)} for said in made)
    assert one == other

    # Each goes on with its own table, and then with the other's.
    write_without_spark(ours, rows(1, order), options)
    apache.write(theirs, rows(1, order), options)
    apache.write(ours, rows(2, order), options)
    write_without_spark(theirs, rows(2, order), options)
    read = [
        sorted(tuple(row[name] for name in columns) for row in apache.read(at).to_pylist()) for at in (ours, theirs)
    ]
    assert read[0] == read[1] == rows_of(ours, *columns) == rows_of(theirs, *columns)
