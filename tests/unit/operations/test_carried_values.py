"""How an index outside of its table notes a moment of it."""

from __future__ import annotations

import pytest
from pyhudi.operations.carried_values import parse, spell
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.watermark import RECENT, Tally, Watermark

INSTANTS = [Instant(f"{20260101000000000 + n}", "commit", State.COMPLETED, f"{n}") for n in range(RECENT + 9)]


@pytest.mark.parametrize("mark", [Watermark(""), Watermark.of(INSTANTS[:3]), Watermark.of(INSTANTS)])
def test_a_moment_is_told_again_from_its_text(mark: Watermark) -> None:
    assert parse(Watermark, spell(mark)) == mark


def test_two_moments_that_are_the_same_are_spelt_alike() -> None:
    assert spell(Watermark.of(INSTANTS)) == spell(Watermark.of(INSTANTS[::-1]))
    assert spell(Watermark.of(INSTANTS)) != spell(Watermark.of(INSTANTS[1:]))


def test_indexes_keep_moments_as_they_were_always_spelt() -> None:
    mark = Watermark("2", "1", frozenset({"b", "a"}), Tally(7, "c", "d"), "e")
    text = (
        '{"archive":"e","by_time":false,"completed_until":"2","first_write":"1",'
        '"older":{"count":7,"digest":"d","first":"c"},"recent":["a","b"]}'
    )

    assert spell(mark) == text
    assert parse(Watermark, text) == mark
    assert parse(Watermark, text.replace('"by_time":false,', "")) == mark, "fields came later"


@pytest.mark.parametrize("text", ["", "{", "7", "null", "[]", "{}", '{"recent": [], "older": {}, "strange": 1}'])
def test_another_text_is_no_moment(text: str) -> None:
    assert parse(Watermark, text) is None
