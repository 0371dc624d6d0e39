"""The columns of a snapshot's base files: those of the table when they were written."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import pyarrow as pa

from ..storage.threads import for_each
from ..table.files.base_file import open_base
from ..table.files.file_group import FileSlice
from ..table.latest_schema import schema_text
from ..table.schema.columns import arrow_schema, canonical, without_meta
from ..timeline.instants import State
from ..timeline.timeline import Timeline


def by_file_schema(
    timeline: Timeline, slices: Iterable[FileSlice], columns: pa.Schema
) -> list[tuple[pa.Schema, list[FileSlice]]]:
    """Return the slices by the data columns of their base files; ``columns`` are those of the table.

    Reads one small file for each instant that wrote a base file, not for each slice: the instant's own, or the footer
    of one of its base files if the instant was archived.
    """
    by_instant: dict[str, list[FileSlice]] = {}
    for file_slice in slices:
        by_instant.setdefault(file_slice.base_file.instant_time, []).append(file_slice)
    parse = lru_cache(maxsize=None)(arrow_schema)

    def schema_of(instant_time: str) -> pa.Schema:
        """Return the data columns that a write states, or else those of the footer of one of its base files."""
        instant = timeline.find(instant_time)
        if instant is not None and instant.state == State.COMPLETED and instant.is_write:
            text = schema_text(timeline, instant, of_files=True)
            if text:
                return parse(text)
        with open_base(timeline.storage, by_instant[instant_time][0].base_file) as reader:
            return without_meta(canonical(reader.columns(columns)))

    schemas = for_each(timeline.storage, schema_of, by_instant)
    groups: list[tuple[pa.Schema, list[FileSlice]]] = []
    for schema, of_instant in zip(schemas, by_instant.values(), strict=True):
        same_schema = next((group for other, group in groups if other == schema), None)
        if same_schema is None:
            groups.append((schema, list(of_instant)))
        else:
            same_schema += of_instant
    return groups
