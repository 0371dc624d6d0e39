"""One interleaving: what a seed draws is carried out step by step, and held against a dict.

The acknowledged writes, one by one in the order in which they completed, give what every reader sees. A write that was
refused left nothing, and a write whose process was killed is there as a whole or not at all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyhudi.errors import (
    CommitConflictError,
    ConcurrentWriteError,
    OptionConflictError,
    PyHudiError,
    TableNotFoundError,
    WriteSealedError,
)
from pyhudi.operations.planning.plan import plan_write
from pyhudi.operations.planning.request import TableSettings, WriteRequest
from pyhudi.operations.result import CommitResult
from pyhudi.operations.rollback.pending import is_given_up
from pyhudi.operations.streams.batch import StreamBatch
from pyhudi.operations.write.micro_batch import BatchResult, abort_batch, commit_batch, run_batch_task
from pyhudi.operations.write.run import write
from pyhudi.reader.plan import Split, whole
from pyhudi.reader.scan import MergeTerms, RowReader
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import memory
from pyhudi.table.config import PROPERTIES_PATH
from pyhudi.table.files.names import WriteToken
from pyhudi.table.metadata.metadata_table import FOLDER
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import WRITE_ACTIONS, State
from pyhudi.timeline.layout import LayoutV1, LayoutV2
from pyhudi.timeline.metadata.codec import SORTED
from pyhudi.timeline.rescales import KEY
from pyhudi.timeline.writers.owner import Claim
from support.interleaving.acts import (
    BUILDING,
    CHANGES,
    KEYS,
    KINDS,
    PARTITIONS,
    SERVICES,
    Act,
    Drawn,
    Rows,
    Service,
    Write,
    before,
    draw,
    users_know,
    with_metadata,
    with_rescale,
    with_stream,
    with_users,
)
from support.interleaving.machine import Machine
from support.interleaving.schedule import Schedule
from support.interleaving.scheduler import TOLERANCE_S, Actor, Fate, Scheduler
from support.interleaving.store import SteppedStorage
from support.interleaving.tickets import Tickets
from support.made.begun_metadata import asked_always, assert_in_use, begin_metadata
from support.rules.ends import assert_whole

_ID = re.compile(rb"actor(\d+)act(\d+)try(\d+)end")
_LAYOUTS = (LayoutV2(), LayoutV1())
_TRIES = 3
# After so long every broken-off instant counts as dead.
_LONG_S = 100.0
_DATA = re.compile(rf"(?:{'|'.join(PARTITIONS)})/.*_(\d{{17}})\b|(?:{'|'.join(PARTITIONS)})/\..*_(\d{{17}})\.log")
# Log files and instants of the metadata table have the time of the table's instant to which they belong.
_METADATA = re.compile(rf"{FOLDER}/(?:\.hoodie/timeline/|\w+/\.[\w-]+_)(\d{{17}})")
# By the place of an actor, what befalls it at which of its steps.
Fates = dict[int, dict[int, Fate]]
# As of `Machine`: by how much the hosts' clocks are ahead of the store's, and how the store's steps.
Clocks = tuple[Mapping[int, float], tuple[float, int]]
RIGHT: Clocks = ({}, (0.0, 0))
REFUSALS = (ConcurrentWriteError, CommitConflictError)
WITHOUT_TABLE = (TableNotFoundError, OptionConflictError)


@dataclass
class Try:
    """One call of pyhudi by an actor that writes.

    Attributes:
        began: The number of writes that were complete then.
        instants: Requested times that it took.
        acknowledged: Whether it was said to be done.
        refused: Why it was not.
    """

    actor: Actor
    act: Write
    began: int
    is_over: bool = False
    instants: set[str] = field(default_factory=set)
    acknowledged: bool = False
    refused: str = ""


@dataclass
class Trial:
    """One interleaving.

    Attributes:
        tries: The calls that write, by write id.
        taken: What was requested, by its time.
        read: The rows of file slices that were read, by their files.
        completed: The completed writes in their order: requested time and write id.
        lasting: Requested times of all instants that completed and wrote files, those of services too.
        states: What the table held before the first write and after each.
        metadata: Whether the table has a metadata table from the beginning on to the end.
        also: What else has to hold of the table at the end.
    """

    machine: Machine
    seed: int
    drawn: Drawn
    path: str
    tries: dict[str, Try] = field(default_factory=dict)
    completed: list[tuple[str, str]] = field(default_factory=list)
    lasting: set[str] = field(default_factory=set)
    states: list[Rows] = field(default_factory=list)
    cleans: int = 0
    taken: dict[str, set[str]] = field(default_factory=dict)
    read: dict[tuple[tuple[str, int], ...], list[tuple[Any, ...]]] = field(default_factory=dict)
    runs: Iterator[int] = field(default_factory=count)
    metadata: bool = False
    also: Callable[[str], None] = lambda path: None
    tickets: Tickets = field(init=False)

    def __post_init__(self) -> None:
        self.tickets = Tickets(
            self.machine.scheduler, lambda write_id: self._lives(self.tries[write_id]), lambda: self.machine.apart
        )

    @property
    def scheduler(self) -> Scheduler:
        """What runs the actors."""
        return self.machine.scheduler

    # --- what actors do

    def act(self, actor: Actor, program: list[Act]) -> None:
        """Do what an actor has to do, one thing after another."""
        for number, next_act in enumerate(program):
            actor.begins(self.scheduler.now)
            if isinstance(next_act, Write):
                self._write(actor, number, next_act)
            elif isinstance(next_act, Service):
                self._serve(next_act)
            else:
                self._read()

    def _write(self, actor: Actor, number: int, act: Write) -> None:
        for attempt in range(_TRIES):
            if self._try(actor, act, f"actor{actor.number}act{number}try{attempt}end"):
                return

    def _try(self, actor: Actor, act: Write, write_id: str) -> bool:
        """Write, and return whether that is acknowledged."""
        mine = self.tries[write_id] = Try(actor, act, len(self.completed))
        made = KINDS[self.drawn.kind]
        # The number of a table that is there may have changed, and a stream may make the table by the default.
        makes = self.drawn.empty and not self.completed and not act.streamed
        count = made.bucket_count if makes else None
        # Nor do writes of a table that is there name its version, which changes.
        made = replace(made, bucket_count=count, version=made.version if self.drawn.empty else None)
        try:
            result = self._written(act, made, write_id)
        except PyHudiError as error:
            mine.refused = f"{type(error).__name__}: {error}"
            if not self._may_refuse(mine, error):
                self.scheduler.fail(f"{write_id} failed: {mine.refused}")
            mine.is_over = True
            return False
        mine.acknowledged = mine.is_over = True
        if not any(_same(act, write_id, done) for _, done in self.completed):
            self.scheduler.fail(f"{write_id} was acknowledged as {result.instant!r}, and did not complete")
        return True

    def _written(self, act: Write, made: TableSettings, write_id: str) -> CommitResult:
        """Carry out a write in the way that is drawn."""
        if act.by_user:
            # A clock that steps says nothing about heartbeats.
            steps = self.machine.step[0] != 0.0
            return act.write_as_user(self.path, made, write_id, alone=act.alone and not steps)
        request = act.request(self.path, made, write_id)
        return self._stream(act, request, write_id) if act.streamed else write(request, act.parts())

    def _stream(self, act: Write, request: WriteRequest, write_id: str) -> CommitResult:
        """Write a batch of an actor's stream, each try by another run of the query."""
        actor, number = _ID.fullmatch(write_id.encode()).groups()[:2]  # type: ignore[union-attr]
        name = f"stream{int(actor)}"
        batch = StreamBatch(name, int(number), f"run{next(self.runs)}", name)
        plan = plan_write(request)
        messages: list[BatchResult] = []
        try:
            for at, part in enumerate(act.parts()):
                messages.append(run_batch_task(plan, batch, iter(part), WriteToken(at, 0, at)))
            return commit_batch(messages, request=lambda: request)
        except PyHudiError:
            abort_batch(messages)
            raise

    def _may_refuse(self, mine: Try, error: PyHudiError) -> bool:
        if isinstance(error, WriteSealedError):
            # Two writes had one time, and the other one is done with it.
            others = {time for one in self.tries.values() if one is not mine for time in one.instants}
            return not self._lives(mine) or any(time in str(error) for time in others)
        if not self._lives(mine):
            # It was taken for dead, and finds its files gone.
            return True
        if isinstance(error, REFUSALS):
            return "taking its writer for dead" not in str(error) or self._shares_its_time(mine)
        return isinstance(error, WITHOUT_TABLE) and self.drawn.empty

    def _shares_its_time(self, mine: Try) -> bool:
        """Return whether a service took the requested time of a write, by which the write finds itself undone."""
        return any(self.taken.get(time, set()) - WRITE_ACTIONS for time in mine.instants)

    def _lives(self, mine: Try) -> bool:
        """Return whether a writer gave signs of life all the time, and is at work."""
        quiet_s = mine.actor.quiet_until(self.scheduler.now)
        return not mine.is_over and not mine.actor.killed and quiet_s < TOLERANCE_S

    def _serve(self, act: Service) -> None:
        try:
            SERVICES[act.name](self.machine.open(self.path))
        except PyHudiError:
            # What it waits for, and what it gives way to, tests/contract/test_meetings.py says.
            return

    def _read(self) -> None:
        began, cleans = len(self.states) - 1, self.cleans
        try:
            rows = self._rows()
        except PyHudiError as error:
            if self.cleans == cleans:
                self.scheduler.fail(f"a reader failed: {type(error).__name__}: {error}")
            return
        if rows not in self.states[began:]:
            self.scheduler.fail(f"a reader saw {rows}, which the table never held; it held {self.states[began:]}")

    def _rows(self) -> Rows:
        try:
            snapshot = open_snapshot(self.path)
        except TableNotFoundError:
            return {}
        schema = pa.schema([snapshot.schema.field(name) for name in ("p", "id", "ts", "value")])
        reader = RowReader(snapshot.storage, schema, snapshot.schema, terms=MergeTerms(snapshot.config))
        rows: Rows = {}
        for file_slice in snapshot.slices():
            files = tuple(
                (file.path, file.size) for file in (file_slice.base_file, *file_slice.logs) if file is not None
            )
            # Files do not change, and a slice is read after each write.
            if files not in self.read:
                read = pa.Table.from_batches(reader.read(Split((whole(file_slice),))), schema)
                self.read[files] = [*zip(*(one.to_pylist() for one in read.columns), strict=True)]
            for p, key, ts, value in self.read[files]:
                if (p, key) in rows:
                    self.scheduler.fail(f"the key {key} is twice in the partition {p}")
                rows[p, key] = ts, value
        return rows

    # --- what happens to the table

    def made(self, storage: SteppedStorage, path: str, data: bytes) -> None:
        """Take note of a file of the timeline, and of writes that complete."""
        self.tickets.made(path, data)
        if path.endswith("/owner.json"):
            self._claimed(path, data)
        folder, _, name = path.rpartition("/")
        if path == PROPERTIES_PATH:
            # The files that a reader of the version before is about to read go next.
            self.cleans += 1
        instant = next((layout.parse(name) for layout in _LAYOUTS if layout.folder == folder), None)
        if instant is None:
            return
        self.cleans += instant.action == "clean"
        self.taken.setdefault(instant.requested_time, set()).add(instant.action)
        if instant.action == "rollback" and instant.state is State.REQUESTED:
            self.scheduler.quietly(partial(self._check_victim, storage, instant.requested_time))
        if instant.is_write and instant.state is State.COMPLETED:
            self.lasting.add(instant.requested_time)
        id_match = _ID.search(data) if instant.state is State.COMPLETED else None
        for key in (KEY, SORTED) if instant.state is State.COMPLETED else ():
            if key.encode() in data:
                self.scheduler.quietly(partial(self._check_unchanged, f"after {key} of {instant.requested_time}"))
        if id_match is not None and instant.is_write and instant.requested_time not in dict(self.completed):
            write_id = id_match[0].decode()
            if any(_same(self.tries[write_id].act, write_id, done) for _, done in self.completed):
                self.scheduler.fail(f"{write_id} completed twice, as {instant.requested_time} and {self.completed}")
            self.completed.append((instant.requested_time, write_id))
            self.tickets.completed(write_id)
            when = f"after {write_id} completed as {instant.requested_time}"
            self.scheduler.quietly(partial(self._check_completed, self.tries[write_id], when))

    def _check_unchanged(self, when: str) -> None:
        self._compare(self._rows_or_failure(when), when)

    def _claimed(self, path: str, data: bytes) -> None:
        found = _ID.search(data)
        if found is not None:
            self.tries[found[0].decode()].instants.add(path.split("/")[-2])

    def _check_victim(self, storage: SteppedStorage, at: str) -> None:
        timeline = open_table(storage).timeline()
        rollback = next(one for one in timeline.instants if (one.requested_time, one.action) == (at, "rollback"))
        plan = timeline.files.read_rollback_plan(rollback)
        victim = "" if plan is None or plan.instant_to_rollback is None else plan.instant_to_rollback.commit_time
        makers = [(name, one) for name, one in self.tries.items() if victim in one.instants]
        for name, candidate in makers:
            # Its own writer may be on the way to take it back.
            given_up = is_given_up(storage, victim) or Claim(storage, victim).owner() is None
            if self._lives(candidate) and self.scheduler.here() is not candidate.actor and not given_up:
                self.scheduler.fail(f"{victim} of {name} is rolled back, though its writer lives")

    def _check_completed(self, mine: Try, when: str) -> None:
        """Check what the table holds now; where keys were looked up, a write may have looked before others completed.

        Two writes of one file group exclude each other. A delete of a key that was not there touches no file group, and
        holds for the moment at which it looked (write skew).
        """
        made, states = KINDS[self.drawn.kind], self.states
        states.append(mine.act.apply(states[-1], made))
        rows = self._rows_or_failure(when)
        if made.index_type is not None and rows != states[-1]:
            looked = [mine.act.apply(states[-2], made, looked_at=one) for one in states[mine.began : -1]]
            states[-1] = next((one for one in looked if one == rows), states[-1])
        self._compare(rows, when)

    def _rows_or_failure(self, when: str) -> Rows | None:
        try:
            return self._rows()
        except PyHudiError as error:
            self.scheduler.fail(f"{when}, reading fails: {type(error).__name__}: {error}")
            return None

    def _compare(self, found: Rows | None, when: str) -> None:
        if found is not None and found != self.states[-1]:
            self.scheduler.fail(f"{when}, the table holds {_told(found)}, and should hold {_told(self.states[-1])}")

    # --- the end

    def recover(self) -> None:
        """Have a new writer find what the gone ones left, once they are silent for long."""
        self.scheduler.let_pass(_LONG_S)
        dead = {time for one in self.tries.values() if one.actor.killed for time in one.instants}
        keys = tuple((f"k{number}", "a", 9, -9 - number) for number in range(KEYS))
        last = Actor(len(self.scheduler.actors), partial(self._recover, Write("upsert", keys)))
        self.scheduler.run([last])
        if self.scheduler.failure:
            return
        for candidate in open_table(self.machine.open(self.path)).timeline().pending:
            if candidate.action in WRITE_ACTIONS and candidate.requested_time in dead:
                self.scheduler.fail(f"{candidate.requested_time} of a dead writer is still pending")
        for name, tried in self.tries.items():
            if tried.actor.killed:
                self._check_left_nothing(name, tried)

    def _recover(self, act: Write, actor: Actor) -> None:
        broken = [(name, one.act) for name, one in self.tries.items() if one.actor.killed and not one.is_over]
        # A job that is run again has the write id of the dead one, which may have completed.
        again = broken if self.seed % 2 else []
        for write_id, write_act in (*again, ("actor0act9try9end", act)):
            actor.begins(self.scheduler.now)
            # Where no write has made the table, there is nothing to delete from.
            refusable = write_act.operation == "delete" and not self._is_made()
            # The first may find a dead write that was decided, and complete it.
            if not any(self._try(actor, write_act, write_id) for _ in range(1 if refusable else _TRIES)):
                if not refusable:
                    self.scheduler.fail(f"the table takes no more writes: {self.tries[write_id].refused}")
            elif refusable:
                self.scheduler.fail(f"{write_id} deleted from a table that no write has made")

    def _is_made(self) -> bool:
        try:
            open_table(self.machine.open(self.path).inner)
        except TableNotFoundError:
            return False
        return True

    def check_end(self) -> None:
        """Check what is left once each actor is over or gone."""
        self._compare(self._rows_or_failure("at the end"), "at the end")
        self._check_tickets()
        done = {name for _, name in self.completed}
        for name, attempt in self.tries.items():
            if attempt.refused and name in done:
                self.scheduler.fail(f"{name} was refused, and is complete: {attempt.refused}")
            elif attempt.refused:
                self._check_left_nothing(name, attempt)

    def check_rules(self) -> None:
        """Check what has to hold of each table; of one in ten by all its rows."""
        if not self._is_made():
            return
        try:
            assert_whole(self.path, written_down=False, deep=self.seed % 10 == 0)
            if self.metadata:
                assert_in_use(self.path)
            self.also(self.path)
        except AssertionError as error:
            self.scheduler.fail(f"the table is sick: {error}")

    def _check_tickets(self) -> None:
        """Check that no writer that is over keeps others waiting."""
        storage = self.machine.open(self.path).inner
        for info in storage.list(".hoodie/.pyhudi/tickets"):
            found = _ID.search(storage.read(info.path))
            if found is not None and self.tries[found[0].decode()].is_over:
                self.scheduler.fail(f"{found[0].decode()} is over, and its ticket stays: {info.path}")

    def _check_left_nothing(self, name: str, mine: Try) -> None:
        for path in self._files():
            found = _DATA.match(path) or _METADATA.match(path)
            time = found[found.lastindex or 0] if found else None
            if time in mine.instants and time not in self.lasting:
                self.scheduler.fail(f"{name} is not complete, and left {path}")

    def _files(self) -> list[str]:
        return [one.path for one in self.machine.open(self.path).inner.list("", recursive=True)]


def _same(act: Write, write_id: str, other: str) -> bool:
    """Return whether two ids are of one write; of a stream's batch all tries are."""
    return write_id == other or (act.streamed and write_id.partition("try")[0] == other.partition("try")[0])


def _told(rows: Rows) -> str:
    return ", ".join(f"{p}/{key}={value}" for (p, key), (_, value) in sorted(rows.items())) or "nothing"


# The files of the table that the actors find, by its kind and metadata table, and what it holds.
_TEMPLATES: dict[tuple[str, bool], tuple[dict[str, memory._File], Rows, float]] = {}


def _template(machine: Machine, kind: str, *, metadata: bool) -> tuple[Mapping[str, memory._File], Rows, float]:
    if (kind, metadata) not in _TEMPLATES:
        machine.scheduler = Scheduler(Schedule(0))
        machine.ahead_s, machine.step = RIGHT
        machine.made, machine.deleted, machine.listed = lambda *_: None, lambda _: None, lambda *_: None
        path = f"memory://template/{kind.replace(' ', '-')}"
        rows: Rows = {}
        for number, act in enumerate(before(kind)):
            machine.scheduler.now += 1
            write(act.request(path, KINDS[kind], f"made{number}"), act.parts())
            rows = act.apply(rows, KINDS[kind])
        if metadata:
            begin_metadata(path, by_apache_hudi=crc32(kind.encode()) % 2 == 0)
        prefix = f"{path.removeprefix(memory.SCHEME)}/"
        files = {key.removeprefix(prefix): file for key, file in memory._FILES.by_key.items() if key.startswith(prefix)}
        machine.open(path).inner.delete_folder("")
        _TEMPLATES[kind, metadata] = files, rows, machine.scheduler.now + 3600
    return _TEMPLATES[kind, metadata]


def run(
    machine: Machine,
    seed: int,
    drawn: Drawn | None = None,
    fates: Fates | None = None,
    clocks: Clocks | None = None,
    also: Callable[[str], None] = lambda path: None,
    kinds: Mapping[str, str] | None = None,
    *,
    metadata: bool | None = None,
) -> Trial:
    """Carry out what a seed draws, or what is given; raises AssertionError where the dict does not hold.

    Args:
        kinds: The kinds of tables that take the place of those that are drawn.
        metadata: Whether the table that the actors find has a metadata table, which each of them keeps; one seed of
            four by default.
    """
    chance = random.Random(seed)
    given = drawn
    drawn = with_users(with_rescale(with_stream(draw(chance), seed), seed), seed) if given is None else given
    drawn = drawn if kinds is None else replace(drawn, kind=kinds[drawn.kind])
    version = KINDS[drawn.kind].version
    metadata = (seed % 4 == 0 if metadata is None else metadata) and not drawn.empty and version != 6
    if metadata and given is None:
        drawn = with_metadata(drawn, seed)
    services = {one.name for some in drawn.programs for one in some if isinstance(one, Service)}
    building = not services.isdisjoint(BUILDING)
    # Some find a table that has none yet.
    begun = metadata and not (building and seed % 3 == 0)
    files, rows, now = _template(machine, drawn.kind, metadata=begun)
    path = f"memory://interleaving/{seed}"
    machine.scheduler = Scheduler(Schedule(seed), now=now)
    trial = Trial(machine, seed, drawn, path, states=[{} if drawn.empty else dict(rows)], also=also)
    # A change of version takes it out of use.
    trial.metadata = begun and not building and services.isdisjoint(CHANGES)
    machine.torn, machine.apart = chance.random() < 0.2, chance.random() < 0.5
    machine.ahead_s, machine.step = clocks_of(seed, machine.apart) if clocks is None else clocks
    machine.made, machine.deleted, machine.listed = trial.made, trial.tickets.deleted, trial.tickets.listed
    machine.forget()
    users_know(lambda time: not any(time in one.instants and one.actor.killed for one in trial.tries.values()))
    if not drawn.empty:
        for name, file in files.items():
            memory._FILES.put(f"{path.removeprefix(memory.SCHEME)}/{name}", file)
    actors = [Actor(number, partial(_live, trial, program)) for number, program in enumerate(drawn.programs)]
    for position, befalls in (fates_of(seed) if fates is None else fates).items():
        actors[position].fates.update(befalls)
    try:
        # Readers list by the metadata table then, so that each state of the table shows what it lacks.
        with asked_always() if metadata else nullcontext():
            trial.scheduler.run(actors)
        if not trial.scheduler.failure:
            trial.check_end()
        if not trial.scheduler.failure and any(one.killed for one in actors):
            trial.recover()
        if not trial.scheduler.failure:
            trial.check_rules()
    finally:
        machine.open(path).inner.delete_folder("")
    assert not trial.scheduler.failure, _failed(trial)
    return trial


def _live(trial: Trial, program: list[Act], actor: Actor) -> None:
    trial.act(actor, program)


def fates_of(seed: int) -> Fates:
    """Return what befalls the first actor, 0, and the last one, -1, by the numbers of their steps."""
    chance = random.Random(seed ^ (1 << 60))
    number, fates = chance.random(), Fates()
    if number < 0.35:
        fates[0] = {chance.randrange(1, 130): Fate.KILLED}
    if 0.2 < number < 0.55:
        fates[-1] = {chance.randrange(1, 130): Fate.STALLED}
    return fates


def clocks_of(seed: int, apart: bool) -> Clocks:
    """Return which clocks are wrong in one seed of three: those of hosts apart all the time, that of one host later."""
    chance = random.Random(seed ^ (1 << 57))
    if chance.random() < 2 / 3:
        return RIGHT
    if apart:
        return {number: chance.choice([-3600.0, 0.0, 200.0, 7200.0]) for number in range(6)}, (0.0, 0)
    return {}, (chance.choice([200.0, 7200.0]), chance.randrange(1, 300))


def _failed(trial: Trial) -> str:
    drawn = "\n".join(f"  {number}: {program}" for number, program in enumerate(trial.drawn.programs))
    refused = "\n".join(f"  {name}: {one.refused}" for name, one in trial.tries.items() if one.refused)
    fates = {one.number: one.fates for one in trial.scheduler.actors if one.fates}
    return (
        f"{trial.scheduler.failure}\nseed {trial.seed}, a table {trial.drawn.kind}, empty={trial.drawn.empty}, "
        f"torn={trial.machine.torn}, apart={trial.machine.apart}, fates={fates}, "
        f"clocks={trial.machine.ahead_s} {trial.machine.step}\nactors:\n{drawn}\n"
        f"completed: {trial.completed}\nrefused:\n{refused}\nsteps:\n{trial.scheduler.text()}"
    )
