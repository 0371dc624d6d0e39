"""The small tables that Apache Hudi made, unpacked for one test."""

from __future__ import annotations

import zipfile
from pathlib import Path

TABLES = Path(__file__).parents[1] / "fixtures" / "tables"


def unpack(name: str, folder: Path) -> str:
    """Unpack a table below a folder and return its path; the copy may be changed."""
    path = folder / name
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        archive.extractall(path)
    return str(path)
