"""Tables of what was measured, as the pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table_of(rows: Mapping[str, Mapping[str, float]], columns: Sequence[str], kind: str = "", digits: int = 2) -> str:
    """Return rows of numbers as a table of Markdown, with a dash where a row lacks one.

    Args:
        rows: The numbers by row and column.
        columns: Those that are shown, in their order.
        kind: What the names of the rows begin with that are shown, which is left off.
        digits: How many decimal places numbers have.
    """
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for row, found in rows.items():
        if row.startswith(kind):
            cells = [f"{found[column]:.{digits}f}" if column in found else "–" for column in columns]
            lines.append(f"| {row.removeprefix(kind)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
