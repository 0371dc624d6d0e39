"""Passes many base files to Spark's own Parquet reader as a list, so that Spark does not look the paths up.

Spark looks up every path that it gets, in a job where there are more than a few: 40,000 paths, which pyhudi has just
listed, take it most of a minute. Instead of listing a folder, Spark reads the log of a streaming sink in it, whose
entries may be anywhere. This module writes such a log for the files of one DataFrame. Spark reads it immediately and
only once.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ...storage import open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The setting by which a session ignores such logs.
IGNORED = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
# Characters of a path that Java does not escape in a URI.
_PLAIN = "/:@!$&'()*+,;=~-._"


def reads_lists(spark: SparkSession) -> bool:
    """Return whether Spark reads such a list: its driver must be on this machine and must not ignore the log."""
    if "connect" in type(spark).__module__:
        return False
    return str(spark.conf.get(IGNORED, "false")).lower() != "true"


def read_list(
    spark: SparkSession, files: Iterable[tuple[str, int]], schema: StructType, options: Mapping[str, str]
) -> DataFrame:
    """Return the rows of Parquet files, given by URI and size; ``options`` must contain ``recursiveFileLookup``."""
    with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
        storage = open_storage(folder)
        lines = (json.dumps(_entry(uri, size)) for uri, size in files)
        storage.write("_spark_metadata/0", "\n".join(("v1", *lines)).encode())
        # If Spark ignores the log, this file makes the read fail, because it is gone by then. An empty folder would
        # return no rows instead.
        storage.write("passed-over.parquet", b"PAR1")
        return spark.read.schema(schema).options(**options).parquet(f"file://{folder}")


def _entry(uri: str, size: int) -> dict[str, object]:
    """Return a log entry; Spark ignores the modification time."""
    scheme, slashes, path = uri.partition("://")
    return {
        "path": f"{scheme}://{quote(path, safe=_PLAIN)}" if slashes else quote(uri, safe=_PLAIN),
        "size": size,
        "isDir": False,
        "modificationTime": 0,
        "blockReplication": 1,
        "blockSize": 128 << 20,
        "action": "add",
    }
