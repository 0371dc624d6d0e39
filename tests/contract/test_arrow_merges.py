"""`merge` and `update` of `pyhudi.arrow`: what their clauses do, held against Delta's, and what is refused."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyhudi import arrow
from pyhudi.arrow.merging.matching import EqualTerms, RowMatch
from pyhudi.errors import (
    ColumnValueError,
    DuplicateColumnError,
    DuplicateKeyError,
    InvalidOptionError,
    MissingColumnError,
    OlderRowError,
    OptionConflictError,
    PyHudiError,
    SchemaMismatchError,
)
from pyhudi.reader.sql.terms import ColumnTerm
from pyhudi.table.config.property_keys import UNAVAILABLE_OF_DEBEZIUM
from support.merge_cases import REFUSED, drawn_merge
from support.merge_tables_of_arrow import NAMES, SCHEMA, START, counts, given, made, rows
from support.readers import rows_by_hudi_rs
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> arrow.Table:
    return made(tmp_path / "t", table_type=request.param)


def test_clauses_are_asked_in_their_order_and_the_first_that_holds_counts(table: arrow.Table) -> None:
    source = [(1, "a", 6, 10, "x"), (2, "a", 6, None, "gone"), (3, "b", 6, 30, "y"), (7, "c", 1, 70, "z")]
    merge = (
        table.merge(given(*source, (8, "c", 1, -1, "")))
        .when_matched_delete("source.t = 'gone'")
        .when_matched_update({"n": "source.n + target.n", "t": pc.field("source.t")}, "source.n < 20")
        .when_matched_update_all(pc.field("source.n") > 1000)
        .when_not_matched_insert(
            {"id": "source.id", "p": "source.p", "ts": 0, "t": pc.utf8_upper(pc.field("source.t"))}, "source.n > 0"
        )
        .when_not_matched_by_source_update({"n": "target.n * 100"}, "target.id = 4")
        .when_not_matched_by_source_delete()
    )
    result = merge.execute()

    assert counts(result) == (1, 2, 1, 0)
    assert (result.operation, result.instant) == ("UPSERT", table.last_commit().instant)
    assert rows(table) == [
        (1, "a", 5, 11, "x"),
        (3, "b", 5, 3, "three"),
        (4, "b", 9, 400, None),
        (7, "c", 0, None, "Z"),
    ]
    assert rows_by_hudi_rs(Path(table.path), *NAMES) == rows(table)
    assert counts(merge.execute()) == (0, 2, 0, 0), "it may be run again, and sees the table as it is now"
    assert "when_matched_delete(condition=" in repr(merge)


def test_a_merge_that_has_a_name_is_done_once(table: arrow.Table) -> None:
    """A repeat changes nothing, even if its rows could not be merged any more."""
    named = {"hoodie.pyhudi.write.id": "batch-7"}
    merge = table.merge(given((1, "a", 6, 10, "x"))).when_matched_update_all()
    first = merge.execute(**named)
    table.upsert(given((1, "a", 9, 90, "later")))
    again = merge.execute(**named)

    assert (again.instant, counts(again)) == (first.instant, (0, 1, 0, 0))
    assert rows(table)[0] == (1, "a", 9, 90, "later")


SHAPES: dict[str, dict[str, Any]] = {
    "base files": {},
    "log files": {"table_type": "MERGE_ON_READ"},
    "looked up": {"index": "SIMPLE"},
    "looked up, log files": {"index": "BLOOM", "table_type": "MERGE_ON_READ"},
    "unique keys": {"index": "GLOBAL_SIMPLE"},
    "later row wins, no partitions": {"order_by": (), "partition_by": ()},
    "composite key, two ordering fields": {"record_key": ["id", "p"], "partition_by": (), "order_by": ["ts", "n"]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_move_and_swap_their_keys_in_one_instant(tmp_path: Path, shape: str) -> None:
    """Two rows change their keys, a row its partition, a row goes and its place is taken, a row comes."""
    table = made(tmp_path / "t", **SHAPES[shape])
    source = [(1, "a", 9, 10, "x"), (2, "a", 9, 20, "y"), (3, "c", 9, 30, "z"), (4, "b", 9, 40, "gone")]
    merge_result = (
        table.merge(given(*source, (9, "d", 9, 90, "new")), "source.id = target.id")
        .when_matched_delete("source.t = 'gone'")
        .when_matched_update({"id": "3 - target.id", "ts": "source.ts", "n": "source.n"}, "source.id < 3")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )

    expected = [(1, "a", 9, 20, "two"), (2, "a", 9, 10, "one"), (3, "c", 9, 30, "z"), (9, "d", 9, 90, "new")]
    moves = 2 if shape == "later row wins, no partitions" else 3
    assert (rows(table), counts(merge_result)) == (expected, (1, 3, 1, moves))
    into_freed = table.merge(given((9, "d", 9, 0, "")), ["id", "p"]).when_matched_delete()
    reborn = into_freed.when_not_matched_by_source_update({"id": 9, "p": "'d'", "n": 900}, "target.id = 3").execute()
    assert (counts(reborn), rows(table)) == ((0, 1, 1, 1), [*expected[:2], (9, "d", 9, 900, "z")])
    assert_whole(Path(table.path))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_one_write_cannot_do_is_refused_by_a_key_and_leaves_the_table_as_it_was(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path / "t", table_type=kind)
    for name, (source, clauses, on, error, says) in REFUSED.items():
        with pytest.raises(error, match=says):
            clauses(table.merge(given(*source), on)).execute()
            raise AssertionError(name)
    table.insert(given((1, "a", 7, 0, "twice"), (5, None, 5, 5, "nameless")))
    # Rows whose partition has no name share one, whether their values are equal or not.
    for nameless in (None, ""):
        merge = table.merge(given((5, nameless, 9, 9, "x")), ["id", "p"])
        with pytest.raises(DuplicateKeyError, match=r"the record key '5' in .*, which a row of the table has"):
            merge.when_not_matched_insert_all().execute()
    with pytest.raises(DuplicateKeyError, match=r"holds several rows of the record key '1' in partition 'a'"):
        table.update({"n": 0}, "id = 1")

    assert rows(table)[1:] == [*sorted([*START, (1, "a", 7, 0, "twice")])[1:], (5, None, 5, 5, "nameless")]


def test_a_null_in_a_part_of_a_key_matches_nothing_and_proves_no_row_new(tmp_path: Path) -> None:
    columns = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("x", pa.string())])
    table = arrow.Table.create(
        tmp_path / "t", columns, record_key=["a", "b"], buckets=1, table_type="MERGE_ON_READ", order_by=()
    )
    table.upsert(pa.table([[1], [None], ["old"]], columns))
    source = pa.table([[1, 2], [None, None], ["new", "new"]], columns)
    merge = table.merge(source, ["a", "b"])
    with pytest.raises(DuplicateKeyError, match=r"the record key 'a:1,b:__null__', which a row of the table has"):
        merge.when_not_matched_insert_all().execute()
    assert merge.when_not_matched_insert_all("source.a = 2").execute().inserts == 1
    assert table.read(["a", "x"]).sort_by("a").to_pylist() == [{"a": 1, "x": "old"}, {"a": 2, "x": "new"}]


def test_several_rows_may_delete_one_and_a_clause_may_hold_for_one_of_several(
    table: arrow.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts of a row each, too: which rows of the table were met is known at the end."""
    patch_seam(monkeypatch, "shares of the memory of a merge without Spark", 1 << 24)
    source = [
        given(row) for row in [(1, "a", 6, 1, "x"), (1, "a", 7, 2, "y"), (2, "a", 7, 1, "x"), (2, "a", 7, 2, "y")]
    ]
    result = (
        table.merge(pa.concat_tables(source))
        .when_matched_delete("source.id = 1")
        .when_matched_update({"t": "source.t"}, "source.n = 2")
        .execute()
    )

    assert counts(result) == (0, 1, 1, 0)
    assert rows(table) == [(2, "a", 5, 2, "y"), *START[2:]]


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_condition_holds_for_all_rows_of_a_key_or_is_refused(tmp_path: Path, kind: str, index: str) -> None:
    table = made(tmp_path / "t", table_type=kind, index=index)
    table.insert(given((1, "a", 7, 0, "copy"), (2, "a", 7, 2, "copy"), (3, "b", 8, 3, "copy")))
    before, source = rows(table), given((2, "a", 9, 9, "new"))
    partly: list[Callable[[], Any]] = [
        lambda: table.update({"n": 5}, "t = 'copy'"),
        lambda: table.merge(source).when_matched_delete("target.t = 'copy'").execute(),
        lambda: table.merge(source, "source.id = target.id").when_matched_update_all("target.ts = 7").execute(),
        lambda: table.merge(source, "target.n = source.n - 7").when_matched_delete("target.ts < 7").execute(),
    ]
    for write in partly:
        with pytest.raises(DuplicateKeyError, match=r"The record key '[123]' has 2 rows in .* holds for 1 of them"):
            write()
    assert rows(table) == before
    assert counts(table.merge(source).when_matched_delete().when_not_matched_insert_all().execute()) == (0, 0, 2, 0)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_stored_row_whose_key_is_not_that_of_its_columns_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As other writers may spell it: a change would leave the row as it is, and add another."""
    spell = read_seam("record keys of rows")
    with monkeypatch.context() as patch:
        patch_seam(
            patch, "record keys of rows", lambda *rows: (pc.binary_join_element_wise("0", spell(*rows)[0], ""), [])
        )
        table = made(tmp_path / "t", table_type=kind, index="BLOOM")
    changes: list[Callable[[], Any]] = [
        lambda: table.update({"n": 0}, "n = 1"),
        lambda: table.update({"id": 9}, "n = 1"),
        lambda: table.merge(given((0, "", 0, 1, "")), "n").when_matched_delete().execute(),
    ]
    for change in changes:
        with pytest.raises(DuplicateKeyError, match=r"but its columns make|keys that differ from their columns"):
            change()
    assert rows(table) == START


def test_an_insert_that_a_delete_in_log_files_outdoes_is_left_out_and_counted(tmp_path: Path) -> None:
    """Until a compaction forgets the delete; a row that would move there is refused."""
    table = made(tmp_path / "t", table_type="MERGE_ON_READ", partition_by=())
    table.delete("id in (2, 4)")
    new = given((2, "a", 3, 9, "back"), (4, "b", 9, 9, "back"), (8, "b", 1, 9, "new"))

    done = table.merge(new).when_not_matched_insert_all().execute()
    assert (done.inserts, done.dropped) == (2, 1)
    with pytest.raises(OlderRowError, match="record key '2', which was deleted with a greater ordering value"):
        table.update({"id": 2, "ts": 3}, "id = 8")


def _merge(table: arrow.Table, new: pa.Table, on: Any = None) -> arrow.Merge:
    return table.merge(new, on)


WORDS: list[tuple[Callable[[Any, pa.Table], Any], type[PyHudiError], str]] = [
    (_merge, InvalidOptionError, "no clause"),
    (
        lambda table, new: _merge(table, new).when_matched_delete().when_matched_update_all("source.n = 1"),
        InvalidOptionError,
        "when_matched_update_all after it is never reached",
    ),
    (lambda table, new: _merge(table, new).when_matched_update({}), InvalidOptionError, "gives no column a value"),
    (
        lambda table, new: _merge(table, new).when_matched_update({"nn": 1}),
        MissingColumnError,
        r"when_matched_update names 'nn', which is no column of the table .*Did you mean 'n'\?",
    ),
    (
        lambda table, new: _merge(table, new).when_matched_update({"n": "s.n"}),
        MissingColumnError,
        r"when_matched_update 's\.n' names 's\.n'",
    ),
    (
        lambda table, new: _merge(table, new).when_matched_delete("n = 1"),
        MissingColumnError,
        r"names 'n', without the side.*Write source\.n or target\.n",
    ),
    (
        lambda table, new: _merge(table, new).when_not_matched_insert_all("target.n = 1"),
        MissingColumnError,
        "The condition of when_not_matched_insert_all .* names the column 'target.n', which source lacks",
    ),
    (
        lambda table, new: _merge(table, new).when_not_matched_insert({"id": "source.id", "n": 1}),
        MissingColumnError,
        "gives no value to 'p', 'ts'",
    ),
    (
        lambda table, new: _merge(table, new.drop(["t", "n"])).when_matched_update_all(),
        MissingColumnError,
        r"the source, which lacks 'n', 't'.*when_matched_update\(",
    ),
    (
        lambda table, new: _merge(table, new).when_matched_delete("source.n"),
        InvalidOptionError,
        "has a value of type int32 where a condition belongs, at character 1",
    ),
    (lambda table, new: _merge(table, new).when_matched_delete("source.n ="), InvalidOptionError, "at its end"),
    (
        lambda table, new: _merge(table, new).when_matched_delete(pc.field("source.m") > 1),
        InvalidOptionError,
        r"The condition of when_matched_delete, .* does not fit the columns.*It may name source\.id",
    ),
    (lambda table, new: _merge(table, new, ["id", "q"]).when_matched_delete(), MissingColumnError, "names 'q'"),
    (lambda table, new: _merge(table, new.drop("n"), "n").when_matched_delete(), MissingColumnError, "source lacks"),
    (lambda table, new: _merge(table, new, []).when_matched_delete(), InvalidOptionError, "names no columns"),
    (lambda table, new: _merge(table, new.drop("id")).when_matched_delete(), MissingColumnError, "'id' is not among"),
    (lambda table, new: _merge(table, new, True).when_matched_delete(), InvalidOptionError, r"on=True"),
    (
        lambda table, new: _merge(table, new).when_matched_update({"n": "source.t"}),
        ColumnValueError,
        "Column 'n' is string in the rows and int in the table, and 'x' is not how",
    ),
    (
        lambda table, new: _merge(table, new).when_matched_update({"n": [1]}),
        SchemaMismatchError,
        r"the column 'n' of the table .*, of the type int, a value of the type list",
    ),
    (
        lambda table, new: _merge(table, new).when_matched_update({"n": object()}),
        InvalidOptionError,
        "an? object, which is no value of a column",
    ),
    (
        lambda table, new: _merge(table, new.append_column("_pyhudi_kind", new["n"])).when_matched_delete(),
        DuplicateColumnError,
        "_pyhudi_kind",
    ),
    (
        lambda table, new: _merge(table, new.append_column("T", new["t"])).when_matched_update_all(),
        DuplicateColumnError,
        "the source, which has 't' twice",
    ),
    (
        lambda table, new: _merge(table, new.rename_columns(["ID", "p", "ts", "n", "Id"]), "p").when_matched_delete(
            "source.id = 1"
        ),
        MissingColumnError,
        "names the column 'id', which source lacks",
    ),
    (
        lambda table, new: _merge(table, new.append_column("t", new["t"])).when_matched_update_all(),
        DuplicateColumnError,
        "'t' twice",
    ),
]


def test_every_wrong_word_is_named(tmp_path: Path) -> None:
    table, new = made(tmp_path / "t"), given((1, "a", 6, 1, "x"))
    for build, error, says in WORDS:
        with pytest.raises(error, match=says):
            build(table, new).execute()
    with pytest.raises(MissingColumnError, match=r"update 'm \+ 1' names the column 'm'"):
        table.update({"n": "m + 1"})
    with pytest.raises(InvalidOptionError, match="Rows were given as a str"):
        table.merge("changes")
    keyless = arrow.Table.create(tmp_path / "keyless", SCHEMA, record_key=None)
    with pytest.raises(OptionConflictError, match="generates its keys"):
        keyless.update({"n": 1})

    assert rows(table) == START


def test_rows_are_updated_by_a_condition(table: arrow.Table) -> None:
    results = [
        table.update({"n": "n * 10", "t": pc.binary_join_element_wise(pc.field("t"), "!", "")}, "p = 'a'"),
        table.update({"`TARGET`.T": None, "ts": 20}, pc.field("target.id") == 4),
        table.update({"p": "'target.p'"}, "p = 'b' AND id IN (3, 4)"),
        table.update({"n": 0}, "id > 100"),
        table.update({"n": pc.field("n") + 1}),
    ]

    assert [counts(done) for done in results] == [
        (0, 2, 0, 0),
        (0, 1, 0, 0),
        (0, 2, 0, 2),
        (0, 0, 0, 0),
        (0, 4, 0, 0),
    ]
    assert rows(table) == [
        (1, "a", 5, 11, "one!"),
        (2, "a", 5, 21, "two!"),
        (3, "target.p", 5, 4, "three"),
        (4, "target.p", 20, 5, None),
    ]


def test_fields_of_structs_and_values_of_other_types_become_those_of_the_column(tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string()), ("d", pa.float64())]))])
    schema = pa.schema([("id", pa.int32()), ("s", inner), ("price", pa.decimal128(10, 2)), ("n", pa.int32())])
    table = arrow.Table.create(tmp_path / "t", schema, record_key="id")
    whole = {"a": 1, "b": {"c": "x", "d": 1.5}}
    table.upsert(pa.Table.from_pylist([{"id": 1, "s": whole, "price": 1, "n": 1}, {"id": 2, "n": 2}], schema))

    table.update({"s.b.c": "'new'", "price": "price * 2", "n": pc.field("n").cast(pa.int64()) + 1})
    merge = table.merge(pa.table({"id": [2], "x": [7.0]})).when_matched_update({"s.a": "source.x", "n": "source.x * 2"})
    merge.execute()

    assert table.read(["id", "s", "price", "n"]).sort_by("id").to_pylist() == [
        {"id": 1, "s": {"a": 1, "b": {"c": "new", "d": 1.5}}, "price": 2, "n": 2},
        {"id": 2, "s": {"a": 7, "b": {"c": "new", "d": None}}, "price": None, "n": 14},
    ]
    with pytest.raises(SchemaMismatchError, match=r"the column 'n' .*, of the type int, a value of the type date32"):
        table.update({"n": datetime.date(2024, 1, 1)})
    with pytest.raises(ColumnValueError, match=r"column 'price' .*cannot hold"):
        table.update({"price": "price * 0.001"}, "id = 1")


def test_a_row_that_an_update_marks_as_deleted_is_a_delete(tmp_path: Path) -> None:
    options = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "hoodie.payload.delete.field": "t",
        "hoodie.payload.delete.marker": "D",
    }
    table = made(tmp_path / "t", options=options)
    source = given((1, "c", 9, 0, "D"), (2, "a", 9, 0, "stays"), (8, "a", 9, 0, "D"))
    done = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all().execute()

    assert counts(done) == (0, 1, 1, 0)
    assert [row[0] for row in rows(table)] == [2, 3, 4]


@pytest.mark.parametrize(("mode", "word"), [("IGNORE_DEFAULTS", None), ("FILL_UNAVAILABLE", UNAVAILABLE_OF_DEBEZIUM)])
def test_a_value_that_the_mode_of_the_table_would_drop_is_refused(tmp_path: Path, mode: str, word: str | None) -> None:
    table, value = made(tmp_path / "t", table_type="MERGE_ON_READ", partial_update_mode=mode), f"'{word}'"
    value = "null" if word is None else value
    with pytest.raises(OptionConflictError, match=r"the record key '1' in partition 'a' .*partial.update.mode"):
        table.update({"t": value}, "id = 1")
    merge = table.merge(given((2, "a", 6, 0, word)), "id").when_matched_delete()
    with pytest.raises(OptionConflictError, match=r"the record key '2' in partition 'a' .*partial.update.mode"):
        # It would take the text of the row in whose place it comes.
        merge.when_not_matched_by_source_update({"id": 2, "t": value}, "target.id = 1").execute()
    table.upsert(given((9, "a", 5, 9, word)))
    merge = table.merge(given((9, "a", 6, 90, word), (10, "a", 6, 100, word)))
    done = merge.when_matched_update_all().when_not_matched_insert_all().execute()

    assert counts(done) == (1, 1, 0, 0)
    assert rows(table) == [*START, (9, "a", 6, 90, word), (10, "a", 6, 100, word)]


def test_a_source_without_a_batch_has_the_columns_of_the_table(table: arrow.Table) -> None:
    merge = table.merge(iter(()), "id").when_matched_update_all().when_not_matched_insert_all()
    assert counts(merge.when_not_matched_by_source_delete("target.id > 1").execute()) == (0, 0, 3, 0)
    assert rows(table) == START[:1]


@pytest.mark.parametrize("on", ["source.id < target.id", pc.field("source.id") < pc.field("target.id")])
def test_rows_match_by_a_condition_that_equates_nothing(
    table: arrow.Table, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_seam(monkeypatch, "pairs of a merge without Spark at once", 1)
    merge = table.merge(given((1, "x", 0, 0, ""), (3, "x", 0, 0, "")), on)
    assert counts(merge.when_matched_delete("source.id = 3 OR target.id = 2").execute()) == (0, 0, 2, 0)
    assert rows(table) == [START[0], START[2]]


def test_many_pairs_of_rows_with_equal_values_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_seam(monkeypatch, "pairs of a merge without Spark at once", 4)
    sides = [pa.record_batch({f"{side}.x": pa.array([7, 7, 7], pa.int32())}) for side in ("source", "target")]
    ours, theirs = (ColumnTerm(rows.schema.names[0], pa.int32()) for rows in sides)
    parts = list(RowMatch((EqualTerms(ours, theirs, pa.int32()),)).pairs(*sides))

    assert [len(of_source) for of_source, _ in parts] == [4, 4, 1]
    assert {pair for part in parts for pair in zip(*part, strict=True)} == {(a, b) for a in range(3) for b in range(3)}


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda texts: texts,
        lambda texts: pa.array([[None, {"t": text}] for text in texts.to_pylist()]),
        lambda texts: pa.array([{"k": text} for text in texts.to_pylist()], pa.map_(pa.string(), pa.string())),
    ],
    ids=["text", "list of structs", "map"],
)
def test_pairs_of_a_wide_row_among_narrow_rows_are_made_in_parts(
    monkeypatch: pytest.MonkeyPatch, wrapped: Callable[[pa.Array], pa.Array]
) -> None:
    patch_seam(monkeypatch, "bytes of the pairs of a merge without Spark at once", 3000)
    source = pa.record_batch({"source.t": wrapped(pa.array(["", "", "x" * 1000, ""])).slice(1)})
    parts = list(RowMatch(()).pairs(source, pa.record_batch({"target.n": [1, 2, 3, 4]})))

    # Of two parts the first has two wide rows, and ends before the third.
    assert [of_source.tolist() for of_source, _ in parts] == [[0, 1, 2, 0, 1, 2, 0], [1, 2, 0, 1, 2]]


def test_a_wide_row_that_matches_many_rows_is_not_copied_for_each(tmp_path: Path) -> None:
    """Arrow fails at texts of more than 2 GiB in one array."""
    columns = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    table = arrow.Table.create(tmp_path / "t", columns, record_key="id", buckets=1)
    table.upsert(pa.table([range(40), [1] * 40], columns))
    source = pa.table({"n": pa.array([1], pa.int32()), "wide": ["x" * (64 << 20)]})
    assert table.merge(source, "n").when_matched_update({"n": "source.n + 1"}).execute().updates == 40


def test_values_are_equal_in_matches_as_in_spark(tmp_path: Path) -> None:
    """NaN equals NaN, 0.0 equals -0.0, a number equals the same number of another type, and null equals nothing."""
    schema = pa.schema([("id", pa.int32()), ("x", pa.float64()), ("d", pa.decimal128(9, 2)), ("n", pa.int32())])
    table = arrow.Table.create(tmp_path / "t", schema, record_key="id")
    values = [float("nan"), -0.0, 1.5, None]
    columns = {"id": [1, 2, 3, 4], "x": values, "d": [Decimal(1), Decimal(2), Decimal(3), None], "n": [0] * 4}
    table.upsert(pa.table(columns, schema))
    floats = pa.table({"x": [float("nan"), 0.0, None], "f": pa.array([1.5, 7, None], pa.float32())})
    by_x = table.merge(floats, "x").when_matched_update({"n": "target.n + 1"}).execute()
    by_f = table.merge(floats, "source.f = target.x").when_matched_update({"n": "target.n + 10"}).execute()
    decimals = pa.table({"d": pa.array([2, 3], pa.int64())})
    by_d = table.merge(decimals, "d").when_matched_update({"n": "target.n + 100"}).execute()

    assert [by_x.updates, by_f.updates, by_d.updates] == [2, 1, 2]
    assert table.read(["id", "n"]).sort_by("id")["n"].to_pylist() == [1, 101, 110, 0]
    table.update({"x": "0.3"}, "id = 4")
    tenths = pa.table({"t": pa.array([Decimal("0.3")]), "u": pa.array([Decimal("0.7")])})
    by_t = table.merge(tenths, "source.t = target.x").when_matched_update({"x": "source.u"}).execute()
    assert (by_t.updates, table.read("x", where="id = 4")["x"].to_pylist()) == (1, [0.7])


def test_moments_become_numbers_and_texts_as_in_spark(tmp_path: Path) -> None:
    moment = pa.timestamp("us", "UTC")
    schema = pa.schema([("id", pa.int32()), ("at", moment), ("n", pa.int64()), ("t", pa.string()), ("u", pa.string())])
    table = arrow.Table.create(tmp_path / "t", schema, record_key="id")
    table.upsert(pa.table({"id": [1], "at": [None], "n": [-7], "t": [None], "u": [None]}, schema))
    table.update({"at": "n", "u": pc.scalar(pa.scalar(-10_250_000, moment)), "t": datetime.datetime(2024, 1, 20)})
    table.update({"n": pc.subtract(pc.field("at"), pa.scalar(1, pa.duration("us")))})

    (row,) = table.read(["at", "n", "t", "u"]).to_pylist()
    assert row["at"].isoformat() == "1969-12-31T23:59:53+00:00"
    assert (row["n"], row["t"], row["u"]) == (-8, "2024-01-20 00:00:00", "1969-12-31 23:59:49.75")


def test_a_condition_is_asked_of_the_rows_that_no_clause_before_it_takes(table: arrow.Table) -> None:
    """Of others it may be an error."""
    table.update({"n": 0}, "id = 1")
    merge = table.merge(given(*START), "source.id = target.id AND target.n <> 0 AND 4 / target.n > 0")
    assert counts(merge.when_matched_update({"t": "source.t"}).execute()) == (0, 3, 0, 0)
    merge = table.merge(given(*START)).when_matched_delete("target.n = 0")
    assert counts(merge.when_matched_update({"n": 7}, "6 / target.n = 3").execute()) == (0, 1, 1, 0)


def _in_batches(rows: pa.Table, most: int) -> Iterator[pa.RecordBatch]:
    return iter(rows.to_batches(max_chunksize=most))


@pytest.mark.parametrize("seed", range(8))
def test_any_clauses_leave_what_delta_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Three merges of drawn clauses on each table, held against delta-rs, which knows of no keys."""
    from deltalake import DeltaTable, write_deltalake  # which the environment of the oldest Spark has not

    chance = random.Random(seed)
    if seed % 2:
        # The source comes in parts of a batch, the places are counted in many passes, and the changes wait on disk.
        patch_seam(monkeypatch, "shares of the memory of a merge without Spark", 1 << 24)
        patch_seam(monkeypatch, "bytes of rows that come once and wait in memory", 100)
        patch_seam(monkeypatch, "pairs of a merge without Spark at once", 3)
    terms = chance.choice([{}, {"table_type": "MERGE_ON_READ"}, {"index": "SIMPLE"}, {"order_by": ()}])
    table = made(tmp_path / "t", **terms)
    more = given(*((n, "a", 5, n, "x") for n in range(5, 9)))
    table.upsert(more)
    write_deltalake(str(tmp_path / "d"), pa.concat_tables([given(*START), more]))
    merged = 0
    while merged < 3:
        drawn_rows, on, clauses = drawn_merge(chance)
        delta = DeltaTable(str(tmp_path / "d"))
        source = given(*drawn_rows)
        theirs: Any = delta.merge(source, on, source_alias="source", target_alias="target")
        ours: Any = table.merge(_in_batches(source, 2) if seed % 2 else source, on)
        for name, arguments in clauses:
            theirs, ours = getattr(theirs, name)(*arguments), getattr(ours, name)(*arguments)
        try:
            our_result = ours.execute()
        except DuplicateKeyError:
            continue  # a key that two rows would have, of which delta-rs knows nothing
        if our_result.dropped:
            return  # an insert that a delete in log files outdoes, of which delta-rs knows nothing either
        told = theirs.execute()
        merged += 1

        left = DeltaTable(str(tmp_path / "d")).to_pyarrow_table().to_pylist()
        assert sorted(rows(table), key=str) == sorted((tuple(row.values()) for row in left), key=str)
        expected = [told[f"num_target_rows_{name}"] for name in ("inserted", "updated", "deleted")]
        assert [our_result.inserts, our_result.updates, our_result.deletes] == expected
