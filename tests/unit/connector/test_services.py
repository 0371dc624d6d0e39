"""Table services as people ask for them: by methods of `HudiTable`, and by jobs without Spark."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi import HudiTable
from pyhudi.connector.jobs import main
from pyhudi.errors import CommitConflictError
from pyhudi.operations.result import ServiceResult
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, CompactionSettings
from pyhudi.storage.local import LocalStorage
from pyhudi.timeline.writers.patience import Patience
from support.drive import write
from support.made.compacting import TABLE, append, in_bases, new_table, rows
from support.seams import patch_seam

NOTHING = SimpleNamespace(conf=SimpleNamespace(getAll={}))
COMMITS = "hoodie.clean.commits.retained"
DEAD = "hoodie.clean.failed.writes.policy"
SEAMS = {
    "clean": "clean a table",
    "archive": "archive instants",
    "schedule_compaction": "plan a compaction",
    "rollback": "roll a write back",
    "savepoint": "savepoint of a moment",
    "delete_savepoint": "delete a savepoint",
    "restore": "restore a table",
    "drop_index": "drop an index",
}
Asked = list[tuple[str, tuple[object, ...], dict[str, object]]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the services are asked, each of which a fake stands for."""
    calls: Asked = []

    def fake(name: str) -> Callable[..., object]:
        def service(storage: LocalStorage, *arguments: object, **named: object) -> object:
            # A function of the caller's, which the archive of a table without a metadata table never calls.
            named.pop("merge_metadata", None)
            calls.append((name, arguments, named))
            return ServiceResult(storage.path, name, "20261122090000000", files=2)

        return service

    for name, seam in SEAMS.items():
        patch_seam(monkeypatch, seam, fake(name))
    return calls


ONE = "20261122080000000"
CLEAN_ONE = CleanSettings(commits=1)
# A job, the same by HudiTable, and what the service is asked by both.
JOBS: list[tuple[list[str], Callable[[HudiTable], object], tuple[str, tuple[object, ...], dict[str, object]]]] = [
    (
        ["clean", "--dry-run", "--option", f"{COMMITS}=1"],
        lambda table: table.clean(dry_run=True, **{COMMITS: 1}),
        ("clean", (CLEAN_ONE,), {"dry_run": True}),
    ),
    (
        ["archive", "--option", "hoodie.keep.max.commits=99"],
        lambda table: table.archive(**{"hoodie.keep.max.commits": 99}),
        ("archive", (ArchiveSettings(max_commits=99), CleanSettings()), {"dry_run": False}),
    ),
    (
        ["schedule_compaction", "--option", "hoodie.compaction.target.io=7", "--option", f"{DEAD}=EAGER"],
        lambda table: table.schedule_compaction(**{"hoodie.compaction.target.io": 7, DEAD: "EAGER"}),
        (
            "schedule_compaction",
            (CompactionSettings(target_io_mb=7), Patience(eager=True)),
            {"dry_run": False},
        ),
    ),
    (
        ["rollback", "--instant", ONE, "--option", f"{DEAD}=EAGER"],
        lambda table: table.rollback(ONE, **{DEAD: "EAGER"}),
        ("rollback", (ONE,), {"patience": Patience(eager=True), "dry_run": False}),
    ),
    (
        ["savepoint", "--comment", "before the move", "--user", "ada"],
        lambda table: table.savepoint(comment="before the move", user="ada"),
        ("savepoint", (None,), {"comment": "before the move", "user": "ada", "dry_run": False}),
    ),
    (
        ["savepoint", "--instant", ONE],
        lambda table: table.savepoint(ONE),
        ("savepoint", (ONE,), {"comment": "", "user": "", "dry_run": False}),
    ),
    (
        ["savepoint", "--instant", "2026-11-22T08:00:00.000000+00:00"],
        lambda table: table.savepoint(datetime(2026, 11, 22, 8, tzinfo=timezone.utc)),
        ("savepoint", ("2026-11-22T08:00:00.000000+00:00",), {"comment": "", "user": "", "dry_run": False}),
    ),
    (
        ["rollback", "--instant", "2026-11-22"],
        lambda table: table.rollback(date(2026, 11, 22)),
        ("rollback", ("2026-11-22",), {"patience": Patience(), "dry_run": False}),
    ),
    (
        ["delete_savepoint", "--instant", ONE],
        lambda table: table.delete_savepoint(ONE),
        ("delete_savepoint", (ONE,), {"dry_run": False}),
    ),
    (
        ["restore", "--to", ONE, "--option", f"{DEAD}=EAGER"],
        lambda table: table.restore(ONE, **{DEAD: "EAGER"}),
        ("restore", (ONE,), {"patience": Patience(eager=True), "dry_run": False}),
    ),
    (
        ["drop_index", "--name", "files", "--dry-run"],
        lambda table: table.drop_index("files", dry_run=True),
        ("drop_index", ("files",), {"dry_run": True}),
    ),
]


@pytest.mark.parametrize(("job", "method", "call"), JOBS, ids=[" ".join(job[:2]) for job, _, _ in JOBS])
def test_a_job_and_a_method_ask_a_service_for_the_same(
    tmp_path: Path,
    asked: Asked,
    capsys: pytest.CaptureFixture[str],
    job: list[str],
    method: Callable[[HudiTable], object],
    call: object,
) -> None:
    code = main([job[0], "--path", str(tmp_path), *job[1:]])
    printed = json.loads(capsys.readouterr().out)
    result = method(HudiTable(NOTHING, str(tmp_path)))  # type: ignore[arg-type]

    assert code == 0
    assert (printed["service"], printed["files"]) == (job[0], 2)
    assert result == ServiceResult(str(tmp_path), job[0], "20261122090000000", files=2)
    assert asked == [call, call]


@pytest.mark.parametrize(
    ("severities", "code"), [(["error", "warning"], 5), (["warning"], 0), ([], 0)], ids=["wrong", "odd", "well"]
)
def test_what_validate_finds_is_a_line_each_and_an_error_a_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    severities: list[str],
    code: int,
) -> None:
    depths = []
    found = pa.table({"severity": pa.array(severities, pa.string()), "file": ["a.commit"] * len(severities)})
    patch_seam(monkeypatch, "validate a table", lambda _, *, deep: depths.append(deep) or found)

    assert main(["validate", "--path", str(tmp_path)]) == code
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == [{"severity": severity, "file": "a.commit"} for severity in severities]
    assert main(["validate", "--path", str(tmp_path), "--deep"]) == code
    assert depths == [False, True]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["archive", "--option", "hoodie.keep.max.commits=2"], 2),
        (["clean", "--option", "nonsense=1"], 2),
        (["clean", "--option", COMMITS], 2),
        (["archive"], 4),
    ],
)
def test_the_exit_code_of_a_service_says_what_the_caller_can_do(
    tmp_path: Path,
    asked: Asked,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise CommitConflictError("Somebody was first.", "Run it again.")

    patch_seam(monkeypatch, "archive instants", fails)

    assert main([*arguments, "--path", str(tmp_path)]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("PyHudiError[")


def test_log_files_are_looked_after_by_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each plan is carried out by the job that comes next, and a table without log files is told by the exit code."""
    table, other = tmp_path / "t", tmp_path / "copy on write"
    new_table(table, ("k", "a", 1, 1))
    for value in (2, 3):
        append(table, ("k", "a", value, value))
    write(other, rows(("k", "a", 1, 1)), table=replace(TABLE, table_type="COPY_ON_WRITE"))

    def job(service: str) -> dict[str, Any]:
        few = ["--option", "hoodie.log.compaction.blocks.threshold=2"]
        assert main([service, "--path", str(table), *few]) == 0
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    planned, joined = job("schedule_log_compaction"), job("log_compact")
    assert (planned["instant"], planned["log_files"]) == (joined["instant"], joined["log_files"])
    assert (joined["file_groups"], joined["log_files"]) == (1, 2)
    planned, merges = job("schedule_compaction"), job("compact")
    assert (planned["instant"], planned["file_groups"]) == (merges["instant"], merges["file_groups"])
    assert in_bases(table) == [("a", "k", 3)]
    assert job("compact")["instant"] == job("log_compact")["instant"] == ""

    for service in ("compact", "schedule_compaction", "log_compact", "schedule_log_compaction"):
        assert main([service, "--path", str(other)]) == 5
        assert "PyHudiError[UNSUPPORTED_TABLE]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["rollback", "--path", "x"],
        ["restore", "--path", "x"],
        ["clean", "--path", "x", "--source", "sql:select 1"],
        ["validate", "--path", "x", "--dry-run"],
        ["vacuum", "--path", "x"],
    ],
)
def test_a_wrong_argument_of_a_service_is_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2


def test_a_view_shows_the_later_of_two_commits_whose_refreshes_meet(tmp_path: Path) -> None:
    """The first refresh has read the table before the second commit, and replaces the view after that."""
    views: dict[str, Any] = {}
    first_has_read, second_ended = Event(), Event()
    catalog = SimpleNamespace(tableExists=views.__contains__)
    session: Any = SimpleNamespace(conf=NOTHING.conf, catalog=catalog, table=views.__getitem__)

    class Rows:
        def __init__(self, commit: int) -> None:
            self.commit = commit

        def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 (Spark's name)
            views[name] = self

        def sameSemantics(self, other: Rows) -> bool:  # noqa: N802 (Spark's name)
            return self is other

    class Following(HudiTable):
        newest = 0

        def to_df(self, *args: Any, **kwargs: Any) -> Any:
            rows = Rows(self.newest)
            if rows.commit == 1:
                first_has_read.set()
                second_ended.wait(0.3)
            return rows

    table = Following(session, tmp_path / "t")
    table.create_view("v", newest=True)
    table.newest = 1
    first = Thread(target=table.refresh_views)
    first.start()
    first_has_read.wait()
    table.newest = 2
    table.refresh_views()
    second_ended.set()
    first.join()

    assert views["v"].commit == 2


def test_a_table_is_pickled_with_a_function_that_uses_it(tmp_path: Path) -> None:
    table = HudiTable(NOTHING, tmp_path / "t")  # type: ignore[arg-type]
    copy = pickle.loads(pickle.dumps(table))  # noqa: S301 (made here)

    copy.refresh_views()
    assert copy.path == table.path
