"""The only layer that touches files; each store has its own way to publish a file atomically."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from .base import FileInfo, Folder, Staged, Storage
from .local import LocalStorage
from .memory import SCHEME as MEMORY_SCHEME
from .memory import MemoryStorage
from .s3_options import SCHEMES as S3_SCHEMES
from .secrets import refuse_password

__all__ = ["FileInfo", "Folder", "Staged", "Storage", "open_storage"]

# One slash is enough: ``dbfs:/x`` as a plain path would make a folder ``dbfs:``.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def open_storage(path: str, options: Mapping[str, str] | None = None, *, durable: bool = True) -> Storage:
    """Open the store of a table's path.

    Args:
        path: A plain path, ``file:…``, ``memory://…``, ``s3://…`` (also ``s3a`` and ``s3n``), or another URL that
            fsspec knows; pyhudi only reads the last.
        options: What the client needs to reach a remote store.
        durable: False where a power cut may take what pyhudi writes; an object store keeps it in any case.

    Raises:
        InvalidOptionError: The path's scheme is not known, or the path has a password in it.
        StorageError: The store cannot be reached.
    """
    refuse_password(path)
    scheme = path.partition("://")[0]
    if scheme in STORES:
        return STORES[scheme](path, options or {})
    if _SCHEME.match(path) and not path.startswith("file:"):
        from .remote import RemoteStorage  # noqa: PLC0415 (slow to import, and most processes need none)

        return RemoteStorage.open(path, options or {})
    return LocalStorage.open(path, durable=durable)


def _open_memory(path: str, _: Mapping[str, str]) -> Storage:
    return MemoryStorage.open(path)


def _open_s3(path: str, options: Mapping[str, str]) -> Storage:
    # The clients of other stores are slow to import, and most processes need none.
    from .objects import ObjectStorage  # noqa: PLC0415
    from .s3 import connect  # noqa: PLC0415

    return ObjectStorage.open(path, connect, options)


# Opens the stores that pyhudi writes to, by scheme.
STORES: dict[str, Callable[[str, Mapping[str, str]], Storage]] = {
    MEMORY_SCHEME.removesuffix("://"): _open_memory,
    **dict.fromkeys(S3_SCHEMES, _open_s3),
}
