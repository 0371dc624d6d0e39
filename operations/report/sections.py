"""The parts of a report's page: sections, tables, and figures that hold pictures with the table beneath them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

from .escaping import in_html, shown

_EPOCH = datetime.fromtimestamp(0, timezone.utc)


def section(title: str, text: str, *parts: str) -> str:
    """Return a section in HTML; its title and text are markup, and never text from a table."""
    return f"<section><h2>{title}</h2><p>{text}</p>{''.join(parts)}</section>"


def figure(pictures: Sequence[str], rows: str, caption: str = "", *, kind: str) -> str:
    """Return pictures in HTML above a folded table of their numbers; ``pictures``, ``rows`` and ``caption`` are markup.

    ``kind`` is the figure's name in the attribute ``data-figure``.
    """
    drawn = "".join(f'<div class="scroll">{picture}</div>' for picture in pictures)
    note = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<figure data-figure="{kind}">{note}{drawn}<details><summary>The numbers</summary>{rows}</details></figure>'


def table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of values in HTML, with a head of ``names``; numbers end at the right of their column."""
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    heads = "".join(f"<th>{in_html(name)}</th>" for name in names)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def cell(value: object) -> str:
    """Return a cell of a table in HTML; numbers at the right, a dash for no value."""
    if value is None or value == "":
        return "<td>-</td>"
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    if isinstance(value, float):
        return f'<td class="n">{value:,.3f}</td>'
    return f"<td>{shown(str(value))}</td>"


def moment(at_ms: float) -> str:
    """Return a time, in milliseconds since 1970, in words."""
    try:
        return f"{_EPOCH + timedelta(milliseconds=at_ms):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return "beyond the calendar"
