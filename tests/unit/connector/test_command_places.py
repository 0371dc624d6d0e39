"""The command `pyhudi` on tables of Apache Hudi, on a table without a write, on S3, and on a terminal with rich."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyhudi.connector.command.cells import cell
from pyhudi.connector.command.commands import CAT, READS, SHOW
from pyhudi.connector.command.output import show_table
from pyhudi.connector.command.parser import ROUND
from pyhudi.connector.command.work_progress import WorkProgress
from pyhudi.connector.jobs import command
from pyhudi.operations.upkeep.services import SERVICES
from pyhudi.operations.words.progress import Progress
from support.drive import write
from support.made.compacting import rows
from support.recorded.fixture_tables import recorded, unpack
from support.s3 import S3Server, new_url
from support.sick.spoiling import Symptom, make_healthy
from support.sick.symptoms import SYMPTOMS
from support.upkeep.meetings import COW, QUIET

READING = [SHOW, CAT, "validate", *READS]
Shown = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("healthy") / "t"
    make_healthy(path)
    return path


def jsons(capsys: Shown, *line: str) -> list[Any]:
    """Return what a command prints as JSON, a value for each line; it has to succeed."""
    assert command([*line, "--json"]) == 0, capsys.readouterr().err
    return [json.loads(text) for text in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("name", ["v8_cow", "v8_mor", "v9_mor_pending", "v9_lookup_bloom_mor"])
def test_tables_of_apache_hudi_are_shown_whole(tmp_path: Path, capsys: Shown, name: str) -> None:
    path = unpack(name, tmp_path)

    outputs = {command: jsons(capsys, command, path) for command in READING}
    every = jsons(capsys, CAT, path, "--limit", "100000", "--meta")

    assert len(every) == len(recorded(name))
    (state,) = outputs[SHOW]
    assert state["file_groups"] == len(outputs["files"])
    assert state["partitions"] == len(outputs["partitions"])
    assert state["live_bytes"] == sum(row["live_bytes"] for row in outputs["sizes"])
    assert state["live_bytes"] >= sum(row["bytes"] for row in outputs["files"])
    assert state["instants"] == sum(not row["archived"] for row in outputs["timeline"])
    assert [row["instant"] for row in outputs["activity"]] == [row["instant"] for row in state["pending"]]


def test_a_write_of_apache_hudi_that_was_killed_is_shown_as_at_work(tmp_path: Path, capsys: Shown) -> None:
    """It left no heartbeat, so only the user can know that it is dead."""
    path = unpack("v9_killed_write_partitioned", tmp_path)

    (state,) = jsons(capsys, SHOW, path)

    assert len(state["pending"]) == 1
    assert state["needs"] == []
    (needing,) = jsons(capsys, SHOW, path, "--option", "hoodie.clean.failed.writes.policy=EAGER")
    assert [need["service"] for need in needing["needs"]] == ["rollback"]


def test_a_table_without_a_write_has_no_rows_and_needs_nothing(tmp_path: Path, capsys: Shown) -> None:
    path = made_empty(tmp_path)

    for name in READING:
        found = jsons(capsys, name, path)
        assert len(found) == (1 if name == SHOW else 0)
        assert command([name, path]) == 0
        assert capsys.readouterr().out


def test_a_table_on_s3_is_shown_by_few_requests(s3: S3Server, capsys: Shown) -> None:
    url, partitions = new_url(), 4
    for n in range(4):
        write(url, rows(*((f"k{p}", f"p{p}", n, n) for p in range(partitions))), table=COW, settings=QUIET)
    few = ["--option", "hoodie.clean.commits.retained=1"]

    with s3.watched() as requests:
        (state,) = jsons(capsys, SHOW, url, *few)

    assert sum(requests.values()) <= partitions + 100
    assert (state["partitions"], state["file_groups"]) == (partitions, partitions)
    assert [need["command"] for need in state["needs"]] == [f"pyhudi clean {url} {' '.join(few)}"]
    assert command(["clean", url, *few, "--yes"]) == 0
    capsys.readouterr()
    assert jsons(capsys, SHOW, url, *few)[0]["needs"] == []
    assert sorted(row["id"] for row in jsons(capsys, CAT, url)) == [f"k{p}" for p in range(partitions)]
    assert command([SHOW, new_url()]) == 5


@pytest.mark.parametrize("case", SYMPTOMS[::8], ids=lambda case: f"{case.code}-{case.name}".replace(" ", "-"))
def test_a_sick_table_is_shown_or_refused_by_name(tmp_path: Path, healthy: Path, capsys: Shown, case: Symptom) -> None:
    """Each command ends with a code that says to look at the table, to run it again, or that all is well."""
    path = tmp_path / "t"
    shutil.copytree(healthy, path)
    case.spoil(path)

    for name in READING:
        code = command([name, str(path), "--json"])
        printed = capsys.readouterr()
        assert code in {0, 4, 5}, printed.err
        assert (code != 0) == ("PyHudiError[" in printed.err) or name == "validate"
        assert (
            [json.loads(line) for line in printed.out.splitlines()]
            or code
            or name in {"activity", "metadata", "savepoints", "validate"}
        )


# What each command that changes a table needs besides the table, where it can run without the instants of one.
CHANGING = {
    **{
        name: [] for name in ("clean", "archive", "compact", "log_compact", "schedule_compaction", "repair", "services")
    },
    "schedule_log_compaction": [],
    **{name: [] for name in ("upgrade", "downgrade")},
    "compact_metadata": [],
    "create_index": ["--name", "column_stats"],
    "drop_index": ["--name", "partition_stats"],
    "savepoint": ["--comment", "before"],
    "sort": ["--by", "id"],
    "rescale": ["--n", "3"],
    "rollback": ["--instant", "20200101000000000"],
    "delete_savepoint": ["--instant", "20200101000000000"],
    "restore": ["--to", "20200101000000000"],
}


def made_empty(path: Path) -> str:
    write(path / "other", rows(("k1", "a", 1, 1)), table=COW, settings=QUIET)
    (path / "t/.hoodie/timeline").mkdir(parents=True)
    shutil.copy(path / "other/.hoodie/hoodie.properties", path / "t/.hoodie")
    return str(path / "t")


def made_on_s3(_: Path) -> str:
    url = new_url()
    for n in range(2):
        write(url, rows(("k1", "a", n, n)), table=COW, settings=QUIET)
    return url


PLACES = {
    "empty": made_empty,
    "S3": made_on_s3,
    **{name: partial(unpack, name) for name in ("v8_cow", "v8_mor", "v9_lookup_bloom_mor")},
}


@pytest.mark.parametrize("place", PLACES)
def test_each_change_ends_with_a_code_and_json_wherever_the_table_is(
    tmp_path: Path, direct_s3: S3Server, capsys: Shown, place: str
) -> None:
    """A trial run changes nothing, and a command that refuses says so by one of pyhudi's errors."""
    path = PLACES[place](tmp_path)
    assert {*CHANGING} == {
        name for name in (*SERVICES, ROUND, "rescale") if name not in {"validate", "rescale_buckets"}
    }
    rows_of_all = outcome(capsys, CAT, path, "--limit", "100000")

    for name, words in CHANGING.items():
        told, _ = outcome(capsys, name, path, *words, "--dry-run") if name != ROUND else (0, [])
        assert outcome(capsys, CAT, path, "--limit", "100000") == rows_of_all
        code, printed = outcome(capsys, name, path, *words, "--yes")
        assert code in {told, 0, 5}, (name, told, code)
        assert bool(printed) == (code == 0), (name, code, printed)
    assert outcome(capsys, CAT, path, "--limit", "100000") == rows_of_all


@pytest.mark.parametrize("case", SYMPTOMS[::16], ids=lambda case: f"{case.code}-{case.name}".replace(" ", "-"))
def test_each_change_of_a_sick_table_is_done_or_refused_by_name(
    tmp_path: Path, healthy: Path, capsys: Shown, case: Symptom
) -> None:
    path = tmp_path / "t"
    for name, words in CHANGING.items():
        shutil.copytree(healthy, path)
        case.spoil(path)
        outcome(capsys, name, str(path), *words, "--yes")
        shutil.rmtree(path)


def outcome(capsys: Shown, *line: str) -> tuple[int, list[Any]]:
    """Return the code of a command and what it prints as JSON; an error has a name of pyhudi's."""
    code = command([*line, "--json"])
    shown = capsys.readouterr()
    assert code in {0, 2, 3, 4, 5}, shown.err
    assert (code != 0) == ("PyHudiError[" in shown.err), shown.err
    return code, sorted(map(json.loads, shown.out.splitlines()), key=str)


def test_a_reader_that_has_seen_enough_ends_the_command_without_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, rows(("k1", "a", 1, 1)), table=COW, settings=QUIET)
    program = "import sys; from pyhudi.connector.jobs import command; sys.exit(command(sys.argv[1:]))"
    line = shlex.join([sys.executable, "-c", program, "timeline", str(path)])

    process = subprocess.run(
        ["bash", "-c", f"set -o pipefail; (sleep 0.2; {line}) | true"], capture_output=True, text=True, check=False
    )

    assert (process.returncode, process.stderr) == (1, "")


class Screen(io.StringIO):
    """What a terminal would get."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_shows_tables_whose_text_is_no_markup(has_rich: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich", None)
    screen = Screen()

    show_table(screen, ["partition", "bytes"], [["[red]a\x1b[2J", 2048], [":smile:", 3]], cell)

    text = screen.getvalue()
    assert r"[red]a\x1b[2J" in text
    assert ":smile:" in text
    assert "2.0 KiB" in text
    assert "\x1b[2J" not in text
    assert ("\x1b[1m" in text) == has_rich


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_shows_progress_and_clears_it(has_rich: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich", None)
    screen = Screen()
    progress = WorkProgress("sort /t\x1b[2J", screen, patience_s=0.0)
    progress(Progress("sort", 3, 8, 4 << 20))
    with progress:
        while "3 of 8 done" not in screen.getvalue():
            pass

    assert "\x1b[2J" not in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K") or has_rich
