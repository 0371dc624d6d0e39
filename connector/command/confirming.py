"""Whether the user wants a change: asked on a terminal, and given by ``--yes`` without one."""

from __future__ import annotations

import sys

from ...errors import MissingOptionError


class NotConfirmedError(Exception):
    """The user said no; nothing was changed."""


def require_terminal(command: str, path: str) -> None:
    """Raise `MissingOptionError` if no terminal is there to ask, so that the command ends with code 2."""
    if not sys.stdin.isatty():
        raise MissingOptionError(
            f"The command {command} changes the table {path}, and no terminal is there to ask for a confirmation.",
            "Add --yes, or --dry-run to see what it would do.",
        )
