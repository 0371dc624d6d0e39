"""Processes of the bench: an environment with nothing of another Spark's, and modules compiled, as pip leaves them.

Spark's Python processes import what they need anew. If the environment forbids Python to keep what it compiles, or
nothing has been imported yet, they would compile pandas and pyarrow each time, which takes longer than all else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_LEFT_OUT = ("SPARK_", "PYSPARK_", "PYTHONDONTWRITEBYTECODE")


@cache
def environment(venv: str) -> dict[str, str]:
    """Compile what is installed in a virtual environment, and return the variables of a process that runs in it.

    Args:
        venv: Its folder, relative to the repository.
    """
    python = str(_ROOT / venv / "bin" / "python")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(_LEFT_OUT)}
    folders = [str(_ROOT / venv / "lib"), str(_ROOT / "build")]
    # Packages bring modules along that are for other Pythons, and fail to compile.
    subprocess.run([python, "-m", "compileall", "-qq", "-j", "0", *folders], check=False, env=clean)
    return {**clean, "PYSPARK_PYTHON": python}


def peak_mib() -> float:
    """Return the most memory that this process had, in MiB.

    Not ``ru_maxrss``, which begins with the memory of the process that started this one.
    """
    [peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(peak.split()[1]) / 1024


def run_in(command: Sequence[object], venv: str, log: Path) -> str | None:
    """Run a command in a virtual environment and return the last line that it printed; None if it failed.

    A Java process that outlives its driver, as Apache Hudi's does after some streams, ends with the command.

    Args:
        venv: Its folder, relative to the repository.
        log: The file for what the command writes to its standard error.
    """
    with log.open("wb") as errors, tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [*map(str, command)], stdout=printed, stderr=errors, env=environment(venv), start_new_session=True
        )
        try:
            failed = process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        printed.seek(0)
        lines = printed.read().decode().splitlines()
    return None if failed or not lines else lines[-1]


def figures_of_case(script: str, venv: str, arguments: Sequence[object], prefix: str) -> dict[str, dict[str, float]]:
    """Run one case of a script in a process that can import what the tests simulate, and return its figures.

    The figures are by row, whose names get a prefix, and by phase. A case that fails says so and has none: the work of
    the other cases is not lost.
    """
    command = [_ROOT / venv / "bin" / "python", script, *arguments]
    env = {**environment(venv), "PYTHONPATH": str(_ROOT / "tests")}
    process = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, env=env, check=False, text=True)
    if process.returncode:
        print(f"{Path(script).name} failed at {' '.join(map(str, arguments))}", flush=True)
        return {}
    return {prefix + row: by_phase for row, by_phase in json.loads(process.stdout.splitlines()[-1]).items()}


def processor_seconds() -> float:
    """Return the seconds that processors have worked for this process and all that come of it, as Linux counts them."""
    parents, ticks = {}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of a process, in parentheses, may hold blanks.
            pid, rest = int(status.parent.name), status.read_text().rpartition(")")[2].split()
            parents[pid], ticks[pid] = int(rest[1]), sum(map(int, rest[11:15]))
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(ticks[pid] for pid in mine) / os.sysconf("SC_CLK_TCK")
