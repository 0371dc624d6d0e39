"""The texts of the code and the pages name the subjects of their sentences, and names consist of known words."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.rules.language import hits_in
from support.rules.vocabulary import classes_of, vague_names, words_of_names

ROOT = Path(__file__).parents[2]
LAYERS = [
    "arrow",
    "connector",
    "methods",
    "options",
    "operations",
    "reader",
    "writer",
    "index",
    "table",
    "timeline",
    "storage",
    "testing",
]
MODULES = [
    *(ROOT / one for one in ("__init__.py", "errors.py")),
    *(path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))),
]
# What the layouts and measurements of others say, the changelog, and decisions, which stay as they were made.
PAGES = [
    *(ROOT / one for one in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("*.py")),
    *sorted((ROOT / "examples").glob("*.py")),
]
VOCABULARY = ROOT / "docs" / "vocabulary.txt"


@pytest.mark.parametrize("path", [*MODULES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_name_their_subjects(path: Path) -> None:
    assert [f"{hit.where}: {hit.pattern}: {hit.sentence}" for hit in hits_in(path, str(path.relative_to(ROOT)))] == []


def test_names_consist_of_words_of_the_vocabulary() -> None:
    known_words = set(VOCABULARY.read_text(encoding="utf-8").split())
    found = words_of_names(ROOT, MODULES)
    assert sorted(set(found) - known_words) == [], "add a word to docs/vocabulary.txt where no known word will do"
    assert sorted(known_words - set(found)) == [], "take words out of docs/vocabulary.txt that no name has"


def test_class_names_are_unique() -> None:
    seen: dict[str, str] = {}
    twice = []
    for name, where in classes_of(ROOT, MODULES):
        # Users of `pyhudi.arrow` know one Table, and never see a table as the code opens it.
        if name in seen and not name.startswith("_") and where != "table/table.py":
            twice.append(f"{name}: {seen[name]} and {where}")
        seen[name] = where
    assert twice == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_what_they_hold(path: Path) -> None:
    """No variable is called one or found, and no private function after a verb of telling."""
    assert list(vague_names(path)) == []


@pytest.mark.parametrize(
    ("line", "vague"),
    [
        ("found = 1", ["found"]),
        ("def of(known): ...", ["known"]),
        ("with open() as kept: ...", ["kept"]),
        ("(done, row) = 1, 2", ["done"]),
        ("rows = [found for found in ()]", []),
        ("key = lambda found: found", []),
        ("key = lambda one: one", ["one"]),
        ("for found in ():\n    a(found)\n    b(found)\n    c(found)", []),
        ("for found in ():\n    a(found)\n    b(found)\n    c(found)\n    d(found)", ["found"]),
        ("def _shown_rows(): ...", ["_shown_rows"]),
    ],
)
def test_vague_names_serve_short_loops(tmp_path: Path, line: str, vague: list[str]) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"{line}\n", encoding="utf-8")

    assert [hit.rpartition(" ")[2] for hit in vague_names(module)] == vague
