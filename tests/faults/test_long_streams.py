"""Streams whose driver, JVM and workers are killed again and again, or that others write beside for long."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from faults.beside_job import OWN, SHARED
from pyhudi.operations.inspect.history import history
from pyhudi.storage import open_storage
from support.drive import rows_of
from support.rules.ends import assert_whole

BATCHES, KILLS = 200, 12
SEED = int(os.environ.get("PYHUDI_STORM_SEED", "0")) or int(time.time())
# Longer than a program takes to the end from wherever it was killed.
LONGEST_S = 900.0
# How long batches are upserted beside a stream.
BESIDE_S = float(os.environ.get("PYHUDI_BESIDE_MINUTES", "10")) * 60


def land(folder: Path) -> dict[str, int]:
    """Make a file for each batch, with keys of its own and one that every batch changes; return the rows at the end."""
    (folder / "in").mkdir()
    expected: dict[str, int] = {}
    for number in range(BATCHES):
        rows = {f"k{number}.{part}": number for part in range(3)} | {"hot": number}
        lines = [json.dumps({"id": key, "ts": number, "value": value}) for key, value in rows.items()]
        path = folder / "in" / f"{number:04}.json"
        path.write_text("\n".join(lines), encoding="utf-8")
        # Spark takes files in the order of their times.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        expected |= rows
    return expected


def start(folder: Path, *arguments: str, program: str = "stream_job.py") -> subprocess.Popen[bytes]:
    path = Path(__file__).with_name(program)
    environment = {**os.environ, "PYTHONPATH": str(path.parents[1]), "PYSPARK_PYTHON": sys.executable}
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(path), *arguments],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )


def processes_of(group: int, words: str) -> list[int]:
    """Return the processes of a group whose command has some words."""
    process_ids = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(path.name)) == group and words.encode() in (path / "cmdline").read_bytes():
                process_ids.append(int(path.name))
        except (OSError, ProcessLookupError):
            continue
    return process_ids


def kill(program: subprocess.Popen[bytes], chance: random.Random) -> str:
    """Kill the whole program, its JVM, or one of Spark's Python processes; return which."""
    which = chance.choice(["all", "java", "pyspark.daemon", "pyspark.daemon"])
    if which == "all":
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        return which
    found = processes_of(program.pid, which)
    if found:
        os.kill(chance.choice(found), signal.SIGKILL)
    return which


def completed(folder: Path, table: str) -> int:
    path = folder / table / ".hoodie" / "timeline"
    return sum("_" in one.name for one in path.iterdir()) if path.exists() else 0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_every_batch_is_there_once_after_kills(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    chance, kills, starts = random.Random(SEED), Counter[str](), 0
    expected = land(tmp_path)
    until, program = time.monotonic() + LONGEST_S, start(tmp_path, str(tmp_path), kind)
    try:
        while not (tmp_path / "done").exists():
            assert time.monotonic() < until, (tmp_path / "log").read_text()[-4000:]
            if program.poll() is not None:
                starts += 1
                program = start(tmp_path, str(tmp_path), kind)
            if sum(kills.values()) >= KILLS:
                time.sleep(0.5)
                continue
            before = completed(tmp_path, "first") + completed(tmp_path, "second")
            pause = time.monotonic() + chance.uniform(2, 6)
            while time.monotonic() < pause and program.poll() is None:
                time.sleep(0.05)
            if completed(tmp_path, "first") + completed(tmp_path, "second") != before and program.poll() is None:
                kills[kill(program, chance)] += 1
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    with capsys.disabled():
        sys.stdout.write(f"\nseed {SEED}: killed {dict(kills)}, started {starts + 1} times\n")

    assert kills["all"]
    assert kills["java"] + kills["pyspark.daemon"]
    for table in ("first", "second"):
        assert dict(rows_of(tmp_path / table, "id", "value")) == expected
        assert_whole(tmp_path / table)
    history_rows = history(open_storage(str(tmp_path / "first"))).to_pylist()
    # A kill between Spark's list of a batch's files and the plan of the batch leaves the files to the next batch.
    batches = 1 + max(int(one.name) for one in (tmp_path / "checkpoint-first" / "commits").glob("[0-9]*"))
    assert BATCHES - KILLS <= batches <= BATCHES
    assert sum(one["operation"] == "UPSERT" and one["state"] == "COMPLETED" for one in history_rows) == batches


@pytest.mark.long
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_batch_upserts_of_all_buckets_and_a_stream_both_complete(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither fails, each write is there once, and of the keys of both the greatest ordering value."""
    (tmp_path / "in").mkdir()
    programs = {
        role: start(tmp_path, role, str(tmp_path), kind, program="beside_job.py") for role in ("stream", "batches")
    }
    expected: dict[str, int] = {}
    begun = False
    try:
        until, landed = time.monotonic() + LONGEST_S, 0
        while time.monotonic() < until:
            expected |= drop(tmp_path / "in", landed)
            landed += 1
            time.sleep(0.5)
            if not begun and (tmp_path / "began").exists():
                begun, until = True, time.monotonic() + BESIDE_S
            assert [program.poll() for program in programs.values()] == [None, None], log_of(tmp_path)
        (tmp_path / "stop").touch()
        ended = {role: program.wait(LONGEST_S) for role, program in programs.items()}
        assert ended == {"stream": 0, "batches": 0}, log_of(tmp_path)
    finally:
        for program in programs.values():
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    results = {role: json.loads((tmp_path / f"{role}.json").read_text(encoding="utf-8")) for role in programs}
    with capsys.disabled():
        sys.stdout.write(f"\n{landed} files landed, {results}\n")

    batches, upserts, last = results["stream"]["batches"], results["batches"]["upserts"], results["batches"]["last"]
    expected |= {f"b{number}": last for number in range(OWN)}
    expected |= {key: max(expected[key], last) for key in (f"h{number}" for number in range(SHARED))}
    assert dict(rows_of(tmp_path / "table", "id", "value")) == expected
    assert_whole(tmp_path / "table")
    writes = [one for one in history(open_storage(str(tmp_path / "table"))).to_pylist() if one["operation"] == "UPSERT"]
    assert Counter(one["state"] for one in writes) == {"COMPLETED": batches + upserts}
    assert min(batches, upserts) > 1


def drop(folder: Path, number: int) -> dict[str, int]:
    """Land a file of rows of its own and of the keys that the batches change, too; return the rows."""
    ts = 2 * (time.time_ns() // 1000)
    rows = {f"s{number}.{part}": ts for part in range(12)} | {f"h{part}": ts for part in range(SHARED)}
    lines = [json.dumps({"id": key, "ts": ts, "value": ts}) for key in rows]
    # Spark passes names over that begin with a dot, so that it never reads half a file.
    hidden = folder / f".{number}.json"
    hidden.write_text("\n".join(lines), encoding="utf-8")
    hidden.rename(folder / f"{number:06}.json")
    return rows


def log_of(folder: Path) -> str:
    return (folder / "log").read_text(encoding="utf-8", errors="replace")[-4000:]
