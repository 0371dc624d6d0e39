"""The words of which the names of modules, classes, functions and public attributes consist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_VAGUE = {"one", "some", "both"}
_OF_SHORT_LOOPS = {"found", "known", "there", "done", "kept", "piece"}
_SHORT_LOOP_LINES = 3
_TELLING = re.compile(r"_(said|told|shown|asked|met)(_|$)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of_names(root: Path, modules: Iterable[Path]) -> dict[str, str]:
    """Return each word of a name in lower case, with the name that has it first.

    Args:
        root: The repository.
        modules: What is read.
    """
    names_by_word: dict[str, str] = {}
    for path in modules:
        for name in [path.stem, *names_of(path)]:
            for word in _WORD.findall(name):
                if not word.isdigit():
                    names_by_word.setdefault(word.lower(), f"{path.relative_to(root)}: {name}")
    return names_by_word


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
    """Yield the bindings of vague variables, and functions named after a verb of telling.

    Words such as found serve a loop of three lines at most, a comprehension and a lambda.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    short = {id(name) for node in ast.walk(tree) for name in _short_lived(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _TELLING.match(node.name):
            yield f"{path.name}:{node.lineno}: {node.name}"
        name = _bound(node)
        if name is not None and (name in _VAGUE or (name.lstrip("_") in _OF_SHORT_LOOPS and id(node) not in short)):
            yield f"{path.name}:{node.lineno}: {name}"


def _bound(node: ast.AST) -> str | None:
    """Return the name that a node binds to a value."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def _short_lived(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the names that live for a comprehension, a lambda or a loop of three lines."""
    in_short_loop = isinstance(node, ast.For) and (node.end_lineno or node.lineno) - node.lineno <= _SHORT_LOOP_LINES
    if isinstance(node, ast.comprehension) or in_short_loop:
        yield from ast.walk(node.target)
    elif isinstance(node, ast.Lambda):
        yield from node.args.args
