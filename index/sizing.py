"""How many buckets suit a new table; a rescale gives it another number later."""

from __future__ import annotations

import math

from ..errors import InvalidOptionError
from ..table.config.property_keys import COPY_ON_WRITE, MERGE_ON_READ

MIB = 1 << 20
GIB = 1 << 30

LARGEST_BYTES = 3 * GIB
AIMED_BYTES = {COPY_ON_WRITE: 512 * MIB, MERGE_ON_READ: LARGEST_BYTES}
MANY_FILE_GROUPS = 10_000


def suggest_buckets(
    total_bytes: int, *, partitions: int = 1, growth: float = 1.0, table_type: str = COPY_ON_WRITE
) -> int:
    """Return how many buckets each partition of a table should have, at least 1; raises `InvalidOptionError`.

    A write rewrites every bucket that it touches, so small buckets make cheap writes, but each bucket of each partition
    is a file to list, open and plan for. A merge-on-read write rewrites nothing, so only files count. A table of
    unknown size gets 8 buckets. ``growth`` is how many times ``total_bytes`` the table will have one day.
    """
    if total_bytes < 0 or partitions < 1 or not 0 < growth < math.inf:
        raise InvalidOptionError(
            f"No number of buckets suits {total_bytes} bytes in {partitions} partitions that grow {growth} times.",
            "Give a size of at least 0, at least 1 partition, and a positive growth.",
        )
    if table_type not in AIMED_BYTES:
        raise InvalidOptionError(
            f"No number of buckets suits a table of the type {table_type}.", f"Give one of {', '.join(AIMED_BYTES)}."
        )
    one_partition = _bytes_of_a_partition(total_bytes, growth, partitions)
    aimed = math.ceil(one_partition / AIMED_BYTES[table_type])
    least = math.ceil(one_partition / LARGEST_BYTES)
    return max(1, least, min(aimed, MANY_FILE_GROUPS // partitions))


def _bytes_of_a_partition(total_bytes: int, growth: float, partitions: int) -> float:
    """Return how large a partition will be; raises `InvalidOptionError` if that is more than any store holds."""
    try:
        grown_bytes = total_bytes * growth / partitions
    except OverflowError:
        grown_bytes = math.inf
    if grown_bytes == math.inf:
        raise InvalidOptionError(
            f"The total_bytes and growth={growth} of a call for suggest_buckets make a table that no store holds.",
            "Give the size of the table in bytes, and how many times as large it will be.",
        )
    return grown_bytes
