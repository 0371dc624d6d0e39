"""The state of a table as lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .cells import cell, size_text

if TYPE_CHECKING:
    from ...operations.inspect.metadata_partitions import PartitionSize
    from ...operations.state.table_state import TableState
    from .command_line import CommandLine


def state_facts(line: CommandLine, state: TableState) -> Mapping[str, Sequence[str] | str]:
    """Return what `show` prints: by the name of a line its text, or its texts, one below the other.

    ``state`` is the table's state, and ``line`` gives the commands to run next the table's path and options.
    """
    dead = f", {size_text(state.dead_bytes)} dead" if state.dead_bytes else ""
    unfinished = f", {size_text(state.unfinished_bytes)} of unfinished writes" if state.unfinished_bytes else ""
    facts: dict[str, Sequence[str] | str] = {
        "table": f"{state.name} at {state.path}",
        "kind": f"{state.type}, version {state.version}{_written_by(state)}",
        "key": _columns(state.record_key) or "generated",
        "partitioned by": _columns(state.partition_by) or "nothing",
        "ordered by": _columns(state.order_by) or "nothing",
        "index": _index(state),
        "size": f"{state.partitions:,} partitions, {state.file_groups:,} file groups, {state.files:,} files",
        "bytes": f"{size_text(state.live_bytes)} live{dead}{unfinished}",
    }
    if state.log_files:
        facts["debt"] = (
            f"{state.log_files:,} log files ({size_text(state.log_bytes)}); {state.delta_commits:,} delta commits "
            f"since the last compaction; read-optimized queries lack {state.read_optimized_lacks:,} writes"
        )
    # The sizes are empty without a metadata table, and None for a damaged one.
    if state.metadata != ():
        facts["metadata table"] = _metadata(state.metadata)
    facts["timeline"] = _timeline(state)
    facts["newest writes"] = [_write(row) for row in state.newest_writes] or "none"
    more = state.pending_instants - len(state.pending)
    facts["at work"] = [
        *map(_pending, state.pending),
        *([f"and {more:,} more pending instants"] if more else []),
    ] or "nothing"
    # Each command has a line of its own, which a shell takes as it is.
    facts["needs"] = [text for need in state.needs for text in (need.why, f"  {line.command_of(need)}")] or ("nothing")
    if state.offers:
        facts["offers"] = [text for need in state.offers for text in (need.why, f"  {line.command_of(need)}")]
    return facts


def _written_by(state: TableState) -> str:
    return "" if state.written_by is None else f", last written by {state.written_by}"


def _columns(names: Sequence[str]) -> str:
    return ", ".join(names)


def _index(state: TableState) -> str:
    if state.buckets is not None:
        return f"{state.index}, {state.buckets:,} buckets of each partition"
    return state.index or "unknown"


def _metadata(sizes: Sequence[PartitionSize] | None) -> Sequence[str] | str:
    """Return the lines of the metadata table, one for each partition; a sentence if the table is damaged."""
    if sizes is None:
        return "damaged, as validate says"
    return [_partition(size) for size in sizes]


def _partition(size: PartitionSize) -> str:
    """Return the line of one partition of the metadata table: its bytes, file groups, log files, last compaction."""
    logs = f", {size.log_files:,} log files ({size_text(size.log_bytes)})" if size.log_files else ""
    compacted = f", compacted {size.compacted}" if size.compacted else ""
    groups = f"{size.file_groups:,} file groups" if size.file_groups != 1 else "1 file group"
    built = "" if size.is_in_use else f" {size.state}"
    return f"{size.partition}{built}: {size_text(size.bytes)} in {groups}{logs}{compacted}"


def _timeline(state: TableState) -> str:
    """Return how many instants are active, by action, and how many archive files hold older instants."""
    counts = ", ".join(f"{number:,} {action}" for action, number in state.actions.items()) or "none"
    by_action = (
        f"; of the newest {state.counted_instants:,}: {counts}. Archiving is off, or held up"
        if state.counted_instants < state.instants
        else f": {counts}"
    )
    archived = f"; {state.archive_files:,} files of the archive hold older instants" if state.archive_files else ""
    return f"{state.instants:,} active instants{by_action}{archived}"


def _write(row: Mapping[str, Any]) -> str:
    counts = [f"{row[name]:,} {name}" for name in ("inserts", "updates", "deletes") if row.get(name)]
    return f"{row['instant']} {row.get('operation') or row['action']}: {', '.join(counts) or 'no rows'}"


def _pending(row: Mapping[str, Any]) -> str:
    """Return a pending instant as a line: its action, time and phase, and the process at work, if known."""
    owner = [
        f"{words} {cell('', row[name])}"
        for name, words in (("host", "on"), ("pid", "process"), ("heartbeat_age_s", "last heartbeat s ago:"))
        if row.get(name) is not None
    ]
    return " ".join([f"{row['action']} {row['instant']} {row['phase']}", *owner])
