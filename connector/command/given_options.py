"""The options of a command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence

from ...errors import InvalidOptionError
from ...operations.arguments import Given, text

# The arguments that are pairs of a key and a value.
_OF_PAIRS = frozenset({"option", "source_option"})


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """Return options that were given as ``key=value``; raises `InvalidOptionError` for another text."""
    split_texts = [text.partition("=") for text in texts]
    wrong = [key for key, separator, _ in split_texts if not separator or not key]
    if wrong:
        # Keep the rest out of the message: it may be a secret after another separator.
        name = re.split(r"[^\w.-]", wrong[0], maxsplit=1)[0]
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


def refuse_strange_texts(asked: argparse.Namespace) -> None:
    """Raise `InvalidOptionError` for an argument that holds a NUL, or a path out of the table, before any work."""
    for name, value in vars(asked).items():
        for word in value if isinstance(value, list) else [value]:
            if not isinstance(word, str):
                continue
            if name in _OF_PAIRS and "\0" in word:
                # Its value may be a secret.
                key = word.partition("=")[0].replace("\0", "")
                raise InvalidOptionError(f"The option {key} has a NUL in it.", "Give a text without NUL characters.")
            text(Given(f"The command {asked.operation}", name, word))
