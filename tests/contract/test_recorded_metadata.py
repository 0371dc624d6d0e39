"""Metadata tables of four releases of Apache Hudi: what a reader finds in them is what Apache Hudi shows of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import CorruptFileError, InvalidOptionError, TableConfigError
from pyhudi.operations.inspect.metadata_rows import metadata_rows
from pyhudi.storage import open_storage
from pyhudi.table.files.file_group import DataFile
from pyhudi.table.metadata.metadata_table import MetadataTable
from pyhudi.table.seen_table import SeenTable
from pyhudi.table.table import open_table
from pyhudi.timeline.timeline import Timeline
from support.recorded.recorded_metadata import MADE, UNANSWERED, answers_of, unpack

Record = Mapping[str, Any]
NAMES = [made.name for made in MADE]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("metadata"))


def seen(path: Path) -> SeenTable:
    return SeenTable.now(open_table(open_storage(str(path))))


def metadata_of(path: Path) -> MetadataTable:
    table = seen(path)
    found = MetadataTable.of(table.table, table.timeline)
    assert found is not None
    return found


def by_key(parts: Iterable[pa.StructArray]) -> dict[str, Record]:
    """Return records as Apache Hudi shows them; each key has one."""
    rows = [row for part in parts for row in part.to_pylist()]
    found = {row["key"]: shown(row) for row in rows}
    assert len(found) == len(rows)
    return found


def answered(table: Path, partition: str) -> dict[str, Record]:
    rows = pq.read_table(answers_of(table, partition)).to_pylist()
    return {row["key"]: shown(row) for row in rows if not is_deleted(row)}


def is_deleted(row: Record) -> bool:
    """Return whether a record says that its file was deleted, of which Apache Hudi shows some."""
    return any(isinstance(value, dict) and value.get("isDeleted") is True for value in row.values())


def shown(row: Record) -> Record:
    """Return a record with the value alone of each bound, without deleted files and what is null."""
    return {name: value for name in row if (value := _plain(name, row[name])) is not None}


def _plain(name: str, value: Any) -> Any:
    if name == "filesystemMetadata" and value is not None:
        return {file: info["size"] for file, info in value if not info["isDeleted"]}
    if name in ("minValue", "maxValue") and value is not None:
        (bound, *_) = [*(bound for bound in value.values() if bound is not None), None]
        bound = bound["value"] if isinstance(bound, dict) else bound
        # 0.15 shows the bytes of a decimal.
        return unscaled(bound) if isinstance(bound, Decimal) else bound
    if isinstance(value, dict):
        return {inner: found for inner in value if (found := _plain(inner, value[inner])) is not None}
    return bytes(value) if isinstance(value, bytearray) else value


def unscaled(number: Decimal) -> bytes:
    digits = int(number.scaleb(15))
    return digits.to_bytes(digits.bit_length() // 8 + 1, "big", signed=True)


@pytest.mark.parametrize("name", NAMES)
def test_each_record_is_what_apache_hudi_shows(tables: Path, name: str) -> None:
    """Of every partition: after compactions, rollbacks and archiving, and beside a write that is pending."""
    metadata_table = metadata_of(tables / name)

    assert metadata_table.lacks() == ()
    assert "files" in metadata_table.names
    for partition in metadata_table.names:
        records = by_key(metadata_table.partition(partition).records())
        assert records
        if (name, partition) not in UNANSWERED:
            assert records == answered(tables / name, partition), partition


@pytest.mark.parametrize("name", NAMES)
def test_a_look_up_finds_what_a_scan_finds(tables: Path, name: str) -> None:
    """Each key by itself in the file group that its hash names, some at once, and the first half of each key."""
    found = metadata_of(tables / name)
    for partition in map(found.partition, found.names):
        every = by_key(partition.records())
        keys = pa.array([*list(every)[::2], "absent", ""], pa.string())
        prefixes = sorted({key[: len(key) // 2] for key in every})[:3]

        assert by_key(partition.find(keys)) == {key: every[key] for key in list(every)[::2]}, partition.name
        for key in list(every)[::20]:
            assert by_key(partition.find(pa.array([key]))) == {key: every[key]}, partition.name
        expected = {key: record for key, record in every.items() if key.startswith(tuple(prefixes))}
        assert by_key(partition.with_prefixes(prefixes)) == expected, partition.name


@pytest.mark.parametrize("name", NAMES)
def test_files_are_those_that_a_listing_shows(tables: Path, name: str) -> None:
    """With their sizes; a file that a failed write left is in neither."""
    table = seen(tables / name)
    records_by_key = by_key(metadata_of(tables / name).partition("files").records())
    listed = {
        path: {Path(file.path).name: file.size for file in files_in(table, path)} for path in table.view.partitions()
    }
    live = {key: record["filesystemMetadata"] for key, record in records_by_key.items() if key != "__all_partitions__"}

    for path, files in listed.items():
        assert files.items() <= live.get(path, {}).items(), path
    assert set(listed) >= {path for path, files in live.items() if files}


def files_in(table: SeenTable, path: str) -> Iterable[DataFile]:
    """Yield the files of a partition whose writers all completed; in version 6 a listing has others, too."""
    slices = [file_slice for group in table.view.groups(path).values() for file_slice in group.slices]
    for file in (file for file_slice in slices for file in file_slice.data_files):
        if all(map(table.timeline.is_committed, table.table.format.makers([file], table.timeline, opens=True))):
            yield file


def copied(tables: Path, name: str, folder: Path) -> Path:
    return Path(shutil.copytree(tables / name, folder / name))


def test_a_write_that_completes_after_the_listing_does_not_count(tables: Path) -> None:
    """Neither one that the listing shows as pending, nor one that began since."""
    table = seen(tables / "live_9_by_1_2")
    newest = table.timeline.writes[-1]
    pending = SeenTable(table.table, table.timeline.without({newest.requested_time}))
    instants = tuple(one for one in table.timeline.instants if one.requested_time < newest.requested_time)
    before = SeenTable(table.table, Timeline(instants, table.timeline.files))

    for earlier in (pending, before):
        found = MetadataTable.of(earlier.table, earlier.timeline)
        assert found is not None
        files = by_key(found.partition("files").records())
        names = [file for record in files.values() for file in record["filesystemMetadata"]]
        assert names
        assert not [file for file in names if newest.requested_time in file]


@pytest.mark.parametrize("name", ["live_9_by_1_2", "live_6_by_0_15"])
def test_a_write_that_the_metadata_table_lacks_has_a_name(tables: Path, tmp_path: Path, name: str) -> None:
    table = copied(tables, name, tmp_path)
    newest = seen(table).timeline.writes[-1].requested_time
    for file in (table / ".hoodie" / "metadata" / ".hoodie").rglob(f"{newest}*deltacommit*"):
        file.unlink()

    assert metadata_of(table).lacks() == (newest,)


def test_the_partitions_and_their_records_are_shown(tables: Path) -> None:
    """As `HudiTable.metadata` and the command show them; of a table without a metadata table there is no row."""
    table = tables / "spared_9_by_1_2"
    storage = open_storage(str(table))
    every = metadata_rows(storage).to_pylist()

    names = sorted(metadata_of(table).names)
    assert [row["partition"] for row in every] == names
    for row in every:
        folder = table / ".hoodie" / "metadata" / row["partition"]
        assert 0 < row["bytes"] <= sum(file.stat().st_size for file in folder.iterdir())
        assert (row["lacks"], row["file_groups"] <= row["files"]) == (0, True)
    shown_files = metadata_rows(storage, "files").to_pylist()
    assert {row["key"]: shown(row) for row in shown_files} == answered(table, "files")
    assert metadata_rows(storage, "record_index", 1).column_names == ["key", "type", "recordIndexMetadata"]
    assert metadata_rows(storage, "record_index", 1).num_rows == 1
    with pytest.raises(InvalidOptionError, match="It has bloom_filters"):
        metadata_rows(storage, "nothing")


def test_a_damaged_file_of_the_metadata_table_is_named(tables: Path, tmp_path: Path) -> None:
    """With the call that does without the metadata table."""
    table = copied(tables, "spared_9_by_1_2", tmp_path)
    (base, *_) = sorted((table / ".hoodie" / "metadata" / "files").glob("*.hfile"), reverse=True)
    data = bytearray(base.read_bytes())
    data[60] ^= 1
    base.write_bytes(data)

    with pytest.raises(CorruptFileError, match=r"drop_index") as error:
        by_key(metadata_of(table).partition("files").records())
    assert base.name in error.value.what


def test_properties_that_name_a_metadata_table_that_is_gone_are_named(tables: Path, tmp_path: Path) -> None:
    table = copied(tables, "spared_9_by_1_2", tmp_path)
    shutil.rmtree(table / ".hoodie" / "metadata")

    with pytest.raises(TableConfigError, match=r"\.hoodie/metadata/\.hoodie/hoodie\.properties"):
        metadata_of(table)
