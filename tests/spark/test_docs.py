"""What the pages for newcomers show is what happens: their Python runs and prints what they say."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    "README.md",
    *(f"docs/{name}.md" for name in ("quickstart", "queries", "sql", "coming-from", "notebooks", "migrating")),
    "docs/sizing.md",
    "docs/streams.md",
    "docs/joins.md",
    "docs/other-engines.md",
]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def steps(page: str) -> list[tuple[str, str | None]]:
    """Return each Python snippet of a page with the output that follows it, None where the page shows none."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    following = [*blocks[1:], ("python", "")]
    return [
        (text, after[1] if after[0] == "text" else None)
        for (kind, text), after in zip(blocks, following, strict=True)
        if kind == "python"
    ]


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
    namespace: dict[str, object] = {}
    for snippet, expected in steps(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(snippet.replace("/tmp/", f"{tmp_path}/"), page, "exec"), namespace)  # noqa: S102, S108

        if expected is not None:
            assert printed.getvalue().strip() == expected.strip(), snippet


def test_the_pages_have_snippets_with_output() -> None:
    """Were the fences written otherwise, the test above would find nothing and be content."""
    assert len([1 for _, expected in steps("README.md") if expected]) == 2
    assert len([1 for _, expected in steps("docs/quickstart.md") if expected]) >= 8
