"""How large the modules of the package are, and how they hang together: figures that CI prints and people judge."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Mapping
from statistics import mean

from support.rules.imports import ROOT, modules, own_modules

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Return how many lines of a module have code: no comments, no docstrings, no empty lines."""
    with_code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(with_code - {line for node in ast.walk(ast.parse(text)) for line in _docstring(node)})


def _docstring(node: ast.AST) -> range:
    if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) or ast.get_docstring(node) is None:
        return range(0)
    return range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def figures(texts: Mapping[str, str]) -> list[str]:
    """Return sentences about modules, by their paths and texts."""
    reached = {module: own_modules(module, text) for module, text in texts.items()}
    importers = Counter(path for paths in reached.values() for path in paths)
    widest = max(reached, key=lambda module: len(reached[module]))
    alone = sum(importers[module.removesuffix(".py")] == 1 for module in texts)
    return [
        f"{len(texts):,} modules have {mean(map(code_lines, texts.values())):.0f} lines of code on average",
        f"{alone:,} modules are imported by one other module",
        f"{widest} imports most: {len(reached[widest])} modules",
    ]


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in figures({one: (ROOT / one).read_text() for one in modules()}))
