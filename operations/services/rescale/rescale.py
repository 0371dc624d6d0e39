"""Brings partitions of a bucket table to another number of buckets: some in each instant, or the whole table in one.

An instant takes only a few partitions if they are large, since their writers wait as long as it runs. From its request
on, new writes of pyhudi to its partitions wait or fail. It waits for the writes that were at work before, and gives up
compactions of its partitions. A decision of the table begins its reading, so that no write completes unseen. It divides
the rows, and completes with the rule of the new number. If a call breaks off, another call continues with the
partitions that still have another number.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ....errors import InvalidOptionError, UnsupportedTableError
from ....index.bucket import BucketIndex
from ....index.registry import placing_index_for
from ....storage.base import Storage
from ....table.inferred.key_encoding import with_inferred_key_encoding
from ....table.table import Table
from ....timeline.rescales import Rescale
from ...meeting.concurrency import RESCALE
from ...result import ServiceResult
from ...rollback.pending import OtherWriters
from ..bucket_property import change_of_jobs, match_property_to_rules
from ..means import Means
from ..preconditions import finish_rollbacks_first, open_for_service, refuse_restoring
from .due import WantedNumber
from .instant import NAME, RescaleInstant
from .units import partitions_by_instant, units_of

# A file id has eight digits for the bucket, and readers take no greater number for one.
_MOST = 99_999
_FIRST_WITH_RULES = 9


def rescale_buckets(
    storage: Storage,
    n: int,
    means: Means,
    *,
    partitions: Sequence[str] | None = None,
    dry_run: bool = False,
    whole_table: bool = False,
) -> ServiceResult:
    """Bring ``partitions``, None for all, to ``n`` buckets each; partitions that have ``n`` buckets stay as they are.

    ``means`` are the memory, time and executor that the service may use. With ``dry_run`` it changes nothing, and the
    result says what it would do. With ``whole_table`` one instant takes all partitions, as always before table version
    9, the first in which Apache Hudi reads rules that give single partitions their own numbers of buckets. Raises
    `InvalidOptionError` for an impossible number or partition, `UnsupportedTableError` for a table without simple
    buckets, `ConcurrentWriteError` and `CommitConflictError` if other instants keep the rescale out, and
    `BucketMisfitError` if a file holds rows of other buckets. Partitions that were rescaled before the error stay so.
    """
    began = time.monotonic()
    if not 1 <= n <= _MOST:
        raise InvalidOptionError(f"A rescale was called with n={n}.", f"Give a number from 1 to {_MOST:,}.")
    table = with_inferred_key_encoding(open_for_service(storage))
    index = _index_of(table)
    whole = whole_table or table.config.version < _FIRST_WITH_RULES
    if whole and partitions is not None:
        raise InvalidOptionError(
            f"The table {table.path} can only be rescaled as a whole, and the call names partitions.",
            "Leave partitions out.",
        )
    wanted = WantedNumber(table, n, partitions)
    call = _RescaleCall(wanted, RescaleInstant(wanted, index, means), whole)
    result = call.dry_result() if dry_run else call.run()
    return replace(result, seconds=time.monotonic() - began)


def _index_of(table: Table) -> BucketIndex:
    """Return the table's bucket index; raise `UnsupportedTableError` if the table notes none."""
    error = UnsupportedTableError(
        f"The table {table.path} does not note that it has simple buckets, so that they cannot be rescaled.",
        "Write to it once with pyhudi and hoodie.bucket.index.num.buckets, if Apache Hudi wrote it with a bucket "
        "index; other indexes need no rescale.",
    )
    index = placing_index_for(table.config)
    if index is None:
        raise error
    return index


@dataclass
class _RescaleCall:
    """One call of `rescale_buckets`.

    Attributes:
        whole: Whether one instant rescales all partitions.
        results: The result of each instant so far.
    """

    wanted: WantedNumber
    instants: RescaleInstant
    whole: bool
    results: list[ServiceResult] = field(default_factory=list)

    @property
    def table(self) -> Table:
        return self.wanted.table

    def dry_result(self) -> ServiceResult:
        """Return what a call would do now."""
        timeline = self.table.timeline()
        refuse_restoring(RESCALE, timeline)
        slices, changes = self.wanted.slices_and_changes(timeline)
        total = ServiceResult(self.table.path, NAME, dry=True, partitions=len(changes))
        for change in changes.values():
            old_slices = slices[change.partition_path]
            units = units_of(change, old_slices, self.table.path)
            total = replace(
                total,
                file_groups=total.file_groups + len(old_slices),
                new_file_groups=total.new_file_groups + len({target for unit in units for target in unit.targets}),
                bytes_read=total.bytes_read + sum(file_slice.size for file_slice in old_slices),
            )
        return total

    def run(self) -> ServiceResult:
        """Rescale until all wanted partitions have the number, with one or more instants; return their sum."""
        table = self.table
        other_writers = OtherWriters(table, self.instants.means.patience)
        while True:
            timeline = finish_rollbacks_first(RESCALE, other_writers, table.timeline())
            refuse_restoring(RESCALE, timeline)
            slices, changes = self.wanted.slices_and_changes(timeline)
            partitions = [*slices]
            if not changes and not self.wanted.wants_default(timeline):
                break
            # Without changes, only future partitions would get another number: to rescale the whole table sets theirs.
            if self.whole or not changes:
                self.results.append(self.instants.carry_out(Rescale(self.wanted.n, None), partitions))
            else:
                for paths in partitions_by_instant({path: slices[path] for path in sorted(changes)}):
                    self.results.append(self.instants.carry_out(Rescale(self.wanted.n, paths), partitions))
            # A writer may have added partitions meanwhile, so look again.
        # `_total_result` says what the user has to do then.
        match_property_to_rules(self.table)
        return self._total_result()

    def _total_result(self) -> ServiceResult:
        """Return the sum of all instants' results."""
        total = ServiceResult(self.table.path, NAME)
        for result in self.results:
            total = replace(
                total,
                instant=result.instant,
                partitions=total.partitions + result.partitions,
                file_groups=total.file_groups + result.file_groups,
                new_file_groups=total.new_file_groups + result.new_file_groups,
                files=total.files + result.files,
                bytes=total.bytes + result.bytes,
                bytes_read=total.bytes_read + result.bytes_read,
            )
        if self.results and self.table.config.version < _FIRST_WITH_RULES:
            total = replace(total, todo=change_of_jobs(self.wanted.n))
        return total
