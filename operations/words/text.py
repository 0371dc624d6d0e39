"""Text, sizes and facts as people read them, in a terminal or in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any


def in_html(text: object) -> str:
    r"""Return a text for an element or a quoted attribute; a control character becomes ``\x1b``."""
    return html.escape(escaped(str(text)), quote=True)


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in HTML, without a head if ``head`` is empty."""
    head_row = f"<thead><tr>{_cells('th', head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<table>{head_row}<tbody>{body}</tbody></table>"


def html_facts(value: Any) -> str:
    """Return a dataclass in HTML: its text, and a table of the fields that differ from their defaults."""
    facts = [
        (field.name.replace("_", " "), _text(fact))
        for field in fields(value)
        if (fact := getattr(value, field.name)) != _default(field)
    ]
    return f"<p>{in_html(value)}</p>{html_table((), facts)}"


def _cells(tag: str, cells: Sequence[object]) -> str:
    return "".join(f"<{tag}>{in_html(cell)}</{tag}>" for cell in cells)


def _default(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _text(fact: object) -> str:
    """Return a value of a field in words; mappings, tuples and lists with all their parts."""
    if isinstance(fact, Mapping):
        return ", ".join(f"{name}: {_text(part)}" for name, part in fact.items())
    if isinstance(fact, (tuple, list)):
        return "; ".join(map(_text, fact))
    return f"{fact:,}" if isinstance(fact, int) and not isinstance(fact, bool) else str(fact)


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
