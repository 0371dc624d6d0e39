"""How much memory one task may take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory.py"


@pytest.mark.slow
def test_a_task_that_upserts_into_one_large_file_group_keeps_within_its_memory(tmp_path: Path) -> None:
    """Five million rows are 1 GB in Arrow: a task that held them and the file group at once would pass the limit."""
    command = [sys.executable, str(BENCHMARK), "--rows", "5000000", "--folder", str(tmp_path), "--limit-mib", "1536"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
