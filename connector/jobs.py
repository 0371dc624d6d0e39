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
import json
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from types import FrameType
from typing import Any

from ..errors import DataError, InvalidOptionError, OptionError, PyHudiError, RetryError, TableError, from_spark
from ..operations.write.services import REQUIRED, SERVICES, VALIDATE, Argument, Call, Service

# The exit code that says: run it again.
AGAIN = 4
FAILED, WRONG = 1, 5
ROUND = "services"
EXIT_CODES: dict[type[PyHudiError], int] = {OptionError: 2, DataError: 3, RetryError: AGAIN, TableError: WRONG}
# Hudi's names of the write operations; all but the last take rows.
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
_POLL_S = 0.2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one job: print its result as JSON, or its error to stderr.

    Args:
        arguments: The command line without the program's name; None for that of this process.

    Returns:
        The exit code.

    Raises:
        SystemExit: The command line is invalid (code 2), or asks for help (code 0).
    """
    asked = _parser().parse_args(arguments)
    try:
        if asked.operation == ROUND:
            return _run_rounds(asked, _pairs(asked.option))
        lines = _run(asked, _pairs(asked.option))
    except PyHudiError as error:
        print(error, file=sys.stderr)  # noqa: T201 (a job's interface)
        return exit_code(error)
    for line in lines:
        print(json.dumps(line, default=str))  # noqa: T201
    # Findings come worst first. A table with warnings only is usable.
    return WRONG if asked.operation == VALIDATE and lines and lines[0]["severity"] == "error" else 0


def exit_code(error: PyHudiError) -> int:
    """Return the exit code that says what the caller can do about an error.

    Args:
        error: The error.

    Returns:
        2 for an `OptionError`, 3 for a `DataError`, 4 for a `RetryError`, 5 for a `TableError`, 1 for any other.
    """
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), FAILED)


def _run(asked: argparse.Namespace, options: dict[str, str]) -> list[dict[str, Any]]:
    """Run the job and return the lines to print."""
    # Services run without Spark, and a wrong argument fails before Spark is imported.
    service = SERVICES.get(asked.operation)
    if service is not None:
        return _run_service(service, asked, options)
    source_options = _pairs(asked.source_option)
    from .write_job import run_write  # noqa: PLC0415

    result = run_write(
        asked.name, asked.operation, asked.path, options, source=asked.source, source_options=source_options
    )
    return [asdict(result)]


def _run_service(service: Service, asked: argparse.Namespace, given: dict[str, str]) -> list[dict[str, Any]]:
    done: Any = service.run(
        _call(asked.path, given), **{argument.name: getattr(asked, argument.name) for argument in service.arguments}
    )
    return done.to_pylist() if service.name == VALIDATE else [asdict(done)]


def _run_rounds(asked: argparse.Namespace, given: dict[str, str]) -> int:
    return _repeat_rounds(partial(_run_round, asked, given), every_s=asked.every, grace_s=asked.grace)


def _run_round(asked: argparse.Namespace, given: dict[str, str]) -> int:
    """Run one round of services, print its result, and return its exit code."""
    from ..operations.write.service_round import run_services  # noqa: PLC0415

    done = run_services(_call(asked.path, given), asked.service)
    print(json.dumps(asdict(done), default=str), flush=True)  # noqa: T201
    for failure in done.failed:
        print(failure.error, file=sys.stderr)  # noqa: T201
    if not done.failed:
        return 0
    error = from_spark(Exception(done.failed[0].error))
    return FAILED if error is None else exit_code(error)


def _call(path: str, given: dict[str, str]) -> Call:
    from ..operations.write.inline import means_of  # noqa: PLC0415
    from ..options.sources import WRITING, resolve_options  # noqa: PLC0415
    from ..storage import open_storage  # noqa: PLC0415
    from .source.paths import absolute  # noqa: PLC0415

    path = absolute(path)
    options = resolve_options(given, path, WRITING).options
    settings = options.write_settings()
    return Call(
        open_storage(path, options.storage_options, durable=options.durable),
        settings.patience,
        options.upkeep,
        lambda: means_of(settings, application=options.application),
        options.metadata_enable,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pyhudi.connector.jobs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    jobs = parser.add_subparsers(dest="operation", required=True, metavar="job")
    for name in OPERATIONS:
        _write_arguments(_job(jobs, name, f"Hudi's operation {name}"), takes_rows=name != DELETE_PARTITION)
    for service in SERVICES.values():
        _service_arguments(_job(jobs, service.name, service.help), service.arguments)
    _round_arguments(_job(jobs, ROUND, "run what is due of the table services, beside writers"))
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


def _service_arguments(job: argparse.ArgumentParser, arguments: Iterable[Argument]) -> None:
    for argument in arguments:
        name, given = f"--{argument.name.replace('_', '-')}", {"help": argument.help, "default": argument.default}
        if argument.default is REQUIRED:
            given |= {"required": True, "default": None}
        if argument.kind is int:
            given["type"] = int
        if argument.kind is bool:
            job.add_argument(name, action="store_true", **given)
        else:
            job.add_argument(
                name, action="append" if argument.kind is list else "store", metavar=argument.metavar, **given
            )


def _round_arguments(job: argparse.ArgumentParser) -> None:
    names = [service.name for service in SERVICES.values() if service.due is not None]
    job.add_argument(
        "--service", action="append", default=[], choices=names, help="a service of the round; all without it"
    )
    job.add_argument(
        "--every", type=float, metavar="SECONDS", help="begin a round so often, until SIGTERM or SIGINT; one without it"
    )
    job.add_argument(
        "--grace",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="how long a round that has begun may run on after such a signal (20)",
    )


def _repeated(job: argparse.ArgumentParser, name: str, what: str) -> None:
    job.add_argument(name, action="append", default=[], metavar="KEY=VALUE", help=f"{what}; may be repeated")


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    wrong = [key for key, separator, _ in pairs if not separator or not key]
    if wrong:
        # Keep the rest out of the message: it may be a secret after another separator.
        name = re.split(r"[^\w.-]", wrong[0], maxsplit=1)[0]
        raise InvalidOptionError(f"{name!r} is no option with a value.", "Write it as key=value.")
    return {key: value for key, _, value in pairs}


class _BrokenOff(BaseException):
    """A round had no more time after a signal."""


class _Signals:
    """Notes the first signal; a second one, or `grace_s` more seconds, break the round off."""

    def __init__(self, grace_s: float) -> None:
        self._heard = False
        self._grace_s = grace_s
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in (*_SIGNALS, signal.SIGALRM)}
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, seconds: float) -> bool:
        """Wait for a signal; return whether one came."""
        # An event must not be set by a handler: it may interrupt the wait where that holds the event's lock.
        until = time.monotonic() + seconds
        while not self._heard and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_S))
        return self._heard

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._heard:
            raise _BrokenOff
        self._heard = True
        # A timer of no seconds would never go off.
        signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, 0.001))


def _repeat_rounds(call: Callable[[], int], *, every_s: float | None, grace_s: float) -> int:
    """Call a round once, or every so many seconds until SIGTERM or SIGINT, and return the last exit code.

    A round that raises `RetryError` does not end the others. A round that is broken off ends with the code of
    `RetryError`: what it had begun is undone, or left to the next process.
    """
    code = 0
    with _Signals(grace_s) as signals:
        try:
            while True:
                began = time.monotonic()
                try:
                    code = call()
                except RetryError as error:
                    if every_s is None:
                        raise
                    print(error, file=sys.stderr, flush=True)  # noqa: T201 (a job's interface)
                    code = AGAIN
                if every_s is None or signals.wait(began + every_s - time.monotonic()):
                    return code
        except _BrokenOff:
            return AGAIN


if __name__ == "__main__":
    sys.exit(main())
