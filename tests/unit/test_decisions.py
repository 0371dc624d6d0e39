"""The index of the decisions names each page once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
INDEX = (DECISIONS / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \[(\d+)\]\((\S+)\) \| (.+) \|$", INDEX, re.MULTILINE)
LONGEST = 100


def test_the_index_has_each_decision_once_and_no_other() -> None:
    pages = Counter(path.name for path in DECISIONS.glob("*.md") if path.name != "README.md")

    assert Counter(page for _, page, _ in ROWS) == pages


def test_a_line_of_the_index_has_the_number_of_its_page() -> None:
    assert [page for number, page, _ in ROWS if not page.startswith(f"{int(number):04}-")] == []


def test_a_line_of_the_index_is_short() -> None:
    assert [text for _, _, text in ROWS if len(text) > LONGEST] == []


def test_a_later_decision_that_a_line_names_is_there() -> None:
    numbers = {int(number) for number, _, _ in ROWS}
    later = re.compile(r"Superseded by (\d+)(?: and (\d+))?:|; (\d+) (?:replaces|puts|shortens|takes)\b")
    named = {
        int(number) for _, _, text in ROWS for match in later.finditer(text) for number in match.groups() if number
    }

    assert named
    assert named - numbers == set()
