"""Writes to merge-on-read tables: what they leave on the timeline and in the file groups."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from support.attempts import rows
from support.drive import KEYED, rows_of, write
from support.places import files_below

MERGED = replace(KEYED, table_type="MERGE_ON_READ")


def test_the_first_write_makes_base_files_in_a_delta_commit(tmp_path: Path) -> None:
    result = write(tmp_path, [rows(1, 2, 3, value=1)], table=MERGED)

    states = {name.rpartition("/")[2] for name in files_below(tmp_path) if "/timeline/" in name}
    assert {f"{result.instant}.deltacommit.requested", f"{result.instant}.deltacommit.inflight"} <= states
    assert [name for name in states if name.startswith(f"{result.instant}_") and name.endswith(".deltacommit")]
    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 1), ("k3", 1)]
    assert (result.inserts, result.files) == (3, 2)
