"""The small tables that Apache Hudi made, unpacked for one test."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parents[2] / "fixtures" / "tables"


def unpack(name: str, folder: Path) -> str:
    """Unpack a table below a folder and return its path; the copy may be changed."""
    path = folder / name
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        archive.extractall(path)
    return str(path)


def recorded(name: str, query: str = "snapshot") -> list[dict[str, Any]]:
    """Return the rows that Apache Hudi read from a table, by partition and key.

    Values that JSON lacks are texts as Python writes them, binary ones as hexadecimal digits.
    """
    found: list[dict[str, Any]] = json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))[query]
    return found
