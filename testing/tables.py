"""A table that is written and read without Spark, as Spark would call it: plan, tasks, commit or abort."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ..index.settings import LookupSettings
from ..operations.planning.plan import WritePlan, plan_write
from ..operations.planning.request import WriteRequest, WriteSettings
from ..operations.result import CommitResult
from ..operations.write.run import LocalRun
from ..operations.write.task import TaskResult
from ..reader.scan import scan
from ..reader.snapshot import open_snapshot
from ..storage import open_storage
from ..storage.base import Storage
from ..table.config.table_settings import TableSettings
from ..table.files.lost import WholeView, open_view
from ..table.table import open_table

ROWS = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.string())])
_ROWS_OF_A_BATCH = 7


@dataclass
class DrivenTable:
    """One table at a path of this machine.

    Attributes:
        path: Where it is.
        terms: What is said of it when it is made.
        write: How writes go about their work.
    """

    path: str
    terms: TableSettings
    settings: WriteSettings = field(default_factory=WriteSettings)

    @classmethod
    def keyed(
        cls, path: str, index: str, own: Mapping[str, str], table_type: str = "COPY_ON_WRITE", **terms: Any
    ) -> DrivenTable:
        """Return a table of the columns `ROWS`, which is keyed by id, partitioned by p and ordered by ts.

        Args:
            path: Where it is.
            index: Its index.
            own: The options of the index, ``hoodie.pyhudi.index.*`` without that prefix.
            table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
            terms: What is said of it besides, or otherwise.
        """
        known: dict[str, Any] = {
            "record_key_fields": ("id",),
            "partition_fields": ("p",),
            "ordering_fields": ("ts",),
            "index_type": index,
            "table_type": table_type,
            "bucket_count": 3 if index == "BUCKET" else None,
        }
        settings = WriteSettings(lookup=LookupSettings(own=dict(own)))
        return cls(path, TableSettings(**{**known, **terms}), settings)

    def plan(self, schema: pa.Schema, operation: str = "upsert", **settings: Any) -> WritePlan:
        """Plan a write, and send the plan through pickle, as Spark does.

        Args:
            schema: The incoming columns.
            operation: Hudi's name of it.
            settings: What is to be otherwise than in `settings`.
        """
        time.sleep(0.002)  # or two writes might begin in one millisecond
        request = WriteRequest(
            path=self.path,
            operation=operation,
            overwrite=False,
            schema=schema,
            table=self.terms,
            write=replace(self.settings, **settings),
        )
        planned: WritePlan = pickle.loads(pickle.dumps(plan_write(request)))  # noqa: S301 (made a moment ago)
        return planned

    def task(self, planned: WritePlan, rows: pa.Table, number: int) -> TaskResult:
        """Run one task of a write over its rows, some at a time.

        Args:
            planned: The write.
            rows: The task's rows.
            number: The task's place among the tasks of the write.
        """
        return LocalRun(planned).task(rows.to_batches(max_chunksize=_ROWS_OF_A_BATCH), number)

    def commit(self, planned: WritePlan, parts: Sequence[pa.Table]) -> CommitResult:
        """Run one task for each part, and finish the write."""
        return LocalRun(planned).write(rows.to_batches(max_chunksize=_ROWS_OF_A_BATCH) for rows in parts)

    def finish(self, planned: WritePlan, results: Callable[[], Sequence[TaskResult]]) -> CommitResult:
        """Commit what the tasks return; abort and raise where anything fails."""
        return LocalRun(planned).finish(results)

    def write(self, *parts: pa.Table, operation: str = "upsert", **settings: Any) -> CommitResult:
        """Write the parts, one task each.

        Args:
            parts: At least one.
            operation: Hudi's name of it.
            settings: What is to be otherwise than in `settings`.
        """
        return self.commit(self.plan(parts[0].schema, operation, **settings), parts)

    @property
    def storage(self) -> Storage:
        """The store, rooted at the table."""
        return open_storage(self.path)

    def view(self) -> WholeView:
        """Return the table's file slices as they are now."""
        storage = self.storage
        return open_view(open_table(storage).timeline())

    def read(self) -> pa.Table:
        """Return the table's rows with their meta columns, log files merged."""
        snapshot = open_snapshot(self.path)
        return pa.Table.from_batches(scan(snapshot), snapshot.schema)


def rows_of(*rows: tuple[str | None, str, int, str]) -> pa.Table:
    """Return rows of id, p, ts and value."""
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS)
