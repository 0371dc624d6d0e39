"""What a Python worker of Spark does beside its work."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import gc, sys
sys.orig_argv[1:3] = {arguments}
from pyhudi.connector.source.workers import worker_call
counts = []
for _ in range(2):
    with worker_call("warning"):
        pass
    counts.append(gc.get_freeze_count())
print(counts[0] > 1000, counts[0] == counts[1])
"""


@pytest.mark.parametrize(
    ("arguments", "answer"), [(["-m", "pyspark.daemon"], "True True"), (["a.py", "b"], "False True")]
)
def test_only_a_worker_of_spark_freezes_its_imports_and_once(arguments: list[str], answer: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(arguments=arguments)], capture_output=True, text=True, check=True
    )
    assert process.stdout.startswith(answer)
