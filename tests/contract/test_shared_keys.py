"""Keys of several columns: values by which two rows would have one key are refused, and stored rows with them stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import DataError
from pyhudi.operations.locating.shared_keys import SharedKeys
from pyhudi.operations.planning.request import TableSettings
from support.drawn.lookups import APART
from support.drive import plan, read, rows_of, write
from support.made.compacting import run, schedule
from support.rules.health import findings
from support.write_settings import write_settings

SCHEMA = pa.schema(
    [
        ("a", pa.string()),
        ("b", pa.string()),
        ("p", pa.string()),
        ("ts", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
KEYED = TableSettings(record_key_fields=("a", "b"), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2)
TABLES = {
    "buckets": KEYED,
    "logged buckets": replace(KEYED, table_type="MERGE_ON_READ"),
    "simple": replace(KEYED, bucket_count=None, index_type="SIMPLE"),
    "logged bloom": replace(KEYED, bucket_count=None, index_type="BLOOM", table_type="MERGE_ON_READ"),
    "global": replace(KEYED, bucket_count=None, index_type="GLOBAL_SIMPLE"),
}
MADE = pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
LIKE_APACHE_HUDI = write_settings(APART, may_collide=True)

Pair = tuple[str | None, str | None]

STORED, OTHER = ("x,b:y", "z"), ("x", "y,b:z")
COUNTERPARTS: list[tuple[Pair, Pair]] = [
    (STORED, OTHER),
    (("k", "__null__"), ("k", None)),
    (("k", "__empty__"), ("k", "")),
    (("__null__", "k"), (None, "k")),
]


def table_of(*pairs: Pair, ts: int = 1, deleted: bool = False) -> pa.Table:
    rows = [{"a": a, "b": b, "p": "p", "ts": ts, "_hoodie_is_deleted": deleted} for a, b in pairs]
    return pa.Table.from_pylist(rows, SCHEMA)


def pairs(path: Path) -> list[Pair]:
    table = read(path)
    return sorted(zip(table.column("a").to_pylist(), table.column("b").to_pylist(), strict=True), key=repr)


@MADE
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_a_new_row_that_could_share_its_key_is_refused(tmp_path: Path, made: TableSettings, operation: str) -> None:
    """Whichever of two such rows it is that shares, and the other passes."""
    write(tmp_path, table_of(("s", "t"), OTHER), table=made)
    for (a, b), _ in COUNTERPARTS:
        with pytest.raises(DataError) as raised:
            write(tmp_path, [table_of(("u", "v")), table_of(("w", "x"), (a, b), ts=2)], operation=operation)
        assert all(text in raised.value.what for text in (f"a={a!r}, b={b!r}", str(tmp_path)))
        assert "hoodie.pyhudi.keys.may.collide=true" in raised.value.todo
    assert "the column 'b'." in raised.value.what or "the column 'a'." in raised.value.what

    assert pairs(tmp_path) == [("s", "t"), OTHER]
    write(tmp_path, table_of(*(other for _, other in COUNTERPARTS), ts=2))
    assert pairs(tmp_path) == sorted([("s", "t"), *(other for _, other in COUNTERPARTS)], key=repr)
    assert not findings(tmp_path)


def test_texts_that_only_look_like_it_pass(tmp_path: Path) -> None:
    """URLs, times, texts of the other columns' names, and the words within longer texts."""
    plain: list[Pair] = [
        ("http://host:80/?x=1,2", "2026-11-29T10:00:00,5"),
        ("a:1,a:2", "b:1"),
        (",b", ":"),
        ("x__null__", "__empty"),
        ("y,c:z", "b:,a:"),
    ]
    write(tmp_path, table_of(*plain), table=KEYED)
    assert pairs(tmp_path) == sorted(plain, key=repr)


def test_keys_of_one_column_and_of_numbers_need_no_check(tmp_path: Path) -> None:
    single = replace(KEYED, record_key_fields=("a",))
    write(tmp_path / "single", table_of(("__null__", "1"), ("x,b:y", "2")), table=single)
    numbers = pa.schema([("a", pa.int64()), ("b", pa.int32()), ("p", pa.string()), ("ts", pa.int64())])

    assert SharedKeys.of(plan(tmp_path / "numbers", numbers, table=KEYED), lambda: None) is None  # type: ignore[arg-type, return-value]
    assert SharedKeys.of(plan(tmp_path / "single", SCHEMA), lambda: None) is None  # type: ignore[arg-type, return-value]


def test_only_a_text_column_of_a_key_with_numbers_is_looked_at(tmp_path: Path) -> None:
    mixed = pa.table({"a": [1, 2], "b": ["x", "__null__"], "p": ["p", "p"], "ts": [1, 1]})
    with pytest.raises(DataError, match=r"a='2', b='__null__'.*the column 'b'"):
        write(tmp_path, mixed, table=KEYED)


@MADE
@pytest.mark.parametrize(("stored", "other"), COUNTERPARTS)
@pytest.mark.parametrize("flagged", [False, True], ids=["operation", "flag"])
def test_a_delete_takes_the_stored_row_that_it_names_and_no_other(
    tmp_path: Path, made: TableSettings, stored: Pair, other: Pair, flagged: bool
) -> None:
    """Also where log files hold the row; a key that the table lacks is not found."""
    write(tmp_path, table_of(("s", "t")), table=made, settings=LIKE_APACHE_HUDI)
    for wanted, wrong in ((stored, other), (other, stored)):
        write(tmp_path, table_of(wanted, ts=1), settings=LIKE_APACHE_HUDI)
        write(tmp_path, table_of(wanted, ts=2), settings=LIKE_APACHE_HUDI)
        how = {} if flagged else {"operation": "delete"}

        with pytest.raises(DataError) as raised:
            write(tmp_path, [table_of(("s", "t"), ts=3), table_of(wrong, ts=3, deleted=True)], **how)
        assert f"a={wanted[0]!r}, b={wanted[1]!r}" in raised.value.what
        assert pairs(tmp_path) == sorted([("s", "t"), wanted], key=repr)
        write(tmp_path, table_of(wanted, ts=4, deleted=True), **how)
        assert pairs(tmp_path) == [("s", "t")]
        write(tmp_path, table_of(wrong, ts=5, deleted=True), **how)
        assert pairs(tmp_path) == [("s", "t")]
    assert not findings(tmp_path)


def test_a_delete_by_key_alone_is_apache_hudis_way(tmp_path: Path) -> None:
    write(tmp_path, table_of(STORED), table=KEYED, settings=LIKE_APACHE_HUDI)
    write(tmp_path, table_of(OTHER), operation="delete", settings=LIKE_APACHE_HUDI)
    assert pairs(tmp_path) == []


@MADE
def test_stored_rows_of_such_values_are_carried_on(tmp_path: Path, made: TableSettings) -> None:
    """By writes of other rows to their file groups, and by compactions."""
    held = [stored for stored, _ in COUNTERPARTS]
    write(tmp_path, table_of(*held, ("s", "t")), table=made, settings=LIKE_APACHE_HUDI)
    write(tmp_path, table_of(("s", "t"), ("new", "row"), ts=2))
    if made.table_type == "MERGE_ON_READ":
        schedule(str(tmp_path))
        run(str(tmp_path))

    assert pairs(tmp_path) == sorted([*held, ("s", "t"), ("new", "row")], key=repr)
    assert not findings(tmp_path)


def test_a_batch_that_hands_its_rows_over_is_checked_in_its_tasks(tmp_path: Path) -> None:
    write(tmp_path, table_of(("s", "t")), table=KEYED)
    with pytest.raises(DataError, match="x,b:y"):
        write(tmp_path, table_of(STORED), settings=write_settings(hand_over=True))
    assert rows_of(tmp_path, "a") == [("s",)]
