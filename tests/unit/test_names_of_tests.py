"""Each module of unit tests bears the name of what it tests, or of a behaviour that this list has with its reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

UNIT = Path(__file__).parent
ROOT = UNIT.parents[1]
# What several modules do together has a name of its own. By path below tests/unit, without ``test_``.
BEHAVIOURS = {
    "layers": "the rules between all modules",
    "names_of_tests": "the rule of this module",
    "changelog": "CHANGELOG.md, its fragments, and the version that pages show",
    "packaging": "what the wheel and the source archive hold",
    "release": ".ci/release.py",
    "traps_of_buckets": "a list of tests elsewhere",
    "connector/arguments": "each public call, of both tables and of the command, checks its arguments first",
    "connector/both_tables": "the methods of HudiTable beside those of pyhudi.arrow.Table",
    "connector/command_places": "the command on tables of Apache Hudi, on S3 and on a terminal",
    "connector/docs": "the pages",
    "connector/merge_memory": "an option on its way from the user to the rows that wait on the disk",
    "connector/public_names": "the names and docstrings of all that is public",
    "connector/secrets": "what options, errors, log lines and plans show of a store's secrets",
    "connector/service_entries": "entries, jobs, methods and pages of all services",
    "connector/service_jobs": "the upkeep of a table by jobs, in a process without Spark",
    "connector/services": "services by methods of HudiTable, and by jobs",
    "connector/write_keys": "the key of a write, from the source's options to its plan",
    "operations/archived_writes": "the history and the search for a write, where the archive has it",
    "operations/checks_of_logs": "validate, where a table has log files",
    "operations/counts_of_commits": "the numbers that a clean retains and an archiving keeps",
    "operations/index_terms": "the index of a table, when it is made and when it is opened",
    "operations/markers_of_others": "aborts and rollbacks that meet markers of files that are not theirs",
    "operations/shown_debt": "detail and history, where log files wait to be compacted",
    "operations/table_files": "files, sizes, partitions and timeline, against the disk",
    "reader/key_search": "skipping/search.py, by the record keys in footers",
    "reader/row_group_search": "skipping/search.py, by the bounds of row groups",
    "reader/slices_with_logs": "queries of slices that have log files",
    "storage/contract": "what each writable store does alike",
    "storage/flush": "what LocalStorage keeps when the power goes",
    "storage/s3_answers": "the S3 of the tests, beside moto",
    "table/golden_keys": "keys and partition paths, beside those of Apache Hudi",
    "table/java_logs": "log files of Apache Hudi, byte by byte",
}
NAMES = sorted(
    path.relative_to(UNIT).with_name(path.stem.removeprefix("test_")).as_posix() for path in UNIT.rglob("test_*.py")
)


def names_in(module: Path) -> set[str]:
    """Return what a test of a module may be called: after the module, alone or behind its package, a class, a function.

    The name of a package is that of its ``__init__.py``.
    """
    own = module.parent.name if module.name == "__init__.py" else module.stem
    tree = ast.parse(module.read_text(encoding="utf-8"))
    inside = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    words = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower() for name in inside}
    return {own, f"{module.parent.name}_{own}", *words}


@cache
def subjects(folder: str) -> set[str]:
    """Return the names that tests of a folder below tests/unit may have: those of the product's folder of this name.

    The tests directly in tests/unit are about the modules at the root, and about the tests' own support.
    """
    if folder == ".":
        modules = [ROOT / "errors.py", ROOT / "version.py", *(ROOT / "tests" / "support").rglob("*.py")]
    else:
        modules = [*(ROOT / folder).rglob("*.py")]
    return {name for module in modules for name in names_in(module)}


@pytest.mark.parametrize("name", NAMES)
def test_a_module_of_unit_tests_bears_the_name_of_what_it_tests(name: str) -> None:
    """If no module, class or function has the name, the list says what the tests are about."""
    path = Path(name)
    is_subject = path.name in subjects(path.parent.as_posix())

    assert is_subject != (name in BEHAVIOURS), f"test_{path.name} has {'two reasons' if is_subject else 'none'}"


def test_the_list_names_modules_of_tests_that_are_there() -> None:
    assert sorted({*BEHAVIOURS} - {*NAMES}) == []


def test_a_name_of_a_module_of_a_class_and_of_a_function_will_do(tmp_path: Path) -> None:
    module = tmp_path / "sorting" / "sorter.py"
    module.parent.mkdir()
    module.write_text("class RowSorter: pass\n\ndef sort_rows(): pass\n", encoding="utf-8")

    assert names_in(module) == {"sorter", "sorting_sorter", "row_sorter", "sort_rows"}
