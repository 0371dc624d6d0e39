"""The file groups that a write replaces: those of the table, of the partitions of its rows, or of named partitions."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from ...table.files.names import FileGroupId
from ...table.files.read_written import read_written
from ...table.files.view import FileView
from ...table.seen_table import SeenTable
from ...timeline.held import clustered_groups
from ..locating.file_group_writes import refuse_clustered
from ..meeting.concurrency import Shared
from ..planning.operation import OVERWRITE_TABLE, REPLACING
from ..planning.plan import WritePlan

logger = logging.getLogger("pyhudi")


class Replacement:
    """The file groups that one write replaces; none if it merges or adds.

    ``touched`` are its rows' partitions, and ``has_rows`` says whether it got any rows.
    """

    def __init__(self, plan: WritePlan, touched: Iterable[str], *, has_rows: bool) -> None:
        self._plan = plan
        self._replaces = plan.operation in REPLACING if has_rows else plan.replaces_without_rows
        self._touched = frozenset(touched)
        self.warnings: tuple[str, ...] = ()
        partition_names = plan.settings.replacement.partitions_to_delete or ()
        # A write with rows replaces the partitions of its rows, or the whole table.
        self._patterns = [] if plan.takes_rows else [*map(_pattern, partition_names)]

    def covers(self, partition_path: str) -> bool:
        """Return whether the write replaces a whole partition, with file groups that other writers add meanwhile."""
        if not self._replaces:
            return False
        if self._plan.operation == OVERWRITE_TABLE:
            return True
        if not self._plan.takes_rows:
            return any(pattern.fullmatch(partition_path) for pattern in self._patterns)
        return partition_path in self._touched

    def groups(self, seen: SeenTable) -> dict[str, list[str]]:
        """Return the replaced file ids by partition path; as in Apache Hudi, a partition may have none."""
        view = FileView(seen.timeline, read_written(seen.timeline))
        if self._plan.operation == OVERWRITE_TABLE or not self._plan.takes_rows:
            partitions = [path for path in sorted({*view.partitions(), *view.named_partitions()}) if self.covers(path)]
            self._warn_of_absent(partitions)
        else:
            partitions = sorted(self._touched)
        # Replace file groups with missing files, too, which repairs the table.
        replaced_ids = {
            partition: sorted({*view.slices(partition), *(file.file_id for file in view.lost(partition))})
            for partition in partitions
        }
        clustered = clustered_groups(seen.timeline, own=self._plan.instant_time)
        for partition, ids in replaced_ids.items():
            for file_id in ids:
                refuse_clustered(self._plan, clustered, FileGroupId(partition, file_id), Shared.PARTITION)
        return replaced_ids

    def _warn_of_absent(self, partitions: list[str]) -> None:
        """Warn of names in the option for partitions to delete that match none of ``partitions``."""
        partition_names = self._plan.settings.replacement.partitions_to_delete or ()
        absent_names = [
            name
            for name, pattern in zip(partition_names, self._patterns, strict=False)
            if not any(pattern.fullmatch(partition) for partition in partitions)
        ]
        if absent_names:
            names = ", ".join(map(repr, absent_names))
            self.warnings = (f"The table has no partition {names}, so that nothing was deleted by this name.",)
            logger.warning("table %s has no partition %s to delete", self._plan.path, names)


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a partition's name; ``*`` matches anything, as does ``%2A`` in a text without ``*``.

    Source: ``HoodieSparkSqlWriterInternal.resolvePartitionWildcards`` of Apache Hudi 1.2.
    """
    wildcard = "*" if "*" in text else "%2A"
    return re.compile(".*".join(map(re.escape, text.split(wildcard))), re.DOTALL)
