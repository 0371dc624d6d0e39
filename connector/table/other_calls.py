"""What `HudiTable` answers to names and keywords of other libraries."""

from __future__ import annotations

from ...methods.other_keywords import SHARED_KEYWORDS, TIMES, VERSIONS, Keywords, keywords_of_create, keywords_of_reads
from ...methods.other_names import calls_of_tables

TABLE_CALLS = {
    **calls_of_tables("HudiTable", "spark, path", "to_df"),
    **{name: f"pyhudi.arrow.Table(path).{name}()" for name in ("to_polars", "to_duckdb", "to_pandas")},
}
TABLE_KEYWORDS: Keywords = {
    "create": keywords_of_create("spark, path"),
    "to_df": keywords_of_reads("to_df", "to_df().limit(n)"),
    "create_view": {
        "create_view(name, as_of=...)": f"{VERSIONS} {TIMES}",
        "create_view(name, columns=...)": "select selected_fields cols fields",
        "create_view(name), which replaces a view of that name": "replace",
        "create_view(name, newest=True)": "latest follow live refresh",
    },
    **SHARED_KEYWORDS,
}
