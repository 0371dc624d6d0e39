"""The rows of a table that a write read to decide what it does."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..reader.skipping.predicates import Compare, OneOf, Predicate
from ..reader.skipping.pruning import has_one_spelling

# Of more values, only the least and the greatest count.
_MOST_VALUES = 1000


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The rows that satisfy all predicates, now or later.

    Attributes:
        predicates: On columns of the table; none for all rows.
        absence: Whether a change also counts if a row is gone, or no longer satisfies the predicates.
    """

    predicates: tuple[Predicate, ...] = ()
    absence: bool = False


def is_bounded(data_type: pa.DataType) -> bool:
    """Return whether predicates on a column of a type hold exactly for the rows with the named values."""
    return has_one_spelling(data_type) or bool(pa.types.is_floating(data_type))


def predicates_of(name: str, values: pa.ChunkedArray) -> list[Predicate]:
    """Return predicates that hold if a bounded column has one of some values.

    If nulls or NaN are among these, there are no predicates, and the column narrows nothing.
    """
    if values.null_count:
        return []
    if has_one_spelling(values.type):
        distinct = pc.unique(values)
        if len(distinct) <= _MOST_VALUES:
            return [OneOf(name, tuple(distinct.to_pylist()))]  # O(1)
    elif pc.any(pc.is_nan(values)).as_py():  # O(1)
        return []
    span = pc.min_max(values).as_py()  # O(1)
    return [Compare(name, ">=", span["min"]), Compare(name, "<=", span["max"])]
