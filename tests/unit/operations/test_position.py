"""How an index outside of its table notes a moment of it."""

from __future__ import annotations

import pytest
from pyhudi.operations.indexing.position import parse_position, spell_position
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.watermark import RECENT, Watermark

INSTANTS = [Instant(f"{20260101000000000 + n}", "commit", State.COMPLETED, f"{n}") for n in range(RECENT + 9)]


@pytest.mark.parametrize("mark", [Watermark(""), Watermark.of(INSTANTS[:3]), Watermark.of(INSTANTS)])
def test_a_moment_is_told_again_from_its_text(mark: Watermark) -> None:
    assert parse_position(spell_position(mark)) == mark


def test_two_moments_that_are_the_same_are_spelt_alike() -> None:
    assert spell_position(Watermark.of(INSTANTS)) == spell_position(Watermark.of(INSTANTS[::-1]))
    assert spell_position(Watermark.of(INSTANTS)) != spell_position(Watermark.of(INSTANTS[1:]))


@pytest.mark.parametrize("text", ["", "{", "7", "null", "[]", "{}", '{"recent": [], "older": {}, "strange": 1}'])
def test_another_text_is_no_moment(text: str) -> None:
    assert parse_position(text) is None
