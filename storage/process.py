"""The operating system's processes: this process, its Spark driver, and whether a process still exists.

Linux keeps them in ``/proc`` (proc(5)); elsewhere only existence is known.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# AWS Lambda sets it to the name of the function.
_FUNCTION = "AWS_LAMBDA_FUNCTION_NAME"
_DEAD_STATES = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class Process:
    """One process of this machine; a field that cannot be known is empty or 0.

    Attributes:
        name: Name of its program.
        parent: Its parent's number.
        started: Clock ticks from boot to its start; with the number it identifies the process.
        state: The letter of proc(5).
    """

    pid: int
    name: str = ""
    parent: int = 0
    started: str = ""
    state: str = ""


def cores() -> int:
    return os.cpu_count() or 1


def host_name() -> str:
    return socket.gethostname()


def machine_id() -> str:
    """Return a text that differs between machines, boots and containers, whose process numbers are unrelated.

    It is empty if processes may begin from one image of memory, and then share all of that, or if the system has no
    ``/proc``. Then heartbeats alone tell whether a process lives.
    """
    if os.environ.get(_FUNCTION):
        return ""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def this_process() -> Process:
    return _describe(os.getpid()) or Process(os.getpid())


def responsible_process() -> Process:
    """Return the nearest ancestor that is a Java machine (Spark's driver or executor), else this process itself."""
    this = this_process()
    ancestor: Process | None = this
    while ancestor is not None and ancestor.pid > 0:
        if ancestor.name == "java":
            return ancestor
        ancestor = _describe(ancestor.parent) if ancestor.parent else None
    return this


def find_process(pid: int) -> Process | None:
    """Return a process of this machine; None if it has ended, zombies included."""
    try:
        # Signal 0 only asks whether the process exists.
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        # OverflowError: no process has a number that large.
        return None
    except PermissionError:
        # The process exists and belongs to another user.
        return _describe(pid) or Process(pid)
    process = _describe(pid) or Process(pid)
    return None if process.state in _DEAD_STATES else process


def _describe(pid: int) -> Process | None:
    """Return what ``/proc`` says of a process; None if it has no such process, or the system has no ``/proc``."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The program's name is in parentheses, and may hold blanks and parentheses itself.
    name, _, rest = text.partition("(")[2].rpartition(")")
    # Fields 3, 4 and 22 of proc(5); the first two are the number and the name.
    fields = rest.split()
    return Process(pid, name, parent=int(fields[1]), started=fields[19], state=fields[0])
