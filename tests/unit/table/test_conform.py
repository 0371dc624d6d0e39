"""Columns brought to a table's schema: vectors, files by Apache Hudi, and random nested columns in random layouts."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.errors import SchemaMismatchError
from pyhudi.table.schema.columns import arrow_schema, with_meta
from pyhudi.table.schema.conform import conform
from pyhudi.table.schema.types import children, same_type

FIXTURE = Path(__file__).parents[2] / "fixtures" / "apache_hudi_1_2_types"


def element(kind: Any, nullable: bool = True) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable=nullable))


def mapping(kind: Any, nullable: bool = True) -> pa.DataType:
    return pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", kind, nullable=nullable))


def struct(**kinds: Any) -> pa.StructType:
    """Return a struct; a name that ends in `_` is a required field."""
    return pa.struct([pa.field(name, kind, nullable=not name.endswith("_")) for name, kind in kinds.items()])


def one(array: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([array], names=["c"])


def conformed(array: pa.Array, kind: pa.DataType, *, nullable: bool = True, fill_missing: bool = False) -> pa.Array:
    schema = pa.schema([pa.field("c", kind, nullable=nullable)])

    batch = conform(one(array), schema, fill_missing=fill_missing)

    batch.validate(full=True)
    assert same_type(batch.column(0).type, kind)
    assert batch.schema.equals(schema)
    return batch.column(0)


def test_columns_are_taken_by_name_and_put_in_order() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"b": pa.array([1], pa.int16()), "x": ["left out"], "a": pa.array(["s"]).dictionary_encode()}
    )
    schema = pa.schema([("a", pa.string()), pa.field("b", pa.int64(), nullable=False)])

    assert conform(batch, schema).to_pydict() == {"a": ["s"], "b": [1]}
    assert conform(batch, schema).schema.equals(schema)


def test_a_table_is_conformed_chunk_by_chunk() -> None:
    table = pa.table({"a": pa.chunked_array([[1], [2, 3]], pa.int32()), "b": pa.chunked_array([["x", "y"], ["z"]])})
    schema = pa.schema([("b", pa.string()), ("a", pa.int64())])

    result = conform(table, schema)

    assert result.schema.equals(schema)
    assert result.to_pydict() == {"b": ["x", "y", "z"], "a": [1, 2, 3]}
    assert conform(table.slice(0, 0), schema).schema.equals(schema)


def test_no_columns_keep_the_rows() -> None:
    assert conform(pa.RecordBatch.from_pydict({"a": [1, 2]}), pa.schema([])).num_rows == 2


def test_the_nested_columns_of_javas_own_file_fit_its_schema() -> None:
    """Apache Hudi writes two-level lists, whose elements Parquet readers take for required."""
    schema = with_meta(arrow_schema((FIXTURE / "schema.avsc").read_text(encoding="utf-8")))
    file = pq.read_table(FIXTURE / "types.parquet")
    assert str(file.schema.field("al").type) == "list<array: int64 not null>"

    table = conform(file, schema)

    table.validate(full=True)
    assert all(same_type(a, b) for a, b in zip(table.schema.types, schema.types, strict=True))
    full, empty = sorted(table.to_pylist(), key=lambda row: row["id"])
    assert (full["aal"], full["al"], full["als"]) == ([[1, 2], [3]], [1, 2], [{"x": 1, "y": "a"}])
    assert (full["m"], full["ms"]) == ([("a", 1)], [("k", {"v": Decimal("1.50"), "w": ["p", "q"]})])
    assert full["st1"] == {"a": 1, "b": {"c": "cc", "d": Decimal("2.5000")}, "e": Decimal("3.5")}
    assert (full["d15"], full["ts"].microsecond, full["nn"], full["req"]) == (Decimal("-1.005"), 789123, 5, {"z": 6})
    assert {name for name, value in empty.items() if value is not None and not name.startswith("_hoodie")} == {
        "id",
        "nn",
        "req",
    }


@pytest.mark.parametrize(
    ("array", "kind", "values"),
    [
        (pa.array([1, None], pa.int8()), pa.int32(), [1, None]),
        (pa.array([1, None], pa.int32()), pa.int64(), [1, None]),
        (pa.array([-1, None], pa.int64()), pa.string(), ["-1", None]),
        (pa.array([1.5, None], pa.float32()), pa.float64(), [1.5, None]),
        (pa.array(["a", None], pa.large_string()), pa.string(), ["a", None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.string(), ["a", None, "a"]),
        (pa.array([b"a", None], pa.large_binary()), pa.binary(), [b"a", None]),
        (pa.array([b"ab", None], pa.binary(2)), pa.binary(), [b"ab", None]),
        (pa.array([Decimal("1.5")], pa.decimal128(2, 1)), pa.decimal128(5, 3), [Decimal("1.500")]),
        (pa.array([Decimal("1.5")], pa.decimal256(2, 1)), pa.decimal128(2, 1), [Decimal("1.5")]),
        (pa.array([dt.date(2024, 2, 29)], pa.date64()), pa.date32(), [dt.date(2024, 2, 29)]),
        (pa.array([1_000], pa.timestamp("ns")), pa.timestamp("us"), [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (
            pa.array([0], pa.timestamp("ms", "Asia/Tokyo")),
            pa.timestamp("us", "UTC"),
            [dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)],
        ),
        # How pyarrow 15 reads the two-level lists of lists of Apache Hudi.
        (pa.array([[{"array": [1, 2]}, {"array": []}], None]), element(element(pa.int64())), [[[1, 2], []], None]),
        (pa.nulls(2), pa.int32(), [None, None]),
        (pa.nulls(2), mapping(struct(a_=pa.int32())), [None, None]),
    ],
)
def test_a_value_is_brought_to_the_tables_type(array: pa.Array, kind: pa.DataType, values: list[Any]) -> None:
    assert conformed(array, kind).to_pylist() == values


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1], pa.int64()), pa.int32()),
        (pa.array([1], pa.uint8()), pa.int32()),
        (pa.array([1.0], pa.float64()), pa.float32()),
        (pa.array(["1"]), pa.int32()),
        (pa.array([True]), pa.string()),
        (pa.array([True]), pa.int32()),
        (pa.array([Decimal("1.25")], pa.decimal128(3, 2)), pa.decimal128(3, 1)),
        (pa.array([Decimal("1.2")], pa.decimal128(5, 1)), pa.decimal128(5, 2)),
        (pa.array([0], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([0], pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.array([0], pa.timestamp("us")), pa.date32()),
        (pa.array([[1]]), pa.int64()),
        (pa.array([1]), element(pa.int64())),
        (pa.array([{"a": 1}]), mapping(pa.int64())),
        (pa.array([{"key": "k", "value": 1}]), element(pa.int64())),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), element(struct(key_=pa.string(), value=pa.int64()))),
    ],
)
def test_another_type_is_refused_with_both(array: pa.Array, kind: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError) as raised:
        conformed(array, kind)

    assert "'c'" in raised.value.what
    assert str(array.type) in raised.value.what
    assert str(kind) in raised.value.what


@pytest.mark.parametrize("width", ["ns", "us"])
def test_a_time_that_is_too_fine_for_the_table_is_refused(width: str) -> None:
    with pytest.raises(SchemaMismatchError, match="'c'"):
        conformed(pa.array([1], pa.timestamp(width)), pa.timestamp("ms"))


def test_a_missing_column_is_refused_by_name() -> None:
    with pytest.raises(SchemaMismatchError, match=r"'b'.*'B'"):
        conform(pa.RecordBatch.from_pydict({"a": [1], "B": [1]}), pa.schema([("a", pa.int64()), ("b", pa.int64())]))


def test_a_missing_column_is_filled_with_nulls_when_asked_to() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", element(struct(x_=mapping(pa.string()))))])

    batch = conform(pa.RecordBatch.from_pydict({"a": [1, 2]}), schema, fill_missing=True)

    batch.validate(full=True)
    assert batch.to_pydict() == {"a": [1, 2], "b": [None, None]}
    assert batch.schema.equals(schema)


def test_a_missing_required_column_is_refused_even_then() -> None:
    with pytest.raises(SchemaMismatchError, match="'b'"):
        conform(
            pa.RecordBatch.from_pydict({"a": [1]}),
            pa.schema([pa.field("b", pa.int64(), nullable=False)]),
            fill_missing=True,
        )


def test_fields_of_structs_are_taken_by_name_and_filled_like_columns() -> None:
    array = pa.array([[{"b": 1, "a": "x"}], None, []], pa.list_(struct(b=pa.int32(), a=pa.string())))
    kind = element(struct(a=pa.string(), new=pa.date32(), b=pa.int64()))

    with pytest.raises(SchemaMismatchError, match=r"'c\.element\.new'"):
        conformed(array, kind)
    assert conformed(array, kind, fill_missing=True).to_pylist() == [[{"a": "x", "new": None, "b": 1}], None, []]


def test_a_field_that_the_tables_struct_lacks_is_left_out_as_a_column_is() -> None:
    assert conformed(pa.array([{"a": 1, "b": 2}, None]), struct(a=pa.int64())).to_pylist() == [{"a": 1}, None]


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array(["2024-02-29", "soon"]), pa.date32()),
        (pa.array(["1.555"]), pa.decimal128(5, 2)),
        (pa.array([1234], pa.int32()), pa.decimal128(5, 2)),
        (pa.array([1e-5]), pa.decimal128(5, 2)),
        (pa.array([float("nan")]), pa.decimal128(5, 2)),
        (pa.array([b"\xff"]), pa.string()),
    ],
)
def test_a_value_that_has_no_place_in_the_tables_type_is_refused(array: pa.Array, kind: pa.DataType) -> None:
    """Apache Hudi rounds decimals and replaces what is no UTF-8."""
    with pytest.raises(SchemaMismatchError, match=r"'c'.*does not fit"):
        conformed(array, kind)


def test_two_columns_of_one_name_are_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])

    with pytest.raises(SchemaMismatchError, match="'a'"):
        conform(batch, pa.schema([("a", pa.int64())]))


@pytest.mark.parametrize(
    ("array", "kind", "path", "count"),
    [
        (pa.array([1, None, None]), pa.int64(), "c", 2),
        (pa.array([{"a_": 1}, {"a_": None}]), struct(a_=pa.int64()), "c.a_", 1),
        (pa.array([{"a_": 1}, None]), struct(a_=pa.int64()), "c", 1),
        (pa.array([[1, None], [None]]), element(pa.int64(), False), "c.element", 2),
        (
            pa.array([[("k", None)]], pa.map_(pa.string(), pa.int64())),
            mapping(pa.int64(), False),
            "c.value",
            1,
        ),
        (
            pa.array([{"s": {"x_": None}}, {"s": None}], struct(s=struct(x_=pa.int64()))),
            struct(s=struct(x_=pa.int64())),
            "c.s.x_",
            1,
        ),
    ],
)
def test_a_null_where_none_may_be_is_refused_with_its_place_and_count(
    array: pa.Array, kind: pa.DataType, path: str, count: int
) -> None:
    with pytest.raises(SchemaMismatchError, match=rf"'{path}' .* in {count} of"):
        conformed(array, kind, nullable=False)


def test_what_lies_under_a_null_struct_may_be_null() -> None:
    kind = struct(s_=struct(x_=pa.int64(), l_=element(pa.string(), False), m_=mapping(pa.int64(), False)))
    loose = struct(x_=pa.int64(), l_=element(pa.string()), m_=mapping(pa.int64()))
    inner = pa.array([None, {"x_": 1, "l_": ["a"], "m_": [("k", 2)]}, {"x_": None, "l_": None, "m_": None}], loose)
    array = pa.StructArray.from_arrays([inner], names=["s_"], mask=pa.array([True, False, True]))

    result = conformed(array, kind)

    assert result.to_pylist() == array.to_pylist()
    inner = result.field(0)
    assert [inner.null_count, *(inner.field(position).null_count for position in range(3))] == [0, 0, 0, 0]
    assert written_and_read(result).to_pylist() == array.to_pylist()


def test_nulls_that_are_hidden_in_a_list_under_its_null_are_no_nulls() -> None:
    values = pa.array([1, None, 3], pa.int64())
    array = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values, mask=pa.array([False, True, False]))

    assert conformed(array, element(pa.int64(), False)).to_pylist() == [[1], None, [3]]


def test_a_slice_is_judged_without_what_it_leaves_out() -> None:
    array = pa.array([[None], [1, 2], None, [3], [None]])

    assert conformed(array.slice(1, 3), element(pa.int64(), False)).to_pylist() == [[1, 2], None, [3]]


def test_a_column_that_fits_already_is_not_copied() -> None:
    kind = element(struct(a=mapping(pa.string())))
    array = pa.array([[{"a": [("k", "v")]}], None], kind)

    assert conformed(array, kind) is array or conformed(array, kind).buffers()[0].address == array.buffers()[0].address


def written_and_read(array: pa.Array) -> pa.Array:
    """Return the column as it comes back from a Parquet file."""
    schema = pa.schema([pa.field("c", array.type)])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([array], schema=schema), sink, store_schema=False)
    return pq.read_table(io.BytesIO(sink.getvalue())).column(0).combine_chunks()


def test_a_missing_struct_with_required_fields_is_null_in_a_file() -> None:
    """Parquet's writer looks at required fields below a null, too."""
    inner = struct(a_=pa.int32(), t_=pa.string(), b=struct(d_=pa.decimal128(5, 2), x=pa.int64()))
    kind = struct(s_=inner, l_=element(inner, False), m_=mapping(inner, False), n=inner)
    column = pa.field("c", kind)
    absent = pa.record_batch({"other": pa.nulls(3)})
    null = pa.record_batch({"c": pa.nulls(3)})
    for rows in (absent, null):
        conformed_column = conform(rows, pa.schema([column]), fill_missing=True).column(0)
        conformed_column.validate(full=True)

        assert written_and_read(conformed_column).to_pylist() == [None] * 3
        assert same_type(conformed_column.type, kind)


LEAVES: dict[pa.DataType, tuple[list[pa.DataType], st.SearchStrategy[Any]]] = {
    pa.int32(): ([pa.int8(), pa.int16(), pa.dictionary(pa.int8(), pa.int32())], st.integers(-128, 127)),
    pa.int64(): ([pa.int32(), pa.int8()], st.integers(-128, 127)),
    pa.float64(): ([pa.float32()], st.integers(-8, 8).map(float)),
    pa.bool_(): ([], st.booleans()),
    pa.string(): ([pa.large_string(), pa.dictionary(pa.int32(), pa.string())], st.text("aé😀", max_size=3)),
    pa.binary(): ([pa.large_binary(), pa.dictionary(pa.int8(), pa.binary())], st.binary(max_size=2)),
    pa.decimal128(9, 2): ([pa.decimal128(3, 0)], st.integers(-99, 99).map(Decimal)),
    pa.date32(): ([pa.date64()], st.dates(dt.date(1950, 1, 1), dt.date(2050, 1, 1))),
    pa.timestamp("us"): ([pa.timestamp("ms")], st.integers(0, 9).map(lambda ms: dt.datetime(2024, 1, 1, 0, 0, ms))),
}


def structs(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.lists(st.tuples(kinds, st.booleans()), min_size=1, max_size=3)
    return fields.map(
        lambda found: pa.struct([pa.field(f"f{i}", kind, nullable=null) for i, (kind, null) in enumerate(found)])
    )


TYPES = st.recursive(
    st.sampled_from(list(LEAVES)),
    lambda kinds: st.builds(element, kinds, st.booleans()) | st.builds(mapping, kinds, st.booleans()) | structs(kinds),
    max_leaves=6,
)


@st.composite
def layouts(draw: st.DrawFn, kind: pa.DataType) -> pa.DataType:
    """Return another type whose values have a place in `kind`; everything in it may be null."""
    if kind in LEAVES:
        return draw(st.sampled_from([kind, *LEAVES[kind][0]]))
    if pa.types.is_list(kind):
        name = draw(st.sampled_from(["element", "array", "item"]))
        make = draw(st.sampled_from([pa.list_, pa.large_list]))
        required = draw(st.booleans()) and not kind.value_field.nullable
        return make(pa.field(name, draw(layouts(kind.value_type)), nullable=not required))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), draw(layouts(kind.item_type)))
    fields = [pa.field(field.name, draw(layouts(field.type))) for field in children(kind)]
    return pa.struct(draw(st.permutations(fields)))


def values_of(kind: pa.DataType, nullable: bool) -> st.SearchStrategy[Any]:
    if kind in LEAVES:
        values = LEAVES[kind][1]
    elif pa.types.is_list(kind):
        values = st.lists(values_of(kind.value_type, kind.value_field.nullable), max_size=3)
    elif pa.types.is_map(kind):
        items = values_of(kind.item_type, kind.item_field.nullable)
        values = st.lists(st.tuples(st.sampled_from("abc"), items), max_size=3)
    else:
        values = st.fixed_dictionaries({f.name: values_of(f.type, f.nullable) for f in children(kind)})
    return st.none() | values if nullable else values


def sorted_fields(value: Any) -> Any:
    """Return a value with numbers and times alike whatever type they came from."""
    if isinstance(value, dict):
        return {name: sorted_fields(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [sorted_fields(each) for each in value]
    return value


@given(st.data())
def test_any_nested_column_comes_out_with_its_values_and_exactly_the_type(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    nullable = data.draw(st.booleans())
    layout = data.draw(layouts(kind))
    rows = data.draw(st.lists(values_of(kind, nullable), max_size=6))
    around = [data.draw(st.lists(values_of(kind, True), max_size=3)) for _ in range(2)]
    array = pa.array([*around[0], *rows, *around[1]], layout).slice(len(around[0]), len(rows))

    result = conformed(array, kind, nullable=nullable)

    assert sorted_fields(result.to_pylist()) == sorted_fields(rows)
    assert sorted_fields(written_and_read(result).to_pylist()) == sorted_fields(rows)
