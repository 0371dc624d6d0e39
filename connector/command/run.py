"""Carries out one command line, of a person or of a scheduler, and returns its exit code."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from ...errors import InvalidOptionError, PyHudiError
from ...operations.arguments import CallArgument, text
from ...operations.upkeep.services import SERVICES
from .cells import escaped
from .changing import create, run_rounds, run_service
from .command_line import CommandLine, NotConfirmedError
from .commands import CAT, COMPLETION, CREATE, DIFF, READS, REPORT, SHOW
from .exit_codes import FAILED, exit_code
from .output import CommandOutput
from .parser import ROUND, EntryPoint, build_parser, completion, reads, with_path_in_place
from .reading import cat, compare, read_rows, report, show

# The arguments that are pairs of a key and a value.
_OF_PAIRS = frozenset({"option", "source_option"})


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """Return options that were given as ``key=value``; raises `InvalidOptionError` for another text."""
    split_texts = [text.partition("=") for text in texts]
    unpaired = [key for key, separator, _ in split_texts if not separator or not key]
    if unpaired:
        # Keep the rest out of the message: it may be a secret after another separator.
        name = re.split(r"[^\w.-]", unpaired[0], maxsplit=1)[0]
        raise InvalidOptionError(f"{name!r} is no option with a value.", "Write it as key=value.")
    return {key: value for key, _, value in split_texts}


def refuse_secrets(options: Mapping[str, str]) -> None:
    """Raise `InvalidOptionError` for an option that may hold a secret: other users of a machine see command lines."""
    from ...options.secrets import holds_secret  # noqa: PLC0415 (help and errors of the parser need no options)

    secret = next((key for key, text in options.items() if holds_secret(key, text)), None)
    if secret is not None:
        raise InvalidOptionError(
            f"The option {secret} may hold a secret, and a command line is shown to every user of the machine.",
            "Give it by the store's environment variables, or in the file hudi-defaults.conf.",
        )


def refuse_strange_texts(arguments: argparse.Namespace) -> None:
    """Raise `InvalidOptionError` for an argument that `text` refuses, before any work: it checks paths, too."""
    for name, value in vars(arguments).items():
        for word in value if isinstance(value, list) else [value]:
            if not isinstance(word, str):
                continue
            try:
                # What it returns is the word.
                text(CallArgument(f"The command {arguments.operation}", name, word))
            except InvalidOptionError as error:
                if name not in _OF_PAIRS:
                    raise
                # Its value may be a secret.
                key = word.partition("=")[0].replace("\0", "")
                raise InvalidOptionError(
                    f"The option {key} has a character that no option may have.", error.todo
                ) from None


# Writes rows by Spark: the command line, its options, and those of the source.
WriteJob: TypeAlias = Callable[[argparse.Namespace, dict[str, str], dict[str, str]], Any]
_INTERRUPTED = 130


def run_command(arguments: Sequence[str] | None, entry: EntryPoint, write: WriteJob) -> int:
    """Run one command line, that of this process if ``arguments`` is None, and return the exit code.

    ``entry`` says whether a person or a scheduler calls it, and ``write`` carries out a command that writes rows.
    Raises `SystemExit` if the line is invalid (code 2), or asks for help (code 0).
    """
    parser, words = build_parser(entry), sys.argv[1:] if arguments is None else arguments
    namespace = parser.parse_args(with_path_in_place(words) if entry.interactive else words)
    output = CommandOutput(as_json=not entry.interactive or getattr(namespace, "json", False))
    if namespace.operation == COMPLETION:
        print(completion(parser, namespace.shell), end="")  # noqa: T201 (the command's interface)
        return 0
    # A command that only reads starts sooner without pandas, but a program that calls this function may use it itself.
    if arguments is None and reads(namespace):
        sys.meta_path.insert(0, _NoPandas)
    with _logged(entry):
        try:
            refuse_strange_texts(namespace)
            code = _run(CommandLine(output, entry, namespace, pairs(namespace.option)), write)
            # A pipe that nothing reads any more fails here, where it is understood, and not at the end of the process.
            sys.stdout.flush()
            return code
        except NotConfirmedError:
            output.note("Nothing was changed.")
            return FAILED
        except PyHudiError as error:
            output.note(error.text)
            return exit_code(error)
        except BrokenPipeError:
            # What reads the output, such as head, has seen enough; Python flushes it once more at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        except KeyboardInterrupt:
            if not entry.interactive:
                raise
            output.note("Interrupted.")
            return _INTERRUPTED


def _run(line: CommandLine, write: WriteJob) -> int:
    """Run the command of a line and return its exit code; ``write`` runs a command that writes rows.

    A person's line may hold no secrets, and confirms a change before it is made. Errors reach the caller.
    """
    arguments, of_source = line.arguments, pairs(getattr(line.arguments, "source_option", []))
    if line.entry.interactive:
        refuse_secrets({**line.table_options, **of_source})
    name = arguments.operation
    if name in SERVICES:
        return run_service(line)
    carried_out: Mapping[str, Callable[[CommandLine], int]] = {
        ROUND: run_rounds,
        CREATE: create,
        SHOW: show,
        REPORT: report,
        CAT: cat,
        DIFF: compare,
        **dict.fromkeys(READS, read_rows),
    }
    if name in carried_out:
        return carried_out[name](line)
    if line.has_to_ask():
        line.ask(f"Hudi's operation {name}")
    with line.shown_progress():
        commit_result = write(arguments, {**line.table_options}, of_source)
    line.output.result(commit_result)
    return 0


class _NoPandas:
    """Hides pandas from pyarrow, which would import it with its first value: a fifth of a short command's time."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("a command that reads a table needs no pandas", name=name)


class _EscapingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(escaped, super().format(record).splitlines()))


@contextmanager
def _logged(entry: EntryPoint) -> Iterator[None]:
    """Show warnings of a person's command on stderr, unless the program has handlers; a scheduler has its own log."""
    logger = logging.getLogger("pyhudi")
    if not entry.interactive or logger.hasHandlers():
        yield
        return
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_EscapingFormatter("%(levelname)s: %(message)s"))
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
