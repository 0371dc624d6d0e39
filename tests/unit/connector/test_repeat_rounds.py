"""A job that repeats its rounds: what ends it, and with which exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.connector.command.changing import repeat_rounds
from pyhudi.connector.jobs import main
from pyhudi.errors import InvalidOptionError, StorageError
from support.drive import KEYED, write
from support.threads import HANGS_S

DOWN = StorageError("The store is away.", "Try again.")


def test_a_single_round_returns_its_code_and_raises_its_error() -> None:
    assert repeat_rounds(lambda: 5, every_s=None, grace_s=1) == 5
    with pytest.raises(StorageError):
        repeat_rounds(_raising(DOWN), every_s=None, grace_s=1)


def _raising(error: Exception) -> object:
    def call() -> int:
        raise error

    return call


def test_rounds_continue_after_an_error_that_may_pass_and_end_with_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[int] = []

    def call() -> int:
        seen.append(len(seen))
        if len(seen) == 1:
            raise DOWN
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return 7

    assert repeat_rounds(call, every_s=0.01, grace_s=5) == 7
    assert seen == [0, 1, 2], "a round that has begun ends, and no other begins"
    assert "PyHudiError[STORAGE]" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_error_that_stays_ends_the_rounds() -> None:
    with pytest.raises(InvalidOptionError):
        repeat_rounds(_raising(InvalidOptionError("a", "b")), every_s=0.01, grace_s=1)


def test_a_round_that_outlives_the_grace_after_a_signal_is_broken_off() -> None:
    ended: list[str] = []

    def call() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            time.sleep(HANGS_S)
        finally:
            ended.append("undone")
        return 0

    assert repeat_rounds(call, every_s=1, grace_s=0.1) == 4
    assert ended == ["undone"]


def test_a_second_signal_breaks_a_round_off_at_once() -> None:
    def call() -> int:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(HANGS_S)
        return 0

    assert repeat_rounds(call, every_s=1, grace_s=HANGS_S) == 4


def test_a_job_repeats_rounds_until_it_is_stopped(tmp_path: Path) -> None:
    write(tmp_path / "t", pa.table({"id": ["k"], "ts": [1]}), table=KEYED)
    command = [sys.executable, "-m", "pyhudi.connector.jobs", "services", f"--path={tmp_path / 't'}", "--every=0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        lines = [json.loads(job.stdout.readline()) for _ in range(3)]
        job.send_signal(signal.SIGTERM)
        _, errors = job.communicate(timeout=HANGS_S)

    assert (job.returncode, errors) == (0, "")
    assert [[one["service"] for one in line["services"]] for line in lines] == [
        ["rollback", "clean", "metadata", "archive", "compaction", "logcompaction"]
    ] * 3


def test_a_job_runs_the_services_that_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "t", pa.table({"id": ["k"], "ts": [1]}), table=KEYED)

    assert main(["services", f"--path={tmp_path / 't'}", "--service=clean", "--service=archive"]) == 0

    assert [one["service"] for one in json.loads(capsys.readouterr().out)["services"]] == ["clean", "archive"]
    assert main(["services", f"--path={tmp_path / 'none'}"]) == 5
    with pytest.raises(SystemExit, match="2"):
        main(["services", f"--path={tmp_path / 't'}", "--service=restore"])
