"""The tables that the interop tests write, and a dict that says what must be in them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from interop import every_type

Row = dict[str, Any]

KEY = "_hoodie_record_key"
PARTITION = "_hoodie_partition_path"
TIME = "_hoodie_commit_time"
META = [TIME, "_hoodie_commit_seqno", KEY, PARTITION, "_hoodie_file_name"]
DELETED = "_hoodie_is_deleted"
BUCKETS = "hoodie.bucket.index.num.buckets"
MARKER = ("hoodie.payload.delete.field", "hoodie.payload.delete.marker")


@dataclass(frozen=True)
class Scenario:
    """One shape of table.

    Attributes:
        name: Name of the test's parameter.
        columns: The columns of the data beside ``ts``, which every table has, and ``_hoodie_is_deleted``, which those
            without a marker have.
        key_fields: The record key fields.
        partition_fields: The partition fields.
        row: Makes the columns' values of row number i in its n-th version.
        record_key: The record key that Hudi makes of a row.
        partition_path: The partition path that Hudi makes of a row.
        ordering_fields: The ordering fields.
        marker: The column and the value by which rows are deletes; None for ``_hoodie_is_deleted``.
        options: Further write options.
        told: Options that pyhudi must be told once of such a table of Apache Hudi's, beside its number of buckets.
        hadoop: Hadoop options that Apache Hudi needs to write such rows at all.
        texts_to_apache: Columns that Apache Hudi shows as texts.
        hudi_rs_fails: What hudi-rs says when it cannot read such a table, whoever wrote it.
        buckets: How many each partition of a table of Apache Hudi's has.
        bounds: Whether Apache Hudi keeps bounds of all columns in its metadata table, as it does by default; of files
            of pyhudi's it takes them from their footers.
        listed: Whether Apache Hudi keeps its metadata table, as it does by default, and lists files by it; where it
            keeps bounds it does. Which files there are does not differ by keys and columns.
    """

    name: str
    columns: pa.Schema
    key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    row: Callable[[int, int], Row]
    record_key: Callable[[Row], str]
    partition_path: Callable[[Row], str]
    ordering_fields: tuple[str, ...] = ("ts",)
    marker: tuple[str, str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)
    hadoop: Mapping[str, str] = field(default_factory=dict)
    texts_to_apache: tuple[str, ...] = ()
    hudi_rs_fails: str | None = None
    buckets: int = 2
    bounds: bool = False
    listed: bool = False

    @property
    def schema(self) -> pa.Schema:
        """All columns of the data."""
        flag = [] if self.marker else [pa.field(DELETED, pa.bool_())]
        return pa.schema([*self.columns, pa.field("ts", pa.int64()), *flag])

    @property
    def theirs(self) -> dict[str, str]:
        """The options of Apache Hudi's writes to a table that it made itself."""
        metadata_options = {
            "hoodie.metadata.enable": str(self.listed or self.bounds).lower(),
            "hoodie.metadata.index.column.stats.enable": str(self.bounds).lower(),
        }
        return {**self.table_options, **metadata_options, BUCKETS: str(self.buckets)}

    @property
    def table_options(self) -> dict[str, str]:
        """The options that make the table, bucket number left out; they hold for pyhudi and Apache Hudi alike."""
        return {
            "hoodie.table.name": self.name.replace("-", "_"),
            "hoodie.datasource.write.recordkey.field": ",".join(self.key_fields),
            "hoodie.datasource.write.partitionpath.field": ",".join(self.partition_fields),
            "hoodie.table.ordering.fields": ",".join(self.ordering_fields),
            "hoodie.index.type": "BUCKET",
            **({} if self.marker is None else dict(zip(MARKER, self.marker, strict=True))),
            **self.options,
        }

    def rows(self, numbers: Iterable[int], version: int, ts: int, *, deleted: bool = False) -> list[Row]:
        """Make the rows of those numbers in one version."""
        flag = {DELETED: deleted} if self.marker is None else {self.marker[0]: self.marker[1] if deleted else None}
        return [{**self.row(i, version), "ts": ts, **flag} for i in numbers]

    def is_deleted(self, row: Row) -> bool:
        """Return whether a row says that it is a delete."""
        return bool(row[DELETED]) if self.marker is None else row[self.marker[0]] == self.marker[1]

    def order(self, row: Row) -> tuple[Any, ...]:
        """Return a row's ordering values."""
        return tuple(row[name] for name in self.ordering_fields)

    def table(self, rows: Iterable[Row]) -> pa.Table:
        """Return rows as Arrow."""
        return pa.Table.from_pylist(list(rows), schema=self.schema)


class Model:
    """What a table must hold: a dict with event-time ordering, ties won by the later row."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.content: dict[tuple[str, str], Row] = {}

    def upsert(self, rows: Iterable[Row], instant: str) -> None:
        """Fold the rows of one commit by key, then merge each with what the table held before."""
        newest: dict[tuple[str, str], Row] = {}
        order = self.scenario.order
        for row in rows:
            identity = self._identity(row)
            if identity not in newest or order(row) >= order(newest[identity]):
                newest[identity] = row
        for identity, row in newest.items():
            held = self.content.get(identity)
            if held is not None and order(row) < order(held):
                continue
            if self.scenario.is_deleted(row):
                self.content.pop(identity, None)
            else:
                self.content[identity] = {**row, TIME: instant, PARTITION: identity[0], KEY: identity[1]}

    def delete(self, rows: Iterable[Row]) -> None:
        """Remove keys, whatever their ordering value."""
        for row in rows:
            self.content.pop(self._identity(row), None)

    def expected(self) -> list[Row]:
        """Return the rows in the order of their identity."""
        return comparable(self.content[identity] for identity in sorted(self.content))

    def _identity(self, row: Row) -> tuple[str, str]:
        return self.scenario.partition_path(row), self.scenario.record_key(row)


def as_rows(table: pa.Table) -> list[Row]:
    """Return what a reader found as dicts in the order of (partition, key), duplicates kept."""
    return sorted(comparable(table.to_pylist()), key=lambda row: (row[PARTITION], row[KEY], str(row)))


def comparable(rows: Iterable[Row]) -> list[Row]:
    """Return rows whose values are equal where they are the same, of whatever reader."""
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def without_file_names(rows: Iterable[Row]) -> list[Row]:
    """Return rows less the two meta columns that each writer invents."""
    return [{k: v for k, v in row.items() if k not in ("_hoodie_commit_seqno", "_hoodie_file_name")} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, list):  # maps come as pairs, in any order
        pairs = bool(value) and all(isinstance(item, tuple) and len(item) == 2 for item in value)
        return sorted(map(_plain, value)) if pairs else [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc)
    if isinstance(value, float):  # NaN equals nothing, and -0.0 equals 0.0
        return repr(value)
    return value


def _lists_with_nulls_row(i: int, n: int) -> Row:
    return {
        "id": i,
        "tags": [None, f"t{n}", None] if i % 3 else [],
        "visits": [{"who": None}, None, {"who": f"w{i}"}] if i % 2 else None,
        "grid": [[i, None], None, []],
    }


def _text(value: Any) -> str:
    return "__null__" if value is None else "__empty__" if value == "" else str(value)


UNPARTITIONED = Scenario(
    name="unpartitioned",
    columns=pa.schema([("id", pa.string()), ("name", pa.string()), ("amount", pa.float64())]),
    key_fields=("id",),
    partition_fields=(),
    row=lambda i, n: {"id": f"k{i}é😀"[: 2 + i % 5] + str(i), "name": f"name {i}.{n}", "amount": i + n / 10},
    record_key=lambda row: row["id"],
    partition_path=lambda row: "",
    bounds=True,
)
PARTITIONED = Scenario(
    name="partitioned",
    columns=pa.schema([("id", pa.int64()), ("p", pa.string()), ("name", pa.string())]),
    key_fields=("id",),
    partition_fields=("p",),
    row=lambda i, n: {"id": i * 10**10 - 7, "p": ["a", "b c", "日本", None][i % 4], "name": f"name {i}.{n}"},
    record_key=lambda row: str(row["id"]),
    partition_path=lambda row: row["p"] or "__HIVE_DEFAULT_PARTITION__",
    listed=True,
)
TWO_PARTITIONS = Scenario(
    name="two-partitions-hive-style",
    columns=pa.schema([("id", pa.string()), ("country", pa.string()), ("year", pa.int32()), ("name", pa.string())]),
    key_fields=("id",),
    partition_fields=("country", "year"),
    row=lambda i, n: {"id": f"k{i}", "country": ["de", "fr"][i % 2], "year": 2020 + i % 3, "name": f"{i}.{n}"},
    record_key=lambda row: f"id:{row['id']}",
    partition_path=lambda row: f"country={row['country']}/year={row['year']}",
    options={"hoodie.datasource.write.hive_style_partitioning": "true"},
)
COMPOSITE_KEY = Scenario(
    name="composite-key",
    columns=pa.schema([("a", pa.string()), ("b", pa.int32()), ("p", pa.string()), ("name", pa.string())]),
    key_fields=("a", "b"),
    partition_fields=("p",),
    row=lambda i, n: {"a": ["", None, "q,r", "x:y", f"a{i}"][i % 5], "b": i, "p": f"p{i % 2}", "name": f"{i}.{n}"},
    record_key=lambda row: f"a:{_text(row['a'])},b:{_text(row['b'])}",
    partition_path=lambda row: row["p"],
)
EVERY_TYPE = Scenario(
    name="every-type",
    columns=every_type.COLUMNS,
    key_fields=("id",),
    partition_fields=("p",),
    row=every_type.row,
    record_key=lambda row: str(row["id"]),
    partition_path=lambda row: row["p"],
    # Which knows no tinyint; bulk_insert goes the way of the other operations then.
    options={"hoodie.datasource.write.row.writer.enable": "false"},
    bounds=True,
)
LOCAL_TIMESTAMP = Scenario(
    name="local-timestamp",
    columns=pa.schema([("id", pa.int32()), ("local", pa.timestamp("us"))]),
    key_fields=("id",),
    partition_fields=(),
    row=lambda i, n: {"id": i, "local": dt.datetime(1969, 12, 31, 12, 34, 56, 789_123) + dt.timedelta(hours=i * n)},
    record_key=lambda row: str(row["id"]),
    partition_path=lambda row: "",
    hudi_rs_fails="not yet implemented",
    bounds=True,
)
LISTS_WITH_NULLS = Scenario(
    name="lists-with-nulls",
    columns=pa.schema(
        [
            ("id", pa.int32()),
            ("tags", pa.list_(pa.string())),
            ("visits", pa.list_(pa.struct([("who", pa.string())]))),
            ("grid", pa.list_(pa.list_(pa.int32()))),
        ]
    ),
    key_fields=("id",),
    partition_fields=(),
    row=_lists_with_nulls_row,
    record_key=lambda row: str(row["id"]),
    partition_path=lambda row: "",
    hadoop={"parquet.avro.write-old-list-structure": "false"},  # two-level lists cannot hold a null
)
TWO_ORDERING_FIELDS = Scenario(
    name="two-ordering-fields",
    columns=pa.schema([("id", pa.int32()), ("name", pa.string()), ("version", pa.string())]),
    key_fields=("id",),
    partition_fields=(),
    # Later versions of a row are less, equal or greater where the first field is tied.
    row=lambda i, n: {"id": i, "name": f"{i}.{n}", "version": chr(ord("m") + n * (i % 3 - 1))},
    record_key=lambda row: str(row["id"]),
    partition_path=lambda row: "",
    ordering_fields=("ts", "version"),
    hudi_rs_fails="Multiple ordering fields",
)
DELETE_MARKER = Scenario(
    name="delete-marker",
    columns=pa.schema([("id", pa.int32()), ("p", pa.string()), ("name", pa.string()), ("op", pa.string())]),
    key_fields=("id",),
    partition_fields=("p",),
    row=lambda i, n: {"id": i, "p": "xy"[i % 2], "name": f"{i}.{n}"},
    record_key=lambda row: str(row["id"]),
    partition_path=lambda row: row["p"],
    marker=("op", "D"),
)

_TIMES = "hoodie.keygen.timebased."
# Without the empty string, which Apache Hudi shows as null.
_ODD_VALUES = ["x/y", "é 日本", None, "a=b:c%", ".", "..", "100%", "q?*#", "tab\tnew", "__HIVE", "x" * 85 + "/"]
TIMES = Scenario(
    name="times",
    columns=pa.schema([("id", pa.int64()), ("t", pa.int64()), ("name", pa.string())]),
    key_fields=("id",),
    partition_fields=("t",),
    row=lambda i, n: {"id": i, "t": None if i % 9 == 0 else (i % 4) * 10**10, "name": f"{i}.{n}"},
    record_key=lambda row: str(row["id"]),
    # In New York, where 1970 began five hours later; a null is its first millisecond.
    partition_path=lambda row: {0: "1969/12/31", 1: "1970/04/26", 2: "1970/08/20", 3: "1970/12/14"}[
        (row["t"] or 0) // 10**10
    ],
    options={
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        f"{_TIMES}timestamp.type": "EPOCHMILLISECONDS",
        f"{_TIMES}output.dateformat": "yyyy/MM/dd",
        f"{_TIMES}timezone": "America/New_York",
    },
    texts_to_apache=("t",),
)
CUSTOM = Scenario(
    name="custom",
    columns=pa.schema([("id", pa.int64()), ("p", pa.string()), ("day", pa.string()), ("name", pa.string())]),
    key_fields=("id", "name"),
    partition_fields=("p:SIMPLE", "day:TIMESTAMP"),
    row=lambda i, n: {"id": i, "p": ["a", "b c", None][i % 3], "day": f"2024-0{1 + i % 3}-11", "name": f"n{i}"},
    record_key=lambda row: f"id:{row['id']},name:{row['name']}",
    partition_path=lambda row: f"{row['p'] or '__HIVE_DEFAULT_PARTITION__'}/{row['day'][:7]}",
    options={
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        f"{_TIMES}timestamp.type": "DATE_STRING",
        f"{_TIMES}input.dateformat": "yyyyMMdd,yyyy-MM-dd",
        f"{_TIMES}output.dateformat": "yyyy-MM",
    },
    told={
        f"{_TIMES}timestamp.type": "DATE_STRING",
        f"{_TIMES}input.dateformat": "yyyyMMdd,yyyy-MM-dd",
        f"{_TIMES}output.dateformat": "yyyy-MM",
    },
    hudi_rs_fails="is not present in the table schema",  # it takes the types for parts of the names
)
ODD_PARTITIONS = Scenario(
    name="odd-partitions",
    columns=pa.schema([("id", pa.int64()), ("p", pa.string()), ("name", pa.string())]),
    key_fields=("id",),
    partition_fields=("p",),
    row=lambda i, n: {"id": i, "p": _ODD_VALUES[i % len(_ODD_VALUES)], "name": f"{i}.{n}"},
    record_key=lambda row: str(row["id"]),
    partition_path=lambda row: f"p={_escaped(row['p'])}",
    options={
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    },
    buckets=1,  # eleven partitions are files enough
    listed=True,
)
# Each operation names partitions, or goes by them; how each odd name is spelt is for the round trips.
SOME_ODD_PARTITIONS = replace(
    ODD_PARTITIONS,
    name="some-odd-partitions",
    columns=pa.schema([*ODD_PARTITIONS.columns, ("year", pa.int32())]),
    partition_fields=("p", "year"),
    row=lambda i, n: {"id": i, "p": _ODD_VALUES[i % 4], "name": f"{i}.{n}", "year": 2020 + i % 2},
    record_key=lambda row: f"id:{row['id']}",
    partition_path=lambda row: f"p={_escaped(row['p'])}/year={row['year']}",
)


def _escaped(value: str | None) -> str:
    special = "\"#%'*/:=?\\{[]^"
    written = (f"%{ord(one):02X}" if one in special or ord(one) < 0x20 else one for one in value or "")
    return "".join(written) or "__HIVE_DEFAULT_PARTITION__"


# Both take turns in each of them. Who makes the table matters where its properties say more than the defaults do.
# Each kind of key and partition is carried on in one direction.
MADE_BY_PYHUDI = [TWO_PARTITIONS, TIMES, UNPARTITIONED, COMPOSITE_KEY, LOCAL_TIMESTAMP, TWO_ORDERING_FIELDS]
MADE_BY_APACHE_HUDI = [CUSTOM, ODD_PARTITIONS, PARTITIONED, EVERY_TYPE, LISTS_WITH_NULLS, DELETE_MARKER]
# What operations replace differs by partitions; keys, deletes and columns are for the round trips.
OF_OPERATIONS = [UNPARTITIONED, SOME_ODD_PARTITIONS]
