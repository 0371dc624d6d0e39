"""What `pyhudi.arrow.Table` answers to names and keywords of other libraries, delta-rs among them."""

from __future__ import annotations

from collections.abc import Mapping

from ..methods.other_keywords import SHARED_KEYWORDS, Keywords, keywords_of_create, keywords_of_reads
from ..methods.other_names import calls_of_tables

_PINNED = "read(as_of=...) or scan(as_of=...), with a time or an instant that history() shows"
TABLE_CALLS: Mapping[str, str] = {
    **calls_of_tables("Table", "path", "read"),
    "to_df": "read()",
    "to_pyarrow_table": "read()",
    "to_pyarrow_dataset": "to_duckdb(), which is a dataset of pyarrow, or scan(), a stream of record batches",
    "to_arrow": "read()",
    "to_arrow_batch_reader": "scan()",
    "load_as_version": _PINNED,
    "load_with_datetime": _PINNED,
    "version": "last_commit()",
    "file_uris": "files()",
    "get_add_actions": "files()",
    "metadata": "detail()",
    "protocol": "detail()",
    "update_incremental": "nothing: every read and write looks at the table as it is then",
    "create_checkpoint": "nothing: archive() keeps the timeline short",
}
TABLE_KEYWORDS: Keywords = {
    "create": keywords_of_create("path"),
    "read": keywords_of_reads("read", "read(limit=n)"),
    "scan": keywords_of_reads("scan", "scan(limit=n)"),
    "to_pandas": keywords_of_reads("to_pandas", "to_pandas(limit=n)"),
    "to_polars": keywords_of_reads("to_polars", "to_polars().head(n)"),
    "to_duckdb": keywords_of_reads("to_duckdb", "to_duckdb(), and LIMIT in the query"),
    **SHARED_KEYWORDS,
}
