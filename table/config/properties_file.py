"""Reads, creates and changes ``.hoodie/hoodie.properties`` in the store.

Source: ``org.apache.hudi.common.table.HoodieTableConfig`` (``modify`` and ``recoverIfNeeded``).
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ...errors import ConcurrentWriteError, NotATableError, PyHudiError, TableConfigError, TableNotFoundError
from ...storage.base import Storage, join
from ...storage.bounds import MOST_OF_PROPERTIES
from .other_formats import other_format
from .property_keys import COMMIT_TIME_ORDERING, COPY_ON_WRITE, EVENT_TIME_ORDERING, MERGE_ON_READ, NEWEST_VERSION
from .support import check_supported
from .table_config import TableConfig, checksum

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"

# A change takes milliseconds. An incomplete file without a backup occurs only while a table is created.
_PATIENCE_S = 1.0
_PATIENCE_WITHOUT_BACKUP_S = 0.1
_POLL_S = 0.02
_ATTEMPTS = 3
_COMPLETED_INSTANT = re.compile(r"[0-9]{14,17}(_[0-9]{14,17})?\.(commit|deltacommit|replacecommit)")


def load_config(storage: Storage) -> TableConfig:
    """Return the configuration of the table at the storage's root.

    While Apache Hudi changes a property the file is absent, empty or incomplete, and the backup beside it holds the old
    content. An incomplete file is read again for a moment; then the backup counts. Raises TableNotFoundError,
    NotATableError, TableConfigError (unusable, or lost although instants exist) and TableVersionError.
    """
    reading = _best_reading(storage)
    if reading.config is not None:
        return reading.config
    error = reading.error or _error_without_config(storage)
    if isinstance(error, TableConfigError) and reading.error is None:
        # Another writer may have created the table since: its properties come before its first completed instant.
        reading = _best_reading(storage)
        if reading.config is not None:
            return reading.config
    raise error


def load_config_below(storage: Storage, folder: str) -> TableConfig | None:
    """Return the configuration of a table in a folder of the store, such as a metadata table; None without a table.

    It waits for a change as `load_config`. Raises TableConfigError if the properties are unusable.
    """
    reading = _best_reading(storage, folder)
    if reading.config is None and reading.error is not None:
        raise reading.error
    return reading.config


def has_config(storage: Storage) -> bool:
    """Return whether the table has a configuration, also during a change, when the file may be absent."""
    # A change may put the file back between the first two looks.
    return storage.exists(PROPERTIES_PATH) or storage.exists(BACKUP_PATH) or storage.exists(PROPERTIES_PATH)


def stored_config(storage: Storage) -> TableConfig | None:
    """Return the configuration as `load_config`, by one read unless another writer changes it; None without a table."""
    # If the file cannot be used, `load_config` reads it again, and raises the error.
    config, _ = _parse(storage, PROPERTIES_PATH, read_properties(storage, PROPERTIES_PATH))
    if config is None and has_config(storage):
        config = load_config(storage)
    return config


@dataclass(frozen=True, slots=True)
class _Reading:
    """The result of one read of ``hoodie.properties`` and its backup.

    Attributes:
        best: Whether reading again cannot give a better result.
        whole: Whether the configuration is that of ``hoodie.properties`` itself.
        changing: Whether there is a backup: a change is under way or was interrupted.
    """

    config: TableConfig | None
    best: bool
    error: PyHudiError | None = None
    whole: bool = False
    changing: bool = False


def _best_reading(storage: Storage, folder: str = "") -> _Reading:
    """Read the properties of the table in a folder until the result is the best, or patience is over; return it."""
    started = time.monotonic()
    while True:
        reading = _read_once(storage, folder)
        patience = _PATIENCE_S if reading.changing else _PATIENCE_WITHOUT_BACKUP_S
        if reading.best or time.monotonic() - started > patience:
            return reading
        time.sleep(_POLL_S)


def _read_once(storage: Storage, folder: str) -> _Reading:
    """Return the result of reading the properties of the table in a folder once, and the backup if there may be one.

    The result is not ``best``, so that the caller reads again, if a change that is under way may have cut the file off.
    It is ``whole`` if the configuration is that of the file itself, and ``changing`` if there is a backup: a change is
    under way or was interrupted. ``folder`` is below the root of ``storage``, "" for the root itself.
    """
    path, backup_path = join(folder, PROPERTIES_PATH), join(folder, BACKUP_PATH)
    data = read_properties(storage, path)
    config, error = _parse(storage, path, data)
    if config is not None and storage.remote:
        # An object store replaces objects atomically.
        return _Reading(config, best=True, whole=True)
    backup = read_properties(storage, backup_path)
    if backup is None:
        # If a change ended between the two reads, the first read may have seen an incomplete file.
        if read_properties(storage, path) != data:
            return _Reading(None, best=False, error=_concurrent(storage), changing=True)
        return _Reading(config, best=error is None, error=error, whole=True)
    backup_config, _ = _parse(storage, backup_path, backup)
    if backup_config is None and read_properties(storage, path) != data:
        # A writer is making the backup; the first read saw an incomplete file of a change that has ended since.
        return _Reading(None, best=False, error=_concurrent(storage), changing=True)
    if config is not None and (backup_config is None or config.properties.keys() >= backup_config.properties.keys()):
        return _Reading(config, best=True, whole=True, changing=True)
    # A file that is cut off at the end of a line may have all required properties and lack others of the backup.
    return _Reading(backup_config, best=data is None and backup_config is not None, error=error, changing=True)


def _parse(storage: Storage, path: str, data: bytes | None) -> tuple[TableConfig | None, TableConfigError | None]:
    """Return the configuration in a file, or the error that makes it unusable; neither if the file is absent."""
    if data is None:
        return None, None
    try:
        return _config_in(data, storage.uri(path)), None
    except TableConfigError as error:
        return None, error


# A process loads a table's configuration many times, and the file rarely changes.
_config_in = lru_cache(maxsize=64)(TableConfig.parse)


def create_config(storage: Storage, config: TableConfig) -> bool:
    """Write the configuration of a new table; return False, and change nothing, if the table has one."""
    # If a backup exists, the file is absent only during a change.
    is_new = not storage.exists(BACKUP_PATH) and storage.create(PROPERTIES_PATH, config.encode())
    storage.flush([], new=True)
    return is_new


def update_config(storage: Storage, changes: Mapping[str, str | None]) -> TableConfig:
    """Change properties of a table (None removes a key) in the order that Hudi's readers expect; return the result.

    As in ``HoodieTableConfig.modify``, ``hoodie.properties.backup`` keeps the old content until the new content is in
    place. The half-done change of a dead writer is reverted first. Raises ConcurrentWriteError if other writers keep
    changing the file.
    """
    for _ in range(_ATTEMPTS):
        recover_config(storage)
        config = load_config(storage)
        changed = config.with_changes(changes)
        if changed == config:
            return config
        if _replace(storage, config, changed.encode()):
            return changed
    raise _concurrent(storage)


@dataclass(frozen=True, slots=True)
class StampedConfig:
    """A configuration with the checksum of its file.

    Each change of the file makes another checksum: Apache Hudi puts the time into the file, so that not even a change
    back to the same properties brings the same bytes back.
    """

    config: TableConfig
    checksum: str


def load_stamped(storage: Storage) -> StampedConfig:
    """Recover the file of a table's configuration, and return its content; raises as `update_config`."""
    for _ in range(_ATTEMPTS):
        recover_config(storage)
        data = read_properties(storage, PROPERTIES_PATH)
        config, error = _parse(storage, PROPERTIES_PATH, data)
        if data is not None and config is not None:
            return StampedConfig(config, checksum_of(data))
        if error is not None and not storage.exists(BACKUP_PATH):
            raise error
    # It is absent, for which `load_config` raises, or other writers keep changing it.
    load_config(storage)
    raise _concurrent(storage)


def checksum_of(data: bytes) -> str:
    return f"{len(data):x}-{zlib.crc32(data):08x}"


def is_replaced(storage: Storage, checksum: str) -> bool:
    """Return whether the file of properties is whole, and has not that checksum; False while a change is under way."""
    if storage.exists(BACKUP_PATH):
        return False
    data = read_properties(storage, PROPERTIES_PATH)
    return data is not None and checksum_of(data) != checksum


def replace_config(storage: Storage, checksum: str, changes: Mapping[str, str | None]) -> None:
    """Change properties of a table as `update_config`, unless its file is no longer that of a checksum."""
    for _ in range(_ATTEMPTS):
        stamped = load_stamped(storage)
        if stamped.checksum != checksum:
            return
        if _replace(storage, stamped.config, stamped.config.with_changes(changes).encode(), checksum):
            return
    raise _concurrent(storage)


def _replace(storage: Storage, config: TableConfig, new_content: bytes, checksum: str | None = None) -> bool:
    """Replace the properties; return False, and change nothing, if another writer has changed them or begun to.

    ``config`` is what they were read as. With a ``checksum`` return False, too, if the file has another.
    """
    old_content = read_properties(storage, PROPERTIES_PATH)
    if (
        old_content is None
        or _parse(storage, PROPERTIES_PATH, old_content)[0] != config
        or checksum not in {None, checksum_of(old_content)}
    ):
        return False
    if not storage.create(BACKUP_PATH, old_content):
        return False
    if read_properties(storage, PROPERTIES_PATH) != old_content:
        # Another writer completed a change before our backup was in place.
        storage.delete(BACKUP_PATH)
        return False
    storage.write(PROPERTIES_PATH, new_content)
    if read_properties(storage, PROPERTIES_PATH) != new_content:
        raise _concurrent(storage)
    storage.delete(BACKUP_PATH)
    return True


@dataclass(frozen=True, slots=True)
class BrokenChange:
    """A change of the properties that its writer did not complete; ``whole`` says that the file itself can be used."""

    whole: bool


def find_broken_change(storage: Storage) -> BrokenChange | None:
    """Wait for another writer to complete its change; return the change of a writer that does not.

    It also returns None if no file is whole, as nothing tells then what the properties were.
    """
    started = time.monotonic()
    while storage.exists(BACKUP_PATH):
        if time.monotonic() - started > _PATIENCE_S:
            reading = _best_reading(storage)
            return None if reading.config is None else BrokenChange(reading.whole or not reading.changing)
        time.sleep(_POLL_S)
    return None


def recover_config(storage: Storage) -> None:
    """Wait for another writer to complete its change; revert the change of a writer that does not."""
    change = find_broken_change(storage)
    if change is None:
        return
    if not change.whole:
        backup = read_properties(storage, BACKUP_PATH)
        if backup is None:
            # Another process has ended the change since.
            return
        storage.write(PROPERTIES_PATH, backup)
    storage.delete(BACKUP_PATH)


def read_properties(storage: Storage, path: str) -> bytes | None:
    """Return the content of a file of properties, or of a copy of it; None if it is absent."""
    try:
        return storage.read(path, MOST_OF_PROPERTIES)
    except FileNotFoundError:
        return None


def _error_without_config(storage: Storage) -> Exception:
    """Return the error for a path without a table's properties, which says what is at the path instead.

    That is a file, a table whose properties are lost, a table of another format, other files, or nothing. ``storage``
    has the path as its root.
    """
    root = storage.uri("")
    content = storage.look("")
    if storage.exists(""):
        return NotATableError(f"{root} is a file, not a Hudi table.", "Give the path of a Hudi table, a folder.")
    if ".hoodie" in content.folders:
        # Only completed instants prove that there was a table: a failed creation leaves the folder, too.
        names = [
            file.path.rpartition("/")[2] for folder in ("", "/timeline") for file in storage.list(f".hoodie{folder}")
        ]
        completed = sorted(name for name in names if _COMPLETED_INSTANT.fullmatch(name))
        if completed:
            return TableConfigError(
                f"{storage.uri(PROPERTIES_PATH)} is lost, while the table has completed instants: {len(completed)}, of "
                f"which {completed[-1]} was requested last.",
                "Restore it from a backup of yours.",
            )
    elif content.folders or content.files:
        return other_format(storage, content) or NotATableError(
            f"{root} holds files or folders and no .hoodie folder, so it is not a Hudi table.",
            "Give the path of a Hudi table, or of an empty folder for a new table.",
        )
    return TableNotFoundError(
        f"There is no Hudi table at {root}.", "Check the path, or create the table by HudiTable.create or a df.write."
    )


def _concurrent(storage: Storage) -> ConcurrentWriteError:
    return ConcurrentWriteError(
        f"Another writer changes {storage.uri(PROPERTIES_PATH)} at this moment.", "Run the write again."
    )


__all__ = [
    "BACKUP_PATH",
    "COMMIT_TIME_ORDERING",
    "COPY_ON_WRITE",
    "EVENT_TIME_ORDERING",
    "MERGE_ON_READ",
    "NEWEST_VERSION",
    "PROPERTIES_PATH",
    "StampedConfig",
    "TableConfig",
    "check_supported",
    "checksum",
    "create_config",
    "find_broken_change",
    "has_config",
    "is_replaced",
    "load_config",
    "load_stamped",
    "read_properties",
    "recover_config",
    "replace_config",
    "stored_config",
    "update_config",
]
