"""Spells a table's path so that each of Spark's processes understands it.

A relative path and ``~`` depend on the working directory and the user. Spark plans a ``df.write`` in a process beside
the driver's JVM, whose directory a program may have left, and which on Spark Connect runs on another machine. pyhudi
resolves such paths there, for reads and writes alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...methods.paths import AnyPath, absolute, depends_on_process, plain_path
from .own_errors import own_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The data source's name.
FORMAT = "pyhudi"

# Makes the data source resolve its path instead of opening a table.
ONLY_PATH = "hoodie.pyhudi.only.path"
# From `HudiTable.to_df`: the moment of the read. The data source then reads only slices with logs,
PINNED = "hoodie.pyhudi.read.pinned"
# or all slices with this option.
WHOLE = "hoodie.pyhudi.read.whole"
# From `HudiTable.to_df`: predicates, by which the data source skips files.
WHERE = "hoodie.pyhudi.read.where"
# From a join or an aggregation by bucket: the buckets to read.
BUCKETS = "hoodie.pyhudi.read.buckets"
# From `HudiTable.merge`: the record keys whose rows are read.
SOUGHT = "hoodie.pyhudi.read.sought"
# From `HudiTable`: the figures of the lookup that placed the rows.
LOOKED_UP = "hoodie.pyhudi.write.looked.up"
# From a merge or an update: the counts of the changed rows.
COUNTED = "hoodie.pyhudi.write.counted"
# From `HudiTable`: the rows of the table that decided what the write does.
READ = "hoodie.pyhudi.write.read"
# From `HudiTable`: that the rows to be deleted were read from the table, with their ordering values.
DELETES_READ, MARKED = "hoodie.pyhudi.write.deletes.read", "true"
# From `HudiTable`: that the rows were made of stored rows, of whose keys it did not see all.
OF_STORED = "hoodie.pyhudi.write.of.stored"
# From `HudiTable`: what it did for the write before.
PAST = "hoodie.pyhudi.write.past"
# From `HudiTable`: the name of the notes by which it finds the write's instant.
WRITE_KEY = "hoodie.pyhudi.write.key"
# From `HudiTable.stream`: the micro-batch that the rows are.
BATCH = "hoodie.pyhudi.write.batch"
# What `HudiTable` carries into a write.
OF_WRITES = (LOOKED_UP, COUNTED, READ, DELETES_READ, OF_STORED, PAST, WRITE_KEY, BATCH)

# Spark's names of what a task or a thread of a streaming query knows of its micro-batch.
QUERY_ID, BATCH_ID, RUN_ID = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"


def absolute_for(spark: SparkSession, path: AnyPath) -> str:
    """Return a table's path as a ``df.write`` in the session resolves it; see `absolute`."""
    text = plain_path(path)
    if not depends_on_process(text):
        return absolute(text)
    with own_errors():
        return spark.read.format(FORMAT).option(ONLY_PATH, "true").load(text).columns[0]
