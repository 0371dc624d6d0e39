"""Write docs/columns.md: the columns of queries about a table's files and instants, from their definitions.

python docs/make_columns.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyhudi.operations.inspect.described_columns import DescribedRows
from pyhudi.operations.inspect.difference import CHANGED_FILES, CHANGED_ROWS
from pyhudi.operations.inspect.files import FILES
from pyhudi.operations.inspect.instants import TIMELINE
from pyhudi.operations.inspect.metadata_rows import METADATA
from pyhudi.operations.inspect.partitions import PARTITIONS
from pyhudi.operations.inspect.sizes import SIZES

PAGE = Path(__file__).with_name("columns.md")
HEAD = """\
# Columns of queries about a table

<!-- made by docs/make_columns.py -->

What `HudiTable.partitions`, `files`, `sizes`, `timeline` and `metadata` return as DataFrames, and
[the command `pyhudi`](command.md) prints as tables or as a line of JSON for each row, `diff` among them. All but
`diff --rows` open no data file. Times are in the zone of the table's timeline.
"""
QUERIES = (PARTITIONS, FILES, SIZES, TIMELINE, METADATA, CHANGED_FILES, CHANGED_ROWS)


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *(line for query in QUERIES for line in section(query))])


def section(query: DescribedRows) -> Iterator[str]:
    """Yield the lines about one query."""
    yield from (f"## {query.name}", "", query.text, "", "| column | type | holds |", "|---|---|---|")
    for column in query.columns:
        yield f"| `{column.name}` | `{column.type}` | {column.text} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
