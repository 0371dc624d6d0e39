"""The simulated metadata tables of other tests and of benchmarks say what Apache Hudi's own says of the same table."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyhudi.storage import open_storage
from pyhudi.table.metadata.metadata_table import MetadataTable
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from support.made.metadata_tables import How, files_of, keys_of, simulate
from support.recorded.recorded_metadata import unpack

NAME = "spared_9_by_1_2"
# What no reader goes by: sizes of columns, and when a key came, which the simulation takes from its newest file.
LEFT_OUT = {"ColumnStatsMetadata": ("totalSize", "totalUncompressedSize"), "recordIndexMetadata": ("instantTime",)}


def said(path: Path) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the records by partition and key."""
    seen = SeenTable.now(open_table(open_storage(str(path))))
    metadata_table = MetadataTable.of(seen.table, seen.timeline)
    assert metadata_table is not None
    assert metadata_table.lacks() == ()
    return {
        name: {row["key"]: plain(row) for part in metadata_table.partition(name).records() for row in part.to_pylist()}
        for name in metadata_table.names
    }


def plain(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**row, **{name: row[name] and {**row[name], **dict.fromkeys(out)} for name, out in LEFT_OUT.items()}}


@pytest.mark.parametrize("logged", [0, 2])
def test_records_are_those_of_apache_hudi(tmp_path: Path, logged: int) -> None:
    table = unpack(tmp_path) / NAME
    theirs = said(table)
    shutil.rmtree(table / ".hoodie" / "metadata")
    files = files_of(str(table))
    writes = [write.requested_time for write in open_table(open_storage(str(table))).timeline().writes]
    how = How(logged=writes[len(writes) - logged :])

    simulate(str(table), files, keys=keys_of(str(table), files), how=how)

    ours = said(table)
    assert [*ours] == ["column_stats", "files", "partition_stats", "record_index"]
    for name in ours:
        assert ours[name] == theirs[name], name
