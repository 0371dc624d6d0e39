"""What bounds in metadata tables prove of a column, where the records leave in doubt what they say."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa
import pytest
from pyhudi.table.metadata.column_spans import column_spans


@pytest.mark.parametrize(("unit", "proves"), [(1_000, False), (1_000_000, True)], ids=["milliseconds", "microseconds"])
def test_a_time_without_a_unit_counts_as_microseconds_where_no_time_in_milliseconds_is_so_great(
    unit: int, proves: bool
) -> None:
    """Tables name the end of the last day that Spark knows where a time has no end."""
    least, greatest = datetime(2024, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
    number = int(least.timestamp()) * unit if proves else int(greatest.timestamp()) * unit
    wrapped = {"Long": number}
    counts = {"valueCount": 10, "nullCount": 0, "totalUncompressedSize": 100, "isDeleted": False}
    records = pa.array([{"minValue": wrapped, "maxValue": wrapped, **counts}])

    spans = column_spans(records, pa.timestamp("us", "UTC"))

    assert (spans.least[0].as_py(), spans.greatest[0].as_py()) == ((least, least) if proves else (None, None))
