"""Metadata tables by Apache Hudi, and what it shows of each partition of theirs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

ARCHIVE = Path(__file__).parents[2] / "fixtures" / "metadata" / "tables.tar.xz"
_NAMED = "hoodie.table.metadata.partitions="


@dataclass(frozen=True)
class Made:
    """One table: which release made it, of which version, and what its name says happened to it."""

    name: str
    release: str
    version: int
    type: str = "MERGE_ON_READ"
    by_partition: bool = False


MADE = (
    Made("live_6_by_0_15", "0.15.0", 6),
    Made("spared_6_by_0_15", "0.15.0", 6, "COPY_ON_WRITE"),
    Made("live_8_by_1_0", "1.0.2", 8),
    Made("live_9_by_1_1", "1.1.1", 9),
    Made("live_6_by_1_2", "1.2.0", 6, "COPY_ON_WRITE"),
    Made("spared_8_by_1_2", "1.2.0", 8),
    Made("live_9_by_1_2", "1.2.0", 9),
    Made("live_9_by_1_2_partitioned", "1.2.0", 9, by_partition=True),
    Made("live_9_by_1_2_of_base_files", "1.2.0", 9, "COPY_ON_WRITE"),
    Made("spared_9_by_1_2", "1.2.0", 9, "COPY_ON_WRITE"),
)

# What neither the release that made it nor 1.2 shows: both fail while they read it.
UNANSWERED = frozenset({("live_8_by_1_0", "partition_stats")})


def partitions_of(table: Path) -> list[str]:
    """Return the partitions of a metadata table that readers use."""
    text = (table / ".hoodie" / "hoodie.properties").read_text(encoding="utf-8")
    found = next(line for line in text.splitlines() if line.startswith(_NAMED))
    return sorted(found.removeprefix(_NAMED).replace("\\", "").split(","))


def answers_of(table: Path, partition: str) -> Path:
    """Return where the answer of one partition is."""
    return table / f"answer_{partition}.parquet"


def wide(shown: pa.Table) -> pa.Table:
    """Return an answer without meta columns."""
    return shown.select([name for name in shown.column_names if not name.startswith("_hoodie")])


def unpack(folder: Path) -> Path:
    """Unpack all tables below a folder."""
    shutil.unpack_archive(ARCHIVE, folder)
    return folder
