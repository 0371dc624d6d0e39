"""The option by which both parts of a DataFrame see one moment: `HudiTable` gives it, and others may try to."""

from __future__ import annotations

import pytest
from pyhudi.connector.source.pin import parse, spell
from pyhudi.errors import InvalidOptionError
from pyhudi.timeline.watermark import Tally, Watermark


def test_a_moment_is_read_back_as_it_was_noted() -> None:
    moment = Watermark("2", "1", frozenset({"a", "b"}), Tally(7, "c", "d"), "e")

    assert parse(spell(moment)) == moment


@pytest.mark.parametrize("text", ["", "20260101000000000", "earliest", "{}", "[]", '{"older": 1}'])
def test_what_is_no_moment_is_refused_by_the_option(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"hoodie\.pyhudi\.read\.pinned=.* Leave it out"):
        parse(text)
