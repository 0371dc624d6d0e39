"""What notebooks show of a value: its sentence, and its facts as a table, in which no text becomes markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from .plain_text import escaped


def in_html(text: object) -> str:
    r"""Return a text for an element or a quoted attribute; a control character becomes ``\x1b``."""
    return html.escape(escaped(str(text)), quote=True)


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of text; without a head where that is empty."""
    named = f"<thead><tr>{_cells('th', head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<table>{named}<tbody>{body}</tbody></table>"


def html_facts(value: Any) -> str:
    """Return the sentence of a dataclass, and each of its fields that differs from its default."""
    facts = [
        (field.name.replace("_", " "), _text(held))
        for field in fields(value)
        if (held := getattr(value, field.name)) != _default(field)
    ]
    return f"<p>{in_html(value)}</p>{html_table((), facts)}"


def _cells(tag: str, cells: Sequence[object]) -> str:
    return "".join(f"<{tag}>{in_html(cell)}</{tag}>" for cell in cells)


def _default(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _text(held: object) -> str:
    if isinstance(held, Mapping):
        return ", ".join(f"{name}: {_text(part)}" for name, part in held.items())
    if isinstance(held, (tuple, list)):
        return "; ".join(map(_text, held))
    return f"{held:,}" if isinstance(held, int) and not isinstance(held, bool) else str(held)
