"""Apache Hudi tables without Spark: rows come and go as Arrow data, and this process does all the work.

    from pyhudi.arrow import Table

    Table("/data/trips").upsert(rows)

Public names are imported on first use: a function in the cloud may import this module and need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .functions import read, write
    from .table import Table

__all__ = ["Table", "read", "write"]

_HOMES = {"Table": ".table", "read": ".functions", "write": ".functions"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
