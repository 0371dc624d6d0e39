"""What the pages for newcomers show is what happens: their Python runs and prints what they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.pages import check_page, steps

PAGES = [
    "README.md",
    *(f"docs/{name}.md" for name in ("quickstart", "queries", "sql", "coming-from", "notebooks", "migrating")),
    "docs/sizing.md",
    "docs/streams.md",
    "docs/joins.md",
]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def ours(spark: SparkSession) -> Iterator[SparkSession]:
    """The session that the snippets find, with what they set taken back."""
    before = spark.conf.get(PUSHDOWN, None)  # Spark 4.0 has no such setting
    yield spark
    if before is None:
        spark.conf.unset(PUSHDOWN)
    else:
        spark.conf.set(PUSHDOWN, before)


@pytest.mark.parametrize("page", [*PAGES[:2], *(pytest.param(page, marks=pytest.mark.slow) for page in PAGES[2:])])
def test_every_snippet_runs_and_prints_what_the_page_shows(ours: SparkSession, tmp_path: Path, page: str) -> None:
    check_page(page, tmp_path)


def test_the_pages_have_snippets_with_output() -> None:
    """Were the fences written otherwise, the test above would find nothing and be content."""
    assert len([1 for _, expected in steps("README.md") if expected]) == 3
    assert len([1 for _, expected in steps("docs/quickstart.md") if expected]) >= 8
