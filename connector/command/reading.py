"""Carries out the commands that read a table: none changes it, and none needs Spark."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InvalidOptionError
from .command_line import CommandLine
from .commands import READS
from .state_text import state_facts
from .work_progress import WorkProgress

if TYPE_CHECKING:
    import pyarrow as pa

    from ...operations.inspect.difference import Difference
    from ...operations.state.table_state import TableState
    from ...reader.row_filter import RowFilter
    from ...reader.skipping.predicates import Predicate
    from ...reader.snapshot import Snapshot

STDOUT = "-"


def report(line: CommandLine) -> int:
    """Write the page of a table's report, and print where it is."""
    from ...operations.report.gather import ReportTerms, gather  # noqa: PLC0415 (a command imports only what it needs)
    from ...operations.report.page import make_page  # noqa: PLC0415

    output, asked = line.output, line.asked
    options, storage = line.opened()
    settings = options.write_settings()
    terms = ReportTerms(options.upkeep(), settings.patience, settings.lookup.sizes.largest, asked.deep)
    with WorkProgress(f"report {asked.path}"):
        gathered = gather(storage, terms)
        page = make_page(gathered, line.command_of)
    if asked.output == STDOUT:
        print(page, end="", file=sys.stdout)  # noqa: T201 (the command's interface)
        return 0
    size = _write(asked.output, page)
    if output.as_json:
        output.json({"report": asked.output, "bytes": size, "problems": gathered.problems})
    else:
        output.line(f"The report is in {asked.output} ({size:,} bytes).")
        for problem in gathered.problems:
            output.note(problem)
    return 0


def _write(name: str, page: str) -> int:
    """Write a page atomically in the place of an older page, and return its size."""
    data = page.encode()
    path = Path(name)
    if path.is_dir():
        raise InvalidOptionError(f"The report cannot be written to the folder {name}.", "Give a file with --output.")
    # In the same folder, so that the last step only renames.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise InvalidOptionError(
            f"The report cannot be written to {name}: {error.strerror}.", "Give another file with --output."
        ) from error
    return len(data)


def read_rows(line: CommandLine) -> int:
    """Print the rows of a command of `READS`."""
    output, asked = line.output, line.asked
    command = READS[asked.operation]
    _, storage = line.opened()
    arguments = {argument.name: getattr(asked, argument.name) for argument in command.arguments}
    with WorkProgress(f"{command.name} {asked.path}"):
        rows = command.rows()(storage, **arguments)
    output.rows(rows, command.nothing)
    if not output.as_json and rows.num_rows and rows.num_rows == arguments.get("limit"):
        output.note(f"These are the first {rows.num_rows:,}; --limit prints more.")
    return 0


def show(line: CommandLine) -> int:
    """Print the state of a table, with the commands that it needs next."""
    state = state_of(line)
    if line.output.as_json:
        fields = dataclasses.asdict(state)
        for name, needs in (("needs", state.needs), ("offers", state.offers)):
            fields[name] = [{**dataclasses.asdict(need), "command": line.command_of(need)} for need in needs]
        line.output.json(fields)
        return 0
    line.output.facts(state_facts(line, state))
    return 0


def state_of(line: CommandLine) -> TableState:
    """Return the state of a table."""
    from ...operations.state.table_state import table_state  # noqa: PLC0415 (a command imports only what it needs)

    call = line.call()
    with WorkProgress(f"show {line.asked.path}"):
        return table_state(call.storage, call.upkeep(), call.patience)


def cat(line: CommandLine) -> int:
    """Print rows by key or condition; a snapshot is read until there are as many as asked for."""
    from ...reader.query import AsOf  # noqa: PLC0415
    from ...reader.scan import scan  # noqa: PLC0415
    from ...reader.snapshot import open_snapshot  # noqa: PLC0415

    output, asked = line.output, line.asked
    options, storage = line.opened()
    query = None if asked.as_of is None else AsOf(asked.as_of)
    snapshot = open_snapshot(storage.path, options.storage_options, query=query, file_search=options.file_search)
    columns = _columns(asked, snapshot)
    batches = scan(snapshot, columns, _of_keys(asked, snapshot), where=_where(asked, snapshot))
    with WorkProgress(f"cat {asked.path}"):
        matching = first_rows(batches, asked.limit)
    rows = snapshot.schema.empty_table().select(columns) if matching is None else matching
    output.rows(rows, "No row matches.", stored=True)
    return 0


def first_rows(batches: Any, limit: int) -> pa.Table | None:
    """Return the first rows of batches, of which no more are read than it takes; None without a row."""
    import pyarrow as pa  # noqa: PLC0415

    taken: list[pa.RecordBatch] = []
    left = limit
    for batch in batches:
        taken.append(batch.slice(0, left))
        left -= taken[-1].num_rows
        if left <= 0:
            break
    return pa.Table.from_batches(taken) if taken else None


def _columns(asked: argparse.Namespace, snapshot: Snapshot) -> Sequence[str]:
    from ...table.schema.columns import without_meta  # noqa: PLC0415

    if asked.columns is not None:
        wanted = [name.strip() for name in asked.columns.split(",")]
        for name in wanted:
            if name not in snapshot.schema.names:
                raise InvalidOptionError(
                    f"The table {snapshot.storage.path} has no column {name!r}.",
                    f"It has {', '.join(snapshot.schema.names)}.",
                )
        return wanted
    names: Sequence[str] = (snapshot.schema if asked.meta else without_meta(snapshot.schema)).names
    return names


def _where(asked: argparse.Namespace, snapshot: Snapshot) -> RowFilter | None:
    from ...reader.row_condition import read_condition  # noqa: PLC0415

    return None if asked.where is None else read_condition(asked.where, snapshot.schema, snapshot.storage.path)


def _of_keys(asked: argparse.Namespace, snapshot: Snapshot) -> tuple[Predicate, ...]:
    from ...reader.skipping.predicates import OneOf  # noqa: PLC0415
    from ...reader.sql.coercion import constant  # noqa: PLC0415
    from ...table.schema.columns import RECORD_KEY  # noqa: PLC0415

    if asked.key is None:
        return ()
    fields = snapshot.config.record_key_fields
    if len(fields) != 1:
        return (OneOf(RECORD_KEY, tuple(asked.key)),)
    # By its column, the key also finds the bucket.
    kind = snapshot.schema.field(fields[0]).type
    return (OneOf(fields[0], tuple(constant(key, kind, column=fields[0]) for key in asked.key)),)


def compare(line: CommandLine) -> int:
    """Print what changed between two instants: counts, then the changed file groups, or the changed rows."""
    from ...operations.inspect.difference import Difference  # noqa: PLC0415

    output, asked = line.output, line.asked
    _, storage = line.opened()
    with WorkProgress(f"diff {asked.path}"):
        difference = Difference.between(storage, asked.earlier, asked.later)
        counts = {
            "from": difference.earlier_time,
            "to": difference.later_time,
            "writes": difference.writes,
            "inserts": difference.inserts,
            "updates": difference.updates,
            "deletes": difference.deletes,
        }
        table = _rows_of(difference, asked.limit) if asked.rows else difference.files().slice(0, asked.limit)
    if output.as_json:
        output.json(counts)
    else:
        output.line(
            f"{difference.writes:,} writes in between state {difference.inserts:,} rows inserted, "
            f"{difference.updates:,} updated, {difference.deletes:,} deleted."
        )
    output.rows(table, "No row differs." if asked.rows else "No file differs.", stored=asked.rows)
    return 0


def _rows_of(difference: Difference, limit: int) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    from ...operations.inspect.difference import CHANGED_ROWS  # noqa: PLC0415

    parts, count = [CHANGED_ROWS.schema.empty_table()], 0
    for part in difference.rows():
        parts.append(part.slice(0, limit - count))
        count += parts[-1].num_rows
        if count >= limit:
            break
    return pa.concat_tables(parts)
