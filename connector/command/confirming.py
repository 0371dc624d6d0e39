"""Whether the user wants a change: asked on a terminal, and given by ``--yes`` without one."""

from __future__ import annotations

import sys

from ...errors import MissingOptionError
from .output import CommandOutput


class NotConfirmedError(Exception):
    """The user said no; nothing was changed."""


def require_terminal(command: str, path: str) -> None:
    """Raise `MissingOptionError` where no terminal is there to ask, so that the command ends with code 2."""
    if not sys.stdin.isatty():
        raise MissingOptionError(
            f"The command {command} changes the table {path}, and no terminal is there to ask for a confirmation.",
            "Add --yes, or --dry-run to see what it would do.",
        )


def ask(output: CommandOutput, command: str, path: str, what: str) -> None:
    """Ask whether to go ahead; raises `NotConfirmedError` for any answer but yes."""
    output.note(f"{command} {path}: {what}.")
    print("Go ahead? [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201 (the command's interface)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise NotConfirmedError
