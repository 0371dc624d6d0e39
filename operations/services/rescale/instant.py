"""One instant of a rescale: requests it, waits for writes at work, makes it inflight, divides rows, completes it."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ....errors import CommitConflictError
from ....index.bucket import BucketIndex
from ....table.buckets.numbers import bucket_numbers, expression_of, refuse_unknown
from ....table.buckets.rules import BucketRule, path_of
from ....table.files.file_group import FileSlice
from ....table.files.read_written import read_written
from ....table.files.view import FileView
from ....table.latest_schema import columns_of, latest_schema
from ....timeline.instants import State
from ....timeline.rescales import KEY, OPERATION, PENDING_OPERATION, REPLACE_COMMIT, Rescale
from ....timeline.timeline import Timeline
from ....version import VERSION
from ....writer.written_file import WrittenFile
from ...meeting.concurrency import (
    RESCALE,
    RESTORE,
    ROLLBACK,
    WRITE,
    Asked,
    Known,
    Meeting,
    Shared,
    all_shared,
    forbids,
    known_of,
)
from ...meeting.since import InstantsSincePlan
from ...meeting.transaction import Transaction
from ...result import ServiceResult
from ...rollback.pending import OtherWriters
from ...transaction.abort import abort
from ...transaction.bucket_rules import show_rule, steps_of_rule
from ...transaction.claimed import begin_claimed
from ...transaction.file_work import FileWork
from ...transaction.life import Made, Ownership, live
from ...transaction.outcome import CommitBody, Outcome
from ...transaction.write_stats import commit_metadata
from ..compaction.compactor import foreign_logs
from ..compaction.slice_worker import MADE_BY
from ..execution import check_claim, files_of_process
from ..means import Means
from ..unit_execution import execute_units
from .beside import InstantsBeside
from .due import WantedNumber
from .rescaler import Rescaler
from .units import RescaleUnit, finished_units, gathering_units, units_of

if TYPE_CHECKING:
    from ....timeline.metadata.models import RequestedReplaceMetadata

# Apache Hudi refuses rules without an expression.
_ANY = "^"


@dataclass(frozen=True, slots=True)
class RescaleCompletion:
    """A rescale whose rows are divided, and how it completes.

    Attributes:
        work: Its instant, whose watermark is the moment at which it read.
        sources: The slices that it read and replaces.
        partitions: The partitions that the table had when the call looked.
        everywhere: Whether the caller wants the number for all partitions, future partitions included.
    """

    work: Transaction
    rescale: Rescale
    schema: pa.Schema
    sources: Sequence[FileSlice]
    written: Sequence[WrittenFile]
    partitions: Collection[str]
    everywhere: bool

    def outcome(self, timeline: Timeline) -> Outcome | None:
        """Return the outcome on a timeline; None if the rescale is complete. Raises `CommitConflictError`."""
        own_instant = timeline.find(self.work.instant_time)
        if own_instant is not None and own_instant.state == State.COMPLETED:
            return None
        check_claim(self.work, timeline)
        instants_since = InstantsSincePlan.find(self.work, timeline)
        changed_partitions = self._partitions_changed_since(instants_since)
        replaced = [source.group for source in self.sources]
        rule_steps = steps_of_rule(self.work.table, self._rule(timeline, changed_partitions))
        return Outcome(self._body(), self.written, replaced=replaced, first=(rule_steps,))

    def _partitions_changed_since(self, instants_since: InstantsSincePlan) -> set[str]:
        """Return the partitions that other writes changed since the rescale read.

        Raises `CommitConflictError` if one of them is a partition that the rescale divides, or if what it read was
        undone.
        """
        files = (file for source in self.sources for file in source.data_files)
        base_times = self.work.table.format.makers(files, instants_since.timeline)
        changed_partitions: set[str] = set()
        for instant in instants_since.writes:
            body = instants_since.read(instant)
            touched_partitions = {*body.partition_to_write_stats, *body.replaced}
            held_partition = self.rescale.first_held(touched_partitions)
            if self._forbids(WRITE, {Shared.PARTITION: held_partition is not None}):
                raise self._stale_error(
                    f"the {instant.action} {instant.requested_time} changed the partition {held_partition!r}"
                )
            changed_partitions |= touched_partitions
        for undone in instants_since.undone_writes():
            if self._forbids(ROLLBACK, {Shared.BASIS: undone.instant_time in base_times}, undone.state):
                raise self._stale_error(f"the write {undone.instant_time}, whose rows it has read, was rolled back")
        if instants_since.restore is not None and self._forbids(RESTORE, {}, known_of(instants_since.restore)):
            raise self._stale_error(
                f"the restore {instants_since.restore.requested_time} took the table back to an earlier moment"
            )
        return changed_partitions

    def _forbids(self, theirs: object, shared: Mapping[Shared, object], their_state: Known = Known.COMPLETED) -> bool:
        """Return whether an instant that came since the rescale read forbids to complete the rescale."""
        meeting = Meeting(RESCALE, theirs, their_state, all_shared(shared), Asked.SINCE_PLAN)  # type: ignore[arg-type]
        return forbids(meeting)

    def _stale_error(self, what: str) -> CommitConflictError:
        """Return the error for a rescale that read rows which another instant has changed since."""
        return CommitConflictError(
            f"The rescale {self.work.instant_time} of the table {self.work.path} is not completed: {what} meanwhile.",
            "This rescale left nothing behind; run it again.",
        )

    def _rule(self, timeline: Timeline, changed_partitions: Collection[str]) -> BucketRule:
        """Return the rule with the numbers of all partitions, in as few expressions as possible.

        Raises `UnsupportedTableError` if the numbers before the rescale have become unknown meanwhile.
        """
        number, numbers_now = self.rescale.buckets, bucket_numbers(self.work.table, timeline)
        refuse_unknown(numbers_now)
        same_everywhere = BucketRule(self.work.instant_time, number)
        if self.rescale.partitions is None or numbers_now.rule is None:
            return same_everywhere
        other_paths = [path for path in {*self.partitions, *changed_partitions} if not self.rescale.holds(path)]
        default, expressions = _reachable_part(numbers_now.rule)
        names_paths_alone = all(path_of(expression) is not None for expression, _ in expressions)
        if (self.everywhere or names_paths_alone) and all(numbers_now.of(path) == number for path in other_paths):
            # Writes may have added partitions since.
            partitions = FileView(timeline, read_written(timeline)).partitions()
            if all(numbers_now.of(path) == number for path in partitions if not self.rescale.holds(path)):
                return same_everywhere
        # In a rule the first expression that finds a partition decides, so the new expressions come first.
        own_expressions = tuple((expression_of(path), number) for path in self.rescale.partitions)
        paths = {*self.rescale.partitions}
        kept_expressions = tuple(pair for pair in expressions if path_of(pair[0]) not in paths)
        return replace(same_everywhere, default=default, expressions=(*own_expressions, *kept_expressions))

    def _body(self) -> CommitBody:
        """Return the body of the completed instant, with the replaced file groups and the rescale itself."""
        work = self.work
        replaced: dict[str, list[str]] = {}
        for source in sorted(self.sources, key=lambda file_slice: file_slice.group):
            replaced.setdefault(source.partition_path, []).append(source.file_id)
        notes = {MADE_BY: VERSION, KEY: self.rescale.spell()}
        metadata = commit_metadata(work, self.schema, self.written, OPERATION, notes, replaced=replaced)
        return CommitBody(metadata, work.table)


def _reachable_part(rule: BucketRule) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return a rule's default and expressions without those behind the expression that every path matches."""
    texts = [text for text, _ in rule.expressions]
    if _ANY not in texts:
        return rule.default, rule.expressions
    position = texts.index(_ANY)
    return rule.expressions[position][1], rule.expressions[:position]


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
        instants_beside = InstantsBeside(OtherWriters(table, means.patience), rescale, means.wait_s)
        requested = partial(self._requested, instants_beside, rescale)
        work = begin_claimed(table, REPLACE_COMMIT, means.patience, means.application, requested)
        units = partial(self._divide, replace(instants_beside, own_time=work.instant_time), rescale, partitions)
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

    def _requested(
        self, instants_beside: InstantsBeside, rescale: Rescale, timeline: Timeline
    ) -> RequestedReplaceMetadata:
        """Return the body of the requested rescale; raise if the table does not allow it, or has unknown numbers."""
        from ....timeline.metadata.models import RequestedReplaceMetadata  # noqa: PLC0415 (see timeline/instant_files.py)

        instants_beside.refuse(timeline)
        # Apache Hudi fails if it finds no rule but that of a pending rescale.
        show_rule(self.wanted.table, timeline, self.wanted.numbers(timeline))
        return RequestedReplaceMetadata(operation_type=PENDING_OPERATION, extra_metadata={KEY: rescale.spell()})

    def _divide(
        self, instants_beside: InstantsBeside, rescale: Rescale, partitions: Sequence[str], work: Transaction
    ) -> tuple[ServiceResult, Made]:
        """Divide the rows among the new buckets; return the result of the instant, and what completes the instant.

        The watermark of the returned transaction is the moment at which the rows were read.

        Args:
            instants_beside: The other instants, for some of which the rescale waits before it reads.
            rescale: The new number of buckets, and the partitions that get it.
            partitions: The partitions that the table had when the call looked.
            work: The claimed instant of the rescale, which is only requested yet.
        """
        timeline = instants_beside.begin_reading(work)
        work = replace(work, watermark=timeline.watermark())
        slices, changes = self.wanted.slices_and_changes(timeline, rescale.partitions)
        sources = [file_slice for path in changes for file_slice in slices[path]]
        # `columns_of` raises for a table without columns, which may have no rows to divide yet.
        schema_of = columns_of if sources else partial(latest_schema, writing=True)
        schema = schema_of(work.config, timeline) or pa.schema([])
        units = [
            unit for change in changes.values() for unit in units_of(change, slices[change.partition_path], work.path)
        ]
        counts = work.table.format.slices.counting(timeline)
        files = FileWork(work, schema, self.means.output, self.means.logs, counts=counts)
        written = self._execute(Rescaler(files, self.index, foreign_logs(timeline, sources)), units)
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

    def _execute(self, rescaler: Rescaler, units: Sequence[RescaleUnit]) -> list[WrittenFile]:
        """Execute units: first those that divide slices into spills, then those that write the new buckets' files."""
        execute = partial(execute_units, rescaler, means=self.means, name="rescale", finished=finished_units)
        divided = execute([unit for unit in units if unit.divides])
        spills = [(result.unit, result.spill) for result in divided if result.spill is not None]
        results = execute([*(unit for unit in units if not unit.divides), *gathering_units(spills)])
        return [file for result in results for file in result.written]
