"""What `HudiTable.stream` does with a batch whose write fails: repeat it, pass it over, or fail the query."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.connector.source.carried_options import parse_carried
from pyhudi.connector.source.paths import BATCH, QUERY_ID
from pyhudi.connector.table.made_from import MadeFrom
from pyhudi.connector.table.micro_batches import MicroBatches, QueryStoppingError, tell_stopping, write_batch
from pyhudi.errors import CommitConflictError, CorruptFileError, NullKeyError, StorageError
from pyhudi.operations.carried_values import spell
from pyhudi.operations.planning.micro_batch import plan_batch
from pyhudi.operations.result import CommitResult
from pyhudi.operations.streams.batch import LOST, StreamBatch
from pyhudi.operations.write.run import LocalRun
from pyhudi.options.parsing import parse_options
from pyhudi.options.sources import ResolvedOptions
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.drive import KEYED, rows_of, write
from support.seams import patch_seam

STREAMING = "hoodie.datasource.write.streaming."
QUICK = {f"{STREAMING}retry.count": "2", f"{STREAMING}retry.interval.ms": "1"}
IGNORING = {**QUICK, f"{STREAMING}ignore.failed.batch": "true"}
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
ROWS = SimpleNamespace(sparkSession=None, count=lambda: 7)
STORE_FAILED, BAD_ROW = StorageError("The store failed.", "Again."), NullKeyError("A key is null.", "Give keys.")
CALLING = "py4j.protocol.Py4JJavaError: An error occurred while calling"
JAVA = "\tat org.apache.spark.Anything.run(Anything.scala:1)\n" * 200


class Writes:
    """Writes that fail for a while, and what they got."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.batches: list[StreamBatch] = []

    def __call__(
        self, df: Any, path: str, storage: Any, resolved: ResolvedOptions, *, made_from: MadeFrom
    ) -> CommitResult:
        """Fail, or return a result."""
        assert made_from.batch is not None
        self.batches.append(made_from.batch)
        if self.errors:
            raise self.errors.pop(0)
        return CommitResult(path, "20261120224644250", "UPSERT")


@pytest.fixture
def table(tmp_path: Path) -> str:
    write(tmp_path / "t", pa.table({"id": ["a"], "ts": [1]}), table=KEYED)
    return str(tmp_path / "t")


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Writes]:
    def made(*errors: Exception) -> Writes:
        found = Writes(*errors)
        patch_seam(monkeypatch, "write the rows of a batch", found)
        return found

    return made


def test_a_batch_that_failed_is_repeated(table: str, writes: Callable[..., Writes]) -> None:
    made = writes(STORE_FAILED, RuntimeError("An executor is lost."))
    assert write_batch(ROWS, StreamBatch("q", 4), table, QUICK, 0) == 0
    assert [one.write_id for one in made.batches] == ["stream:q:4"] * 3


def test_a_batch_of_a_query_that_is_stopped_is_not_repeated(table: str, writes: Callable[..., Writes]) -> None:
    made = writes(STORE_FAILED)
    with pytest.raises(StorageError):
        write_batch(ROWS, StreamBatch("q", 4), table, IGNORING, 0, stopping=lambda: True)
    assert len(made.batches) == 1


def test_a_batch_that_keeps_failing_fails_the_query(table: str, writes: Callable[..., Writes]) -> None:
    made = writes(*[STORE_FAILED] * 3)
    with pytest.raises(StorageError):
        write_batch(ROWS, StreamBatch("q", 4), table, QUICK, 0)
    assert len(made.batches) == 3


def test_a_failed_batch_may_be_passed_over(
    table: str, writes: Callable[..., Writes], caplog: pytest.LogCaptureFixture
) -> None:
    writes(*[STORE_FAILED] * 3)
    assert write_batch(ROWS, StreamBatch("q", 4), table, IGNORING, 2) == 9
    assert caplog.records[-1].levelno == logging.WARNING
    assert "passed over the batch 4" in caplog.records[-1].getMessage()
    assert "7 of them" in caplog.records[-1].getMessage()


def test_a_batch_that_is_complete_is_not_lost_where_its_answer_was(
    table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def complete(df: Any, path: str, storage: Any, resolved: ResolvedOptions, *, made_from: MadeFrom) -> CommitResult:
        request = resolved.options.to_write_request(path, SCHEMA, overwrite=False, batch=made_from.batch)
        LocalRun(plan_batch(request)).write([pa.table({"id": ["b"], "ts": [2]}, SCHEMA).to_batches()])
        raise STORE_FAILED

    patch_seam(monkeypatch, "write the rows of a batch", complete)

    assert write_batch(ROWS, StreamBatch("q", 4), table, IGNORING, 2) == 0
    assert "the batch 4 is complete; its answer was lost" in caplog.text
    timeline = open_table(open_storage(table)).timeline()
    assert timeline.files.read_commit(timeline.writes[-1]).extra_metadata[LOST] == "2"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("[CAST_INVALID_INPUT] a row"),
        CorruptFileError("Damaged.", "Look."),
        CommitConflictError("M.", "A."),
    ],
)
def test_a_batch_that_may_be_bad_or_written_later_is_never_passed_over(
    table: str, writes: Callable[..., Writes], error: Exception
) -> None:
    writes(*[error] * 3)
    with pytest.raises(type(error)):
        write_batch(ROWS, StreamBatch("q", 4), table, IGNORING, 0)


def test_the_next_commit_says_how_many_rows_were_passed_over(table: str, writes: Callable[..., Writes]) -> None:
    made = writes()
    assert write_batch(ROWS, StreamBatch("q", 5), table, IGNORING, 9) == 0
    assert made.batches[0].lost == 9


@pytest.mark.parametrize(
    "error", [BAD_ROW, RuntimeError("java.lang.InterruptedException"), RuntimeError("[SPARK_JOB_CANCELLED] Job 3")]
)
def test_bad_rows_and_stops_are_neither_repeated_nor_passed_over(
    table: str, writes: Callable[..., Writes], error: Exception
) -> None:
    made = writes(error)
    with pytest.raises(type(error)):
        write_batch(ROWS, StreamBatch("q", 4), table, IGNORING, 0)
    assert len(made.batches) == 1


def test_spark_is_told_of_a_stop_in_few_words() -> None:
    with pytest.raises(QueryStoppingError) as raised, tell_stopping(7, "/lake/t", lambda: True):
        raise RuntimeError(f"{CALLING} o1.save.\n: [DATA_SOURCE_NOT_FOUND]\n{JAVA}")

    text = "".join(traceback.format_exception(raised.value))
    assert re.search(rf"{CALLING}((.|\r\n|\r|\n)*)java\.lang\.InterruptedException", text)
    assert len(text) < 1500
    assert JAVA not in text


@pytest.mark.parametrize(
    ("text", "stopping"),
    [(f"{CALLING} o1.save.\n: java.lang.InterruptedException\n{JAVA}", False), (str(BAD_ROW), True)],
    ids=["a running query", "an error of pyhudi"],
)
def test_any_other_error_of_a_batch_stays(text: str, stopping: bool) -> None:
    with pytest.raises(RuntimeError, match=re.escape(text)), tell_stopping(7, "/lake/t", lambda: stopping):
        raise RuntimeError(text)


@pytest.mark.parametrize("replaces_table", [False, True])
def test_a_batch_without_rows_empties_the_table_in_mode_complete_alone(table: str, replaces_table: bool) -> None:
    replaces = {"operation": "insert_overwrite_table"}
    batches = MicroBatches(table, replaces, "/checkpoint", replaces_table=replaces_table)
    properties = SimpleNamespace(getLocalProperty={QUERY_ID: "q"}.get)
    df: Any = SimpleNamespace(sparkSession=SimpleNamespace(_sc=properties))
    carried = parse_carried(StreamBatch, BATCH, spell(batches.batch(df, 4)))
    request = parse_options(replaces).to_write_request(table, SCHEMA, overwrite=False, batch=carried)

    LocalRun(plan_batch(request)).write([[]])

    assert rows_of(table, "id") == ([] if replaces_table else [("a",)])


class Reader:
    """Reads texts as Spark does."""

    def text(self, path: str) -> Any:
        """Return the lines of a file."""
        return SimpleNamespace(collect=lambda: [(line,) for line in Path(path).read_text().splitlines()])


def test_a_server_of_spark_connect_reads_the_id_of_a_query_in_its_checkpoint_folder(table: str, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "metadata").write_text('{"id": "q"}')
    df: Any = SimpleNamespace(sparkSession=SimpleNamespace(read=Reader()))

    assert MicroBatches(table, {}, f"{folder}/").batch(df, 4).write_id == "stream:q:4"
