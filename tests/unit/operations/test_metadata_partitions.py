"""What is said of a metadata table: each partition with its state, its size and its last compaction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.connector.jobs import command
from pyhudi.operations.following.follower import FileChanges
from pyhudi.operations.following.kept_metadata import KeptMetadataTable
from pyhudi.operations.inspect.detail import detail
from pyhudi.operations.inspect.metadata_rows import metadata_rows
from pyhudi.operations.report.gather import ReportTerms, gather
from pyhudi.operations.report.page import make_page
from pyhudi.operations.service_settings import Upkeep
from pyhudi.operations.state.table_state import table_state
from pyhudi.storage import open_storage
from pyhudi.table.config import update_config
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.writers.patience import Patience
from support.by_options import write_without_spark
from support.made.metadata_tables import How, simulate

OPTIONS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "p": [f"p{one % 2}" for one in ids], "v": ids})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with a list of files that one write changed since, and with bounds that are being built."""
    path = tmp_path / "t"
    write_without_spark(path, rows(*range(8)), OPTIONS)
    simulate(str(path), how=How(only=["files"]))
    write_without_spark(path, rows(1), OPTIONS)
    update_config(open_storage(str(path)), {"hoodie.table.metadata.partitions.inflight": "column_stats"})
    return path


def size_of(path: Path, partition: str, pattern: str = "*") -> int:
    files = (path / ".hoodie/metadata" / partition).glob(pattern)
    return sum(file.stat().st_size for file in files if file.name != ".hoodie_partition_metadata")


def test_each_partition_is_described_alike_wherever_it_is_shown(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = open_storage(str(table))
    [row] = detail(storage).to_pylist()
    building, files = sorted(row["metadata"], key=lambda size: str(size["partition"]))

    assert (building["partition"], building["state"], building["compacted"]) == ("column_stats", "being built", None)
    assert (files["partition"], files["state"], files["file_groups"]) == ("files", "in use", 1)
    assert (files["files"], files["log_files"]) == (3, 2), "the base file, and the logs of the beginning and the write"
    assert files["bytes"] == size_of(table, "files")
    assert files["log_bytes"] == size_of(table, "files", ".files*")

    told = {one["partition"]: one for one in metadata_rows(storage).to_pylist()}
    assert told["files"]["records"] == 3, "two partitions, and the list of them"
    assert {name: {key: one[key] for key in files} for name, one in told.items()} == {
        "files": files,
        "column_stats": building,
    }
    state = table_state(storage, Upkeep(), Patience())
    assert state.metadata is not None
    assert [size.partition for size in state.metadata] == ["column_stats", "files"]

    assert command(["show", str(table)]) == 0
    assert "column_stats being built: " in capsys.readouterr().out
    assert command(["show", str(table), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"][1] == files

    page = make_page(gather(storage, ReportTerms(Upkeep(), Patience(), 1 << 20)), str)
    assert "<h2>Metadata table</h2>" in page
    assert '<td>files</td><td>in use</td><td class="n">1</td>' in page


def test_a_damaged_metadata_table_leaves_the_rest_of_a_description(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (table / ".hoodie/metadata/.hoodie/hoodie.properties").unlink()
    storage = open_storage(str(table))

    [row] = detail(storage).to_pylist()
    report: Any = gather(storage, ReportTerms(Upkeep(), Patience(), 1 << 20))

    assert (row["metadata"], row["partitions"]) == (None, 2)
    assert report.metadata == ()
    assert any("the metadata table" in text for text in report.problems)
    assert command(["show", str(table)]) == 0
    assert "damaged, as validate says" in capsys.readouterr().out


def test_a_write_says_what_it_wrote_to_the_metadata_table(table: Path) -> None:
    result = write_without_spark(table, rows(2, 3), OPTIONS)

    assert result.metadata is not None
    assert "files" in result.metadata.partitions
    assert result.metadata.bytes == size_of(table, "files", f"*{result.instant}*") + size_of(
        table, "column_stats", f"*{result.instant}*"
    )
    assert f" {result.metadata}" in str(result)


def test_a_write_tells_of_partitions_that_went_out_of_use_meanwhile(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen = SeenTable.now(open_table(open_storage(str(table))))
    update_config(
        seen.storage, {"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": ""}
    )

    with caplog.at_level("INFO", "pyhudi"):
        prepared = KeptMetadataTable().prepare(
            seen, Instant("20300101000000000", "commit", State.INFLIGHT), FileChanges()
        )

    assert prepared.report is None
    assert "column_stats, files of its metadata table went out of use" in caplog.text
    assert "the last write is by pyhudi" in caplog.text
