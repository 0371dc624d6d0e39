"""A process that is forked while a thread of its parent holds a lock of pyhudi."""

from __future__ import annotations

import subprocess
import sys

import pytest

FORK = """
import os, signal, sys, threading
from pyhudi.operations.indexing import known_keys
from pyhudi.operations.write import turns
from pyhudi.table.files import key_footers, read_written
from pyhudi.timeline.writers import owner

locks = {
    "turn to write": lambda: turns.Turn("table"),
    "known keys": lambda: known_keys.KNOWN_SLICES._lock,
    "ranges in footers": lambda: key_footers.FOOTERS._ranges._lock,
    "filters in footers": lambda: key_footers.FOOTERS._filters._lock,
    "written files": lambda: read_written._LOCK,
    "signs of life": lambda: owner._lock,
}
lock = locks[sys.argv[1]]

def fork():
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        with lock():
            os._exit(0)
    ends.append(os.waitpid(child, 0)[1])

ends = []
with lock():
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
assert ends == [0], ends
"""


@pytest.mark.parametrize(
    "lock",
    ["turn to write", "known keys", "ranges in footers", "filters in footers", "written files", "signs of life"],
)
def test_a_process_that_was_forked_during_a_write_waits_for_no_thread_of_its_parent(lock: str) -> None:
    process = subprocess.run([sys.executable, "-c", FORK, lock], check=False, timeout=120)

    assert process.returncode == 0
