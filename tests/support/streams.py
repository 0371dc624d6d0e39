"""Micro-batches driven without Spark: the calls that it makes of a sink, each on copies that went through pickle."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyhudi.operations.planning.plan import WritePlan, plan_write
from pyhudi.operations.planning.request import TableSettings, WriteRequest, WriteSettings
from pyhudi.operations.result import CommitResult
from pyhudi.operations.streams.batch import StreamBatch
from pyhudi.operations.write.micro_batch import BatchResult, abort_batch, commit_batch, no_rows, run_batch_task
from pyhudi.storage import open_storage
from pyhudi.table.files.names import WriteToken
from pyhudi.table.table import Table, open_table
from support.attempts import SCHEMA
from support.drive import KEYED, rows_of
from support.places import Place
from support.write_settings import write_settings

T = TypeVar("T")

STREAMED = write_settings(hand_over=True, allow_empty_commit=False, retry_s=60.0)


def sent(value: T) -> T:
    """Return a copy as another process gets it."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


@dataclass
class DrivenQuery:
    """A streaming query into a table; `restarted` is its next run, with the same checkpoint folder."""

    path: Place
    table: TableSettings = KEYED
    query_id: str = "q1"
    run_id: str = "r1"
    identifier: str = "default_single_writer"
    settings: WriteSettings = STREAMED
    operation: str | None = None
    overwrite: bool = False
    schema: pa.Schema = field(default=SCHEMA)

    def restarted(self) -> DrivenQuery:
        return replace(self, run_id=f"{self.run_id}+")

    def planned(self) -> WritePlan:
        return sent(plan_write(self.request()))

    def request(self) -> WriteRequest:
        time.sleep(0.002)  # or two writes of one test might begin in one millisecond
        return WriteRequest(
            path=str(self.path),
            operation=self.operation,
            overwrite=self.overwrite,
            schema=self.schema,
            table=self.table,
            write=replace(self.settings, stream=replace(self.settings.stream, replaces_table=self.overwrite)),
        )

    def batch(self, number: int) -> StreamBatch:
        return StreamBatch(self.query_id, number, self.run_id, self.identifier)

    def tasks(
        self, number: int, parts: Sequence[pa.Table], planned: WritePlan | None = None, *, offsets: str = ""
    ) -> list[BatchResult]:
        """Run the tasks of a batch, and return their messages."""
        planned = planned or self.planned()
        return [
            sent(
                run_batch_task(
                    sent(planned),
                    self.batch(number),
                    iter(part.to_batches(max_chunksize=7)),
                    WriteToken(at, 1, 100 + at),
                    lambda: offsets,
                )
            )
            for at, part in enumerate(parts)
        ]

    def commit(self, messages: Sequence[BatchResult]) -> CommitResult:
        """Commit a batch as the sink does, which can plan it again."""
        return commit_batch(sent(messages), request=self.request)

    def run(self, number: int, *parts: pa.Table) -> CommitResult:
        """Write a batch; abort it as Spark does where its commit fails."""
        messages = self.tasks(number, parts)
        try:
            return self.commit(messages)
        except BaseException:
            abort_batch(sent(messages))
            raise


def write_batch(planned: WritePlan, parts: Sequence[pa.Table], batch: StreamBatch) -> CommitResult:
    """Write a batch by a plan, a task for each part."""
    tasks = [
        run_batch_task(planned, batch, iter(part.to_batches()), WriteToken(at, 0, at)) for at, part in enumerate(parts)
    ]
    return commit_batch(tasks or [no_rows(planned, batch)])


def query(path: Path, kind: str, **said: object) -> DrivenQuery:
    return DrivenQuery(path / "t", replace(KEYED, table_type=kind), **said)  # type: ignore[arg-type]


def opened(path: Path) -> Table:
    return open_table(open_storage(str(path / "t")))


def instants(path: Path) -> list[str]:
    return [one.requested_time for one in opened(path).timeline().writes]


def pending(path: Path) -> list[str]:
    return [one.requested_time for one in opened(path).timeline().pending]


def values(path: Path) -> list[tuple[object, ...]]:
    return rows_of(path / "t", "id", "value")
