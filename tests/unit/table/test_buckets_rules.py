"""Rules of bucket numbers: Apache Hudi's own bytes, its expressions as Java reads them, and files that are damaged."""

from __future__ import annotations

import json
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import CorruptFileError, UnsupportedTableError
from pyhudi.table.buckets.rules import BucketRule, expression_of, path_of

TIME = "20260101000000000"
# As Apache Hudi 1.2 writes it.
THEIRS = {"expressions": "^a$,8", "defaultBucketNumber": 4, "rule": "regex", "version": 1, "instant": TIME}


def parsed(expressions: str = "", **changes: object) -> BucketRule:
    content = {**THEIRS, "expressions": expressions, **changes}
    return BucketRule.parse(TIME, json.dumps(content).encode(), "/t/x.hashing_config")


def test_a_file_of_apache_hudi_says_the_number_of_each_partition() -> None:
    rule = BucketRule.parse(TIME, json.dumps(THEIRS).encode(), "x")

    assert rule == BucketRule(TIME, 4, (("^a$", 8),))
    assert [rule.number_of(path) for path in ("a", "b", "ab", "p=a", "")] == [8, 4, 4, 4, 4]
    assert json.loads(rule.encode()) == THEIRS
    assert pickle.loads(pickle.dumps(rule)).number_of("a") == 8  # noqa: S301


def test_an_expression_is_looked_for_inside_a_path_and_the_first_that_is_found_counts() -> None:
    rule = parsed(" 2024 , 2 ;^p=2024-01$,3;p=20,5;^p=2030$,7;;")

    assert rule.expressions == (("2024", 2), ("^p=2024-01$", 3), ("p=20", 5), ("^p=2030$", 7))
    assert [rule.number_of(path) for path in ("p=2024-01", "p=2030", "p=1999")] == [2, 5, 4]
    assert parsed("^p=2030$,7;p=20,5").number_of("p=2030") == 7


def test_a_rule_without_expressions_gets_one_because_apache_hudi_fails_on_none() -> None:
    written = BucketRule(TIME, 14).encode()

    assert json.loads(written)["expressions"] == "^,14"
    assert BucketRule.parse(TIME, written, "x").number_of("any") == 14
    assert parsed("").number_of("any") == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"defaultBucketNumber": 0},
        {"defaultBucketNumber": "many"},
        {"expressions": "a"},
        {"expressions": "a,2,3"},
        {"expressions": "a,-1"},
        {"expressions": "a,0"},
    ],
)
def test_a_damaged_file_is_named(changes: dict[str, object]) -> None:
    with pytest.raises(CorruptFileError, match=r"/t/x\.hashing_config"):
        parsed(**{"expressions": "a,2", **changes})


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_rule_is_named(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="/t/x"):
        BucketRule.parse(TIME, data, "/t/x")


@pytest.mark.parametrize(
    "expression",
    [
        r"\p{Alpha}",
        r"a\b",
        r"\Qa.b\E",
        "[a&&b]",
        "[a[b]]",
        "[]a]",
        "(?<n>a)",
        "(?P<n>a)",
        "a{",
        "(a",
        "*",
        r"\1",
        "(?x)a",
        r"a\z",
        r"\é",
    ],
)
def test_an_expression_that_python_may_read_unlike_java_is_unknown(expression: str) -> None:
    with pytest.raises(UnsupportedTableError, match="Python may read unlike Java"):
        parsed(f"{expression},2")


def test_what_both_read_alike_is_known() -> None:
    rule = parsed(r"(?i)^P=(?:[a-c_]|\d{2})(?=x)\.?[^\]]*$,2;^q=.+/[0-9]$,3")

    assert [rule.number_of(path) for path in ("p=bx", "P=07x.z", "p=٣٤x", "q=ü/7", "q=ü/17")] == [2, 2, 4, 3, 4]


def test_another_kind_and_a_newer_version_are_unknown() -> None:
    for changes in ({"rule": "hash"}, {"version": 2}, {"format": 9}):
        with pytest.raises(UnsupportedTableError, match="/t/x"):
            parsed(**changes)


def test_java_ends_more_lines_than_python_so_such_a_path_has_no_number() -> None:
    rule = parsed("^a$,8")

    assert rule.reads_alike("a")
    assert not any(rule.reads_alike(f"a{end}") for end in "\n\r\x85\u2028\u2029")
    assert not rule.reads_alike("a\r\n")
    assert all(map(rule.reads_alike, ("b\n", "a\nb", "\na")))
    assert not parsed("^a,8").reads_alike("b\nc")
    assert BucketRule(TIME, 4).reads_alike("a\n")


@given(st.text(max_size=12), st.text(max_size=12))
def test_the_expression_of_a_path_finds_that_path_alone(path: str, other: str) -> None:
    expression = expression_of(path)
    rule = BucketRule.parse(TIME, BucketRule(TIME, 4, ((expression, 8),)).encode(), "x")

    assert rule.number_of(path) == 8
    assert path_of(expression) == path
    assert other == path or rule.number_of(other) == 4
    assert "," not in expression
    assert ";" not in expression
    assert re.compile(expression, re.ASCII).search(path)


def test_ten_thousand_partitions_are_found_without_as_many_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = BucketRule(TIME, 1, tuple((expression_of(f"p={number}"), number + 1) for number in range(10_000)))
    monkeypatch.setattr(re, "compile", lambda *_: pytest.fail("an expression of one path is not searched for"))

    assert [rule.number_of(f"p={number}") for number in (0, 9_999, 10_000)] == [1, 10_000, 1]
