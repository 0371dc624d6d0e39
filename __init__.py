"""Reads and writes Apache Hudi tables from Spark 4 through PySpark, or without Spark, and without a Hudi jar.

Public names are imported on first use: Spark imports this package in a fresh process for every look-up of a data
source, which must stay fast.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyhudi.connector.datasource import PyHudiDataSource
    from pyhudi.connector.hudi_table import HudiTable
    from pyhudi.connector.joins.bucket_join import bucket_agg, bucket_join
    from pyhudi.connector.joins.table_rows import TableRows
    from pyhudi.connector.placement.colocate import colocate
    from pyhudi.connector.placement.sizing import suggest_buckets
    from pyhudi.errors import DataError, OptionError, PyHudiError, RetryError, TableError, from_spark
    from pyhudi.operations.result import CommitResult, ServiceResult, ServicesResult
    from pyhudi.operations.version_change import VersionResult
    from pyhudi.options.parsing import PyHudiWarning
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
    "ServicesResult",
    "TableError",
    "TableRows",
    "VersionResult",
    "__version__",
    "bucket_agg",
    "bucket_join",
    "colocate",
    "from_spark",
    "suggest_buckets",
]

_HOMES = {
    "CommitResult": "pyhudi.operations.result",
    "DataError": "pyhudi.errors",
    "HudiTable": "pyhudi.connector.hudi_table",
    "OptionError": "pyhudi.errors",
    "PyHudiDataSource": "pyhudi.connector.datasource",
    "PyHudiError": "pyhudi.errors",
    "PyHudiWarning": "pyhudi.options.parsing",
    "RetryError": "pyhudi.errors",
    "ServiceResult": "pyhudi.operations.result",
    "ServicesResult": "pyhudi.operations.result",
    "TableError": "pyhudi.errors",
    "TableRows": "pyhudi.connector.joins.table_rows",
    "VersionResult": "pyhudi.operations.version_change",
    "bucket_agg": "pyhudi.connector.joins.bucket_join",
    "bucket_join": "pyhudi.connector.joins.bucket_join",
    "colocate": "pyhudi.connector.placement.colocate",
    "from_spark": "pyhudi.errors",
    "suggest_buckets": "pyhudi.connector.placement.sizing",
}


_OF_SPARK = "pyhudi.connector."


def _check_pyspark() -> None:
    """Refuse a PySpark older than 4; without PySpark the parts that need none still work."""
    try:
        spec = find_spec("pyspark")
        if spec is None or not spec.submodule_search_locations:
            return
        # Importing PySpark takes a second, so read its version from the file.
        version = spec.loader.get_data(f"{spec.submodule_search_locations[0]}/version.py")  # type: ignore[union-attr]
    except (ImportError, OSError, AttributeError):
        return
    installed = re.search(r"[\"'](\d+)(\.[^\"']*)[\"']", version.decode())
    if installed is not None and int(installed[1]) < 4:
        raise ImportError(
            f"pyhudi needs PySpark 4.0 or newer, and this Python has {installed[1]}{installed[2]}: install "
            "pyspark>=4, or use an environment whose Spark is 4."
        )


_check_pyspark()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("pyhudi.version").VERSION
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    if home.startswith(_OF_SPARK) and find_spec("pyspark") is None:
        raise ImportError(
            f'pyhudi.{name} needs PySpark, which this Python has not: pip install "pyhudi[spark]"; without Spark, '
            "pyhudi.arrow.Table reads and writes tables.",
            name="pyspark",
        )
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
