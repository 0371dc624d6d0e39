"""Tests change pyhudi through the list of seams alone, and the list holds what they change and no more."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.seams import SEAMS, patch_seam, places_of, read_seam

TESTS = Path(__file__).parents[1]
# The list itself, and the samples of patches below.
HERE = {"support/seams.py", "unit/test_seams.py"}
FILES = sorted({path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py")} - HERE)
# The calls that change an object for a test: of Python, of pytest and of unittest.mock.
PLAIN_PATCHES = {"setattr", "delattr", "patch"}
ITEMS = {"setitem", "delitem"}
PATCHES = PLAIN_PATCHES | ITEMS | {"object", "dict", "multiple"}


def programs(text: str) -> Iterator[ast.Module]:
    """Yield a file, and the programs in its texts, which tests run in processes of their own."""
    tree = ast.parse(text)
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            try:
                yield ast.parse(node.value)
            except SyntaxError:
                continue


class Origins:
    """The packages that the names of a program come from, by its imports and annotations."""

    def __init__(self, tree: ast.Module) -> None:
        self._packages: dict[str, str] = {}
        self._types: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._packages |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                self._packages |= {alias.asname or alias.name: node.module or "" for alias in node.names}
            elif isinstance(node, ast.arg) and node.annotation is not None:
                self._types[node.arg] = node.annotation
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                self._types[node.target.id] = node.annotation

    def of(self, node: ast.expr) -> set[str]:
        """Return the packages of the names in an expression; "" for a name without import or type."""
        packages: set[str] = set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                packages |= self._of_name(inner.id)
            elif isinstance(inner, ast.Constant):
                packages.add(str(inner.value).partition(".")[0])
        return packages or {""}

    def is_imported(self, node: ast.expr, package: str) -> bool:
        """Return whether an expression begins with a name that is imported from a package."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and self._packages.get(node.id, "").partition(".")[0] == package

    def _of_name(self, name: str) -> set[str]:
        if name in self._packages:
            return {self._packages[name].partition(".")[0]}
        if name in self._types:
            return self.of(self._types[name])
        return {"builtins"} if hasattr(builtins, name) else {""}


def changes_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the objects that a node of a program changes by a patch."""
    if not isinstance(node, ast.Call) or not node.args:
        return
    name = ast.unparse(node.func).rpartition(".")[2]
    if name in (PATCHES if isinstance(node.func, ast.Attribute) else PLAIN_PATCHES):
        yield node.args[0]
    if name in ITEMS:
        yield node.args[1]


def assigned_by(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the objects of which a node of a program assigns or deletes an attribute."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        yield node.value


def changes_without_a_seam(text: str) -> list[str]:
    """Return the statements of a test file that change pyhudi, or an object of unknown origin, without a seam."""
    statements = []
    for tree in programs(text):
        origins = Origins(tree)
        for node in ast.walk(tree):
            targets = [target for target in changes_of(node) if origins.of(target) & {"", "pyhudi"}]
            targets += [target for target in assigned_by(node) if origins.is_imported(target, "pyhudi")]
            statements += [f"{target.lineno}: {ast.unparse(node)}" for target in targets]
    return statements


@pytest.mark.parametrize("path", FILES)
def test_a_file_of_tests_changes_pyhudi_by_seams_alone(path: str) -> None:
    assert changes_without_a_seam((TESTS / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", SEAMS)
def test_a_seam_leads_to_one_thing(name: str) -> None:
    """All places of a seam hold the same object, so that reading one of them is enough."""
    found = [getattr(owner, attribute) for owner, attribute in places_of(name)]

    assert all(thing is found[0] for thing in found)


def test_no_place_has_two_seams() -> None:
    places = [place for name in SEAMS for place in ([SEAMS[name]] if isinstance(SEAMS[name], str) else SEAMS[name])]

    assert sorted(set(places)) == sorted(places)


def test_each_seam_is_used() -> None:
    texts = "".join((TESTS / path).read_text(encoding="utf-8") for path in FILES)

    assert [name for name in SEAMS if f'"{name}"' not in texts] == []


@pytest.mark.parametrize(
    "text",
    [
        "from pyhudi.writer import rows\nmonkeypatch.setattr(rows, 'rechunk', iter)",
        "import pyhudi\nmonkeypatch.setattr(pyhudi.writer.rows, 'rechunk', iter)",
        "from pyhudi.index import lookup\nmonkeypatch.setattr(lookup.time, 'monotonic', clock)",
        "from pyhudi.index.bucket import BucketIndex\npatch.delattr(BucketIndex, 'buckets')",
        "from pyhudi import HudiTable\ndef test(table: HudiTable):\n    patch.setattr(table, 'merge', None)",
        "for module in (commit, fence):\n    patch.setattr(module, 'write_markers', None)",
        "patch.setattr(type(storage), 'look', None)",
        "patch.setattr('pyhudi.writer.rows.rechunk', iter)",
        "import sys\npatch.setattr(sys.modules['pyhudi.writer.rows'], 'rechunk', iter)",
        "import sys\npatch.setitem(sys.modules, 'pyhudi.writer.rows', None)",
        "from unittest import mock\nwith mock.patch('pyhudi.writer.rows.rechunk'):\n    pass",
        "from unittest import mock\nfrom pyhudi.writer import rows\nmock.patch.object(rows, 'rechunk')",
        "from pyhudi.writer import rows\nrows.rechunk = iter",
        "from pyhudi.writer import rows\nsetattr(rows, 'rechunk', iter)",
        "SCRIPT = 'from pyhudi.writer import rows\\nrows.rechunk = iter'",
    ],
)
def test_a_change_without_a_seam_is_found(text: str) -> None:
    assert len(changes_without_a_seam(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import os\nmonkeypatch.setattr(os, 'fsync', None)",
        "monkeypatch.setattr('importlib.metadata.entry_points', None)",
        "import sys\nmonkeypatch.setitem(sys.modules, 'pandas', None)",
        "from support.faults.faulty import Faults\ndef test(faults: Faults):\n    patch.setattr(faults, 'take', take)",
        "from support.faults.faulty import Faults\nfaults.at = 3",
        "from pyspark.sql import DataFrame\ndf: DataFrame = made()\npatch.setattr(type(df), 'toArrow', None)",
        "from support.seams import patch_seam\npatch_seam(monkeypatch, 'seal a write', None)",
    ],
)
def test_a_change_of_other_code_is_not_found(text: str) -> None:
    assert changes_without_a_seam(text) == []


def test_a_patch_is_there_until_it_is_undone() -> None:
    original = read_seam("files of an instant")
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "files of an instant", iter)
        during = [getattr(owner, attribute) for owner, attribute in places_of("files of an instant")]

    assert during == [iter, iter]
    assert read_seam("files of an instant") is original
