"""Compactions: merge the log files of file slices with their base files into the next base files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ....index.registry import has_buckets, noted_index_for
from ....storage.threads import for_each
from ....table.buckets.numbers import BucketNumbers, bucket_numbers
from ....table.files.file_group import FileSlice
from ....table.files.names import FileGroupId
from ....table.files.slice_rule import slice_rule
from ....table.keys.generator import KeyGenerator
from ....table.schema.columns import FILE_NAME, with_meta
from ....timeline.held import COMPACTION
from ....timeline.instants import Instant
from ....timeline.metadata.codec import SORTED, WRITE_ID
from ....timeline.timeline import Timeline
from ....writer.data_files import write_base_file
from ....writer.foreign import ForeignRows
from ...meeting import concurrency
from ...service_settings import CompactionSettings
from ...transaction.file_work import FileWork
from ..unit_execution import UnitResult
from .choice import choose_partitions, choose_slices
from .plan import BARE_NAMES, Plan, check_complete, named_slices, operations_of
from .slice_worker import SliceWorker, is_foreign, unread_columns
from .slices import SliceService

if TYPE_CHECKING:
    from ....timeline.metadata.models import CompactionPlan


class Compaction(SliceService[CompactionSettings]):
    """Merges log files into base files.

    A plan names exactly the log files that completed before its requested time. Log files that complete later belong to
    the slice that the plan begins.
    """

    action = COMPACTION
    kind = concurrency.COMPACTION
    name = "compaction"
    call = "compact"
    does = "merges {:,} bytes of base and log files"

    @cached_property
    def _order_by_plan(self) -> dict[str, str]:
        """The sort orders of those pending plans that are sorts, by requested time."""
        return {}

    @property
    def due_after(self) -> int:
        return self.settings.delta_commits

    def plan(self, timeline: Timeline) -> Plan | None:
        """Return the slices with log files that the strategy of the settings chooses; None for no slice."""
        slices = self.slices.find(timeline, partial(choose_partitions, self.settings))
        return self.fits(choose_slices(self.settings, slices), timeline)

    def requested(self, plan: Plan) -> CompactionPlan:
        """Return the body of the requested compaction, which names the files of each slice."""
        from ....timeline.metadata.models import CompactionPlan  # noqa: PLC0415 (see timeline/instant_files.py)

        return CompactionPlan(
            operations=operations_of(plan), extra_metadata={}, version=BARE_NAMES, missing_schedule_partitions=[]
        )

    def read_plan(self, timeline: Timeline, instant: Instant) -> Plan:
        """Return the slices that a pending compaction merges; raises for a plan that would lose rows of a log file."""
        plan, listings, extra = named_slices(timeline, instant)
        if SORTED in extra:
            self._order_by_plan[instant.requested_time] = extra[SORTED]
        check_complete(timeline, instant, plan, listings)
        return plan

    def worker(self, files: FileWork, timeline: Timeline, plan: Plan) -> Compactor:
        """Return what merges the slices of a plan, and what it notes in the completed instant."""
        output, config = files.output, files.transaction.config
        # If no property names the index, it was inferred from the files: write bloom filters as Apache Hudi does then
        # (see planning/plan.py).
        if output.bloom_filter is None and config.index_type != self.table.config.index_type:
            files = replace(files, output=replace(output, bloom_filter=True))
        numbers = bucket_numbers(self.table, timeline) if has_buckets(config) else None
        order = self._order_by_plan.get(files.transaction.instant_time)
        # The user may have removed the table's order since the plan of a sort.
        notes = {SORTED: order} if order is not None and config.sort_order is not None else {}
        return Compactor(files, foreign=foreign_logs(timeline, plan), numbers=numbers, notes=notes)


@dataclass(frozen=True, slots=True)
class Compactor(SliceWorker):
    """Merges slices into base files; another engine may have written log files of the `foreign` groups.

    By `numbers` it checks that the keys of other engines are in the right bucket.
    """

    foreign: frozenset[FileGroupId]
    numbers: BucketNumbers | None
    operation = "COMPACT"

    def execute(self, unit: FileSlice) -> UnitResult[FileSlice]:
        """Merge one slice into a base file.

        It checks the keys of rows that another engine may have written, and decodes all columns of such rows.
        """
        began = time.monotonic()
        with self.opened(unit) as (merged, files):
            columns = pa.schema([column for column in with_meta(self.files.schema) if column.name != FILE_NAME])
            foreign = self._foreign(unit)
            rows = merged.batches(
                columns, dictionaries=frozenset() if foreign else unread_columns(columns, self.work.config)
            )
            if foreign is not None:
                rows = foreign.checked(rows, unit)
            form = replace(self.files.form(), stamped=foreign is None or foreign.index is not None)
            written = write_base_file(files, unit, form, rows)
        return self.result(unit, merged, began, replace(written, counts=merged.counts.merge))

    def _foreign(self, file_slice: FileSlice) -> ForeignRows | None:
        """Return the checker of a slice's rows; None if pyhudi wrote all of its files.

        The merged file gets the stamp by which later writes trust its keys, unless the properties do not name the
        index.
        """
        if not is_foreign(self.work.storage, file_slice, self.foreign):
            return None
        config = self.work.config
        keys = None if config.generates_keys else KeyGenerator(config, self.files.schema)
        return ForeignRows(noted_index_for(config, self.numbers), keys)


def foreign_logs(timeline: Timeline, plan: Sequence[FileSlice]) -> frozenset[FileGroupId]:
    """Return the file groups of a plan with log files that pyhudi may not have written, as those of archived writes."""
    makers = partial(slice_rule(timeline).makers, completed=timeline)
    times = makers(log for file_slice in plan for log in file_slice.logs)
    writes = [instant for instant in timeline.writes if instant.requested_time in times]
    bodies = for_each(timeline.storage, timeline.files.read_summary, writes)
    pairs = zip(writes, bodies, strict=True)
    # Each write of pyhudi notes its id.
    own_times = {instant.requested_time for instant, body in pairs if WRITE_ID in body.extra_metadata}
    return frozenset(file_slice.group for file_slice in plan if not makers(file_slice.logs) <= own_times)
