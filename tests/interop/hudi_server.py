"""Apache Hudi behind a pipe: one Spark session with its bundle that obeys JSON lines on stdin.

It runs in an environment of its own (the bundle needs Spark 3.5, pyhudi Spark 4) and so imports nothing but PySpark.
A request is one line ``{"command": name, ...}``; its answer is one line ``{"ok": true, "result": ...}`` or
``{"ok": false, "error": text}``, the text with the whole stack trace.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from pyspark.sql import SparkSession

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:{}"
# Without its native library Hadoop starts a process, chmod, for each file that it makes: fifty for a write of ten rows.
# The files have these permissions anyway.
LOCAL_FILES = """
public class LocalFiles extends org.apache.hadoop.fs.LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    public static class Raw extends org.apache.hadoop.fs.RawLocalFileSystem {
        public void setPermission(
            org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission
        ) {}
    }
}
"""


def start_session(folder: str, master: str, release: str) -> SparkSession:
    """Start Spark with a release of Apache Hudi."""
    settings = {
        "spark.jars.packages": BUNDLE.format(release),
        "spark.driver.memory": "1500m",
        # What a statement makes is garbage when it ends: the fewer collections, the less is copied.
        "spark.driver.extraJavaOptions": "-Xmn640m",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # Queries of a few rows never repay the Java that Spark writes and compiles for each of them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # for what `read` dumps
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }
    builder = SparkSession.builder.master(master).appName("apache-hudi")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    leave_permissions_alone(spark)
    return spark


def leave_permissions_alone(spark: SparkSession) -> None:
    """Have Java's file system be one that sets no permissions, as of the first that Hadoop keeps from now on."""
    jvm = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(LOCAL_FILES)
    settings = jvm.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    settings.setClassLoader(compiler.getClassLoader())
    settings.set("fs.file.impl", "LocalFiles")
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    kept = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI.create("file:///"), settings)
    assert kept.getClass().getName() == "LocalFiles", kept


class Server:
    """The commands, one method each."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def ping(self) -> dict[str, str]:
        """Say which Spark answers."""
        return {"spark": self.spark.version}

    def hadoop(self, settings: dict[str, str | None]) -> None:
        """Set Hadoop's options for the commands that follow; None unsets one."""
        configuration = self.spark.sparkContext._jsc.hadoopConfiguration()
        for key, value in settings.items():
            if value is None:
                configuration.unset(key)
            else:
                configuration.set(key, value)

    def write(self, table: str, rows: str, options: dict[str, str], mode: str, schema: str | None) -> None:
        """Write the rows of a Parquet file; they stay in the file's order, in one Spark partition.

        A schema, JSON, says which columns may not be null: all that is read from a file may be.
        """
        frame = self.spark.read.parquet(rows).coalesce(1)
        if schema is not None:
            session = self.spark._jsparkSession
            strict = session.createDataFrame(frame._jdf.toJavaRDD(), session.parseDataType(schema))
            frame = type(frame)(strict, self.spark)
        frame.write.format("hudi").options(**options).mode(mode).save(table)

    def write_sql(self, table: str, text: str, options: dict[str, str]) -> None:
        """Write what a query selects, which may have types that no file holds."""
        self.spark.sql(text).write.format("hudi").options(**options).mode("overwrite").save(table)

    def read(self, table: str, options: dict[str, str], out: str) -> None:
        """Dump what a query of the table returns, with the meta columns, as Parquet into the folder `out`."""
        self.spark.read.format("hudi").options(**options).load(table).coalesce(1).write.parquet(out)

    def write_stream(self, table: str, rows: str, schema: str, checkpoint: str, options: dict[str, str]) -> None:
        """Stream the files of JSON in the folder `rows` into a table, a file a batch, until nothing is left."""
        stream = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(rows)
        writer = stream.writeStream.format("hudi").options(**options).option("checkpointLocation", checkpoint)
        writer.outputMode("append").trigger(availableNow=True).start(table).awaitTermination()

    def read_stream(self, table: str, checkpoint: str, out: str, options: dict[str, str]) -> None:
        """Add what a stream of the table reads until nothing is left to the Parquet files in the folder `out`."""

        def add(frame: Any, number: int) -> None:
            frame.coalesce(1).write.mode("append").parquet(out)

        stream = self.spark.readStream.format("hudi").options(**options).load(table).writeStream.foreachBatch(add)
        stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()

    def types(self, table: str) -> dict[str, str]:
        """Name the Spark type of each column."""
        return {one.name: one.dataType.simpleString() for one in self.spark.read.format("hudi").load(table).schema}

    def archived(self, table: str) -> dict[str, str | None]:
        """Return what the archive says of each completed instant, by ``time.action``."""
        jvm = self.spark._jvm
        conf = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(
            self.spark.sparkContext._jsc.hadoopConfiguration()
        )
        builder = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        archive = builder.setConf(conf).setBasePath(table).build().getArchivedTimeline()
        archive.loadCompletedInstantDetailsInMemory()
        archived_bodies = {}
        for instant in archive.getInstants():
            if instant.isCompleted():
                # The method that returns the time has another name in each release.
                time = instant.toString().lstrip("[").partition("__")[0]
                body = archive.getInstantDetails(instant)
                archived_bodies[f"{time}.{instant.getAction()}"] = (
                    bytes(body.get()).decode() if body.isPresent() else None
                )
        return archived_bodies

    def sql(self, text: str) -> list[dict[str, Any]]:
        """Run one statement and return its rows; values that JSON lacks become text."""
        return [row.asDict(recursive=True) for row in self.spark.sql(text).collect()]


def causes_first(trace: str) -> str:
    """Put Java's causes before a stack trace of some thousand lines, of which a report shows the first."""
    causes = (line for line in trace.splitlines() if line.lstrip().startswith("Caused by:"))
    return "\n".join([*dict.fromkeys(causes), trace])


def main() -> None:
    """Answer until stdin ends."""
    folder, master, release = sys.argv[1:]
    # Java prints to stdout too, so the answers take a private copy of it and everything else goes to stderr.
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    server = Server(start_session(folder, master, release))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result = getattr(server, request.pop("command"))(**request)
            answer = {"ok": True, "result": result}
        except Exception:  # noqa: BLE001 - whatever went wrong is the answer
            answer = {"ok": False, "error": causes_first(traceback.format_exc())}
        print(json.dumps(answer, default=str), file=answers)


if __name__ == "__main__":
    main()
