"""Pages repeat versions, times and counts as their origins say them, and the first page leads to all pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.rules.quoted import COUNTS, FACTS, Place, Quoted, minor, modules, packages, wrong_counts

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "docs/decisions/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


@pytest.mark.parametrize("quoted", FACTS, ids=lambda quoted: quoted.what)
def test_pages_quote_what_the_origin_says(quoted: Quoted) -> None:
    """Correct the page, or the pattern in `tests/support/rules/quoted.py` if the sentence is another now."""
    assert quoted.faults(ROOT) == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.exists()], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_pages_count_what_is_there(page: Path) -> None:
    assert wrong_counts(page) == []


def test_a_page_that_says_something_else_is_found(tmp_path: Path) -> None:
    (tmp_path / "origin.txt").write_text('release = "1.2.0"\n', encoding="utf-8")
    (tmp_path / "right.md").write_text("Meets release\n1.2.0, and 1.2 for short.\n", encoding="utf-8")
    (tmp_path / "wrong.md").write_text("Meets release 1.2.0. The release 1.1.0 was older.\n", encoding="utf-8")
    (tmp_path / "silent.md").write_text("Meets no other.\n", encoding="utf-8")
    pages = [Place(f"{name}.md", r"release (\d\.\d\.\d)") for name in ("right", "wrong", "silent")]
    quoted = Quoted("a release", Place("origin.txt", r'release = "([\d.]+)"'), (*pages,))
    short = Quoted("the same", quoted.origin, (Place("right.md", r"and (\d\.\d) for short", minor),))

    assert [fault.partition(" ")[0] for fault in quoted.faults(tmp_path)] == ["wrong.md", "silent.md"]
    assert short.faults(tmp_path) == []


def test_an_origin_that_says_two_things_or_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "origin.txt").write_text("SEEDS = 3\nSEEDS = 4\n", encoding="utf-8")

    for pattern in (r"SEEDS = (\d)", r"MINUTES = (\d)"):
        assert len(Quoted("seeds", Place("origin.txt", pattern), ()).faults(tmp_path)) == 1


def test_commas_of_numbers_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("It runs 100,000 seeds.\n", encoding="utf-8")

    assert Place("page.md", r"runs ([\d,]+) seeds").facts(tmp_path) == ["100000"]


def test_a_page_with_a_count_of_yesterday_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("The 3 decisions, 10 packages and 700 modules, of which 12 modules are new.\n", encoding="utf-8")

    assert len(wrong_counts(page, tmp_path)) == len(COUNTS)


def test_modules_and_packages_are_those_of_the_code(tmp_path: Path) -> None:
    for name in ("storage/__init__.py", "storage/local.py", "storage/s3/__init__.py", "storage/s3/client.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "errors.py").touch()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "make_api.py").touch()

    assert (modules(tmp_path), packages(tmp_path)) == (3, 2)


def test_the_first_page_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_the_first_page_leads_to_each_page_once() -> None:
    section = README.partition("\n## Read on\n")[2]
    named = re.findall(r"\]\((docs/[^)#]+)\)", section)
    pages = [*(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")), "docs/decisions/README.md"]

    assert sorted(named) == sorted(pages)
