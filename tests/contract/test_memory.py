"""How much memory one task may take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory.py"


@pytest.mark.slow
def test_a_task_that_upserts_into_one_large_file_group_keeps_within_its_memory(tmp_path_on_disk: Path) -> None:
    """Twenty million rows of 18 columns into a file group that holds as many: 4 GB in Arrow on either side."""
    command = [
        sys.executable,
        str(BENCHMARK),
        "--rows",
        "20000000",
        "--folder",
        str(tmp_path_on_disk),
        "--limit-mib",
        "1536",
    ]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
