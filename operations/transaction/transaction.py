"""One instant of a table in the making, whatever it will change: who works on it, and what was complete before it.

Every write and every table service that changes the table goes through these steps, each in any process and any
number of times:

    Transaction  --begin-->  on the timeline  --Fence, complete-->  part of the table
                                              --abort------------>  as if it had never been
"""

from __future__ import annotations

from dataclasses import dataclass

from ...storage.base import Storage
from ...table.config import TableConfig
from ...table.table import Table
from ...timeline.instants import Instant, State
from ...timeline.watermark import Watermark
from ...timeline.writers import owner
from ...timeline.writers.markers import Markers
from ...timeline.writers.owner import Claim, Owner, Seal
from ...timeline.writers.patience import Patience
from ...timeline.writers.reserve import Reserve


@dataclass(frozen=True, slots=True)
class Transaction:
    """One instant in the making; it travels with every task, and is small whatever the table's size.

    Attributes:
        table: The table, with the properties that it has or is going to have.
        action: The instant's action.
        instant_time: Requested time of the instant.
        write_id: Identifies the work across replays.
        owner: Which process answers for it.
        watermark: What was complete when it was planned.
        patience: When it takes another writer for dead.
        shared: Whether others may go on with the same instant when this process is gone: what is published for it is
            fenced by who works on it, too.
    """

    table: Table
    action: str
    instant_time: str
    write_id: str
    owner: Owner
    watermark: Watermark
    patience: Patience
    shared: bool = False

    @property
    def path(self) -> str:
        """The table's path."""
        return self.table.path

    @property
    def storage(self) -> Storage:
        """The table's store."""
        return self.table.storage

    @property
    def config(self) -> TableConfig:
        """The table's properties, as they are or will be."""
        return self.table.config

    @property
    def seals(self) -> tuple[str, ...]:
        """The names of the notes that end this work: its instant's, and its own where others may take that over."""
        return (self.instant_time, owner.seal_of(self.instant_time, self.write_id))[: 1 + self.shared]

    @property
    def claim(self) -> Claim:
        """The file that says whose the instant is."""
        return Claim(self.storage, self.instant_time)

    @property
    def seal(self) -> Seal:
        """The note that ends the instant's work."""
        return Seal(self.storage, self.instant_time)

    @property
    def reserve(self) -> Reserve:
        """The space that is kept for the work's end."""
        return Reserve(self.storage, self.instant_time)

    @property
    def markers(self) -> Markers:
        """The names of the data files that the work has announced."""
        return Markers(self.storage, self.instant_time)

    @property
    def inflight(self) -> Instant:
        """The instant while work on it goes on."""
        return Instant(self.instant_time, self.action, State.INFLIGHT)

    @property
    def aside(self) -> str:
        """The folder in which files grow before they are published."""
        return f"{owner.folder(self.instant_time)}/aside"

    @property
    def spills(self) -> str:
        """The folder in which rows wait for the commit to merge them."""
        return f"{owner.folder(self.instant_time)}/spills"
