"""Makes an empty table from the arguments of a command line; Spark reads the columns' DDL."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from .changing import is_asked_for
from .confirming import ask, require_terminal
from .output import CommandOutput
from .parser import EntryPoint


def create(output: CommandOutput, entry: EntryPoint, asked: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Create a table, or check the arguments for it."""
    if is_asked_for(entry, asked):
        require_terminal(asked.operation, asked.path)
        ask(output, asked.operation, asked.path, f"make a table with the columns {asked.schema}")
    from ..source.own_errors import own_errors  # noqa: PLC0415 (a wrong argument fails before Spark is imported)
    from ..source.paths import absolute_for  # noqa: PLC0415
    from ..source.sessions import find_session  # noqa: PLC0415
    from ..table.creation import CreationTerms, create_table  # noqa: PLC0415

    spark = find_session("pyhudi create")
    path = absolute_for(spark, asked.path)
    with own_errors():
        terms = CreationTerms(
            asked.record_key, asked.partition_by, asked.order_by, asked.index, asked.buckets, asked.table_type
        )
        made = create_table(
            spark, path, asked.schema, terms, given, if_not_exists=asked.if_not_exists, dry_run=asked.dry_run
        )
    if output.as_json:
        output.json({"path": path, "created": made and not asked.dry_run, "dry": asked.dry_run})
    elif not made:
        output.line(f"The table {path} is there already, and agrees with the arguments.")
    else:
        output.line(f"The table {path} {'can be' if asked.dry_run else 'was'} made.")
    return 0
