"""Three tables for tests of reports: a healthy one, a worn one, and a damaged one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from support.drive import write
from support.made.compacting import rows, run
from support.upkeep.meetings import COW, MOR, QUIET, Scene


def healthy(path: Path) -> None:
    """Three partitions of a few buckets; an overwrite replaced the file groups of the last one."""
    table = replace(COW, bucket_count=3)
    write(path, rows(*((f"k{n}", "abc"[n % 3], 1, n) for n in range(40))), table=table, settings=QUIET)
    write(path, rows(*((f"k{n}", "abc"[n % 3], 2, n) for n in range(9))), settings=QUIET)
    write(path, rows(*((f"n{n}", "c", 3, n) for n in range(7))), settings=QUIET, operation="insert_overwrite")


def worn(path: Path) -> None:
    """Log files since a compaction, a dead writer with its files, a foreign write at work, a partition of most rows."""
    table = replace(MOR, bucket_count=4)
    for ts in range(3):
        skewed = [(f"k{n}", "big" if n % 10 else f"p{n:03}", ts, n) for n in range(60)]
        write(path, rows(*skewed), table=table, settings=QUIET)
        if ts == 1:
            run(path)
    write(path, rows(*((f"k{n}", "big", 9, n) for n in range(1, 6))), settings=QUIET)
    scene = Scene(path, ())
    scene.dead(("k1", "big", 10, 1), ("k2", "big", 10, 2))
    scene.pending("deltacommit", inflight=True)


def damaged(path: Path) -> None:
    """A base file is cut short, and the body of a write is noise."""
    table = replace(COW, bucket_count=2)
    for ts in range(3):
        write(path, rows(*((f"k{n}", "ab"[n % 2], ts, n) for n in range(20))), table=table, settings=QUIET)
    base = max((path / "a").glob("*.parquet"), key=lambda file: file.stem.rpartition("_")[2])
    base.write_bytes(base.read_bytes()[:-200])
    body = sorted((path / ".hoodie/timeline").glob("*_*.commit"))[1]
    body.write_bytes(b"noise" * 9)


TABLES: Mapping[str, Callable[[Path], None]] = {"healthy": healthy, "worn": worn, "damaged": damaged}
