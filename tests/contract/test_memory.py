"""How much memory one task may take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def check_memory(script: str, folder: Path, *bounds: str) -> None:
    command = [sys.executable, str(BENCHMARKS / script), *bounds, "--folder", str(folder)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_task_that_appends_to_one_large_file_group_keeps_within_its_memory(tmp_path_on_disk: Path) -> None:
    """Of all rows no more than a block's are held at once."""
    check_memory("memory.py", tmp_path_on_disk, "--rows", "5000000", "--limit-mib", "1024", "--type", "MERGE_ON_READ")


@pytest.mark.slow
def test_a_task_that_upserts_into_one_large_file_group_keeps_within_its_memory(tmp_path_on_disk: Path) -> None:
    """One and three quarter million rows of 18 columns into a file group of as many: 350 MB in Arrow on either side.

    A task that may hold 128 MiB takes some 600; one that may hold all that comes, 900. Who held either side whole would
    pass the limit.
    """
    check_memory("memory.py", tmp_path_on_disk, "--rows", "1750000", "--task-mib", "128", "--limit-mib", "768")


@pytest.mark.slow
def test_a_task_that_merges_log_files_keeps_within_its_memory(tmp_path_on_disk: Path) -> None:
    """One and a half million entries of 18 columns, 300 MB in Arrow, more than may wait in memory."""
    check_memory("merge_memory.py", tmp_path_on_disk, "--rows", "1500000", "--limit-mib", "640")


@pytest.mark.long
def test_a_commit_that_looks_keys_up_keeps_within_its_memory(tmp_path_on_disk: Path) -> None:
    """Two million rows of 18 columns, 400 MB in Arrow, of which a task and the commit may hold 128 MiB.

    Most of the rest are the row groups of two files that are written at once.
    """
    bounds = ["--rows", "2000000", "--index", "SIMPLE", "--task-mib", "128", "--limit-mib", "896"]
    check_memory("memory.py", tmp_path_on_disk, *bounds)


@pytest.mark.slow
def test_a_process_without_spark_keeps_within_its_memory_whatever_its_threads(tmp_path_on_disk: Path) -> None:
    """Streams of two million rows, 400 MB in Arrow, where a write and a read may take 448 MiB beside the imports.

    They take 310 to 405, as the allocator happens to return pages. A process that held what comes would take 650.
    """
    bounds = ["--rows", "2000000", "--limit-mib", "448", "--threads", "1", "4"]
    check_memory("arrow_memory.py", tmp_path_on_disk, *bounds)
