"""The life of a table's upkeep by jobs alone, in a process that never meets Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep

from tests.support import drive

NOTHING = WriteSettings(upkeep=Upkeep(CleanSettings(automatic=False), ArchiveSettings(automatic=False)))
JOBS = """
import contextlib, io, json, sys
from pyhudi.connector.jobs import main

path, first = sys.argv[1:3]


def job(*arguments):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main([arguments[0], "--path", path, *arguments[1:]])
    return [code, *map(json.loads, printed.getvalue().splitlines())]


one = ["--option", "hoodie.clean.commits.retained=1"]
archive = ["archive", *one, "--option", "hoodie.keep.min.commits=3", "--option", "hoodie.keep.max.commits=4"]
done = [
    job("validate", "--deep"),
    job("savepoint", "--instant", first, "--comment", "before the move"),
    job("clean", "--dry-run", *one),
    job("clean", *one),
    job(*archive),
    job("delete_savepoint", "--instant", first),
    job("clean", *one),
    job(*archive),
    job("rollback", "--instant", sys.argv[3]),
    job("restore", "--to", first),
    job("restore", "--to", sys.argv[4]),
    job("validate", "--deep"),
]
print(json.dumps([done, [name for name in sys.modules if name.partition(".")[0] in {"pyspark", "py4j"}]]))
"""


def test_services_are_jobs_without_spark(tmp_path: Path) -> None:
    """A savepoint keeps the first state until it is deleted; the newest two states can be gone back to."""
    times = [
        drive.write(tmp_path, pa.table({"id": ["a"], "ts": [n]}), table=drive.KEYED, settings=NOTHING).instant
        for n in range(6)
    ]

    command = [sys.executable, "-c", JOBS, str(tmp_path), times[0], times[-1], times[-2]]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    done, of_spark = json.loads(ran.stdout)
    assert of_spark == []
    well, saved, dry, clean, first_archive, let_go, clean_again, archived, back, refused, restored, well_again = done
    assert well == well_again == [0]
    assert (saved[0], saved[1]["instant"], saved[1]["files"]) == (0, times[0], 1)
    assert (dry[1]["files"], dry[1]["dry"]) == (clean[1]["files"], True) == (3, True)
    assert first_archive[1]["instants"] == 0, "archiving stops at the first savepoint"
    assert let_go[0] == 0
    assert clean_again[1]["files"] == 1
    assert (archived[0], archived[1]["instants"]) == (0, 3)
    assert (back[0], back[1]["files"]) == (0, 1)
    assert refused == [5]
    assert "PyHudiError[UNDO]" in ran.stderr
    assert restored[0] == 0
    assert drive.rows_of(tmp_path, "id", "ts") == [("a", 4)]
