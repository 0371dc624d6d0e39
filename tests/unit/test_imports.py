"""What each of the Python processes that Spark starts for a write or a read has to import before it can begin.

Spark starts a process to look the data source up, another to plan the write or read, one for each task, and one to
commit. None of them has imported anything of pyhudi before, and the first write or read of a session waits for each of
them in turn. A process without Spark, such as a function in the cloud, waits for its own imports in the same way.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Written to be run as one process after another, each of which hands over what Spark hands over.
STEP = """
import pickle, sys
from pathlib import Path
import pyarrow
import pyspark.sql.datasource
from pyspark import TaskContext

step, folder = sys.argv[1], Path(sys.argv[2])
before = set(sys.modules)


class Context:
    partitionId = stageId = taskAttemptId = lambda self: 0


if step == "look-up":
    import pyspark_pyhudi
elif step == "plan":
    from pyhudi.connector.datasource import PyHudiDataSource
    from pyspark.sql.types import LongType, StructField, StructType

    source = PyHudiDataSource({"path": str(folder / "t"), "recordkey": "id"})
    writer = source.writer(StructType([StructField("id", LongType())]), False)
    (folder / "writer").write_bytes(pickle.dumps(writer))
elif step == "task":
    TaskContext.get = lambda: Context()
    writer = pickle.loads((folder / "writer").read_bytes())
    message = writer.write(iter([pyarrow.record_batch({"id": [1, 2, 3]})]))
    (folder / "message").write_bytes(pickle.dumps(message))
elif step == "commit":
    writer = pickle.loads((folder / "writer").read_bytes())
    writer.commit([pickle.loads((folder / "message").read_bytes())])
elif step == "plan of a read":
    from pyhudi.connector.datasource import PyHudiDataSource
    from pyspark.sql.types import LongType, StructField, StructType

    source = PyHudiDataSource({"path": str(folder / "t")})
    reader = source.reader(StructType([StructField("id", LongType())]))
    (folder / "reader").write_bytes(pickle.dumps((reader, reader.partitions())))
elif step == "task of a read":
    reader, partitions = pickle.loads((folder / "reader").read_bytes())
    assert sum(batch.num_rows for one in partitions for batch in reader.read(one)) == 3
elif step == "start of a stream":
    from pyhudi.connector.datasource import PyHudiDataSource
    from pyspark.sql.types import LongType, StructField, StructType

    source = PyHudiDataSource({"path": str(folder / "t")})
    (folder / "stream").write_bytes(pickle.dumps(source.streamReader(StructType([StructField("id", LongType())]))))
elif step == "plan of a stream":
    from pyhudi.connector.datasource import PyHudiDataSource
    from pyspark.sql.streaming.datasource import ReadAllAvailable
    from pyspark.sql.types import LongType, StructField, StructType

    source = PyHudiDataSource({"path": str(folder / "t")})
    reader = source.streamReader(StructType([StructField("id", LongType())]))
    first = reader.initialOffset()
    planned = reader.partitions(first, reader.latestOffset(first, ReadAllAvailable()))
    (folder / "batch").write_bytes(pickle.dumps(planned))
elif step == "task of a stream":
    reader = pickle.loads((folder / "stream").read_bytes())
    partitions = pickle.loads((folder / "batch").read_bytes())
    assert sum(batch.num_rows for one in partitions for batch in reader.read(one)) == 3
elif step == "a table without Spark":
    from pyhudi.arrow import Table
elif step == "a read without Spark":
    from pyhudi.arrow import Table

    assert Table(folder / "t").read(where="id > 1").num_rows == 2
print(*sorted(set(sys.modules) - before))
"""

OTHER_STORES = {"fsspec", "asyncio", "pyhudi.storage.s3", "pyhudi.storage.remote"}
METADATA = {"fastavro", "pyhudi.timeline.metadata.models"}
OPTIONS = {"pyhudi.options.model", "pyhudi.options.parsing"}
WRITES = {"pyhudi.operations.planning.plan", "pyhudi.operations.write.run", "pyhudi.operations.upkeep.services"}
UNWANTED = {
    "look-up": {"pyarrow.parquet", "pyarrow.compute", "pydantic", "numpy"} | OTHER_STORES | METADATA | OPTIONS,
    "plan": {"pyarrow.parquet", "pyhudi.operations.write.task", "pyhudi.operations.write.commit"}
    | OTHER_STORES
    | METADATA,
    "task": {"pydantic", "pyhudi.operations.write.commit"} | OTHER_STORES | METADATA | OPTIONS,
    "commit": OTHER_STORES | OPTIONS | {"pyhudi.operations.services.clean", "pyhudi.operations.services.archive"},
    "plan of a read": {"pyarrow.parquet", "pandas"} | OTHER_STORES,
    "start of a stream": {"pyarrow.parquet", "pandas", "pyhudi.reader.snapshot"} | OTHER_STORES | METADATA,
    "plan of a stream": {"pyarrow.parquet", "pandas"} | OTHER_STORES,
    "task of a stream": {"pydantic", "pyhudi.index.registry", "pyhudi.reader.snapshot"}
    | OTHER_STORES
    | METADATA
    | OPTIONS,
    "task of a read": {"pydantic", "pyhudi.index.registry", "pyhudi.reader.snapshot"}
    | OTHER_STORES
    | METADATA
    | OPTIONS,
    "a table without Spark": {"pyarrow.parquet", "pyarrow.dataset", "pyhudi.reader.snapshot", "pyhudi.reader.scan"}
    | OTHER_STORES
    | METADATA
    | WRITES,
    "a read without Spark": {"pyarrow.dataset"} | OTHER_STORES | WRITES,
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What each step of one write and of a read after it imported."""
    folder = tmp_path_factory.mktemp("steps")
    modules_by_step = {}
    for step in UNWANTED:
        command = [sys.executable, "-c", STEP, step, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        modules_by_step[step] = set(done.stdout.split())
    assert len(list((Path(folder) / "t").rglob("*.parquet"))) > 0
    return modules_by_step


@pytest.mark.parametrize("step", UNWANTED)
def test_a_step_imports_only_what_it_needs(imported: dict[str, set[str]], step: str) -> None:
    assert "pyhudi.connector.datasource" in imported[step] or not step.startswith(("look-up", "plan"))
    assert not imported[step] & UNWANTED[step]
