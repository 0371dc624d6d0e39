"""Tickets of writes: which meet, who waits for whom, and for how long."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pyhudi.storage import Storage
from pyhudi.storage.bounds import MOST_OF_A_NOTE
from pyhudi.storage.memory import MemoryStorage
from pyhudi.timeline.writers.owner import Owner
from pyhudi.timeline.writers.patience import Patience
from pyhudi.timeline.writers.seals import KEPT_S
from pyhudi.timeline.writers.tickets import Places, Ticket, age_of, held, remove_dead, wait_for_older
from support.seams import patch_seam

PATIENT = Patience()
HASTY = Patience(heartbeat_interval_s=-1.0, heartbeat_misses=1)


@pytest.fixture
def storage() -> Storage:
    return MemoryStorage.open(f"memory://tickets/{time.monotonic_ns()}")


def ticket(
    storage: Storage, name: str, places: Places | None, write_id: str = "", patience: Patience = PATIENT
) -> Ticket:
    return Ticket(storage, name, Owner.of_this_process(write_id or name, patience=patience), places)


A0: Places = {"a": frozenset({"0"})}


@pytest.mark.parametrize(
    ("mine", "theirs", "meets"),
    [
        (A0, A0, True),
        (A0, {"a": frozenset({"1"})}, False),
        (A0, {"b": frozenset({"0"})}, False),
        (A0, {"a": None}, True),
        (A0, None, True),
        ({}, A0, False),
        ({}, None, True),
    ],
)
def test_tickets_meet_where_both_rewrite_a_place(storage: Storage, mine: Places, theirs: Places, meets: bool) -> None:
    first, second = ticket(storage, "1", mine), ticket(storage, "2", theirs)

    assert first.meets(second) == second.meets(first) == meets
    assert not first.meets(replace(second, owner=first.owner)), "both are of one write"


def test_the_younger_waits_until_the_older_is_given_back(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    older, younger = ticket(storage, "1", A0), ticket(storage, "2", A0)
    at = [100.0]

    def pause(seconds: float) -> None:
        at[0] += seconds
        if at[0] > 101:
            holding.close()

    with ExitStack() as holding:
        holding.enter_context(held(older, Patience()))
        patch_seam(monkeypatch, "clock of the wait for tickets", SimpleNamespace(monotonic=lambda: at[0], sleep=pause))
        assert wait_for_older(older, Patience(), 60).met == (), "the oldest never waits"
        waited = wait_for_older(younger, Patience(), 60)

    assert waited.met == ("1",)
    assert waited.seconds == at[0] - 100 > 1
    assert not storage.exists(older.path)


def test_a_write_waits_no_longer_than_it_may(storage: Storage) -> None:
    ticket(storage, "1", A0).touch()

    assert wait_for_older(ticket(storage, "2", A0), Patience(), 0.0).met == ()
    assert storage.exists(ticket(storage, "1", A0).path)


def test_the_ticket_of_a_dead_write_keeps_no_write_waiting(storage: Storage) -> None:
    dead = ticket(storage, "1", A0, patience=HASTY)
    dead.touch()

    assert wait_for_older(ticket(storage, "2", A0), HASTY, 60).met == ()
    assert not storage.exists(dead.path)


NO_TICKETS = [b"{}", b'{"format": 99}', b" " * (MOST_OF_A_NOTE + 1)]


def test_what_is_no_ticket_is_passed_over(storage: Storage) -> None:
    for name, content in enumerate(NO_TICKETS):
        storage.write(ticket(storage, str(name), A0).path, content)

    assert wait_for_older(ticket(storage, "9", A0), Patience(), 60).met == ()


@pytest.mark.parametrize("content", NO_TICKETS)
def test_what_is_no_ticket_is_removed_after_a_day(storage: Storage, content: bytes) -> None:
    path = ticket(storage, "1", A0).path
    storage.write(path, content)
    storage.set_modified(path, storage.now() - KEPT_S + 60)
    remove_dead(storage, PATIENT)
    assert storage.exists(path), "its writer may live"

    storage.set_modified(path, storage.now() - KEPT_S - 60)
    remove_dead(storage, PATIENT)

    assert not storage.exists(path)


@pytest.mark.parametrize(("partitions", "elsewhere_waits"), [(1_500, False), (4_000, True)])
def test_a_write_of_many_places_keeps_others_waiting(storage: Storage, partitions: int, elsewhere_waits: bool) -> None:
    """Its ticket names whole partitions, or the whole table, so that its file is not too large to read."""
    buckets = frozenset(map(str, range(8)))
    ticket(storage, "1", {f"region=eu/day={number:05}": buckets for number in range(partitions)}).touch()

    def waits(places: Places) -> bool:
        return wait_for_older(ticket(storage, "2", places), Patience(), 0.02).met == ("1",)

    assert waits({"region=eu/day=00000": frozenset({"7"})})
    assert waits({"region=us": None}) == elsewhere_waits


def test_a_commit_has_the_age_of_the_ticket_that_its_write_holds(storage: Storage) -> None:
    ticket(storage, "1", None, "mine").touch()

    assert age_of(storage, "mine", "5") == "1.commit"
    assert age_of(storage, "other", "5") == "5"


def test_only_tickets_of_the_dead_are_removed(storage: Storage) -> None:
    """A writer that gives signs of life more rarely than the remover is not dead yet."""
    mine = ticket(storage, "1", A0, patience=Patience(heartbeat_interval_s=600.0))
    gone = ticket(storage, "2", A0, patience=HASTY)
    for one in (mine, gone):
        one.touch()
    remove_dead(storage, Patience())
    assert storage.exists(gone.path), "it was touched a moment ago"

    remove_dead(storage, HASTY)

    assert storage.exists(mine.path)
    assert not storage.exists(gone.path)
