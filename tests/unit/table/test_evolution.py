"""The columns of a table after a write of others: the whole matrix, and what must hold of any pair of schemas."""

from __future__ import annotations

import pytest
from pyhudi.table.schema.columns import canonical
from pyhudi.table.schema.evolution import EvolutionRules, Role, contains, evolve
from support.recorded.ddl import columns, show
from support.recorded.evolutions import BOTH, MATRIX, REFUSED, RULES, TO_TEXT, Difference

CASES = [pytest.param(one, id=one.name.replace(" ", "-")) for one in MATRIX]
ROLES = {"k": [Role.KEY], "p": [Role.PARTITION], "o": [Role.ORDERING]}


def outcome(table: str, incoming: str, rules: EvolutionRules) -> str:
    evolution = evolve(columns(table), canonical(columns(incoming)), rules, ROLES)
    if evolution.differences:
        return f"{REFUSED} " + "; ".join(f"{one.column}: {one.todo}" for one in evolution.differences)
    return show(evolution.schema)


@pytest.mark.parametrize("rules", RULES.values(), ids=[name.replace(" ", "-") for name in RULES])
@pytest.mark.parametrize("case", CASES)
def test_the_matrix(case: Difference, rules: EvolutionRules) -> None:
    assert outcome(case.table, case.incoming, rules) == case.outcome(rules)


@pytest.mark.parametrize("case", CASES)
def test_both_options_allow_what_either_does(case: Difference) -> None:
    assert outcome(case.table, case.incoming, BOTH) == case.outcome(BOTH)


@pytest.mark.parametrize("case", CASES)
def test_what_a_table_became_contains_what_it_was_and_what_came(case: Difference) -> None:
    """So a second write of the same columns changes nothing, and neither does one of the older."""
    for rules in RULES.values():
        after = outcome(case.table, case.incoming, rules)
        if after.startswith(REFUSED):
            continue
        assert contains(columns(after), columns(case.table))
        assert outcome(after, case.incoming, rules) == after
        assert outcome(after, case.table, BOTH) == after


def test_the_matrix_tells_every_pair_of_types_once() -> None:
    flat = ["boolean", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz"]
    pairs = [(one.table, one.incoming) for one in MATRIX]

    assert len(set(pairs)) == len(pairs)
    assert {(f"v {a}", f"v {b}") for a in flat for b in flat if a != b} <= set(pairs)


@pytest.mark.parametrize(
    ("name", "before", "after", "allowed"),
    [
        ("k", "int", "bigint", True),
        ("k", "int", "string", True),
        ("k", "bigint", "string", True),
        ("k", "int", "double", False),
        ("k", "decimal(5,2)", "decimal(7,4)", False),
        ("k", "float", "string", False),
        ("p", "int", "bigint", True),
        ("p", "int", "string", True),
        ("p", "decimal(5,2)", "decimal(7,2)", False),
        ("o", "int", "bigint", True),
        ("o", "int", "double", True),
        ("o", "float", "double", True),
        ("o", "decimal(5,2)", "decimal(7,4)", True),
        ("o", "int", "string", False),
        ("o", "float", "string", False),
    ],
)
def test_a_column_that_makes_keys_folders_or_the_order_changes_only_by_the_option_and_where_they_stay(
    name: str, before: str, after: str, allowed: bool
) -> None:
    result = outcome(f"{name} {before}", f"{name} {after}", TO_TEXT)
    by_default = outcome(f"{name} {before}", f"{name} {after}", EvolutionRules())

    judged_by_value = before in {"int", "bigint"} and after in {"bigint", "string"}
    expected_outcome = f"{name} {before}" if judged_by_value else f"{REFUSED} {name}: cast it to {before}"
    assert by_default.partition(", on which ")[0] == expected_outcome
    if allowed:
        assert result == f"{name} {after}"
    else:
        assert result.partition(", on which ")[0] == expected_outcome


def test_a_refusal_tells_whether_the_option_would_allow_it() -> None:
    def told(table: str, incoming: str, rules: EvolutionRules = RULES["default"]) -> bool:
        return evolve(columns(table), columns(incoming), rules, ROLES).by_option

    assert told("v float", "v string")
    assert told("o float", "o double")
    assert not told("v double", "v string")
    assert not told("v int", "v boolean")
    assert not told("k float", "k string")
    assert not told("o int", "o string", TO_TEXT)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("v int, w string", "v int", True),
        ("v int, w string not null", "v int", False),
        ("v int", "v int, w string", False),
        ("v bigint", "v int", True),
        ("v int", "v bigint", False),
        ("v double", "v bigint", False),
        ("v date", "v string", False),
        ("v string", "v binary", False),
        ("v int not null", "v int", False),
        ("v int", "v int not null", True),
        ("s struct<a:int,b:string>", "s struct<b:string>", True),
        ("s struct<a:int>", "s struct<a:int,b:string>", False),
        ("l array<struct<a:bigint,b:int>>", "l array<struct<a:int>>", True),
        ("m map<string,int>", "m map<string,bigint>", False),
        ("m map<string,int not null>", "m map<string,int>", False),
        ("v struct<a:int>", "v array<int>", False),
        ("w int, v int", "v int, w int", True),
    ],
)
def test_one_schema_contains_another_when_it_shows_its_rows_unchanged(wide: str, narrow: str, expected: bool) -> None:
    assert contains(columns(wide), columns(narrow)) is expected


def test_a_difference_shows_both_types() -> None:
    evolution = evolve(columns("v int not null"), columns("w string"), EvolutionRules())

    assert [str(one) for one in evolution.differences] == [
        "v | int not null | absent | add it, for it may not be null",
    ]


def test_only_int_columns_without_a_role_become_double_by_the_option() -> None:
    rules = EvolutionRules(int_to_double=True)
    before = "v int, w bigint, s struct<a:int>, l array<int>, k int, p int, o int"

    for kind in ("float", "double"):
        given = before.replace("bigint", kind).replace("int", kind)
        for column in ("k", "p", "o"):
            assert outcome(f"{column} int", f"{column} {kind}", rules).startswith(f"{REFUSED} {column}: cast it to int")
        given = given.partition(", k")[0]
        after = "v double, w bigint, s struct<a:double>, l array<double>"
        assert outcome(before.partition(", k")[0], given, rules) == after
