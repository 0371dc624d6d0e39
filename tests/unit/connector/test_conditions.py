from __future__ import annotations

import datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.connector.conditions.condition import conjuncts
from pyhudi.connector.conditions.literals import TimeLiteral, readings
from pyhudi.connector.conditions.spark_text import ShownText
from pyhudi.connector.conditions.tree import UnknownValue
from pyhudi.connector.conditions.values import WantedValues
from pyhudi.connector.merge.builder import MergeBuilder
from pyhudi.connector.source.carried_options import parse_predicates, spell_predicates
from pyhudi.errors import InvalidOptionError
from pyhudi.reader.skipping.predicates import AnyOf, Compare, IsNotNull, IsNull, NoneOf, OneOf, Predicate, StartsWith

pytestmark = pytest.mark.oldest

UTC = datetime.timezone.utc
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = 1", ["a = 1"]),
        ("a = 1 AND b = 'x AND y'", ["a = 1", "b = 'x AND y'"]),
        ("a = 1 and (b = 'x' AND a > 2) And not b = ''", ["a = 1", "(b = 'x' AND a > 2)", "not b = ''"]),
        ("a BETWEEN 1 AND 2 AND b = 'x'", ["a BETWEEN 1 AND 2", "b = 'x'"]),
        ("`a AND b` = 1 AND b = 'it\\'s AND' ", ["`a AND b` = 1", "b = 'it\\'s AND'"]),
        ("a = 1 AND CASE WHEN a = 1 AND b = '' THEN true END", ["a = 1", "CASE WHEN a = 1 AND b = '' THEN true END"]),
        ("a = 1 AND b = 'x' OR a = 2", ["a = 1 AND b = 'x' OR a = 2"]),
        ("a = 1 AND b = r'x\\' AND a = 2", ["a = 1 AND b = r'x\\' AND a = 2"]),
        ("a = 1 -- AND b\nAND a = 2", ["a = 1 -- AND b\nAND a = 2"]),
        ("a = 1 AND", ["a = 1 AND"]),
        ("band = 1 AND android = 'x'", ["band = 1", "android = 'x'"]),
        ("", [""]),
    ],
)
def test_a_text_is_cut_where_it_is_sure_to_be_a_conjunction(text: str, parts: list[str]) -> None:
    assert conjuncts(text) == parts


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("7", pa.int32(), [7, 7]),
        ("7", pa.int8(), [7, 7]),
        ("3000000000", pa.int64(), [3000000000]),
        ("7.0", pa.int64(), []),
        ("7", pa.string(), ["7"]),
        ("NULL", pa.int64(), [None]),
        ("true", pa.bool_(), [True]),
        ("1.5", pa.float64(), [1.5, 1.5]),
        ("1.0E10", pa.float64(), [1e10]),
        ("0.1234567890123456", pa.float64(), [0.1234567890123456]),
        ("NaN", pa.float64(), []),
        ("1.5", pa.decimal128(10, 2), [Decimal("1.5")]),
        ("1.5", pa.decimal128(38, 2), []),
        ("2024-02-29", pa.date32(), [datetime.date(2024, 2, 29)]),
        ("DATE '2024-02-29'", pa.date32(), [datetime.date(2024, 2, 29)]),
        ("2024-02-30", pa.date32(), []),
        ("2024-2-3", pa.date32(), []),
        ("TIMESTAMP '2024-02-29 10:00:00'", pa.date32(), []),
        ("TIMESTAMP '2024-02-29 10:00:00'", pa.timestamp("us", "UTC"), [TimeLiteral("2024-02-29 10:00:00")]),
        ("TIMESTAMP '2024-02-29 10:00:00'", pa.timestamp("us"), []),
        ("2024-02-29 10:00:00.5", pa.timestamp("us"), [datetime.datetime(2024, 2, 29, 10, 0, 0, 500000)]),
        ("now", pa.timestamp("us", "UTC"), []),
        ("x", pa.binary(), []),
    ],
)
def test_a_constant_is_read_as_the_column_has_it(text: str, kind: pa.DataType, values: list[Any]) -> None:
    assert [one.value for one in readings(text, kind)] == values


def test_a_part_with_an_unknown_value_gives_no_predicate() -> None:
    schema = SCHEMA.append(pa.field("at", pa.timestamp("us", "UTC")))
    last, other = "TIMESTAMP '9999-12-31 23:59:59'", "TIMESTAMP '2024-01-01 00:00:00'"
    node = ShownText(schema, 0).parse(f"((((at < {last}) OR (a = 1)) AND (at IN ({last}, {other}))) AND (a = 7))")

    predicates = node.implied_predicates(
        True, lambda value: UnknownValue() if isinstance(value, TimeLiteral) else value
    )
    assert len(list(node.moments())) == 3
    assert predicates == (Compare("a", "=", 7),)


def test_a_number_without_end_is_compared_as_its_column_has_it() -> None:
    schema = pa.schema([("id", pa.int64()), ("amount", pa.decimal128(38, 0)), ("price", pa.float64())])

    predicates = WantedValues.of({"id": 10**400, "amount": 10**20}, schema, "t").predicates()
    assert predicates == (OneOf("id", (10**400,)), OneOf("amount", (Decimal(10**20),)))
    assert [type(value) for one in predicates if isinstance(one, OneOf) for value in one.values] == [int, Decimal]
    with pytest.raises(InvalidOptionError, match=r"'price' of the table t .* is no value of it"):
        WantedValues.of({"price": 10**400}, schema, "t")


def test_a_clause_has_the_values_of_an_iterator_for_each_execution() -> None:
    work: Any = SimpleNamespace(path="t")
    source: Any = None
    merge = MergeBuilder(work, source, None).when_matched_delete({"id": iter((1, 2)), "p": "ab", "n": 3})

    shown = [repr(merge) for _ in range(2)]
    assert shown[0] == shown[1]
    assert "{'id': [1, 2], 'p': 'ab', 'n': 3}" in shown[0]


def predicates() -> st.SearchStrategy[Predicate]:
    name = st.sampled_from(SCHEMA.names)
    value = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.dates(),
        st.datetimes(),
        st.datetimes(timezones=st.just(UTC)),
    )
    values = st.lists(value, max_size=3).map(tuple)
    leaves = st.one_of(
        st.builds(Compare, name, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), value),
        st.builds(OneOf, name, values),
        st.builds(NoneOf, name, values),
        st.builds(IsNull, name),
        st.builds(IsNotNull, name),
        st.builds(StartsWith, name, st.text()),
    )
    return st.recursive(
        leaves, lambda each: st.builds(AnyOf, st.lists(st.lists(each).map(tuple)).map(tuple)), max_leaves=5
    )


@given(st.lists(predicates(), max_size=3).map(tuple))
def test_predicates_come_back_from_their_text(given: tuple[Predicate, ...]) -> None:
    assert parse_predicates(spell_predicates(given), SCHEMA) == given


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"Compare": ["a", "=", 1]}',
        "[1]",
        '[["a", "=", 1]]',
        '[{"Compare": ["a", "~", 1]}]',
        '[{"Compare": ["c", "=", 1]}]',
        '[{"Compare": ["a", "=", {"date": "x"}]}]',
        '[{"Other": ["a"]}]',
    ],
)
def test_a_text_of_nobody_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="filter the DataFrame"):
        parse_predicates(text, SCHEMA)
