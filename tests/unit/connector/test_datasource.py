"""What a read's first process finds out of a table, and the next one need not find out again."""

from __future__ import annotations

import pickle
from copy import copy
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.connector.datasource import PyHudiDataSource
from pyhudi.errors import MissingColumnError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.streams.offsets import INITIAL
from pyhudi.reader.streams.table_stream import TableStream
from pyhudi.reader.streams.terms import StreamTerms
from pyspark.sql.types import StringType, StructType
from support.drive import write
from support.seams import patch_seam


def test_the_columns_of_a_read_are_asked_of_the_timeline_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They travel with the moment, by which the newest commit, however many files it names, is opened once for them."""
    path = str(tmp_path / "t")
    write(path, pa.table({"id": [1, 2]}), table=TableSettings(record_key_fields=("id",), bucket_count=1))
    source = PyHudiDataSource({"path": path})
    columns = source.schema()
    write(path, pa.table({"id": [3], "later": ["x"]}))
    patch_seam(monkeypatch, "read the summary of a commit", None)

    reader = copy(source).reader(columns)
    again = copy(reader)

    [split], [later] = reader.partitions(), again.partitions()
    assert later.value == split.value
    rows = pa.Table.from_batches(list(again.read(split)))
    assert rows.column_names == columns.names
    assert sorted(rows["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("given", [True, False])
def test_the_error_of_a_stream_whose_columns_the_table_lacks_says_who_chose_them(tmp_path: Path, given: bool) -> None:
    path = str(tmp_path / "t")
    write(path, pa.table({"id": [1]}), table=TableSettings(record_key_fields=("id",), bucket_count=1))
    source = PyHudiDataSource({"path": path})
    if not given:
        source.schema()
    reader = pickle.loads(pickle.dumps(source)).streamReader(StructType().add("other", StringType()))  # noqa: S301
    end = TableStream(path, {}, StreamTerms()).latest()

    with pytest.raises(MissingColumnError, match="has no column 'other'") as caught:
        reader.partitions(INITIAL.to_fields(), end.to_fields())
    assert ("fixed while the query runs" in caught.value.what) != given
    assert ("Start the query again" in caught.value.todo) != given
