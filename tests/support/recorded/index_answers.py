"""What indexes of a metadata table leave of a table's file slices, held against the slices that have the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyhudi.reader.scan import scan
from pyhudi.reader.skipping.answers import NOTHING, SliceSource
from pyhudi.reader.skipping.metadata_sources import sources_of
from pyhudi.reader.skipping.predicates import Predicate
from pyhudi.reader.skipping.search import Search
from pyhudi.reader.snapshot import Snapshot
from pyhudi.table.files.names import FileGroupId

Row = Mapping[str, Any]
_FILE_ID = re.compile(r"\.?([0-9a-f-]{36}-[0-9]+)")


def rows_of(snapshot: Snapshot) -> list[Row]:
    """Return all rows of a table without any condition, each with its file group under ``group``."""
    rows = [row for batch in scan(snapshot) for row in batch.to_pylist()]
    return [{**row, "group": _group(row)} for row in rows]


def _group(row: Row) -> FileGroupId:
    name = _FILE_ID.match(row["_hoodie_file_name"])
    assert name is not None, row
    return FileGroupId(row["_hoodie_partition_path"], name[1])


def sources(snapshot: Snapshot, *predicates: Predicate) -> Iterator[SliceSource]:
    """Yield the sources of a table's metadata table that can answer a query."""
    trusted = snapshot.metadata.trusted
    assert trusted is not None
    search = Search.of(predicates, snapshot.schema, snapshot.config)
    slices = snapshot.slices()
    yield from sources_of(trusted, snapshot.config, search, slices, shows_newest=snapshot.shows_newest)


def left_by(snapshot: Snapshot, name: str, *predicates: Predicate) -> set[FileGroupId] | None:
    """Return what the source alone leaves whose name begins so; None where it does not answer."""
    slices = snapshot.slices()
    for source in sources(snapshot, *predicates):
        if source.name.startswith(name):
            answer = source.slices_left(slices, NOTHING)
            return None if answer is None else {file_slice.group for file_slice in answer.slices}
    return None


def assert_left(
    snapshot: Snapshot,
    rows: Sequence[Row],
    name: str,
    holds: Callable[[Row], bool],
    *predicates: Predicate,
    exact: bool = False,
) -> int | None:
    """Assert that a source leaves each file group with a row for which a condition holds.

    Return how many it leaves, None where it does not answer. ``exact`` asserts that it leaves no other.
    """
    left = left_by(snapshot, name, *predicates)
    if left is None:
        return None
    needed = {row["group"] for row in rows if holds(row)}
    assert needed <= left, (name, predicates, needed - left)
    assert not exact or left == needed, (name, predicates, left - needed)
    return len(left)
