"""The life of ``.hoodie/hoodie.properties`` in the store: found, made, changed.

Source: ``org.apache.hudi.common.table.HoodieTableConfig`` (``modify`` and ``recoverIfNeeded``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import ConcurrentWriteError, NotATableError, TableConfigError, TableNotFoundError
from ..storage.base import Storage
from ..storage.bounds import MOST_OF_PROPERTIES
from .options import COMMIT_TIME_ORDERING, COPY_ON_WRITE, EVENT_TIME_ORDERING, MERGE_ON_READ, NEWEST_VERSION
from .support import check_supported
from .table_config import TableConfig, checksum

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"

_COMPLETED_INSTANT = re.compile(r"[0-9]{14,17}(_[0-9]{14,17})?\.(commit|deltacommit|replacecommit)")


def load_config(storage: Storage) -> TableConfig:
    """Return the configuration of the table at the storage's root.

    Raises:
        TableNotFoundError: There is no table (yet).
        NotATableError: The path holds something else.
        TableConfigError: The file cannot be used, or is lost while the table's instants are there.
    """
    data = _read(storage, PROPERTIES_PATH)
    if data is not None:
        return TableConfig.parse(data, storage.uri(PROPERTIES_PATH))
    backup = _read(storage, BACKUP_PATH)
    if backup is not None:
        return TableConfig.parse(backup, storage.uri(BACKUP_PATH))
    # An update replaces the file between our two looks.
    data = _read(storage, PROPERTIES_PATH)
    if data is not None:
        return TableConfig.parse(data, storage.uri(PROPERTIES_PATH))
    raise _absence(storage)


def create_config(storage: Storage, config: TableConfig) -> bool:
    """Write the configuration of a new table; False, and nothing changed, when there is one already."""
    made = storage.create(PROPERTIES_PATH, config.encode())
    storage.flush([], new=True)
    return made


def update_config(storage: Storage, changes: Mapping[str, str | None]) -> TableConfig:
    """Change properties of a table in the order that Apache Hudi's readers can follow, and return the result.

    The old content is kept in ``hoodie.properties.backup`` until the new one is in place, as
    ``HoodieTableConfig.modify`` does; a backup that a dead writer left is dealt with first.

    Args:
        storage: Rooted at the table.
        changes: New values by key; None removes a key.

    Raises:
        ConcurrentWriteError: Somebody else changes the file at the same time.
    """
    config = load_config(storage)
    changed = {option: value for option, value in {**config.properties, **changes}.items() if value is not None}
    if changed == config.properties:
        return config
    _recover(storage, config)
    new = TableConfig(changed)
    old_bytes, new_bytes = storage.read(PROPERTIES_PATH), new.encode()
    if not storage.create(BACKUP_PATH, old_bytes):
        raise _concurrent(storage)
    storage.write(PROPERTIES_PATH, new_bytes)
    if storage.read(PROPERTIES_PATH) != new_bytes:
        raise _concurrent(storage)
    storage.delete(BACKUP_PATH)
    return new


def _recover(storage: Storage, config: TableConfig) -> None:
    """Finish an update that a dead writer left half done."""
    if not storage.exists(PROPERTIES_PATH):
        storage.create(PROPERTIES_PATH, config.encode())
    storage.delete(BACKUP_PATH)


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
    "load_config",
    "update_config",
]
