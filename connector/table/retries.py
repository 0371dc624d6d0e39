"""Writes of `HudiTable` that are run again because another write of the same data came first."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from ...errors import CommitConflictError
from ...operations.planning.request import WriteSettings
from ...operations.result import CommitResult, PastAttempts, find_write
from ...operations.transaction.taken import taken_since
from ...operations.write_ids import generated_id
from ...options.model import HudiOptions
from ...options.sources import find_config
from ...storage import Storage
from ...table.table import Table
from ...timeline.clock import format_time
from ...timeline.writers.owner import Owner
from ...timeline.writers.tickets import Ticket, Waited, held, wait_for_older

logger = logging.getLogger("pyhudi")


class Retries:
    """Runs one write until it completes, or its time is over; from the second attempt on, younger writes wait for it.

    Which data the write changes is known only when its rows are, so it keeps back the writers of the whole table then.
    """

    def __init__(self, storage: Storage, settings: WriteSettings, owner: Owner, zone: str) -> None:
        self._storage = storage
        self._settings = settings
        name = f"{format_time(int(time.time() * 1000), zone)}.{uuid.uuid4().hex[:8]}"
        self._ticket = Ticket(storage, name, owner, {})

    @classmethod
    def of(cls, storage: Storage, options: HudiOptions) -> Retries:
        settings, config = options.write_settings(), find_config(storage)
        owner = Owner.of_this_process(options.write_id or generated_id(), options.application, settings.patience)
        return cls(storage, settings, owner, "UTC" if config is None else config.timezone)

    def run(self, attempt: Callable[[str, PastAttempts], CommitResult]) -> CommitResult:
        """Return the result of the first attempt that completes.

        Args:
            attempt: Writes under the write id that all attempts have in common, and notes those before in its instant.

        Raises:
            CommitConflictError: The write met another in each attempt until its time was over.
        """
        patience, waited, number = self._settings.patience, Waited(), 0
        until = time.monotonic() + self._settings.retry_s
        while True:
            number += 1
            whole = replace(self._ticket, places=None)
            with held(whole, patience) if number > 1 else nullcontext():
                waited.add(wait_for_older(whole if number > 1 else self._ticket, patience, self._settings.wait_s))
                try:
                    past = PastAttempts(number - 1, round(waited.seconds, 3), tuple(waited.met))
                    return attempt(self._ticket.owner.write_id, past)
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

    def _completed(self) -> CommitResult | None:
        """Return the result of an attempt that completed all the same."""
        config = find_config(self._storage)
        table = None if config is None else Table(self._storage, config)
        return None if table is None else find_write(table, table.timeline(), self._ticket.owner.write_id)
