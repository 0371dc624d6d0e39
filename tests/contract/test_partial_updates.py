"""Rows that leave some of their columns to older rows, on tables with a mode for it, and in partial upserts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.errors import (
    KeyNotFoundError,
    MissingColumnError,
    OptionConflictError,
    PyHudiError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOptionError,
)
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig, load_config
from pyhudi.table.config.payloads import PAYLOADS
from pyhudi.table.files.base_file import BaseFileReader
from pyhudi.table.files.output import Output
from support.drawn.partial_checks import (
    MODES,
    PARTIAL,
    SETTINGS,
    check_deletes_and_partial_rows,
    check_late_partial_rows,
    check_mode_in_one_write,
    check_mode_on_copy_on_write,
    check_partial_rows_in_logs,
    check_steps,
    check_unknown_keys,
    check_whole_rows_in_logs,
    made,
    shown,
)
from support.drive import plan, read, rows_of, write
from support.made.stated_sizes import state_sizes
from support.models.partial_model import random_steps, rows
from support.readers import rows_by_hudi_rs
from support.seams import patch_seam, read_seam
from support.share import share_of
from support.write_settings import write_settings

UPDATE = rows(("k", "a", 11, 2), columns=("id", "p", "ts", "n"))
WHOLE = rows(("k", "a", 10, "first", 1), ("l", "a", 10, "x", 1))


@pytest.mark.parametrize(
    "check",
    [
        check_mode_on_copy_on_write,
        check_mode_in_one_write,
        check_partial_rows_in_logs,
        check_whole_rows_in_logs,
        check_late_partial_rows,
        check_unknown_keys,
        check_deletes_and_partial_rows,
    ],
    ids=lambda check: check.__name__,
)
def test_columns_are_left_to_older_rows(tmp_path: Path, check: Callable[[Path], None]) -> None:
    """The checks are in a module of their own because mutations of the code run them too."""
    check(tmp_path)


@settings(max_examples=share_of(20), deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.sampled_from(MODES),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "alone", "tiny"]),
)
def test_histories_give_what_the_dicts_say(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    mode: str | None,
    logs: bool,
    ordered: bool,
    flagged: bool,
    how: str,
) -> None:
    """Whole and partial rows, deletes and compactions, however rows are dealt out and whatever the memory."""
    tiny = write_settings(SETTINGS, batch_size=400, output=Output(memory=1200)) if how == "tiny" else SETTINGS
    bounds = replace(tiny, colocated=how == "alone")
    path = tmp_path_factory.mktemp("t") / "t"
    table = made(mode, logs=logs, ordered=ordered)
    check_steps(path, random_steps(seed, mode=mode), table, bounds, flagged=flagged)


@settings(max_examples=share_of(4), deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from(MODES))
def test_histories_give_it_where_keys_are_looked_up(
    tmp_path_factory: pytest.TempPathFactory, seed: int, mode: str | None
) -> None:
    path = tmp_path_factory.mktemp("t") / "t"
    check_steps(path, random_steps(seed, mode=mode), made(mode, logs=False, index="SIMPLE"))


@pytest.mark.parametrize("name", ["PartialUpdateAvroPayload", "PostgresDebeziumAvroPayload"])
def test_a_table_notes_its_mode_as_apache_hudi_does(tmp_path: Path, name: str) -> None:
    payload = PAYLOADS[name]
    asked = replace(made(payload.partial_update_mode, logs=False), payload=payload, unavailable=None)
    some = rows(("k", "a", 1, "x", 1))
    if payload.ordering_fields:
        with pytest.raises(OptionConflictError, match=r"by '_event_lsn', and .* names 'ts'"):
            plan(tmp_path / "t", some.schema, table=asked)
        asked = replace(asked, ordering_fields=None)
        some = some.append_column("_event_lsn", pa.array([1]))
    write(tmp_path / "t", some, table=asked)

    properties = load_config(open_storage(str(tmp_path / "t"))).properties
    assert properties["hoodie.table.partial.update.mode"] == payload.partial_update_mode
    assert properties["hoodie.table.legacy.payload.class"].endswith(name)
    word = properties.get("hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value")
    assert word == ("__debezium_unavailable_value" if name.startswith("Postgres") else None)
    with pytest.raises(OptionConflictError, match=r"update\.mode is NONE here and"):
        write(tmp_path / "t", some, table=TableSettings(partial_update_mode="NONE"))
    write(tmp_path / "t", some, table=replace(asked, payload=None))


def test_a_partial_update_goes_with_its_instant(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, WHOLE, table=made(None, logs=True), settings=SETTINGS)
    result = write(path, UPDATE, settings=PARTIAL)

    assert (result.operation, result.updates, result.inserts, result.log_files, result.files) == ("UPSERT", 1, 0, 1, 0)
    rollback(open_storage(str(path)), result.instant)
    assert shown(path) == [("a", "k", 10, "first", 1), ("a", "l", 10, "x", 1)]


VERSION_8 = replace(made(None, logs=True), version=8)
REFUSED: list[tuple[str, type[PyHudiError], str, pa.Table, str | None, TableSettings, WriteSettings]] = [
    ("version 8", OptionConflictError, "version 8, and Apache Hudi 1.0.2", UPDATE, None, VERSION_8, PARTIAL),
    ("insert", OptionConflictError, "about the operation upsert", UPDATE, "insert", made(None, logs=True), PARTIAL),
    ("mode", OptionConflictError, "update.mode=IGNORE_DEFAULTS", UPDATE, None, made(MODES[1], logs=True), PARTIAL),
    (
        "everywhere",
        OptionConflictError,
        "GLOBAL_SIMPLE",
        UPDATE,
        None,
        made(None, logs=False, index="GLOBAL_SIMPLE"),
        PARTIAL,
    ),
    (
        "reconciled",
        OptionConflictError,
        "reconcile.schema",
        UPDATE,
        None,
        made(None, logs=True),
        write_settings(PARTIAL, reconcile=True),
    ),
    (
        "no partition",
        MissingColumnError,
        "partition column 'p'",
        UPDATE.drop_columns("p"),
        None,
        made(None, logs=True),
        PARTIAL,
    ),
    (
        "no order",
        MissingColumnError,
        "ordering column 'ts'",
        UPDATE.drop_columns("ts"),
        None,
        made(None, logs=True),
        PARTIAL,
    ),
    (
        "no column",
        MissingColumnError,
        "no column beside",
        UPDATE.select(["id", "p"]),
        None,
        made(None, logs=True, ordered=False),
        PARTIAL,
    ),
    (
        "new column",
        SchemaMismatchError,
        "extra",
        UPDATE.append_column("extra", pa.array([1])),
        None,
        made(None, logs=True),
        PARTIAL,
    ),
    (
        "column of another type",
        SchemaMismatchError,
        "cast it",
        UPDATE.set_column(3, "n", pa.array([True])),
        None,
        made(None, logs=True),
        PARTIAL,
    ),
]


@pytest.mark.parametrize(
    ("error", "says", "some", "operation", "table", "given"),
    [one[1:] for one in REFUSED],
    ids=[one[0] for one in REFUSED],
)
def test_what_cannot_be_right_is_refused_by_name(
    tmp_path: Path,
    error: type[PyHudiError],
    says: str,
    some: pa.Table,
    operation: str | None,
    table: TableSettings,
    given: WriteSettings,
) -> None:
    write(tmp_path / "t", WHOLE, table=table)

    with pytest.raises(error, match=says):
        plan(tmp_path / "t", some.schema, operation=operation, settings=given)


def test_a_partial_update_makes_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="no row yet"):
        plan(tmp_path / "t", UPDATE.schema, table=made(None, logs=True), settings=PARTIAL)


def test_modes_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    for asked, error, says in (
        (replace(made(None, logs=False), partial_update_mode="KEEP_VALUES"), UnsupportedOptionError, "KEEP_VALUES"),
        (
            replace(made("IGNORE_DEFAULTS", logs=False), version=8),
            OptionConflictError,
            "tables of version 8 cannot store",
        ),
        (
            replace(made("IGNORE_DEFAULTS", logs=False), unavailable="?"),
            OptionConflictError,
            "placeholder of a missing",
        ),
        (made("IGNORE_DEFAULTS", logs=False, index="GLOBAL_SIMPLE"), OptionConflictError, "leave columns behind"),
    ):
        with pytest.raises(error, match=says):
            plan(tmp_path / "t", WHOLE.schema, table=asked)


@pytest.mark.parametrize("kept", [False, True], ids=["unflagged", "flagged"])
def test_rows_of_a_key_and_a_delete_flag_delete(tmp_path: Path, kept: bool) -> None:
    """They need no other column, whether or not the table has one for the flag."""
    for logs in (False, True):
        path = tmp_path / f"t{logs}"
        flags = pa.nulls(WHOLE.num_rows, pa.bool_())
        first = WHOLE.append_column("_hoodie_is_deleted", flags) if kept else WHOLE
        write(path, first, table=replace(made(None, logs=logs), ordering_fields=()), settings=SETTINGS)
        gone = rows(("k", "a", True), ("l", "a", False), columns=("id", "p", "_hoodie_is_deleted"))
        write(path, gone, settings=PARTIAL)

        assert shown(path) == [("a", "l", 10, "x", 1)]


def test_a_column_that_may_not_be_null_is_left_as_it_is(tmp_path: Path) -> None:
    """Rows with some of the columns need none of the others, whatever their nullability."""
    for logs in (False, True):
        path = tmp_path / f"t{logs}"
        strict = WHOLE.cast(pa.schema([one.with_nullable(one.name not in {"name", "n"}) for one in WHOLE.schema]))
        write(path, strict, table=made(None, logs=logs), settings=SETTINGS)
        write(path, UPDATE, settings=PARTIAL)

        assert shown(path) == [("a", "k", 11, "first", 2), ("a", "l", 10, "x", 1)]
        assert not read(path).schema.field("name").nullable


def test_keys_are_looked_for_in_row_groups_that_may_hold_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of keys that came in their order a few are in few of a file's row groups."""
    path = tmp_path / "t"
    many = rows(*((f"k{number:06}", "a", 1, "x" * 50, number) for number in range(400)))
    write(path, many, table=replace(made(None, logs=True), bucket_count=1), settings=SETTINGS)
    (base,) = path.glob("a/*.parquet")
    pq.write_table(pq.read_table(base, partitioning=None), base, row_group_size=50, store_schema=False)
    state_sizes(path)
    read_groups: list[tuple[int, int]] = []
    original = read_seam("read batches of a base file")

    def counting(file: BaseFileReader, schema: pa.Schema, **how: Any) -> Any:
        groups = how.get("row_groups")
        there = file.parquet.num_row_groups
        read_groups.append((there if groups is None else len(groups), there))
        return original(file, schema, **how)

    patch_seam(monkeypatch, "read batches of a base file", counting)
    some = rows(("k000007", "a", 2, 0), ("k000009", "a", 2, 0), columns=("id", "p", "ts", "n"))
    write(path, some, settings=PARTIAL)
    with pytest.raises(KeyNotFoundError, match="k000007x"):
        write(path, rows(("k000007x", "a", 2, 0), columns=("id", "p", "ts", "n")), settings=PARTIAL)

    assert [(read, there) for read, there in read_groups if there > 1] == [(1, 8), (1, 8)]


def test_a_config_without_a_word_has_none() -> None:
    config = TableConfig.new(
        TableSettings(name="t", record_key_fields=("id",), partial_update_mode="FILL_UNAVAILABLE", unavailable="?")
    )

    assert config.unavailable_value == "?"
    assert TableConfig({**config.properties, "hoodie.table.partial.update.mode": "NONE"}).unavailable_value is None


@pytest.mark.parametrize("flagged", [True, False])
def test_each_row_of_a_key_that_is_there_twice_is_updated_in_a_new_base_file(tmp_path: Path, flagged: bool) -> None:
    """As Apache Hudi lays partial blocks, and whole rows of a table with a delete flag, over the first row alone."""
    path = tmp_path / "t"
    twice = rows(("k", "a", 10, "first", 1), ("k", "a", 10, "second", 2), ("l", "a", 10, "x", 1))
    if flagged:
        twice = twice.append_column("_hoodie_is_deleted", pa.nulls(3, pa.bool_()))
    write(path, twice, operation="insert", table=made(None, logs=True), settings=SETTINGS)
    write(path, UPDATE, settings=PARTIAL)

    expected = [("k", 11, "first", 2), ("k", 11, "second", 2), ("l", 10, "x", 1)]
    assert rows_of(path, "id", "ts", "name", "n") == expected
    assert rows_by_hudi_rs(path, "id", "ts", "name", "n") == expected
    assert not list(path.rglob("*.log.*"))
