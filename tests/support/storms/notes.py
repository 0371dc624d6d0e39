"""What each process of a storm notes outside the tables: a line before each write, and a line once it is over.

A line is on the disk before the process continues, so that a kill leaves a write without a second line: no other
process knows whether that write is there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyhudi.errors import RetryError, UnreadableTimeError

if TYPE_CHECKING:
    from pyhudi.operations.result import CommitResult

# Adds one to the value of each row's key, as the table holds it.
COUNT = "count"
# What a write or a read says whose files a clean or archiving of another process took.
_TAKEN = ("while it was being read", "while it was needed")


@dataclass(frozen=True)
class Act:
    """One write: its id, and what it does to which table.

    Attributes:
        rows: Record key, partition and value of each row.
    """

    write_id: str
    table: str
    operation: str
    rows: tuple[tuple[str, str, int], ...]

    @classmethod
    def parse(cls, told: dict[str, Any]) -> Act:
        """Return what a line notes."""
        rows = tuple((str(key), str(p), int(value)) for key, p, value in told["rows"])
        return cls(told["write_id"], told["table"], told["operation"], rows)


@dataclass(frozen=True)
class End:
    """What came of a write.

    Attributes:
        refused: The class and the text of its error; empty where the write is acknowledged.
        expected: Whether a write that meets others may have this error.
        attempts: As in `CommitResult`, like `met`.
        waited_s: For how long it waited for others.
        took_s: For how long its process was at it.
    """

    write_id: str
    instant: str = ""
    refused: str = ""
    expected: bool = True
    attempts: int = 1
    met: tuple[str, ...] = ()
    waited_s: float = 0.0
    took_s: float = 0.0
    began: float = 0.0


class Notes:
    """The file of one process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._lock = Lock()

    def add(self, note: Act | End) -> None:
        """Write a line, and have it on the disk."""
        line = json.dumps({"kind": type(note).__name__, **asdict(note)}) + "\n"
        with self._lock:
            os.write(self._file, line.encode())
            os.fsync(self._file)

    def around(self, act: Act, run: Callable[[Act], CommitResult]) -> None:
        """Run a write between two notes."""
        began = now()
        self.add(act)
        try:
            result = run(act)
        except Exception as error:  # noqa: BLE001 (of which the storm decides whether it may be)
            text = f"{type(error).__name__}: {error}"
            self.add(End(act.write_id, refused=text, expected=may_meet(error), took_s=now() - began, began=began))
            return
        waited_s = result.seconds.get("wait", 0.0)
        self.add(
            End(act.write_id, result.instant, "", True, result.attempts, result.met, waited_s, now() - began, began)
        )


@dataclass(frozen=True)
class Begun:
    """A write that has begun.

    Attributes:
        runs: How often a process began it; a write whose process is killed is begun again by another.
        ends: What came of its runs, as far as they ended.
    """

    act: Act
    runs: int
    ends: tuple[End, ...] = ()

    @property
    def acknowledged(self) -> End | None:
        return next((one for one in self.ends if not one.refused), None)


def read_notes(folder: Path) -> dict[str, Begun]:
    """Return all writes by their ids; a write that ran again has what came of each run."""
    writes: dict[str, Begun] = {}
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: int(path.stem)):
        for kind, told in lines_of(path):
            if kind == "Act":
                act = Act.parse(told)
                write = writes.get(act.write_id, Begun(act, 0))
                writes[act.write_id] = replace(write, runs=write.runs + 1)
            else:
                end = End(**{**told, "met": tuple(told["met"])})
                write = writes[end.write_id]
                writes[end.write_id] = replace(write, ends=(*write.ends, end))
    return writes


def lines_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the whole lines of a process's file: their kind and what they say."""
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            told = json.loads(line)
            yield told.pop("kind"), told


def open_acts(path: Path) -> list[Act]:
    """Return the writes of a process that have begun and of which no end is noted."""
    acts_by_id: dict[str, Act] = {}
    for kind, told in lines_of(path) if path.exists() else ():
        if kind == "Act":
            acts_by_id[told["write_id"]] = Act.parse(told)
        else:
            acts_by_id.pop(told["write_id"], None)
    return list(acts_by_id.values())


def may_meet(error: Exception) -> bool:
    """Return whether a write or a read beside others may end with an error."""
    return isinstance(error, (RetryError, UnreadableTimeError)) or any(one in str(error) for one in _TAKEN)


def now() -> float:
    """Return the time by a clock that all processes of the machine share."""
    return time.monotonic()
