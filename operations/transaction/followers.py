"""What has to follow each change of a table's data files, such as a metadata table.

The commit path alone calls followers: for the properties that each decision changes, and in the process that completes
an instant, before it decides. What they prepare then is part of the decision, so that it happens before the completed
file whichever process makes that file, and no process that finishes for another one calls a follower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ...errors import UnsupportedTableError
from ...storage.base import join
from ...table.config import TableConfig, has_config, load_config
from ...table.config.property_keys import (
    BUCKET,
    METADATA_INFLIGHT,
    METADATA_PARTITIONS,
    RECORD_INDEX_LOOKUP,
)
from ...table.infer_index import infer_index, is_unnoted
from ...table.record_index import kind_by_record_index
from ...table.seen_table import SeenTable
from ...table.table import Table, refuse_other_version
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ...timeline.writers.first_steps import FirstSteps, PublishFile
from .outcome import Outcome

METADATA_TABLE = ".hoodie/metadata"
# A file of the time at which the metadata table came out of use: its folder stays for a day after that.
OUT_OF_USE = join(METADATA_TABLE, ".hoodie", "pyhudi_out_of_use")
_CHEAP = frozenset({"files", "column_stats", "partition_stats"})


class Follower(Protocol):
    def properties(self, table: Table, config: TableConfig, outcome: Outcome | None) -> Mapping[str, str | None]:
        """Return the property changes that must precede the next file; `outcome` is None before the completion.

        ``config`` are the properties as they are stored, ``table`` has those that its writer adds, too. The commit path
        may ask several times before it makes the changes.
        """

    def follows(self, table: Table) -> bool:
        """Return whether this follower prepares steps for instants of a table, by the table's properties alone."""

    def bounded_columns(self, table: Table) -> tuple[str, ...]:
        """Return the columns whose bounds `WrittenFile.statistics` of each new base file of a table has to have."""

    def prepare(self, seen: SeenTable, instant: Instant, outcome: Outcome) -> FirstSteps:
        """Return the steps that must precede the completed file of a pending instant; an error fails its work.

        It runs before the decision and outside the table's lock, so it may read data files and write files aside
        (`set_aside`), which go with the left-overs of the instant. It changes nothing that a reader sees.
        """

    def is_outdated(self, seen: SeenTable, since: Collection[Instant]) -> bool:
        """Return whether instants that completed since `prepare` touch what it wrote, so that it has to run again."""


class RetiredMetadataTable:
    """The metadata table, which pyhudi does not maintain, taken out of use before readers would trust old entries.

    Does what Apache Hudi does for ``hoodie.metadata.enable=false``: readers trust the property
    ``hoodie.table.metadata.partitions``, so that they list files again once it is empty (``HoodieTableMetadataUtil``).
    The folder stays: queries of Apache Hudi that began before read on in it, and its writers build anew in it before
    they set the property. A clean deletes it (`operations/services/unused_metadata.py`). A record index also says where
    its keys are unique; without it the table's properties have to say so.
    """

    def properties(self, table: Table, config: TableConfig, outcome: Outcome | None) -> Mapping[str, str | None]:
        if not config.metadata_partitions:
            return {}
        if table.storage.has_files(METADATA_TABLE):
            table.storage.write(OUT_OF_USE, b"")
        gone = {METADATA_PARTITIONS: "", METADATA_INFLIGHT: "", "hoodie.table.index.defs.path": None}
        return {**gone, **_noted_index(table, config)}

    def follows(self, table: Table) -> bool:
        return False

    def bounded_columns(self, table: Table) -> tuple[str, ...]:
        return ()

    def prepare(self, seen: SeenTable, instant: Instant, outcome: Outcome) -> FirstSteps:
        return FirstSteps(())

    def is_outdated(self, seen: SeenTable, since: Collection[Instant]) -> bool:
        return False


def _noted_index(table: Table, config: TableConfig) -> Mapping[str, str]:
    """Return the property that notes the kind of a record index which goes out of use; nothing for other tables.

    An index that the write names is added by its completion. The file groups of a bucketed table show their index
    themselves.
    """
    if not is_unnoted(config):
        return {}
    stored, own = Table(table.storage, config), table.config.index_type
    kind = kind_by_record_index(stored)
    if kind is None or (infer_index(stored).kind if own is None else own) == BUCKET:
        return {}
    return {RECORD_INDEX_LOOKUP: kind}


FOLLOWERS: tuple[Follower, ...] = (RetiredMetadataTable(),)


def changed_properties(table: Table, outcome: Outcome | None) -> dict[str, str | None]:
    """Return the properties that all followers of a table want changed; none where the instant makes the table.

    They are read anew, so this raises as `refuse_other_version`.
    """
    if outcome is not None and outcome.properties.new_table:
        return {}
    config = None if outcome is None else outcome.properties.current
    if config is None:
        if not has_config(table.storage):
            return {}
        config = load_config(table.storage)
    refuse_other_version(table, config)
    asked = (follower.properties(table, config, outcome) for follower in FOLLOWERS)
    return {key: value for changes in asked for key, value in changes.items()}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the followers of a table prepared for an outcome of an instant, and what they had seen."""

    seen: SeenTable
    outcome: Outcome
    by_follower: tuple[tuple[Follower, FirstSteps], ...]

    @property
    def first(self) -> tuple[FirstSteps, ...]:
        return tuple(first for _, first in self.by_follower)

    @property
    def sets_aside(self) -> bool:
        """Whether files wait aside to be published."""
        return any(isinstance(step, PublishFile) for first in self.first for step in first.steps)

    def is_outdated(self, timeline: Timeline, outcome: Outcome) -> bool:
        """Return whether followers have to prepare anew for an outcome on a later timeline."""
        if outcome.files != self.outcome.files:
            return True
        since = set(timeline.completed).difference(self.seen.timeline.completed)
        seen = replace(self.seen, timeline=timeline)
        return bool(since) and any(follower.is_outdated(seen, since) for follower, _ in self.by_follower)


def following(table: Table) -> tuple[Follower, ...]:
    """Return the followers that prepare steps for a table's instants."""
    return tuple(follower for follower in FOLLOWERS if follower.follows(table))


def bounded_columns(table: Table) -> tuple[str, ...]:
    """Return the columns whose bounds followers need of each new base file of a table, each once."""
    return tuple(dict.fromkeys(name for follower in following(table) for name in follower.bounded_columns(table)))


def prepare(followers: Iterable[Follower], seen: SeenTable, instant: Instant, outcome: Outcome) -> Prepared:
    """Have followers prepare what precedes the completed file of an instant."""
    steps = ((follower, follower.prepare(seen, instant, outcome)) for follower in followers)
    return Prepared(seen, outcome, tuple(steps))


def check_retirable(config: TableConfig, metadata_enable: bool | None, path: str) -> None:
    """Refuse a write that would drop an index that takes hours to rebuild, unless the user allows it."""
    costly = sorted(set(config.metadata_partitions) - _CHEAP)
    if costly and metadata_enable is not False:
        raise UnsupportedTableError(
            f"The metadata table of {path} holds {', '.join(costly)}, which pyhudi does not maintain and would have to "
            "drop.",
            "Say hoodie.metadata.enable=false to drop it (Apache Hudi can rebuild it), or write with Apache Hudi.",
        )
