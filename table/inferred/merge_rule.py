"""Infers which of two rows with one key wins in a table whose properties do not say.

A copy-on-write table of version 6 has no payload class if Apache Hudi 0.15 made it. If the writer names no class
either, 0.15 takes the newest row, and 1.x the row with the greatest ordering value. Both obey a class that is noted.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...timeline.timeline import Timeline
from ..config import property_keys as key
from ..config.merge_properties import DEFAULT_PAYLOADS
from ..config.payloads import PAYLOADS, Payload
from ..config.table_config import TableConfig
from ..last_writer import RELEASE_0, RELEASE_1, writer_of
from ..table import Table

# Properties that 1.x alone writes into a table of version 6.
_PROPERTIES_OF_RELEASE_1 = (key.ORDERING_FIELDS, key.TIMELINE_PATH, key.KEY_GENERATOR_TYPE, key.MERGE_STRATEGY)
_DEFAULTS = {RELEASE_0: key.COMMIT_TIME_ORDERING, RELEASE_1: key.EVENT_TIME_ORDERING}


@dataclass(frozen=True, slots=True)
class InferredRule:
    """The payload class by which a table's writers merge, and the releases of Apache Hudi whose default it is."""

    payload: Payload
    release: str


def infer_merge_rule(table: Table) -> InferredRule:
    """Return the default of the releases that wrote last, of a table that has an ordering field and no payload class.

    The newest completed write with statistics tells them, else the properties.
    """
    release = _release_of_commits(table.timeline()) or release_of_properties(table.config)
    return InferredRule(PAYLOADS[DEFAULT_PAYLOADS[_DEFAULTS[release]]], release)


def release_of_properties(config: TableConfig) -> str:
    """Return the releases of Apache Hudi that made a table of version 6."""
    return RELEASE_1 if any(config.properties.get(option) for option in _PROPERTIES_OF_RELEASE_1) else RELEASE_0


def _release_of_commits(timeline: Timeline) -> str | None:
    """Return the releases that made the newest completed write with statistics; None if no write tells them."""
    writers = (writer_of(timeline.files.read_commit(instant)) for instant in reversed(timeline.writes))
    return next((writer for writer in writers if writer in _DEFAULTS), None)
