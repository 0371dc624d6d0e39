"""Runs a write, a service or rounds of services as a scheduler's job: result on stdout, errors on stderr, exit code.

    python -m pyhudi.connector.jobs upsert --path /data/trips --source parquet:/landing/trips
    python -m pyhudi.connector.jobs clean --path /data/trips
    python -m pyhudi.connector.jobs services --path /data/trips --every 60

The result is one line of JSON with the fields of `CommitResult` or `ServiceResult`. validate prints a line for each
finding, and services a line with the fields of `ServicesResult` for each round. The exit code says what the caller can
do; that of services is of the first service that failed in the last round:

    0  success                                  4  run it again (RetryError)
    1  another failure                          5  inspect the table (TableError, or errors that validate found)
    2  change the arguments (OptionError)
    3  change the rows (DataError)

Table services need neither Spark nor a JVM.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from .command.exit_codes import exit_code
from .command.parser import EntryPoint
from .command.run import run_command

__all__ = ["command", "exit_code", "main"]

JOBS = EntryPoint("pyhudi.connector.jobs", __doc__ or "", interactive=False)
COMMAND = EntryPoint(
    "pyhudi",
    """Looks at an Apache Hudi table, and steers it.

    pyhudi show /data/trips
    pyhudi cat /data/trips --where "city = 'Rome'"
    pyhudi clean /data/trips --dry-run

Exit codes: 0 success, 1 another failure, 2 wrong arguments, 3 wrong rows, 4 run it again, 5 inspect the table.
""",
    interactive=True,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job: print its result as JSON, or its error to stderr.

    Args:
        arguments: The command line without the program's name; None for that of this process.

    Returns:
        The exit code.

    Raises:
        SystemExit: The command line is invalid (code 2), or asks for help (code 0).
    """
    return run_command(arguments, JOBS, _write)


def command(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the program ``pyhudi``, which asks before it changes a table.

    Args:
        arguments: The command line without the program's name; None for that of this process.

    Returns:
        The exit code, as of `main`.

    Raises:
        SystemExit: The command line is invalid (code 2), or asks for help (code 0).
    """
    return run_command(arguments, COMMAND, _write)


def _write(arguments: argparse.Namespace, options: dict[str, str], source_options: dict[str, str]) -> Any:
    """Run the write of a command line; `run_command` checks the arguments before it calls this."""
    # Services run without Spark, and a wrong argument fails before Spark is imported.
    from .write_job import run_write  # noqa: PLC0415

    return run_write(arguments, options, source_options)


if __name__ == "__main__":
    sys.exit(main())
