"""What a run takes of what a test repeats with other values: CI all of it, `make test` a third (decision 117)."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
# A run takes one of so many cases, drawn examples and failing steps.
ONE_OF = int(os.environ.get("PYHUDI_ONE_OF", "1"))
# Each of their cases is a page, which whoever changes it wants to have looked at.
WHOLE = {Path(__file__).parents[1] / "unit" / "connector" / "test_docs.py"}


def share_of(count: int) -> int:
    """Return how many of so many drawn examples a run takes."""
    return -(-count // ONE_OF)


def some(values: Sequence[T], one_of: int = ONE_OF) -> Sequence[T]:
    """Return the values that a run takes of some, at equal distances from the first on."""
    return values[::one_of]


def taken(name: str, cases: Sequence[T], one_of: int = ONE_OF) -> list[T]:
    """Return the cases of a test that a run takes, one at least; the name says which is the first.

    So of the tests that have a case for each type of table some take the one type, and some the other.
    """
    distance = min(one_of, len(cases))
    return list(cases[zlib.crc32(name.encode()) % distance :: distance])
