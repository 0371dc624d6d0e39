"""The completion of a rescale: its completed file, and the rule of buckets that is made before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ....errors import CommitConflictError
from ....table.bucket_numbers import bucket_numbers, expression_of, refuse_unknown
from ....table.bucket_rules import BucketRule, path_of
from ....table.files.file_group import FileSlice
from ....table.files.read_written import read_written
from ....table.files.view import FileView
from ....timeline.instants import State
from ....timeline.rescales import KEY, OPERATION, Rescale
from ....timeline.timeline import Timeline
from ....version import VERSION
from ....writer.written_file import WrittenFile
from ...transaction.body import CommitBody
from ...transaction.bucket_rules import steps_of_rule
from ...transaction.concurrency import (
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
from ...transaction.outcome import Outcome
from ...transaction.since import Since
from ...transaction.transaction import Transaction
from ...transaction.write_stats import commit_metadata
from ..compaction.slice_worker import MADE_BY
from ..execution import check_claim

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
        own = timeline.find(self.work.instant_time)
        if own is not None and own.state == State.COMPLETED:
            return None
        check_claim(self.work, timeline)
        since = Since.find(self.work, timeline)
        changed = self._refuse_stale(since)
        replaced = [source.group for source in self.sources]
        first = steps_of_rule(self.work.table, self._rule(timeline, changed))
        return Outcome(self._body(), self.written, replaced=replaced, first=(first,))

    def _refuse_stale(self, since: Since) -> set[str]:
        """Return the partitions that other writes changed since the rescale read; raise if it read one of them."""
        files = (file for source in self.sources for file in source.data_files)
        bases = self.work.table.format.makers(files, since.timeline)
        written: set[str] = set()
        for instant in since.writes:
            body = since.read(instant)
            touched = {*body.partition_to_write_stats, *body.replaced}
            held = self.rescale.first_held(touched)
            if self._forbids(WRITE, {Shared.PARTITION: held is not None}):
                raise self._stale(f"the {instant.action} {instant.requested_time} changed the partition {held!r}")
            written |= touched
        for gone in since.undone():
            if self._forbids(ROLLBACK, {Shared.BASIS: gone.instant_time in bases}, gone.state):
                raise self._stale(f"the write {gone.instant_time}, whose rows it has read, was rolled back")
        if since.restore is not None and self._forbids(RESTORE, {}, known_of(since.restore)):
            raise self._stale(f"the restore {since.restore.requested_time} took the table back to an earlier moment")
        return written

    def _forbids(self, theirs: object, shared: Mapping[Shared, object], their_state: Known = Known.COMPLETED) -> bool:
        meeting = Meeting(RESCALE, theirs, their_state, all_shared(shared), Asked.SINCE_PLAN)  # type: ignore[arg-type]
        return forbids(meeting)

    def _stale(self, what: str) -> CommitConflictError:
        return CommitConflictError(
            f"The rescale {self.work.instant_time} of the table {self.work.path} is not completed: {what} meanwhile.",
            "This rescale left nothing behind; run it again.",
        )

    def _rule(self, timeline: Timeline, written: Collection[str]) -> BucketRule:
        """Return the rule with the numbers of all partitions, in as few expressions as possible.

        Raises `UnsupportedTableError` if the numbers before the rescale have become unknown meanwhile.
        """
        number, now = self.rescale.buckets, bucket_numbers(self.work.table, timeline)
        refuse_unknown(now)
        same_everywhere = BucketRule(self.work.instant_time, number)
        if self.rescale.partitions is None or now.rule is None:
            return same_everywhere
        rest = [path for path in {*self.partitions, *written} if not self.rescale.holds(path)]
        default, others = _reachable(now.rule)
        named = all(path_of(expression) is not None for expression, _ in others)
        if (self.everywhere or named) and all(now.of(path) == number for path in rest):
            # Writes may have added partitions since.
            partitions = FileView(timeline, read_written(timeline)).partitions()
            if all(now.of(path) == number for path in partitions if not self.rescale.holds(path)):
                return same_everywhere
        mine = tuple((expression_of(path), number) for path in self.rescale.partitions)
        paths = {*self.rescale.partitions}
        unchanged = tuple(pair for pair in others if path_of(pair[0]) not in paths)
        return replace(same_everywhere, default=default, expressions=(*mine, *unchanged))

    def _body(self) -> CommitBody:
        work = self.work
        replaced: dict[str, list[str]] = {}
        for source in sorted(self.sources, key=lambda file_slice: file_slice.group):
            replaced.setdefault(source.partition_path, []).append(source.file_id)
        notes = {MADE_BY: VERSION, KEY: self.rescale.spell()}
        metadata = commit_metadata(work, self.schema, self.written, OPERATION, notes, replaced=replaced)
        return CommitBody(metadata, work.table)


def _reachable(rule: BucketRule) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return a rule's default and expressions without those behind the expression that every path matches."""
    texts = [text for text, _ in rule.expressions]
    if _ANY not in texts:
        return rule.default, rule.expressions
    end = texts.index(_ANY)
    return rule.expressions[end][1], rule.expressions[:end]
