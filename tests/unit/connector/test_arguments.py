"""Every public call checks its numbers, names, paths, flags and times before it does anything."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyhudi
import pytest
from pyhudi import HudiTable
from pyhudi.connector.command.commands import CREATE
from pyhudi.connector.command.parser import OPERATIONS, build_parser, subcommands
from pyhudi.connector.jobs import COMMAND, JOBS, command, main
from pyhudi.connector.joins.table_rows import TableRows
from pyhudi.connector.merge.builder import MergeBuilder
from pyhudi.errors import InvalidOptionError
from pyhudi.operations.arguments import CHECKS, INSIDE, MOST, kind_of
from support.attempts import rows
from support.drive import KEYED, write
from support.places import files_below
from support.seams import patch_seam

NUL = "a\0b"
# How Python reads a word of a command line that is no UTF-8.
NO_UTF8 = "caf\udce9"
NUMBERS = [True, np.bool_(True), "4", "true", 4.0, np.float64(4.0), -1, np.int64(-1), 1 << 70, NUL, "../x", b"4", [4]]
FLAGS = ["true", "", 1, 0, np.int64(1), 1.0, -1, 1 << 70, NUL, "../x"]
TEXTS = [True, np.bool_(True), 4, np.int64(4), 4.0, np.float64(4.0), -1, 1 << 70, NUL, NO_UTF8, b"a"]
LISTS = [*TEXTS, [True], [np.int64(4)], ["a", NUL], [["a"]], {"a": "b"}]
# What each kind of parameter refuses, by its annotation.
BAD: Mapping[str, list[Any]] = {
    "int": NUMBERS,
    "DataFrame | int": [one for one in NUMBERS if not isinstance(one, list)],
    "float": [True, np.bool_(True), "4", -1, -0.5, np.float64(-1), float("nan"), np.float64("inf"), NUL, "../x"],
    "bool": FLAGS,
    "str": TEXTS,
    "str | date": TEXTS,
    "Sequence[str]": [*LISTS, "a"],
    "str | Sequence[str]": LISTS,
    "AnyPath": [True, 4, np.int64(4), 4.0, -1, NUL, "", b"a", ["a"]],
    "HasPath | AnyPath": [True, 4, np.int64(4), 4.0, -1, NUL, "", b"a", ["a"]],
    "On": [True, np.bool_(True), 4, np.int64(4), 4.0, -1, 1 << 70, NUL, b"a", {"a": "b"}],
    "Column | str": [True, np.bool_(True), 4, np.int64(4), 4.0, -1, 1 << 70, NUL, b"a", {"a": "b"}],
    "Mapping[str, Any]": [True, 4, "a", ["a"]],
    "Mapping[str, Value]": [True, 4, "a", ["a"]],
}
OUTSIDE = ["../x", "a/../../x", "/x", ".."]
# What a parameter of each kind takes.
GOOD: Mapping[str, Any] = {
    "int": 4,
    "DataFrame | int": 4,
    "float": 1.5,
    "bool": True,
    "str": "a",
    "str | date": date(2024, 1, 1),
    "Sequence[str]": ["a"],
    "str | Sequence[str]": "a",
    "AnyPath": Path("a"),
    "HasPath | AnyPath": "a",
    "On": "a",
    "Column | str": "a",
    "Mapping[str, Any]": {},
    "Mapping[str, Value]": {},
}
# Rows, sessions, errors and conditions: no numbers, names or paths, and looked at where their kind is known.
OTHER_KINDS = {
    "Any",
    "BaseException",
    "Column | Mapping[str, str]",
    "Columns",
    "Condition",
    "DataFrame",
    "Mapping[str, Any] | Sequence[Any]",
    "OnColumns",
    "Rows",
    "Rows | Column | str",
    "Sequence[Clause]",
    "Side",
    "SparkSession",
    "TableQueries",
    "Where",
    "Work",
}


@dataclass(frozen=True)
class Public:
    """A public call, by its name in errors; methods are called without an object that could do any work."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[inspect.Parameter, ...]

    def __call__(self, changed: str, value: Any) -> Any:
        """Call it with one argument changed."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in self.parameters:
            given = value if parameter.name == changed else GOOD.get(kind_of(parameter))
            if parameter.name != changed and (
                parameter.default is not parameter.empty or parameter.kind is parameter.VAR_KEYWORD
            ):
                continue
            if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL}:
                if parameter.default is not parameter.empty:
                    kwargs[parameter.name] = given
                else:
                    args.append(given)
            else:
                kwargs[parameter.name] = given
        return self.call(*args, **kwargs)


def public_calls() -> Iterator[Public]:
    for name in pyhudi.__all__:
        if inspect.isfunction(getattr(pyhudi, name)):
            yield _public(name, getattr(pyhudi, name))
    yield _public("TableRows", TableRows)
    for owner in (HudiTable, MergeBuilder):
        yield _public(owner.__name__, owner)
        nothing = owner.__new__(owner)
        for name, member in inspect.getmembers_static(owner):
            if not name.startswith("_") and (
                inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
            ):
                yield _public(name, getattr(nothing, name))


def _public(name: str, call: Callable[..., Any]) -> Public:
    return Public(name, call, tuple(inspect.signature(call).parameters.values()))


CALLS = [*public_calls()]
CHECKED = [(one, parameter) for one in CALLS for parameter in one.parameters if kind_of(parameter) in CHECKS]


def test_every_parameter_of_a_public_call_is_of_a_kind_that_is_checked_or_is_no_number_name_or_path() -> None:
    kinds = {kind_of(parameter) for one in CALLS for parameter in one.parameters}

    assert kinds - CHECKS.keys() == OTHER_KINDS
    assert CHECKS.keys() == BAD.keys() == GOOD.keys()
    assert len(CALLS) > 50


@pytest.mark.parametrize(("call", "parameter"), CHECKED, ids=[f"{one.name}-{part.name}" for one, part in CHECKED])
def test_a_wrong_argument_is_refused_by_name_before_any_work(call: Public, parameter: inspect.Parameter) -> None:
    """The object has neither path nor session, so that all work would fail by another error."""
    kind = kind_of(parameter)
    inside = OUTSIDE if parameter.name in INSIDE and "str" in kind else []
    for value in [*BAD[kind], *(inside if kind == "str" else [[one] for one in inside])]:
        with pytest.raises(InvalidOptionError) as refused:
            call(parameter.name, value)
        assert f"{call.name}() got {parameter.name}=" in refused.value.what, value


@pytest.mark.parametrize("number", [4, np.int64(4), np.uint8(4), MOST])
def test_a_whole_number_of_numpy_is_a_number(number: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []
    patch_seam(monkeypatch, "run a service of a table", lambda self, name, options, **given: got.append(given))
    table = HudiTable.__new__(HudiTable)

    table.rescale_buckets(number, partitions=("a", "b"), dry_run=np.bool_(True))
    table.clean(retain=number)

    assert [type(got[0]["n"]), type(got[0]["dry_run"]), type(got[1]["retain"])] == [int, bool, int]
    assert (got[0]["n"], got[0]["dry_run"], got[1]["retain"]) == (int(number), True, int(number))


# --- the command


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arguments") / "t"
    write(path, rows(1, 2, value=1), table=KEYED)
    return path


WORDS = ["True", "4.0", "x", "-1", "1" + "0" * 21, NUL, NO_UTF8, "../x", "", " 4", "4_0"]


def command_lines(table: Path) -> Iterator[tuple[Callable[[list[str]], int], list[str]]]:
    """Return each command line with one wrong argument, for a person and for a scheduler."""
    for entry, run, paths in ((COMMAND, command, [str(table)]), (JOBS, main, ["--path", str(table)])):
        for name, parser in subcommands(build_parser(entry)).items():
            if name == "completion":
                continue
            options = [one for one in parser._actions if one.option_strings and one.dest not in {"help", "json", "yes"}]
            needed = [one for one in options if one.required and one.dest != "path"]
            positional = [one for one in parser._actions if not one.option_strings and one.dest != "path"]
            good = [word for one in needed for word in (one.option_strings[-1], "4")] + ["4"] * len(positional)
            for argument in options:
                # A write reads its rows by Spark first, as the creation of a table does; both check texts before.
                strange = [NUL] if argument.dest in {"source", "output"} else [NUL, NO_UTF8]
                words = strange if name in OPERATIONS or name == CREATE or argument.type is None else WORDS
                if argument.metavar == "SECONDS":
                    words = ["True", "x", "-1", NUL, "nan", "inf"]
                if argument.dest in INSIDE:
                    words = [*words, "../x", "/x"]
                for word in words if argument.nargs != 0 and argument.dest != "path" else ():
                    yield run, [name, *paths, *good, f"{argument.option_strings[-1]}={word}"]
            yield run, [name, *[word.replace(str(table), NUL) for word in paths], *good]


def test_a_wrong_argument_of_the_command_is_refused_and_changes_nothing(table: Path) -> None:
    before = {path: (table / path).stat().st_mtime_ns for path in files_below(table)}
    lines = [*command_lines(table)]
    for run, words in lines:
        said = io.StringIO()
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            try:
                code = run(words)
            except SystemExit as refused:
                code = int(refused.code or 0)
        assert code == 2, (words, said.getvalue())
        assert "PyHudiError[INVALID_OPTION]" in said.getvalue() or ": error: argument " in said.getvalue(), words

    assert {path: (table / path).stat().st_mtime_ns for path in files_below(table)} == before
    assert len(lines) > 100
