"""Advice to users whose read opens many files because it has no condition."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .snapshot import Snapshot

tables = logging.getLogger("pyhudi.tables")

MOST_FILES = 100
# The paths of tables that this process gave advice about.
_ADVISED: set[str] = set()


def advise_condition(snapshot: Snapshot, files: int, how: str) -> None:
    """Log once per process and table that a read, which has no condition, opens many files.

    ``files`` is their number, and ``how`` says how to give a condition. A query of the past or of changes gets no
    advice: it may want all rows of a moment.
    """
    path = snapshot.storage.path
    if files <= MOST_FILES or snapshot.query is not None or path in _ADVISED:
        return
    _ADVISED.add(path)
    tables.warning("table %s: a read without a condition opens all %s files; %s", path, f"{files:,}", how)
