"""Tables of other formats: what a folder without ``.hoodie`` holds, and the page that says how it is loaded."""

from __future__ import annotations

from ...errors import NotATableError
from ...storage.base import Folder, Storage, split

_PAGE = "docs/migrating.md"
_DELTA_LOG = "_delta_log"
_ICEBERG = "metadata"
# How deep the folders of partitions may lie above the first Parquet file.
_DEPTH = 8


def other_format(storage: Storage, content: Folder) -> NotATableError | None:
    """Return the error for a root that holds a table of Delta Lake or Iceberg, or Parquet files; None for others.

    ``content`` is what the root holds. Sources: the protocols of Delta Lake and of Iceberg's file systems.
    """
    if _DELTA_LOG in content.folders:
        return _error(storage, f"a Delta Lake table, by its folder {_DELTA_LOG}", "from-delta-lake-or-iceberg")
    if _ICEBERG in content.folders and _has_iceberg_metadata(storage):
        return _error(storage, f"an Iceberg table, by its folder {_ICEBERG}", "from-delta-lake-or-iceberg")
    file = _parquet_file(storage, content)
    return None if file is None else _error(storage, f"Parquet files, such as {file}", "from-parquet")


def _has_iceberg_metadata(storage: Storage) -> bool:
    names = (split(file.path)[1] for file in storage.list(_ICEBERG, strict=False))
    return any(name.endswith((".metadata.json", ".metadata.json.gz")) for name in names)


def _parquet_file(storage: Storage, content: Folder) -> str | None:
    """Return a Parquet file of the root, or of the first partition below it; None if there is none."""
    folder = ""
    for _ in range(_DEPTH):
        files = [file.path for file in content.files if _is_data(file.path) and file.path.endswith(".parquet")]
        if files:
            return min(files)
        folders = sorted(filter(_is_data, content.folders))
        if not folders:
            return None
        folder = f"{folder}/{folders[0]}" if folder else folders[0]
        content = storage.look(folder)
    return None


def _is_data(path: str) -> bool:
    """Return whether a file or folder counts for readers of Parquet, which pass over hidden ones."""
    return not split(path)[1].startswith((".", "_"))


def _error(storage: Storage, what: str, section: str) -> NotATableError:
    return NotATableError(
        f"{storage.uri('')} holds {what}, and no Hudi table.",
        f"Load its rows into a new table at another path, as {_PAGE}#{section} shows.",
    )
