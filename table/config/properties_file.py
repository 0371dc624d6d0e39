"""The life of ``.hoodie/hoodie.properties`` in the store: found, made, changed.

Source: ``org.apache.hudi.common.table.HoodieTableConfig`` (``modify`` and ``recoverIfNeeded``).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ...errors import ConcurrentWriteError, NotATableError, PyHudiError, TableConfigError, TableNotFoundError
from ...storage.base import Storage
from ...storage.bounds import MOST_OF_PROPERTIES
from .property_keys import COMMIT_TIME_ORDERING, COPY_ON_WRITE, EVENT_TIME_ORDERING, MERGE_ON_READ, NEWEST_VERSION
from .support import check_supported
from .table_config import TableConfig, checksum

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"

# A change takes milliseconds; without a backup only a table in the making is half there.
_PATIENCE_S = 1.0
_PATIENCE_WITHOUT_BACKUP_S = 0.1
_POLL_S = 0.02
_ATTEMPTS = 3
_COMPLETED_INSTANT = re.compile(r"[0-9]{14,17}(_[0-9]{14,17})?\.(commit|deltacommit|replacecommit)")


def load_config(storage: Storage) -> TableConfig:
    """Return the configuration of the table at the storage's root.

    While Apache Hudi changes a property the file is away, empty or half there, with the old one beside it as a backup.
    What is half there is read again for a moment; then the backup counts.

    Raises:
        TableNotFoundError: There is no table (yet).
        NotATableError: The path holds something else.
        TableConfigError: The file cannot be used, or is lost while the table's instants are there.
        TableVersionError: The table is newer than pyhudi.
    """
    found = _settled(storage)
    if found.config is not None:
        return found.config
    raise found.error or _absence(storage)


def has_config(storage: Storage) -> bool:
    """Return whether there is a table's configuration, which may be away for a moment while it is changed."""
    return storage.exists(PROPERTIES_PATH) or storage.exists(BACKUP_PATH) or storage.exists(PROPERTIES_PATH)


@dataclass(frozen=True, slots=True)
class _Found:
    """What one look at the two files gave.

    Attributes:
        config: The configuration that counts; None where none can be read.
        settled: Whether another look could find nothing better.
        error: Why there is no configuration; None where there are no files.
        whole: Whether the configuration is that of ``hoodie.properties`` itself.
        changing: Whether there is a backup, as during a change or after one that broke off.
    """

    config: TableConfig | None
    settled: bool
    error: PyHudiError | None = None
    whole: bool = False
    changing: bool = False


def _settled(storage: Storage) -> _Found:
    """Look at the two files until they say something clear, or for a moment."""
    began = time.monotonic()
    while True:
        found = _look(storage)
        patience = _PATIENCE_S if found.changing else _PATIENCE_WITHOUT_BACKUP_S
        if found.settled or time.monotonic() - began > patience:
            return found
        time.sleep(_POLL_S)


def _look(storage: Storage) -> _Found:
    data = _read(storage, PROPERTIES_PATH)
    config, error = _parse(storage, PROPERTIES_PATH, data)
    if config is not None and storage.remote:
        # Objects are replaced as a whole.
        return _Found(config, settled=True, whole=True)
    backup = _read(storage, BACKUP_PATH)
    if backup is None:
        # A change may have ended between the two looks: what was read before is then half of what is there now.
        if _read(storage, PROPERTIES_PATH) != data:
            return _Found(None, settled=False, error=_concurrent(storage), changing=True)
        return _Found(config, settled=error is None, error=error, whole=True)
    old, _ = _parse(storage, BACKUP_PATH, backup)
    if old is None and _read(storage, PROPERTIES_PATH) != data:
        # The backup is in the making, and what was read before is half of a change that has ended since.
        return _Found(None, settled=False, error=_concurrent(storage), changing=True)
    if config is not None and (old is None or config.properties.keys() >= old.properties.keys()):
        return _Found(config, settled=True, whole=True, changing=True)
    # Cut off at the end of a line it may still have all that a table must have, and lack what this one has.
    return _Found(old, settled=data is None and old is not None, error=error, changing=True)


def _parse(storage: Storage, path: str, data: bytes | None) -> tuple[TableConfig | None, TableConfigError | None]:
    if data is None:
        return None, None
    try:
        return _config_in(data, storage.uri(path)), None
    except TableConfigError as error:
        return None, error


# Of one table a process asks many times, and what its file holds is the same nearly always.
_config_in = lru_cache(maxsize=64)(TableConfig.parse)


def create_config(storage: Storage, config: TableConfig) -> bool:
    """Write the configuration of a new table; False, and nothing changed, when there is one already."""
    # With a backup there it is only away for a moment.
    made = not storage.exists(BACKUP_PATH) and storage.create(PROPERTIES_PATH, config.encode())
    storage.flush([], new=True)
    return made


def update_config(storage: Storage, changes: Mapping[str, str | None]) -> TableConfig:
    """Change properties of a table in the order that Apache Hudi's readers can follow, and return the result.

    The old content is kept in ``hoodie.properties.backup`` until the new one is in place, as
    ``HoodieTableConfig.modify`` does; a change that a dead writer left half done is taken back first.

    Args:
        storage: Rooted at the table.
        changes: New values by key; None removes a key.

    Raises:
        ConcurrentWriteError: Somebody else changes the file again and again.
    """
    for _ in range(_ATTEMPTS):
        _recover(storage)
        config = load_config(storage)
        changed = {option: value for option, value in {**config.properties, **changes}.items() if value is not None}
        if changed == config.properties:
            return config
        new = TableConfig(changed)
        if _replace(storage, config, new.encode()):
            return new
    raise _concurrent(storage)


def _replace(storage: Storage, config: TableConfig, new: bytes) -> bool:
    """Put new properties in place of some; False where somebody else has begun to change them."""
    old = _read(storage, PROPERTIES_PATH)
    if old is None or _parse(storage, PROPERTIES_PATH, old)[0] != config or not storage.create(BACKUP_PATH, old):
        return False
    if _read(storage, PROPERTIES_PATH) != old:
        # Changed by somebody who was done before our backup was there.
        storage.delete(BACKUP_PATH)
        return False
    storage.write(PROPERTIES_PATH, new)
    if _read(storage, PROPERTIES_PATH) != new:
        raise _concurrent(storage)
    storage.delete(BACKUP_PATH)
    return True


def _recover(storage: Storage) -> None:
    """Take back a change that a dead writer left half done; of a living one the end is waited for."""
    began = time.monotonic()
    while storage.exists(BACKUP_PATH):
        if time.monotonic() - began > _PATIENCE_S:
            found = _settled(storage)
            if found.config is not None and found.changing and not found.whole:
                storage.write(PROPERTIES_PATH, storage.read(BACKUP_PATH, MOST_OF_PROPERTIES))
            if found.config is not None:
                storage.delete(BACKUP_PATH)
            return
        time.sleep(_POLL_S)


def _read(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read(path, MOST_OF_PROPERTIES)
    except FileNotFoundError:
        return None


def _absence(storage: Storage) -> Exception:
    root = storage.uri("")
    content = storage.look("")
    if storage.exists(""):
        return NotATableError(f"{root} is a file, not a Hudi table.", "Give the path of a Hudi table, a folder.")
    if ".hoodie" in content.folders:
        names = [
            file.path.rpartition("/")[2] for folder in ("", "/timeline") for file in storage.list(f".hoodie{folder}")
        ]
        completed = sorted(name for name in names if _COMPLETED_INSTANT.fullmatch(name))
        if completed:
            return TableConfigError(
                f"{storage.uri(PROPERTIES_PATH)} is lost, while the table has {len(completed)} completed instants, "
                f"{completed[-1]} the newest.",
                "Restore it from a backup of yours.",
            )
    elif content.folders or content.files:
        return NotATableError(
            f"{root} holds files or folders and no .hoodie folder, so it is not a Hudi table.",
            "Give the path of a Hudi table, or an empty one for a new table.",
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
    "TableConfig",
    "check_supported",
    "checksum",
    "create_config",
    "has_config",
    "load_config",
    "update_config",
]
