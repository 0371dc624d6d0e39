"""The order in which the rows of a base file lie: the sort columns, and the curve that makes an order of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

LINEAR, ZORDER, HILBERT = "linear", "zorder", "hilbert"
CURVES = (LINEAR, ZORDER, HILBERT)


@dataclass(frozen=True, slots=True)
class SortOrder:
    """An order of rows; one `of_table` is kept by all of its base files."""

    columns: tuple[str, ...]
    curve: str = LINEAR
    of_table: bool = True

    def __str__(self) -> str:
        return f"{self.curve}({','.join(self.columns)})"

    @property
    def is_linear(self) -> bool:
        """Whether rows are sorted by the first column, equal values by the next; a curve of one column is linear."""
        return self.curve == LINEAR or len(self.columns) == 1

    def among(self, names: Sequence[str]) -> SortOrder | None:
        """Return the order by those of its columns that a table still has; None for none."""
        columns = tuple(name for name in self.columns if name in names)
        return replace(self, columns=columns) if columns else None
