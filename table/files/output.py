"""How a write's base files look, and the Parquet in its log files, with the memory that making them may take."""

from __future__ import annotations

from dataclasses import dataclass, field

from .bloom_filter import BloomSettings

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Output:
    """How files are written.

    ``bloom_filter`` says whether base files get a filter; None where the index decides. ``row_group_bytes`` and
    ``memory``, which one task may hold, are Arrow bytes.
    """

    compression: str = "zstd"
    row_group_bytes: int = 120 * MIB
    bloom: BloomSettings = field(default_factory=BloomSettings)
    bloom_filter: bool | None = None
    memory: int = GIB
