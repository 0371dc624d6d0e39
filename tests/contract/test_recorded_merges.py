"""Merge-on-read tables of Apache Hudi, and all of version 8, read as it read them itself when it made them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded.recorded_merges import NAMES, check_recorded


@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_apache_hudi_reads_as_it_read_it(name: str, tmp_path: Path) -> None:
    """With its logs merged, and without them."""
    check_recorded(tmp_path, name)
    check_recorded(tmp_path, name, "read_optimized")


def test_there_is_a_table_of_each_kind() -> None:
    """Or one that was lost would be missed by no test."""
    assert len(NAMES) == 29
