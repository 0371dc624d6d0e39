"""Which keys tell rows apart by their texts alone, so that a merge need not look for those of new rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyhudi.methods.merging.changed_table import are_distinct
from pyhudi.methods.merging.clauses import is_column

INT, DAY, TEXT, DOUBLE = pa.int32(), pa.date32(), pa.string(), pa.float64()


@pytest.mark.parametrize(
    ("kinds", "apart"),
    [
        ([TEXT], True),
        ([INT, DAY], True),
        # The texts of ("x,b:y", "z") and ("x", "y,b:z") may be one.
        ([TEXT, TEXT], False),
        ([INT, TEXT], False),
        # Of -0.0 and 0.0 there is one value to Spark.
        ([DOUBLE], False),
        ([pa.decimal128(6, 2)], False),
    ],
    ids=str,
)
def test_texts_of_values_tell_rows_apart(kinds: list[pa.DataType], apart: bool) -> None:
    assert are_distinct([pa.field(str(number), kind) for number, kind in enumerate(kinds)]) is apart


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("target.id", True),
        (" Target . `ID` ", True),
        ("source.id", False),
        ("target.id2", False),
        ("`target.id`", False),
        ("'target.id'", False),
        ("target.id + 1", False),
        (None, False),
        (7, False),
    ],
    ids=str,
)
def test_a_column_is_told_by_its_text(value: object, is_one: bool) -> None:
    assert is_column(value, "target", "id") is is_one
