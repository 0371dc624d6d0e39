"""Which file groups a write takes away as a whole: the table's, those of its rows' partitions, or of named ones."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from ...table.files.names import FileGroupId
from ...table.files.view import FileView
from ...table.files.written import read_written
from ...table.seen_table import SeenTable
from ...timeline.held import clustered_groups
from ..locating.file_group_writes import refuse_clustered
from ..planning.operation import OVERWRITE_TABLE, REPLACING
from ..planning.plan import WritePlan
from ..transaction.concurrency import Shared

logger = logging.getLogger("pyhudi")


class Replacement:
    """What one write takes away as a whole; nothing, where its operation merges or adds.

    Args:
        plan: The write.
        touched: The partitions that its rows belong to.
    """

    def __init__(self, plan: WritePlan, touched: Iterable[str]) -> None:
        self._plan = plan
        self._touched = frozenset(touched)
        self._patterns = [] if plan.takes_rows else [*map(_pattern, plan.settings.partitions_to_delete or ())]

    def covers(self, partition_path: str) -> bool:
        """Return whether the whole of a partition goes, whatever somebody else may put there meanwhile."""
        if self._plan.operation not in REPLACING:
            return False
        if self._plan.operation == OVERWRITE_TABLE:
            return True
        if not self._plan.takes_rows:
            return any(pattern.fullmatch(partition_path) for pattern in self._patterns)
        return partition_path in self._touched

    def groups(self, seen: SeenTable) -> dict[str, list[str]]:
        """Return the file ids that go, by partition path; as Apache Hudi has it, partitions without any among them.

        Args:
            seen: The table as of the write's watermark.

        Raises:
            ConcurrentWriteError: A pending clustering holds one of the file groups.
        """
        view = FileView(seen.timeline, read_written(seen.timeline))
        if self._plan.operation == OVERWRITE_TABLE or not self._plan.takes_rows:
            partitions = [one for one in sorted({*view.partitions(), *view.named_partitions()}) if self.covers(one)]
            self._warn_of_the_rest(partitions)
        else:
            partitions = sorted(self._touched)
        # A file that is missing goes too: to replace it is a way to mend the table.
        found = {
            partition: sorted({*view.slices(partition), *(file.file_id for file in view.lost(partition))})
            for partition in partitions
        }
        clustered = clustered_groups(seen.timeline, own=self._plan.instant_time)
        for partition, ids in found.items():
            for file_id in ids:
                refuse_clustered(self._plan, clustered, FileGroupId(partition, file_id), Shared.PARTITION)
        return found

    def _warn_of_the_rest(self, partitions: list[str]) -> None:
        named = self._plan.settings.partitions_to_delete or ()
        idle = [
            name
            for name, pattern in zip(named, self._patterns, strict=False)
            if not any(pattern.fullmatch(partition) for partition in partitions)
        ]
        if idle:
            logger.warning("table %s has no partition %s to delete", self._plan.path, ", ".join(map(repr, idle)))


def _pattern(text: str) -> re.Pattern[str]:
    """Return what a partition path must match; ``*`` stands for anything, as ``%2A`` does where there is no ``*``.

    Source: ``HoodieSparkSqlWriterInternal.resolvePartitionWildcards`` of Apache Hudi 1.2.
    """
    wildcard = "*" if "*" in text else "%2A"
    return re.compile(".*".join(map(re.escape, text.split(wildcard))), re.DOTALL)
