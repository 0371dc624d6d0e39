"""Tickets: what a write is about to rewrite, so that younger writes of the same data wait until it is done.

Without them, of several writers of one file group each would merge at once, and all but one in vain; and a large write
would lose to small writes again and again. The oldest ticket never waits, so no two writes wait for each other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass

from ...errors import CorruptFileError
from ...storage.base import Storage, join, split
from ...storage.bounds import MOST_OF_A_NOTE, parse_json
from .. import formats
from .heartbeat import HeartbeatThread
from .owner import ROOT, Owner, is_dead, parse_owner
from .patience import Patience, Waited
from .seals import KEPT_S

FOLDER = join(ROOT, "tickets")
_FIRST_POLL_S = 0.01
_LAST_POLL_S = 0.25

# Places by partition path: buckets, or other names by which an index tells places apart; None for a whole partition.
Places = Mapping[str, frozenset[str] | None]


def places_of_buckets(buckets: Iterable[tuple[str, int]]) -> Places:
    """Return the numbers of buckets as texts by partition path; each bucket is given by its path and number."""
    places: dict[str, set[str]] = {}
    for path, bucket in buckets:
        places.setdefault(path, set()).add(str(bucket))
    return {path: frozenset(numbers) for path, numbers in places.items()}


@dataclass(frozen=True, slots=True)
class Ticket:
    """One write's claim to rewrite data before younger writes do.

    Attributes:
        name: The time at which the write first began, and what no other write has; names sort by age.
        places: What it rewrites; None for the whole table.
    """

    storage: Storage
    name: str
    owner: Owner
    places: Places | None

    @property
    def path(self) -> str:
        return join(FOLDER, self.name)

    def touch(self) -> None:
        """Write the ticket, which also makes its time that of its writer's last sign of life.

        If the places are more than a reader takes, the ticket names whole partitions, or else the whole table.
        """
        content = self._content(self.places)
        if len(content) > MOST_OF_A_NOTE and self.places is not None:
            content = self._content(dict.fromkeys(self.places))
        if len(content) > MOST_OF_A_NOTE:
            content = self._content(None)
        self.storage.write(self.path, content, durable=False)

    def _content(self, places: Places | None) -> bytes:
        """Return the content of the ticket's file with some places."""
        places_as_lists = (
            None
            if places is None
            else {path: None if buckets is None else sorted(buckets) for path, buckets in places.items()}
        )
        fields = {"owner": asdict(self.owner), "places": places_as_lists}
        return json.dumps(formats.numbered(fields, formats.TICKET)).encode()

    def meets(self, other_ticket: Ticket) -> bool:
        """Return whether both tickets name the same place, so that their writes rewrite the same data.

        False for two tickets of one write, which must not wait for itself.
        """
        if self.owner.write_id == other_ticket.owner.write_id:
            return False
        # A ticket without places rewrites the whole table, a path without buckets its whole partition.
        if self.places is None or other_ticket.places is None:
            return True
        for path in self.places.keys() & other_ticket.places.keys():
            mine, theirs = self.places[path], other_ticket.places[path]
            if mine is None or theirs is None or mine & theirs:
                return True
        return False


@contextmanager
def in_turn(ticket: Ticket, patience: Patience, longest_s: float) -> Iterator[Waited]:
    """Hold a ticket until the block ends; the block begins, with the wait, once writes of older tickets are done.

    A ticket that names no place is not held, as its write rewrites nothing. ``longest_s`` limits the wait.
    """
    with nullcontext() if ticket.places == {} else held(ticket, patience):
        yield wait_for_older(ticket, patience, longest_s)


@contextmanager
def held(ticket: Ticket, patience: Patience) -> Iterator[None]:
    """Hold a ticket until the block ends, also by an error, with a sign of life."""
    try:
        with HeartbeatThread(ticket.storage, ticket.name, patience.heartbeat_interval_s, ticket.touch):
            yield
    finally:
        ticket.storage.delete(ticket.path, durable=False)


def wait_for_older(ticket: Ticket, patience: Patience, longest_s: float) -> Waited:
    """Wait for the writes of older tickets that name a place of a ticket; return for how long, and for which writes.

    The wait ends once these tickets are given back, or their writers are dead, or ``longest_s`` are over.
    """
    started, poll_s = time.monotonic(), _FIRST_POLL_S
    tickets_by_name: dict[str, Ticket | None] = {}
    met_writes: dict[str, None] = {}
    while True:
        older = _older_of_living(ticket, patience, tickets_by_name)
        seconds = time.monotonic() - started
        if not older or seconds > longest_s:
            return Waited(seconds, tuple(met_writes))
        met_writes.update(dict.fromkeys(older_ticket.owner.write_id for older_ticket in older))
        time.sleep(poll_s)
        poll_s = min(2 * poll_s, _LAST_POLL_S)


def age_of(storage: Storage, write_id: str, begun: str) -> str:
    """Return the name of a ticket, which is the write's age: ``begun``, or a name after a ticket that it holds already.

    Names sort by age, so that a write's second ticket comes right after its first.
    """
    names = (split(info.path)[1] for info in storage.list(FOLDER, strict=False))
    tickets = (_read_ticket(storage, name) for name in sorted(names))
    own_name = next(
        (ticket.name for ticket in tickets if ticket is not None and ticket.owner.write_id == write_id), None
    )
    return begun if own_name is None else f"{own_name}.commit"


def _older_of_living(ticket: Ticket, patience: Patience, tickets_by_name: dict[str, Ticket | None]) -> list[Ticket]:
    """Return the older tickets of living writers that name a place of a ticket; tickets of dead writers are deleted.

    ``tickets_by_name`` keeps what each call read for the next. None is kept too, for a file without a usable ticket: no
    second ticket gets its name.
    """
    living = []
    now = ticket.storage.file_time()
    for info in ticket.storage.list(FOLDER, strict=False):
        name = split(info.path)[1]
        if name >= ticket.name:
            continue
        if name not in tickets_by_name:
            tickets_by_name[name] = _read_ticket(ticket.storage, name)
        older_ticket = tickets_by_name[name]
        # Without a usable ticket there is no owner to judge, and no write to wait for.
        if older_ticket is None or not ticket.meets(older_ticket):
            continue
        if is_dead(ticket.storage, info.path, info.modified, older_ticket.owner, patience, now):
            ticket.storage.delete(older_ticket.path, durable=False)
        else:
            living.append(older_ticket)
    return living


def remove_dead(storage: Storage, patience: Patience) -> None:
    """Delete the tickets of dead writers, which stay if no younger write of the same data comes."""
    now = storage.file_time()
    for info in storage.list(FOLDER, strict=False):
        silent_s = now - info.modified
        # A ticket that was touched of late needs no read.
        if silent_s <= patience.heartbeat_tolerance_s:
            continue
        ticket = _read_ticket(storage, split(info.path)[1])
        # Without a usable ticket there is no owner to judge, but a living writer would have touched its file.
        is_over = (
            silent_s > KEPT_S
            if ticket is None
            else is_dead(storage, info.path, info.modified, ticket.owner, patience, now)
        )
        if is_over:
            storage.delete(info.path, durable=False)


def _read_ticket(storage: Storage, name: str) -> Ticket | None:
    """Return the ticket in the file ``name``; None if it was given back, is damaged, too large, or of a later release.

    A ticket names the places that a write will change: partitions, and buckets in them. None in place of the partitions
    means the whole table, None in place of the buckets a whole partition.
    """
    try:
        data = storage.read(join(FOLDER, name), MOST_OF_A_NOTE)
        content = parse_json(data)
        if formats.number_of(content) > formats.TICKET:
            return None
        buckets_by_path = content["places"]
        places = (
            None
            if buckets_by_path is None
            else {path: None if buckets is None else frozenset(buckets) for path, buckets in buckets_by_path.items()}
        )
        return Ticket(storage, name, parse_owner(json.dumps(content["owner"]).encode()), places)
    except (FileNotFoundError, CorruptFileError, ValueError, KeyError, TypeError, AttributeError):
        return None
