"""What a file of a table may take at most: anybody may have written it, and nobody may be made to run out of memory.

Each bound is far beyond what Apache Hudi writes, and far below what harms a process.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import CorruptFileError

MIB = 1 << 20
# Instants, markers and files of the archive; Apache Hudi names every file of a commit in some hundred bytes.
MOST_BYTES = 256 * MIB
# hoodie.properties, which may hold a schema of thousands of columns.
MOST_OF_PROPERTIES = 16 * MIB
# What says one thing: an owner, a lock, a partition.
MOST_OF_A_NOTE = MIB // 16
# Of brackets in one another: a schema's record takes four.
DEEPEST_JSON = 256


def check_size(path: str, size: int, most: int) -> None:
    """Refuse a file that is larger than any of its kind.

    Args:
        path: The file, for the message.
        size: Its bytes.
        most: How many it may have.

    Raises:
        CorruptFileError: It has more.
    """
    if size > most:
        raise CorruptFileError(
            f"The file {path} has {size} bytes, and one of its kind never more than {most}; it was not read.",
            "Look who wrote it, and restore it from a backup or remove it.",
        )


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON text holds.

    Raises:
        ValueError: It is no JSON, or its brackets stand too deep in one another.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("its brackets stand too deep in one another") from None
    level, depth = [found], 0
    while level:
        depth += 1
        if depth > DEEPEST_JSON:
            raise ValueError(f"its brackets stand more than {DEEPEST_JSON} deep in one another")
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    return found
