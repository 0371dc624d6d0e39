"""In which bucket a dict of log files puts a key, as the rules of the format say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from support.models.model import Key
from support.rules.checks import java_bucket


@dataclass(frozen=True)
class Buckets:
    """The buckets of keys.

    Attributes:
        fields: The fields of the record key, by which rows are hashed.
        number: Returns how many buckets a partition has.
    """

    fields: Sequence[str]
    number: Callable[[str], int | None]

    def __call__(self, key: Key) -> int:
        """Return the bucket of a key."""
        number, values = self.number(key[0]), dict(zip(("p", "id"), key, strict=True))
        assert number is not None
        text = key[1] if len(self.fields) == 1 else ",".join(f"{name}:{values[name]}" for name in self.fields)
        return java_bucket(text, list(self.fields), number)
