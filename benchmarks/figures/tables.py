"""Tables of what was measured, as the pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


def table_of(rows: Mapping[str, Mapping[str, float]], columns: Sequence[str], kind: str = "", digits: int = 2) -> str:
    """Return rows of numbers as a table of Markdown, with a dash if a row lacks one.

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


@dataclass(frozen=True)
class Bound:
    """A figure with the bound that is promised for it: the most that it may be or, without that, the least."""

    what: str
    measured: float
    most: float | None = None
    least: float = 0.0
    digits: int = 2

    @property
    def line(self) -> str:
        """The line of a table; it says if the promise is missed."""
        is_kept = self.measured >= self.least if self.most is None else self.measured <= self.most
        word, bound = ("at least", self.least) if self.most is None else ("at most", self.most)
        mark = "" if is_kept else ", missed"
        return f"| {self.what} | {word} {bound:.{self.digits}f} | {self.measured:.{self.digits}f}{mark} |"


def bounds_of(promises: Iterable[Bound]) -> str:
    """Return a table of what is promised and what was measured."""
    lines = ["| promise | bound | measured |", "|---|---:|---:|", *(promise.line for promise in promises)]
    return "\n".join([*lines, ""])
