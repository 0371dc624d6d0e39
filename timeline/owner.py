"""Whose a pending instant is, and whether its writer is dead.

A write of pyhudi keeps a working folder ``.hoodie/.pyhudi/<instant>`` with the file ``owner.json``, and later the
file ``sealed``, after which its tasks may not publish any more.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from ..errors import CorruptInstantError
from ..storage import process
from ..storage.base import Storage, join
from . import heartbeat
from .clock import parse_time
from .instants import Instant, State
from .layout import Layout, LayoutV2

ROOT = ".hoodie/.pyhudi"
OWNER_FILE = "owner.json"
# Notes of writes that are over, beside the working folders: they outlive those, and one listing finds them all.
SEALS = f"{ROOT}/sealed"
_GIVEN_UP = b"given up"

_DEFAULT_LAYOUT = LayoutV2()


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that answers for a write.

    Attributes:
        host: Its machine's name.
        boot_id: Tells apart process numbers of different boots and containers; "" where that cannot be known.
        pid: Its number: Spark's driver, where there is one.
        process_started: Tells it from a later process of the same number; "" where that cannot be known.
        application: Name of the application, for other writers' error messages.
        write_id: Identifies the write across replays.
    """

    host: str
    boot_id: str
    pid: int
    process_started: str
    application: str
    write_id: str

    @classmethod
    def of_this_process(cls, write_id: str, application: str = "") -> Owner:
        """Return the owner of a write that begins here: the nearest Java ancestor, else this process."""
        found = process.responsible_process()
        return cls(process.host_name(), process.machine_id(), found.pid, found.started, application, write_id)


@dataclass(frozen=True, slots=True)
class Liveness:
    """Whether an instant's writer lives, and by what that is known.

    Attributes:
        alive: False when the instant may be rolled back.
        reason: For people: "last heartbeat 35 s ago".
    """

    alive: bool
    reason: str


def folder(instant_time: str) -> str:
    """Return the working folder of a write."""
    return join(ROOT, instant_time)


def create(storage: Storage, instant_time: str, owner: Owner) -> bool:
    """Claim an instant time.

    Returns:
        False where it is claimed already, by this write or another.
    """
    return storage.create(_path(instant_time), json.dumps(asdict(owner), indent=1).encode())


def read(storage: Storage, instant_time: str) -> Owner | None:
    """Return who claimed an instant time; None where nobody of pyhudi did.

    Raises:
        CorruptInstantError: The file that says so cannot be parsed.
    """
    path = _path(instant_time)
    try:
        data = storage.read(path)
    except FileNotFoundError:
        return None
    try:
        found = json.loads(data)
        return Owner(
            host=str(found["host"]),
            boot_id=str(found["boot_id"]),
            pid=int(found["pid"]),
            process_started=str(found["process_started"]),
            application=str(found["application"]),
            write_id=str(found["write_id"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptInstantError(
            f"The file {join(storage.path, path)} does not say whose the instant {instant_time} is ({error!r}).",
            "If no writer is at work, delete that file; the instant then counts as a foreign one.",
        ) from error


def is_gone(owner: Owner) -> bool | None:
    """Return whether an owner's process is gone; None where that cannot be known from here."""
    if not owner.boot_id or (owner.host, owner.boot_id) != (process.host_name(), process.machine_id()):
        return None
    found = process.find_process(owner.pid)
    if found is None:
        return True
    return bool(owner.process_started and found.started and owner.process_started != found.started)


def seal(storage: Storage, instant_time: str) -> None:
    """Forbid the tasks of a write to publish any more; doing so twice is no error."""
    storage.create(_sealed(instant_time), b"")


def seal_for_good(storage: Storage, instant_time: str) -> None:
    """Seal a write that is given up, so that a task which was about to begin it takes that back."""
    storage.write(_sealed(instant_time), _GIVEN_UP)


def is_given_up(storage: Storage, instant_time: str) -> bool:
    """Return whether a write was sealed because it is given up."""
    try:
        return storage.read(_sealed(instant_time)) == _GIVEN_UP
    except FileNotFoundError:
        return False


def is_sealed(storage: Storage, instant_time: str) -> bool:
    """Return whether the tasks of a write may not publish any more."""
    return storage.exists(_sealed(instant_time))


def judge(
    storage: Storage,
    instant: Instant,
    *,
    now_s: float,
    heartbeat_tolerance_s: float,
    foreign_age_s: float,
    eager: bool,
    zone: str,
    layout: Layout = _DEFAULT_LAYOUT,
) -> Liveness:
    """Decide whether the writer of a pending instant is dead.

    Of our own writes: when the process is gone from this machine, else when the heartbeat is overdue. Of foreign ones
    with a heartbeat: when that is overdue. Of foreign ones without: when they are old, or at once where the user says
    that every unfinished write is a failed one.

    Args:
        storage: Rooted at the table.
        instant: The pending instant.
        now_s: The store's clock, epoch seconds.
        heartbeat_tolerance_s: Seconds after which a heartbeat is overdue.
        foreign_age_s: Seconds after which a foreign instant without heartbeat counts as dead.
        eager: Whether such an instant counts as dead at once.
        zone: The timeline's time zone.
        layout: How the instant's files are named.

    Raises:
        CorruptInstantError: It cannot be told whose the instant is.
    """
    owner = read(storage, instant.requested_time)
    if owner is not None and is_gone(owner):
        return Liveness(False, f"its process {owner.pid} on this machine ({_of(owner)}) is gone")
    beat = storage.modified(heartbeat.path_of(instant.requested_time))
    by = "" if owner is None else f", process {owner.pid} on {_of(owner)}"
    if beat is not None:
        silent = max(0.0, now_s - beat)
        return Liveness(silent <= heartbeat_tolerance_s, f"last heartbeat {_span(silent)} ago{by}")
    if owner is not None:
        # Its first heartbeat comes right after owner.json.
        began = storage.modified(_path(instant.requested_time))
        silent = max(0.0, now_s - (now_s if began is None else began))
        return Liveness(silent <= heartbeat_tolerance_s, f"no heartbeat yet; begun {_span(silent)} ago{by}")
    silent = max(0.0, now_s - _last_change(storage, instant, layout, zone, now_s))
    reason = f"no heartbeat; {_span(silent)} old"
    if eager:
        return Liveness(False, f"{reason}; hoodie.clean.failed.writes.policy is EAGER")
    dead = silent > foreign_age_s
    return Liveness(not dead, f"{reason}; {'over' if dead else 'taken for dead after'} {_span(foreign_age_s)}")


def _last_change(storage: Storage, instant: Instant, layout: Layout, zone: str, now_s: float) -> float:
    """Return when a pending instant's files last changed, or was asked for where they are not to be found."""
    states = [Instant(instant.requested_time, instant.action, state) for state in (State.REQUESTED, State.INFLIGHT)]
    times = [storage.modified(join(layout.folder, layout.format(one))) for one in states]
    known = [time for time in times if time is not None]
    if known:
        return max(known)
    try:
        return parse_time(instant.requested_time, zone) / 1000
    except ValueError:
        return now_s


def _of(owner: Owner) -> str:
    return f"{owner.host}, application {owner.application}" if owner.application else owner.host


def _path(instant_time: str) -> str:
    return join(folder(instant_time), OWNER_FILE)


def _sealed(instant_time: str) -> str:
    return join(SEALS, instant_time)


def _span(seconds: float) -> str:
    """Return a duration for people: "35 s", "12 minutes", "3 hours"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
