"""One instant of a rescale: requests it, waits for writes at work, makes it inflight, divides rows, completes it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ....index.bucket import BucketIndex
from ....table.latest_schema import columns_of, latest_schema
from ....timeline.rescales import KEY, PENDING_OPERATION, REPLACE_COMMIT, Rescale
from ....timeline.timeline import Timeline
from ....writer.written_file import WrittenFile
from ...result import ServiceResult
from ...rollback.pending import OtherWriters
from ...transaction.abort import abort
from ...transaction.bucket_rules import show_rule
from ...transaction.claimed import begin_claimed
from ...transaction.file_work import FileWork
from ...transaction.life import Made, Ownership, live
from ...transaction.transaction import Transaction
from ..compaction.compactor import foreign_logs
from ..execution import files_of_process
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
# No other process continues a rescale. Its tasks name their files as tasks of a plan do.
_THIS_PROCESS = Ownership(files_of_process, abort)


@dataclass(frozen=True, slots=True)
class RescaleInstant:
    """Carries out instants of one call."""

    wanted: WantedNumber
    index: BucketIndex
    means: Means

    def carry_out(self, rescale: Rescale, partitions: Sequence[str]) -> ServiceResult:
        """Rescale partitions in one instant; the table had the ``partitions`` when the call looked."""
        table, means, began = self.wanted.table, self.means, time.monotonic()
        beside = Beside(OtherWriters(table, means.patience), rescale, means.wait_s)
        requested = partial(self._requested, beside, rescale)
        work = begin_claimed(table, REPLACE_COMMIT, means.patience, means.application, requested)
        units = partial(self._units, replace(beside, own=work.instant_time), rescale, partitions)
        result, _ = live(work, work.heartbeat(), units, _THIS_PROCESS)
        logger.info(
            "table %s: the rescale %s gave %d partitions %d buckets: %d file groups became %d",
            table.path,
            work.instant_time,
            result.partitions,
            self.wanted.n,
            result.file_groups,
            result.new_file_groups,
        )
        return replace(result, seconds=time.monotonic() - began)

    def _requested(self, beside: Beside, rescale: Rescale, timeline: Timeline) -> RequestedReplaceMetadata:
        from ....timeline.metadata.models import RequestedReplaceMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

        beside.refuse(timeline)
        show_rule(self.wanted.table, timeline, self.wanted.numbers(timeline))
        return RequestedReplaceMetadata(operation_type=PENDING_OPERATION, extra_metadata={KEY: rescale.spell()})

    def _units(
        self, beside: Beside, rescale: Rescale, partitions: Sequence[str], work: Transaction
    ) -> tuple[ServiceResult, Made]:
        """Divide the rows; the watermark of the returned transaction is the moment at which they were read."""
        timeline = beside.begin_reading(work)
        work = replace(work, watermark=timeline.watermark())
        slices, changes = self.wanted.due(timeline, rescale.partitions)
        sources = [file_slice for path in changes for file_slice in slices[path]]
        schema_of = columns_of if sources else partial(latest_schema, writing=True)
        schema = schema_of(work.config, timeline) or pa.schema([])
        units = [
            unit for change in changes.values() for unit in units_of(change, slices[change.partition_path], work.path)
        ]
        counts = work.table.format.slices.counting(timeline)
        files = FileWork(work, schema, self.means.output, self.means.logs, counts=counts)
        written = self._written(Rescaler(files, self.index, foreign_logs(timeline, sources)), units)
        completion = RescaleCompletion(
            work, rescale, schema, sources, written, partitions, everywhere=self.wanted.partitions is None
        )
        result = ServiceResult(
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
        return result, Made(work, {file.path for file in written}, sorted(changes), completion.outcome)

    def _written(self, rescaler: Rescaler, units: Sequence[RescaleUnit]) -> list[WrittenFile]:
        execute = partial(execute_units, rescaler, means=self.means, name="rescale", finished=finished_units)
        divided = execute([unit for unit in units if unit.divides])
        spills = [(result.unit, result.spill) for result in divided if result.spill is not None]
        results = execute([*(unit for unit in units if not unit.divides), *gathering_units(spills)])
        return [file for result in results for file in result.written]
