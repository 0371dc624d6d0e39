"""Bounds on the size of a table's files: any program may have written them, and none may exhaust a reader's memory.

Each bound is far beyond what Apache Hudi writes, and far below what harms a process.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import CorruptFileError

MIB = 1 << 20
# Instants, markers and files of the archive. A commit of Apache Hudi takes some hundred bytes a file.
MOST_BYTES = 256 * MIB
# hoodie.properties, which may hold a schema of thousands of columns.
MOST_OF_PROPERTIES = 16 * MIB
# Files that state a single thing: an owner, a lock, a partition.
MOST_OF_A_NOTE = MIB // 16
# Levels of nested brackets: a schema's record takes four.
DEEPEST_JSON = 256


def check_size(path: str, size: int, most: int) -> None:
    """Raise CorruptFileError for a file with more bytes than ``most``."""
    if size > most:
        raise CorruptFileError(
            f"The file {path} has {size} bytes, and files of its kind never have more than {most}; it was not read.",
            "Find out which program wrote it; then restore it from a backup or remove it.",
        )


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON text holds; ValueError if it is no JSON, or nests deeper than `DEEPEST_JSON`."""
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("its brackets nest too deep") from None
    # Each round takes one level of nesting: the arrays and objects that lie that deep.
    level, depth = [content], 0
    while level:
        depth += 1
        if depth > DEEPEST_JSON:
            raise ValueError(f"its brackets nest more than {DEEPEST_JSON} deep")
        level = [
            inner
            for child in level
            if isinstance(child, dict | list)
            for inner in (child.values() if isinstance(child, dict) else child)
            if isinstance(inner, dict | list)
        ]
    return content
