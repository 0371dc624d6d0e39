"""Where tests put tables: a folder of this machine, or S3; the same questions for both."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.s3 import objects_below

# A folder, or the URL of one.
Place = Path | str


def below(place: Place, name: str) -> str:
    """Return the path of something in a place."""
    return f"{place}/{name}"


def files_below(path: Place) -> dict[str, bytes]:
    """Return every file below a table's path with its content, to compare before and after."""
    if "://" in str(path):
        return objects_below(str(path))
    root = Path(path)
    return {str(one.relative_to(root)): one.read_bytes() for one in sorted(root.rglob("*")) if one.is_file()}


@contextmanager
def on_disk(path: Place) -> Iterator[Path]:
    """Give a folder with a table's files: the table itself where it is local, else a copy."""
    if "://" not in str(path):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, data in objects_below(str(path)).items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(data)
        yield Path(folder)
