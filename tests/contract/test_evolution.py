"""Writes whose columns differ from the table's, from plan to commit, and what every reader then shows."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.errors import SchemaMismatchError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.options.parsing import parse_options
from pyhudi.reader.snapshot import open_snapshot
from support.drawn.evolving import ALIKE, check_evolutions
from support.drive import rows_of, write
from support.faults.races import check_new_column_beside_a_delete, check_two_new_columns
from support.places import ALSO_ON_S3, Place, below, files_below
from support.recorded.ddl import columns, show
from support.rules.ends import assert_whole
from support.share import share_of
from support.write_settings import write_settings

KEYED = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2)
COLUMNS = "id int, p int, ts int, v int"


def rows(ddl: str, *values: tuple[object, ...]) -> pa.Table:
    """Return rows of columns given as DDL."""
    schema = columns(ddl)
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema)


def columns_of(path: Place) -> str:
    return show(pa.schema(list(open_snapshot(str(path)).schema)[5:]))


@settings(max_examples=share_of(12), deadline=None)
@given(st.integers(0, 1 << 32))
def test_any_chain_of_changes_leaves_what_a_dict_says(seed: int) -> None:
    """Nested columns come, go and become wider; old rows are null or wider in them, rewritten or not."""
    check_evolutions(seed)


@settings(max_examples=share_of(8), deadline=None)
@given(st.integers(0, 1 << 32))
def test_hudi_rs_reads_any_such_table(seed: int) -> None:
    check_evolutions(seed, kinds=ALIKE)


@pytest.mark.parametrize(
    "examples", [pytest.param(15, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.long)]
)
def test_long_chains_of_changes(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.integers(0, 1 << 32))
    def chains(seed: int) -> None:
        check_evolutions(seed, steps=12)

    chains()


def test_the_columns_of_keys_folders_and_order_become_wider_by_the_option(anywhere: Place) -> None:
    """The key 7 is found again as the text "7", in its own partition and bucket, and its order is kept."""
    path = below(anywhere, "t")
    write(path, rows(COLUMNS, *((n, n % 2, 10, n) for n in range(20))), table=KEYED)
    wider = "id string, p bigint, ts double, v int"
    settings = write_settings(number_to_text=True)
    newer = write(path, rows(wider, *((str(n), n % 2, 10.5, -n) for n in range(10))), settings=settings)
    older = write(path, rows(wider, *((str(n), n % 2, 9.5, 99) for n in range(20))))

    assert (newer.inserts, newer.updates) == (0, 10)
    assert older.inserts == 0
    assert columns_of(path) == wider
    assert rows_of(path, "id", "p", "v") == sorted((str(n), n % 2, -n if n < 10 else n) for n in range(20))
    assert_whole(path)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_new_columns_are_nullable_at_every_depth_whatever_the_rows_say(anywhere: Place, table_type: str) -> None:
    """As `lit` makes columns; older rows have none, in files that were rewritten and in files that were not."""
    path, before = below(anywhere, "t"), "id int, p int, ts int, s struct<a:int>, l array<struct<a:int>>"
    after = (
        "id int, p int, ts int, s struct<a:int,b:string not null>, l array<struct<a:int,b:string not null>>, "
        "w string not null, n struct<a:int not null> not null"
    )
    nested = {"a": 1, "b": "x"}
    write(
        path,
        rows(before, *((n, n % 2, 1, {"a": 1}, [{"a": 1}]) for n in range(4))),
        table=replace(KEYED, table_type=table_type),
    )
    write(path, rows(after, (2, 0, 2, nested, [nested], "web", {"a": 7})))

    kept = after.replace("string not null", "string").removesuffix(" not null")
    assert columns_of(path) == kept
    assert rows_of(path, "id", "w", "n", "s", "l") == [
        (n, "web", {"a": 7}, nested, [nested])
        if n == 2
        else (n, None, None, {"a": 1, "b": None}, [{"a": 1, "b": None}])
        for n in range(4)
    ]
    assert_whole(path)


def test_what_has_been_an_int_is_not_spelt_in_two_ways(anywhere: Place) -> None:
    """The file of partition 2 still holds an int: as a text it would read 1, and the row beside it 1.0."""
    path = below(anywhere, "t")
    write(path, rows(COLUMNS, (1, 1, 1, 1), (2, 2, 1, 1)), table=KEYED)
    write(path, rows("id int, p int, ts int, v double", (3, 1, 1, 1.0)), settings=write_settings(int_to_double=True))

    with pytest.raises(SchemaMismatchError, match=r"v \| double \| string \| cast it to double"):
        write(path, rows("id int, p int, ts int, v string", (3, 1, 2, "1.0")))
    assert rows_of(path, "id", "v") == [(1, 1.0), (2, 1.0), (3, 1.0)]


@pytest.mark.parametrize(
    ("missing", "option"),
    [
        ("v", "hoodie.datasource.write.reconcile.schema=true"),
        ("w", "hoodie.write.set.null.for.missing.columns=true"),
    ],
)
def test_the_first_option_that_a_missing_column_is_told_of_is_enough(
    anywhere: Place, missing: str, option: str
) -> None:
    path, ddl = below(anywhere, "t"), f"{COLUMNS}, w int not null"
    write(path, rows(ddl, (1, 1, 1, 1, 1)), table=KEYED)
    fewer = rows(ddl, (2, 1, 1, 2, 2)).drop_columns([missing])

    with pytest.raises(SchemaMismatchError) as refused:
        write(path, fewer)
    assert re.findall(r"hoodie\S+", refused.value.todo)[0] == option
    said = parse_options(dict([option.split("=")])).to_write_request(str(path), fewer.schema, overwrite=False)
    write(path, fewer, settings=said.write)
    assert rows_of(path, "id", missing) == [(1, 1), (2, None)]


def test_a_column_in_another_case_is_told_of_no_option_that_would_not_help(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(COLUMNS, (1, 1, 1, 1)), table=KEYED)

    with pytest.raises(SchemaMismatchError, match="rename V") as refused:
        write(path, rows(COLUMNS, (1, 1, 1, 1)).rename_columns(["id", "p", "ts", "V"]))
    assert "hoodie" not in refused.value.todo


def test_untouched_file_groups_keep_their_files(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(COLUMNS, (1, 1, 1, 1), (2, 2, 1, 1)), table=KEYED)
    before = {name for name in files_below(path) if name.endswith(".parquet")}
    write(path, rows(f"{COLUMNS}, w string", (1, 1, 2, 2, "new")))

    new = {name for name in files_below(path) if name.endswith(".parquet")} - before
    assert [name[:2] for name in new] == ["1/"]
    assert rows_of(path, "id", "w") == [(1, "new"), (2, None)]


def test_a_delete_changes_no_columns(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(COLUMNS, (1, 1, 1, 1), (2, 1, 1, 1)), table=KEYED)
    write(path, rows("id int, p int, other string", (1, 1, "x")), operation="delete")

    assert columns_of(path) == COLUMNS
    assert rows_of(path, "id") == [(2,)]


def test_mode_overwrite_makes_the_columns_anew(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(COLUMNS, (1, 1, 1, 1)), table=KEYED)
    other = "id string, p string, ts date, s struct<a:int not null>"
    write(path, rows(other, ("x", "y", None, {"a": 1})).set_column(2, "ts", pa.array([3], pa.date32())), overwrite=True)

    assert columns_of(path) == other
    assert rows_of(path, "id", "s") == [("x", {"a": 1})]


def test_the_operation_that_overwrites_keeps_the_rules(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(COLUMNS, (1, 1, 1, 1)), table=KEYED)
    with pytest.raises(SchemaMismatchError, match=r"v \| int \| absent \| add it"):
        write(path, rows("id int, p int, ts int", (1, 1, 2)), operation="insert_overwrite_table")
    write(path, rows(f"{COLUMNS}, w date", (2, 1, 2, 2, None)), operation="insert_overwrite_table")

    assert columns_of(path) == f"{COLUMNS}, w date"
    assert rows_of(path, "id") == [(2,)]


@pytest.mark.parametrize("colocated", [False, True], ids=["plain", "colocated"])
def test_not_null_is_kept_with_an_option_and_given_up_without(anywhere: Place, colocated: bool) -> None:
    path = below(anywhere, "t")
    required = "id int, p int, ts int, v int not null, s struct<a:int not null>"
    nullable = "id int, p int, ts int, v int, s struct<a:int>"
    strict = write_settings(reconcile=True, colocated=colocated)
    write(path, rows(required, (1, 1, 1, 1, {"a": 1})), table=KEYED)
    write(path, rows(nullable, (2, 1, 1, 1, {"a": 1})), settings=strict)

    assert columns_of(path) == required
    with pytest.raises(SchemaMismatchError, match="'v' may not be null"):
        write(path, rows(nullable, (3, 1, 1, None, None)), settings=strict)
    with pytest.raises(SchemaMismatchError, match=r"'s\.a' may not be null"):
        write(path, rows(nullable, (3, 1, 1, 1, {"a": None})), settings=strict)
    write(path, rows(nullable, (3, 1, 1, None, {"a": None})), settings=WriteSettings(colocated=colocated))
    assert columns_of(path) == nullable
    assert rows_of(path, "id", "v") == [(1, 1), (2, 1), (3, None)]
    assert_whole(path)


def test_a_delete_flag_is_no_column_unless_the_table_has_it(anywhere: Place) -> None:
    path = below(anywhere, "t")
    write(path, rows(COLUMNS, (1, 1, 1, 1), (2, 1, 1, 1)), table=KEYED)
    write(path, rows(f"{COLUMNS}, _hoodie_is_deleted boolean", (1, 1, 2, 1, True)))

    assert columns_of(path) == COLUMNS
    assert rows_of(path, "id") == [(2,)]


def test_a_delete_flag_that_may_not_be_null_may_be_left_out_all_the_same(anywhere: Place) -> None:
    """Spark's ``lit(False)`` makes such a column without being asked to."""
    path = below(anywhere, "t")
    write(path, rows(f"{COLUMNS}, _hoodie_is_deleted boolean not null", (1, 1, 1, 1, False)), table=KEYED)
    write(path, rows(COLUMNS, (1, 1, 2, 5), (2, 1, 2, 5)))

    assert columns_of(path) == f"{COLUMNS}, _hoodie_is_deleted boolean"
    assert rows_of(path, "id", "v", "_hoodie_is_deleted") == [(1, 5, None), (2, 5, None)]
    assert_whole(path)


@ALSO_ON_S3
def test_two_writers_that_add_different_columns(anywhere: Place) -> None:
    check_two_new_columns(anywhere)


def test_a_writer_that_adds_a_column_beside_one_that_deletes(anywhere: Place) -> None:
    check_new_column_beside_a_delete(anywhere)
