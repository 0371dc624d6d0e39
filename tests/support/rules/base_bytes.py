"""What is in the bytes of base files, read once for all copies of a table that tests look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
# Larger files are few, and would be kept in memory.
SMALL = 1 << 17


@dataclass(frozen=True)
class BaseBytes:
    """A base file.

    Attributes:
        footer: The metadata of its footer.
        rows: Its meta columns, by name.
    """

    footer: Mapping[bytes, bytes]
    rows: Mapping[str, list[str]]


def base_bytes(file: Path) -> BaseBytes:
    """Return what is in a base file."""
    data = file.read_bytes()
    return _known(data) if len(data) < SMALL else _read(data)


def _read(data: bytes) -> BaseBytes:
    with pq.ParquetFile(pa.BufferReader(data)) as parquet:
        return BaseBytes(parquet.metadata.metadata, parquet.read(columns=[*COLUMNS]).to_pydict())


_known = lru_cache(maxsize=1024)(_read)
