"""Which parameters a function only hands on: each of its uses is an argument of a function of the package.

Handing a value to a constructor is no such use, nor is handing it to a function of Python or of a library.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

_Uses: TypeAlias = "dict[str, list[ast.expr | None]]"


def forwarded(root: Path, modules: Iterable[Path]) -> list[str]:
    """Return the place and the name of each parameter that is only handed on.

    Args:
        root: The repository.
        modules: What is read; the functions that they define are those of the package.
    """
    trees = {str(path.relative_to(root)): ast.parse(path.read_text(encoding="utf-8")) for path in modules}
    top = [node for tree in trees.values() for node in tree.body]
    functions = {node.name for node in top if isinstance(node, ast.FunctionDef)}
    classes = {node.name for node in top if isinstance(node, ast.ClassDef)}
    forwarded_parameters = []
    for path, tree in trees.items():
        for function, uses in _Functions().of(tree):
            for name, callees in uses.items():
                own = [_is_own(callee, functions, classes) for callee in callees]
                if own and all(own) and not all(_is_constructor(callee, classes) for callee in callees):
                    forwarded_parameters.append(f"{path}:{function.lineno}: {function.name}({name})")
    return forwarded_parameters


def _is_own(callee: ast.expr | None, functions: set[str], classes: set[str]) -> bool:
    if isinstance(callee, ast.Name):
        return callee.id in functions or callee.id in classes or callee.id == "cls"
    if not isinstance(callee, ast.Attribute):
        return False
    owner = callee.value
    if isinstance(owner, ast.Attribute):
        owner = owner.value
        return isinstance(owner, ast.Name) and owner.id == "self"
    if isinstance(owner, ast.Call):
        return isinstance(owner.func, ast.Name) and owner.func.id == "super"
    return isinstance(owner, ast.Name) and owner.id in {"self", "cls", *classes, *functions}


def _is_constructor(callee: ast.expr | None, classes: set[str]) -> bool:
    return isinstance(callee, ast.Name) and (callee.id in classes or callee.id == "cls")


class _Functions:
    """The functions of a module, with the calls that get each parameter; None for any other use of it."""

    def __init__(self) -> None:
        self._found: list[tuple[ast.FunctionDef, _Uses]] = []

    def of(self, tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, _Uses]]:
        self._visit(tree, (), None)
        return iter(self._found)

    def _visit(self, node: ast.AST, outer: tuple[_Uses, ...], callee: ast.expr | None) -> None:
        if isinstance(node, ast.Name):
            for uses in reversed(outer):
                if node.id in uses:
                    uses[node.id].append(callee if isinstance(node.ctx, ast.Load) else None)
                    break
        elif isinstance(node, ast.FunctionDef):
            self._enter(node, outer)
        elif isinstance(node, ast.Lambda):
            self._visit(node.body, (*outer, {argument.arg: [] for argument in node.args.args}), None)
        elif isinstance(node, ast.Call):
            self._visit(node.func, outer, None)
            for argument in node.args:
                self._visit(argument, outer, node.func)
            for keyword in node.keywords:
                self._visit(keyword.value, outer, node.func if keyword.arg else None)
        else:
            for part in ast.iter_child_nodes(node):
                self._visit(part, outer, None)

    def _enter(self, function: ast.FunctionDef, outer: tuple[_Uses, ...]) -> None:
        arguments = function.args
        for part in (*arguments.defaults, *arguments.kw_defaults, *function.decorator_list):
            if part is not None:
                self._visit(part, outer, None)
        named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        uses: _Uses = {argument.arg: [] for argument in named if argument.arg not in {"self", "cls"}}
        self._found.append((function, uses))
        for statement in function.body:
            self._visit(statement, (*outer, uses), None)


def _print_count() -> None:
    """Print how many parameters of the package are only handed on."""
    root = Path(__file__).parents[3]
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=root, capture_output=True, text=True, check=True)
    others = ("tests/", "benchmarks/", "docs/", "examples/")
    modules = [root / name for name in tracked.stdout.split() if not name.startswith(others)]
    sys.stdout.write(f"{len(forwarded(root, modules)):,} parameters are only handed on\n")


if __name__ == "__main__":
    _print_count()
