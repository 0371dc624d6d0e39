"""One instant of a rescale: requested, waiting for what is at work, inflight, dividing rows, completed."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ....errors import UnsupportedTableError
from ....index.bucket import BucketIndex
from ....table.latest_schema import latest_schema
from ....timeline.rescales import KEY, PENDING_OPERATION, REPLACE_COMMIT, Rescale
from ....timeline.timeline import Timeline
from ....writer.written_file import WrittenFile
from ...result import ServiceResult
from ...rollback.pending import OtherWriters
from ...transaction.abort import abort
from ...transaction.bucket_rules import show_rule
from ...transaction.claimed import begin_claimed
from ...transaction.commit_path import complete
from ...transaction.file_work import FileWork
from ...transaction.left_overs import try_to_forget
from ...transaction.transaction import Transaction
from ..compaction.compactor import foreign_logs
from ..execution import close
from ..means import Means
from ..unit_execution import execute_units
from .beside import Beside
from .completion import RescaleCompletion
from .due import WantedNumber
from .rescaler import Rescaler
from .units import RescaleUnit, finished_units, gathering_units, units_of

if TYPE_CHECKING:
    from ....timeline.metadata.models import RequestedReplaceMetadata

logger = logging.getLogger("pyhudi")

NAME = "rescale_buckets"


@dataclass(frozen=True, slots=True)
class RescaleInstant:
    """Carries out instants of one call."""

    wanted: WantedNumber
    index: BucketIndex
    means: Means

    def carry_out(self, rescale: Rescale, there: Sequence[str]) -> ServiceResult:
        """Rescale what the table has by then of some partitions; it had the partitions ``there`` a while ago."""
        table, means, began = self.wanted.table, self.means, time.monotonic()
        beside = Beside(OtherWriters(table, means.patience), rescale, means.wait_s)
        requested = partial(self._requested, beside, rescale)
        work = begin_claimed(table, REPLACE_COMMIT, means.patience, means.application, requested)
        try:
            with work.heartbeat():
                timeline = replace(beside, own=work.instant_time).begin_reading(work)
                done = self._completed(replace(work, watermark=timeline.watermark()), rescale, timeline, there)
        except BaseException:
            self._give_up(work)
            raise
        try_to_forget(work.storage, work.instant_time)
        logger.info(
            "table %s: the rescale %s gave %d partitions %d buckets: %d file groups became %d",
            table.path,
            work.instant_time,
            done.partitions,
            self.wanted.n,
            done.file_groups,
            done.new_file_groups,
        )
        return replace(done, seconds=time.monotonic() - began)

    def _requested(self, beside: Beside, rescale: Rescale, timeline: Timeline) -> RequestedReplaceMetadata:
        from ....timeline.metadata.models import RequestedReplaceMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

        beside.refuse(timeline)
        show_rule(self.wanted.table, timeline, self.wanted.numbers(timeline))
        return RequestedReplaceMetadata(operation_type=PENDING_OPERATION, extra_metadata={KEY: rescale.spell()})

    def _give_up(self, work: Transaction) -> None:
        try:
            abort(work)
        except Exception:
            logger.warning(
                "table %s: the remains of the rescale %s stay until the next write",
                work.path,
                work.instant_time,
                exc_info=True,
            )

    def _completed(
        self, work: Transaction, rescale: Rescale, timeline: Timeline, there: Sequence[str]
    ) -> ServiceResult:
        slices, changes = self.wanted.due(timeline, rescale.partitions)
        sources = [file_slice for path in changes for file_slice in slices[path]]
        schema = latest_schema(work.config, timeline, writing=True)
        if schema is None and sources:
            raise UnsupportedTableError(
                f"No commit names the columns of the table {work.path}.", "Write to the table once, then rescale it."
            )
        schema = schema or pa.schema([])
        units = [
            unit for change in changes.values() for unit in units_of(change, slices[change.partition_path], work.path)
        ]
        counts = work.table.format.slices.counting(timeline)
        files = FileWork(work, schema, self.means.output, self.means.logs, counts=counts)
        written = self._written(Rescaler(files, self.index, foreign_logs(timeline, sources)), units)
        # The claim goes once the rescale is complete, and the time stays taken.
        work.seal.set(work.key)
        close(work, sorted(changes), {file.path for file in written})
        completion = RescaleCompletion(
            work, rescale, schema, sources, written, there, everywhere=self.wanted.partitions is None
        )
        complete(work.table, work.inflight, completion.outcome)
        return ServiceResult(
            work.path,
            NAME,
            work.instant_time,
            partitions=len(changes),
            file_groups=len(sources),
            new_file_groups=len(written),
            files=len(written),
            bytes=sum(file.size for file in written),
            bytes_read=sum(file_slice.size for file_slice in sources),
        )

    def _written(self, rescaler: Rescaler, units: Sequence[RescaleUnit]) -> list[WrittenFile]:
        execute = partial(execute_units, rescaler, means=self.means, name="rescale", finished=finished_units)
        divided = execute([unit for unit in units if unit.divides])
        spills = [(result.unit, result.spill) for result in divided if result.spill is not None]
        done = execute([*(unit for unit in units if not unit.divides), *gathering_units(spills)])
        return [file for result in done for file in result.written]
