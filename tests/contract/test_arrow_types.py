"""Rows of any Arrow types and layouts, written by `pyhudi.arrow`: each value is read back exactly, or named."""

from __future__ import annotations

import uuid

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi import arrow
from pyhudi.errors import ColumnValueError, UnsupportedTypeError
from support.drawn.arrow_columns import draw_column, first_misfit, told
from support.share import share_of

BLOCKS = "hoodie.logfile.data.block.format"
KINDS = ({}, *({"table_type": "MERGE_ON_READ", BLOCKS: form} for form in ("avro", "parquet")))


@settings(max_examples=share_of(60), deadline=None)
@given(st.data())
def test_each_value_of_any_arrow_type_is_read_back_exactly_or_refused_by_column_and_row(data: st.DataObject) -> None:
    drawn = [draw_column(data) for _ in range(data.draw(st.integers(1, 3)))]
    rows = min(len(column.expected) for column in drawn)
    columns = {f"x{number}": column.array.slice(0, rows) for number, column in enumerate(drawn)}
    expected = {f"x{number}": column.expected[:rows] for number, column in enumerate(drawn)}
    table = pa.table({"id": pa.array(range(rows), pa.int64()), **columns})
    if data.draw(st.booleans()):
        # Each chunk has a dictionary of its own.
        table = pa.concat_tables([table.slice(0, rows // 2), table.slice(rows // 2)])
    options = {**data.draw(st.sampled_from(KINDS)), "timestamps": data.draw(st.sampled_from(["utc", "local"]))}
    path = f"memory://types/{uuid.uuid4()}"
    misfits = {name: first_misfit(values) for name, values in expected.items()}

    try:
        arrow.write(path, table, record_key="id", buckets=1, **options)
    except UnsupportedTypeError as error:
        assert any(f"'{name}" in str(error) for name in columns)
    except ColumnValueError as error:
        told_of = [name for name, row in misfits.items() if row is not None and f"{name!r}" in str(error)]
        assert [f"row {misfits[name]}," in str(error) for name in told_of] == [True], str(error)
        assert not arrow.Table.exists(path)
    else:
        assert set(misfits.values()) == {None}
        # On a table with log files the second write's rows are there.
        arrow.Table(path).upsert(table)
        found = arrow.read(path).sort_by("id")
        for name, values in expected.items():
            assert told(found.column(name).combine_chunks()) == values
