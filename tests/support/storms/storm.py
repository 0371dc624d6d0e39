"""A storm: starts the processes, kills and pauses them in the middle of their writes, and settles the tables."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyhudi.operations.result import archived_results, result_of
from pyhudi.operations.upkeep.service_round import run_services
from pyhudi.operations.write.run import write
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import WRITE_ACTIONS
from support.made.begun_metadata import begin_metadata
from support.readers import rows_by_hudi_rs
from support.storms.notes import Act, Begun, End, now, open_acts, read_notes
from support.storms.oracle import OWN, Ended, first_rows, mistakes_of
from support.storms.process import call_of, rows_of
from support.storms.work import SCHEMA, TABLES, WITH_METADATA, Work, batches_of

TESTS = Path(__file__).parents[2]
# As `support.sessions` has it, which needs Spark.
WARM = TESTS / "support" / "warm"
_POLL_S = 0.1
# A dead instant is gone so long after the tolerance of its writer, and a write ends so long after its stay.
GONE_S = 60.0
_ENDS_S = 300.0


@dataclass(frozen=True)
class Weather:
    """What a storm consists of.

    Attributes:
        tolerance_s: Without a heartbeat for so long a writer counts as dead; a pause is a little longer.
        spark: Whether a Spark takes part.
    """

    seconds: float
    tolerance_s: float
    seed: int
    writers: int = 4
    spark: bool = True

    @property
    def pause_s(self) -> float:
        return self.tolerance_s + min(10.0, self.tolerance_s / 4)


@dataclass
class Running:
    """A process of a storm that runs.

    Attributes:
        resumes: When its pause is over; 0 where it is not paused.
        pauses: When it was paused, and for how long.
    """

    work: Work
    process: subprocess.Popen[bytes]
    resumes: float = 0.0
    is_killed: bool = False

    def send(self, number: int) -> None:
        """Send a signal to the process and what it started."""
        os.killpg(self.process.pid, number)

    @property
    def is_writing(self) -> bool:
        return bool(open_acts(self.work.notes))


@dataclass(frozen=True)
class Dead:
    """An instant of another host whose writer died, and after how many seconds it was gone; None where it is there."""

    write_id: str
    table: str
    instant: str
    died: float
    gone_s: float | None = None


@dataclass
class Storm:
    """One storm, in a folder of its own.

    Attributes:
        wrong: What went wrong beside what the tables hold.
        paused: By process, when it was paused and for how long.
    """

    folder: Path
    weather: Weather
    running: list[Running] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    kills: int = 0
    paused: list[tuple[int, float, float]] = field(default_factory=list)
    dead: dict[str, Dead] = field(default_factory=dict)
    started: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.weather.seed)
        for name in ("tables", "notes", "logs", "elsewhere"):
            (self.folder / name).mkdir()

    # --- the storm

    def rage(self) -> None:
        """Make the tables, and have processes write to them; the time counts from the first write."""
        for name, made in TABLES.items():
            act = Act(f"made {name}", name, "upsert", first_rows())
            write(replace(self._work("writer").request(act), table=made), [batches_of(act)])
            if name in WITH_METADATA:
                begin_metadata(self._work("writer").table(name))
        for _ in range(self.weather.writers):
            self._start(self._work("writer"))
        self._start(self._work("services"))
        if self.weather.spark:
            self._start(self._work("spark"))
        self._await_first_write()
        until = now() + self.weather.seconds
        events = self._events(now())
        while now() < until:
            while events and events[0][0] <= now() and events[0][1]():
                events.pop(0)
            self._look()
            time.sleep(_POLL_S)

    def _await_first_write(self) -> None:
        """Wait until a write is acknowledged: a slow machine takes longer to start processes than a storm may last."""
        until = now() + _ENDS_S
        while now() < until and not any(begun.acknowledged for begun in read_notes(self.folder / "notes").values()):
            self._look()
            time.sleep(_POLL_S)

    def calm(self) -> None:
        """Let the processes end, and services settle what the dead ones left."""
        (self.folder / "over").touch()
        until = now() + self.weather.pause_s + _ENDS_S
        while now() < until and any(one.process.poll() is None for one in self.running):
            self._look(restarts=False)
            time.sleep(_POLL_S)
        for worker in self.running:
            if worker.process.poll() is None:
                self.wrong.append(f"process {worker.work.number} ({worker.work.kind}) does not end")
                worker.send(signal.SIGKILL)
        until = now() + self.weather.tolerance_s + GONE_S
        work = self._work("services")
        while now() < until and any(self._pending(name) for name in TABLES):
            for name in TABLES:
                run_services(call_of(work, name))
            self._look(restarts=False)
            time.sleep(1)
        for name in TABLES:
            done = run_services(call_of(work, name))
            self.wrong += [f"{name}: {failure}" for failure in done.failed]
            self.wrong += [f"{name}: {instant} is pending for good" for instant in self._pending(name)]
        self._look(restarts=False)

    def _events(self, began: float) -> list[tuple[float, Callable[[], bool]]]:
        """Return what happens when, by parts of the storm; what does not find a victim is tried again."""
        seconds, pause_s = self.weather.seconds, self.weather.pause_s
        first = min(10.0, seconds / 10)
        events: list[tuple[float, Callable[[], bool]]] = []
        at = first
        while at < seconds - first:
            events.append((at, self._kill))
            at += self.chance.uniform(0.5, 1.5) * max(seconds / 24, 5)
        at = first
        while at + pause_s < seconds:
            events.append((at, self._pause))
            at += pause_s * self.chance.uniform(1.2, 1.6)
        at = first
        while at + self.weather.tolerance_s + GONE_S < seconds or at == first:
            events.append((at, self._die_elsewhere))
            at += max(seconds / 6, self.weather.tolerance_s)
        if self.weather.spark:
            events.append((0.55 * seconds, self._kill_spark))
        return [(began + at, event) for at, event in sorted(events, key=lambda one: one[0])]

    def _kill(self, *kinds: str) -> bool:
        victim = self._victim(*kinds or ("writer", "writer", "writer", "services"))
        if victim is None:
            return False
        victim.send(signal.SIGKILL)
        victim.process.wait()
        victim.is_killed = True
        self.kills += 1
        return True

    def _kill_spark(self) -> bool:
        return self._kill("spark")

    def _pause(self) -> bool:
        victim = self._victim("writer", "writer", "writer", "spark")
        if victim is None:
            return False
        victim.send(signal.SIGSTOP)
        if not victim.is_writing:
            victim.send(signal.SIGCONT)
            return False
        victim.resumes = now() + self.weather.pause_s
        self.paused.append((victim.work.number, now(), self.weather.pause_s))
        return True

    def _die_elsewhere(self) -> bool:
        self._start(self._work("elsewhere"))
        return True

    def _victim(self, *kinds: str) -> Running | None:
        """Return a process in the middle of a write, or of services, a moment after that was seen; None without any."""
        kind = self.chance.choice(kinds)
        candidates = [one for one in self.running if one.work.kind == kind and not one.resumes]
        candidates = [
            one for one in candidates if one.process.poll() is None and (kind == "services" or one.is_writing)
        ]
        time.sleep(self.chance.choice([0.0, 0.02, 0.1, 0.3]))
        return self.chance.choice(candidates) if candidates else None

    # --- processes

    def _work(self, kind: str, again: tuple[Act, ...] = ()) -> Work:
        self.started += 1
        return Work(str(self.folder), self.started, kind, self.weather.seed, self.weather.tolerance_s, again)

    def _start(self, work: Work) -> None:
        path = os.pathsep.join([str(WARM), str(TESTS)] if work.kind in {"spark", "read"} else [str(TESTS)])
        with (self.folder / "logs" / f"{work.number}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "support.storms.process", work.encode()],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path},
                cwd=self.folder,
                start_new_session=True,
            )
        self.running.append(Running(work, process))

    def _look(self, *, restarts: bool = True) -> None:
        """Let pauses end, put processes in the place of dead ones, and look for instants of the other host."""
        for worker in list(self.running):
            if worker.resumes and worker.resumes <= now():
                worker.resumes = 0.0
                worker.send(signal.SIGCONT)
            if worker.process.poll() is None:
                continue
            if worker.is_killed and restarts:
                # A job that is run again has the id of the dead one, whose write may be there.
                again = tuple(open_acts(worker.work.notes)) if self.chance.random() < 0.5 else ()
                self._start(self._work(worker.work.kind, again))
            elif not worker.is_killed and worker.work.kind != "elsewhere" and (restarts or worker.process.returncode):
                self.wrong.append(f"process {worker.work.number} ({worker.work.kind}) ended: {self._log(worker.work)}")
            if restarts or worker.process.returncode:
                self.running.remove(worker)
        self._look_elsewhere()

    def _look_elsewhere(self) -> None:
        for path in (self.folder / "elsewhere").glob("*.json"):
            if path.name not in self.dead:
                name, instant, died = json.loads(path.read_text())
                self.dead[path.name] = Dead(f"storm-{path.stem}-0-1", name, instant, died)
            dead_write = self.dead[path.name]
            timeline = self.folder / "tables" / dead_write.table / ".hoodie" / "timeline"
            if dead_write.gone_s is None and not any(timeline.glob(f"{dead_write.instant}.*")):
                self.dead[path.name] = replace(dead_write, gone_s=now() - dead_write.died)

    def _log(self, work: Work) -> str:
        return (self.folder / "logs" / f"{work.number}.log").read_text()[-3000:]

    def _pending(self, name: str) -> list[str]:
        timeline = open_table(open_storage(str(self.folder / "tables" / name))).timeline()
        return [f"{one.requested_time}.{one.action}" for one in timeline.pending]

    def stop_all(self) -> None:
        """End every process that still runs."""
        for worker in self.running:
            if worker.process.poll() is None:
                worker.send(signal.SIGKILL)
                worker.process.wait()

    # --- what the tables hold

    def mistakes(self) -> list[str]:
        """Return all that is wrong after the storm, by three readers and by what the processes noted."""
        begun = read_notes(self.folder / "notes")
        mistakes = [*self.wrong, *self._unexpected(begun), *self._late(begun)]
        through_spark = self._read_through_spark() if self.weather.spark else []
        for name in TABLES:
            path = str(self.folder / "tables" / name)
            of_table = {write_id: one for write_id, one in begun.items() if one.act.table == name}
            completed = completed_writes(path)
            shown: dict[str, Any] = {"pyhudi": rows_of(path), "hudi-rs": rows_by_hudi_rs(path, *SCHEMA.names)}
            for reader in through_spark:
                told = json.loads((self.folder / f"{name} by {reader}.json").read_text())
                shown[reader] = [tuple(row) for row in told]
            for reader, rows in shown.items():
                mistakes += [f"{reader}: {one}" for one in mistakes_of(Ended(name, of_table, completed, rows))]
        return mistakes

    def _read_through_spark(self) -> list[str]:
        work = self._work("read")
        self._start(work)
        (reading,) = [one for one in self.running if one.work is work]
        if reading.process.wait(_ENDS_S):
            self.wrong.append(self._log(work))
        return ["HudiTable", "spark.read"]

    def _unexpected(self, begun: dict[str, Begun]) -> list[str]:
        ends = [end for one in begun.values() for end in one.ends]
        logs = sorted((self.folder / "logs").glob("*.log"), key=lambda path: int(path.stem))
        failed = [
            line
            for path in logs
            for line in path.read_text(errors="replace").splitlines()
            if line.startswith("FAILED ")
        ]
        return [*(f"{one.write_id} failed: {one.refused}" for one in ends if not one.expected), *failed]

    def _late(self, begun: dict[str, Begun]) -> list[str]:
        """Return the instants of the other host that were there for too long, and the writes that waited for them."""
        most_s, mistakes = self.weather.tolerance_s + GONE_S, []
        for dead_write in self.dead.values():
            if dead_write.gone_s is None or dead_write.gone_s > most_s:
                mistakes.append(
                    f"{dead_write.instant} of the dead {dead_write.write_id} was gone after {dead_write.gone_s} s"
                )
            mistakes += [
                f"{end.write_id} waited for the dead {dead_write.write_id}"
                for other in begun.values()
                for end in other.ends
                if dead_write.write_id in end.met or dead_write.write_id in end.refused
            ]
        return mistakes

    def report(self) -> Report:
        """Return how much happened."""
        begun = read_notes(self.folder / "notes")
        ends = [end for one in begun.values() for end in one.ends]
        return Report(
            seed=self.weather.seed,
            acknowledged=sum(one.acknowledged is not None for one in begun.values()),
            refused=sum(bool(end.refused) for end in ends),
            unknown=sum(len(one.ends) < one.runs and one.acknowledged is None for one in begun.values()),
            conflicts=sum(end.attempts - 1 for end in ends) + sum("Conflict" in end.refused for end in ends),
            kills=self.kills,
            pauses=len(self.paused),
            most_attempts=max(end.attempts for end in ends),
            longest_wait=max(ends, key=lambda end: end.waited_s),
            slowest=max((end for end in ends if not self._was_paused(end)), key=lambda end: end.took_s),
            dead=list(self.dead.values()),
        )

    def _was_paused(self, end: End) -> bool:
        process = int(end.write_id.split("-")[1])
        of_process = [(at, seconds) for number, at, seconds in self.paused if number == process]
        return any(at < end.began + end.took_s and end.began < at + seconds for at, seconds in of_process)


@dataclass(frozen=True)
class Report:
    """How much happened in a storm."""

    seed: int
    acknowledged: int
    refused: int
    unknown: int
    conflicts: int
    kills: int
    pauses: int
    most_attempts: int
    longest_wait: End
    slowest: End
    dead: list[Dead]

    def __str__(self) -> str:
        gone = ", ".join("never" if one.gone_s is None else f"{one.gone_s:.0f} s" for one in self.dead) or "none"
        wait, slow = self.longest_wait, self.slowest
        return (
            f"seed {self.seed}: {self.acknowledged} writes acknowledged, {self.refused} refused, {self.unknown} of "
            f"killed processes; {self.conflicts} conflicts, at most {self.most_attempts} attempts; {self.kills} kills, "
            f"{self.pauses} pauses; the longest wait: {wait.waited_s:.1f} s of {wait.write_id} for {list(wait.met)}; "
            f"the slowest write that was not paused: {slow.took_s:.1f} s of {slow.write_id}, {slow.waited_s:.1f} s of "
            f"it waiting, {slow.attempts} attempts {slow.refused[:80]}; "
            f"dead instants of another host were gone after: {gone}"
        )


def completed_writes(path: str) -> list[tuple[str, str]]:
    """Return the id and the requested time of each completed write of the storm, in the order of completion."""
    table = open_table(open_storage(path))
    timeline = table.timeline()
    active = {one: result_of(timeline, one) for one in timeline.writes}
    old = list(table.archive.newest(None, frozenset(one.identity for one in timeline.instants)))
    archived = archived_results(table, (one for one in old if one.action in WRITE_ACTIONS))
    writes = sorted(
        {**archived, **active}.items(), key=lambda one: (one[0].completion_time or "", one[0].requested_time)
    )
    return [(done.write_id, done.instant) for _, done in writes if OWN.fullmatch(done.write_id)]
