"""How many buckets suit a table, a number that is fixed when the table is made."""

from __future__ import annotations

import math

from ..errors import InvalidOptionError

MIB = 1 << 20
GIB = 1 << 30

AIMED_BYTES = 512 * MIB
LARGEST_BYTES = 3 * GIB
MANY_FILE_GROUPS = 10_000


def suggest_buckets(total_bytes: int, *, partitions: int = 1, growth: float = 1.0) -> int:
    """Return how many buckets each partition of a table should have.

    A write rewrites the base file of every bucket that it touches, as a whole, so that small buckets make cheap writes:
    the aim is 512 MiB of Parquet a bucket, some seconds of one core. But every bucket of every partition is a file to
    list, to open and to plan for. A table that would have over 10,000 of them gets larger buckets, up to 3 GiB; what
    is above that costs more memory and time per task than the fewer files save.

    A table of unknown size has 8 buckets a partition, which suits partitions of up to 4 GiB and bears 24 GiB.

    Args:
        total_bytes: Bytes of the table's rows as Parquet files, over all partitions.
        partitions: How many partitions share them; they count as equal, so give less if a few hold most of the rows.
        growth: How many times as large the table will become.

    Returns:
        At least 1.

    Raises:
        InvalidOptionError: An argument makes no sense.
    """
    if total_bytes < 0 or partitions < 1 or not 0 < growth < math.inf:
        raise InvalidOptionError(
            f"Buckets were asked for {total_bytes} bytes in {partitions} partitions that grow {growth} times.",
            "Give a size of at least 0, at least 1 partition, and a positive growth.",
        )
    one_partition = total_bytes * growth / partitions
    aimed = math.ceil(one_partition / AIMED_BYTES)
    least = math.ceil(one_partition / LARGEST_BYTES)
    return max(1, least, min(aimed, MANY_FILE_GROUPS // partitions))
