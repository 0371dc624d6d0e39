"""Carries out the commands and jobs that change a table, once they are confirmed; rounds until a signal comes."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from types import FrameType
from typing import Any

from ...errors import RetryError, from_spark
from ...operations.upkeep.services import SERVICES, VALIDATE
from .command_line import CommandLine
from .exit_codes import AGAIN, FAILED, WRONG_TABLE, exit_code
from .output import lines_of
from .reading import state_of

_POLL_S = 0.2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_service(line: CommandLine) -> int:
    """Run one table service, or the checks of `validate`, and print its result."""
    service = SERVICES[line.arguments.operation]
    service_arguments = {argument.name: getattr(line.arguments, argument.name) for argument in service.arguments}
    if line.has_to_ask():
        if "dry_run" in service_arguments:
            prediction = service.run(line.call(), **{**service_arguments, "dry_run": True})
            for text in lines_of(prediction):
                line.output.note(text)
        line.ask(service.help)
    with line.shown_progress() as progress:
        service_result: Any = service.run(line.call(progress), **service_arguments)
    if service.name != VALIDATE:
        line.output.result(service_result)
        return 0
    line.output.rows(service_result, "Nothing is wrong with the table.")
    # Findings come worst first. A table with warnings only is usable.
    return WRONG_TABLE if service_result.num_rows and str(service_result.column("severity")[0]) == "error" else 0


def run_rounds(line: CommandLine) -> int:
    """Run one round of services, or round after round until a signal comes, and print a result for each."""
    if line.arguments.dry_run:
        return _print_needs(line)
    if line.has_to_ask():
        line.ask("run the table services that are due")
    return repeat_rounds(partial(_run_round, line), every_s=line.arguments.every, grace_s=line.arguments.grace)


def create(line: CommandLine) -> int:
    """Create a table, or with ``--dry-run`` check only whether it can be made; return the exit code, 0.

    ``line`` has the arguments and the options of the table. With ``--if-not-exists`` a table that agrees with them may
    be there already. Raises a `PyHudiError` if the table cannot be made.
    """
    output, arguments = line.output, line.arguments
    if line.has_to_ask():
        line.ask(f"make a table with the columns {arguments.schema}")
    from ...methods.creation import CreationTerms  # noqa: PLC0415
    from ..source.own_errors import own_errors  # noqa: PLC0415 (a wrong argument fails before Spark is imported)
    from ..source.paths import absolute_for  # noqa: PLC0415
    from ..source.sessions import find_session  # noqa: PLC0415
    from ..table.creation import create_table  # noqa: PLC0415

    spark = find_session("pyhudi create")
    path = absolute_for(spark, arguments.path)
    with own_errors():
        terms = CreationTerms(
            arguments.record_key,
            arguments.partition_by,
            arguments.order_by,
            arguments.index,
            arguments.buckets,
            arguments.table_type,
        )
        is_new = create_table(
            spark,
            path,
            arguments.schema,
            terms,
            line.table_options,
            if_not_exists=arguments.if_not_exists,
            dry_run=arguments.dry_run,
        )
    if output.as_json:
        output.json({"path": path, "created": is_new and not arguments.dry_run, "dry": arguments.dry_run})
    elif not is_new:
        output.line(f"The table {path} is there already, and agrees with the arguments.")
    else:
        output.line(f"The table {path} {'can be' if arguments.dry_run else 'was'} made.")
    return 0


def repeat_rounds(call: Callable[[], int], *, every_s: float | None, grace_s: float) -> int:
    """Call a round once, or every so many seconds until SIGTERM or SIGINT, and return the last exit code.

    A round that raises `RetryError` does not end the others. A round that is broken off ends with the code of
    `RetryError`: what it had begun is undone, or left to the next process.
    """
    code = 0
    with _Signals(grace_s) as signals:
        try:
            while True:
                start = time.monotonic()
                try:
                    code = call()
                except RetryError as error:
                    if every_s is None:
                        raise
                    print(error, file=sys.stderr, flush=True)  # noqa: T201 (a job's interface)
                    code = AGAIN
                if every_s is None or signals.wait(start + every_s - time.monotonic()):
                    return code
        except _BrokenOff:
            return AGAIN


def _run_round(line: CommandLine) -> int:
    """Run a round of services and print its result; returns the exit code of the first service that failed."""
    from ...operations.upkeep.service_round import run_services  # noqa: PLC0415 (the parser imports no service)

    with line.shown_progress() as progress:
        round_result = run_services(line.call(progress), line.arguments.service)
    line.output.result(round_result)
    for failure in round_result.failed:
        line.output.note(failure.error)
    if not round_result.failed:
        return 0
    # A failure holds the text of its error, which names the class.
    error = from_spark(Exception(round_result.failed[0].error))
    return FAILED if error is None else exit_code(error)


def _print_needs(line: CommandLine) -> int:
    """Print what a round would find to do, by the state of the table."""
    output = line.output
    chosen = frozenset(line.arguments.service) or frozenset(name for name, service in SERVICES.items() if service.due)
    # A need may be a round of one service, such as rollback.
    needs = [
        need for need in state_of(line).needs if {need.service, need.arguments.get("service", need.service)} & chosen
    ]
    for need in needs:
        if output.as_json:
            output.json({**asdict(need), "command": line.command_of(need)})
        else:
            output.line(need.why)
    if not needs and not output.as_json:
        output.line("Nothing is due.")
    return 0


class _BrokenOff(BaseException):
    """A round had no more time after a signal."""


class _Signals:
    """Notes the first signal; a second one, or `grace_s` more seconds, break the round off."""

    def __init__(self, grace_s: float) -> None:
        self._heard = False
        self._grace_s = grace_s
        self._handlers_before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        # Python lets the main thread alone set handlers.
        if threading.current_thread() is threading.main_thread():
            self._handlers_before = {
                number: signal.signal(number, self._hear) for number in (*_SIGNALS, signal.SIGALRM)
            }
        return self

    def __exit__(self, *_: object) -> None:
        if self._handlers_before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._handlers_before.items():
            signal.signal(number, handler)

    def wait(self, seconds: float) -> bool:
        """Wait for a signal; return whether one came."""
        # A handler must not set an event: it may interrupt the wait while the wait holds the event's lock.
        until = time.monotonic() + seconds
        while not self._heard and (seconds_left := until - time.monotonic()) > 0:
            time.sleep(min(seconds_left, _POLL_S))
        return self._heard

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: the first starts the timer, and the second, perhaps the timer's own, ends the round.

        It ends the round by `_BrokenOff`. Python calls the handler with the signal's number and the current frame.
        """
        if self._heard:
            raise _BrokenOff
        self._heard = True
        # A timer of no seconds would never go off.
        signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, 0.001))
