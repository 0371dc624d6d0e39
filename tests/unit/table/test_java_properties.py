"""Java's property text: vectors taken from `java.util.Properties` and the round trip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.table.config.java_properties import format_properties, parse_properties

TEXT = st.text(st.characters(exclude_categories=("Cs",)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b\n", {"a": "b"}),
        ("a : b\n", {"a": "b"}),
        ("a b c\n", {"a": "b c"}),
        ("  a\t=  b \n", {"a": "b "}),
        ("a\n", {"a": ""}),
        ("a=\n", {"a": ""}),
        ("# c\n! d\n  # e\n\n   \na=1\n", {"a": "1"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=one\\\n   two\\\n\tthree\n", {"a": "onetwothree"}),
        ("a=one\\\n#no comment\n", {"a": "one#no comment"}),
        ("a=ends\\\\\nb=2\n", {"a": "ends\\", "b": "2"}),
        ("a\\=b\\:c\\ d=x\\=y\\:z\n", {"a=b:c d": "x=y:z"}),
        ('a=\\t\\n\\r\\f\\q\\"\n', {"a": '\t\n\r\fq"'}),
        ("a=\\u00e9\\uD83D\\uDE00\n", {"a": "é😀"}),
        ("a=1\na=2\n", {"a": "2"}),
        ("=x\n", {"": "x"}),
        ("a==x\n", {"a": "=x"}),
        ("", {}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode("iso-8859-1")) == expected


def test_bytes_are_latin_1() -> None:
    assert parse_properties(b"a=\xe9\n") == {"a": "é"}


def test_a_broken_unicode_escape_is_refused() -> None:
    with pytest.raises(ValueError, match="malformed"):
        parse_properties(b"a=\\u12G4\n")


def test_text_is_written_as_java_writes_it() -> None:
    properties = {"a b": " x = y: z! #1\\", "é": "😀\n"}

    assert format_properties(properties, "one line") == (
        b"#one line\na\\ b=\\ x \\= y\\: z\\! \\#1\\\\\n\\u00E9=\\uD83D\\uDE00\\n\n"
    )


@given(st.dictionaries(TEXT, TEXT), TEXT)
def test_what_is_written_is_read_back(properties: dict[str, str], comment: str) -> None:
    assert parse_properties(format_properties(properties, comment)) == properties
