"""What the operating system says of processes: who we are, who our Spark driver is, who is still there.

Linux keeps this in ``/proc`` (proc(5)); elsewhere only existence is known.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_DEAD_STATES = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class Process:
    """One process of this machine.

    Attributes:
        pid: Its number.
        name: Name of its program, "" where that cannot be known.
        parent: Its parent's number, 0 where it has none or that cannot be known.
        started: Clock ticks from boot to its start, which tells it from a later one of the same number; "" where that
            cannot be known.
        state: Its state's letter, "" where that cannot be known.
    """

    pid: int
    name: str = ""
    parent: int = 0
    started: str = ""
    state: str = ""


def cores() -> int:
    """Return how many cores this machine has, 1 where that cannot be known."""
    return os.cpu_count() or 1


def host_name() -> str:
    """Return this machine's name."""
    return socket.gethostname()


def machine_id() -> str:
    """Return what tells apart the process numbers of two machines, two boots, and two containers of one machine."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def this_process() -> Process:
    """Return the process that runs this."""
    return _describe(os.getpid()) or Process(os.getpid())


def responsible_process() -> Process:
    """Return the nearest ancestor that is a Java machine (Spark's driver or executor), else this process itself."""
    own = this_process()
    ancestor: Process | None = own
    while ancestor is not None and ancestor.pid > 0:
        if ancestor.name == "java":
            return ancestor
        ancestor = _describe(ancestor.parent) if ancestor.parent else None
    return own


def find_process(pid: int) -> Process | None:
    """Return a process of this machine, None where it is gone; one that waits to be buried is gone."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        # It is there and somebody else's.
        return _describe(pid) or Process(pid)
    found = _describe(pid) or Process(pid)
    return None if found.state in _DEAD_STATES else found


def _describe(pid: int) -> Process | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The program's name stands in parentheses and may hold blanks and parentheses itself.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Process(pid, name, parent=int(fields[1]), started=fields[19], state=fields[0])
