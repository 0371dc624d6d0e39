"""A table whose columns change, by Apache Hudi and by pyhudi in turn, and each kind of change by both."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.readers import read_hudi_rs
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.latest_schema import latest_schema
from pyhudi.table.schema.columns import canonical
from pyhudi.table.schema.evolution import EvolutionRules, evolve
from pyhudi.table.schema.types import children
from pyhudi.timeline.timeline import load_timeline
from support.ddl import columns, show
from support.drive import write
from support.evolutions import MATRIX, REFUSED, Difference
from support.evolving import moved, read_rows

pytestmark = pytest.mark.interop

BUCKETS = 2
SETTINGS = TableSettings(name="t", record_key_fields=("id",), ordering_fields=("ts",), bucket_count=BUCKETS)
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.metadata.enable": "false",
}
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
            write(path, rows, table=settings, settings=WriteSettings(set_null_for_missing=fewer))
        else:
            apache.write(path, rows, {**OPTIONS, SET_NULL: str(fewer).lower()})
        before = table
        table = schema if before is None else evolve(before, schema, EvolutionRules(set_null=fewer)).schema
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


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tables that Apache Hudi made are kept, to be copied."""
    return tmp_path_factory.mktemp("bases")


@pytest.mark.parametrize(
    "case",
    [pytest.param(one, id=one.name.replace(" ", "-")) for one in MATRIX if "not null" not in one.table + one.incoming],
)
def test_a_change_does_the_same_in_both(tmp_path: Path, bases: Path, apache: ApacheHudi, case: Difference) -> None:
    """Or what is known to be different is different: a cure would be noticed."""
    base = bases / case.table.translate(dict.fromkeys(map(ord, " <>,:()"), "_"))
    old, new = columns(f"id string, ts bigint, {case.table}"), columns(f"id string, ts bigint, {case.incoming}")
    if not base.exists():
        apache.write(base, rows(old, "k1", "k2", "k3", ts=1), OPTIONS, mode="overwrite")
    path = tmp_path / "t"
    shutil.copytree(base, path)
    batch = rows(new, "k1", "n1", ts=2)
    if (case.table, case.incoming) == ("v date", "v string"):
        batch = as_dates(batch)
    known = case.hudi.partition(",")[0]
    if case.default.startswith(REFUSED) and not known:
        with pytest.raises(ApacheHudiError):
            apache.write(path, batch, OPTIONS)
        return
    apache.write(path, batch, OPTIONS)

    assert show(pa.schema(list(columns_of(path))[2:])) == (known or case.default)
    if not known:
        ours = tmp_path / "ours"
        shutil.copytree(base, ours)
        write(ours, batch, table=TableSettings(bucket_count=BUCKETS))
        assert columns_of(ours) == columns_of(path)
        assert read_rows(ours) == read_rows(path) == rows_of(apache.read(path), columns_of(path))


def columns_of(path: Path) -> pa.Schema:
    storage = open_storage(str(path))
    config = load_config(storage)
    schema = latest_schema(storage, config, load_timeline(storage, config))
    assert schema is not None
    return schema


def rows_of(found: pa.Table, schema: pa.Schema) -> list[dict[str, Any]]:
    """Return some columns of what a reader found, in the order of the keys."""
    plain = pa.schema([one.with_nullable(True) for one in schema])
    return sorted(found.select(plain.names).to_pylist(maps_as_pydicts="strict"), key=lambda row: row["id"])


def rows(schema: pa.Schema, *keys: str, ts: int) -> pa.Table:
    given = [{"id": key, "ts": ts, **values_of(canonical(schema), ts)} for key in keys]
    return pa.Table.from_pylist(given, schema)


def as_dates(table: pa.Table) -> pa.Table:
    """Return rows whose texts are dates."""
    at = table.schema.get_field_index("v")
    return table.set_column(at, "v", pa.array(["2021-03-04"] * table.num_rows))


def values_of(schema: pa.Schema, number: int) -> dict[str, Any]:
    return {one.name: value_of(one.type, number) for one in schema if one.name not in {"id", "ts"}}


def value_of(kind: pa.DataType, number: int) -> Any:
    """Return a value of a type; texts are such that a date or a decimal can be made of them, one of the two."""
    if pa.types.is_struct(kind):
        return {one.name: value_of(one.type, number) for one in children(kind)}
    if pa.types.is_list(kind):
        return [value_of(kind.value_type, number)]
    if pa.types.is_map(kind):
        return {"key": value_of(kind.item_type, number)}
    if pa.types.is_decimal(kind):
        return Decimal(number) + Decimal("0.50")
    return {
        pa.bool_(): True,
        pa.int32(): number,
        pa.int64(): number + 100,
        pa.float32(): 1.100000023841858,
        pa.float64(): 2.25,
        pa.string(): "1.50",
        pa.binary(): b"1.25",
        pa.date32(): dt.date(2024, 2, 1 + number),
        pa.timestamp("us", "UTC"): dt.datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=dt.timezone.utc),
        pa.timestamp("us"): dt.datetime(2024, 2, 29, 1, 2, 3, 456789),
    }[kind]
