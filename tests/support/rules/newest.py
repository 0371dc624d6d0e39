"""The write that completed last, read without any of the libraries under test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro


def newest_write(table: Path) -> str:
    """Return the requested time of the write that completed last."""
    return _newest(table).stem.split("_")[0]


def newest_metadata(table: Path) -> dict[str, Any]:
    """Return what the instant says of the write that completed last."""
    with _newest(table).open("rb") as stream:
        [metadata] = fastavro.reader(stream)
    return dict(metadata)


def _newest(table: Path) -> Path:
    files = [
        one
        for action in ("commit", "deltacommit", "replacecommit")
        for one in (table / ".hoodie" / "timeline").glob(f"[0-9]*_[0-9]*.{action}")
    ]
    return max(files, key=lambda file: file.stem.split("_")[1])
