"""The rows of a table that decided what a write does."""

from __future__ import annotations

from dataclasses import dataclass

from ..reader.predicates import Predicate


@dataclass(frozen=True, slots=True)
class ReadRows:
    """The rows that satisfy all predicates, whether there are any or not.

    Attributes:
        predicates: On columns of the table; none for all rows.
        absence: Whether it counts, too, that a row is gone or satisfies the predicates no more.
    """

    predicates: tuple[Predicate, ...] = ()
    absence: bool = False
