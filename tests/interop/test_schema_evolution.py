"""A table whose columns change, by Apache Hudi and by pyhudi in turn, and each kind of change by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.readers import read_hudi_rs
from pyhudi.operations.planning.request import TableSettings
from pyhudi.table.schema.evolution import EvolutionRules, evolve
from support.drawn.evolving import moved, read_rows
from support.drive import write
from support.recorded.ddl import columns, show
from support.recorded.evolutions import Difference
from support.recorded.recorded_evolutions import (
    BUCKETS,
    CASES,
    OPTIONS,
    Recorded,
    columns_of,
    first_rows,
    next_rows,
    rows_of,
    spelled,
    values_of,
)
from support.write_settings import write_settings

pytestmark = pytest.mark.interop

SETTINGS = TableSettings(name="t", record_key_fields=("id",), ordering_fields=("ts",), bucket_count=BUCKETS)
COUNTED = TableSettings(bucket_count=BUCKETS)
SET_NULL = "hoodie.write.set.null.for.missing.columns"

# The columns, and whether some are missing.
STEPS = [
    ("i int, f float, g float, s struct<a:int>, l array<struct<x:int>>", False),
    ("i bigint, f double, g float, s struct<a:int,b:string>, l array<struct<x:int>>", False),
    ("i string, f double, g float, s struct<a:bigint,b:string>, l array<struct<x:int,y:date>>", False),
    ("i int, f float, w map<string,struct<u:int>>", True),
    ("w map<string,struct<u:double,v:string>>, n decimal(5,2)", True),
    ("n decimal(9,4), g string", True),
    ("f float, s struct<b:string>", True),
]


@pytest.mark.parametrize("first", [0, 1], ids=["pyhudi-first", "apache-hudi-first"])
def test_both_change_the_columns_in_turn(tmp_path: Path, apache: ApacheHudi, first: int) -> None:
    """After every write both show the same rows, which are those of a dict; so does hudi-rs where no float moved."""
    path = tmp_path / "t"
    table: pa.Schema | None = None
    model: dict[str, dict[str, Any]] = {}
    for number, (ddl, fewer) in enumerate(STEPS):
        schema = columns(f"id string, ts bigint, {ddl}")
        keys = [f"k{key}" for key in (range(8) if number == 0 else (number, number + 10))]
        given = [{"id": key, "ts": number, **values_of(schema, number)} for key in keys]
        rows = pa.Table.from_pylist(given, schema)
        if number % 2 == first:
            settings = SETTINGS if number == 0 else TableSettings(bucket_count=BUCKETS)
            write(path, rows, table=settings, settings=write_settings(set_null=fewer, number_to_text=True))
        else:
            apache.write(path, rows, {**OPTIONS, SET_NULL: str(fewer).lower()})
        before = table
        rules = EvolutionRules(set_null=fewer, number_to_text=True)
        table = schema if before is None else evolve(before, schema, rules).schema
        model = {key: moved(row, before, table) for key, row in model.items()} if before is not None else model
        model |= {row["id"]: moved(row, schema, table) for row in given}

        expected = [model[key] for key in sorted(model)]
        assert show(columns_of(path)) == show(table)
        assert read_rows(path) == expected
        assert rows_of(apache.read(path), table) == expected
    alike = [name for name in table.names if name not in {"f", "g", "w"}]
    assert rows_of(read_hudi_rs(path), pa.schema([table.field(name) for name in alike])) == [
        {name: row[name] for name in alike} for row in expected
    ]


def test_a_column_that_apache_hudi_made_text_stays_text(tmp_path: Path, apache: ApacheHudi) -> None:
    """Numbers come into it as text, from either; the record key, which became text too, is found by the number."""
    path = tmp_path / "t"
    keyed = {**OPTIONS, "hoodie.datasource.write.recordkey.field": "n"}
    numbers, texts = columns("id string, ts bigint, n int, v int"), columns("id string, ts bigint, n string, v string")
    apache.write(path, pa.table([["a", "b"], [1, 1], [7, 8], [9, 9]], schema=numbers), keyed, mode="overwrite")
    apache.write(path, pa.table([["a"], [2], ["7"], ["x"]], schema=texts), keyed)
    assert show(columns_of(path)) == show(texts)
    done = write(path, pa.table([["b", "c"], [3, 3], [8, 9], [10, 11]], schema=numbers), table=COUNTED)

    assert (done.updates, done.inserts, done.schema_changes) == (1, 1, ())
    expected = [("a", "7", "x"), ("b", "8", "10"), ("c", "9", "11")]
    assert show(columns_of(path)) == show(texts)
    assert [(row["id"], row["n"], row["v"]) for row in read_rows(path)] == expected
    assert [(row["id"], row["n"], row["v"]) for row in rows_of(apache.read(path), texts)] == expected


def test_apache_hudi_finds_the_numbers_that_pyhudi_made_of_text(tmp_path: Path, apache: ApacheHudi) -> None:
    path = tmp_path / "t"
    numbers, texts = columns("id string, ts bigint, n int, v int"), columns("id string, ts string, n string, v string")
    keyed = {**OPTIONS, "hoodie.datasource.write.recordkey.field": "n"}
    apache.write(path, pa.table([["a", "b"], [1, 1], [7, 8], [9, 9]], schema=numbers), keyed, mode="overwrite")
    write(path, pa.table([["a", "c"], ["2", "2"], ["7", "-9"], ["10", None]], schema=texts), table=COUNTED)
    apache.write(path, pa.table([["d", "e"], [3, 3], [-9, 8], [1, 2]], schema=numbers), keyed)

    expected = [("a", 7, 10), ("d", -9, 1), ("e", 8, 2)]
    assert show(columns_of(path)) == show(numbers)
    assert [(row["id"], row["n"], row["v"]) for row in read_rows(path)] == expected
    assert [(row["id"], row["n"], row["v"]) for row in rows_of(apache.read(path), numbers)] == expected


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded.unpack(tmp_path_factory.mktemp("recorded"))


# Of each kind one, nested or not; all are recorded, and held against what pyhudi does without Apache Hudi.
LIVE = (
    "nothing",
    "new field in the middle of a struct",
    "missing column",
    "int becomes bigint",
    "float becomes string",
    "int into bigint",
    "string into date",
    "float for int",
)


@pytest.mark.parametrize("case", [one for one in CASES if one.name in LIVE], ids=lambda case: case.name)
def test_what_is_recorded_is_what_apache_hudi_does(
    tmp_path: Path, apache: ApacheHudi, recorded: Recorded, case: Difference
) -> None:
    path = tmp_path / "t"
    apache.write(path, first_rows(case), OPTIONS, mode="overwrite")
    answer = recorded.answers[case.name]
    if answer is None:
        with pytest.raises(ApacheHudiError):
            apache.write(path, next_rows(case), OPTIONS)
        return
    apache.write(path, next_rows(case), OPTIONS)

    assert columns_of(path) == columns_of(recorded.after(case))
    assert spelled(rows_of(apache.read(path), columns_of(path))) == answer


def test_each_live_case_is_one() -> None:
    assert {one.name for one in CASES} >= set(LIVE)
