"""What changed between two instants, held against the rows of both moments."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.operations.inspect.difference import CHANGED_FILES, CHANGED_ROWS, Difference
from pyhudi.operations.service_settings import ArchiveSettings, CompactionSettings
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.operations.services.means import Means
from pyhudi.storage import open_storage
from pyhudi.table.files.output import Output
from pyhudi.timeline.writers.patience import Patience
from support.drive import write
from support.made.compacting import rows
from support.readers import read_without_spark
from support.recorded.recorded_past import AS_OF
from support.recorded.recorded_version_6 import unpack, writes
from support.upkeep.meetings import COW, MOR, QUIET

BEFORE = (("k1", "a", 1, 1), ("k2", "a", 1, 1), ("k3", "b", 1, 1), ("k4", "c", 1, 1))


def rows_between(path: Path, earlier: str, later: str) -> list[tuple[str, str, str]]:
    """Return partition, change and key of each changed row, in order."""
    difference = Difference.between(open_storage(str(path)), earlier, later)
    found = pa.concat_tables([CHANGED_ROWS.schema.empty_table(), *difference.rows()])
    return sorted(zip(*(found.column(name).to_pylist() for name in CHANGED_ROWS.schema.names), strict=True))


@pytest.mark.parametrize("table", [COW, MOR], ids=["cow", "mor"])
def test_rows_are_inserted_updated_and_deleted_by_key(tmp_path: Path, table) -> None:
    path = tmp_path / "t"
    first = write(path, rows(*BEFORE), table=table, settings=QUIET).instant
    write(path, rows(("k1", "a", 2, 2), ("k5", "a", 1, 1)), settings=QUIET)
    last = write(path, rows(("k3", "b", 2, 2)), operation="delete", settings=QUIET).instant

    assert rows_between(path, first, last) == [
        ("a", "inserted", "k5"),
        ("a", "updated", "k1"),
        ("b", "deleted", "k3"),
    ]
    difference = Difference.between(open_storage(str(path)), first, last)
    assert difference.writes == 2
    assert difference.files().schema.equals(CHANGED_FILES.schema)
    assert sorted(set(difference.files()["partition"].to_pylist())) == ["a", "b"]
    assert rows_between(path, last, last) == []


def test_a_compaction_changes_files_and_no_row(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, rows(*BEFORE), table=MOR, settings=QUIET)
    first = write(path, rows(("k1", "a", 2, 2)), settings=QUIET).instant
    last = compact(open_storage(str(path)), CompactionSettings(), Means(Patience(), Output())).instant

    difference = Difference.between(open_storage(str(path)), first, last)

    assert (difference.writes, difference.updates) == (0, 0)
    (changed,) = difference.files().to_pylist()
    assert (changed["partition"], changed["change"], len(changed["files_added"])) == ("a", "changed", 1)
    assert rows_between(path, first, last) == []


def test_appends_to_log_files_of_version_6_change_rows(tmp_path: Path) -> None:
    """By their names, these log files show from the time of their base file on."""
    path = unpack(tmp_path) / "mor_bucket"
    identity = ["_hoodie_partition_path", "_hoodie_record_key", "_hoodie_commit_seqno"]

    for earlier, later in pairwise(writes(path)):
        before, after = (
            {tuple(row.values()) for row in read_without_spark(path, {AS_OF: time}).select(identity).to_pylist()}
            for time in (earlier, later)
        )
        changed = {(partition, key) for partition, key, _ in before ^ after}
        assert changed
        assert {(partition, key) for partition, _, key in rows_between(path, earlier, later)} == changed
        assert Difference.between(open_storage(str(path)), earlier, later).files().num_rows


def test_archived_writes_count_and_those_without_a_content_count_apart(tmp_path: Path) -> None:
    path = tmp_path / "t"
    times = [write(path, rows(("k1", "a", n, n)), table=COW, settings=QUIET).instant for n in range(5)]
    storage = open_storage(str(path))
    assert archive(storage, ArchiveSettings().keeping(2)).instants == 3

    difference = Difference.between(storage, times[0], times[4])
    assert (difference.writes, difference.updates, difference.silent) == (4, 4, 0)
    assert rows_between(path, times[0], times[4]) == [("a", "updated", "k1")]

    (file,) = (path / ".hoodie").rglob("history/*.parquet")
    archived = pq.read_table(file)
    position = archived.schema.get_field_index("metadata")
    bodies = pc.if_else(pc.equal(archived["instantTime"], times[2]), None, archived["metadata"])
    pq.write_table(archived.set_column(position, archived.schema.field(position), bodies), file)
    difference = Difference.between(storage, times[0], times[4])
    assert (difference.writes, difference.updates, difference.silent) == (3, 3, 1)


def test_an_overwrite_replaces_file_groups(tmp_path: Path) -> None:
    path = tmp_path / "t"
    first = write(path, rows(*BEFORE), table=COW, settings=QUIET).instant
    last = write(path, rows(("k9", "a", 1, 1)), operation="insert_overwrite", settings=QUIET).instant

    found = Difference.between(open_storage(str(path)), first, last)

    assert sorted(found.files()["change"].to_pylist()) == ["added", "removed"]
    assert rows_between(path, first, last) == [
        ("a", "deleted", "k1"),
        ("a", "deleted", "k2"),
        ("a", "inserted", "k9"),
    ]


def test_the_earlier_time_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "t"
    times = [write(path, rows(("k1", "a", n, n)), table=COW, settings=QUIET).instant for n in range(2)]

    with pytest.raises(InvalidOptionError, match="which is earlier"):
        Difference.between(open_storage(str(path)), times[1], times[0])
