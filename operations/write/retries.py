"""Writes that are run again, with new rows, because another write of the same data came first.

A write that meets another write runs in vain. So after a meeting, the writes of this process leave a ticket before they
begin, for the places of the meeting, as long as writers wait for each other there. They then come one after another,
and writers of other places do not wait for them.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import reduce

from ...errors import CommitConflictError, MetInstant, PyHudiError
from ...index.registry import computed_index_for, index_for
from ...storage import Storage
from ...storage.kept import keep
from ...table.files.names import FileGroupId
from ...table.table import find_table
from ...timeline.clock import format_time
from ...timeline.writers.owner import Owner
from ...timeline.writers.patience import NOT_WAITED
from ...timeline.writers.tickets import Places, Ticket, in_turn, places_of_buckets
from ..meeting.concurrency import InstantKind
from ..meeting.taken import taken_since
from ..planning.request import WriteSettings
from ..result import CommitResult, PastAttempts, find_write
from ..rollback.dead import wait_until_over
from ..rollback.pending import OtherWriters
from ..write_ids import generated_id

logger = logging.getLogger("pyhudi")

# The times and the places of this process's last meetings, by the table's path.
_MET: dict[str, tuple[tuple[float, Places], ...]] = {}
_RECENT_S = 60.0
_MOST_TABLES = 64


class Retries:
    """Runs one write until it completes, or its time is over; from the second attempt on, younger writes wait for it.

    A ticket, a file in the table's folder, makes them wait at some places: partitions or buckets. The places of this
    write's rows are not known before. So the first ticket covers the places at which this process met a writer lately;
    later tickets cover the whole table. ``shown`` is entered for the time of the write, and shows its progress. A write
    ``is_named`` if the user gave its id.
    """

    def __init__(
        self, settings: WriteSettings, ticket: Ticket, shown: AbstractContextManager[None] | None, *, is_named: bool
    ) -> None:
        self._is_named = is_named
        self._storage = ticket.storage
        self._settings = settings
        self._ticket = ticket
        self._shown = nullcontext() if shown is None else shown

    @classmethod
    def of(
        cls,
        storage: Storage,
        settings: WriteSettings,
        *,
        write_id: str = "",
        application: str = "",
        shown: AbstractContextManager[None] | None = None,
    ) -> Retries:
        """Return the runner of a write to the table of a folder, with a ticket as old as this call."""
        table = find_table(storage)
        owner = Owner.of_this_process(write_id or generated_id(), application, settings.patience)
        start_time = format_time(int(time.time() * 1000), "UTC" if table is None else table.config.timezone)
        ticket = Ticket(storage, f"{start_time}.{uuid.uuid4().hex[:8]}", owner, {})
        return cls(settings, ticket, shown, is_named=bool(write_id))

    def run(self, attempt: Callable[[str, PastAttempts], CommitResult], *, reads_first: bool = False) -> CommitResult:
        """Return the result of the first attempt that completes; raise its `CommitConflictError` when time is over.

        ``attempt`` writes under the write id of all attempts, and notes the earlier attempts in its instant. If it
        ``reads_first``, it makes its rows of the table's. Then it does not run for a write that has completed in an
        earlier call, because the rows of the table are others now, of which it might make no write.
        """
        with self._shown:
            earlier_result = self._completed_attempt() if reads_first and self._is_named else None
            return self._attempt_until_complete(attempt) if earlier_result is None else earlier_result

    def _attempt_until_complete(self, attempt: Callable[[str, PastAttempts], CommitResult]) -> CommitResult:
        """Repeat attempts, each in its turn among the writers with tickets, and return the result of the completed one.

        When the time is over, raise the last conflict instead.
        """
        patience, waited, number = self._settings.patience, NOT_WAITED, 0
        last_met: MetInstant | None = None
        until_s = time.monotonic() + self._settings.commit.retry_s
        recent_places = _recent_places(self._storage.path)
        ticket = replace(self._ticket, places=recent_places)
        while True:
            # Wait without a ticket, because writers of other partitions would wait for it.
            self._wait_for_rescale(last_met, until_s)
            number += 1
            with in_turn(ticket, patience, self._settings.commit.wait_s) as waited_now:
                waited = waited.and_then(waited_now)
                if recent_places and waited_now.met:
                    # Writers still meet at these places, so remember them for longer.
                    _note_meeting(self._storage.path, recent_places, adds=True)
                try:
                    return attempt(self._ticket.owner.write_id, PastAttempts(number - 1, waited))
                except Exception as error:
                    conflict = self._as_conflict(error)
                    if conflict is None:
                        raise
                    result = self._completed_attempt()
                    if result is not None:
                        return result
                    if time.monotonic() > until_s:
                        raise conflict from error
                    logger.info("table %s: the write is run again: %s", self._storage.path, conflict.what)
                    last_met = conflict.met
                    places = self._places_of(last_met)
                    # Places that are only from an error's text add to those of the meetings before.
                    _note_meeting(self._storage.path, places, adds=last_met is not None and last_met.from_text)
            # If a clean or archiving took something from the first attempt, no other writer has to wait.
            if places or number > 1:
                ticket = replace(self._ticket, places=None)

    def _as_conflict(self, error: Exception) -> CommitConflictError | None:
        """Return the conflict that an error means: the error itself, or that instants took files which the write reads.

        None for any other error.
        """
        if isinstance(error, CommitConflictError):
            return error
        taken = taken_since(self._storage, error)
        if taken is None:
            return None
        return CommitConflictError(
            f"The write to the table {self._storage.path} cannot be made. {taken.what}.",
            "This write left nothing behind; write again.",
            met=taken.met,
        )

    def _places_of(self, met: MetInstant | None) -> Places:
        """Return the bucket or partition of the file group at which two writes met; nothing if the conflict names none.

        An error here does not end the write.
        """
        if met is None or met.partition_path is None or met.file_id is None:
            return {}
        group = FileGroupId(met.partition_path, met.file_id)
        with suppress(PyHudiError):
            table = find_table(self._storage)
            config = None if table is None else table.config
            if config is None or index_for(config).is_global:
                return {}
            has_buckets = not (config.generates_keys or index_for(config).needs_lookup)
            number = computed_index_for(config).number_of(group) if has_buckets else None
            return (
                {group.partition_path: None} if number is None else places_of_buckets([(group.partition_path, number)])
            )
        return {}

    def _wait_for_rescale(self, met: MetInstant | None, until_s: float) -> None:
        """Wait for the rescale that the last attempt met, because no attempt can complete before its end."""
        if met is None or met.kind != InstantKind.RESCALE.value:
            return
        table = find_table(self._storage)
        if table is not None:
            wait_until_over(OtherWriters(table, self._settings.patience), met, until_s)

    def _completed_attempt(self) -> CommitResult | None:
        """Return the result of an attempt that completed although it failed here; None for none."""
        table = find_table(self._storage)
        return None if table is None else find_write(table, table.timeline(), self._ticket.owner.write_id)


def _recent_places(path: str) -> Places:
    """Return the partitions and buckets of a table at which this process met a writer lately."""
    return reduce(_union_of_places, (places for _, places in _recent_entries(path)), {})


def _recent_entries(path: str) -> tuple[tuple[float, Places], ...]:
    """Return the recent meetings at a table, as their times and places."""
    now_s = time.monotonic()
    return tuple((met_s, places) for met_s, places in _MET.get(path, ()) if met_s + _RECENT_S > now_s)


def _union_of_places(places: Places, other_places: Places) -> Places:
    """Return the places of two meetings: buckets by partition, None for the whole partition."""
    union: dict[str, frozenset[str] | None] = {**places, **other_places}
    for path in places.keys() & other_places.keys():
        first_buckets, second_buckets = places[path], other_places[path]
        union[path] = None if first_buckets is None or second_buckets is None else first_buckets | second_buckets
    return union


def _note_meeting(path: str, places: Places, *, adds: bool) -> None:
    """Remember the places of a meeting: with ``adds`` in addition to recent meetings, else instead of them."""
    if places:
        # The same places are remembered only once, by their last meeting.
        earlier_entries = tuple(entry for entry in _recent_entries(path) if entry[1] != places) if adds else ()
        keep(_MET, path, (*earlier_entries, (time.monotonic(), places)), _MOST_TABLES)
