"""Text from a table, made harmless before a terminal shows it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ...operations.plain_text import escaped, spelled

__all__ = ["escaped", "shell_words"]


def shell_words(words: Sequence[str]) -> str:
    """Return words as a line to type in bash or zsh, without a character that a terminal does not print."""
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join({"\\": "\\\\", "'": "\\'"}.get(letter) or spelled(letter) for letter in word) + "'"
