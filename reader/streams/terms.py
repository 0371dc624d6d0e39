"""What a stream reads of a table, as options say it."""

from __future__ import annotations

from dataclasses import dataclass

from ..query import DEFAULT_SEARCH, EARLIEST, FileSearch

START = "hoodie.datasource.streaming.startOffset"


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What a batch of more than one commit may have at most; None for no limit."""

    commits: int | None = None
    bytes: int | None = None


NO_LIMITS = BatchLimits()


@dataclass(frozen=True, slots=True)
class StreamTerms:
    """What a stream reads of a table.

    Attributes:
        start: ``earliest``, ``latest`` or a completion time, after which the first batch begins.
        path_glob: As in `Changes`.
        full_scan: As in `Changes`.
        file_search: How each batch finds its files.
    """

    start: str = EARLIEST
    limits: BatchLimits = NO_LIMITS
    path_glob: str = ""
    full_scan: bool = False
    file_search: FileSearch = DEFAULT_SEARCH
