"""The pages about tables without Spark show what happens: their Python runs and prints what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pages import check_page, steps

PAGES = {"docs/arrow.md": 6, "docs/other-engines.md": 2}


@pytest.mark.parametrize("page", PAGES)
def test_each_snippet_runs_and_prints_what_the_page_shows(page: str, tmp_path: Path) -> None:
    assert len([output for _, output in steps(page) if output]) == PAGES[page]

    check_page(page, tmp_path)
