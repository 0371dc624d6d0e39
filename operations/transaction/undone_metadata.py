"""The metadata table of a table whose instants are undone.

The undo of an instant deletes what the instant wrote there (`take_back`). If that is not enough, a decision of its own
first takes all partitions out of use, so that no reader meets a file that is gone. They may be built anew afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from ...errors import ConcurrentWriteError
from ...table.config import TableConfig, load_config, stored_config
from ...table.metadata.kinds import FILES
from ...table.metadata.listing import lists_any
from ...table.metadata.metadata_table import MetadataTable
from ...table.table import Table
from ...timeline.timeline import Timeline
from ..following.damage import DAMAGE
from ..following.partitions_in_use import changed_names
from ..following.retired_metadata import note_out_of_use
from ..following.undone_metadata import is_in_base_files, take_back
from .locks import hold
from .without_instant import set_properties

logger = logging.getLogger("pyhudi")

_ROUNDS = 20


def prepare_undo(table: Table, timeline: Timeline, time: str, paths: Collection[str]) -> tuple[str, ...]:
    """Take the metadata table out of use unless only its log files hold what an instant wrote there.

    Returns the partitions that went out of use. ``paths`` are the data files that the undo takes back. Raises as
    `set_properties`.
    """
    if not _partitions_in_use(table):
        return ()
    # In a table that came out of version 6 the undo may append log files, which the metadata table would lack.
    must_go = table.format.undo.adds_files(time, paths)
    if not must_go and is_in_base_files(table, timeline, time):
        # If another process undoes the same instant at the same time, the instant seems to have written nothing.
        must_go = is_in_base_files(table, timeline.reload(), time)
    return take_out_of_use(table, "rollback") if must_go else ()


def prepare_removal(table: Table, paths: Collection[str], action: str) -> tuple[str, ...]:
    """Take the metadata table out of use if it names data files that are about to be deleted without an instant.

    Returns the partitions that went out of use. The files are of writes that never completed; when Apache Hudi builds a
    metadata table, it lists some of them. ``action`` says who removes them. Raises as `set_properties`.
    """
    if not paths or not table.format.keeps_metadata:
        return ()
    current_table = Table(table.storage, load_config(table.storage), table.lock)
    if FILES not in current_table.config.metadata_partitions:
        return ()
    try:
        metadata = MetadataTable.with_partitions(current_table, current_table.timeline(), [FILES])
        # No instant has the time "", so the removal of any log file may add files.
        is_named = table.format.undo.adds_files("", paths) or lists_any(metadata.partition(FILES), paths)
    except DAMAGE:
        # A metadata table that cannot be read may name the files.
        is_named = True
    return take_out_of_use(table, action) if is_named else ()


def take_back_metadata(table: Table, times: Collection[str]) -> None:
    """Delete what undone instants wrote to the metadata table, right before they leave the table's timeline."""
    if table.format.keeps_metadata:
        with hold(table):
            take_back(table, times)


def take_out_of_use(table: Table, action: str) -> tuple[str, ...]:
    """Take all partitions of the metadata table out of use, and return their names.

    An indexing at work notices the undo, and builds again. ``action`` says in messages what needs this. Raises as
    `set_properties`.
    """
    names = _partitions_in_use(table)
    if names:
        note_out_of_use(table.storage, names)
    for _ in range(_ROUNDS):
        if not _partitions_in_use(table):
            break
        # This sets nothing if other software changes the properties at the same moment, so look again.
        set_properties(table, action, _without_partitions)
    else:
        raise ConcurrentWriteError(
            f"Other software changed the properties of the table {table.path} {_ROUNDS} times in a row, while a "
            f"{action} was about to take its metadata table out of use.",
            "Run it again.",
        )
    if names:
        logger.warning(
            "table %s: the partitions %s of its metadata table went out of use for a %s",
            table.path,
            ", ".join(names),
            action,
        )
    return names


def _partitions_in_use(table: Table) -> tuple[str, ...]:
    """Return the partitions in use; none if pyhudi does not keep the metadata table of the table's version."""
    # If the first write of a table is dead, the table has no properties yet.
    config = stored_config(table.storage) if table.format.keeps_metadata else None
    return () if config is None else config.metadata_partitions


def _without_partitions(_: Timeline, stored: TableConfig) -> Mapping[str, str] | None:
    """Return the properties that take all partitions out of use; None if there is no partition."""
    return changed_names(stored, drops=stored.metadata_partitions) or None
