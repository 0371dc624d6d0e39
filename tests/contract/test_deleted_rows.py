"""Rows that come after a delete of their key and are older than what it took away, before and after each service."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import NullOrderingError
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.table.config.property_keys import IGNORE_DEFAULTS, LOOKUP_INDEXES, MERGE_ON_READ
from support.drawn.deleted_rows import (
    LOGGED,
    QUIET,
    READ,
    check_hidden_rows,
    check_late_rows,
    indexed,
    rows,
    shown,
    write,
)
from support.made.compacting import join, run
from support.rules.log_bytes import DELETE, blocks_of


@pytest.mark.parametrize("index", ["BUCKET", *LOOKUP_INDEXES])
def test_a_row_that_was_deleted_does_not_come_back_beside_an_older_one(tmp_path: Path, index: str) -> None:
    """A delete that read the row holds against rows with less; one by key alone makes every later row count anew."""
    check_late_rows(tmp_path, index)


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE", "GLOBAL_SIMPLE"])
def test_a_row_as_new_as_the_deleted_one_comes_back(tmp_path: Path, index: str) -> None:
    write(tmp_path, rows("key", "read", ts=10, value=1), table=indexed(index))
    write(tmp_path, rows("key", ts=10, value=2), operation="delete")
    write(tmp_path, rows("read", ts=10, value=2), operation="delete", settings=READ)
    write(tmp_path, rows("key", "read", ts=10, value=3))

    assert shown(tmp_path) == {"key": 3, "read": 3}


def test_deletes_of_a_copy_on_write_table_remove_whatever_their_values_say(tmp_path: Path) -> None:
    write(tmp_path, rows("key", "read", "null", ts=10, value=1), table=replace(LOGGED, table_type=None))
    write(tmp_path, rows("key", ts=1, value=2), operation="delete")
    write(tmp_path, rows("read", ts=10, value=2), operation="delete", settings=READ)
    write(tmp_path, rows("null", ts=None, value=2, deleted=True), settings=READ)
    assert shown(tmp_path) == {}

    write(tmp_path, rows("key", "read", "null", ts=5, value=3))
    assert shown(tmp_path) == {"key": 3, "read": 3, "null": 3}


DAY, MOMENT = dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 1, tzinfo=dt.timezone.utc)
# The type of the ordering field, the stored value, a lesser one, and the wrapper's number in Apache Hudi's union.
WRAPPERS: dict[str, tuple[pa.DataType, Any, Any, int]] = {
    "boolean": (pa.bool_(), True, False, 1),
    "int": (pa.int32(), 10, 5, 2),
    "date": (pa.date32(), DAY, dt.date(1960, 1, 1), 2),
    "long": (pa.int64(), 10, 5, 3),
    "long 0": (pa.int64(), 0, -5, 3),
    "timestamp": (pa.timestamp("us", "UTC"), MOMENT, MOMENT - dt.timedelta(days=1), 3),
    "float": (pa.float32(), 1.5, -0.0, 4),
    "double": (pa.float64(), 1.5, -0.0, 5),
    "string": (pa.string(), "b", "a", 7),
    "decimal": (pa.decimal128(20, 3), Decimal("1.5"), Decimal("-1"), 9),
}
NO_VALUE = {
    "int 0": (pa.int32(), 0, -5),
    "null": (pa.int64(), None, 5),
    "long decimal": (pa.decimal128(30, 16), Decimal("1.5"), Decimal("-1")),
}


def wrapper(path: Path) -> list[int]:
    """Return the numbers of the wrappers in the newest log file, which has deletes of one key without partition."""
    newest = max(path.glob(".*.log.*"), key=lambda file: file.name.split("_")[1])
    wrapper_numbers = []
    for block in blocks_of(newest):
        assert block.kind == DELETE
        # A version and a length of four bytes each, then a count, the key in its union, and the path in its own.
        key = block.content[8 + 2] // 2
        wrapper_numbers.append(block.content[8 + 3 + key + 2] // 2)
    return wrapper_numbers


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_delete_has_the_wrapper_of_its_ordering_column(tmp_path: Path, name: str, index: str) -> None:
    """Of a delete that comes with the stored row's value, and of one by key whose row a look-up found."""
    kind, stored, less, number = WRAPPERS[name]
    write(tmp_path, rows("k", ts=stored, value=1, kind=kind), table=indexed(index))
    settings = READ if index == "BUCKET" else QUIET
    write(tmp_path, rows("k", ts=stored, value=2, kind=kind), operation="delete", settings=settings)
    assert wrapper(tmp_path) == [number]

    write(tmp_path, rows("k", ts=less, value=3, kind=kind))
    assert shown(tmp_path) == {}
    write(tmp_path, rows("k", ts=stored, value=4, kind=kind))
    assert shown(tmp_path) == {"k": 4}


@pytest.mark.parametrize("name", NO_VALUE)
@pytest.mark.parametrize("operation", ["delete", "upsert"])
def test_a_value_that_no_wrapper_holds_makes_a_delete_without_one(tmp_path: Path, name: str, operation: str) -> None:
    """By the operation delete, or as a row of a merge that is marked as deleted."""
    kind, stored, less = NO_VALUE[name]
    write(tmp_path, rows("k", ts=less if stored is None else stored, value=1, kind=kind), table=LOGGED)
    gone = rows("k", ts=stored, value=2, kind=kind, deleted=True)
    write(tmp_path, gone, operation=operation, settings=READ)
    # Apache Hudi takes the Integer 0 for no value.
    assert wrapper(tmp_path) == [2]
    assert shown(tmp_path) == {}

    write(tmp_path, rows("k", ts=less, value=3, kind=kind))
    assert shown(tmp_path) == {"k": 3}


@pytest.mark.parametrize("settings", [READ, QUIET], ids=["read", "looked up"])
def test_deletes_with_and_without_a_value_have_blocks_of_their_own(tmp_path: Path, settings: WriteSettings) -> None:
    """hudi-rs reads no block that has both."""
    table, kind = indexed("BUCKET" if settings == READ else "SIMPLE"), pa.int32()
    write(tmp_path, pa.concat_tables([rows(key, ts=n, value=1, kind=kind) for n, key in enumerate("abc")]), table=table)
    gone = pa.concat_tables([rows(key, ts=n, value=2, kind=kind) for n, key in enumerate("abc")])
    done = write(tmp_path, gone, operation="delete", settings=settings)
    assert (done.deletes, done.not_found) == (3, 0)
    (log,) = tmp_path.glob(".*.log.*")
    assert sorted(block.content[8] // 2 for block in blocks_of(log)) == [1, 2]

    write(tmp_path, rows(*"abc", ts=-1, value=3, kind=kind))
    assert shown(tmp_path) == {"a": 3}


def test_several_ordering_values_are_carried_by_version_9_alone(tmp_path: Path) -> None:
    def two(first: int, second: int | None, value: int) -> pa.Table:
        made = rows("k", ts=first, value=value)
        return made.append_column("at", pa.array([second], pa.int64()))

    write(tmp_path, two(10, 7, 1), table=replace(LOGGED, ordering_fields=("ts", "at")))
    write(tmp_path, two(10, 7, 2), operation="delete", settings=READ)
    assert wrapper(tmp_path) == [12]
    write(tmp_path, two(10, 6, 3))
    assert shown(tmp_path) == {}

    write(tmp_path, two(10, 7, 4))
    write(tmp_path, two(10, None, 5), operation="delete", settings=READ)
    assert wrapper(tmp_path) == [2]
    write(tmp_path, two(1, 1, 6))
    assert shown(tmp_path) == {"k": 6}


def test_decimals_are_carried_by_version_9_alone(tmp_path: Path) -> None:
    """Apache Hudi 1.0.2 fails on a decimal in a delete block."""
    kind = pa.decimal128(10, 2)
    write(tmp_path, rows("k", ts=Decimal("1.5"), value=1, kind=kind), table=replace(LOGGED, version=8))
    write(tmp_path, rows("k", ts=Decimal("1.5"), value=2, kind=kind), operation="delete", settings=READ)

    assert wrapper(tmp_path) == [2]


def test_only_rows_need_an_ordering_value_where_deletes_were_read(tmp_path: Path) -> None:
    write(tmp_path, rows("a", "b", ts=1, value=1), table=LOGGED)
    both = pa.concat_tables([rows("a", ts=None, value=2, deleted=True), rows("b", ts=None, value=2)])
    with pytest.raises(NullOrderingError, match=r"null in 1 of 2 rows.*'b'"):
        write(tmp_path, both, settings=READ)
    with pytest.raises(NullOrderingError, match=r"null in 2 of 2 rows.*'a'"):
        write(tmp_path, both)


@pytest.mark.parametrize("kind", [MERGE_ON_READ, None])
@pytest.mark.parametrize("mode", [None, IGNORE_DEFAULTS])
def test_a_delete_without_value_hides_the_base_row_from_later_rows_of_its_own_write(
    tmp_path: Path, kind: str | None, mode: str | None
) -> None:
    """In one task or in two, on both table types; no open column takes a value of the hidden row."""
    table = replace(LOGGED, table_type=kind, partial_update_mode=mode)
    small, keys = pa.int32(), ["one", "two"]
    write(tmp_path, rows(*keys, ts=10, value=1, kind=small), table=table)
    gone = [rows(key, ts=0, value=2, kind=small, deleted=True) for key in keys]
    late = [rows(key, ts=5, value=3, kind=small) for key in keys]
    late = [some.set_column(2, "value", pa.array([None], pa.int64())) for some in late]
    done = write(tmp_path, [pa.concat_tables([gone[0], late[0], gone[1]]), late[1]])
    assert kind is not None or (done.inserts, done.updates, done.deletes) == (0, 2, 0)
    assert shown(tmp_path) == dict.fromkeys(keys)

    if kind is not None:
        join(tmp_path)
        assert shown(tmp_path) == dict.fromkeys(keys)
        run(tmp_path)
        assert shown(tmp_path) == dict.fromkeys(keys)


def test_an_open_column_takes_no_value_of_a_hidden_row(tmp_path: Path) -> None:
    check_hidden_rows(tmp_path)
