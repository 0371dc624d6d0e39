"""Rows brought to the table's types: text and wider numbers in columns of whole numbers, wherever rows come in."""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
import pytest
from pyhudi.errors import ColumnValueError, SchemaMismatchError
from pyhudi.operations.inspect.history import last_commit
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import property_keys as key
from pyhudi.table.config.key_types import KeyGeneratorType
from pyhudi.table.schema.changes import SchemaChange
from support.drive import rows_of, write
from support.places import Place, below, files_below
from support.recorded.ddl import columns, show
from support.rules.ends import assert_whole
from support.write_settings import write_settings

NUMBERS = "id int, p int, ts int, n int, m bigint"
TEXTS = "id string, p string, ts string, n string, m string"
WIDE = "id bigint, p bigint, ts bigint, n int, m bigint"
BUCKETS = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=3)
SHAPES = {
    "buckets": BUCKETS,
    "log files": replace(BUCKETS, table_type="MERGE_ON_READ"),
    "looked up": replace(BUCKETS, bucket_count=None, index_type="SIMPLE"),
    "bloom filters": replace(BUCKETS, bucket_count=None, index_type="BLOOM"),
    "looked up everywhere": replace(BUCKETS, bucket_count=None, index_type="GLOBAL_SIMPLE"),
    "two key columns": replace(BUCKETS, record_key_fields=("id", "m")),
    "hive style": replace(BUCKETS, hive_style=True),
}
MISSPELT = ["07", " 7", "+7", "-0", "7.0", "", "seven", "7\n", "2147483648"]
PLACED = pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
OF_EACH_SHAPE = pytest.mark.parametrize("table", SHAPES.values(), ids=[name.replace(" ", "-") for name in SHAPES])


def rows(ddl: str, *values: tuple[object, ...]) -> pa.Table:
    """Return rows of columns given as DDL, their numbers as text where a column is text."""
    schema = columns(ddl)
    texts = [pa.types.is_string(kind) for kind in schema.types]
    spelt = [
        [str(one) if text and one is not None else one for one, text in zip(row, texts, strict=True)] for row in values
    ]
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in spelt], schema)


FIRST = [(number, number % 2, 5, number, -number) for number in range(9)]
NEXT = [(0, 0, 6, 10, 0), (-3, 1, 6, 9, 1), (5, 1, 4, 99, -5), (7, 1, 7, None, -7)]


def columns_of(path: Place) -> str:
    return show(pa.schema(list(open_snapshot(str(path)).schema)[5:]))


def all_rows(path: Place) -> list[tuple[object, ...]]:
    return sorted(rows_of(path, "_hoodie_record_key", "_hoodie_partition_path", "id", "p", "ts", "m"))


@PLACED
@OF_EACH_SHAPE
@pytest.mark.parametrize("given", [TEXTS, WIDE], ids=["text", "wider"])
def test_rows_of_other_types_do_what_rows_of_the_tables_types_do(
    anywhere: Place, table: TableSettings, given: str, colocated: bool
) -> None:
    """They are found, ordered and placed alike, and no column changes its type."""
    settings = WriteSettings(colocated=colocated and table.index_type is None)
    outcomes = []
    for name, ddl in (("t", given), ("expected", NUMBERS)):
        path = below(anywhere, name)
        write(path, rows(NUMBERS, *FIRST), table=table)
        result = write(path, rows(ddl, *NEXT), settings=settings)
        assert result.schema_changes == ()
        assert columns_of(path) == NUMBERS
        assert_whole(path)
        outcomes.append((result.inserts, result.updates, all_rows(path), rows_of(path, "id", "m")))

    assert outcomes[0] == outcomes[1]


@PLACED
def test_the_greatest_number_is_the_greatest(anywhere: Place, colocated: bool) -> None:
    """10 comes after 9, where the text of both does not."""
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, (1, 0, 9, 9, 0)), table=BUCKETS)
    write(path, rows(TEXTS, (1, 0, 10, 10, 0)), settings=WriteSettings(colocated=colocated))

    assert rows_of(path, "ts", "n") == [(10, 10)]


@PLACED
@OF_EACH_SHAPE
@pytest.mark.parametrize("name", ["id", "p", "ts", "n"])
def test_text_that_is_spelt_otherwise_is_refused_and_leaves_the_table_as_it_was(
    anywhere: Place, table: TableSettings, name: str, colocated: bool
) -> None:
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=table)
    before = {file: data for file, data in files_below(path).items() if file.endswith((".parquet", ".log", "commit"))}
    settings = WriteSettings(colocated=colocated and table.index_type is None)
    good = rows(TEXTS, *NEXT)
    at = good.schema.get_field_index(name)
    for bad in MISSPELT:
        with pytest.raises(ColumnValueError, match=f"Column '{name}' is string") as refused:
            write(path, good.set_column(at, name, pa.array(["1", bad, "2", None])), settings=settings)
        assert repr(bad) in refused.value.what
        assert f'df.withColumn("{name}", col("{name}").cast("int"))' in refused.value.todo
        assert "hoodie.pyhudi.schema.number.to.text=true" in refused.value.todo

    assert columns_of(path) == NUMBERS
    after = {file: data for file, data in files_below(path).items() if file.endswith((".parquet", ".log", "commit"))}
    assert after == before


@OF_EACH_SHAPE
@pytest.mark.parametrize("name", ["id", "p", "ts"])
def test_a_wider_number_that_does_not_fit_is_refused(anywhere: Place, table: TableSettings, name: str) -> None:
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=table)
    good = rows(WIDE, *NEXT)
    at = good.schema.get_field_index(name)
    for bad in (1 << 31, -(1 << 31) - 1):
        with pytest.raises(ColumnValueError, match=f"Column '{name}' is bigint .* which {bad} does not fit"):
            write(path, good.set_column(at, name, pa.array([1, 2, bad, 3])))

    assert columns_of(path) == NUMBERS
    assert len(all_rows(path)) == len(FIRST)


def test_the_error_counts_the_values_of_a_batch(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=BUCKETS)
    good = rows(TEXTS, *NEXT)

    with pytest.raises(ColumnValueError, match=r"'x' is not how .* 2 of 4 values of one batch"):
        write(path, good.set_column(3, "n", pa.array(["1", "x", None, "07"])))


@PLACED
@OF_EACH_SHAPE
@pytest.mark.parametrize("given", ["string", "bigint"])
def test_deletes_find_keys_given_as_text_or_wider(
    anywhere: Place, table: TableSettings, given: str, colocated: bool
) -> None:
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=table)
    settings = write_settings(colocated=colocated and table.index_type is None, delete_missing_ok=False)
    ddl = f"id {given}, p {given}, m {given}"
    write(path, rows(ddl, (1, 1, -1), (4, 0, -4)), operation="delete", settings=settings)

    assert sorted(row[0] for row in rows_of(path, "id")) == [0, 2, 3, 5, 6, 7, 8]
    bad = {"string": ("07", "1", "-7"), "bigint": (1 << 31, 1, -7)}[given]
    with pytest.raises(ColumnValueError, match="Column 'id'"):
        write(path, rows(ddl, bad), operation="delete")
    assert len(rows_of(path, "id")) == 7


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_each_operation_takes_text_and_refuses_what_is_no_number(anywhere: Place, operation: str) -> None:
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=BUCKETS)
    with pytest.raises(ColumnValueError, match="'x'"):
        write(path, rows(TEXTS, (20, 1, 1, "x", 1)), operation=operation)
    assert len(rows_of(path, "id")) == len(FIRST)
    write(path, rows(TEXTS, (20, 1, 1, -5, 1)), operation=operation)

    assert (20, -5) in rows_of(path, "id", "n")
    assert columns_of(path) == NUMBERS


def test_partial_updates_take_text(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=BUCKETS)
    partial = WriteSettings(partial_update=True)
    write(path, rows("id string, p bigint, ts string, n string", (1, 1, 10, 77)), settings=partial)

    assert (1, 77, -1) in rows_of(path, "id", "n", "m")
    with pytest.raises(ColumnValueError, match=r"'7\.0'"):
        write(path, rows("id string, p bigint, ts string, n string", (1, 1, 10, "7.0")), settings=partial)
    assert columns_of(path) == NUMBERS


def test_tables_that_generate_their_keys_take_text(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows("p int, n int", (1, 1)), table=TableSettings(partition_fields=("p",)), operation="insert")
    write(path, rows("p string, n string", (1, 2)), operation="insert")

    assert rows_of(path, "p", "n", "_hoodie_partition_path") == [(1, 1, "1"), (1, 2, "1")]
    with pytest.raises(ColumnValueError, match="'01'"):
        write(path, rows("p string, n string", ("01", 2)), operation="insert")


@pytest.mark.parametrize("given", ["string", "bigint"])
def test_epochs_given_as_text_make_the_folders_of_their_times(anywhere: Place, given: str) -> None:
    path = below(anywhere, "t")
    options = {key.TIME_TYPE: "UNIX_TIMESTAMP", key.TIME_OUTPUT_FORMAT: "yyyy/MM/dd"}
    timed = replace(BUCKETS, key_generator=KeyGeneratorType.TIMESTAMP, time_options=options)
    write(path, rows("id int, p int, ts int", (1, 86_400, 1)), table=timed)
    write(path, rows(f"id {given}, p {given}, ts int", (1, 86_401, 2), (2, 0, 1)))

    assert rows_of(path, "id", "p", "_hoodie_partition_path") == [(1, 86_401, "1970/01/02"), (2, 0, "1970/01/01")]
    with pytest.raises(ColumnValueError, match="Column 'p'"):
        write(path, rows(f"id {given}, p {given}, ts int", (1, {"string": "1e5", "bigint": 1 << 40}[given], 3)))
    assert columns_of(path) == "id int, p int, ts int"


def test_text_inside_of_structs_lists_and_maps_is_brought_too(anywhere: Place) -> None:
    path = below(anywhere, "t")
    table_ddl = "id string, ts int, s struct<a:int>, l array<struct<x:bigint>>, m map<string,int>"
    text = "id string, ts int, s struct<a:string>, l array<struct<x:string>>, m map<string,string>"
    table = TableSettings(record_key_fields=("id",), ordering_fields=("ts",), bucket_count=1)
    write(path, rows(table_ddl, ("k", 1, {"a": 1}, [{"x": 1}], {"u": 1})), table=table)
    write(path, rows(text, ("k", 2, {"a": "7"}, [{"x": "-8"}, None], {"u": "9", "v": None})))

    assert columns_of(path) == table_ddl
    assert rows_of(path, "s", "l", "m") == [({"a": 7}, [{"x": -8}, None], [("u", 9), ("v", None)])]
    for column, value in (("s.a", {"a": "07"}), ("l.element.x", [{"x": "1.0"}]), ("m.value", {"u": ""})):
        name = column[0]
        bad = {"s": {"a": "7"}, "l": [], "m": {}, name: value}
        with pytest.raises(ColumnValueError, match=f"Column '{column}' is string") as refused:
            write(path, rows(text, ("k", 3, bad["s"], bad["l"], bad["m"])))
        assert "withColumn" not in refused.value.todo


FLOATS = "id int, p int, ts int, n {0}, m {0}"
NAN = float("nan")
OF_BOTH_FLOATS = pytest.mark.parametrize(("kind", "bound"), [("float", 1 << 24), ("double", 1 << 53)])


@PLACED
@OF_EACH_SHAPE
@OF_BOTH_FLOATS
def test_floats_without_a_fraction_are_whole_numbers_and_missing_ones_null(
    anywhere: Place, caplog: pytest.LogCaptureFixture, table: TableSettings, colocated: bool, kind: str, bound: int
) -> None:
    """As pandas makes doubles of whole numbers of which one is missing; key columns take no floats."""
    path, takes = below(anywhere, "t"), "m" not in table.record_key_fields
    ddl = FLOATS.format(kind) if takes else FLOATS.format(kind).replace(f"m {kind}", "m bigint")
    write(path, rows(NUMBERS, *FIRST), table=table)
    settings = WriteSettings(colocated=colocated and table.index_type is None)
    greatest = min(bound, 1 << 31) - 1
    given = [(1, 1, 6, float(greatest), -1), (2, 0, 6, -0.0, -2), (3, 1, 6, NAN, -3), (4, 0, 6, None, -4)]
    wide = [(*one[:4], NAN if one[0] == 3 else float(1 - bound)) if takes else one for one in given]
    with caplog.at_level(logging.INFO, "pyhudi.tables"):
        result = write(path, rows(ddl, *wide), settings=settings)

    assert (result.updates, result.schema_changes, columns_of(path)) == (4, (), NUMBERS)
    assert rows_of(path, "id", "n")[1:5] == [(1, greatest), (2, 0), (3, None), (4, None)]
    assert rows_of(path, "id", "m")[1:5] == [(n, (None if n == 3 else 1 - bound) if takes else -n) for n in range(1, 5)]
    [line] = [one.getMessage() for one in caplog.records if "null or NaN" in one.getMessage()]
    assert line.endswith(f"of the table {result.path}: {'m 1, ' if takes else ''}n 2.")
    assert_whole(path)


@OF_BOTH_FLOATS
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_other_floats_are_refused_with_their_column_and_row(
    anywhere: Place, operation: str, kind: str, bound: int
) -> None:
    path, good = below(anywhere, "t"), [(number, 1, 6, 1.0, 1.0) for number in (3, 7, 9)]
    write(path, rows(NUMBERS, *FIRST), table=BUCKETS)
    before = all_rows(path)
    for at, name in ((3, "n"), (4, "m")):
        for bad in (7.5, float(bound), float(-bound), float("inf"), *([2.0**31] if at == 3 else [])):
            spoilt = [*good[:1], (*good[1][:at], bad, *good[1][at + 1 :]), good[2]]
            with pytest.raises(
                ColumnValueError, match=f"Column '{name}' is {kind} .*; the row has .* key '7'"
            ) as refused:
                write(path, rows(FLOATS.format(kind), *spoilt), operation=operation)
            assert f"{bad!r} is none that fits" in refused.value.what
            assert ("hoodie.pyhudi.schema.int.to.double=true" in refused.value.todo) == (name == "n")

    assert (columns_of(path), all_rows(path)) == (NUMBERS, before)


@OF_BOTH_FLOATS
def test_floats_inside_of_structs_lists_and_maps_are_brought_too(
    anywhere: Place, caplog: pytest.LogCaptureFixture, kind: str, bound: int
) -> None:
    path = below(anywhere, "t")
    table_ddl = "id string, s struct<a:int>, l array<struct<x:bigint>>, m map<string,int>"
    ddl = table_ddl.replace("bigint", kind).replace("int", kind)
    table = TableSettings(record_key_fields=("id",), bucket_count=1)
    write(path, rows(table_ddl, ("k", {"a": 1}, [{"x": 1}], {"u": 1})), table=table)
    given = ("k", {"a": 7.0}, [{"x": -8.0}, None, {"x": NAN}], {"u": 9.0, "v": NAN})
    with caplog.at_level(logging.INFO, "pyhudi.tables"):
        write(path, rows(ddl, ("j", None, None, None), given))
    write(path, rows("id string", ("j",)), operation="delete")

    assert columns_of(path) == table_ddl
    assert rows_of(path, "s", "l", "m") == [({"a": 7}, [{"x": -8}, None, {"x": None}], [("u", 9), ("v", None)])]
    assert [one.getMessage()[-26:] for one in caplog.records if "null or NaN" in one.getMessage()] == [
        ": l.element.x 1, m.value 1."[-26:]
    ]
    good = {"s": {"a": 1.0}, "l": [{"x": 1.0}] * 3, "m": {"u": 1.0, "v": 2.0}}
    bad = {"s.a": {"a": 0.5}, "l.element.x": [{"x": 1.0}, {"x": float(bound)}], "m.value": {"u": 1.0, "v": 0.5}}
    for column, value in bad.items():
        spoilt = {**good, column[0]: value}
        with pytest.raises(ColumnValueError, match=f"Column '{column}' is {kind} .* key 'b'"):
            write(path, rows(ddl, *((key, *kind_of.values()) for key, kind_of in (("a", good), ("b", spoilt)))))


def test_a_missing_float_is_refused_where_the_column_may_not_be_null(anywhere: Place) -> None:
    path, filling = below(anywhere, "t"), write_settings(reconcile=True)
    write(path, rows("id int, n int not null", (1, 1)), table=TableSettings(record_key_fields=("id",)))

    with pytest.raises(SchemaMismatchError, match="Column 'n' may not be null in the table and is null in 1 of 2"):
        write(path, rows("id int, n double", (1, 2.0), (2, NAN)), settings=filling)
    assert rows_of(path, "id", "n") == [(1, 1)]


def test_keys_partitions_and_the_order_take_no_floats(anywhere: Place) -> None:
    path, settings = below(anywhere, "t"), write_settings(int_to_double=True)
    write(path, rows(NUMBERS, *FIRST), table=BUCKETS)
    for name in ("id", "p", "ts"):
        ddl = NUMBERS.replace(f"{name} int", f"{name} double")
        with pytest.raises(SchemaMismatchError, match=rf"{name} \| int \| double \| cast it to int"):
            write(path, rows(ddl, (1, 1, 9, 1, 1)), settings=settings)


def test_an_option_makes_an_int_column_double(anywhere: Place) -> None:
    """A bigint column stays, whose numbers a double would round."""
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=BUCKETS)
    done = write(path, rows(FLOATS.format("double"), (1, 1, 6, 7.5, 3.0)), settings=write_settings(int_to_double=True))

    assert [str(change) for change in done.schema_changes] == ["n int -> double"]
    assert rows_of(path, "id", "n", "m")[:2] == [(0, 0.0, 0), (1, 7.5, 3)]


def test_text_for_floats_and_doubles_is_refused_before_a_task_runs(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows("id int, f float, d double", (1, 1.0, 1.0)), table=TableSettings(record_key_fields=("id",)))

    with pytest.raises(SchemaMismatchError, match=r"f \| float \| string \| cast it to float") as refused:
        write(path, rows("id int, f string, d double", (1, "1.0", 1.0)))
    assert "hoodie.pyhudi.schema.number.to.text=true" in refused.value.todo
    with pytest.raises(SchemaMismatchError, match=r"d \| double \| string \| cast it to double") as refused:
        write(path, rows("id int, f float, d string", (1, 1.0, "1.0")))
    assert "number.to.text" not in refused.value.todo


def test_a_column_that_is_text_already_stays_text(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(TEXTS, (1, 0, "a", "x", 0)), table=BUCKETS)
    write(path, rows(NUMBERS, (1, 0, 7, 10, 0), (2, 0, 7, 9, 0)))

    assert columns_of(path) == TEXTS
    assert rows_of(path, "id", "n") == [("1", "x"), ("2", "9")]


def test_the_option_makes_numbers_text_as_in_apache_hudi(anywhere: Place) -> None:
    """But for the column that orders rows, in which 9 would come after 10."""
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=BUCKETS)
    settings = write_settings(number_to_text=True)
    result = write(path, rows(TEXTS, (1, 1, 10, "x", 1), ("a", 1, 9, "07", 1)), settings=settings)

    assert columns_of(path) == "id string, p string, ts int, n string, m string"
    assert ("1", "1", 10, "x") in rows_of(path, "id", "p", "ts", "n")
    assert [str(one) for one in result.schema_changes] == [
        "id int -> string",
        "p int -> string",
        "n int -> string",
        "m bigint -> string",
    ]
    assert_whole(path)


def test_the_option_lets_a_key_become_wider(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(NUMBERS, *FIRST), table=BUCKETS)
    write(path, rows(WIDE, (1 << 40, 1, 1 << 40, 1, 1)), settings=write_settings(number_to_text=True))

    assert columns_of(path) == WIDE
    assert len(rows_of(path, "id")) == len(FIRST) + 1


def test_a_commit_lists_every_column_that_it_adds_or_makes_wider(
    anywhere: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """The result of the call, what `last_commit` makes of the instant, and one line of the log."""
    path = below(anywhere, "t")
    first = "id int, v int, s struct<a:int>, l array<struct<x:int>>, m map<string,decimal(5,2)>"
    wider = (
        "id int, v bigint, s struct<a:bigint,b:string>, l array<struct<x:int,y:date>>, m map<string,decimal(7,2)>, "
        "w struct<z:int>"
    )
    made = write(path, rows(first, (1, 1, {"a": 1}, [], {})), table=TableSettings(record_key_fields=("id",)))
    with caplog.at_level(logging.INFO, "pyhudi.tables"):
        result = write(path, rows(wider, (1, 1, {"a": 1, "b": "x"}, [], {}, {"z": 1})))

    assert made.schema_changes == ()
    assert result.schema_changes == (
        SchemaChange("v", "int", "bigint"),
        SchemaChange("s.a", "int", "bigint"),
        SchemaChange("s.b", "", "string"),
        SchemaChange("l.element.y", "", "date"),
        SchemaChange("m.value", "decimal(5,2)", "decimal(7,2)"),
        SchemaChange("w", "", "struct<z:int>"),
    )
    assert last_commit(open_storage(str(path))) == result
    lines = [one.getMessage() for one in caplog.records if "changed columns" in one.getMessage()]
    assert lines == [
        f"The commit {result.instant} changed columns of the table {result.path}: v int -> bigint, s.a int -> bigint, "
        "s.b string (new), l.element.y date (new), m.value decimal(5,2) -> decimal(7,2), w struct<z:int> (new)."
    ]


def test_a_write_that_changes_no_column_lists_none(anywhere: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Neither does one that makes all columns anew, by mode overwrite."""
    path = below(anywhere, "t")
    write(path, rows("id int, v int", (1, 1)), table=TableSettings(record_key_fields=("id",)))
    with caplog.at_level(logging.INFO, "pyhudi.tables"):
        same = write(path, rows("id int, v int", (1, 2)))
        gone = write(path, rows("id int", (1,)), operation="delete")
        anew = write(path, rows("id string, w int", (1, 2)), overwrite=True)

    assert same.schema_changes == gone.schema_changes == anew.schema_changes == ()
    assert not [one for one in caplog.records if "changed columns" in one.getMessage()]


@pytest.mark.parametrize("kept", ["", "no json", "{}", '[["a", "b"]]', '[["a", "b", 3]]'])
def test_what_another_writer_noted_is_no_change(anywhere: Place, kept: str) -> None:
    path = below(anywhere, "t")
    settings = write_settings(extra_metadata={"pyhudi.schema.changes": kept})
    done = write(path, rows("id int", (1,)), table=TableSettings(record_key_fields=("id",)), settings=settings)

    assert done.schema_changes == ()
