"""Many base files handed to Spark's own Parquet reader as one list that it need not look up.

Spark asks the store for every path that it is given, and starts a job to do so where there are more than a few: 40,000
paths take it most of a minute, and they were all listed a moment ago. One thing it reads in place of a listing is the
log of a streaming sink, which names the files of a folder, wherever they are. Such a log is written here, of the files
of one DataFrame. Spark reads it at once, and never again.
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

# By which a session can be told to pass such logs over.
IGNORED = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
# What is left of a path's characters in a URI as Java has it.
_PLAIN = "/:@!$&'()*+,;=~-._"


def reads_lists(spark: SparkSession) -> bool:
    """Return whether a list that is written here reaches Spark: its driver is on this machine, and takes it."""
    if "connect" in type(spark).__module__:
        return False
    return str(spark.conf.get(IGNORED, "false")).lower() != "true"


def read_list(
    spark: SparkSession, files: Iterable[tuple[str, int]], schema: StructType, options: Mapping[str, str]
) -> DataFrame:
    """Return the rows of some Parquet files.

    Args:
        spark: A session that `reads_lists`.
        files: Their URIs and sizes.
        schema: The columns to read.
        options: Spark's, of the Parquet reader; ``recursiveFileLookup`` among them.
    """
    with tempfile.TemporaryDirectory(prefix="pyhudi-") as folder:
        storage = open_storage(folder)
        lines = (json.dumps(_entry(uri, size)) for uri, size in files)
        storage.write("_spark_metadata/0", "\n".join(("v1", *lines)).encode())
        # A Spark that passes the log over finds this file, which is gone when it is to be read, and no empty folder.
        storage.write("passed-over.parquet", b"PAR1")
        return spark.read.schema(schema).options(**options).parquet(f"file://{folder}")


def _entry(uri: str, size: int) -> dict[str, object]:
    """Return what the log says of a file; nobody asks when it was changed."""
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
