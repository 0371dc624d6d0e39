"""The parser that the command `pyhudi` and the jobs share, built from the registry of services; its completions."""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import InvalidOptionError
from ...operations.arguments import CallArgument, whole_number
from ...operations.upkeep.service_entry import REQUIRED, Argument
from ...operations.upkeep.services import SERVICES, VALIDATE
from .commands import (
    CAT,
    CAT_ARGUMENTS,
    COMPLETION,
    CREATE,
    CREATE_ARGUMENTS,
    DIFF,
    DIFF_ARGUMENTS,
    READS,
    REPORT,
    REPORT_ARGUMENTS,
    SHELLS,
    SHOW,
)

ROUND = "services"
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
# Shorter names of services, beside their own.
ALIASES = {"rescale_buckets": ("rescale",)}
_READING = frozenset({SHOW, REPORT, CAT, DIFF, COMPLETION, VALIDATE, *READS})
_DIGITS = re.compile(r"-?[0-9]{1,20}")
_BASH = """\
# Completions of pyhudi for bash: eval "$(pyhudi completion bash)"
_pyhudi() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" options=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W {commands} -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    if [[ "$word" == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _pyhudi pyhudi
"""
_ZSH = """\
#compdef pyhudi
# Completions of pyhudi for zsh: eval "$(pyhudi completion zsh)"
_pyhudi() {{
    local -a commands options
    commands=({commands})
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    options=()
    case "$words[2]" in
{cases}
    esac
    if [[ "$words[CURRENT]" == -* ]]; then
        compadd -- $options
    else
        _files
    fi
}}
compdef _pyhudi pyhudi
"""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """How the parser is called.

    Attributes:
        interactive: Whether a person calls it: the path needs no option's name, changes have to be confirmed, results
            are sentences unless ``--json`` asks for JSON, and secrets may not be among the options.
    """

    program: str
    text: str
    interactive: bool


def build_parser(entry: EntryPoint) -> argparse.ArgumentParser:
    """Return the parser of all commands, or of all jobs, for the program that calls it."""
    parser = argparse.ArgumentParser(
        prog=entry.program, description=entry.text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    jobs = parser.add_subparsers(dest="operation", required=True, metavar="command" if entry.interactive else "job")
    builder = _Builder(jobs, entry.interactive)
    builder.add_reads()
    for name in OPERATIONS:
        _add_write_arguments(builder.job(name, f"Hudi's operation {name}"), takes_rows=name != DELETE_PARTITION)
    for service in SERVICES.values():
        _add_arguments(builder.job(service.name, service.help), service.arguments)
    _add_round_arguments(builder.job(ROUND, "run what is due of the table services, beside writers"))
    _add_arguments(builder.job(CREATE, "make an empty table, by Spark"), CREATE_ARGUMENTS)
    shells = jobs.add_parser(COMPLETION, help="print the completions of a shell", description="For bash or zsh.")
    shells.add_argument("shell", choices=SHELLS)
    return parser


def reads(arguments: argparse.Namespace) -> bool:
    """Return whether a command line can only read the table."""
    return arguments.operation in _READING


def changes(arguments: argparse.Namespace) -> bool:
    """Return whether a command line may change the table."""
    return not reads(arguments) and not getattr(arguments, "dry_run", False)


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a parser's commands, by name; an alias has the parser of its command."""
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script that teaches a shell the commands of a parser and their options."""
    commands = subcommands(parser)
    options = {name: _options(command) for name, command in commands.items()}
    if shell == "bash":
        cases = [f"        {name}) options={shlex.quote(' '.join(words))} ;;" for name, words in options.items()]
        return _BASH.format(commands=shlex.quote(" ".join(options)), cases="\n".join(cases))
    # Colons separate words in zsh's descriptions.
    helps = {name: (command.description or "").replace(":", ";") for name, command in commands.items()}
    descriptions = [shlex.quote(f"{name}:{text}".rstrip(":")) for name, text in helps.items()]
    cases = [f"        {name}) options=({' '.join(map(shlex.quote, words))}) ;;" for name, words in options.items()]
    return _ZSH.format(commands=" ".join(descriptions), cases="\n".join(cases))


def with_path_in_place(arguments: Sequence[str]) -> list[str]:
    """Return a command line whose path has no ``--path`` before it, so that a job's line works as a command, too."""
    words = [*arguments]
    for position, word in enumerate(words[1:], 1):
        if word == "--":
            # All words after it are values.
            return words
        if word == "--path" and position + 1 < len(words):
            return [words[0], words[position + 1], *words[1:position], *words[position + 2 :]]
        if word.startswith("--path="):
            return [words[0], word.removeprefix("--path="), *words[1:position], *words[position + 1 :]]
    return words


@dataclass(frozen=True, slots=True)
class _Builder:
    """Adds commands to a parser; ``interactive`` says that a person calls them."""

    jobs: Any
    interactive: bool

    def job(self, name: str, help_text: str) -> argparse.ArgumentParser:
        """Add a command with the arguments that all commands have, and return its parser.

        ``name`` is the word of the command line that calls it, and ``help_text`` says in lower case what it does.
        """
        job: argparse.ArgumentParser = self.jobs.add_parser(
            name, help=help_text, description=f"{help_text[0].upper()}{help_text[1:]}.", aliases=ALIASES.get(name, ())
        )
        job.set_defaults(operation=name)
        if self.interactive:
            job.add_argument("path", metavar="PATH", help="the table's path")
            job.add_argument("--json", action="store_true", help="print lines of JSON")
        else:
            job.add_argument("--path", required=True, help="the table's path")
        if self.interactive and name not in _READING:
            job.add_argument("--yes", action="store_true", help="go ahead without a question")
        _add_repeatable(job, "--option", "an option")
        return job

    def add_reads(self) -> None:
        """Add the commands that read a table."""
        self.job(SHOW, "the table's state, what is at work on it, and what it needs next")
        report = self.job(REPORT, "the table's state and history as a page with pictures")
        report.add_argument("-o", dest="output", help=argparse.SUPPRESS, default=argparse.SUPPRESS)
        _add_arguments(report, REPORT_ARGUMENTS)
        for command in READS.values():
            _add_arguments(self.job(command.name, command.help), command.arguments)
        _add_arguments(self.job(CAT, "rows of the table, without Spark"), CAT_ARGUMENTS)
        difference = self.job(DIFF, "what changed between two instants")
        difference.add_argument("earlier", metavar="A", help="an instant or a time")
        difference.add_argument("later", metavar="B", help="a later instant or time")
        _add_arguments(difference, DIFF_ARGUMENTS)


def _add_write_arguments(job: argparse.ArgumentParser, *, takes_rows: bool) -> None:
    """Add the source of the rows, for an operation that takes rows, and the name of the application."""
    job.set_defaults(source=None, source_option=[])
    if takes_rows:
        job.add_argument(
            "--source", required=True, help="the rows: parquet:/path (or another format), table:name, sql:statement"
        )
        _add_repeatable(job, "--source-option", "an option of the source's reader")
    job.add_argument("--name", default="pyhudi job", help="the application's name, unless spark-submit gives one")


def _add_arguments(job: argparse.ArgumentParser, arguments: Iterable[Argument]) -> None:
    """Add the arguments of a service or a command to its parser."""
    for argument in arguments:
        name, keywords = f"--{argument.name.replace('_', '-')}", {"help": argument.help, "default": argument.default}
        if argument.default is REQUIRED:
            keywords |= {"required": True, "default": None}
        if argument.kind is int:
            keywords["type"] = partial(_whole_number, argument.name)
        if argument.kind is bool:
            job.add_argument(name, action="store_true", **keywords)
        else:
            job.add_argument(
                name, action="append" if argument.kind is list else "store", metavar=argument.metavar, **keywords
            )


def _add_round_arguments(job: argparse.ArgumentParser) -> None:
    """Add the arguments of rounds of services: which services, how often, and how long after a signal."""
    names = [service.name for service in SERVICES.values() if service.due is not None]
    job.add_argument(
        "--service", action="append", default=[], choices=names, help="a service of the round; without it all run"
    )
    job.add_argument(
        "--every",
        type=_seconds,
        metavar="SECONDS",
        help="begin a round every so many seconds, until SIGTERM or SIGINT; without it run one round",
    )
    job.add_argument(
        "--grace",
        type=_seconds,
        default=20.0,
        metavar="SECONDS",
        help="how long a running round may continue after such a signal (20)",
    )
    job.add_argument("--dry-run", action="store_true", help="only report what the table needs")


def _whole_number(name: str, value: str) -> int:
    """Return a whole number that a command line gives in digits."""
    try:
        return whole_number(CallArgument("", name, int(value) if _DIGITS.fullmatch(value) else value))
    except InvalidOptionError as error:
        raise argparse.ArgumentTypeError(f"{value!r} is none. {error.todo}") from None


def _seconds(value: str) -> float:
    """Return seconds from a command line; the parser reports any other text."""
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{value!r} is none. Give seconds that are not negative.")
    return seconds


def _add_repeatable(job: argparse.ArgumentParser, name: str, what: str) -> None:
    job.add_argument(name, action="append", default=[], metavar="KEY=VALUE", help=f"{what}; may be repeated")


def _options(command: argparse.ArgumentParser) -> list[str]:
    """Return the long names of the options of a command."""
    return [word for action in command._actions for word in action.option_strings if word.startswith("--")]
