"""Texts and sizes for people to read."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def size_text(count: int) -> str:
    """Return a number of bytes in the largest unit of which there is at least 1."""
    if count < 1024:
        return f"{count:,} B"
    size = float(count)
    for unit in _UNITS:
        size /= 1024
        if size < 1024 or unit == _UNITS[-1]:
            break
    return f"{size:,.1f} {unit}"


def escaped(text: str) -> str:
    r"""Return a text with the numbers of all characters that a terminal does not print, such as control characters.

    An escape becomes ``\x1b``, a line break ``\x0a``, a mark that turns the direction of writing ``\u202e``.
    """
    return text if text.isprintable() else "".join(map(spelled, text))


def spelled(letter: str) -> str:
    """Return a character, or its number if a terminal does not print it."""
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
