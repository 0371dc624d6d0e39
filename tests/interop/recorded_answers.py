"""Puts the writes whose outcome is recorded to Apache Hudi."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from interop.apache_hudi import ApacheHudi, ApacheHudiError
from support.recorded import commit_statistics, duplicates, ordering_pairs
from support.recorded.recorded_writes import DUPLICATES, OPTIONS, STATISTICS

_WORDS = re.compile(r"HoodieDuplicateKeyException|Dropping duplicates with bulk_insert|\bkey is: m\b")


def left_by_apache(apache: ApacheHudi, table: Path, case: duplicates.Case) -> list[str] | str:
    """Have Apache Hudi write to a table of `duplicates.HELD`; return the rows that are left, or what it says.

    Raises:
        ApacheHudiError: With words that nobody expects.
    """
    before = duplicates.left(table)
    try:
        apache.write(table, case.rows, {**OPTIONS[DUPLICATES], **case.asked})
    except ApacheHudiError as error:
        said = dict.fromkeys(_WORDS.findall(str(error)))
        if not said:
            raise
        assert duplicates.left(table) == before
        return ", ".join(said)
    return duplicates.left(table)


def told_by_apache(apache: ApacheHudi, table: Path, case: commit_statistics.Case) -> dict[str, Any]:
    """Have Apache Hudi write to a table of `commit_statistics.FIRST`, and return what its commit says."""
    apache.write(table, case.rows, {**OPTIONS[STATISTICS], **case.asked})
    return commit_statistics.told(table)


def merged_by_apache(apache: ApacheHudi, table: Path, name: str) -> list[list[Any]]:
    """Have Apache Hudi write every pair of ordering values of a kind, and return each key's row."""
    for rows in ordering_pairs.writes(*ordering_pairs.VALUES[name]):
        apache.write(table, rows, ordering_pairs.OPTIONS)
    read = apache.read(table).select(["id", "n"])
    return sorted([row["id"], row["n"]] for row in read.to_pylist())
