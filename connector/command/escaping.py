"""Text from a table, made harmless before a terminal shows it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def escaped(text: str) -> str:
    r"""Return a text whose control characters, and all others that a terminal does not print, are spelled out.

    An escape becomes ``\x1b``, a line break ``\x0a``, a mark that turns the direction of writing ``\u202e``.
    """
    return text if text.isprintable() else "".join(map(_spelled, text))


def shell_words(words: Sequence[str]) -> str:
    """Return words as a line to type in bash or zsh, without a character that a terminal does not print."""
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join({"\\": "\\\\", "'": "\\'"}.get(letter) or _spelled(letter) for letter in word) + "'"


def _spelled(letter: str) -> str:
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
