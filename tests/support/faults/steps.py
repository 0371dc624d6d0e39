"""The steps at which tests break a protocol off: a share of them, which the protocol's own source chooses.

Decision 119 says why. `make test-touched` takes all steps of the protocols that a change touches.
"""

from __future__ import annotations

import ast
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest
from support.share import ONE_OF

T = TypeVar("T")
ROOT = Path(__file__).parents[3]
# How an instant begins, is decided, carried out and undone; what an instant that is planned adds; how files are made.
_INSTANTS = (
    "operations/following",
    "operations/meeting",
    "operations/rollback",
    "operations/transaction",
    "timeline/instant_files.py",
    "timeline/writers",
)
_PLANNED = tuple(
    f"operations/services/{one}.py"
    for one in ("dead_writes", "execution", "means", "planned", "preconditions", "service", "unit_execution")
)
_FILES = tuple(f"writer/{one}.py" for one in ("cut_files", "data_files", "log_handle", "rolling_writer"))
_COMPACTION = (*_INSTANTS, *_PLANNED, *_FILES, "operations/services/compaction")
_CLEAN = ("clean", "clean_guard", "clean_plan", "clean_scope", "unused_metadata")
# The modules, and folders of modules, that take the steps of a protocol.
PROTOCOLS: dict[str, tuple[str, ...]] = {
    "archiving": ("operations/services/archivable.py", "operations/services/archive.py", "timeline/archive"),
    "clean": (*_INSTANTS, *_PLANNED, *(f"operations/services/{one}.py" for one in _CLEAN)),
    "compaction": _COMPACTION,
    "log-compaction": _COMPACTION,
    "metadata": (*_INSTANTS, "operations/services/metadata"),
    "repair": (*_INSTANTS, "operations/services/repair"),
    "rescale": (
        *_INSTANTS,
        *_PLANNED,
        *_FILES,
        "operations/services/bucket_property.py",
        "operations/services/rescale",
    ),
    "sort": (*_INSTANTS, *_PLANNED, *_FILES, "operations/services/sorting"),
    "stream": (*_INSTANTS, *_FILES, "operations/streams", "operations/upkeep", "operations/write"),
    "undo": (
        *_INSTANTS,
        *(f"operations/services/{one}.py" for one in ("restore", "rollback", "savepoint", "service", "target_times")),
    ),
    "versions": (
        *_INSTANTS,
        "table/config/properties_file.py",
        "table/files/logs/undo_by_command.py",
        "timeline/old_layout.py",
        "operations/services/versions",
    ),
    "write": (*_INSTANTS, *_FILES, "operations/upkeep", "operations/write"),
}
# The protocols of which all steps are tried, by a comma between them.
ALL_OF = frozenset(filter(None, os.environ.get("PYHUDI_ALL_STEPS", "").split(",")))


@dataclass(frozen=True)
class Share:
    """The steps at which a test breaks a protocol off: one of each so many that follow each other.

    Attributes:
        protocol: Of `PROTOCOLS`.
        every: Of how many steps one is tried.
    """

    protocol: str
    every: int

    def __str__(self) -> str:
        return f"one-of-{self.every}"

    def of(self, steps: Sequence[T]) -> list[T]:
        """Return the steps that the running test tries: another test, and a changed protocol, try others."""
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0].rpartition("/")[2]
        return chosen(steps, self.every, f"{source_of(self.protocol)} {test}")


def chosen(steps: Sequence[T], every: int, seed: str) -> list[T]:
    """Return one of each so many steps that follow each other, which a seed says; one at least."""
    every = max(1, min(every, len(steps)))
    at = (start + zlib.crc32(f"{seed} {start}".encode()) % every for start in range(0, len(steps), every))
    return [steps[number] for number in at if number < len(steps)]


def steps_of(protocol: str, every: int = 1, *, by_suite: bool = False) -> pytest.MarkDecorator:
    """Give a test the argument ``share``, by which it breaks a protocol off at some of its steps.

    Args:
        protocol: Of `PROTOCOLS`.
        every: Of how many steps one is tried.
        by_suite: `make test` tries so few as it is, the slow suite one of five, and the long one all; otherwise the
            slow suites try as many, and `make test` a third of them.
    """
    shares = [(every, ())] if by_suite else [(every * ONE_OF, ())]
    if by_suite:
        shares = [(1, (pytest.mark.long,)), (5, (pytest.mark.slow,)), *shares]
    if protocol in ALL_OF:
        shares = [(1, ())]
    marked = [
        pytest.param(Share(protocol, one_of), marks=(*marks, pytest.mark.steps(protocol)), id=f"one-of-{one_of}")
        for one_of, marks in shares
    ]
    return pytest.mark.parametrize("share", marked)


def source_of(protocol: str) -> int:
    """Return a number that another source of a protocol's modules has, unless comments and docstrings alone differ."""
    return zlib.crc32(",".join(_number_of(one.read_text("utf-8")) for one in modules_of(protocol)).encode())


@cache
def _number_of(source: str) -> str:
    return str(zlib.crc32(syntax_of(source).encode()))


def modules_of(protocol: str) -> list[Path]:
    """Return the files of a protocol's modules, in the order of their names."""
    paths = [ROOT / one for one in PROTOCOLS[protocol]]
    return sorted(file for path in paths for file in (path.rglob("*.py") if path.suffix == "" else [path]))


def syntax_of(source: str) -> str:
    """Return what a module does: its source without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        has_docstring = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if has_docstring and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)
