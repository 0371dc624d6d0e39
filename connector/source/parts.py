"""A part of a snapshot, which a DataFrame of its own shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...reader.buckets.bucket_groups import BucketChoice
from ...table.files.file_group import FileSlice


@dataclass(frozen=True, slots=True)
class Part:
    """Some buckets of a snapshot.

    Attributes:
        slices: Their file slices, as far as the query shows them.
        buckets: The buckets, for a reader that lists the slices itself.
        most: The size in bytes that Spark may estimate for the slices that it reads, and for those that Python reads.
    """

    slices: Sequence[FileSlice]
    buckets: BucketChoice
    most: int | None = None
