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
    """Write a report on a table's state as a page of HTML, and print where it is; return the exit code, 0.

    ``line`` says where to write it; on the standard output nothing else is printed. Otherwise this command also prints
    the report's problems: what it could not read.
    """
    from ...operations.report.gather import ReportTerms, gather  # noqa: PLC0415 (a command imports only what it needs)
    from ...operations.report.page import make_page  # noqa: PLC0415

    output, arguments = line.output, line.arguments
    if arguments.output != STDOUT:
        _refuse_folder(arguments.output)
    options, storage = line.options_and_storage()
    settings = options.write_settings()
    terms = ReportTerms(options.upkeep(), settings.patience, settings.lookup.sizes.largest, arguments.deep)
    with WorkProgress(f"report {arguments.path}"):
        gathered = gather(storage, terms)
        page = make_page(gathered, line.command_of)
    if arguments.output == STDOUT:
        print(page, end="", file=sys.stdout)  # noqa: T201 (the command's interface)
        return 0
    size = _write(arguments.output, page)
    if output.as_json:
        output.json({"report": arguments.output, "bytes": size, "problems": gathered.problems})
    else:
        output.line(f"The report is in {arguments.output} ({size:,} bytes).")
        for problem in gathered.problems:
            output.note(problem)
    return 0


def _refuse_folder(name: str) -> None:
    """Raise `InvalidOptionError` for a name of a page that is empty, or of a folder."""
    # A Path raises for a name that is too long, or in a forbidden folder.
    if not name or os.path.isdir(name):  # noqa: PTH112
        raise InvalidOptionError(f"The report cannot be written to the folder {name!r}.", "Give a file with --output.")


def _write(name: str, page: str) -> int:
    """Write a page atomically in the place of an older page, behind links, and return its size.

    A device or a pipe stays in its place, and gets the bytes of the page.
    """
    data = page.encode()
    try:
        if os.path.exists(name) and not os.path.isfile(name):  # noqa: PTH110, PTH113 (as above)
            Path(name).write_bytes(data)
        else:
            _replace(Path(os.path.realpath(name)), data)
    except OSError as error:
        raise InvalidOptionError(
            f"The report cannot be written to {name}: {error.strerror}.", "Give another file with --output."
        ) from error
    return len(data)


def _replace(path: Path, data: bytes) -> None:
    """Put a file in the place of an older file by renaming it; an error leaves the older file."""
    # In the same folder, so that the last step only renames.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def read_rows(line: CommandLine) -> int:
    """Print the rows of a command of `READS`."""
    output, arguments = line.output, line.arguments
    command = READS[arguments.operation]
    _, storage = line.options_and_storage()
    read_arguments = {argument.name: getattr(arguments, argument.name) for argument in command.arguments}
    with WorkProgress(f"{command.name} {arguments.path}"):
        rows = command.rows()(storage, **read_arguments)
    output.rows(rows, command.nothing)
    if not output.as_json and rows.num_rows and rows.num_rows == read_arguments.get("limit"):
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
    with WorkProgress(f"show {line.arguments.path}"):
        return table_state(call.storage, call.upkeep(), call.patience)


def cat(line: CommandLine) -> int:
    """Print rows by key or condition; a snapshot is read until there are as many as asked for."""
    from ...reader.query import AsOf  # noqa: PLC0415
    from ...reader.scan import scan  # noqa: PLC0415
    from ...reader.snapshot import open_snapshot  # noqa: PLC0415

    output, arguments = line.output, line.arguments
    options, storage = line.options_and_storage()
    query = None if arguments.as_of is None else AsOf(arguments.as_of)
    snapshot = open_snapshot(storage.path, options.storage_options, query=query, file_search=options.file_search)
    columns = _columns_to_show(arguments, snapshot)
    batches = scan(snapshot, columns, _key_predicates(arguments, snapshot), where=_row_filter(arguments, snapshot))
    with WorkProgress(f"cat {arguments.path}"):
        matching = first_rows(batches, arguments.limit)
    rows = snapshot.schema.empty_table().select(columns) if matching is None else matching
    output.rows(rows, "No row matches.", stored=True)
    return 0


def first_rows(batches: Any, limit: int) -> pa.Table | None:
    """Return the first ``limit`` rows of batches, of which no more are read than it takes; None without a batch."""
    import pyarrow as pa  # noqa: PLC0415

    batches_of_limit: list[pa.RecordBatch] = []
    rows_left = limit
    for batch in batches:
        batches_of_limit.append(batch.slice(0, rows_left))
        rows_left -= batches_of_limit[-1].num_rows
        if rows_left <= 0:
            break
    return pa.Table.from_batches(batches_of_limit) if batches_of_limit else None


def _columns_to_show(arguments: argparse.Namespace, snapshot: Snapshot) -> Sequence[str]:
    """Return the names of the columns to print: those of ``--columns``, or else all columns of a snapshot.

    Hudi's meta columns count only with ``--meta``. Raises `InvalidOptionError` for a column that the table lacks.
    """
    from ...table.schema.columns import without_meta  # noqa: PLC0415

    if arguments.columns is not None:
        names_to_show = [name.strip() for name in arguments.columns.split(",")]
        for name in names_to_show:
            if name not in snapshot.schema.names:
                raise InvalidOptionError(
                    f"The table {snapshot.storage.path} has no column {name!r}.",
                    f"It has {', '.join(snapshot.schema.names)}.",
                )
        return names_to_show
    names: Sequence[str] = (snapshot.schema if arguments.meta else without_meta(snapshot.schema)).names
    return names


def _row_filter(arguments: argparse.Namespace, snapshot: Snapshot) -> RowFilter | None:
    """Return the filter of the condition; None without a condition."""
    from ...reader.row_condition import read_condition  # noqa: PLC0415

    return None if arguments.where is None else read_condition(arguments.where, snapshot.schema, snapshot.storage.path)


def _key_predicates(arguments: argparse.Namespace, snapshot: Snapshot) -> tuple[Predicate, ...]:
    """Return the predicate that a row has one of the keys; none if no key is given."""
    from ...reader.skipping.predicates import OneOf  # noqa: PLC0415
    from ...reader.sql.coercion import constant  # noqa: PLC0415
    from ...table.schema.columns import RECORD_KEY  # noqa: PLC0415

    if arguments.key is None:
        return ()
    fields = snapshot.config.record_key_fields
    # A key of several columns, or in a struct, has no column of its own.
    if len(fields) != 1 or fields[0] not in snapshot.schema.names:
        return (OneOf(RECORD_KEY, tuple(arguments.key)),)
    # By its column, the key also finds the bucket.
    key_type = snapshot.schema.field(fields[0]).type
    return (OneOf(fields[0], tuple(constant(key, key_type, column=fields[0]) for key in arguments.key)),)


def compare(line: CommandLine) -> int:
    """Print what changed between two instants, which ``line`` names; return the exit code, 0.

    First come the counts, then the changed file groups, or with ``--rows`` the changed rows, up to ``--limit``.
    """
    from ...operations.inspect.difference import Difference  # noqa: PLC0415

    output, arguments = line.output, line.arguments
    _, storage = line.options_and_storage()
    with WorkProgress(f"diff {arguments.path}"):
        difference = Difference.between(storage, arguments.earlier, arguments.later)
        counts = {
            "from": difference.earlier_time,
            "to": difference.later_time,
            "writes": difference.writes,
            "inserts": difference.inserts,
            "updates": difference.updates,
            "deletes": difference.deletes,
            "silent_writes": difference.silent,
        }
        table = (
            _first_changed_rows(difference, arguments.limit)
            if arguments.rows
            else difference.files().slice(0, arguments.limit)
        )
    if output.as_json:
        output.json(counts)
    else:
        output.line(
            f"{difference.writes:,} writes in between state {difference.inserts:,} rows inserted, "
            f"{difference.updates:,} updated, {difference.deletes:,} deleted."
        )
        if difference.silent:
            output.line(f"The archive does not say what {difference.silent:,} more writes in between did.")
    output.rows(table, "No row differs." if arguments.rows else "No file differs.", stored=arguments.rows)
    return 0


def _first_changed_rows(difference: Difference, limit: int) -> pa.Table:
    """Return the first of the rows that differ, up to a limit."""
    import pyarrow as pa  # noqa: PLC0415

    from ...operations.inspect.difference import CHANGED_ROWS  # noqa: PLC0415

    parts, count = [CHANGED_ROWS.schema.empty_table()], 0
    for part in difference.rows():
        parts.append(part.slice(0, limit - count))
        count += parts[-1].num_rows
        if count >= limit:
            break
    return pa.concat_tables(parts)
