"""The words of which the names of modules, classes, functions and public attributes consist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_VAGUE = {"one", "some", "both"}
_TELLING = re.compile(r"_(said|told|shown|asked|met)(_|$)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of_names(root: Path, modules: Iterable[Path]) -> dict[str, str]:
    """Return each word of a name in lower case, with the name that has it first.

    Args:
        root: The repository.
        modules: What is read.
    """
    found: dict[str, str] = {}
    for path in modules:
        for name in [path.stem, *names_of(path)]:
            for word in _WORD.findall(name):
                if not word.isdigit():
                    found.setdefault(word.lower(), f"{path.relative_to(root)}: {name}")
    return found


def classes_of(root: Path, modules: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the name and the module of each class."""
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield node.name, str(path.relative_to(root))


def names_of(path: Path) -> Iterator[str]:
    """Yield the names of a module's classes and functions, and of the public attributes of its classes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    yield part.target.id


def vague_names(path: Path) -> Iterator[str]:
    """Yield the bindings of variables called one, some or both, and functions named after a verb of telling."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in _VAGUE
        taken = isinstance(node, ast.arg) and node.arg in _VAGUE
        told = isinstance(node, ast.FunctionDef) and _TELLING.match(node.name) is not None
        if bound or taken or told:
            yield f"{path.name}:{node.lineno}"
