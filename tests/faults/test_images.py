"""Functions in the cloud that begin from one memory image: processes with one host, boot and number.

None of these tells whether a writer lives, so heartbeats alone decide.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from faults import image_job
from pyhudi import arrow
from support.rules.ends import assert_whole

FAST = {"hoodie.pyhudi.durable": False}
ALONE = {**FAST, "hoodie.pyhudi.heartbeats.alone": True}


def check_images(folder: Path, options: dict[str, Any]) -> None:
    """Assert that a living write of another process with the same numbers stays, and that a dead one goes."""
    process = subprocess.run(
        [sys.executable, image_job.__file__, str(folder), json.dumps(options)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    told = json.loads(process.stdout)
    assert (told["beside"], told["slow"]) == (0, 0), process.stderr
    assert len(told["works"]) == 1, "the write at work was given up"
    assert (told["died"], len(told["left"]), told["after"]) == (-9, 1, 0), process.stderr
    assert told["stays"] == []
    found = arrow.read(folder / "table", ["p", "id", "value"])
    assert {(row["p"], row["id"]): row["value"] for row in found.to_pylist()} == {
        **{("a", "k1"): 2, ("a", "k2"): 2},
        **{("b", "k1"): 5, ("b", "k2"): 5},
    }
    assert_whole(folder / "table")


def test_a_process_of_the_same_image_lives_and_dies_by_its_heartbeat(tmp_path: Path) -> None:
    check_images(tmp_path, ALONE)


@pytest.mark.slow
def test_without_heartbeats_alone_a_process_of_the_same_image_would_be_taken_for_dead(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the write at work was given up"):
        check_images(tmp_path, FAST)
