"""Carries out the commands and jobs that change a table, once they are confirmed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

from ...errors import from_spark
from ...operations.write.services import SERVICES, VALIDATE, Service
from .confirming import ask, require_terminal
from .exit_codes import FAILED, WRONG_TABLE, exit_code
from .given_options import call_of
from .output import CommandOutput
from .parser import EntryPoint, changes
from .reading import state_of
from .rounds import repeat_rounds
from .state_text import command_of
from .work_progress import WorkProgress


def run_service(output: CommandOutput, entry: EntryPoint, asked: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Run one table service, or the checks of `validate`, and print its result."""
    service = SERVICES[asked.operation]
    arguments = {argument.name: getattr(asked, argument.name) for argument in service.arguments}
    if is_asked_for(entry, asked):
        require_terminal(asked.operation, asked.path)
        if "dry_run" in arguments:
            foretold = service.run(call_of(asked.path, given), **{**arguments, "dry_run": True})
            output.note(str(foretold))
        ask(output, asked.operation, asked.path, service.help)
    with shown_progress(entry, asked) as progress:
        done: Any = service.run(call_of(asked.path, given, progress), **arguments)
    return _print(output, service, done)


def run_rounds(output: CommandOutput, entry: EntryPoint, asked: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Run one round of services, or round after round until a signal comes, and print a result for each."""
    if asked.dry_run:
        return _print_needs(output, asked, given)
    if is_asked_for(entry, asked):
        require_terminal(asked.operation, asked.path)
        ask(output, asked.operation, asked.path, "run the table services that are due")
    call = partial(_run_round, output, entry, asked, given)
    return repeat_rounds(call, every_s=asked.every, grace_s=asked.grace)


def is_asked_for(entry: EntryPoint, asked: argparse.Namespace) -> bool:
    """Return whether a command line has to be confirmed before it changes the table."""
    return entry.interactive and changes(asked) and not asked.yes


@contextmanager
def shown_progress(entry: EntryPoint, asked: argparse.Namespace) -> Iterator[WorkProgress | None]:
    """Show how far a command is; the progress of a job goes to its log."""
    if not entry.interactive:
        yield None
        return
    with WorkProgress(f"{asked.operation} {asked.path}") as progress:
        yield progress


def _run_round(output: CommandOutput, entry: EntryPoint, asked: argparse.Namespace, given: Mapping[str, str]) -> int:
    from ...operations.write.service_round import run_services  # noqa: PLC0415 (the parser imports no service)

    with shown_progress(entry, asked) as progress:
        done = run_services(call_of(asked.path, given, progress), asked.service)
    output.result(done)
    for failure in done.failed:
        output.note(failure.error)
    if not done.failed:
        return 0
    error = from_spark(Exception(done.failed[0].error))
    return FAILED if error is None else exit_code(error)


def _print(output: CommandOutput, service: Service, done: Any) -> int:
    if service.name != VALIDATE:
        output.result(done)
        return 0
    output.rows(done, "Nothing is wrong with the table.")
    # Findings come worst first. A table with warnings only is usable.
    return WRONG_TABLE if done.num_rows and str(done.column("severity")[0]) == "error" else 0


def _print_needs(output: CommandOutput, asked: argparse.Namespace, given: Mapping[str, str]) -> int:
    """Print what a round would find to do, by the state of the table."""
    chosen = frozenset(asked.service) or frozenset(name for name, service in SERVICES.items() if service.due)
    needs = [
        need
        for need in state_of(asked.path, given).needs
        if {need.service, need.arguments.get("service", need.service)} & chosen
    ]
    for need in needs:
        if output.as_json:
            output.json({**asdict(need), "command": command_of(asked.path, need, given)})
        else:
            output.line(need.why)
    if not needs and not output.as_json:
        output.line("Nothing is due.")
    return 0
