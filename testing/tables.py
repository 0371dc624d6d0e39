"""A table that is written and read without Spark, by the calls that Spark makes: plan, tasks, commit or abort."""

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
    """A table at a local path.

    Attributes:
        path: The table's path.
        terms: The settings with which the first write makes the table.
        settings: How writes do their work.
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
            path: The table's path.
            index: Its index.
            own: The options of the index, ``hoodie.pyhudi.index.*`` without that prefix.
            table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
            terms: Further fields of `TableSettings`, or other values of them.

        Returns:
            The table, which does not exist before its first write.
        """
        defaults: dict[str, Any] = {
            "record_key_fields": ("id",),
            "partition_fields": ("p",),
            "ordering_fields": ("ts",),
            "index_type": index,
            "table_type": table_type,
            "bucket_count": 3 if index == "BUCKET" else None,
        }
        settings = WriteSettings(lookup=LookupSettings(own=dict(own)))
        return cls(path, TableSettings(**{**defaults, **terms}), settings)

    def plan(self, schema: pa.Schema, operation: str = "upsert", **settings: Any) -> WritePlan:
        """Plan a write, and send the plan through pickle, as Spark does.

        Args:
            schema: The incoming columns.
            operation: Hudi's name of the operation.
            settings: Fields of `settings` that this write changes.

        Returns:
            The plan as a task receives it.
        """
        time.sleep(0.002)  # no two writes may begin in one millisecond
        request = WriteRequest(
            path=self.path,
            operation=operation,
            overwrite=False,
            schema=schema,
            table=self.terms,
            write=replace(self.settings, **settings),
        )
        plan: WritePlan = pickle.loads(pickle.dumps(plan_write(request)))  # noqa: S301 (it pickled the plan itself)
        return plan

    def task(self, planned: WritePlan, rows: pa.Table, number: int) -> TaskResult:
        """Run one task of a write over its rows, a few rows at a time.

        Args:
            planned: The write's plan.
            rows: The task's rows.
            number: The task's place among the tasks of the write.

        Returns:
            What the task hands to the commit.
        """
        return LocalRun(planned).task(rows.to_batches(max_chunksize=_ROWS_OF_A_BATCH), number)

    def commit(self, planned: WritePlan, parts: Sequence[pa.Table]) -> CommitResult:
        """Run one task for each part, and finish the write.

        Args:
            planned: The write's plan.
            parts: The rows of each task.

        Returns:
            The result of the commit.
        """
        return LocalRun(planned).write(rows.to_batches(max_chunksize=_ROWS_OF_A_BATCH) for rows in parts)

    def finish(self, planned: WritePlan, results: Callable[[], Sequence[TaskResult]]) -> CommitResult:
        """Commit what the tasks return; abort and raise if anything fails.

        Args:
            planned: The write's plan.
            results: Runs the tasks and returns their results.

        Returns:
            The result of the commit.
        """
        return LocalRun(planned).finish(results)

    def write(self, *parts: pa.Table, operation: str = "upsert", **settings: Any) -> CommitResult:
        """Write the parts, each by a task of its own.

        Args:
            parts: The rows of each task; at least one part.
            operation: Hudi's name of the operation.
            settings: Fields of `settings` that this write changes.

        Returns:
            The result of the commit.
        """
        return self.commit(self.plan(parts[0].schema, operation, **settings), parts)

    @property
    def storage(self) -> Storage:
        """The store, rooted at the table."""
        return open_storage(self.path)

    def view(self) -> WholeView:
        """Return the table's file slices as they are now.

        Returns:
            A view that fails if a file is missing.
        """
        storage = self.storage
        return open_view(open_table(storage).timeline())

    def read(self) -> pa.Table:
        """Return the table's rows with their meta columns, log files merged.

        Returns:
            All rows.
        """
        snapshot = open_snapshot(self.path)
        return pa.Table.from_batches(scan(snapshot), snapshot.schema)


def rows_of(*rows: tuple[str | None, str, int, str]) -> pa.Table:
    """Return rows in the columns `ROWS`.

    Args:
        rows: Values of id, p, ts and value.

    Returns:
        The rows as a table.
    """
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS)
