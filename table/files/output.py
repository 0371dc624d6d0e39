"""How a write's base files look, and the Parquet in its log files, with the memory that making them may take."""

from __future__ import annotations

from dataclasses import dataclass, field

from .bloom_filter import BloomSettings

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Output:
    """How files are written.

    Attributes:
        row_group_bytes: Arrow bytes that are gathered before a row group is written.
        bloom_filter: Whether base files get a filter as `bloom` describes it; None where the table's index decides.
        memory: Arrow bytes of rows that one task may hold.
    """

    compression: str = "zstd"
    row_group_bytes: int = 120 * MIB
    bloom: BloomSettings = field(default_factory=BloomSettings)
    bloom_filter: bool | None = None
    memory: int = GIB
