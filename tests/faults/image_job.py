"""Two processes of one memory image, as of a function in the cloud: a program that test_images.py starts.

They are forked from one process, as a virtual machine that is restored twice is copied. Each sees processes of its own
alone, and host, boot and number are the image's in both.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyhudi import arrow
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.seams import read_seam, set_seam
from support.threads import HANGS_S

NUMBER, OTHER = 7, 8
_STAT = f"(python) S 0 {'0 ' * 17}1\n"


def rows(partition: str, *keys: str, value: int) -> pa.Table:
    return pa.table({"id": list(keys), "p": [partition] * len(keys), "value": [value] * len(keys)})


def main(folder: Path, options: dict[str, Any]) -> None:
    """Have a write at work meet another one, then die in the midst of one; print what came of each."""
    path = folder / "table"

    def upsert(partition: str, value: int) -> None:
        arrow.Table(path).upsert(rows(partition, "k1", "k2", value=value), **options)

    def stall() -> None:
        _before_its_commit(lambda: (_touch(folder / "begun"), _wait(folder / "go")))
        upsert("a", 2)

    def die() -> None:
        _before_its_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
        upsert("a", 4)

    first = pa.concat_tables([rows("a", "k1", value=1), rows("b", "k1", value=1)])
    arrow.write(path, first, record_key="id", partition_by="p", buckets=1, threads=1, **options)
    told: dict[str, Any] = {}
    slow = _restored(folder / "1", NUMBER, stall)
    _wait(folder / "begun")
    # The number of the process at work is free in the other copy.
    told["beside"] = _code(_restored(folder / "2", OTHER, lambda: upsert("b", 3)))
    told["works"] = _pending(path)
    _touch(folder / "go")
    told["slow"] = _code(slow)
    told["died"] = _code(_restored(folder / "3", NUMBER, die))
    told["left"] = _pending(path)
    _age(path / ".hoodie")
    # The number of the dead process is that of the living one.
    told["after"] = _code(_restored(folder / "4", NUMBER, lambda: upsert("b", 5)))
    told["stays"] = _pending(path)
    print(json.dumps(told))  # noqa: T201 (what the test reads)


def _restored(folder: Path, number: int, call: Callable[[], object]) -> int:
    """Begin a process of the image, whose number it takes for its own."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        _see(folder, number)
        call()
        code = 0
    except BaseException:  # noqa: BLE001 (the test reads it)
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _see(folder: Path, number: int) -> None:
    """Have this process see itself alone, under a number of the image."""
    kill, mine = os.kill, os.getpid()
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text("boot of the image\n")
    (folder / "self/ns").mkdir(parents=True)
    (folder / "self/ns/pid").symlink_to("pid:[1]")
    (folder / str(number)).mkdir()
    (folder / str(number) / "stat").write_text(f"{number} {_STAT}")
    set_seam("folder of processes", folder)
    socket.gethostname = lambda: "function"
    os.getpid = lambda: number

    def signalled(pid: int, sign: int) -> None:
        if pid != number:
            raise ProcessLookupError(pid)
        kill(mine, sign)

    os.kill = signalled


def _before_its_commit(act: Callable[[], object]) -> None:
    """Have this process do something once its files are there and its instant is not complete."""
    original = read_seam("check conflicts")

    def check(*given: Any, **named: Any) -> Any:
        act()
        return original(*given, **named)

    set_seam("check conflicts", check)


def _code(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _touch(path: Path) -> None:
    path.touch()


def _wait(path: Path) -> None:
    until = time.monotonic() + HANGS_S
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.005)


def _pending(path: Path) -> list[str]:
    return [one.requested_time for one in open_table(open_storage(str(path))).timeline().pending]


def _age(folder: Path) -> None:
    """Have all notes of writers be from an hour ago."""
    then = time.time() - 3600
    for file in [*folder.glob(".heartbeat/*"), *folder.glob(".pyhudi/*/*")]:
        os.utime(file, (then, then))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
