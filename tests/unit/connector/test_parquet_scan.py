"""What is left to Spark's own Parquet reader, and what is not."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyhudi.connector.source.parquet_scan import _converted, _entry, is_read_as, reads_lists
from pyhudi.errors import SchemaMismatchError
from support.recorded.ddl import columns

pytestmark = pytest.mark.oldest


@pytest.mark.parametrize(
    ("kind", "wanted", "alike"),
    [
        ("int", "int", True),
        ("int", "bigint", True),
        ("int", "double", True),
        ("decimal(5,2)", "decimal(9,4)", True),
        ("string", "binary", True),
        ("struct<a:int>", "struct<a:bigint,b:string>", True),
        ("array<struct<a:int>>", "array<struct<a:int,b:int>>", True),
        ("map<string,int>", "map<string,bigint>", True),
        ("float", "double", False),
        ("bigint", "double", False),
        ("int", "string", False),
        ("int", "date", False),
        ("date", "int", False),
        ("bigint", "timestamp", False),
        ("timestamp", "timestamp_ntz", False),
        ("decimal(9,4)", "decimal(5,2)", False),
        ("binary", "string", False),
        ("struct<a:float>", "struct<a:double>", False),
        ("array<int>", "array<string>", False),
        ("struct<a:int>", "string", False),
    ],
)
def test_sparks_reader_is_trusted_with_what_it_does_as_apache_hudi(kind: str, wanted: str, alike: bool) -> None:
    before, after = (columns(f"v {text}").field("v").type for text in (kind, wanted))

    assert is_read_as(before, after) is alike


@pytest.mark.parametrize(("kind", "wanted"), [("bigint", "timestamp"), ("boolean", "int"), ("struct<a:int>", "string")])
def test_a_type_of_which_nobody_knows_what_to_make_is_refused(kind: str, wanted: str) -> None:
    """Spark would cast a bigint to a timestamp by seconds; Apache Hudi takes it for microseconds."""
    before, after = (columns(f"v {text}").field("v").type for text in (kind, wanted))
    column = pa.nulls(0)  # nothing is asked of it
    with pytest.raises(SchemaMismatchError):
        _converted(column, before, after)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///t/p=1/a.parquet", "file:///t/p=1/a.parquet"),
        ("file:///t/a b/%2F/é#?.parquet", "file:///t/a%20b/%252F/%C3%A9%23%3F.parquet"),
        ("s3a://bucket/t/O'Neil (x/a.parquet", "s3a://bucket/t/O'Neil%20(x/a.parquet"),
    ],
)
def test_a_path_is_spelt_as_java_reads_it_back(uri: str, path: str) -> None:
    assert _entry(uri, 7)["path"] == path


def test_a_session_that_passes_the_log_over_gets_no_list() -> None:
    said = {"spark.sql.streaming.fileStreamSink.ignoreMetadata": "true"}

    assert not reads_lists(SimpleNamespace(conf=said))  # type: ignore[arg-type]
    assert reads_lists(SimpleNamespace(conf={}))  # type: ignore[arg-type]
