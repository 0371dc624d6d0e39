"""What the rows of a write took to be placed, as the text that goes to the write with them."""

from __future__ import annotations

import pytest
from pyhudi.connector.source.looked_up import parse, spell
from pyhudi.errors import InvalidOptionError
from pyhudi.index.base import LookupFigures


def test_figures_are_read_as_they_were_spelt() -> None:
    figures = LookupFigures(files=4, candidates=3, false_positives=2, bytes=900, seconds=1.5)

    assert parse(spell(figures)) == figures


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"seconds":"soon"}', '{"files":1,"seconds":1,"other":1}'])
def test_figures_of_somebody_else_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError):
        parse(text)
