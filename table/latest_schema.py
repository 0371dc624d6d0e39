"""A table's schema at a moment of its timeline (``TableSchemaResolver``)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ..errors import UnsupportedTableError
from ..timeline import formats
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from .config import TableConfig
from .schema.columns import arrow_schema, canonical, without_meta
from .schema.schema_history import check_history

# Operations that rewrite rows in a schema that may be older than the table's (``WriteOperationType.canUpdateSchema``).
_KEEP_THE_SCHEMA = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


def latest_schema(config: TableConfig, timeline: Timeline, *, writing: bool = False) -> pa.Schema | None:
    """Return a table's data columns at a moment, canonical; None for a table without a write.

    The newest completed write that names columns has them, else the table's creation, else a file.
    Raises `UnsupportedTableError` if columns were renamed or replaced under an old name, and, if ``writing``, if
    the table keeps such a history or a newer release of pyhudi wrote its newest commit in a format of its own.
    """
    check_history(timeline.storage, writing=writing)
    newest = newest_schema(timeline, writing=writing)
    if newest is not None:
        return newest[1]
    if config.create_schema:
        return arrow_schema(config.create_schema)
    return _schema_of_a_file(timeline) if timeline.writes else None


def columns_of(config: TableConfig, timeline: Timeline) -> pa.Schema:
    """Return the columns of a table, for a service that rewrites its rows. Raises as `latest_schema`, and for none."""
    schema = latest_schema(config, timeline, writing=True)
    if schema is None:
        raise UnsupportedTableError(
            f"No commit names the columns of the table {timeline.storage.path}.",
            "Write to it first.",
        )
    return schema


def newest_schema(timeline: Timeline, *, writing: bool = False) -> tuple[Instant, pa.Schema] | None:
    """Return the newest completed write, by requested time, that names the table's columns, and those columns.

    None if no write does. ``writing`` refuses commits in the format of a newer release.
    """
    for instant in reversed(timeline.writes):
        text = schema_text(timeline, instant, writing=writing)
        if text:
            return instant, arrow_schema(text)
    return None


def schema_text(timeline: Timeline, instant: Instant, *, of_files: bool = False, writing: bool = False) -> str:
    """Return the Avro schema, JSON, of the table or of the files in a completed write; empty if it has none.

    A service that rewrites rows has a schema ``of_files`` alone: the table's may be newer. ``writing`` refuses a commit
    in the format of a newer release.
    """
    summary = timeline.files.read_summary(instant)
    if writing:
        refuse_newer_keys(timeline, instant, summary.extra_metadata)
    if not of_files and summary.operation_type in _KEEP_THE_SCHEMA:
        return ""
    return summary.extra_metadata.get("schema", "")


def refuse_newer_keys(timeline: Timeline, instant: Instant, extra_metadata: Mapping[str, str]) -> None:
    """Raise UnsupportedTableError if a commit's ``pyhudi.*`` keys have the format of a newer release."""
    what = f"{formats.KEY} in {timeline.files.path(instant)}"
    number = formats.number_of_keys(extra_metadata)
    formats.refuse_newer(timeline.files.storage.path, what, number, formats.COMMIT_KEYS)


def _schema_of_a_file(timeline: Timeline) -> pa.Schema | None:
    """Return the data columns of the first base file, or the first log block of whole rows; None without either."""
    from .files.base_file import open_base  # noqa: PLC0415 (nearly every table states its columns)
    from .files.logs.log_blocks import DATA_BLOCKS  # noqa: PLC0415
    from .files.logs.log_contents import columns_of  # noqa: PLC0415
    from .files.logs.whole_log import read_log  # noqa: PLC0415
    from .files.lost import open_view  # noqa: PLC0415

    slices = open_view(timeline).all_slices()
    for base in (file_slice.base for file_slice in slices if file_slice.base is not None):
        with open_base(timeline.storage, base) as reader:
            return without_meta(canonical(reader.columns(pa.schema([]))))
    for log in (log for file_slice in slices for log in file_slice.logs):
        for block in read_log(timeline.storage, log):
            if block.type in DATA_BLOCKS and not block.is_partial:
                return without_meta(columns_of(block))
    return None
