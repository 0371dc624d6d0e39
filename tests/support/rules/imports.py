"""Which module of the package may import which: the packages by rank, and what the syntax trees say of imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]

# The packages by rank. An import may only lead to a smaller rank; packages of one rank do not see each other.
RANKS = {
    "errors": 0,
    "version": 0,
    "storage": 1,
    "timeline/metadata": 2,
    "timeline": 3,
    "timeline/archive": 4,
    "timeline/writers": 4,
    "table/arrow": 5,
    "table/schema": 6,
    "table/hfile": 6,
    "table/merging": 7,
    "table/config": 8,
    "table/keys": 9,
    "table/files": 9,
    "table/files/logs": 10,
    "table": 11,
    "table/slices": 11,
    "table/buckets": 12,
    "table/inferred": 12,
    "table/metadata": 12,
    "index": 11,
    "writer": 14,
    "reader/sql": 6,
    "reader/skipping": 13,
    "reader": 14,
    "reader/buckets": 15,
    "reader/matches": 15,
    "reader/streams": 15,
    "operations/words": 12,
    "operations": 15,
    "operations/checks": 15,
    "operations/inspect": 16,
    "operations/meeting": 16,
    "operations/following": 16,
    "operations/streams": 16,
    "operations/transaction": 17,
    "operations/rollback": 18,
    "operations/indexing": 19,
    "operations/services": 19,
    "operations/services/compaction": 20,
    "operations/services/metadata": 20,
    "operations/services/repair": 20,
    "operations/services/rescale": 21,
    "operations/services/sorting": 21,
    "operations/services/versions": 21,
    "operations/planning": 20,
    "operations/locating": 21,
    "operations/state": 22,
    "operations/upkeep": 22,
    "operations/write": 23,
    "operations/report": 23,
    "testing": 24,
    "options": 23,
    "methods": 24,
    "methods/merging": 25,
    "connector/source": 25,
    "connector/conditions": 26,
    "connector/stream": 26,
    "connector/placement": 26,
    "connector/table": 27,
    "connector/command": 28,
    "connector/joins": 28,
    "connector/merge": 28,
    "connector": 29,
    "arrow/merging": 28,
    "arrow": 29,
}
PACKAGES = [name for name, rank in RANKS.items() if rank > 0]
LAYERS = [name for name in PACKAGES if "/" not in name]
# They are for different users: neither may see the other, whatever the ranks of their packages.
APART = {"arrow", "connector"}

# The packages of what tests share, by the same rule.
SUPPORT_RANKS = {
    "tests/support": 0,
    "tests/support/made": 1,
    "tests/support/models": 1,
    "tests/support/rules": 2,
    "tests/support/bad_inputs": 2,
    "tests/support/faults": 3,
    "tests/support/recorded": 3,
    "tests/support/sick": 3,
    "tests/support/drawn": 4,
    "tests/support/upkeep": 4,
    "tests/support/interleaving": 5,
    "tests/support/storms": 5,
}


def modules() -> list[str]:
    return sorted(
        path.relative_to(ROOT).as_posix()
        for folder in (*LAYERS, "pyspark_pyhudi")
        for path in (ROOT / folder).rglob("*.py")
    ) + sorted(path.name for path in ROOT.glob("*.py"))


def shared_by_tests() -> list[str]:
    found = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/support").rglob("*.py"))
    return sorted(one for one in found if "/warm/" not in one)


def imports(tree: ast.Module, module: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, absolute module, imported name or "") of every import, those inside functions too."""
    package = ["pyhudi", *module.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, source, alias.name) for alias in node.names)


def own_modules(module: str, text: str) -> set[str]:
    """Return the modules of the package that a module imports, where it has types only, too."""
    modules = set()
    for _, source, name in imports(ast.parse(text), module):
        parts = [*source.split("."), *([name] if name else [])]
        paths = ["/".join(parts[1:end]) for end in (len(parts), len(parts) - 1)]
        if parts[0] == "pyhudi":
            existing_paths = (
                path for path in paths for suffix in (".py", "/__init__.py") if (ROOT / f"{path}{suffix}").is_file()
            )
            modules.add(next(existing_paths, source))
    return modules


def layer_at(module: str) -> str:
    """Return the layer that a module's file lies in."""
    return module.partition("/")[0].removesuffix(".py")


def package_at(path: str) -> str | None:
    """Return the package that a path inside pyhudi leads to: the innermost folder, or a module at the root."""
    parts = path.removesuffix(".py").split("/")
    found = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((one for one in found if one in RANKS), None)


def package_of(source: str, name: str) -> str | None:
    """Return which package an import inside pyhudi reaches, None for other packages."""
    parts = [*source.split("."), *([name] if name else [])]
    return package_at("/".join(parts[1:])) if parts[0] == "pyhudi" else None


def upward_imports(module: str, text: str) -> list[str]:
    here = package_at(module)
    violations = []
    for line, source, name in imports(ast.parse(text), module):
        imported_package = package_of(source, name)
        if source.split(".")[0] != "pyhudi" or here == imported_package:
            continue
        apart = (
            here is not None and imported_package is not None and {layer_at(here), layer_at(imported_package)} == APART
        )
        if here is None or imported_package is None or apart or RANKS[imported_package] >= RANKS[here]:
            violations.append(f"{module}:{line}: {here} imports {imported_package or source}")
    return violations


def upward_imports_of_support(module: str, text: str) -> list[str]:
    here = module.rpartition("/")[0]
    violations = []
    for line, source, name in imports(ast.parse(text), module):
        parts = ["tests", *source.removeprefix("pyhudi.tests.").split("."), name]
        if parts[1] != "support":
            continue
        paths = ("/".join(parts[:end]) for end in (3, 2))
        there = next(path for path in paths if path in SUPPORT_RANKS)
        if here != there and SUPPORT_RANKS.get(there, 0) >= SUPPORT_RANKS.get(here, 0):
            violations.append(f"{module}:{line}: {here} imports {there}")
    return violations


def absolute_imports(module: str, text: str) -> list[str]:
    return [
        f"{module}:{node.lineno}: import relatively"
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "pyhudi")
        or (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "pyhudi" for alias in node.names))
    ]


def circles(texts: Mapping[str, str]) -> list[str]:
    """Return the modules on circles of imports, or between two, by those too that only types or functions need."""
    names = {
        f"pyhudi/{module}".removesuffix(".py").removesuffix("/__init__").replace("/", "."): module for module in texts
    }
    reached = {module: set[str]() for module in texts}
    for module, text in texts.items():
        for _, source, name in imports(ast.parse(text), module):
            imported = names.get(f"{source}.{name}", names.get(source, module))
            reached[module] |= {imported} - {module}
    # What nothing imports that is left, or imports nothing that is left, is on no circle.
    while free := {one for one, there in reached.items() if not there or not any(one in of for of in reached.values())}:
        reached = {one: there - free for one, there in reached.items() if one not in free}
    return sorted(reached)
