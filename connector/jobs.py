"""One write or one table service as a job, for schedulers: results on stdout, errors on stderr, and an exit code.

    python -m pyhudi.connector.jobs upsert --path /data/trips --source parquet:/landing/trips
    python -m pyhudi.connector.jobs clean --path /data/trips

The result is one line of JSON, the fields of `CommitResult` or `ServiceResult`; of validate, one line for each finding.
The exit code says what the caller can do:

    0  it is done                               4  run it again (RetryError)
    1  something else failed                    5  look at the table (TableError), or at the errors that validate found
    2  change the arguments (OptionError)
    3  change the rows (DataError)

Table services need neither Spark nor a JVM.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..errors import DataError, InvalidOptionError, OptionError, PyHudiError, RetryError, TableError

FAILED, WRONG = 1, 5
EXIT_CODES: dict[type[PyHudiError], int] = {OptionError: 2, DataError: 3, RetryError: 4, TableError: WRONG}
# Hudi's names of writes; all but the last take rows.
DELETE_PARTITION = "delete_partition"
OPERATIONS = (
    "upsert",
    "insert",
    "bulk_insert",
    "delete",
    "insert_overwrite",
    "insert_overwrite_table",
    DELETE_PARTITION,
)
VALIDATE = "validate"
SERVICES = {
    "clean": "delete file slices that nobody needs any more",
    "archive": "move old instants from the timeline into its archive",
    "compact": "merge the log files of a merge-on-read table into base files, in this process",
    "schedule_compaction": "plan such a merge, for whoever carries it out",
    "log_compact": "join the log files of a merge-on-read table into fewer, in this process",
    "schedule_log_compaction": "plan that, for whoever carries it out",
    "repair": "give up what cannot be read of damaged log files",
    "rollback": "take one write back: the newest, or a pending one whose writer is dead",
    "savepoint": "keep the table as it was after one write",
    "delete_savepoint": "keep a savepoint's files no longer",
    "restore": "take back all that came after one write",
    VALIDATE: "look for everything that is wrong with the table",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job and return its exit code.

    Args:
        arguments: Those of the command line without it.
    """
    asked = _parser().parse_args(arguments)
    try:
        lines = _run(asked, _pairs(asked.option))
    except PyHudiError as error:
        print(error, file=sys.stderr)  # noqa: T201 (a job's interface)
        return exit_code(error)
    for line in lines:
        print(json.dumps(line, default=str))  # noqa: T201
    # A table with warnings can be worked with; the first finding is the worst.
    return WRONG if asked.operation == VALIDATE and lines and lines[0]["severity"] == "error" else 0


def exit_code(error: PyHudiError) -> int:
    """Return the exit code that says what the caller can do about an error."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), FAILED)


def _run(asked: argparse.Namespace, options: dict[str, str]) -> list[dict[str, Any]]:
    """Do what was asked, and return what is to be printed of it, a line each."""
    # Services import nothing of Spark, and a wrong argument need not wait for it.
    if asked.operation in SERVICES:
        from .service_job import run_service, run_validate  # noqa: PLC0415

        if asked.operation == VALIDATE:
            return run_validate(asked.path, options, deep=asked.deep)
        return [asdict(run_service(asked.operation, asked.path, options, asked))]
    source_options = _pairs(asked.source_option)
    from .write_job import run_write  # noqa: PLC0415

    result = run_write(
        asked.name, asked.operation, asked.path, options, source=asked.source, source_options=source_options
    )
    return [asdict(result)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pyhudi.connector.jobs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    jobs = parser.add_subparsers(dest="operation", required=True, metavar="job")
    for name in OPERATIONS:
        _write_arguments(_job(jobs, name, f"Hudi's operation {name}"), takes_rows=name != DELETE_PARTITION)
    for name, what in SERVICES.items():
        _service_arguments(_job(jobs, name, what), name)
    return parser


def _job(jobs: Any, name: str, what: str) -> argparse.ArgumentParser:
    job: argparse.ArgumentParser = jobs.add_parser(name, help=what, description=what)
    job.add_argument("--path", required=True, help="the table's path")
    _repeated(job, "--option", "an option")
    return job


def _write_arguments(job: argparse.ArgumentParser, *, takes_rows: bool) -> None:
    job.set_defaults(source=None, source_option=[])
    if takes_rows:
        job.add_argument(
            "--source", required=True, help="the rows: parquet:/path (or another format), table:name, sql:statement"
        )
        _repeated(job, "--source-option", "an option of the source's reader")
    job.add_argument("--name", default="pyhudi job", help="the application's name, unless spark-submit gives one")


def _service_arguments(job: argparse.ArgumentParser, name: str) -> None:
    if name == "clean":
        job.add_argument("--dry-run", action="store_true", help="only tell what would be deleted")
    if name == "repair":
        job.add_argument("--accept-loss", action="append", required=True, metavar="FILE", help="a damaged log file")
        job.add_argument("--dry-run", action="store_true", help="only tell what would be given up")
    if name in {"rollback", "delete_savepoint"}:
        job.add_argument("--instant", required=True, help="its requested time")
    if name == "savepoint":
        job.add_argument("--instant", help="the requested time of the write; the newest one without it")
        job.add_argument("--comment", default="", help="what it is for")
        job.add_argument("--user", default="", help="who wants it")
    if name == "restore":
        job.add_argument("--to", required=True, metavar="INSTANT", help="the write's requested time")
    if name == VALIDATE:
        job.add_argument("--deep", action="store_true", help="read rows too")


def _repeated(job: argparse.ArgumentParser, name: str, what: str) -> None:
    job.add_argument(name, action="append", default=[], metavar="KEY=VALUE", help=f"{what}; may be repeated")


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    wrong = [key for key, separator, _ in pairs if not separator or not key]
    if wrong:
        # What stands behind the name may be a secret with another sign in between.
        name = re.split(r"[^\w.-]", wrong[0], maxsplit=1)[0]
        raise InvalidOptionError(f"{name!r} is no option with a value.", "Write it as key=value.")
    return {key: value for key, _, value in pairs}


if __name__ == "__main__":
    sys.exit(main())
