"""Which blocks of an HFile can hold a key, by the first keys of the blocks.

Apache HBase, and with it Apache Hudi before 1.1, sorts keys as bytes. Apache Hudi's own writer sorts them as Java
compares texts: by UTF-16, in which characters from U+10000 on come before those from U+E000 to U+FFFF. No file says
which writer made it. A key without a character from U+E000 on has the same position in both orders.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# By UTF-8's first bytes: 0xEE and 0xEF begin U+E000 to U+FFFF, and what is greater begins U+10000 and more.
_BY_UTF_16 = bytes([*range(0xEE), 0xFE, 0xFF, *range(0xEE, 0xFE)])
# By these tables keys are translated, so that they compare as bytes; None changes nothing.
_ORDERS = (None, _BY_UTF_16)


@dataclass(frozen=True, slots=True)
class FirstKeys:
    """The first keys of the blocks, in one order in which they ascend.

    They are translated by ``order``, so that they compare as bytes.
    """

    keys: Sequence[bytes]
    order: bytes | None

    def blocks_of(self, keys: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
        """Yield the number of each block that can hold some of the given keys, and these keys.

        The given keys are sorted as bytes.
        """
        if self.order is not None:
            keys = sorted(keys, key=self._comparable)
        comparable = keys if self.order is None else [self._comparable(key) for key in keys]
        # A key less than the first key of the first block is in no block.
        start = bisect_left(comparable, self.keys[0]) if self.keys else len(comparable)
        while start < len(comparable):
            number = bisect_right(self.keys, comparable[start]) - 1
            end = (
                bisect_left(comparable, self.keys[number + 1], start)
                if number + 1 < len(self.keys)
                else len(comparable)
            )
            yield number, keys[start:end]
            start = end

    def blocks_with(self, prefix: bytes) -> range:
        """Return the numbers of the blocks that can hold keys with a prefix."""
        least = self._comparable(prefix)
        greater = _least_greater(least)
        # The block in front of the first block with a greater first key may end with such keys.
        first_block = max(0, bisect_left(self.keys, least) - 1)
        return range(first_block, len(self.keys) if greater is None else bisect_left(self.keys, greater))

    def _comparable(self, key: bytes) -> bytes:
        """Return a key translated so that it compares as bytes in this order."""
        return key.translate(self.order)


def first_keys(keys: Sequence[bytes]) -> list[FirstKeys]:
    """Return the first keys of blocks in each order in which they ascend."""
    by_order = [FirstKeys([key.translate(order) for key in keys], order) for order in _ORDERS]
    return [in_order for in_order in by_order if all(earlier <= later for earlier, later in pairwise(in_order.keys))]


def of_two_positions(keys: Sequence[bytes]) -> list[bytes]:
    """Return the keys whose position differs between the orders."""
    return [key for key in keys if key.translate(_BY_UTF_16) != key]


def _least_greater(prefix: bytes) -> bytes | None:
    """Return the least key that is greater than all keys with a prefix; None if there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
