"""The owner of a pending instant, and whether its writer is dead.

A write of pyhudi keeps a working folder ``.hoodie/.pyhudi/<instant>`` with the file ``owner.json``. Its end is a seal,
``.hoodie/.pyhudi/sealed/<hour>.v2/<instant>``, after which its tasks may not publish any more.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from dataclasses import asdict, dataclass, field, fields

from ...errors import CorruptInstantError
from ...storage import process
from ...storage.base import Storage, join
from ...storage.bounds import MOST_OF_A_NOTE, parse_json
from .. import formats
from ..clock import parse_time
from ..instant_files import InstantFiles
from ..instants import Instant, State
from . import heartbeat, markers
from .patience import Patience

logger = logging.getLogger("pyhudi")

ROOT = ".hoodie/.pyhudi"
OWNER_FILE = "owner.json"
# Files of the archive grow here. The next write removes the remains of a process that died.
SCRATCH = f"{ROOT}/merging"
# Which archived write had which id, a note that each archiving makes.
WRITE_IDS = f"{ROOT}/write_ids"
# Notes of finished writes outlive the writes' working folders; `seals` expires them.
SEALS = f"{ROOT}/sealed"
# Digits of a requested time that name the folder of its seal.
_HOUR = len("yyyyMMddHH")
_GIVEN_UP = b"given up"
_NAMESPACE = uuid.UUID("0f6e2f0c-2b53-5a8e-9d0a-6a4c3f1f7b52")
_GREATEST_PID = (1 << 31) - 1

_PATIENT = Patience()
_TEXTS = ("host", "boot_id", "process_started", "application", "write_id", "key")
_OF_STREAMS = ("query_id", "batch_id", "run_id", "identifier")
_SECONDS = ("heartbeat_interval_s", "heartbeat_tolerance_s")

_WAIT = "Wait until that writer is done and write again"

_POLL_S = 0.5
_MOST_SEEN = 1000

# By table and path: the last modification time seen, and the monotonic time of its first sight.
_first_sights: dict[tuple[str, str], tuple[float, float]] = {}
_lock = threading.Lock()


def _forget_signs() -> None:
    """Give a forked child process signs of its own: a thread that changes the parent's is not in the child."""
    global _first_sights, _lock
    _first_sights, _lock = {}, threading.Lock()


os.register_at_fork(after_in_child=_forget_signs)


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that answers for a write.

    ``boot_id`` and ``process_started`` separate processes of the same ``pid`` on other boots, in other containers, and
    later; "" if unknown. The write's own heartbeat interval and tolerance are 0 if a release before these fields
    made the write. ``key`` names the notes of the write, whose ``write_id`` a replay has, too. A micro-batch has the id
    of its query, its number, the id of the query's run, and the stream's name for Apache Hudi, all "" of other writes.
    """

    host: str
    boot_id: str
    pid: int
    process_started: str
    application: str
    write_id: str
    heartbeat_interval_s: float = 0.0
    heartbeat_tolerance_s: float = 0.0
    key: str = ""
    query_id: str = ""
    batch_id: str = ""
    run_id: str = ""
    identifier: str = ""

    @classmethod
    def of_this_process(
        cls, write_id: str, application: str = "", patience: Patience = _PATIENT, key: str = ""
    ) -> Owner:
        """Return the owner of a write that begins here: the nearest Java ancestor, else this process.

        ``patience`` has the write's heartbeat interval and tolerance, and ``key`` names its notes.
        """
        responsible = process.responsible_process()
        return cls(
            process.host_name(),
            # Without the machine's id, no process judges the owner by its number.
            "" if patience.heartbeats_alone else process.machine_id(),
            responsible.pid,
            responsible.started,
            application,
            write_id,
            patience.heartbeat_interval_s,
            patience.heartbeat_tolerance_s,
            key,
        )

    @property
    def place(self) -> str:
        """Where the process is, in words."""
        return f"{self.host}, application {self.application}" if self.application else self.host

    def tolerance_s(self, judging: Patience) -> float:
        """Return the seconds without a heartbeat after which the writer is dead: the greater of two tolerances.

        They are the write's own, and that of the process that judges by the patience ``judging``.
        """
        own_tolerance_s = self.heartbeat_tolerance_s if self.heartbeat_interval_s else judging.heartbeat_tolerance_s
        return max(own_tolerance_s, judging.heartbeat_tolerance_s)


@dataclass(frozen=True, slots=True)
class Liveness:
    """Whether an instant's writer lives, with reason and advice for people.

    ``beat`` is the time of the heartbeat that decided, by the store's clock; None if there is none. ``foreign`` says
    that no process of pyhudi answers for the instant.
    """

    alive: bool
    reason: str
    todo: str = field(default="", compare=False)
    beat: float | None = field(default=None, compare=False)
    foreign: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of one instant time: the file that names the write's owner."""

    storage: Storage
    instant_time: str

    @property
    def folder(self) -> str:
        return join(ROOT, self.instant_time)

    @property
    def path(self) -> str:
        return join(self.folder, OWNER_FILE)

    @property
    def aside(self) -> str:
        """The folder of files that tasks write first, and that the commit puts into their places."""
        return f"{self.folder}/aside"

    @property
    def spills(self) -> str:
        """The folder of rows that wait on disk for a task."""
        return f"{self.folder}/spills"

    def make(self, owner: Owner) -> bool:
        """Claim the instant time for the owner, by a file; False if this write or another has claimed it already."""
        fields_of_owner = {name: value for name, value in asdict(owner).items() if value or name not in _OF_STREAMS}
        content = formats.numbered(fields_of_owner, formats.OWNER)
        return self.storage.create(self.path, json.dumps(content, indent=1).encode())

    def owner(self) -> Owner | None:
        """Return the process that claimed the instant time; None if no process of pyhudi did."""
        try:
            data = self.storage.read(self.path, MOST_OF_A_NOTE)
        except FileNotFoundError:
            return None
        try:
            formats.refuse_newer(self.storage.path, self.path, formats.number_of(parse_json(data)), formats.OWNER)
            return parse_owner(data)
        except ValueError as error:
            raise CorruptInstantError(
                f"The file {join(self.storage.path, self.path)} does not name the owner of the instant "
                f"{self.instant_time} ({error}).",
                "If no writer is at work, delete that file; the instant then counts as another engine's.",
            ) from error


def parse_owner(data: bytes) -> Owner:
    """Return the owner in the JSON of a note; ValueError if a field is missing or of another type."""
    content = parse_json(data)
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    # A release before these fields, or a write without a stream, leaves them out.
    values = {**dict.fromkeys(_SECONDS, 0.0), **dict.fromkeys(("key", *_OF_STREAMS), ""), **content}
    kinds: dict[str, tuple[type, ...]] = {**dict.fromkeys((*_TEXTS, *_OF_STREAMS), (str,)), "pid": (int,)}
    # Compare exact types: to `isinstance` a bool is an int.
    for name, types in {**kinds, **dict.fromkeys(_SECONDS, (int, float))}.items():
        if type(values.get(name)) not in types:
            raise ValueError(f"its {name} is missing or has a wrong type")
    if not 0 < values["pid"] <= _GREATEST_PID:
        raise ValueError("its pid is no process number")
    return Owner(**{field.name: values[field.name] for field in fields(Owner)})


def is_gone(owner: Owner) -> bool | None:
    """Return whether an owner's process is gone; None if this machine cannot know."""
    if not owner.boot_id or (owner.host, owner.boot_id) != (process.host_name(), process.machine_id()):
        return None
    running = process.find_process(owner.pid)
    if running is None:
        return True
    # A process that started at another time got the owner's number after the owner ended.
    return bool(owner.process_started and running.started and owner.process_started != running.started)


def is_dead(storage: Storage, last_sign: str, modified: float, owner: Owner, patience: Patience, now_s: float) -> bool:
    """Return whether the writer of a note counts as dead, by the file that was its last sign of life; wait for nothing.

    ``modified`` is that file's modification time, and ``now_s`` the time that a file made now gets.
    """
    is_process_gone = None if patience.heartbeats_alone else is_gone(owner)
    tolerance_s = owner.tolerance_s(patience)
    if is_process_gone is None:
        return now_s - modified > tolerance_s
    # The steady clock counts from this process's first look, so look in either case.
    still_s = stood_still_s(storage, last_sign, modified)
    # While its process exists, the writer is dead only if both clocks say so, as the store's clock may have stepped.
    return is_process_gone or still_s > tolerance_s < now_s - modified


def seal_of(instant_time: str, write_id: str) -> str:
    """Return the name of a seal for one of the processes that work on an instant one after another."""
    # A write id comes from another process's file, so a hash of it makes the path.
    return f"{instant_time}.{uuid.uuid5(_NAMESPACE, write_id).hex}"


@dataclass(frozen=True, slots=True)
class Seal:
    """The seal of one write, by requested time or `seal_of`: its tasks may not publish any more."""

    storage: Storage
    name: str

    def set(self, key: str = "") -> None:
        """Seal a write that ends; ``key`` is its `Owner.key`."""
        self.storage.create(self._path, key.encode(), durable=False)

    def key(self) -> str | None:
        """Return the key of the sealed write, "" if the seal names none; None without a seal."""
        try:
            return self.storage.read(self._path, MOST_OF_A_NOTE).decode(errors="replace")
        except FileNotFoundError:
            return None

    def set_for_good(self, key: str = "") -> None:
        """Seal a write that is given up, so that a task that is just beginning the write stops.

        Every release looks at the note, as another release may have made the write. ``key`` is the write's `Owner.key`,
        which tells it from a later write of the same time.
        """
        self.storage.write(self._note, _GIVEN_UP, durable=False)
        # Write it again: a commit may have made it long ago, and its age must count from now.
        self.storage.write(self._path, key.encode(), durable=False)

    def is_given_up(self) -> bool:
        try:
            return self.storage.read(self._note) == _GIVEN_UP
        except FileNotFoundError:
            return False

    def is_set(self) -> bool:
        """Return whether the tasks may not publish any more, by this release's seals.

        The release before these seals writes only the note when it gives up a write of this release.
        """
        return self.storage.exists(self._path)

    @property
    def _path(self) -> str:
        return seal_of_instant(self.name)

    @property
    def _note(self) -> str:
        return join(SEALS, self.name)


def seal_of_instant(name: str) -> str:
    """Return the path of a seal by its name, which begins with a requested time."""
    return join(seal_folder(name[:_HOUR]), name)


def seal_folder(hour: str) -> str:
    """Return the folder of the seals of writes that were requested within an hour, ``yyyyMMddHH``."""
    return join(SEALS, f"{hour}.v{formats.SEALS}")


@dataclass(frozen=True, slots=True)
class Suspect:
    """A pending instant whose writer may be dead. ``now_s`` is the store's clock, epoch seconds."""

    instants: InstantFiles
    instant: Instant
    patience: Patience
    now_s: float
    zone: str

    def judge(self, known_beat: float | None = None, *, may_wait: bool = True) -> Liveness:
        """Return whether the writer lives, with reason and advice.

        A writer of pyhudi is dead when its process is gone from this machine, or when its heartbeat is overdue. While
        the process exists, this process's monotonic clock decides that, as a machine's clock may step. A foreign writer
        with a heartbeat is dead when that is overdue, a foreign writer without a heartbeat when the user's options say
        so. ``known_beat`` was overdue at an earlier judgement. ``may_wait`` allows to watch an overdue heartbeat until
        its tolerance is over.
        """
        storage, claim = self.instants.storage, Claim(self.instants.storage, self.instant.requested_time)
        owner = claim.owner()
        is_process_gone = None if owner is None or self.patience.heartbeats_alone else is_gone(owner)
        if owner is not None and is_process_gone:
            return Liveness(False, f"its process {owner.pid} on this machine ({owner.place}) is gone")
        last_sign, sign_name = heartbeat.Heartbeat(storage, self.instant.requested_time).path, "last heartbeat"
        beat = storage.modified(last_sign)
        if beat is None and owner is None:
            return self._judge_without_signs()
        if beat is None:
            # A write's first heartbeat comes right after owner.json.
            last_sign, sign_name = claim.path, "no heartbeat yet; begun"
            beat = storage.modified(last_sign)
        silent_s = max(0.0, self.now_s - (self.now_s if beat is None else beat))
        by_whom = "" if owner is None else f", process {owner.pid} on {owner.place}"
        reason = f"{sign_name} {_span_in_words(silent_s)} ago{by_whom}"
        if beat is not None and beat == known_beat:
            # The writer was dead by this very heartbeat before.
            return Liveness(False, reason, beat=beat)
        tolerance_s = self.patience.heartbeat_tolerance_s if owner is None else owner.tolerance_s(self.patience)
        if beat is not None and owner is not None and is_process_gone is False:
            still_s = stood_still_s(storage, last_sign, beat)
            # Overdue by the store's clock alone: watch it, as that clock may have stepped.
            if may_wait and still_s <= tolerance_s < silent_s:
                still_s = watch(storage, last_sign, beat, tolerance_s)
            todo = f"{_WAIT}; if its process hangs, end it (kill {owner.pid}), and the next write rolls its write back."
            return Liveness(still_s <= tolerance_s, reason, todo, beat)
        todo = f"{_WAIT}; if it is dead, a write rolls it back once its heartbeat is {_span_in_words(tolerance_s)} old."
        return Liveness(silent_s <= tolerance_s, reason, todo, beat, foreign=owner is None)

    def _judge_without_signs(self) -> Liveness:
        """Return whether a foreign writer without a heartbeat lives, by its last change and the user's options."""
        began_s, path, changed = self._change_times()
        silent_s = max(0.0, self.now_s - changed)
        last_change = f"; it last wrote {path}, {_span_in_words(silent_s)} ago" if path else ""
        reason = f"no heartbeat; {_span_in_words(max(0.0, self.now_s - began_s))} old{last_change}"
        if self.patience.eager:
            return Liveness(False, f"{reason}; hoodie.clean.failed.writes.policy is EAGER")
        todo = (
            f"{_WAIT}. Only you can know that it is dead: "
            "hoodie.clean.failed.writes.policy=EAGER has a write roll it back at once, "
            "hoodie.pyhudi.foreign.pending.max.age.seconds once it has written nothing for so long."
        )
        age_s = self.patience.foreign_age_s
        if age_s is None:
            return Liveness(True, reason, todo, foreign=True)
        is_dead_now = silent_s > age_s
        reason += f"; {'over' if is_dead_now else 'taken for dead after'} {_span_in_words(age_s)}"
        return Liveness(not is_dead_now, reason, todo, foreign=True)

    def _change_times(self) -> tuple[float, str, float]:
        """Return when the instant's first file was made, the path of its last changed file, and when that changed.

        Times are epoch seconds. Without a file, both are the requested time, or now if that is no time, and the path is
        "".
        """
        storage, instant = self.instants.storage, self.instant
        paths = [self.instants.path(instant.at(state)) for state in (State.REQUESTED, State.INFLIGHT)]
        times = [(storage.modified(path), path) for path in paths]
        changes = [(time, path) for time, path in times if time is not None]
        first_change = min(changes, default=None)
        folder = markers.Markers(storage, instant.requested_time).folder
        changes += [(info.modified, info.path) for info in storage.list(folder, recursive=True)]
        if changes:
            changed, path = max(changes)
            return (first_change or min(changes))[0], path, changed
        try:
            requested_s = parse_time(instant.requested_time, self.zone) / 1000
        except ValueError:
            requested_s = self.now_s
        return requested_s, "", requested_s


def stood_still_s(storage: Storage, path: str, modified: float) -> float:
    """Return for how many seconds this process, by its monotonic clock, has found a file unchanged; 0 at first."""
    now = time.monotonic()
    with _lock:
        if len(_first_sights) >= _MOST_SEEN:
            _first_sights.clear()
        first_sight = _first_sights.get((storage.path, path))
        if first_sight is None or first_sight[0] != modified:
            first_sight = _first_sights[storage.path, path] = modified, now
    return now - first_sight[1]


def watch(storage: Storage, path: str, modified: float, longest_s: float) -> float:
    """Poll a file until it changes or was unchanged for ``longest_s``; return its unchanged seconds, 0 if gone.

    The file is a heartbeat or another sign of a writer whose process lives, ``modified`` its time of change when the
    caller looked. The store's clock alone says that it is overdue, and may have stepped, so this process's clock
    decides. After more than ``longest_s`` the writer counts as dead.
    """
    still_s = stood_still_s(storage, path, modified)
    if still_s <= longest_s:
        logger.warning(
            "table %s: %s is overdue, though its process lives; watching it for %.0f s", storage.path, path, longest_s
        )
    while still_s <= longest_s:
        time.sleep(min(_POLL_S, longest_s - still_s + 0.001))
        changed_at = storage.modified(path)
        if changed_at is None:
            return 0.0
        if changed_at != modified:
            return stood_still_s(storage, path, changed_at)
        still_s = stood_still_s(storage, path, modified)
    return still_s


def _span_in_words(seconds: float) -> str:
    """Return a span of time for a message, in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
