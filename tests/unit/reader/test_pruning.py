from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.index.registry import index_for
from pyhudi.reader.skipping.predicates import AnyOf, Compare, IsNotNull, IsNull, OneOf, Predicate, StartsWith
from pyhudi.reader.skipping.pruning import Pruning
from pyhudi.table.config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.keys.generator import KeyGenerator

HIVE_DEFAULT = "__HIVE_DEFAULT_PARTITION__"


def config(record_key=("id",), partition=("p",), **options) -> TableConfig:
    return TableConfig.new(
        TableSettings(name="t", record_key_fields=record_key, partition_fields=partition, bucket_count=64, **options)
    )


def matches(path: str, predicate: Predicate, kind: pa.DataType, **options) -> bool:
    schema = pa.schema([("id", pa.int64()), ("p", kind)])
    return Pruning(config(**options), schema, [predicate]).partition_may_match(path)


@pytest.mark.parametrize(
    ("path", "kind", "predicate", "expected"),
    [
        ("x", pa.string(), Compare("p", "=", "x"), True),
        ("x", pa.string(), Compare("p", "=", "y"), False),
        ("10", pa.int32(), Compare("p", "<", 9), False),
        ("-7", pa.int64(), OneOf("p", (-7, 1)), True),
        ("2024-02-29", pa.date32(), Compare("p", ">", datetime.date(2024, 2, 29)), False),
        ("2024-02-29", pa.date32(), Compare("p", ">=", datetime.date(2024, 2, 29)), True),
        ("true", pa.bool_(), Compare("p", "=", False), False),
        ("12.30", pa.decimal128(5, 2), Compare("p", "=", Decimal("12.3")), True),
        ("12.30", pa.decimal128(5, 2), Compare("p", "=", Decimal("12.4")), False),
        ("1000000", pa.timestamp("us"), Compare("p", "=", datetime.datetime(1970, 1, 1, 0, 0, 1)), True),
        ("1000000", pa.timestamp("us"), Compare("p", "=", datetime.datetime(1970, 1, 1, 0, 0, 2)), False),
        ("1000000", pa.timestamp("ms"), Compare("p", "=", datetime.datetime(1980, 1, 1)), True),
        ("1970-01-01 00:00:01.0", pa.timestamp("us"), Compare("p", "=", datetime.datetime(1980, 1, 1)), True),
        ("1.5", pa.float64(), Compare("p", "=", 9.0), True),
        ("x", pa.string(), IsNull("p"), False),
        ("x", pa.string(), StartsWith("p", "y"), False),
        ("x", pa.string(), Compare("id", "=", 1), True),
    ],
)
def test_a_partition_is_judged_by_the_value_in_its_path(path, kind, predicate, expected) -> None:
    assert matches(path, predicate, kind) is expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (IsNull("p"), True),
        (IsNotNull("p"), True),
        (Compare("p", "=", ""), True),
        (Compare("p", "=", HIVE_DEFAULT), True),
        (Compare("p", "=", "x"), False),
        (Compare("p", "<", "A"), True),
    ],
)
def test_hives_default_partition_stands_for_null_the_empty_string_and_its_own_name(predicate, expected) -> None:
    assert matches(HIVE_DEFAULT, predicate, pa.string()) is expected


def test_hives_default_partition_of_a_number_is_null_alone() -> None:
    assert not matches(HIVE_DEFAULT, Compare("p", "=", 1), pa.int32())
    assert matches(HIVE_DEFAULT, IsNull("p"), pa.int32())


def test_hive_style_and_escaped_paths_are_understood() -> None:
    options = {"hive_style": True, "url_encode": True}

    assert matches("p=x%2Fy", Compare("p", "=", "x/y"), pa.string(), **options)
    assert not matches("p=x%2Fy", Compare("p", "=", "x%2Fy"), pa.string(), **options)


def test_conjuncts_on_two_partition_columns_both_count() -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("q", pa.int32())])
    both = config(partition=("p", "q"))

    assert Pruning(both, schema, [Compare("p", "=", "a"), Compare("q", "=", 1)]).partition_may_match("a/1")
    assert not Pruning(both, schema, [Compare("p", "=", "a"), Compare("q", "=", 2)]).partition_may_match("a/1")
    assert Pruning(both, schema, [Compare("p", "=", "z")]).partition_may_match("a/b/1"), (
        "slashes inside values tell nothing"
    )


def wanted(predicates, kinds: dict[str, pa.DataType], record_key=("id",), **options) -> frozenset[int] | None:
    schema = pa.schema(list(kinds.items()))
    table = config(record_key, **options)
    keys = Pruning(table, schema, predicates).hashed_keys()
    return None if keys is None else frozenset(index_for(table).buckets(keys).tolist())


keys = st.one_of(st.integers(-(2**31), 2**31 - 1), st.text(min_size=1, max_size=5))


@given(st.lists(keys.filter(lambda key: isinstance(key, int)), min_size=1, max_size=5), st.text(min_size=1, max_size=5))
def test_the_bucket_of_every_allowed_key_is_wanted(numbers: list[int], text: str) -> None:
    kinds = {"id": pa.int32(), "name": pa.string()}
    table = config(("id", "name"))
    rows = pa.record_batch({"id": pa.array(numbers, pa.int32()), "name": [text] * len(numbers)})
    buckets = index_for(table).buckets(KeyGenerator(table).record_keys(rows)).tolist()

    found = wanted([OneOf("id", (*numbers, None)), Compare("name", "=", text)], kinds, ("id", "name"))

    assert found == frozenset(buckets)


@pytest.mark.parametrize(
    ("predicates", "kind"),
    [
        ([], pa.int32()),
        ([Compare("id", ">", 5)], pa.int32()),
        ([Compare("id", "=", "5")], pa.int32()),
        ([Compare("id", "=", "")], pa.string()),
        ([OneOf("id", tuple(range(20_000)))], pa.int32()),
        ([Compare("id", "=", 1.0)], pa.float64()),
        ([Compare("id", "=", datetime.datetime(2024, 1, 1))], pa.timestamp("us")),
        ([Compare("id", "=", b"a")], pa.binary()),
    ],
)
def test_every_bucket_is_wanted_where_the_key_is_not_fixed(predicates, kind: pa.DataType) -> None:
    assert wanted(predicates, {"id": kind}) is None


def test_one_open_key_column_opens_all_buckets() -> None:
    kinds = {"id": pa.int32(), "name": pa.string()}

    assert wanted([Compare("id", "=", 1)], kinds, ("id", "name")) is None


@pytest.mark.parametrize("record_key", [("id", "line"), ("line", "id")])
def test_the_hashed_columns_alone_decide_where_the_others_hold_no_marks(record_key) -> None:
    table = config(record_key, hash_fields=["id"])
    kinds = {"id": pa.string(), "line": pa.int32()}
    rows = pa.record_batch({"id": ["a", "b,line:1", "a"], "line": pa.array([1, None, -7], pa.int32())})
    buckets = index_for(table).buckets(KeyGenerator(table).record_keys(rows)).tolist()

    wanted_buckets = wanted([OneOf("id", ("a", "b,line:1"))], kinds, record_key, hash_fields=["id"])

    assert wanted_buckets == frozenset(buckets)
    assert len(wanted_buckets) == 2
    assert wanted([Compare("line", "=", 1)], kinds, record_key, hash_fields=["id"]) is None


def test_an_open_text_beside_the_hashed_column_opens_all_buckets() -> None:
    """A key is parsed before it is hashed, and a text may look like another value of the hashed column."""
    table = config(("id", "name"), hash_fields=["id"])
    kinds = {"id": pa.int32(), "name": pa.string()}
    rows = pa.record_batch({"id": pa.array([1, 1], pa.int32()), "name": ["x", "x,id:7"]})
    buckets = index_for(table).buckets(KeyGenerator(table).record_keys(rows)).tolist()

    assert len(set(buckets)) == 2
    assert wanted([Compare("id", "=", 1)], kinds, ("id", "name"), hash_fields=["id"]) is None
    both = [Compare("id", "=", 1), OneOf("name", ("x", "x,id:7"))]
    assert wanted(both, kinds, ("id", "name"), hash_fields=["id"]) == frozenset(buckets)


def test_a_column_whose_name_cannot_be_parsed_opens_all_buckets() -> None:
    """Then the whole key is hashed, the other columns with it."""
    kinds = {"a:b": pa.int32(), "line": pa.int32()}

    assert wanted([Compare("a:b", "=", 1)], kinds, ("a:b", "line"), hash_fields=["a:b"]) is None


def test_keys_that_no_row_can_have_want_no_bucket() -> None:
    assert wanted([Compare("id", "=", 2**40)], {"id": pa.int32()}) == frozenset()
    assert wanted([Compare("id", "=", 1), Compare("id", "=", 2)], {"id": pa.int32()}) == frozenset()
    assert wanted([OneOf("id", (None,))], {"id": pa.int32()}) == frozenset()


def test_a_decimal_is_spelt_with_the_columns_digits() -> None:
    table = config()
    rows = pa.record_batch({"id": pa.array([Decimal("15")], pa.decimal128(5, 0))})
    bucket = index_for(table).buckets(KeyGenerator(table).record_keys(rows)).tolist()

    assert wanted([Compare("id", "=", Decimal("1.5E+1"))], {"id": pa.decimal128(5, 0)}) == frozenset(bucket)


def looked_for(predicates, kinds: dict[str, pa.DataType], record_key=("id",), **options) -> list[str] | None:
    schema = pa.schema([("_hoodie_record_key", pa.string()), *kinds.items()])
    found = Pruning(config(record_key, **options), schema, predicates).wanted_keys()
    return None if found is None else found.to_pylist()


@pytest.mark.parametrize(
    ("predicate", "kind", "expected"),
    [
        (Compare("id", "=", -7), pa.int32(), ["-7"]),
        (OneOf("id", ("b", "a", None, "b")), pa.string(), ["b", "a"]),
        (Compare("id", "=", Decimal("15.0")), pa.decimal128(5, 0), ["15"]),
        (Compare("id", "=", True), pa.bool_(), ["true"]),
        (Compare("id", "=", datetime.date(2024, 2, 29)), pa.date32(), ["2024-02-29"]),
        (Compare("_hoodie_record_key", "=", "x"), pa.float64(), ["x"]),
        (Compare("id", "=", 2**40), pa.int32(), []),
    ],
)
def test_the_keys_that_are_looked_for_are_spelt_as_writers_do(predicate, kind, expected: list[str]) -> None:
    assert looked_for([predicate], {"id": kind}) == expected


def test_composite_keys_are_looked_for_where_all_of_their_columns_are_fixed() -> None:
    kinds = {"id": pa.int32(), "line": pa.string()}
    both = [OneOf("id", (1, 2)), Compare("line", "=", "x,id:7")]

    assert looked_for(both, kinds, ("id", "line")) == ["id:1,line:x,id:7", "id:2,line:x,id:7"]
    assert looked_for(both[:1], kinds, ("id", "line")) is None
    assert looked_for(both[:1], kinds, partition=("p", "q")) == ["id:1", "id:2"]


@pytest.mark.parametrize("named", [True, False])
def test_a_key_is_looked_for_in_both_spellings_where_a_note_says_which_one_counts_by_now(named: bool) -> None:
    """Before there was a note, a release of the other kind may have written rows that nobody has rewritten."""
    schema, table = pa.schema([("id", pa.int32())]), config(partition=("p", "q")).with_key_field(named)

    assert Pruning(table, schema, [Compare("id", "=", 7)]).wanted_keys().to_pylist() == ["id:7", "7"]


@pytest.mark.parametrize(
    ("predicate", "kind"),
    [
        (Compare("id", "=", 1.0), pa.float64()),
        (Compare("id", "=", datetime.datetime(2024, 1, 1)), pa.timestamp("us")),
        (Compare("id", "=", b"a"), pa.binary()),
        # "1.5", where Apache Hudi had made the key before it gave the column its second digit.
        (Compare("id", "=", Decimal("1.50")), pa.decimal128(5, 2)),
        (Compare("id", "=", ""), pa.string()),
        (Compare("id", "=", datetime.date(1582, 10, 14)), pa.date32()),
        (Compare("id", "!=", 1), pa.int32()),
        (OneOf("id", tuple(range(10_001))), pa.int32()),
        (OneOf("_hoodie_record_key", tuple(map(str, range(10_001)))), pa.int32()),
    ],
)
def test_no_keys_are_looked_for_that_writers_may_spell_otherwise(predicate, kind: pa.DataType) -> None:
    assert looked_for([predicate], {"id": kind}) is None


def test_a_table_that_generates_its_keys_is_searched_by_them_alone() -> None:
    assert looked_for([Compare("id", "=", 1)], {"id": pa.int32()}, record_key=()) is None
    assert looked_for([Compare("_hoodie_record_key", "=", "x")], {"id": pa.int32()}, record_key=()) == ["x"]


def test_alternatives_fix_a_key_where_each_of_them_does() -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    seven, others = (Compare("id", "=", 7),), (OneOf("id", (7, 8, None)), Compare("p", "=", "x"))

    assert Pruning(config(), schema, [AnyOf((seven, others))]).wanted_keys().to_pylist() == ["7", "8"]
    assert Pruning(config(), schema, [AnyOf((seven, others)), Compare("id", "=", 8)]).wanted_keys().to_pylist() == ["8"]
    assert Pruning(config(), schema, [AnyOf((seven, (Compare("p", "=", "x"),)))]).wanted_keys() is None
    assert not Pruning(config(), schema, [AnyOf((others, (IsNull("p"),)))]).partition_may_match("y")


def test_alternatives_are_settled_by_a_key_that_all_of_their_columns_are_of() -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    of_key = AnyOf(((Compare("id", "=", 7),), (IsNull("_hoodie_record_key"),)))
    mixed = AnyOf(((Compare("id", "=", 7),), (IsNull("p"),)))

    assert Pruning(config(), schema, [of_key, mixed]).safe_before_merging() == [of_key]
