from __future__ import annotations

import pytest
from pyhudi.errors import InvalidOptionError
from pyhudi.reader.query import is_beginning, resolve


@pytest.mark.parametrize("text", ["earliest", "EARLIEST", "0", "000", "00000000000000", "00000000000000000"])
def test_the_beginning_has_several_names(text: str) -> None:
    assert is_beginning(text)


@pytest.mark.parametrize("text", ["", "latest", "00001", "0x0", "20260101000000", "0000-00-00", "٠٠٠"])
def test_nothing_else_is_the_beginning(text: str) -> None:
    assert not is_beginning(text)


def test_a_time_is_resolved_in_the_zone_of_the_timeline() -> None:
    assert resolve("2026-11-21", "UTC") == "20261121000000000"
    assert resolve("1795214804250", "Asia/Tokyo") == "20261121074644250"


@pytest.mark.parametrize("text", ["yesterday", "000", "2026-13-01", "2026-11-21 25:00:00", "99999999999999"])
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=text):
        resolve(text, "UTC")
