"""Undoes the writes that a restore's plan names, newest first: metadata table, files, rules of buckets, instants."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from ...table.files.file_group import data_file
from ...table.files.partitions import walk_partitions
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ..transaction.bucket_rules import delete_rule
from ..transaction.carried_out import opened_by
from ..transaction.instant_changes import hide, start, take_off
from ..transaction.left_overs import by_maker
from ..transaction.opened_partitions import forget_partitions
from ..transaction.undone_metadata import take_back_metadata, take_out_of_use

if TYPE_CHECKING:
    from ...timeline.metadata.models import RestorePlan


def undo_writes(table: Table, timeline: Timeline, restore: Instant, plan: RestorePlan) -> dict[str, list[str]]:
    """Undo the writes that a restore's plan names, and return the files that each write still had.

    A metadata table goes out of use before the first file changes.
    """
    start(table, restore.at(State.INFLIGHT))
    take_out_of_use(table, restore.action)
    victims = [Instant(info.commit_time, info.action, State.INFLIGHT) for info in plan.instants_to_rollback]
    paths = timeline.files.paths()
    made = by_maker(table, timeline, chain.from_iterable(walk_partitions(table.storage).values()))
    times = (victim.requested_time for victim in victims)
    data = {time: [info.path for info in made.get(time, ())] for time in times}
    # One listing serves all victims, and no reader uses the metadata table any more.
    take_back_metadata(table, [victim.requested_time for victim in victims])
    for victim in victims:
        hide(table, paths, victim)
        table.format.undo.take_back(table.storage, {victim.requested_time: data[victim.requested_time]})
        delete_rule(table, victim)
        take_off(table, paths, victim)
    for folder, listed in walk_partitions(table.storage).items():
        if not any(data_file(info.path, changes=True) for info in listed):
            opener = opened_by(table.storage, folder)
            for victim in (instant for instant in victims if instant.requested_time == opener):
                forget_partitions(table, victim, [folder])
    return data
