"""The table's schema as its newest commit tells it."""

from __future__ import annotations

import pyarrow as pa

from ..storage.base import Storage
from ..timeline.codec import read_commit
from ..timeline.timeline import Timeline
from .config import TableConfig
from .schema import arrow_schema


def latest_schema(storage: Storage, config: TableConfig, timeline: Timeline) -> pa.Schema | None:
    """Return the data columns of the newest completed write that names them, else those the table was created with.

    Returns:
        Canonical Arrow fields without meta columns; None for a table that nobody has written to.

    Raises:
        CorruptInstantError: A commit on the way cannot be parsed.
    """
    for instant in reversed(timeline.writes):
        text = read_commit(storage, timeline.layout, instant).extra_metadata.get("schema")
        if text:
            return arrow_schema(text)
    return arrow_schema(config.create_schema) if config.create_schema else None
