"""Removes or completes, at the start of a write, what earlier writes left behind that are no longer on the timeline."""

from __future__ import annotations

from typing import NamedTuple

from ...storage.base import Storage, join, split
from ...table.files.marked_files import marked_files
from ...table.table import Table
from ...timeline import formats
from ...timeline.instants import Instant, State
from ...timeline.timeline import Timeline
from ...timeline.writers import announcements, decisions, failures, heartbeat, owner, removed, seals, tickets
from ...timeline.writers.first_steps import folder_of
from ...timeline.writers.markers import marked_instants
from ...timeline.writers.patience import Patience
from ..transaction.begin import Swept
from ..transaction.decide import settle
from ..transaction.left_overs import forget
from ..transaction.undone_metadata import take_back_metadata
from .rollback import GIVEN_UP_S, finish_rollbacks

META_FOLDER = ".hoodie"


class _LastBeat(NamedTuple):
    """The youngest file by which a working folder shows that its writer lives."""

    modified: float
    path: str


def sweep(table: Table, patience: Patience, *, own_time: str, timeline: Timeline | None = None) -> Swept:
    """Remove working folders, markers and heartbeats of instants that are not pending, and half-made files.

    ``patience`` says after how long without a heartbeat another writer counts as dead, and ``own_time`` is the time of
    the caller's instant, whose files stay; empty without any.
    ``timeline`` is a listing of right before, if the caller has it; it is listed again if folders are deserted.
    Data files that markers name are deleted only if their instant never completed: it is not on the timeline, and
    younger than the timeline's first write. Older instants may have been archived.
    """
    own_files = table.storage.look(owner.ROOT)
    folders = {*own_files.folders}
    paths = (*(info.path for info in own_files.files), *(join(owner.ROOT, name) for name in sorted(folders)))
    formats.refuse_newer_names(table.path, paths, formats.NAMES)
    seals.expire(table.storage, table.config.timezone)
    if split(removed.FOLDER)[1] in folders:
        removed.expire(table.storage)
    if split(tickets.FOLDER)[1] in folders:
        tickets.remove_dead(table.storage, patience)
    swept = [META_FOLDER, owner.ROOT, owner.SEALS, decisions.FOLDER, announcements.FOLDER, failures.FOLDER]
    if timeline is None or timeline.unfinished_files:
        # To list thousands of instants again would cost a tenth of a small write.
        swept.append(table.config.timeline_folder)
    table.storage.sweep((*swept, heartbeat.ROOT), seals.KEPT_S)
    # Folders of other names belong to later releases.
    working = {name for name in folders if name.isdecimal() or name == split(owner.SCRATCH)[1]}
    marked = set(marked_instants(table.storage))
    beating_times = {split(info.path)[1] for info in table.storage.list(heartbeat.ROOT, strict=False)}
    last_beats = {
        instant_time: _last_beat(table.storage, instant_time)
        for instant_time in sorted((working | marked | beating_times) - {own_time})
    }
    # A writer makes its folder right before the note of its claim, so an empty folder is no sign that a write stalled.
    empty_times = [time for time, beat in last_beats.items() if beat is None and time not in marked]
    _remove_empty(table.storage, empty_times)
    # The time is read after the signs, so that it is not older than these. A local store makes a file to learn it.
    now_s = table.storage.file_time() if any(last_beats.values()) else 0.0
    deserted_times = [
        instant_time
        for instant_time, beat in last_beats.items()
        if instant_time not in empty_times
        and (beat is None or _is_deserted(table.storage, instant_time, beat, patience, now_s))
    ]
    if deserted_times or timeline is None:
        # Read after the folders: a write that made its folder since is on the timeline, or not in these lists.
        timeline = table.timeline()
    age_s = patience.foreign_age_s
    finish_rollbacks(table, timeline, GIVEN_UP_S if age_s is None else age_s)
    if any(map(_is_pending, map(timeline.find, deserted_times))):
        # Its writer may have died between the decision to complete it and its completed file.
        timeline = settle(table)
    for instant_time in deserted_times:
        instant = timeline.find(instant_time)
        if _is_pending(instant):
            continue
        # A savepoint keeps its instant on the timeline while younger instants are archived. A folder whose name is no
        # instant time is scratch of an archiving.
        is_lost = instant is None and instant_time.isdecimal() and not timeline.is_committed(instant_time)
        if is_lost and _begins_after_all(table, instant_time):
            continue
        if is_lost and instant_time in marked and not table.archive.holds(instant_time):
            marked_paths = marked_files(table.storage, table.format.slices, instant_time)
            table.format.undo.take_back(table.storage, {instant_time: marked_paths})
            take_back_metadata(table, [instant_time])
        forget(table.storage, instant_time)
    return Swept(timeline, split(announcements.FOLDER)[1] in folders)


def _begins_after_all(table: Table, instant_time: str) -> bool:
    """Seal a stalled write, so that it can publish nothing; return whether it is on the timeline by now."""
    writer = owner.Claim(table.storage, instant_time).owner()
    owner.Seal(table.storage, instant_time).set_for_good("" if writer is None else writer.key)
    return table.timeline().find(instant_time) is not None


def _is_pending(instant: Instant | None) -> bool:
    """Return whether an instant is on the timeline and not completed."""
    return instant is not None and instant.state != State.COMPLETED


def _remove_empty(storage: Storage, instant_times: list[str]) -> None:
    """Delete the working folders of instants that are empty and older than any write at work."""
    for instant_time in instant_times:
        claim = owner.Claim(storage, instant_time)
        folders = [claim.aside, claim.spills, folder_of(instant_time), claim.folder]
        storage.sweep(folders, seals.KEPT_S, empty=True)


def _last_beat(storage: Storage, instant_time: str) -> _LastBeat | None:
    """Return the youngest of an instant's heartbeat and the files of its working folder; None without any."""
    folder = owner.Claim(storage, instant_time).folder
    beats = [_LastBeat(info.modified, info.path) for info in storage.list(folder, recursive=True, strict=False)]
    heart = heartbeat.Heartbeat(storage, instant_time).path
    beat = storage.modified(heart)
    return max([*beats, *([] if beat is None else [_LastBeat(beat, heart)])], default=None)


def _is_deserted(storage: Storage, instant_time: str, last_beat: _LastBeat, patience: Patience, now_s: float) -> bool:
    """Return whether the writer of a working folder is dead, by the same signs as the writer of a pending instant.

    ``now_s`` is the time of the table's store.

    If no note names the process, the folder is deserted once this process has seen no change for longer than a
    heartbeat may be silent, or after a day.
    """
    # The steady clock counts from this process's first look, so look at young folders too.
    still_s = owner.stood_still_s(storage, last_beat.path, last_beat.modified)
    if now_s - last_beat.modified <= patience.heartbeat_tolerance_s:
        return False
    writer = owner.Claim(storage, instant_time).owner()
    if writer is not None:
        return owner.is_dead(storage, last_beat.path, last_beat.modified, writer, patience, now_s)
    return still_s > patience.heartbeat_tolerance_s or now_s - last_beat.modified > seals.KEPT_S
