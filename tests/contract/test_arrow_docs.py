"""The page about tables without Spark shows what happens: its Python runs and prints what it says."""

from __future__ import annotations

from pathlib import Path

from support.pages import check_page, steps


def test_each_snippet_runs_and_prints_what_the_page_shows(tmp_path: Path) -> None:
    assert len([output for _, output in steps("docs/arrow.md") if output]) == 4

    check_page("docs/arrow.md", tmp_path)
