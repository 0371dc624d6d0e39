"""Rows that leave columns to older rows, in tables that both write: each reads, updates and compacts the other's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.readers import read_hudi_rs
from interop.scenarios import BUCKETS
from interop.writer import write_without_spark
from pyhudi.table.config.payloads import PAYLOADS, Payload
from pyhudi.table.config.property_keys import EVENT_TIME_ORDERING, PARTIAL_UPDATE_MODE
from pyhudi.table.merging.deletes import IS_DELETED
from support.drawn.partial_checks import COLUMNS, shown
from support.made.compacting import run, schedule
from support.models.partial_model import PartialModel, Step, rows
from support.recorded.hudi_options import SMALL
from support.rules.health import errors

pytestmark = pytest.mark.interop

OPTIONS = {
    **SMALL,
    BUCKETS: "2",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
}
_NAMES = itertools.count()
Tuples = tuple[tuple[object, ...], ...]


@dataclass
class Shared:
    """A merge-on-read table that both write, and what it must hold.

    Attributes:
        path: Where it is.
        apache: Apache Hudi.
        options: Of every write.
        model: What the table must hold.
    """

    path: Path
    apache: ApacheHudi
    options: dict[str, str]
    model: PartialModel
    name: str = field(default_factory=lambda: f"partial_{next(_NAMES)}")

    def ours(self, *given: tuple[object, ...], columns: tuple[str, ...] | None = None) -> None:
        """Have pyhudi upsert rows, with some of the columns or all."""
        some = self._taken(given, columns)
        more = {} if columns is None else {"hoodie.pyhudi.partial.update": "true"}
        write_without_spark(self.path, some, {**self.options, **more})

    def theirs(self, *given: tuple[object, ...]) -> None:
        """Have Apache Hudi upsert rows."""
        self.apache.write(self.path, self._taken(given, None), self.options)

    def merge_into(self, column: str, *given: tuple[object, ...]) -> None:
        """Have Apache Hudi update one column of rows of (id, p, ts, value)."""
        self._taken(given, ("id", "p", "ts", column))
        source = " union all ".join(
            f"select '{key}' id, '{p}' p, {ts}L ts, {_literal(value)} {column}" for key, p, ts, value in given
        )
        self.apache.sql(
            f"merge into {self.name} t using ({source}) s on t.id = s.id and t.p = s.p "
            f"when matched then update set t.{column} = s.{column}, t.ts = s.ts"
        )

    def check(self, *, hudi_rs: bool = True) -> None:
        """Hold all readers against the model."""
        expected = self.model.tuples()
        assert shown(self.path) == expected
        assert _tuples(self.apache.read(self.path)) == expected
        if hudi_rs:
            assert _tuples(read_hudi_rs(self.path)) == expected
        assert errors(self.path) == []

    def compacted_by_us(self) -> None:
        """Compact, as pyhudi."""
        run(self.path)
        self.model.compact()

    def compacted_by_them(self) -> None:
        """Have Apache Hudi carry out what pyhudi plans."""
        schedule(self.path)
        assert self.apache.sql(f"call run_compaction(op => 'run', path => '{self.path}')")
        self.model.compact()

    def _taken(self, given: Tuples, columns: tuple[str, ...] | None) -> pa.Table:
        some = rows(*given, columns=columns or ("id", "p", "ts", "name", "n"))
        whole = [{"name": None, "n": None, IS_DELETED: None, **row} for row in some.to_pylist()]
        assert self.model.apply(Step(tuple(whole), columns)) is None
        if self.model.flagged and columns is None:
            return some.append_column(IS_DELETED, pa.nulls(some.num_rows, pa.bool_()))
        return some


@pytest.fixture
def java(apache: ApacheHudi) -> Iterator[ApacheHudi]:
    """Apache Hudi with what statements and procedures take from the session."""
    settings = {"hoodie.metadata.enable": "false", "hoodie.index.type": "BUCKET", BUCKETS: "2"}
    settings |= {"hoodie.compact.inline": "false"}
    for key, value in settings.items():
        apache.sql(f"set {key}={value}")
    yield apache
    for key in settings:
        apache.sql(f"reset {key}")


@pytest.mark.parametrize(
    ("told", "first"),
    [
        (PAYLOADS["PartialUpdateAvroPayload"], "ours"),
        (PAYLOADS["OverwriteNonDefaultsWithLatestAvroPayload"], "theirs"),
        ("FILL_UNAVAILABLE", "ours"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_both_write_tables_with_a_mode(tmp_path: Path, java: ApacheHudi, told: Payload | str, first: str) -> None:
    """Rows of one key in one write, rows that come too late, nulls and the word that stands for no value."""
    word = "__debezium_unavailable_value"
    if isinstance(told, Payload):
        options = {**OPTIONS, "hoodie.datasource.write.payload.class": told.java_class}
        mode, ordered = told.partial_update_mode, told.merge_mode == EVENT_TIME_ORDERING
    else:
        options, mode, ordered = {**OPTIONS, PARTIAL_UPDATE_MODE: told}, told, True
    table = Shared(tmp_path / "t", java, options, PartialModel(mode, ordered, logs=True, word=word, flagged=False))
    first_writer, other = (table.ours, table.theirs) if first == "ours" else (table.theirs, table.ours)
    first_writer(*((f"k{n}", "a", 10, f"first {n}", n) for n in range(6)), ("k0", "b", 10, None, None))
    # What Apache Hudi has no option of a write for.
    options.pop(PARTIAL_UPDATE_MODE, None)
    for write in (other, first_writer):
        at = 20 if write == other else 30
        write(
            ("k0", "a", at, None, at),
            ("k1", "a", at, word, None),
            ("k2", "a", 5, "late", None),
            ("k0", "b", 3, "late", 3),
            ("k3", "a", at + 1, None, at),
            ("k3", "a", at + 2, "twice", None),
        )
        table.check(hudi_rs=False)
    table.compacted_by_them() if first == "ours" else table.compacted_by_us()
    table.check()
    first_writer(("k4", "a", 40, None, 1), ("k0", "b", 2, "later", 4))
    other(("k4", "a", 41, "named", None), ("k5", "a", 9, "late", None))
    table.check(hudi_rs=False)
    table.compacted_by_us() if first == "ours" else table.compacted_by_them()
    table.check()


@pytest.mark.parametrize(
    ("blocks", "ordered"), [("parquet", True), ("avro", False)], ids=["parquet-event-time", "avro-commit-time"]
)
def test_both_update_some_columns(tmp_path: Path, java: ApacheHudi, blocks: str, ordered: bool) -> None:
    """Partial upserts and `MERGE INTO`, over base rows and over each other, too early and too late."""
    options = {**OPTIONS, "hoodie.logfile.data.block.format": blocks}
    if not ordered:
        del options["hoodie.table.ordering.fields"]
    table = Shared(tmp_path / "t", java, options, PartialModel(None, ordered, logs=True, flagged=False))
    table.ours(*((f"k{n}", p, 10, f"first {n}", n) for n in range(6) for p in "ab"))
    java.sql(f"create table {table.name} using hudi location '{table.path}'")
    n, name = ("id", "p", "ts", "n"), ("id", "p", "ts", "name")
    table.ours(("k0", "a", 20, 100), ("k1", "a", 5, 101), ("k0", "b", 10, None), columns=n)
    table.check()
    table.merge_into("name", ("k0", "a", 30, "second"), ("k1", "a", 11, "first"), ("k2", "b", 20, None))
    table.ours(("k0", "a", 25, 125), ("k2", "b", 21, 221), ("k2", "b", 22, 222), columns=n)
    table.theirs(("k3", "a", 40, "whole", None))
    table.ours(("k3", "a", 39, "too late"), ("k3", "b", 39, "in time"), columns=name)
    table.merge_into("n", ("k3", "b", 50, 350), ("k4", "b", 1, 9))
    table.check()
    if blocks == "avro":
        table.compacted_by_us()
    else:
        table.compacted_by_them()
    table.check()
    table.ours(("k3", "a", 60, 360), ("k5", "b", 9, 5), columns=n)
    table.check()
    java.sql(f"drop table {table.name}")


@pytest.mark.parametrize(
    ("blocks", "ordered"), [("avro", True), ("parquet", False)], ids=["avro-event-time", "parquet-commit-time"]
)
def test_some_columns_of_a_table_with_a_delete_flag_are_updated(
    tmp_path: Path, java: ApacheHudi, blocks: str, ordered: bool
) -> None:
    """Apache Hudi drops the rows of partial blocks there, so that log files have whole rows."""
    options = {**OPTIONS, "hoodie.logfile.data.block.format": blocks}
    if not ordered:
        del options["hoodie.table.ordering.fields"]
    table = Shared(tmp_path / "t", java, options, PartialModel(None, ordered, logs=True))
    table.theirs(*((f"k{n}", p, 10, f"first {n}", n) for n in range(6) for p in "ab"))
    n, name, flag = ("id", "p", "ts", "n"), ("id", "p", "ts", "name"), ("id", "p", "ts", "n", IS_DELETED)
    table.ours(("k0", "a", 20, 100), ("k1", "a", 5, 101), ("k0", "b", 10, None), columns=n)
    table.ours(("k2", "a", 20, 102, False), ("k3", "a", 20, None, True), ("k4", "a", 5, None, True), columns=flag)
    table.check()
    table.theirs(("k3", "b", 40, "whole", None), ("k3", "a", 41, "again", 3), ("k1", "b", 40, "new", 1))
    table.ours(("k3", "b", 39, "too late"), ("k1", "b", 41, "in time"), ("k3", "a", 42, "third"), columns=name)
    table.check()
    if blocks == "avro":
        table.compacted_by_us()
    else:
        table.compacted_by_them()
    table.check()
    table.ours(("k3", "a", 60, 360), ("k5", "b", 9, 5), columns=n)
    table.check()


def test_some_columns_are_updated_where_strings_order_or_a_marker_deletes(tmp_path: Path, java: ApacheHudi) -> None:
    """Such tables get partial blocks, which Apache Hudi reads: of Avro where a string orders rows."""
    marker = {"hoodie.payload.delete.field": "name", "hoodie.payload.delete.marker": "gone"}
    fields = {"hoodie.table.ordering.fields": "name"}
    given_columns, changed = ("id", "p", "ts", "name"), {"hoodie.pyhudi.partial.update": "true"}
    for number, (first, live, names) in enumerate(
        ((marker, "here", ("x", "gone", "x")), (fields, "m", ("a", "n", "m")))
    ):
        path = tmp_path / f"t{number}"
        whole = rows(*((f"k{at}", "a", 1, live, at) for at in range(4)))
        write_without_spark(path, whole, {**OPTIONS, **first})
        some = rows(*((f"k{at}", "a", 2, text) for at, text in enumerate(names)), columns=given_columns)
        write_without_spark(path, some, {**OPTIONS, **first, **changed})

        expected = [("a", "k0", 2, "x", 0), ("a", "k2", 2, "x", 2), ("a", "k3", 1, "here", 3)]
        if number:
            expected = [("a", "k0", 1, "m", 0), ("a", "k1", 2, "n", 1), ("a", "k2", 2, "m", 2), ("a", "k3", 1, "m", 3)]
        assert shown(path) == _tuples(java.read(path)) == _tuples(read_hudi_rs(path)) == expected


def _literal(value: object) -> str:
    if value is None:
        return "null"
    return f"'{value}'" if isinstance(value, str) else f"{value}L"


def _tuples(table: pa.Table) -> list[tuple[object, ...]]:
    found = zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
    return sorted(found, key=lambda one: one[:2])
