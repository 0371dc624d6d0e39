"""What notebooks show of results: each fact, and no markup from a table."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from pyhudi import CommitResult, ServiceResult, ServicesResult

HOSTILE = "/t/<img src=x onerror=alert(1)>&\"'\x1b[2J"
CLEANED = ServiceResult(HOSTILE, "clean", files=2, bytes=3_000, error=HOSTILE)


class Shown(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag in {"td", "p"}:
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


@pytest.mark.parametrize(
    ("result", "facts"),
    [
        (
            CommitResult(
                HOSTILE, "20260101000000000", "upsert", inserts=1_234, services=(CLEANED,), warnings=(HOSTILE,)
            ),
            {"inserts": "1,234", "operation": "upsert"},
        ),
        (CLEANED, {"files": "2", "bytes": "3,000"}),
        (ServicesResult(HOSTILE, (CLEANED,)), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_shows_its_facts_and_text_of_a_table_is_never_markup(
    result: CommitResult | ServiceResult | ServicesResult, facts: dict[str, str]
) -> None:
    text = result._repr_html_()
    shown = Shown(text)

    assert shown.tags <= {"p", "table", "tbody", "tr", "td"}
    assert "\x1b" not in text
    assert "\\x1b[2J" in shown.cells[0]
    assert dict(zip(shown.cells[1::2], shown.cells[2::2], strict=True)).items() >= facts.items()
    assert "updates" not in shown.cells
