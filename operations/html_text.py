"""A value as notebooks show it: its sentence, and a table of its facts. All text is escaped."""

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
    """Return a table of text, without a head if ``head`` is empty."""
    head_row = f"<thead><tr>{_cells('th', head)}</tr></thead>" if head else ""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<table>{head_row}<tbody>{body}</tbody></table>"


def html_facts(value: Any) -> str:
    """Return the sentence of a dataclass, and a table of the fields that differ from their defaults."""
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
    if isinstance(fact, Mapping):
        return ", ".join(f"{name}: {_text(part)}" for name, part in fact.items())
    if isinstance(fact, (tuple, list)):
        return "; ".join(map(_text, fact))
    return f"{fact:,}" if isinstance(fact, int) and not isinstance(fact, bool) else str(fact)
