"""One command line: where its output goes, how it was called, its arguments, and the table that they lead to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...errors import MissingOptionError
from ...operations.upkeep.service_entry import Call
from ...operations.words.progress import Observer
from .cells import shell_words
from .output import CommandOutput
from .parser import EntryPoint, changes
from .work_progress import WorkProgress

if TYPE_CHECKING:
    from ...operations.services.means import Means
    from ...operations.state.needs import Need
    from ...options.model import HudiOptions
    from ...storage.base import Storage


class NotConfirmedError(Exception):
    """The user said no; nothing was changed."""


def require_terminal(command: str, path: str) -> None:
    """Raise `MissingOptionError` if no terminal is there to ask, so that the command ends with code 2."""
    if not sys.stdin.isatty():
        raise MissingOptionError(
            f"The command {command} changes the table {path}, and no terminal is there to ask for a confirmation.",
            "Add --yes, or --dry-run to see what it would do.",
        )


PROGRAM = "pyhudi"


def _argument_words(name: str, value: str) -> list[str]:
    """Return the words of an argument: one, if the parser would else take the value for another argument."""
    return [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A parsed command line.

    Attributes:
        arguments: What the parser made of the line.
        table_options: The options of the table, by their keys.
    """

    output: CommandOutput
    entry: EntryPoint
    arguments: argparse.Namespace
    table_options: Mapping[str, str]

    def options_and_storage(self) -> tuple[HudiOptions, Storage]:
        """Return the options of the table with those of hudi-defaults.conf, and its store."""
        from ...methods.paths import absolute  # noqa: PLC0415
        from ...options.sources import WRITING, resolve_options  # noqa: PLC0415 (a command imports only what it needs)
        from ...storage import open_storage  # noqa: PLC0415

        path = absolute(self.arguments.path)
        options = resolve_options(self.table_options, path, WRITING).options
        return options, open_storage(path, options.storage_options, durable=options.durable)

    def call(self, observer: Observer | None = None) -> Call:
        """Return the call of a service for the table; ``observer`` receives its progress, None for the log."""
        options, storage = self.options_and_storage()
        settings = options.write_settings()

        def means() -> Means:
            """Return the means of a service that changes the table."""
            from ...operations.upkeep.after_write import means_of  # noqa: PLC0415 (a command that only reads asks for none)

            return replace(means_of(settings, application=options.application), observer=observer)

        return Call(
            storage,
            settings.patience,
            options.upkeep,
            means,
        )

    def command_of(self, need: Need) -> str:
        """Return the command line that does what the table needs, with the options that showed the need.

        It lacks options that may hold a secret: a command refuses them, and takes them from the environment or from
        hudi-defaults.conf.
        """
        from ...options.secrets import holds_secret  # noqa: PLC0415 (help and errors of the parser need no options)

        words = [PROGRAM, need.service, self.arguments.path]
        for name, value in need.arguments.items():
            words += _argument_words(name.replace("_", "-"), value)
        for key, text in self.table_options.items():
            if not holds_secret(key, text):
                words += _argument_words("option", f"{key}={text}")
        return shell_words(words)

    def has_to_ask(self) -> bool:
        """Return whether the user has to confirm before the table changes; raise if no terminal is there to ask."""
        if not self.entry.interactive or not changes(self.arguments) or self.arguments.yes:
            return False
        require_terminal(self.arguments.operation, self.arguments.path)
        return True

    def ask(self, what: str) -> None:
        """Ask whether to go ahead; raises `NotConfirmedError` for any answer but yes."""
        self.output.note(f"{self.arguments.operation} {self.arguments.path}: {what}.")
        print("Go ahead? [y/N] ", end="", file=sys.stderr, flush=True)  # noqa: T201 (the command's interface)
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise NotConfirmedError

    @contextmanager
    def shown_progress(self) -> Iterator[WorkProgress | None]:
        """Show how far a command is; the progress of a job goes to its log."""
        if not self.entry.interactive:
            yield None
            return
        with WorkProgress(f"{self.arguments.operation} {self.arguments.path}") as progress:
            yield progress
