"""Completions of the command `pyhudi` for bash and zsh, made from its parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping

from .parser import subcommands

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


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script that teaches a shell the commands of a parser and their options."""
    options = {name: _options(command) for name, command in subcommands(parser).items()}
    if shell == "bash":
        cases = [f"        {name}) options={shlex.quote(' '.join(words))} ;;" for name, words in options.items()]
        return _BASH.format(commands=shlex.quote(" ".join(options)), cases="\n".join(cases))
    helps = _helps(parser)
    named = [shlex.quote(f"{name}:{helps.get(name, '')}".rstrip(":")) for name in options]
    cases = [f"        {name}) options=({' '.join(map(shlex.quote, words))}) ;;" for name, words in options.items()]
    return _ZSH.format(commands=" ".join(named), cases="\n".join(cases))


def _options(command: argparse.ArgumentParser) -> list[str]:
    return [word for action in command._actions for word in action.option_strings if word.startswith("--")]


def _helps(parser: argparse.ArgumentParser) -> Mapping[str, str]:
    """Return what each command does; colons separate words in zsh's descriptions."""
    return {name: (command.description or "").replace(":", ";") for name, command in subcommands(parser).items()}
