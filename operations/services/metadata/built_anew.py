"""The metadata table built anew behind an undo, a repair or a change of version that took it out of use.

A process that dies between leaves a table without a metadata table, which is right, and which `create_index` gives one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from ....errors import PyHudiError, TableError
from ....storage.base import Storage, join
from ....table.config import load_config, stored_config
from ....table.metadata.index_definitions import index_definitions
from ....table.metadata.kinds import COLUMN_STATS, FILES, PARTITION_STATS
from ....table.metadata.metadata_table import FOLDER
from ....table.seen_table import SeenTable
from ....table.table import open_table
from ...following.damage import DAMAGE
from ...result import ServiceResult
from ...version_change import VersionResult
from ..means import Means
from .columns_to_index import bounded_columns
from .create_index import create_index

logger = logging.getLogger("pyhudi")

# Some ten thousand files with bounds of twenty columns, which take half a minute on two cores.
_MOST_BYTES = 16 << 20
_ORDER = (PARTITION_STATS, COLUMN_STATS, FILES)


@dataclass(frozen=True, slots=True)
class MetadataBefore:
    """What a table has of a metadata table before something may take it out of use.

    Attributes:
        names: Its partitions in use that pyhudi keeps.
        columns: Those whose bounds it has; None if nothing says.
        bytes: The size of these partitions.
    """

    names: frozenset[str]
    columns: tuple[str, ...] | None = None
    bytes: int = 0

    @classmethod
    def of(cls, storage: Storage) -> MetadataBefore:
        try:
            config = stored_config(storage)
        except TableError:
            # A repair recovers them.
            config = None
        names = frozenset() if config is None else frozenset(config.metadata_partitions) & {*_ORDER}
        if not names:
            return cls(names)
        try:
            definition = index_definitions(storage).get(COLUMN_STATS)
        except DAMAGE:
            definition = None
        listed = (info for name in sorted(names) for info in storage.list(join(FOLDER, name), strict=False))
        columns = None if definition is None else tuple(definition.columns)
        return cls(names, columns, sum(info.size for info in listed))

    @property
    def is_small(self) -> bool:
        """Whether it is built anew without being asked for."""
        return self.bytes <= _MOST_BYTES

    def foretold(self) -> str:
        """Return what a change of the table's version, which takes it out of use, would do to it; empty without one."""
        if not self.names:
            return ""
        then = "is built anew" if self.is_small else f"{self._call(self.names)} builds it again"
        return f"The metadata table ({FOLDER}, {self.bytes:,} bytes) goes out of use, and {then}"

    def build(self, storage: Storage, means: Callable[[], Means]) -> str:
        """Build what went out of use since, unless that takes long; return what the caller has to do for it, if any."""
        gone = self.names - {*load_config(storage).metadata_partitions} if self.names else frozenset[str]()
        if not gone:
            return ""
        last, call = _last(gone), f"{self._call(gone)} builds it again"
        if not self.is_small:
            return f"The metadata table ({self.bytes:,} bytes) went out of use, and {call}"
        try:
            columns = None if last == FILES or self.columns is None else self._left_columns(storage)
            # Of columns that a restore took away there are no bounds.
            create_index(storage, FILES if columns == [] else last, means(), columns=columns or None)
        except PyHudiError as error:
            # The undo is complete.
            logger.warning("table %s: its metadata table stays out of use", storage.path, exc_info=True)
            return f"The metadata table went out of use ({error.what.rstrip('.')}), and {call}"
        return ""

    def _call(self, names: Collection[str]) -> str:
        return f"HudiTable.create_index({_last(names)!r})"

    def _left_columns(self, storage: Storage) -> list[str]:
        bounded = bounded_columns(SeenTable.now(open_table(storage)))
        return [name for name in self.columns or () if name in bounded]


def metadata_in_new_version(
    storage: Storage, means: Callable[[], Means], change: Callable[[], VersionResult]
) -> VersionResult:
    """Change the version of a table, which takes its metadata table out of use, and build that anew."""
    before = MetadataBefore.of(storage)
    result, told = change(), before.foretold()
    if not result.dry:
        told = before.build(storage, means) or told
    return replace(result, warnings=(*result.warnings, told)) if told and result.changed else result


def _last(names: Collection[str]) -> str:
    """Return the partition with which all of some are built, as it needs the others."""
    return next(name for name in _ORDER if name in names)


def metadata_kept(storage: Storage, means: Callable[[], Means], act: Callable[[], ServiceResult]) -> ServiceResult:
    """Do what may take a metadata table out of use, and build it anew; the result names the call if that takes long."""
    before = MetadataBefore.of(storage)
    result = act()
    todo = "" if result.dry else before.build(storage, means)
    return replace(result, todo="; ".join(filter(None, (result.todo, todo))))
