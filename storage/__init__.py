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
    """Open the store of a table's path: a plain path, ``file:``, ``memory://``, ``s3://``, or a URL that fsspec reads.

    ``options`` are what the client needs, and without ``durable`` a power cut may take what pyhudi writes to a disk.
    Raises InvalidOptionError for an unknown scheme or a password in the path, and StorageError if the client is
    missing.
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
    """Open a table on S3, importing the client."""
    # The clients of other stores are slow to import, and most processes need none.
    from .objects import ObjectStorage  # noqa: PLC0415
    from .s3 import connect  # noqa: PLC0415

    return ObjectStorage.open(path, connect, options)


# Opens the stores that pyhudi writes to, by scheme.
STORES: dict[str, Callable[[str, Mapping[str, str]], Storage]] = {
    MEMORY_SCHEME.removesuffix("://"): _open_memory,
    **dict.fromkeys(S3_SCHEMES, _open_s3),
}
