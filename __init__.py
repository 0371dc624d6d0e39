"""Apache Hudi tables, written and read from Spark 4 through PySpark, with no Hudi jar.

Names are imported when they are first used: Spark imports this package in a fresh process whenever it looks for a
data source, and must not wait for what it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyhudi.connector.hudi_table import HudiTable
    from pyhudi.connector.options.parsing import PyHudiWarning
    from pyhudi.connector.placement.colocate import colocate
    from pyhudi.connector.placement.sizing import suggest_buckets
    from pyhudi.connector.source.datasource import PyHudiDataSource
    from pyhudi.errors import DataError, OptionError, PyHudiError, RetryError, TableError, from_spark
    from pyhudi.operations.result import CommitResult, ServiceResult
    from pyhudi.version import VERSION as __version__  # noqa: N811

__all__ = [
    "CommitResult",
    "DataError",
    "HudiTable",
    "OptionError",
    "PyHudiDataSource",
    "PyHudiError",
    "PyHudiWarning",
    "RetryError",
    "ServiceResult",
    "TableError",
    "__version__",
    "colocate",
    "from_spark",
    "suggest_buckets",
]

_HOMES = {
    "CommitResult": "pyhudi.operations.result",
    "DataError": "pyhudi.errors",
    "HudiTable": "pyhudi.connector.hudi_table",
    "OptionError": "pyhudi.errors",
    "PyHudiDataSource": "pyhudi.connector.source.datasource",
    "PyHudiError": "pyhudi.errors",
    "PyHudiWarning": "pyhudi.connector.options.parsing",
    "RetryError": "pyhudi.errors",
    "ServiceResult": "pyhudi.operations.result",
    "TableError": "pyhudi.errors",
    "colocate": "pyhudi.connector.placement.colocate",
    "from_spark": "pyhudi.errors",
    "suggest_buckets": "pyhudi.connector.placement.sizing",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("pyhudi.version").VERSION
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
