"""Drops indexes: takes partitions of the metadata table out of use.

Readers go by the table's properties, so only these change. A clean deletes the files once no process reads them.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from ....errors import ConcurrentWriteError, TableConfigError
from ....storage.base import Storage
from ....table.config import TableConfig, check_supported, load_config
from ....table.config.property_keys import METADATA_INFLIGHT, METADATA_PARTITIONS
from ....table.left_behind import refuse_instants_left_by_upgrade
from ....table.metadata.index_definitions import new_definitions
from ....table.metadata.kinds import RECORD_INDEX
from ....table.record_index import defined_indexes
from ....table.table import Table, open_table
from ....timeline.instants import Instant, State
from ....timeline.timeline import Timeline
from ....timeline.writers.first_steps import FirstSteps, ReplaceFile
from ...following.partitions_in_use import being_built, written_partitions
from ...following.retired_metadata import note_out_of_use, noted_index
from ...result import DROP_INDEX, ServiceResult
from ...transaction.commit_path import time_after
from ...transaction.without_instant import MetadataSteps, set_properties, take_metadata_steps
from .index_names import dropped_with, partitions_that_need
from .pending_indexings import INDEXING, PendingIndexing, give_up, pending_indexings

_TRIES = 10

# The action of the decision, which has no instant of its own; names of actions have letters alone.
_ACTION = "dropindex"


def drop_index(storage: Storage, name: str, *, dry_run: bool = False) -> ServiceResult:
    """Take a partition of the metadata table out of use, and those that depend on it.

    All depend on ``files``, ``partition_stats`` on ``column_stats``, and secondary indexes on a record index. To drop a
    record index also notes in the properties where keys are unique. A pending indexing of such a partition is given up.

    Args:
        storage: The store at the table's path.
        name: The partition, such as ``column_stats``.
        dry_run: Change nothing; the result names the partitions that a call would drop.

    Raises:
        InvalidOptionError: The table has no such partition.
        ConcurrentWriteError: Other software keeps changing the table's properties.
    """
    began = time.monotonic()
    table = open_table(storage)
    check_supported(table.config, table.path, writing=True)
    refuse_instants_left_by_upgrade(table)
    names = {*dropped_with(name, table.config, table.path)}
    result = ServiceResult(storage.path, DROP_INDEX, indexes=tuple(sorted(names)), dry=dry_run)
    if not dry_run:

        def without(_: Timeline, stored: TableConfig) -> Mapping[str, str | None] | None:
            """Return the changes of properties; others may have built partitions since that need the dropped one."""
            names.update(partitions_that_need(name, stored))
            return _changes_without(table, stored, names)

        given_up = _give_up_indexings(table, names)
        note_out_of_use(storage, names)
        for _ in range(_TRIES):
            # Followers set no properties here, as these could take the whole metadata table out of use.
            set_properties(table, _ACTION, without, follows=False)
            if not partitions_that_need(name, load_config(storage)):
                break
        else:
            raise ConcurrentWriteError(
                f"Other software kept changing the properties of the table {table.path}, so that {name} is still in "
                "use.",
                "Run drop_index again.",
            )
        why_left = _remove_definitions(table, names)
        why_skipped = "; ".join(filter(None, (_given_up_in_words(given_up, names), why_left)))
        result = replace(result, indexes=tuple(sorted(names)), skipped=why_skipped)
    return replace(result, seconds=time.monotonic() - began)


def _changes_without(table: Table, stored: TableConfig, names: Collection[str]) -> Mapping[str, str | None] | None:
    """Return the changes of properties that take partitions out of use; None if none of them is in use or being built.

    If the record index goes, the changes also note the index, as readers learn from that where keys are unique.
    ``stored`` are the properties now.
    """
    dropped_names = {*names} & {*written_partitions(stored)}
    if not dropped_names:
        return None
    in_use = sorted({*stored.metadata_partitions} - dropped_names)
    building = sorted({*being_built(stored)} - dropped_names)
    index_notes = noted_index(Table(table.storage, stored), stored) if RECORD_INDEX in dropped_names else {}
    return {METADATA_PARTITIONS: ",".join(in_use), METADATA_INFLIGHT: ",".join(building), **index_notes}


def _give_up_indexings(table: Table, names: Collection[str]) -> list[PendingIndexing]:
    """Take back the pending indexings that build any of the partitions, and return these indexings."""
    dropped_indexings = [indexing for indexing in pending_indexings(table.timeline()) if {*indexing.names} & {*names}]
    if dropped_indexings:
        give_up(table, dropped_indexings)
    return dropped_indexings


def _remove_definitions(table: Table, names: Collection[str]) -> str:
    """Remove the definitions of dropped indexes; return why they stay if their file is damaged, else an empty text.

    `names` are the dropped partitions of the metadata table. They are out of use already, so a damaged file does not
    fail the call: the caller reports the reason.
    """

    def build(timeline: Timeline) -> MetadataSteps | None:
        """Return the step that removes the definitions; None if there are none to remove."""
        in_use = written_partitions(load_config(table.storage))
        gone_names = {*defined_indexes(table.storage)} & {*names} - {*in_use}
        if not gone_names:
            return None
        changed = new_definitions(table.storage, dict.fromkeys(gone_names))
        step = ReplaceFile(changed.path, changed.content, changed.replaces)
        # The steps need the time of an instant, though they make no file of it.
        unnamed = Instant(time_after(table, timeline), INDEXING, State.REQUESTED)
        return MetadataSteps(unnamed, FirstSteps((step,)))

    try:
        take_metadata_steps(table, build)
    except TableConfigError as error:
        return f"definitions of indexes stay: {error.what} {error.todo}"
    return ""


def _given_up_in_words(given_up: Collection[PendingIndexing], names: Collection[str]) -> str:
    """Return a sentence on the indexings that were given up; empty without any."""
    other_names = sorted({name for indexing in given_up for name in indexing.names} - {*names})
    if not given_up:
        return ""
    times = ", ".join(indexing.instant.requested_time for indexing in given_up)
    return f"gave up the indexing {times}" + (f", which built {', '.join(other_names)} too" if other_names else "")
