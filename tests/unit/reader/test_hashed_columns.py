"""Which tables can be joined bucket by bucket: where equal values certainly have equal hashes."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import (
    InvalidOptionError,
    MissingColumnError,
    OptionConflictError,
    PyHudiError,
    UnsupportedTableError,
)
from pyhudi.index.registry import computed_index_for
from pyhudi.reader.buckets.hashed_columns import Doubts, HashedColumns, doubts_of_one, doubts_of_two
from pyhudi.table.config import TableConfig
from pyhudi.table.config import property_keys as key
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.keys.generator import KeyGenerator

BUCKETS = 1 << 20
TEXTS = st.text(st.sampled_from("ab,:"), max_size=6) | st.sampled_from(
    ["__null__", "__empty__", "x,b:1", "b:x,a:y", "a:x", ",b:", "1"]
)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(-9, 9),
    pa.int64(): st.integers(-9, 9),
    pa.decimal128(20, 0): st.integers(-9, 9).map(Decimal),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(datetime.date(1582, 10, 16), datetime.date(1582, 10, 20)),
    pa.string(): TEXTS,
}
WHOLE = (pa.int32(), pa.int64())
KINDS = ((*WHOLE, pa.decimal128(20, 0)), (pa.bool_(),), (pa.date32(),), (pa.string(),), (pa.string(),))


def config(fields: tuple[str, ...], hashed: tuple[str, ...] = (), **options: Any) -> TableConfig:
    given = {"hash_fields": hashed} if hashed else {}
    return TableConfig.new(TableSettings(name="t", record_key_fields=fields, bucket_count=BUCKETS, **given, **options))


def hashing(types: dict[str, pa.DataType], *hashed: str, **options: Any) -> HashedColumns:
    return HashedColumns.of(config(tuple(types), hashed, **options), pa.schema(list(types.items())), "t")


class Keyed:
    """A table with a key, of some columns a, b and c, and the bucket of a row in it."""

    def __init__(self, types: dict[str, pa.DataType], hashed: tuple[str, ...], named: bool) -> None:
        more: dict[str, Any] = {"key_generator": KeyGeneratorType.COMPLEX} if named else {}
        self.config = config(tuple(types), hashed, **more)
        self.schema = pa.schema(list(types.items()))
        self.hashing = HashedColumns.of(self.config, self.schema, "t")

    def bucket(self, values: dict[str, Any]) -> int:
        row = pa.RecordBatch.from_pylist([{name: values[name] for name in self.schema.names}], self.schema)
        keys = KeyGenerator(self.config, self.schema).record_keys(row)
        return int(computed_index_for(self.config).buckets(keys)[0])


@st.composite
def tables(draw: st.DrawFn) -> Keyed:
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    types = {name: draw(st.sampled_from(list(VALUES))) for name in names}
    hashed = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
    return Keyed(types, tuple(hashed), draw(st.booleans()))


def is_certain(doubts: Doubts, values: dict[str, Any]) -> bool:
    """Return what the check of a row in Spark says."""
    return all(
        not ("," in values[name] and ":" in values[name]) and values[name] not in {"__null__", "__empty__"}
        for name in doubts.texts
        if values[name] is not None
    )


@st.composite
def two_tables(draw: st.DrawFn) -> tuple[Keyed, Keyed, list[tuple[str, str]]]:
    """Return tables that are hashed by the same columns, under other names at times, and columns to join them on."""
    kinds = {name: draw(st.sampled_from(KINDS)) for name in "abc"}
    hashed = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True))
    more = [name for name in "abc" if name not in hashed]

    def table(names: dict[str, str]) -> Keyed:
        fields = draw(st.permutations([*hashed, *draw(st.lists(st.sampled_from(more), unique=True))]))
        types = {names[field]: draw(st.sampled_from(kinds[field])) for field in fields}
        return Keyed(types, tuple(names[field] for field in hashed), draw(st.booleans()))

    met = dict(zip("abc", draw(st.permutations("abc")), strict=True)) if draw(st.booleans()) else {n: n for n in "abc"}
    left, right = table({name: name for name in "abc"}), table(met)
    both = [name for name in more if name in left.schema.names and met[name] in right.schema.names]
    on = [*hashed, *draw(st.lists(st.sampled_from(both), unique=True) if both else st.just([]))]
    return left, right, [(name, met[name]) for name in on]


@given(two_tables(), st.data())
def test_rows_that_agree_have_equal_hashes_in_tables_that_may_be_joined(
    drawn: tuple[Keyed, Keyed, list[tuple[str, str]]], data: st.DataObject
) -> None:
    """Whatever else is in their keys, as far as no value is in doubt."""
    left, right, pairs = drawn
    try:
        doubts = doubts_of_two(left.hashing, right.hashing, pairs)
    except PyHudiError:
        return
    rows = [
        {name: data.draw(VALUES[kind]) for name, kind in zip(one.schema.names, one.schema.types, strict=True)}
        for one in (left, right)
    ]
    for mine, theirs in pairs:
        kind = right.schema.field(theirs).type
        value = rows[0][mine]
        rows[1][theirs] = Decimal(value) if pa.types.is_decimal(kind) else int(value) if kind in WHOLE else value
    if not all(map(is_certain, doubts, rows)):
        return
    try:
        buckets = [one.bucket(row) for one, row in zip((left, right), rows, strict=True)]
    except PyHudiError:
        return  # a key is empty

    assert buckets[0] == buckets[1]


@given(tables(), st.lists(st.sampled_from("abc"), min_size=1, unique=True), st.data())
def test_rows_of_one_table_that_agree_share_a_bucket(table: Keyed, names: list[str], data: st.DataObject) -> None:
    by = [name for name in names if name in table.schema.names]
    try:
        doubts = doubts_of_one(table.hashing, by)
    except PyHudiError:
        return
    row, other = (
        {
            name: data.draw(st.none() | VALUES[kind])
            for name, kind in zip(table.schema.names, table.schema.types, strict=True)
        }
        for _ in range(2)
    )
    other |= {name: row[name] for name in by}
    if not is_certain(doubts, row) or not is_certain(doubts, other):
        return
    try:
        buckets = table.bucket(row), table.bucket(other)
    except PyHudiError:
        return

    assert buckets[0] == buckets[1]


INT, LONG, TEXT, DAY = pa.int32(), pa.int64(), pa.string(), pa.date32()


@pytest.mark.parametrize(
    ("left", "right", "on", "expected"),
    [
        (hashing({"id": INT}), hashing({"id": LONG}), {"id": "id"}, (Doubts(), Doubts())),
        (hashing({"id": LONG, "line": INT}, "id"), hashing({"o": LONG}), {"id": "o"}, (Doubts(), Doubts())),
        (hashing({"id": TEXT}), hashing({"id": TEXT}), {"id": "id"}, (Doubts(), Doubts())),
        # The name of the field decides how a text with separators is parsed, and so does what follows it in the key.
        (hashing({"id": TEXT}), hashing({"o": TEXT}), {"id": "o"}, (Doubts(("id",)), Doubts(("o",)))),
        (
            hashing({"id": LONG, "name": TEXT}, "id"),
            hashing({"id": LONG}),
            {"id": "id"},
            (Doubts(("name",)), Doubts()),
        ),
        (
            hashing({"id": LONG, "line": INT}, "id"),
            hashing({"id": LONG, "line": TEXT}, "id"),
            {"id": "id"},
            (Doubts(), Doubts(("line",))),
        ),
        (hashing({"id": DAY}), hashing({"id": DAY}), {"id": "id"}, (Doubts(dates=("id",)), Doubts(dates=("id",)))),
    ],
)
def test_what_is_checked_of_each_row(
    left: HashedColumns, right: HashedColumns, on: dict[str, str], expected: tuple[Doubts, Doubts]
) -> None:
    assert doubts_of_two(left, right, list(on.items())) == expected


NAMED = {"key_generator": KeyGeneratorType.COMPLEX}


@pytest.mark.parametrize(
    ("left", "right", "on", "kind", "said"),
    [
        (hashing({"a": INT, "b": INT}), hashing({"a": INT}), "a", InvalidOptionError, "lacks b"),
        (hashing({"a": INT}), hashing({"a": INT, "b": INT}), "a", InvalidOptionError, "lacks b"),
        (hashing({"a": INT, "b": INT}), hashing({"b": INT, "a": INT}), "ab", OptionConflictError, "in another order"),
        (hashing({"a": INT, "b": INT}), hashing({"a": INT, "b": INT}, "a"), "ab", OptionConflictError, "number"),
        (hashing({"a": INT}), hashing({"a": TEXT}), "a", OptionConflictError, "int where the table t has a string"),
        (hashing({"a": INT}), hashing({"a": INT}, **NAMED), "a", OptionConflictError, "hold the names of their fields"),
        (hashing({"a:": INT, "b": INT}), hashing({"b": INT, "a:": INT}), ["b", "a:"], OptionConflictError, "order"),
    ],
)
def test_tables_that_hash_otherwise_are_refused(
    left: HashedColumns, right: HashedColumns, on: Any, kind: type[PyHudiError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        doubts_of_two(left, right, [(name, name) for name in on])


@pytest.mark.parametrize(
    "odd", [pa.decimal128(9, 2), pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.binary()]
)
def test_columns_with_several_spellings_are_refused(odd: pa.DataType) -> None:
    """Apache Hudi's writers spell a time in two ways, and a wider decimal has another text."""
    with pytest.raises(UnsupportedTableError, match="several spellings"):
        hashing({"id": INT, "odd": odd})
    if odd == pa.binary():
        with pytest.raises(UnsupportedTableError, match="several spellings"):
            hashing({"id": INT, "odd": odd}, "id")
    else:
        assert hashing({"id": INT, "odd": odd}, "id").deciding == ("id",)


def test_keys_that_may_be_spelt_in_two_ways_are_refused() -> None:
    made = config(("id",), key_generator=KeyGeneratorType.COMPLEX, version=8)
    unsure = TableConfig({k: v for k, v in made.properties.items() if k != key.COMPLEX_KEY_ENCODING})
    for one in (made, unsure):
        with pytest.raises(UnsupportedTableError, match="in two ways"):
            HashedColumns.of(one, pa.schema([("id", INT)]), "t")


def test_text_keys_of_version_6_are_refused_and_whole_numbers_are_not() -> None:
    """Its writers hash text with a comma or a colon in two ways."""
    made = config(("a", "b")).properties
    older, upgraded = TableConfig({**made, key.VERSION: "6"}), TableConfig({**made, key.INITIAL_VERSION: "6"})

    for table_config in (older, upgraded):
        with pytest.raises(UnsupportedTableError, match=r"version 6, and its record key has the column 'b'") as raised:
            HashedColumns.of(table_config, pa.schema([("a", INT), ("b", TEXT)]), "t")
        assert "rows into a new table" in raised.value.todo
        assert HashedColumns.of(table_config, pa.schema([("a", INT), ("b", INT)]), "t").hashed == ("a", "b")


def test_a_table_without_a_column_of_its_key_is_refused() -> None:
    with pytest.raises(MissingColumnError, match="no column 'id'"):
        HashedColumns.of(config(("id",)), pa.schema([("other", INT)]), "t")


def test_rows_are_grouped_by_all_columns_of_the_buckets() -> None:
    table = hashing({"a": INT, "b": TEXT}, "a")

    assert doubts_of_one(table, ["a"]) == Doubts(("b",))
    assert doubts_of_one(table, ["b", "a"]) == Doubts()
    with pytest.raises(InvalidOptionError, match="lacks a"):
        doubts_of_one(table, ["b"])
    assert doubts_of_one(hashing({"a": INT}, **NAMED), ["a"]) == Doubts()
    with pytest.raises(OptionConflictError, match="names of their fields"):
        doubts_of_one(hashing({"a:": INT, "b": INT}, "b"), ["b"])
    assert len({*itertools.chain(table.fields, table.hashed)}) == 2
