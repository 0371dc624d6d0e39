"""``hoodie.properties`` while Apache Hudi changes it: backup, deletion, the new file bit by bit, the backup gone."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyhudi.errors import TableConfigError
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.memory import MemoryStorage
from pyhudi.table.config import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    TableConfig,
    create_config,
    load_config,
    recover_config,
    update_config,
)
from pyhudi.table.config.table_settings import TableSettings
from support.drawn.histories import TABLE, part, row
from support.drive import read, write
from support.seams import patch_seam

# What every table must have stands first, so that the rest may be cut off without anybody missing it.
FIRST = ("hoodie.table.name", "hoodie.table.type", "hoodie.table.version", "hoodie.timeline.layout.version")
MADE = TableConfig.new(
    TableSettings(name="t", record_key_fields=("id",), partition_fields=("p",), index_type="BUCKET")
).properties
OLD = TableConfig({key: MADE[key] for key in [*FIRST, *MADE]})
NEW = TableConfig({**OLD.properties, "hoodie.table.metadata.partitions": "files", "hoodie.a": "1"})
LESS = TableConfig({key: value for key, value in NEW.properties.items() if "metadata" not in key})
ROWS = part(row("a", ts=1, value=1))

Moment = tuple[bytes | None, bytes | None]


@pytest.fixture
def storage() -> Iterator[MemoryStorage]:
    opened = MemoryStorage.open(f"memory://{uuid.uuid4()}/t")
    yield opened
    opened.delete_folder("")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "patience with torn properties", 0)
    patch_seam(monkeypatch, "patience with torn properties without a backup", 0)
    patch_seam(monkeypatch, "pause between two reads of properties", 0)


def moments(old: bytes, new: bytes, every: int = 1) -> Iterator[Moment]:
    """Yield what is in the two files at each moment of a change by Apache Hudi: the file's and the backup's bytes."""
    for size in range(0, len(old), every):
        yield old, old[:size]
    yield old, old
    yield None, old
    for size in range(0, len(new), every):
        yield new[:size], old
    yield new, old
    yield new, None


def put(storage: MemoryStorage, moment: Moment) -> None:
    for path, data in zip((PROPERTIES_PATH, BACKUP_PATH), moment, strict=True):
        if data is None:
            storage.delete(path)
        else:
            storage.write(path, data)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("before", "after"), [(OLD, NEW), (NEW, LESS)], ids=["more", "less"])
def test_what_is_read_is_what_was_there_or_what_will_be(
    storage: MemoryStorage, before: TableConfig, after: TableConfig
) -> None:
    """Or what there is of the new, where that is all that was there and more: it is cut off before a new key."""
    for moment in moments(before.encode(), after.encode()):
        put(storage, moment)
        properties = load_config(storage).properties

        assert properties.keys() >= before.properties.keys() & after.properties.keys()
        assert {*properties.items()} <= {*before.properties.items(), *after.properties.items()}
        if moment[1] is None:
            assert properties == after.properties


@pytest.mark.usefixtures("impatient")
def test_a_change_of_ours_finds_a_file_in_any_state(storage: MemoryStorage) -> None:
    """The other writer is dead: its change is taken back or kept, and ours is there."""
    for moment in moments(OLD.encode(), NEW.encode(), every=7):
        put(storage, moment)

        assert not create_config(storage, NEW)
        update_config(storage, {"hoodie.b": "2"})
        properties = load_config(storage).properties

        assert properties["hoodie.b"] == "2"
        assert properties.keys() >= OLD.properties.keys()
        assert not storage.exists(BACKUP_PATH)
        assert TableConfig.parse(storage.read(PROPERTIES_PATH), "x").properties == properties


@pytest.mark.usefixtures("impatient")
def test_what_is_torn_for_good_is_refused(storage: MemoryStorage) -> None:
    storage.write(PROPERTIES_PATH, OLD.encode()[:-5])
    for backup in (None, b"", OLD.encode()[:50]):
        if backup is not None:
            storage.write(BACKUP_PATH, backup)
        with pytest.raises(TableConfigError, match="cut off"):
            load_config(storage)
        with pytest.raises(TableConfigError, match="cut off"):
            update_config(storage, {"a": "b"})


@pytest.mark.usefixtures("impatient")
def test_tables_are_written_and_read_at_every_moment(tmp_path: Path) -> None:
    """Writes take the metadata table out of use, which changes the file that is being changed."""
    write(tmp_path, ROWS, table=TABLE)
    storage = open_storage(str(tmp_path))
    for number, at in enumerate((0, 10, 100, 101, 103, -60, -30, -2)):
        old = load_config(storage).encode()
        new = TableConfig({**load_config(storage).properties, "hoodie.table.metadata.partitions": "files"}).encode()
        states = list(moments(old, new, every=9))
        put(storage, states[at if at < 0 else min(at, len(states) - 3)])  # type: ignore[arg-type]

        assert read(tmp_path).num_rows == 1
        assert write(tmp_path, part(row("a", ts=2, value=number))).updates == 1
        assert read(tmp_path).column("value").to_pylist() == [number]
        assert load_config(storage).metadata_partitions == ()


def test_readers_beside_a_writer_that_changes_it_all_the_time(tmp_path: Path) -> None:
    """In place and bit by bit, as Apache Hudi writes to a local disk."""
    folder = tmp_path / ".hoodie"
    folder.mkdir()
    file, backup = folder / "hoodie.properties", folder / "hoodie.properties.backup"
    file.write_bytes(OLD.encode())
    stop_event = threading.Event()

    def change() -> None:
        while not stop_event.is_set():
            for new in (NEW, OLD):
                old = file.read_bytes()
                backup.write_bytes(old)
                file.unlink()
                with file.open("wb", 0) as out:
                    for line in new.encode().splitlines(keepends=True):
                        out.write(line[:5])
                        out.write(line[5:])
                backup.unlink()

    writer = threading.Thread(target=change)
    writer.start()
    try:
        storage = open_storage(str(tmp_path))
        loaded_properties = [load_config(storage).properties for _ in range(150)]
    finally:
        stop_event.set()
        writer.join()

    assert [one for one in loaded_properties if not one.keys() >= OLD.properties.keys()] == []


@pytest.mark.usefixtures("impatient")
def test_a_change_that_another_process_ends_meanwhile_needs_no_recovery(storage: MemoryStorage) -> None:
    put(storage, (None, OLD.encode()))

    class Ended:
        """A store in which another process ends the change once its backup was read."""

        def __getattr__(self, name: str) -> Any:
            return getattr(storage, name)

        def read(self, path: str, *bounds: int) -> bytes:
            data = storage.read(path, *bounds)
            put(storage, (NEW.encode(), None))
            return data

    recover_config(cast("Storage", Ended()))

    assert load_config(storage).properties == NEW.properties
