"""The file groups that one task writes itself; it may append some rows to log files before it has seen all rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import pyarrow as pa

from ...storage.base import Storage
from ...table.arrow.spill import local_spills
from ...table.files.names import WriteToken
from ...writer.buffer import GroupRows
from ...writer.log_handle import LogHandle
from ...writer.routes import Route
from ...writer.written_file import WrittenFile
from ..locating.routing import FileGroups
from ..planning.plan import WritePlan
from ..transaction.fence import Fence
from .writers import file_work, versions_of_task, writers


class OwnGroups:
    def __init__(
        self,
        plan: WritePlan,
        token: WriteToken,
        groups: FileGroups,
        local: Storage,
    ) -> None:
        # The fence numbers tasks from 1, and the commit is 0.
        self._fence = Fence(plan.transaction, token.attempt + 1, partitions=groups.known_partitions)
        work = file_work(plan)
        slices = work.slices(groups.seen.timeline.is_committed, local_spills(local))
        self._writers = writers(plan, work, work.files(token, self._fence), slices, versions_of_task(plan, token))
        self._groups = groups
        self._partition = token.partition
        self._numbers = count()
        self._handles: dict[Route, LogHandle] = {}
        self.flushes = 0

    def routes(self) -> list[Route]:
        """Return the routes that have rows in log files already."""
        return list(self._handles)

    def appends(self, route: Route) -> bool:
        """Return whether the rows of a route go to log files, which any task may append to its file group."""
        return self._writers.appends(self._groups.job(route))

    def flush(self, route: Route, batches: Sequence[pa.RecordBatch]) -> bool:
        """Append rows that exceed the memory; return False, without effect, if they cannot be appended yet."""
        if not self.appends(route):
            return False
        handle = self._handles.get(route)
        if handle is None:
            handle = self._handles[route] = self._writers.open(self._groups.job(route), self._sequence())
        handle.append(GroupRows(memory=tuple(batches)), held=True)
        self.flushes += 1
        return True

    def announce(self, routes: Iterable[Route]) -> None:
        """Write the markers of the files of routes, in one request, before the files exist."""
        self._fence.announce(self._writers.first_file(self._groups.job(route)) for route in routes)

    def write(self, route: Route, rows: GroupRows) -> tuple[WrittenFile, ...]:
        """Write the rest of a route's rows, and publish its files."""
        handle = self._handles.get(route)
        if handle is None:
            return self._writers.write(self._groups.job(route), rows, self._sequence())
        if rows.rows:
            handle.append(rows, held=True)
        return handle.close()

    def finish(self) -> None:
        """If another process has given the write up, delete the files again and raise `WriteSealedError`."""
        self._fence.finish()

    def discard(self) -> None:
        """Discard log files that are not published."""
        for handle in self._handles.values():
            handle.discard()

    def _sequence(self) -> str:
        return f"{self._partition}_{next(self._numbers)}"
