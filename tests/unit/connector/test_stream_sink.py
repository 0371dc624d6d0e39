"""What the writer of a stream does in the process of the commit, which has no plan but that of the messages."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.connector.datasource import PyHudiDataSource
from pyhudi.connector.stream import sink
from pyhudi.connector.stream.sink import BatchMessage, HudiStreamWriter
from pyhudi.errors import CorruptFileError, NullKeyError, OptionConflictError, PyHudiError, StorageError
from pyhudi.operations.streams.batch import LOST, StreamBatch
from pyhudi.operations.write.micro_batch import run_batch_task
from pyhudi.storage import open_storage
from pyhudi.table.files.names import WriteToken
from pyhudi.table.table import open_table
from pyspark.sql.types import LongType, StringType, StructType
from support.drive import rows_of, write
from support.seams import patch_seam

SCHEMA = StructType().add("id", StringType()).add("ts", LongType())
IGNORES = {"hoodie.datasource.write.streaming.ignore.failed.batch": "true"}
ONCE = {"hoodie.datasource.write.streaming.retry.count": "0", "hoodie.pyhudi.write.retry.max.seconds": "0"}


def source(path: Path, **options: str) -> PyHudiDataSource:
    given = {"path": str(path / "t"), "recordkey": "id", "orderby": "ts", "hoodie.bucket.index.num.buckets": "2"}
    return PyHudiDataSource({**given, **options})


def planned(path: Path, overwrite: bool = False, **options: str) -> HudiStreamWriter:
    """Return the writer as tasks get it."""
    return pickle.loads(pickle.dumps(source(path, **options).streamWriter(SCHEMA, overwrite)))  # noqa: S301


def committing(path: Path, overwrite: bool = False, **options: str) -> HudiStreamWriter:
    """Return the writer in the process of the commit, where Spark has sent the source."""
    sent = pickle.loads(pickle.dumps(source(path, **options)))  # noqa: S301
    return sent.streamWriter(SCHEMA, overwrite)


def message(writer: HudiStreamWriter, number: int, *keys: str | None, run_id: str = "r") -> BatchMessage:
    assert writer._plan is not None
    batch = StreamBatch("q", number, run_id)
    batches = pa.table({"id": pa.array(keys, pa.string()), "ts": [number] * len(keys)}).to_batches()
    return BatchMessage(run_batch_task(writer._plan, batch, iter(batches), WriteToken(0, 0, 0)))


def keys(path: Path) -> list[object]:
    return [key for (key,) in rows_of(path / "t", "id")]


def test_the_process_of_the_commit_plans_nothing(tmp_path: Path) -> None:
    assert planned(tmp_path)._plan is not None
    assert planned(tmp_path)._options is None, "tasks import no model of options"
    assert committing(tmp_path)._plan is None


def test_a_batch_is_committed_by_its_messages(tmp_path: Path) -> None:
    done = message(planned(tmp_path), 0, "k1")
    committing(tmp_path).commit([done], 0)
    committing(tmp_path).abort([done], 0)

    assert keys(tmp_path) == ["k1"]


def test_a_batch_is_planned_again_by_the_options_in_the_process_of_the_commit(tmp_path: Path) -> None:
    fills = {"hoodie.datasource.write.reconcile.schema": "true"}
    committing(tmp_path).commit([message(planned(tmp_path), 0, "k1")], 0)
    done = message(planned(tmp_path, **fills), 1, "k1", "k2")
    write(tmp_path / "t", pa.table({"id": ["k1"], "ts": [0], "more": ["x"]}))
    committing(tmp_path, **fills).commit([done], 1)

    assert rows_of(tmp_path / "t", "id", "ts", "more") == [("k1", 1, None), ("k2", 1, None)]


def test_a_message_that_is_missing_fails_the_commit(tmp_path: Path) -> None:
    task_message = message(planned(tmp_path), 0, "k1")

    with pytest.raises(PyHudiError, match="1 of 2 tasks of the batch 0"):
        committing(tmp_path).commit([task_message, None], 0)


def test_an_abort_of_failed_tasks_finds_its_query_by_the_checkpoint_folder(tmp_path: Path) -> None:
    committing(tmp_path).commit([message(planned(tmp_path), 0, "k1")], 0)
    message(planned(tmp_path), 1, "k2")
    folder = tmp_path / "checkpoint"
    folder.mkdir()

    for checkpoint in ("", str(tmp_path / "absent"), str(folder)):
        committing(tmp_path, checkpointlocation=checkpoint).abort([None], 1)
        assert len(open_table(open_storage(str(tmp_path / "t"))).timeline().pending) == 1
    (folder / "metadata").write_text(json.dumps({"id": "q"}), encoding="utf-8")
    for _ in range(2):
        committing(tmp_path, checkpointlocation=f"file:{folder}").abort([None], 1)
        assert open_table(open_storage(str(tmp_path / "t"))).timeline().pending == ()


def test_a_commit_that_failed_is_passed_over_where_the_options_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    committing(tmp_path).commit([message(planned(tmp_path), 0, "k1")], 0)
    lost = message(planned(tmp_path, **ONCE), 1, "k2", "k3")

    def fail(*_: object) -> None:
        raise StorageError("The store is away.", "Wait.")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "pyhudi"):
        patch_seam(patch, "table that a commit merges with", fail)
        with pytest.raises(StorageError):
            committing(tmp_path).commit([lost], 1)
        committing(tmp_path, **IGNORES).commit([lost], 1)
    assert "passed over the batch 1, whose 2 rows are lost" in caplog.text

    committing(tmp_path, **IGNORES).commit([message(planned(tmp_path), 2, "k4")], 2)
    timeline = open_table(open_storage(str(tmp_path / "t"))).timeline()
    assert keys(tmp_path) == ["k1", "k4"]
    assert timeline.pending == ()
    assert timeline.files.read_commit(timeline.writes[-1]).extra_metadata[LOST] == "2"
    assert not [query for path, query in sink._LOST if path == str(tmp_path / "t")]


def test_a_batch_that_is_complete_is_not_lost_where_its_answer_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task_message = message(planned(tmp_path, **ONCE), 0, "k1")

    def fail(*_: object) -> None:
        raise StorageError("The store is away.", "Wait.")

    patch_seam(monkeypatch, "rows that streams lost since their last commits", {(str(tmp_path / "t"), "q"): 2})
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "pyhudi"):
        patch_seam(patch, "result of a completed commit", fail)
        committing(tmp_path, **IGNORES).commit([task_message], 0)

    assert "the batch 0 is complete; its answer was lost" in caplog.text
    assert keys(tmp_path) == ["k1"]
    assert not [query for path, query in sink._LOST if path == str(tmp_path / "t")]


def test_bad_rows_are_never_passed_over(tmp_path: Path) -> None:
    with pytest.raises(NullKeyError):
        message(planned(tmp_path, **IGNORES), 0, None)


def test_a_damaged_table_is_never_passed_over(tmp_path: Path) -> None:
    """It would take each later batch, too."""
    committing(tmp_path).commit([message(planned(tmp_path), 0, "k1")], 0)
    for base in (tmp_path / "t").glob("*.parquet"):
        base.write_bytes(base.read_bytes()[:200])

    with pytest.raises(CorruptFileError):
        committing(tmp_path, **IGNORES).commit([message(planned(tmp_path), 1, "k1")], 1)


def test_an_older_batch_is_never_passed_over(tmp_path: Path) -> None:
    late = message(planned(tmp_path), 1, "k1")
    committing(tmp_path).commit([message(planned(tmp_path), 2, "k2", run_id="s")], 2)

    with pytest.raises(OptionConflictError):
        committing(tmp_path, **IGNORES).commit([late], 1)


def test_a_batch_without_tasks_empties_the_table_in_mode_complete(tmp_path: Path) -> None:
    committing(tmp_path, overwrite=True).commit([message(planned(tmp_path, overwrite=True), 0, "k1")], 0)

    committing(tmp_path).commit([], 1)
    assert keys(tmp_path) == ["k1"]
    committing(tmp_path, overwrite=True).commit([], 1)
    assert keys(tmp_path) == []


def test_mode_complete_replaces_partitions_without_new_rows_whatever_mode_overwrite_does(tmp_path: Path) -> None:
    options = {"hoodie.datasource.overwrite.mode": "DYNAMIC", "partitionby": "ts"}
    for number, those in enumerate((("k1", "k2"), ("k2",), ())):
        done = message(planned(tmp_path, overwrite=True, **options), number, *those)
        committing(tmp_path, overwrite=True, **options).commit([done], number)
        assert keys(tmp_path) == list(those)
    committing(tmp_path).commit([message(planned(tmp_path), 3, "k3")], 3)
    other = source(tmp_path, **options).streamWriter(StructType().add("id", StringType()).add("ts", StringType()), True)
    assert other._plan is not None
    assert other._plan.schema.field("ts").type == pa.string(), "it replaces the columns, too"

    with pytest.raises(OptionConflictError, match="mode complete"):
        planned(tmp_path, overwrite=True, operation="insert_overwrite")


@pytest.mark.parametrize("key", ["hoodie.pyhudi.write.id", "hoodie.pyhudi.write.based.on"])
def test_options_of_one_write_are_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(OptionConflictError, match=key):
        planned(tmp_path, **{key: "20260101000000000"})
