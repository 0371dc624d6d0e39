"""The command `pyhudi`: what it prints, what it asks, and its exit codes, without Spark."""

from __future__ import annotations

import html
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.connector.command.cells import cell, escaped, shell_words, size_text, stored_value, with_short_floats
from pyhudi.connector.command.command_line import CommandLine
from pyhudi.connector.command.commands import CAT, COMPLETION, CREATE, DIFF, READS, REPORT, SHOW
from pyhudi.connector.command.output import CommandOutput, plain_lines
from pyhudi.connector.command.parser import OPERATIONS, ROUND, build_parser, subcommands, with_path_in_place
from pyhudi.connector.command.run import refuse_secrets
from pyhudi.connector.command.work_progress import WorkProgress
from pyhudi.connector.jobs import COMMAND, command, main
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.state.needs import Need
from pyhudi.operations.upkeep.services import SERVICES
from pyhudi.operations.words.progress import Progress
from support.drive import read, write
from support.made.compacting import rows
from support.upkeep.meetings import COW, MOR, QUIET, Scene

FEW = ["hoodie.clean.commits.retained=2", "hoodie.keep.min.commits=3", "hoodie.keep.max.commits=4"]
OPTIONS = [word for option in FEW for word in ("--option", option)]
HOSTILE = "\x1b[31mred\u202e"

Shown = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """A terminal at which the user answers each question alike."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self._answer = answer

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        return self._answer


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a terminal before the command, with the user's answer."""
    return lambda answer: monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of three writes to two partitions."""
    table_path = tmp_path_factory.mktemp("written") / "t"
    for n in range(3):
        write(table_path, rows(("k1", "a", n, n), ("k2", "b", n, n)), table=COW, settings=QUIET)
    return table_path


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    """A copy of that table."""
    return Path(shutil.copytree(written, tmp_path / "t"))


def jsons(capsys: Shown) -> list[Any]:
    """Return what was printed, a value for each line."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def content(path: Path) -> dict[str, bytes]:
    """Return all files below a table's root."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", [*READS, SHOW])
def test_a_command_that_reads_prints_lines_for_people_and_json(path: Path, capsys: Shown, name: str) -> None:
    before = content(path)

    assert command([name, str(path)]) == 0
    shown = capsys.readouterr()
    assert command([name, str(path), "--json"]) == 0
    printed = jsons(capsys)

    assert (shown.err, content(path)) == ("", before)
    assert all(isinstance(row, dict) for row in printed)
    if name == SHOW:
        assert (printed[0]["partitions"], printed[0]["file_groups"], printed[0]["needs"]) == (2, 2, [])
        assert "2 partitions, 2 file groups, 2 files" in shown.out
    elif printed:
        assert shown.out.split("\n")[0].split() == [*printed[0]]
        assert len(shown.out.splitlines()) == len(printed) + 1
    else:
        assert shown.out == f"{READS[name].nothing}\n"


def test_rows_are_printed_by_key_and_condition(path: Path, capsys: Shown) -> None:
    assert command([CAT, str(path), "--key", "k2", "--json"]) == 0
    assert jsons(capsys) == [{"id": "k2", "p": "b", "ts": 2, "value": 2}]
    assert command([CAT, str(path), "--where", "p = 'a' OR value > 9", "--columns", "id,value", "--json"]) == 0
    assert jsons(capsys) == [{"id": "k1", "value": 2}]
    for limit, count in ((1, 1), (0, 0), (2**31 - 1, 2)):
        assert command([CAT, str(path), "--limit", str(limit), "--json"]) == 0
        assert len(jsons(capsys)) == count
    assert command([CAT, str(path), "--key", "k9"]) == 0
    assert capsys.readouterr().out == "No row matches.\n"
    first = read_history(path, capsys)[-1]
    assert command([CAT, str(path), "--as-of", first, "--key", "k1", "--json"]) == 0
    assert jsons(capsys)[0]["ts"] == 0


def test_rows_are_printed_by_a_key_in_a_struct(tmp_path: Path, capsys: Shown) -> None:
    settings = TableSettings(record_key_fields=("user.id",), bucket_count=2)
    write(tmp_path / "t", pa.table({"user": [{"id": 7}, {"id": 8}], "value": [1, 2]}), table=settings, settings=QUIET)

    assert command([CAT, str(tmp_path / "t"), "--key", "8", "--json"]) == 0
    assert jsons(capsys) == [{"user": {"id": 8}, "value": 2}]


def read_history(path: Path, capsys: Shown) -> list[str]:
    """Return the instants of a table, newest first."""
    assert command(["history", str(path), "--json"]) == 0
    return [row["instant"] for row in jsons(capsys)]


def test_what_changed_is_counts_and_files_or_rows(path: Path, capsys: Shown) -> None:
    last, _, first = read_history(path, capsys)

    assert command([DIFF, str(path), first, last, "--json"]) == 0
    counts, *changed = jsons(capsys)
    assert (counts["writes"], counts["updates"]) == (2, 4)
    assert [row["change"] for row in changed] == ["changed", "changed"]
    assert command([DIFF, str(path), first, last, "--rows", "--limit", "1", "--json"]) == 0
    assert jsons(capsys)[1:] == [{"partition": "a", "change": "updated", "key": "k1"}]
    assert command([DIFF, str(path), last, last]) == 0
    assert "No file differs." in capsys.readouterr().out
    assert command([DIFF, str(path), last, first]) == 2


CHANGES: dict[str, list[str]] = {
    "clean": [],
    "archive": [],
    "rollback": ["--instant", "LAST"],
    "savepoint": [],
    "restore": ["--to", "FIRST"],
    "rescale": ["--n", "3"],
    "sort": ["--by", "value"],
    ROUND: [],
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_command_that_changes_a_table_needs_a_yes(
    path: Path, capsys: Shown, says: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Without a terminal it ends with code 2, a dry run changes nothing, and neither does any answer but yes."""
    last, _, first = read_history(path, capsys)
    words = [{"LAST": last, "FIRST": first}.get(word, word) for word in CHANGES[name]]
    line = [name, str(path), *words, "--option", "hoodie.clean.commits.retained=1", *OPTIONS[2:]]
    before = content(path)

    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert command(line) == 2
    assert "no terminal is there to ask" in capsys.readouterr().err
    assert command([*line, "--dry-run"]) == 0
    assert capsys.readouterr().err == ""
    says("no")
    assert command(line) == 1
    assert capsys.readouterr().err.endswith("Go ahead? [y/N] Nothing was changed.\n")
    assert content(path) == before
    says("Y")
    assert command(line) == 0
    assert content(path) != before or name == "archive"
    assert capsys.readouterr().out


def test_yes_goes_ahead_without_a_question(path: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    assert command(["savepoint", str(path), "--comment", "kept", "--yes", "--json"]) == 0
    assert jsons(capsys)[0]["files"] == 2
    assert command(["validate", str(path)]) == 0
    assert capsys.readouterr().out == "Nothing is wrong with the table.\n"


def test_a_job_changes_a_table_without_a_question(path: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    assert main(["clean", "--path", str(path), "--option", "hoodie.clean.commits.retained=1"]) == 0
    assert jsons(capsys)[0]["files"] == 2
    assert main(["partitions", "--path", str(path)]) == 0
    assert [row["partition"] for row in jsons(capsys)] == ["a", "b"]


@pytest.mark.parametrize(
    "option",
    [
        "hoodie.pyhudi.storage.secret=abcdefgh",
        "hoodie.pyhudi.storage.key=abcdefgh",
        "hoodie.pyhudi.storage.client_kwargs={}",
        "hoodie.meta.sync.password=abcdefgh",
        "hoodie.clean.policy=s3://me:abcdefgh@b",
    ],
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(path: Path, capsys: Shown, option: str) -> None:
    assert command([SHOW, str(path), "--option", option]) == 2

    error = capsys.readouterr().err
    assert "may hold a secret" in error
    assert "abcdefgh" not in error


def test_a_job_prints_no_secret_in_the_commands_that_a_table_needs(path: Path, tmp_path: Path, capsys: Shown) -> None:
    page, eager = tmp_path / "report.html", ["--option", "hoodie.clean.commits.retained=1"]
    words = ["--path", str(path), "--option", "hoodie.pyhudi.storage.token=abcdefgh", *eager]

    assert main([REPORT, *words, "--output", str(page)]) == 0
    assert main([ROUND, *words, "--dry-run"]) == 0
    assert main([SHOW, *words]) == 0

    _, need, state = jsons(capsys)
    assert need["command"] == state["needs"][0]["command"] == shell_words(["pyhudi", "clean", str(path), *eager])
    assert "abcdefgh" not in page.read_text()


def test_a_printed_command_takes_each_value_for_a_value() -> None:
    """Whatever a plan in the table names."""
    line = CommandLine(CommandOutput(as_json=False), COMMAND, build_parser(COMMAND).parse_args([SHOW, "/t"]), {})

    printed = line.command_of(Need("It is pending.", "restore", {"to": "--yes"}))

    assert build_parser(COMMAND).parse_args(shlex.split(printed)[1:]).to == "--yes"


def test_places_of_a_store_are_no_secrets() -> None:
    refuse_secrets({"hoodie.pyhudi.storage.region": "eu-1", "hoodie.clean.commits.retained": "20", "recordkey": "id"})


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ([SHOW, "PATH/none"], 5),
        (["files", "PATH", "--as-of", "whenever"], 2),
        ([CAT, "PATH", "--where", "nothing = 1"], 2),
        ([CAT, "PATH", "--columns", "nothing"], 2),
        (["restore", "PATH", "--to", "20200101000000000", "--yes"], 5),
        (["clean", "PATH", "--yes", "--option", "nonsense=1"], 2),
    ],
)
def test_the_exit_code_says_what_the_caller_can_do(path: Path, capsys: Shown, line: list[str], code: int) -> None:
    assert command([word.replace("PATH", str(path)) for word in line]) == code

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("PyHudiError[")


def needed(path: Path, capsys: Shown) -> list[str]:
    """Return the commands that `show` prints."""
    assert command([SHOW, str(path), *OPTIONS]) == 0
    lines = map(str.strip, capsys.readouterr().out.splitlines())
    return [line for line in lines if line.startswith("pyhudi ")]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_the_commands_that_show_prints_leave_it_nothing_to_print(
    tmp_path: Path, capsys: Shown, says: Callable[[str], None], kind: str
) -> None:
    """Of a table with a dead write, debt, old slices and a long timeline; within five rounds, and no row changes."""
    path = tmp_path / "a table's path"
    for n in range(7):
        write(path, rows(("k1", "a", n, n), ("k2", "b", n, n)), table={"cow": COW, "mor": MOR}[kind], settings=QUIET)
    made = Scene(path, ())
    if kind == "mor":
        made.compaction()
    made.dead()
    before = sorted(map(str, read(path).select(["id", "p", "ts", "value"]).to_pylist()))
    says("y")
    commands_run: list[str] = []

    for _ in range(5):
        lines = needed(path, capsys)
        for line in lines:
            program, *words = shlex.split(line)
            assert (program, command(words)) == ("pyhudi", 0), capsys.readouterr().err
            commands_run.append(words[0])
            capsys.readouterr()
        if not lines:
            break

    assert needed(path, capsys) == []
    assert {*commands_run} == {"rollback", "archive", {"cow": "clean", "mor": "compact"}[kind]}
    assert sorted(map(str, read(path).select(["id", "p", "ts", "value"]).to_pylist())) == before
    assert command(["validate", str(path), "--deep"]) == 0


@pytest.mark.parametrize("name", [SHOW, CAT, "files", "partitions", "sizes", DIFF, "savepoints", "validate"])
def test_text_of_a_table_reaches_a_terminal_spelled_out(tmp_path: Path, capsys: Shown, name: str) -> None:
    path = tmp_path / "t"
    times = [
        write(path, rows(("k1", HOSTILE, n, n), (HOSTILE, "b", n, n)), table=COW, settings=QUIET).instant
        for n in range(2)
    ]
    assert command(["savepoint", str(path), "--comment", HOSTILE, "--user", HOSTILE, "--yes"]) == 0
    line = [name, str(path), *(times if name == DIFF else []), *(["--rows"] if name == DIFF else [])]

    for form in ([], ["--json"]):
        assert command([*line, *form]) == 0
        printed = capsys.readouterr()
        for text in (printed.out, printed.err):
            assert all(letter.isprintable() or letter == "\n" for letter in text)
    if name not in {SHOW, "validate"}:
        assert command(line) == 0
        assert r"\x1b[31mred\u202e" in capsys.readouterr().out


def test_an_error_spells_out_what_it_quotes(path: Path, capsys: Shown) -> None:
    assert command([CAT, f"{path}/{HOSTILE}\n"]) == 5

    assert all(letter.isprintable() or letter == "\n" for letter in capsys.readouterr().err)


def test_characters_that_a_terminal_does_not_print_are_spelled_out() -> None:
    assert escaped("plain: é 漢 🙂") == "plain: é 漢 🙂"
    assert escaped("\x00\t\n\x1b\x7f\x9b\u2028\u202e\U000e0001") == (
        r"\x00\x09\x0a\x1b\x7f\u009b\u2028\u202e\U000e0001"
    )


@pytest.mark.parametrize("word", ["/plain", "with space", "it's", "$(date)", "\x1b[1m", "a'b\\\n\u202e", "`x`"])
def test_a_printed_command_gives_the_shell_its_words(word: str) -> None:
    line = shell_words(["printf", "%s", word])

    assert line.isprintable()
    assert subprocess.run(["bash", "-c", line], capture_output=True, check=True, text=True).stdout == word


def test_values_are_shown_as_people_read_them() -> None:
    assert [size_text(number) for number in (0, 1023, 1024, 5 << 20, 3 << 50)] == [
        *("0 B", "1,023 B", "1.0 KiB", "5.0 MiB", "3.0 PiB")
    ]
    assert cell("bytes", 2048) == "2.0 KiB"
    assert [cell("x", value) for value in (None, "", True, 1234, 0.25, ["a", "b"], {"k": 1})] == [
        *("-", "-", "yes", "1,234", "0.2", "a, b", "k=1")
    ]
    assert [*plain_lines(["name", "n"], [["a", "10"], ["bcdef", "9"]], [False, True])] == [
        *("name    n", "a      10", "bcdef   9")
    ]


def test_values_of_rows_are_shown_as_they_are() -> None:
    moment = datetime(2013, 1, 1, 5, 0, 0, 120000)
    values = [None, "", True, 2013, -1714000, 1234.5678, moment, moment.date(), Decimal("1234.50"), b"ab"]

    assert [stored_value("year_bytes", value) for value in values] == [
        *("null", "", "true", "2013", "-1714000", "1234.5678", "2013-01-01 05:00:00.120000", "2013-01-01"),
        *("1234.50", "b'ab'"),
    ]
    assert stored_value("x", {"a": 1234, "b": [1000, None]}) == "{a: 1234, b: [1000, null]}"
    assert stored_value("x", "a\x1b[1m") == r"a\x1b[1m"
    floats = pa.table({"f": pa.array([0.1, None, float("inf")], pa.float32()), "n": [1, 2, 3]})
    assert with_short_floats(floats).to_pydict() == {"f": [0.1, None, float("inf")], "n": [1, 2, 3]}


def test_years_that_python_lacks_are_spelled_at_any_depth(capsys: Shown) -> None:
    last_us, day = 253402300800000000, pa.array([0, 2932897], pa.int32()).cast(pa.date32())
    moment = pa.array([0, last_us], pa.timestamp("us", "UTC"))
    maps = pa.array([None, [("k", last_us)]], pa.map_(pa.string(), pa.timestamp("us")))
    nested = pa.StructArray.from_arrays([pa.array([None, [last_us]], pa.list_(pa.timestamp("us"))), maps], ["l", "m"])
    usual = pa.array([0, 1], pa.timestamp("us"))
    stored = pa.table({"day": day, "moment": moment, "nested": nested, "usual": usual})

    CommandOutput(as_json=True).rows(stored, "No row.", stored=True)

    late = "10000-01-01 00:00:00.000000"
    assert jsons(capsys)[1] == {
        "day": "10000-01-01",
        "moment": f"{late}Z",
        "nested": {"l": [late], "m": [["k", late]]},
        "usual": "1970-01-01 00:00:00.000001",
    }


def test_a_line_says_how_far_long_work_is_without_a_terminal() -> None:
    stream = io.StringIO()
    progress = WorkProgress("compact /t", stream, every_s=0.01)
    progress(Progress("compaction", 3, 8, 4 << 20))
    with progress:
        while stream.getvalue().count("\n") < 2:
            pass

    assert stream.getvalue().startswith("compact /t: compaction: 3 of 8 done (4.0 MiB) after 0 s\n")


def test_each_service_and_command_has_a_parser() -> None:
    names = {*subcommands(build_parser(COMMAND))}

    assert names == {*SERVICES, *READS, *OPERATIONS, SHOW, REPORT, CAT, DIFF, CREATE, COMPLETION, ROUND, "rescale"}


def test_the_line_of_a_job_works_as_a_command() -> None:
    assert with_path_in_place(["clean", "--dry-run", "--path", "/t"]) == ["clean", "/t", "--dry-run"]
    assert with_path_in_place(["clean", "--path=/t", "--yes"]) == ["clean", "/t", "--yes"]
    assert with_path_in_place(["diff", "/t", "--", "--path", "x"]) == ["diff", "/t", "--", "--path", "x"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [(["val"], ["validate"]), (["clean", "--dry"], ["--dry-run"]), (["rescale", "--n"], ["--n"])],
)
def test_bash_completes_commands_and_options(typed: list[str], expected: list[str], capsys: Shown) -> None:
    assert command([COMPLETION, "bash"]) == 0
    words, at = shlex.join(["pyhudi", *typed]), len(typed)
    asked = f"COMP_WORDS=({words}); COMP_CWORD={at}; _pyhudi; echo ${{COMPREPLY[@]}}"
    script = f"{capsys.readouterr().out}\n{asked}"

    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)

    assert (done.stdout.split(), done.stderr) == (expected, "")


def test_zsh_gets_each_command_with_its_options(capsys: Shown) -> None:
    assert command([COMPLETION, "zsh"]) == 0

    script = capsys.readouterr().out
    assert script.startswith("#compdef pyhudi\n")
    assert "'clean:Delete file slices that the cleaning policy does not keep.'" in script
    assert "        clean) options=(--help --json --yes --option --retain --dry-run) ;;" in script


def test_no_command_but_those_of_rows_imports_spark(path: Path, tmp_path: Path) -> None:
    """In a process of its own, which also has no rich. A look at a table loads neither services nor pandas."""
    lines = [
        *([name, str(path)] for name in (SHOW, *READS, "validate", CAT)),
        ["compact", str(path), "--yes"],
        ["clean", str(path), "--yes"],
        [ROUND, str(path), "--yes"],
    ]
    code = (
        "import json, sys\n"
        "sys.modules['rich'] = None\n"
        "from pyhudi.connector.jobs import command\n"
        "heavy = {'pandas', *(f'pyhudi.operations.{name}' for name in sys.argv[3:])}\n"
        "for name in ('show', 'cat'):\n"
        "    given, sys.argv = sys.argv, ['pyhudi', name, sys.argv[2]]\n"
        "    assert command() == 0\n"
        "    sys.argv = given\n"
        "loaded = sorted(heavy & sys.modules.keys())\n"
        "codes = [command(line) for line in json.loads(sys.argv[1])]\n"
        "found = [name for name in sys.modules if name.partition('.')[0] in {'pyspark', 'py4j'}]\n"
        "print(json.dumps([codes, found, loaded]))\n"
    )
    services = ("services.compaction.compact", "services.archive", "write.inline", "write.run")
    called = [sys.executable, "-c", code, json.dumps(lines), str(path), *services]
    done = subprocess.run(called, capture_output=True, text=True, check=True)

    codes, found, loaded = json.loads(done.stdout.splitlines()[-1])
    assert (found, loaded) == ([], [])
    assert codes == [0] * (len(lines) - 3) + [5, 0, 0], "a copy-on-write table has nothing to compact"


PAGE = Path(__file__).parents[3] / "docs" / "command.md"


def examples() -> list[str]:
    """Return the command lines of the page, as a shell sees them."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.startswith("    pyhudi ")]


def test_the_examples_of_the_page_work(
    tmp_path: Path, capsys: Shown, says: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but those that start Spark or never end, which are parsed."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "trips"
    settings = replace(MOR, partition_fields=("city",))
    columns = {"id": ["7", "8"], "city": ["Rome", "Oslo"], "fare": [12.5, 8.0]}
    times = [write(path, pa.table({**columns, "ts": [n, n]}), table=settings, settings=QUIET).instant for n in range(3)]
    instants = {"20261126075924380": times[0], "20261126075927508": times[-1], "2026-11-26": times[1]}
    says("y")
    lines = examples()

    for line in lines:
        program, *words = shlex.split(line)
        words = [instants.get(word, word.replace("/data/trips", str(path))) for word in words]
        assert program == "pyhudi"
        if CREATE in words or "--every" in words:
            build_parser(COMMAND).parse_args(words)
        else:
            assert command(words) == 0, f"{line}\n{capsys.readouterr().err}"
            assert capsys.readouterr().out
    assert len(lines) > 20


def test_a_report_is_a_file_and_changes_no_table(path: Path, tmp_path: Path, capsys: Shown) -> None:
    before, page = content(path), tmp_path / "report.html"
    eager = ["--option", "hoodie.clean.commits.retained=1"]

    assert command([REPORT, str(path), "-o", str(page), "--json", *eager]) == 0
    assert jsons(capsys) == [{"report": str(page), "bytes": page.stat().st_size, "problems": []}]
    assert command([REPORT, str(path), "--output", "-", "--deep"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("<!doctype html>")
    assert printed.endswith("</html>\n")
    assert content(path) == before
    assert command([SHOW, str(path), "--json", *eager]) == 0
    needs = [need["command"] for need in jsons(capsys)[0]["needs"]]
    assert needs
    assert re.findall('<pre class="command"><code>(.*?)</code>', page.read_text()) == [*map(html.escape, needs)]


@pytest.mark.parametrize("name", ["", "none/report.html", "r" * 256])
def test_a_report_that_cannot_be_written_leaves_nothing(path: Path, tmp_path: Path, capsys: Shown, name: str) -> None:
    (tmp_path / "r").mkdir()

    assert command([REPORT, str(path), "-o", str(tmp_path / "r" / name)]) == 2

    assert "--output" in capsys.readouterr().err
    assert [*(tmp_path / "r").iterdir()] == []


def test_a_report_goes_behind_links_and_into_pipes(path: Path, tmp_path: Path, capsys: Shown) -> None:
    page, link, pipe = (tmp_path / name for name in ("page.html", "link.html", "pipe"))
    link.symlink_to(page.name)
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(pipe.read_bytes)
        for name in (link, pipe):
            assert command([REPORT, str(path), "-o", str(name)]) == 0

    assert (link.is_symlink(), pipe.is_fifo()) == (True, True)
    assert page.read_bytes().endswith(b"</html>\n")
    assert received.result().startswith(b"<!doctype html>")


def test_a_report_without_a_name_is_refused_before_the_table_is_read(tmp_path: Path, capsys: Shown) -> None:
    assert command([REPORT, str(tmp_path / "none"), "-o", ""]) == 2
    assert "the folder ''" in capsys.readouterr().err
