"""Fragments of the changelog have the form that their README gives, and all files name one version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.scripts import script

ROOT = Path(__file__).parents[2]
made = script("release", ROOT / ".ci")
VERSION = made.version_of(ROOT)
MOST_LINES = 120


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_each_fragment_has_a_known_kind_and_a_few_sentences() -> None:
    assert [flaw for name, text in made.fragments_in(ROOT).items() for flaw in made.flaws(name, text)] == []


def test_the_rules_of_fragments_have_each_kind() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \|", read("changes/README.md"), re.MULTILINE)) == made.KINDS


def test_the_newest_section_of_the_changelog_is_of_the_version_of_the_package() -> None:
    """It is of the last release, or was written by hand before the first release and is called unreleased."""
    headings = re.findall(r"^## (.*)$", read("CHANGELOG.md"), re.MULTILINE)

    assert re.fullmatch(rf"{re.escape(VERSION)} \((unreleased|\d{{4}}-\d\d-\d\d)\)", headings[0])
    assert [heading for heading in headings[1:] if not re.fullmatch(r"[\d.]+ \(\d{4}-\d\d-\d\d\)", heading)] == []


def test_the_section_of_the_first_release_is_short() -> None:
    first = read("CHANGELOG.md").rpartition("\n## 0.1.0 ")[2]

    assert len(first.splitlines()) < MOST_LINES


def test_the_package_takes_its_version_from_the_only_place_that_says_it() -> None:
    project = read("pyproject.toml")

    assert 'dynamic = ["version"]' in project
    assert 'version = { attr = "pyhudi.version.VERSION" }' in project


def test_pages_name_the_wheel_of_this_version() -> None:
    pages = made.pages_with_wheels(ROOT)

    assert ROOT / "docs" / "places.md" in pages
    assert {version for page in pages for version in made.wheels_on(page.read_text(encoding="utf-8"))} == {VERSION}


@pytest.mark.parametrize(
    ("name", "text", "flaw"),
    [
        ("sizes.better.md", "Added `a`.\n", "its name is not NAME.kind.md"),
        ("sizes.md", "Added `a`.\n", "its name is not NAME.kind.md"),
        ("sizes.added.txt", "Added `a`.\n", "its name is not NAME.kind.md"),
        ("sizes.added.md", "", "does not end in a full stop"),
        ("sizes.added.md", "Added `a`\n", "does not end in a full stop"),
        ("sizes.added.md", "Added. " * 5 + "\n", "more than 4 sentences"),
        ("sizes.added.md", f"Added {'a' * 113}.\n", "a line of more than 119 characters"),
        ("sizes.added.md", "# Sizes\nAdded `a`.\n", "a heading, a list or a second paragraph"),
        ("sizes.added.md", "- Added `a`.\n", "a heading, a list or a second paragraph"),
        ("sizes.added.md", "Added `a`.\n\nAdded `b`.\n", "a heading, a list or a second paragraph"),
    ],
)
def test_a_fragment_of_another_form_is_found(name: str, text: str, flaw: str) -> None:
    assert any(flaw in found for found in made.flaws(name, text))


@pytest.mark.parametrize(
    "text",
    [
        f"Added {'a' * 112}.\n",
        "Added `pyhudi.HudiTable.sizes`, as Apache Hudi 1.2 has it.\nIt shows bytes. Is it fast? It is.\n",
        "Fixed texts such as `a. b. c. d. e. f`.\n",
    ],
)
def test_a_fragment_of_the_form_is_taken(text: str) -> None:
    assert made.flaws("two-words.fixed.md", text) == []
