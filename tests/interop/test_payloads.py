"""Tables that are made with a payload class, by pyhudi and by Apache Hudi: the same properties, and the same rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import properties
from interop.writer import write_without_spark
from pyhudi.table.config.payloads import PAYLOADS, Payload
from support.drive import rows_of
from support.recorded.hudi_options import unpartitioned

pytestmark = pytest.mark.interop

COLUMNS = ("id", "ts", "n", "Op")
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("Op", pa.string())])
OPTIONS = unpartitioned(2)
# What pyhudi writes down of the table and Apache Hudi does not, and the zone of times, in which they differ.
OURS = (
    "hoodie.index.",
    "hoodie.bucket.",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.table.timeline.timezone",
    "hoodie.table.create.schema",
)
WRITES = [
    [("a", 10, 1, "I"), ("b", 10, 1, "I"), ("c", 10, 1, "I"), ("f", 10, None, "I"), ("z", 10, 1, "D")],
    [("a", 5, 2, "U"), ("b", 5, 2, "D"), ("c", 20, 2, "D"), ("d", 1, 2, "D"), ("e", 1, 2, None), ("a", 3, 3, "U")],
    [("b", 1, 4, "I"), ("c", 30, 4, "I"), ("e", 1, 4, "d"), ("a", 40, None, None), ("f", 2, 5, None)],
]


def rows(number: int, told: Payload) -> pa.Table:
    """Return rows with the columns that a payload class goes by; of several that order rows the last one tells."""
    table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in WRITES[number]], SCHEMA)
    table = table.rename_columns(columns_of(told))
    for first in told.ordering_fields[:-1]:
        table = table.append_column(first, pa.array(["one for all"] * len(table), pa.string()))
    return table


def columns_of(told: Payload) -> list[str]:
    own = {"ts": told.ordering_fields[-1:], "Op": (told.delete_marker.field,) if told.delete_marker else ()}
    return [name for one in COLUMNS for name in own.get(one) or (one,)]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_class_makes_the_table_that_apache_hudi_makes(
    tmp_path: Path, apache: ApacheHudi, payload: str
) -> None:
    told = PAYLOADS[payload]
    options = {**OPTIONS, "hoodie.datasource.write.payload.class": told.java_class}
    options["hoodie.table.ordering.fields"] = ",".join(told.ordering_fields) or "ts"
    columns = columns_of(told)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_without_spark(ours, rows(0, told), options)
    apache.write(theirs, rows(0, told), options)
    made = properties(ours), properties(theirs)

    one, other = ({key: text for key, text in said.items() if not key.startswith(OURS)} for said in made)
    assert one == other

    # Each goes on with its own table, and then with the other's.
    write_without_spark(ours, rows(1, told), options)
    apache.write(theirs, rows(1, told), options)
    apache.write(ours, rows(2, told), options)
    write_without_spark(theirs, rows(2, told), options)
    read = [
        sorted(tuple(row[name] for name in columns) for row in apache.read(at).to_pylist()) for at in (ours, theirs)
    ]
    assert read[0] == read[1] == rows_of(ours, *columns) == rows_of(theirs, *columns)
