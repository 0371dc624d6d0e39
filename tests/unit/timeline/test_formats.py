from __future__ import annotations

from typing import Any

import pytest
from pyhudi.errors import UnsupportedTableError
from pyhudi.timeline import formats


@pytest.mark.parametrize(
    ("found", "number"),
    [
        ({"format": 3}, 3),
        (formats.numbered({"a": 1}, 2), 2),
        ({"a": 1}, 1),
        ({"format": "3"}, 1),
        ({"format": True}, 1),
        ([], 1),
        (None, 1),
    ],
)
def test_what_has_no_number_has_the_first_format(found: Any, number: int) -> None:
    """The release before the numbers wrote it."""
    assert formats.number_of(found) == number


@pytest.mark.parametrize(
    ("text", "number"), [("2", 2), ("1", 1), ("", 1), ("two", 1), ("-1", 1), ("²", 1), ("9" * 5000, 1)]
)
def test_the_number_among_keys_is_a_text(text: str, number: int) -> None:
    assert formats.number_of_keys({"pyhudi.format": text, "pyhudi.rows": "{}"}) == number
    assert formats.number_of_keys({"pyhudi.rows": "{}"}) == 1


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("2026112500.v2", 2),
        ("20261125001500123.v12", 12),
        ("20261125001500123", 1),
        ("a.v", 1),
        ("v2", 1),
        ("a.v2.json", 1),
    ],
)
def test_the_number_in_a_name_is_at_its_end(name: str, number: int) -> None:
    assert formats.number_of_name(name) == number


def test_a_newer_format_is_refused_with_both_numbers_and_the_cure() -> None:
    formats.refuse_newer("s3://b/t", "a note", 2, 2)
    with pytest.raises(UnsupportedTableError) as raised:
        formats.refuse_newer("s3://b/t", ".hoodie/.pyhudi/cleaned", 3, 2)

    for words in ("s3://b/t", ".hoodie/.pyhudi/cleaned", "format 3", "up to 2", "Upgrade pyhudi"):
        assert words in str(raised.value)
