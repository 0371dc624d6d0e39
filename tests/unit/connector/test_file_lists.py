from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyhudi.connector.source.parquet_scan import _entry, reads_lists

pytestmark = pytest.mark.oldest


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
