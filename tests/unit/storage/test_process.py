from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyhudi.storage import process
from support.seams import patch_seam

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


def test_this_process_is_found() -> None:
    this_process = process.find_process(os.getpid())

    assert this_process is not None
    assert this_process.pid == os.getpid()


@linux
def test_a_process_is_described_by_its_start_and_parent() -> None:
    this_process = process.find_process(os.getpid())

    assert this_process is not None
    assert this_process.parent == os.getppid()
    assert this_process.started.isdigit()
    assert process.find_process(os.getpid()) == this_process


def test_a_process_that_ended_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()

    assert process.find_process(child.pid) is None


@linux
def test_a_process_that_waits_to_be_buried_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert process.find_process(child.pid) is None
    child.wait()


def test_without_an_ancestor_named_java_this_process_answers_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {os.getpid(): process.Process(os.getpid(), "python", parent=7), 7: process.Process(7, "bash", parent=0)}
    patch_seam(monkeypatch, "describe a process", known.get)

    assert process.responsible_process().pid == os.getpid()


def test_the_nearest_ancestor_named_java_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = {
        os.getpid(): process.Process(os.getpid(), "python3.11", parent=30),
        30: process.Process(30, "python3.11", parent=20),
        20: process.Process(20, "java", parent=10, started="99"),
        10: process.Process(10, "java", parent=1),
        1: process.Process(1, "init", parent=0),
    }
    patch_seam(monkeypatch, "describe a process", processes.get)

    assert process.responsible_process() == process.Process(20, "java", parent=10, started="99")


def test_without_proc_this_process_answers_and_the_machine_has_no_id(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    patch_seam(monkeypatch, "folder of processes", tmp_path)

    assert process.responsible_process() == process.Process(os.getpid())
    assert process.find_process(os.getpid()) == process.Process(os.getpid())
    assert process.machine_id() == ""


def test_a_program_name_may_hold_blanks_and_parentheses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    numbers = " ".join(str(n) for n in range(4, 53))
    (tmp_path / "5" / "stat").write_text(f"5 (a) (b c)) S {numbers}\n")
    patch_seam(monkeypatch, "folder of processes", tmp_path)

    # proc(5): field 4 is the parent, field 22 the start.
    assert process._describe(5) == process.Process(5, "a) (b c)", parent=4, started="22", state="S")


def test_somebody_elses_process_counts_as_present(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)

    assert process.find_process(os.getpid()) is not None
