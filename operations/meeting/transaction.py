"""One instant of a table in the making: its process, and the instants that were complete at its plan.

Each write and each table service that changes the table takes these steps, in any process, any number of times:

    Transaction  --begin-->  on the timeline  --Fence, complete-->  part of the table
                                              --abort------------>  as if it had never been
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...errors import CommitConflictError, MetInstant
from ...storage.base import Storage
from ...table.config import TableConfig
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.watermark import Watermark
from ...timeline.writers import heartbeat, owner
from ...timeline.writers.markers import Markers
from ...timeline.writers.owner import Claim, Owner, Seal
from ...timeline.writers.patience import Patience
from ...timeline.writers.reserve import Reserve
from ...timeline.writers.write_notes import WriteNotes


@dataclass(frozen=True, slots=True)
class Transaction:
    """One instant in the making; every task gets a copy, which is small whatever the table's size.

    Attributes:
        instant_time: The requested time; empty until the first task of a write puts it on the timeline.
        write_id: Identifies the work across replays.
        watermark: The instants that were complete at the plan, in a small form.
        patience: When it takes another writer for dead.
        shared: Whether other processes may continue it once this process is gone; each process then also has its own
            seal.
        key: Names the notes by which the processes of a write find its instant; empty if the plan names the instant.
        bounded: The columns whose bounds followers need of each data file.
    """

    table: Table
    action: str
    instant_time: str
    write_id: str
    owner: Owner
    watermark: Watermark
    patience: Patience
    shared: bool = False
    key: str = ""
    bounded: tuple[str, ...] = ()

    def at(self, instant_time: str) -> Transaction:
        """Return the same work under another requested time."""
        return replace(self, instant_time=instant_time)

    def is_of(self, claim_owner: Owner) -> bool:
        """Return whether an instant belongs to this work, and not to a replay of it."""
        return (claim_owner.write_id, claim_owner.key) == (self.write_id, self.key)

    def conflict(self, reason: str, met: MetInstant | None = None) -> CommitConflictError:
        """Return the error of a write that cannot be committed; ``reason`` is a sentence without its full stop.

        ``met`` is the instant of another writer that it met, for a caller that decides whether to write again.
        """
        return CommitConflictError(
            f"The write {self.instant_time} of the table {self.path} cannot be committed. {reason}.",
            "This write left nothing behind; write again.",
            met=met,
        )

    @contextmanager
    def heartbeat(self) -> Iterator[Transaction]:
        """Touch the instant's heartbeat until the block ends."""
        with heartbeat.HeartbeatThread(self.storage, self.instant_time, self.patience.heartbeat_interval_s):
            yield self

    @property
    def notes(self) -> WriteNotes:
        """The notes by which the processes of a write find its instant."""
        return WriteNotes(self.storage, self.key)

    @property
    def path(self) -> str:
        return self.table.path

    @property
    def storage(self) -> Storage:
        return self.table.storage

    @property
    def config(self) -> TableConfig:
        return self.table.config

    @property
    def seals(self) -> tuple[str, ...]:
        """The names of the seals that end this work: the instant's, and its own if other processes may continue it."""
        return (self.instant_time, owner.seal_of(self.instant_time, self.write_id))[: 1 + self.shared]

    @property
    def claim(self) -> Claim:
        """The file that names the owner of the instant's time."""
        return Claim(self.storage, self.instant_time)

    @property
    def seal(self) -> Seal:
        """The file that ends the work of all tasks: from then on none publishes a file."""
        return Seal(self.storage, self.instant_time)

    @property
    def reserve(self) -> Reserve:
        """The space that the instant keeps on the disk for its end."""
        return Reserve(self.storage, self.instant_time)

    @property
    def markers(self) -> Markers:
        """The files that name each data file before it exists."""
        return Markers(self.storage, self.instant_time)

    @property
    def inflight(self) -> Instant:
        return Instant(self.instant_time, self.action, State.INFLIGHT)

    @property
    def aside(self) -> str:
        """The folder of data files in the making, which are moved into place once they are whole."""
        return self.claim.aside

    @property
    def spills(self) -> str:
        """The folder of rows that tasks hand over to the commit."""
        return self.claim.spills
