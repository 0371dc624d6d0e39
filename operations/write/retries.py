"""Writes that are run again, rows and all, because another write of the same data came first.

Where a write meets another, it runs in vain. So once a process has met one, its writes of the table leave a ticket
before they begin, for the data of the meeting, as long as writers wait for each other: they come one after another
then, and writers of other data wait for none of them.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace

from ...errors import CommitConflictError, PyHudiError
from ...index.registry import computed_index_for, index_for
from ...storage import Storage
from ...storage.kept import keep
from ...table.files.names import FileGroupId
from ...table.table import find_table
from ...timeline.clock import format_time
from ...timeline.rescales import named_rescale
from ...timeline.writers.owner import Owner
from ...timeline.writers.patience import NOT_WAITED
from ...timeline.writers.tickets import Places, Ticket, held, places_of_buckets, wait_for_older
from ..planning.request import WriteSettings
from ..result import CommitResult, PastAttempts, find_write
from ..rollback.dead import wait_until_over
from ..rollback.pending import OtherWriters
from ..transaction.taken import taken_since
from ..write_ids import generated_id

logger = logging.getLogger("pyhudi")

# What the last meeting of this process was about, and when it was: by the table's path.
_MET: dict[str, tuple[float, Places]] = {}
_RECENT_S = 60.0
_MOST_TABLES = 64


class Retries:
    """Runs one write until it completes, or its time is over; from the second attempt on, younger writes wait for it.

    Which data the write changes is known only when its rows are. So it keeps back the writers of the whole table then,
    and at first those of the data that this process's writes met another write at. ``shown`` is entered for the time
    of the write, and shows how far it is.
    """

    def __init__(self, settings: WriteSettings, ticket: Ticket, shown: AbstractContextManager[None] | None) -> None:
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
        table = find_table(storage)
        owner = Owner.of_this_process(write_id or generated_id(), application, settings.patience)
        began = format_time(int(time.time() * 1000), "UTC" if table is None else table.config.timezone)
        return cls(settings, Ticket(storage, f"{began}.{uuid.uuid4().hex[:8]}", owner, {}), shown)

    def run(self, attempt: Callable[[str, PastAttempts], CommitResult]) -> CommitResult:
        """Return the result of the first attempt that completes; raise its `CommitConflictError` when time is over.

        ``attempt`` writes under the write id that all attempts share, and notes those before in its instant.
        """
        with self._shown:
            return self._until_done(attempt)

    def _until_done(self, attempt: Callable[[str, PastAttempts], CommitResult]) -> CommitResult:
        patience, waited, number, what = self._settings.patience, NOT_WAITED, 0, ""
        until = time.monotonic() + self._settings.retry_s
        met = _recent_meeting(self._storage.path)
        ticket = replace(self._ticket, places=met)
        while True:
            # Not with a ticket, for which writers of other partitions would wait.
            self._wait_for_rescale(what, until)
            number += 1
            with nullcontext() if ticket.places == {} else held(ticket, patience):
                found = wait_for_older(ticket, patience, self._settings.wait_s)
                waited = waited.and_then(found)
                if met and found.met:
                    _note_meeting(self._storage.path, met)
                try:
                    return attempt(self._ticket.owner.write_id, PastAttempts(number - 1, waited))
                except Exception as error:
                    conflict = self._conflict(error)
                    if conflict is None:
                        raise
                    done = self._completed()
                    if done is not None:
                        return done
                    if time.monotonic() > until:
                        raise conflict from error
                    logger.info("table %s: the write is run again: %s", self._storage.path, conflict.what)
                    what = conflict.what
                    places = self._places_in(conflict.what)
                    _note_meeting(self._storage.path, places)
            # At first no other writer is kept back for what a clean or archiving took.
            if places or number > 1:
                ticket = replace(self._ticket, places=None)

    def _conflict(self, error: Exception) -> CommitConflictError | None:
        """Return an error that is a conflict, or what other instants took so that Spark or this process missed it."""
        if isinstance(error, CommitConflictError):
            return error
        what = taken_since(self._storage, error)
        if what is None:
            return None
        return CommitConflictError(
            f"The write to the table {self._storage.path} cannot be made. {what}.",
            "This write left nothing behind; write again.",
        )

    def _places_in(self, what: str) -> Places:
        """Return the place of the file group at which a conflict says that two writes met; nothing where it names none.

        What cannot be found out now is no reason to end the write.
        """
        with suppress(PyHudiError):
            group, table = FileGroupId.named_in(what), find_table(self._storage)
            config = None if table is None else table.config
            if group is None or config is None or index_for(config).is_global:
                return {}
            has_buckets = not (config.generates_keys or index_for(config).needs_lookup)
            number = computed_index_for(config).number_of(group) if has_buckets else None
            return (
                {group.partition_path: None} if number is None else places_of_buckets([(group.partition_path, number)])
            )
        return {}

    def _wait_for_rescale(self, what: str, until_s: float) -> None:
        """Wait for the rescale that a conflict names: before its end, no attempt can complete."""
        named = named_rescale(what)
        table = None if named is None else find_table(self._storage)
        if named is not None and table is not None:
            wait_until_over(OtherWriters(table, self._settings.patience), named, until_s)

    def _completed(self) -> CommitResult | None:
        """Return the result of an attempt that completed all the same."""
        table = find_table(self._storage)
        return None if table is None else find_write(table, table.timeline(), self._ticket.owner.write_id)


def _recent_meeting(path: str) -> Places:
    at, places = _MET.get(path, (0.0, {}))
    return places if at + _RECENT_S > time.monotonic() else {}


def _note_meeting(path: str, places: Places) -> None:
    if places:
        keep(_MET, path, (time.monotonic(), places), _MOST_TABLES)
