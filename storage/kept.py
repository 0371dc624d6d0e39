"""Values that a process keeps by key; if there are too many, the value that was kept first leaves."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def keep(values: dict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Keep a value under a key, and drop the values that were kept first while there are more than ``most``."""
    values.pop(key, None)
    values[key] = value
    while len(values) > most:
        # Another thread may change the values between the calls that take the first key.
        with suppress(RuntimeError, StopIteration):
            values.pop(next(iter(values)), None)
