"""Each table service has an entry, a job, a method of `HudiTable` with the same arguments, and documentation."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi import HudiTable
from pyhudi.connector.command.parser import build_parser
from pyhudi.connector.jobs import COMMAND, JOBS, main
from pyhudi.methods.upkeep import UpkeepMethods
from pyhudi.operations.result import (
    ARCHIVE,
    CLEAN,
    COMPACTION,
    CREATE_INDEX,
    LOG_COMPACTION,
    METADATA,
    ServiceResult,
)
from pyhudi.operations.service_settings import Upkeep
from pyhudi.operations.upkeep.service_entry import REQUIRED, AfterWrite, Argument, Call, Service
from pyhudi.operations.upkeep.services import SERVICES, VALIDATE
from support.drive import KEYED, write
from support.seams import patch_seam

PAGE = (Path(__file__).parents[3] / "docs" / "upkeep.md").read_text()
# They show something of the table, and do nothing to it.
QUERIES = {"savepoints"}
# They say what follows a write, and no service that is called takes them.
AFTER_WRITES = {"indexes", "metadata"}
# It runs the others.
ROUND = "run_services"
each = pytest.mark.parametrize("service", SERVICES.values(), ids=lambda one: one.name)


def parameters(call: object) -> dict[str, object]:
    """Return the arguments of a call with their defaults, without the table and the options."""
    found = inspect.signature(call).parameters.values()  # type: ignore[arg-type]
    named = [one for one in found if one.kind is not one.VAR_KEYWORD and one.name not in {"self", "call"}]
    return {one.name: REQUIRED if one.default is one.empty else one.default for one in named}


def test_each_service_of_a_table_has_an_entry() -> None:
    methods = {name for name, _ in inspect.getmembers(UpkeepMethods, inspect.isfunction) if not name.startswith("_")}
    inherited = {name for base in UpkeepMethods.__mro__[1:] for name in vars(base)}

    assert methods - inherited - QUERIES - {ROUND} == set(SERVICES)


@each
def test_a_method_has_the_arguments_of_the_entry(service: Service) -> None:
    arguments = {one.name: one.default for one in service.arguments}

    assert parameters(service.run) == arguments
    assert parameters(getattr(HudiTable, service.name)) == arguments


@each
def test_a_job_has_the_arguments_of_the_entry(service: Service) -> None:
    needed = [one for one in service.arguments if one.default is REQUIRED]
    given = [f"--{one.name.replace('_', '-')}={'1' if one.kind is int else 'x'}" for one in needed]

    job = vars(build_parser(JOBS).parse_args([service.name, "--path=/t", *given]))
    command = vars(build_parser(COMMAND).parse_args([service.name, "/t", *given]))

    defaults = {one.name: one.default for one in service.arguments if one.default is not REQUIRED}
    assert {**job, **defaults} == job
    assert {one.name for one in service.arguments} == set(job) - {"operation", "path", "option"}
    assert {**command, **job} == command
    assert set(command) - set(job) == ({"json", "yes"} if service.name != VALIDATE else {"json"})


@each
def test_a_service_that_changes_a_table_has_a_dry_run(service: Service) -> None:
    assert ("dry_run" in {one.name for one in service.arguments}) == (service.name != VALIDATE)


@each
def test_a_service_is_documented(service: Service) -> None:
    assert re.search(rf"`{service.name}[(`]|\.{service.name}\(", PAGE)
    assert service.help
    assert all(one.help for one in service.arguments)


def test_settings_are_parts_of_upkeep_or_of_the_call() -> None:
    known = {one.name for one in fields(Upkeep)} - AFTER_WRITES | {"patience", "means"}

    assert {name for one in SERVICES.values() for name in one.settings} == known


def test_what_follows_a_write_is_named_as_in_results() -> None:
    named = [one.after_write.name for one in SERVICES.values() if one.after_write is not None]

    assert named == [CLEAN, METADATA, ARCHIVE, COMPACTION, LOG_COMPACTION, CREATE_INDEX]


def test_entries_import_neither_an_engine_nor_a_service() -> None:
    code = "import sys, pyhudi.operations.upkeep.services; print(*sys.modules)"
    loaded_modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"pyspark", "pyarrow", "pydantic"} & set(loaded_modules)
    assert not [one for one in loaded_modules if one.startswith("pyhudi.operations.services")]


def test_an_entry_makes_a_job_and_follows_each_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def count(call: Call, *, word: str, loud: bool = False) -> ServiceResult:
        return ServiceResult(call.storage.path, f"{word}{'!' if loud else ''}", files=len(call.storage.list("")))

    entry = Service(
        "count_files",
        "count the files of the root",
        count,
        (Argument("word", "a word"), Argument("loud", "say it loudly", bool, default=False)),
        after_write=AfterWrite(
            "count_files",
            lambda _: True,
            lambda timeline, _: bool(timeline.instants),
            lambda call, _: count(call, word="x"),
        ),
    )
    patch_seam(monkeypatch, "table services", {**SERVICES, entry.name: entry})

    result = write(tmp_path / "t", [pa.table({"id": ["k"], "ts": [1]})], table=KEYED)
    code = main([entry.name, f"--path={tmp_path / 't'}", "--word=hello", "--loud"])

    assert [one.service for one in result.services if one.service == "x"] == ["x"]
    assert code == 0
    assert json.loads(capsys.readouterr().out)["service"] == "hello!"
    with pytest.raises(AttributeError):
        getattr(HudiTable, entry.name)
