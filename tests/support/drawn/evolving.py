"""Histories of writes whose columns change, held against a dict whose values a few lines of Python move along."""

from __future__ import annotations

import datetime as dt
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyhudi.errors import ColumnValueError, PyHudiError, SchemaMismatchError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.reader.scan import RowReader
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.table.files.output import Output
from pyhudi.table.schema.evolution import Evolution, EvolutionRules, Role, evolve
from pyhudi.table.schema.types import children
from support.drive import carry_out, plan
from support.readers import read_by_hudi_rs
from support.rules.ends import assert_whole

TABLE = TableSettings(record_key_fields=("id",), ordering_fields=("ts",), bucket_count=3)
KEYS = [pa.field("id", pa.string()), pa.field("ts", pa.int64())]

INT, LONG, FLOAT, DOUBLE, TEXT = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()
SMALL, LARGE, DATE = pa.decimal128(5, 2), pa.decimal128(20, 4), pa.date32()
FLAT = [INT, LONG, FLOAT, DOUBLE, TEXT, SMALL, LARGE, DATE, pa.bool_(), pa.binary()]
# hudi-rs casts as Arrow does, which spells floats otherwise and does not go by their text.
ALIKE = [INT, LONG, TEXT, SMALL, LARGE, DATE, pa.bool_(), pa.binary()]
WIDER = {INT: [LONG, DOUBLE, FLOAT, TEXT, TEXT], LONG: [TEXT, DOUBLE, FLOAT], FLOAT: [DOUBLE, TEXT], SMALL: [LARGE]}
NARROWER = {LONG: [INT], DOUBLE: [INT, FLOAT], TEXT: [INT, LONG, FLOAT, DATE, SMALL], LARGE: [SMALL, INT]}

Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One write: its columns, how they may differ from the table's, and its rows."""

    schema: pa.Schema
    rules: EvolutionRules
    rows: list[Row]
    colocated: bool

    @property
    def settings(self) -> WriteSettings:
        """The settings of the write."""
        output = Output(row_group_bytes=400)
        return WriteSettings(evolution=self.rules, colocated=self.colocated, output=output)


def check_evolutions(seed: int, *, steps: int = 5, kinds: Sequence[pa.DataType] = tuple(FLAT)) -> None:
    """Assert after each write of a random history that the reader shows what the dict says.

    Args:
        seed: Decides everything else.
        steps: Number of writes.
        kinds: The flat types of columns; with those that hudi-rs casts as Apache Hudi does, it is asked too.
    """
    chance = random.Random(seed)
    table: pa.Schema | None = None
    model: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        for number in range(steps):
            step = random_step(chance, table, kinds, number)
            evolution = Evolution(step.schema, ()) if table is None else evolved(table, step)
            refused = refusal(evolution, step)
            if refused is not None:
                with pytest.raises(refused):
                    carry(path, step, first=False)
                assert read_rows(path) == [model[key] for key in sorted(model)]
                continue
            carry(path, step, first=table is None)
            before, table = table, evolution.schema
            if before is not None:
                model = {key: moved(row, before, table) for key, row in model.items()}
            model |= {row["id"]: moved(row, step.schema, table) for row in step.rows}

            expected = [model[key] for key in sorted(model)]
            assert read_rows(path) == expected
            if not {FLOAT, DOUBLE} & set(kinds):
                assert rows_by_hudi_rs(path, table) == expected
        assert_whole(path)


def carry(path: Path, step: Step, *, first: bool) -> None:
    """Write the rows of a step, by a task or by two."""
    rows = pa.Table.from_pylist(step.rows, step.schema)
    planned = plan(path, step.schema, table=TABLE if first else TableSettings(), settings=step.settings)
    carry_out(planned, [rows] if step.colocated else [rows.slice(0, 3), rows.slice(3)])


def evolved(table: pa.Schema, step: Step) -> Evolution:
    """Return what becomes of a table's columns, by which its rows are ordered."""
    return evolve(table, step.schema, step.rules, {"ts": [Role.ORDERING]})


def refusal(evolution: Evolution, step: Step) -> type[PyHudiError] | None:
    """Return the error that refuses a step; None for a step that the table takes."""
    if evolution.differences:
        return SchemaMismatchError
    given, kept = pa.struct(list(step.schema)), pa.struct(list(evolution.schema))
    return None if all(_is_spelt(row, given, kept) for row in step.rows) else ColumnValueError


def _is_spelt(value: Any, given: pa.DataType, kept: pa.DataType) -> bool:
    """Return whether all texts and floats that come into columns of whole numbers are such numbers."""
    if value is None or given == kept:
        return True
    if pa.types.is_struct(given):
        own = {one.name: one.type for one in children(kept)}
        return all(_is_spelt(value[one.name], one.type, own[one.name]) for one in children(given))
    if pa.types.is_list(given):
        return all(_is_spelt(one, given.value_type, kept.value_type) for one in value)
    if pa.types.is_map(given):
        return all(_is_spelt(one, given.item_type, kept.item_type) for one in value.values())
    if kept not in {INT, LONG}:
        return True
    if given in {FLOAT, DOUBLE}:
        bound = 2**24 if given == FLOAT else 2**53
        return abs(value) < bound and value == int(value) and _fits(int(value), kept)
    if given != TEXT:
        return True
    digits = value.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(value)) == value and _fits(int(value), kept)


def _fits(number: int, kind: pa.DataType) -> bool:
    return -(1 << (kind.bit_width - 1)) <= number < 1 << (kind.bit_width - 1)


def read_rows(path: Path) -> list[Row]:
    """Return the data columns of all rows in the order of their keys, read as Spark reads them."""
    snapshot = open_snapshot(str(path))
    columns = pa.schema([one.with_nullable(True) for one in list(snapshot.schema)[5:]])
    batches = [
        batch
        for split in snapshot.plan(columns, (), 1 << 27)
        for batch in RowReader(snapshot.storage, columns, snapshot.schema).read(split)
    ]
    return _sorted(pa.Table.from_batches(batches, columns))


def rows_by_hudi_rs(path: Path, schema: pa.Schema) -> list[Row]:
    """Return the same by hudi-rs."""
    return _sorted(read_by_hudi_rs(path).select(schema.names))


def _sorted(rows: pa.Table) -> list[Row]:
    return sorted(rows.to_pylist(maps_as_pydicts="strict"), key=lambda row: row["id"])


def random_step(chance: random.Random, table: pa.Schema | None, kinds: Sequence[pa.DataType], number: int) -> Step:
    """Return a write that a table of these columns allows."""
    rules = chance.choice([EvolutionRules(), EvolutionRules(reconcile=True), EvolutionRules(set_null=True)])
    rules = replace(rules, number_to_text=chance.random() < 0.3, int_to_double=chance.random() < 0.3)
    if table is None:
        columns = [pa.field(f"c{n}", random_type(chance, kinds, 2)) for n in range(3)]
        columns.append(pa.field("whole", chance.choice([INT, LONG])))
    else:
        columns = changed(chance, list(table)[len(KEYS) :], kinds, rules, f"n{number}")
    stamp = LONG if table is None else chance.choice([LONG, INT, TEXT])
    schema = pa.schema([KEYS[0], KEYS[1].with_type(stamp), *columns])
    keys = chance.sample(range(8), 5)
    stored_types = {} if table is None else {column.name: column.type for column in table}
    misspelt = chance.choice([(), (), _READ_AS_NUMBERS, _MISSPELT])
    rows = [
        {
            "id": f"k{key}",
            "ts": str(number) if stamp == TEXT else number,
            **{
                column.name: random_value(chance, column.type, stored_types.get(column.name), misspelt=misspelt)
                for column in columns
            },
        }
        for key in keys
    ]
    return Step(schema, rules, rows, chance.random() < 0.5)


def changed(
    chance: random.Random, fields: list[pa.Field], kinds: Sequence[pa.DataType], rules: EvolutionRules, fresh: str
) -> list[pa.Field]:
    """Return the fields of a write to a table that has these: some wider or narrower, left out, new, in any order."""
    left = [one for one in fields if not rules.fills or chance.random() < 0.7] or fields
    written_fields = [one.with_type(_changed_type(chance, one.type, kinds, rules, fresh)) for one in left]
    if chance.random() < 0.4:
        written_fields.append(pa.field(fresh, random_type(chance, kinds, 1)))
    chance.shuffle(written_fields)
    return written_fields


def _changed_type(
    chance: random.Random, kind: pa.DataType, kinds: Sequence[pa.DataType], rules: EvolutionRules, fresh: str
) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(changed(chance, children(kind), kinds, rules, fresh))
    if pa.types.is_list(kind):
        return list_of(_changed_type(chance, kind.value_type, kinds, rules, fresh))
    if pa.types.is_map(kind):
        return map_of(_changed_type(chance, kind.item_type, kinds, rules, fresh))
    others = [one for one in (*WIDER.get(kind, ()), *NARROWER.get(kind, ())) if one in kinds]
    return chance.choice(others) if others and chance.random() < 0.4 else kind


def random_type(chance: random.Random, kinds: Sequence[pa.DataType], depth: int) -> pa.DataType:
    """Return a flat or a nested type."""
    shape = chance.choice(["flat", "flat", "struct", "list", "map"]) if depth else "flat"
    if shape == "struct":
        return pa.struct([pa.field(name, random_type(chance, kinds, depth - 1)) for name in ("a", "b")])
    if shape == "list":
        return list_of(random_type(chance, kinds, depth - 1))
    if shape == "map":
        return map_of(random_type(chance, kinds, depth - 1))
    return chance.choice(kinds)


def list_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of a list as a table keeps it."""
    return pa.list_(pa.field("element", kind))


def map_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of a map as a table keeps it."""
    return pa.map_(pa.field("key", TEXT, nullable=False), pa.field("value", kind))


def random_value(
    chance: random.Random, kind: pa.DataType, kept: pa.DataType | None = None, *, misspelt: Sequence[str] = ()
) -> Any:
    """Return a value of a type, null now and then.

    Args:
        chance: Decides.
        kind: The type.
        kept: The type that the table keeps the column in; None where it has no such column.
        misspelt: Texts, some of which may come into a column of whole numbers that takes none of them, as may floats
            with a fraction; without any, none comes.
    """
    if chance.random() < 0.2:
        return None
    if pa.types.is_struct(kind):
        own = {} if kept is None else {one.name: one.type for one in children(kept)}
        return {
            one.name: random_value(chance, one.type, own.get(one.name), misspelt=misspelt) for one in children(kind)
        }
    if pa.types.is_list(kind):
        inner = None if kept is None else kept.value_type
        return [random_value(chance, kind.value_type, inner, misspelt=misspelt) for _ in range(chance.randrange(3))]
    if pa.types.is_map(kind):
        inner = None if kept is None else kept.item_type
        names = chance.sample("xyz", chance.randrange(3))
        return {name: random_value(chance, kind.item_type, inner, misspelt=misspelt) for name in names}
    if kind == TEXT and kept in {INT, LONG}:
        return chance.choice(misspelt if misspelt and chance.random() < 0.5 else _SPELT[kept])
    if kind in {FLOAT, DOUBLE} and kept in {INT, LONG}:
        return chance.choice(_NUMBERS if misspelt and chance.random() < 0.3 else _WHOLE[kind])
    if kind == FLOAT:
        return float(np.float32(chance.choice(_NUMBERS)))
    return {
        INT: lambda: chance.choice([0, 7, -(2**31), 2**31 - 1]),
        LONG: lambda: chance.choice([0, -7, 2**53 + 1, -(2**63)]),
        DOUBLE: lambda: chance.choice(_NUMBERS),
        TEXT: lambda: chance.choice(["", "x", "12", "日本"]),
        SMALL: lambda: Decimal(chance.choice(["0.00", "-999.99", "1.50"])),
        LARGE: lambda: Decimal(chance.choice(["0.0000", "-99999.9999", "0.0001"])),
        DATE: lambda: chance.choice([dt.date(2024, 2, 29), dt.date(1, 1, 1)]),
        pa.bool_(): lambda: chance.random() < 0.5,
        pa.binary(): lambda: chance.choice([b"", b"\xff", b"a"]),
    }[kind]()


_SPELT = {
    INT: ["0", "7", "-7", "2147483647", "-2147483648"],
    LONG: ["0", "7", "-12", "9223372036854775807", "-9223372036854775808"],
}
_WHOLE = {
    FLOAT: [0.0, -0.0, 7.0, 2.0**24 - 1, 1 - 2.0**24],
    DOUBLE: [0.0, -0.0, -7.0, 2.0**31 - 1, -(2.0**31)],
}
_READ_AS_NUMBERS = ["07", "-0", "-007", "00"]
_MISSPELT = [*_READ_AS_NUMBERS, " 7", "7 ", "+7", "7.0", "1e3", "9223372036854775808", "٧", "", " ", "x"]
_NUMBERS = [0.0, -0.0, 1.1, 0.3, 1e10, -1e-5, 123456.789, 9999999.0, 1e7, 0.001, float("inf")]


def moved(row: Row, before: pa.Schema, after: pa.Schema) -> Row:
    """Return a row of some columns as a row of others."""
    return _moved(row, pa.struct(list(before)), pa.struct(list(after)))  # type: ignore[no-any-return]


def _moved(value: Any, before: pa.DataType, after: pa.DataType) -> Any:
    if value is None or before == after:
        return value
    if pa.types.is_struct(after):
        old = {one.name: one.type for one in children(before)}
        return {
            one.name: _moved(value[one.name], old[one.name], one.type) if one.name in old else None
            for one in children(after)
        }
    if pa.types.is_list(after):
        return [_moved(one, before.value_type, after.value_type) for one in value]
    if pa.types.is_map(after):
        return {name: _moved(one, before.item_type, after.item_type) for name, one in value.items()}
    if after in {INT, LONG} and before in {TEXT, FLOAT, DOUBLE}:
        return int(value)
    if after == DOUBLE:
        return float(str(np.float32(value))) if before == FLOAT else float(value)
    if after == TEXT:
        return _text(value, before)
    return Decimal(value).quantize(Decimal("0.0001")) if after == LARGE else value


def _text(value: Any, kind: pa.DataType) -> str:
    if kind not in {FLOAT, DOUBLE}:
        return str(value)
    number = np.float32(value) if kind == FLOAT else np.float64(value)
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return str(np.format_float_positional(number, unique=True, trim="0"))
    digits, _, exponent = np.format_float_scientific(number, unique=True, trim="0").partition("e")
    return f"{digits}E{int(exponent)}"
