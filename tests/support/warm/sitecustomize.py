"""Spark's daemons of Python workers import what their workers need before they fork them.

Python imports this module as it starts, where its folder is on the path: `support.sessions` puts it on that of Spark's
processes. Spark has one of them for each look-up of a source, each plan, each task and each commit, and each imports
the same packages: more work than all that most tests ask of it. Spark also puts archives of its own on their path, for
nodes without PySpark: each process compiles what it finds there, and each that is forked reads the thousands of names
in them before its first work. Here PySpark is installed.

tests/unit/test_imports.py counts what such processes import by themselves. Of the tests that start a Spark of their
own, test_logs.py, test_jobs.py and test_shipped.py leave its processes alone, as their Spark starts few of them.
"""

import gc
import importlib
import sys
from importlib.util import find_spec

IMPORTED = (
    "encodings.utf_16_le",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.worker",
    "fastavro",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyhudi.options.defaults_file",
    "pyhudi.options.parsing",
    "pyhudi.options.sources",
    "pyhudi.connector.datasource",
    "pyhudi.connector.source.carried_options",
    "pyhudi.connector.source.reader",
    "pyhudi.connector.source.writer",
    "pyhudi.operations.planning.plan",
    "pyhudi.operations.write.instant",
    "pyhudi.operations.write.commit",
    "pyhudi.operations.write.task",
    "pyhudi.timeline.metadata.models",
)

started = sys.orig_argv[1:3]
if started[:1] == ["-m"] and started[-1].startswith("pyspark."):
    for archive in [one for one in sys.path if "/pyspark/" in one and one.endswith((".zip", ".jar"))]:
        sys.path.remove(archive)
        sys.path_importer_cache.pop(archive, None)
# Spark starts a process for each source of a stream, which forks no other.
if started == ["-m", "pyspark.daemon"]:
    if sys.orig_argv[3:] == ["pyspark.worker"] and find_spec("pandas"):
        IMPORTED += ("pandas",)
    for name in (*sys.orig_argv[3:], *IMPORTED):
        importlib.import_module(name)
    # It is what runs next, and Python warns of that.
    sys.modules.pop("pyspark.daemon", None)
    # A worker collects its garbage after each task, for which it would look through all that was imported, and copy it.
    gc.freeze()
