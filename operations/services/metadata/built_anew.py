"""Builds the metadata table anew after an undo, a repair or a change of version that took it out of use.

If a process dies in between, the table has no metadata table. Readers need none, and `create_index` builds one.
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
from .columns_to_index import ALWAYS, bounded_columns
from .create_index import create_index

logger = logging.getLogger("pyhudi")

# Some ten thousand files with bounds of twenty columns, which take half a minute on two cores.
_MOST_BYTES = 16 << 20
_ORDER = (PARTITION_STATS, COLUMN_STATS, FILES)


@dataclass(frozen=True, slots=True)
class MetadataBefore:
    """The metadata table of a table, before a call that may take it out of use.

    Attributes:
        names: Its partitions that are in use and that pyhudi keeps up to date.
        columns: The columns whose bounds it has; None if that is unknown.
        bytes: The size of these partitions.
    """

    names: frozenset[str]
    columns: tuple[str, ...] | None = None
    bytes: int = 0

    @classmethod
    def of(cls, storage: Storage) -> MetadataBefore:
        """Return the state now: no names if the properties cannot be read, no columns if these are unknown."""
        try:
            config = stored_config(storage)
        except TableError:
            # The properties cannot be read; a repair recovers them.
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
        """Whether the metadata table is so small that it is built anew at once."""
        return self.bytes <= _MOST_BYTES

    def change_in_words(self) -> str:
        """Return what a change of the table's version would do to the metadata table; empty if there is none."""
        if not self.names:
            return ""
        outcome = "is built anew" if self.is_small else f"{self._call_in_words(self.names)} builds it again"
        return f"The metadata table ({FOLDER}, {self.bytes:,} bytes) goes out of use, and {outcome}"

    def build(self, storage: Storage, means: Callable[[], Means]) -> str:
        """Build the partitions that went out of use since, unless that takes long or fails; return a text for the user.

        The text names the call with which the user builds them; it is empty if nothing went out of use, or if all was
        built. `means` is called only if there is something to build.
        """
        gone_names = self.names - {*load_config(storage).metadata_partitions} if self.names else frozenset[str]()
        if not gone_names:
            return ""
        last_name, call = _last_to_build(gone_names), f"{self._call_in_words(gone_names)} builds it again"
        if not self.is_small:
            return f"The metadata table ({self.bytes:,} bytes) went out of use, and {call}"
        try:
            columns = None if last_name == FILES or self.columns is None else self._columns_still_bounded(storage)
            # A restore may have taken columns away; these have no bounds.
            create_index(storage, FILES if columns == [] else last_name, means(), columns=columns or None)
        except PyHudiError as error:
            # The call itself is complete, so it does not fail for this.
            logger.warning("table %s: its metadata table stays out of use", storage.path, exc_info=True)
            return f"The metadata table went out of use ({error.what.rstrip('.')}), and {call}"
        if columns == []:
            what = " and ".join(sorted(gone_names - {FILES}))
            return f"{what} went out of use (the table has none of the columns that had bounds), and {call}"
        return ""

    def _call_in_words(self, names: Collection[str]) -> str:
        """Return the user's call that builds the partitions again."""
        return f"HudiTable.create_index({_last_to_build(names)!r})"

    def _columns_still_bounded(self, storage: Storage) -> list[str]:
        """Return the columns with bounds before that the table still has, and that can have bounds.

        A table without a schema has none, not even meta columns.
        """
        seen = SeenTable.now(open_table(storage))
        if seen.schema is None:
            return []
        bounded = {*ALWAYS, *bounded_columns(seen)}
        return [name for name in self.columns or () if name in bounded]


def change_version_and_metadata(
    storage: Storage, means: Callable[[], Means], change: Callable[[], VersionResult]
) -> VersionResult:
    """Return the result of `change`, a change of the table's version; build the metadata table anew after it.

    The change takes the metadata table out of use. If the metadata table is large, a warning names the call that
    builds it.
    """
    metadata_before = MetadataBefore.of(storage)
    result, warning = change(), metadata_before.change_in_words()
    if not result.dry:
        warning = metadata_before.build(storage, means) or warning
    return replace(result, warnings=(*result.warnings, warning)) if warning and result.changed else result


def _last_to_build(names: Collection[str]) -> str:
    """Return the partition that needs all others of some partitions, so that building it builds all of them."""
    return next(name for name in _ORDER if name in names)


def with_metadata_built_anew(
    storage: Storage, means: Callable[[], Means], act: Callable[[], ServiceResult]
) -> ServiceResult:
    """Return the result of `act`; if that took the metadata table out of use, build the metadata table anew.

    If that takes long or fails, `todo` of the result names the call that builds it.
    """
    metadata_before = MetadataBefore.of(storage)
    result = act()
    todo = "" if result.dry else metadata_before.build(storage, means)
    return replace(result, todo="; ".join(filter(None, (result.todo, todo))))
