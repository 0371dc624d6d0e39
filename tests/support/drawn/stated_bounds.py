"""Random file slices with what Apache Hudi states of their files, held against the rows that they show."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyhudi.reader.skipping.answers import NOTHING
from pyhudi.reader.skipping.column_bounds import ColumnStatsSource
from pyhudi.reader.skipping.predicates import (
    AnyOf,
    Compare,
    IsNotNull,
    IsNull,
    NoneOf,
    OneOf,
    Predicate,
    StartsWith,
    satisfied,
)
from pyhudi.reader.skipping.search import Search
from pyhudi.table.config import TableConfig
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.file_group import BaseFile, FileSlice, LogFile
from pyhudi.table.files.names import FileGroupId, LogFileName
from pyhudi.table.metadata.record_keys import key_of_file_bounds

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)
DAY = datetime.date(1970, 1, 1)
NAN = float("nan")
LONG, HUGE = "m" * 64, "x" * 5000
_DECIMAL = pa.decimal128(30, 15)
_WRAPPERS: dict[str, pa.DataType] = {
    "Boolean": pa.bool_(),
    "Int": pa.int32(),
    "Long": pa.int64(),
    "Float": pa.float32(),
    "Double": pa.float64(),
    "Bytes": pa.binary(),
    "String": pa.string(),
    "Date": pa.date32(),
    "Decimal": _DECIMAL,
    "TimestampMicros": pa.timestamp("us", "UTC"),
    "LocalDate": pa.date32(),
}
_BOUND = pa.struct(_WRAPPERS)
RECORDS = pa.struct(
    {
        "fileName": pa.string(),
        "columnName": pa.string(),
        "minValue": _BOUND,
        "maxValue": _BOUND,
        "valueCount": pa.int64(),
        "nullCount": pa.int64(),
        "totalSize": pa.int64(),
        "totalUncompressedSize": pa.int64(),
        "isDeleted": pa.bool_(),
        "isTightBound": pa.bool_(),
        "valueType": pa.struct({"typeOrdinal": pa.int32(), "additionalInfo": pa.string()}),
    }
)
_OPERATORS: tuple[Literal["=", "!=", "<", "<=", ">", ">="], ...] = ("=", "!=", "<", "<=", ">", ">=")
Rows = Mapping[str, list[Any]]


@dataclass(frozen=True)
class Drawn:
    """A column: its type, the values that it may have, and the ways in which a record may wrap one of them.

    A way is the name of the wrapper, the number of the type, None where none is told, what stands beside it, and what
    makes the wrapped value.
    """

    kind: pa.DataType
    pool: Sequence[Any]
    ways: Sequence[tuple[str, int | None, str | None, Callable[[Any], Any]]]


def _same(value: Any) -> Any:
    return value


def _micros(value: datetime.datetime) -> int:
    return (value.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1)


def _unscaled(scale: int) -> Callable[[Decimal], bytes]:
    def encode(value: Decimal) -> bytes:
        digits = int(value.scaleb(scale))
        return digits.to_bytes(digits.bit_length() // 8 + 1, "big", signed=True)

    return encode


def _days(value: datetime.date) -> int:
    return (value - DAY).days


_MONEY = [Decimal(text) for text in ("0.00", "-2.50", "2.50", "10.00", "128.00", "-128.00", "99999999.90")]
_TIMES = [datetime.datetime(2024, 3, 10, 9, minute, second) for minute in (0, 59) for second in (0, 1)]
_OLD = [datetime.datetime(1970, 1, 1, 0, 0, second) for second in (0, 7)]
# Below and above the characters that take two of Java's, whose order differs from that of bytes.
_TEXTS = [
    "",
    "a",
    "ab",
    "b",
    "Z",
    "é",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    LONG + "z",
    LONG,
    HUGE,
]
_NUMBERS = [0.0, -0.0, 1.5, -1.5, 2.5, NAN, math.inf, -math.inf]
_FLOATS = [*_NUMBERS[:6], 1.1]
COLUMNS: dict[str, Drawn] = {
    "flag": Drawn(pa.bool_(), [True, False], [("Boolean", None, None, _same), ("Boolean", 2, None, _same)]),
    "small": Drawn(pa.int32(), [0, 1, -1, 7, 2**31 - 1], [("Int", None, None, _same), ("Int", 3, None, _same)]),
    "wide": Drawn(pa.int64(), [0, 1, -1, 7, 2**31 - 1], [("Int", 3, None, _same), ("Long", 4, None, _same)]),
    "part": Drawn(pa.float32(), [*_NUMBERS], [("Float", None, None, _same), ("Float", 5, None, _same)]),
    # As rows are read, a float becomes the double with the same digits.
    "price": Drawn(pa.float64(), _FLOATS, [("Double", 6, None, _same), ("Float", 5, None, _same)]),
    "name": Drawn(pa.string(), _TEXTS, [("String", None, None, _same), ("String", 7, None, _same)]),
    "day": Drawn(
        pa.date32(),
        [DAY + datetime.timedelta(days) for days in (-200_000, -1, 0, 1, 20_000)],
        [("Date", None, None, _same), ("Int", 12, None, _days), ("LocalDate", None, None, _same)],
    ),
    "cost": Drawn(
        pa.decimal128(10, 2),
        _MONEY,
        [("Decimal", None, None, _same), ("Bytes", 10, "10,2", _unscaled(2)), ("Bytes", 10, "9,1", _unscaled(1))],
    ),
    "at": Drawn(
        pa.timestamp("us", "UTC"),
        [time.replace(tzinfo=UTC) for time in (*_TIMES, *_OLD)],
        [
            ("Long", None, None, _micros),
            ("Long", None, None, lambda value: _micros(value) // 1000),
            ("Long", 15, None, lambda value: _micros(value) // 1000),
            ("Long", 16, None, _micros),
            ("Long", 17, None, lambda value: _micros(value) * 1000),
            # Of a time without a zone; it says nothing of this column.
            ("Long", 19, None, lambda value: _micros(value) + 10**10),
        ],
    ),
    "local": Drawn(
        pa.timestamp("us"),
        [*_TIMES, *_OLD],
        [("Long", 18, None, lambda value: _micros(value) // 1000), ("Long", 19, None, _micros)],
    ),
}
SCHEMA = pa.schema([(name, drawn.kind) for name, drawn in COLUMNS.items()])
CONFIG = TableConfig.new(TableSettings(name="t", record_key_fields=("small",), index_type="SIMPLE"))


def check_slices(seed: int, count: int = 30, among: Sequence[str] = tuple(COLUMNS)) -> int:
    """Draw slices and conditions, assert that no slice with a wanted row is left out, and return how many are.

    Args:
        seed: Decides everything else.
        count: How many conditions.
        among: Of which columns two are drawn.
    """
    random = Random(seed)
    names = random.sample([*among], k=2)
    drawn = [_slice(random, number, names) for number in range(4)]
    metadata = Stated([record for one in drawn for record in one.records])
    left_out = 0
    for _ in range(count):
        predicates = tuple(_predicate(random, names) for _ in range(random.choice((1, 1, 2))))
        search = Search.of(predicates, SCHEMA, None)
        answer = ColumnStatsSource(metadata, CONFIG, search).slices_left([one.file_slice for one in drawn], NOTHING)  # type: ignore[arg-type]
        assert answer is not None
        for drawn_slice in drawn:
            wanted = pc.any(satisfied(drawn_slice.shown, predicates)).as_py()
            assert drawn_slice.file_slice in answer.slices or not wanted, (
                predicates,
                drawn_slice.records,
                drawn_slice.shown.to_pylist(),
            )
        left_out += len(drawn) - len(answer.slices)
    return left_out


def check_text(least: str, greatest: str, value: str, *, logs: bool) -> None:
    """Assert that a slice with a text is not left out, of whose only file such bounds are stated."""
    base, name = BaseFile("p/g_0-0-0_1.parquet", 9, "g", "0-0-0", "1"), LogFileName("g", "2", 1, "0-0-0")
    file = LogFile(f"p/{name.format()}", 9, name) if logs else base
    assert isinstance(file, (BaseFile, LogFile))
    shown = FileSlice(FileGroupId("p", "g"), "1", None if logs else base, (file,) if isinstance(file, LogFile) else ())
    record = {"minValue": {"String": least}, "maxValue": {"String": greatest}, "valueCount": 3, "nullCount": 0}
    record |= {"totalUncompressedSize": 0 if logs else 100_000, "isDeleted": False}
    metadata = Stated([(key_of_file_bounds("name", "p", file.path.rpartition("/")[2]), record)])
    search = Search.of([Compare("name", "=", value)], SCHEMA, None)
    answer = ColumnStatsSource(metadata, CONFIG, search).slices_left([shown], NOTHING)  # type: ignore[arg-type]
    assert answer is not None
    assert [*answer.slices] == [shown]


class Stated:
    """A metadata table that has records of bounds, by key, in two file groups."""

    def __init__(self, records: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        self._groups: list[pa.StructArray] = []
        for group in range(2):
            some = [(key, record) for key, record in records if ord(key[-3]) % 2 == group]
            columns = [pa.array([key for key, _ in some], pa.string()), pa.array([one for _, one in some], RECORDS)]
            self._groups.append(pa.StructArray.from_arrays(columns, ["key", "ColumnStatsMetadata"]))

    def ask(self, _: str, question: Callable[[Any], Any]) -> Any:
        return question(self)

    def find(self, keys: pa.StringArray) -> Iterator[pa.StructArray]:
        for part in self._groups:
            yield part.filter(pc.is_in(part.field("key"), keys))

    def with_prefixes(self, prefixes: Sequence[str]) -> Iterator[pa.StructArray]:
        for part in self._groups:
            chosen = pa.array([key.startswith(tuple(prefixes)) for key in part.field("key").to_pylist()], pa.bool_())
            yield part.filter(chosen)


@dataclass(frozen=True)
class DrawnSlice:
    """A slice, the records of its files, and the rows that it shows."""

    file_slice: FileSlice
    records: Sequence[tuple[str, Mapping[str, Any]]]
    shown: pa.RecordBatch


def _slice(random: Random, number: int, columns: Sequence[str]) -> DrawnSlice:
    group, records, files = FileGroupId("p", f"g{number}"), list[tuple[str, Mapping[str, Any]]](), list[Rows]()
    base = BaseFile(f"p/g{number}_0-0-0_1.parquet", 9, f"g{number}", "0-0-0", "1") if random.random() < 0.8 else None
    names = [
        LogFileName(f"g{number}", str(at), 1, "0-0-0")
        for at in range(2, 2 + random.choice((0, 0, 1, 2) if base else (1, 2)))
    ]
    logs = tuple(LogFile(f"p/{name.format()}", 9, name) for name in names)
    for file in (base, *logs):
        if file is None:
            continue
        rows = {name: _values(random, COLUMNS[name]) for name in columns}
        # A partial log file lacks a column, and has no record of it.
        lacks = {name for name in columns if file is not base and random.random() < 0.2}
        files.append({name: values for name, values in rows.items() if name not in lacks})
        for name in sorted({*columns} - lacks):
            if random.random() < 0.95:
                record = _record(random, rows[name], COLUMNS[name], in_base=file is base)
                name_of_file = file.path.rpartition("/")[2]
                records.append((key_of_file_bounds(name, "p", name_of_file), {"columnName": name, **record}))
    shown = {
        name: pa.array(
            [random.choice(random.choice([rows.get(name) or [None] for rows in files])) for _ in range(6)],
            COLUMNS[name].kind,
        )
        for name in columns
    }
    return DrawnSlice(FileSlice(group, "1", base, logs), records, pa.RecordBatch.from_pydict(shown))


def _values(random: Random, drawn: Drawn) -> list[Any]:
    pool = random.sample([*drawn.pool], k=random.choice((1, 1, 2, 3))) if len(drawn.pool) > 3 else [*drawn.pool]
    pool = pool[:1] if random.random() < 0.3 else pool
    kind = random.random()
    if kind < 0.1:
        return [None, None]
    if kind < 0.3 and pa.types.is_string(drawn.kind):
        return [*pool, HUGE, None]
    return [random.choice(pool) for _ in range(4)] + ([None] if kind < 0.4 else [])


def _record(random: Random, values: Sequence[Any], drawn: Drawn, *, in_base: bool) -> Mapping[str, Any]:
    """Return what Apache Hudi states of one column of a file."""
    wrapper, ordinal, beside, wrap = random.choice(drawn.ways)
    cut = random.randrange(len(values))
    groups = [group for group in (values[:cut], values[cut:]) if group] if in_base else [[*values]]
    stated = [_of_row_group(group, drawn) if in_base else _of_log(group) for group in groups]
    least = min((one[0] for one in stated if one[0] is not None), key=_in_java, default=None)
    greatest = max((one[1] for one in stated if one[1] is not None), key=_in_java, default=None)
    if random.random() < 0.3 and isinstance(greatest, str):
        # A writer that cuts texts, and does not make the greatest text greater.
        greatest = greatest[:64]
    size = sum(len(value) for value in values if isinstance(value, str)) + 8 if in_base else 0
    kind = {"typeOrdinal": ordinal, "additionalInfo": beside} if ordinal is not None else None
    return {
        "minValue": None if least is None else {wrapper: wrap(least)},
        "maxValue": None if greatest is None else {wrapper: wrap(greatest)},
        "valueCount": len(values),
        "nullCount": sum(one[2] for one in stated),
        "totalUncompressedSize": size,
        "isDeleted": False,
        "valueType": kind,
    }


def _of_row_group(values: Sequence[Any], drawn: Drawn) -> tuple[Any, Any, int]:
    """Return the bounds and the count of nulls that Apache Hudi takes from a footer."""
    having = [value for value in values if value is not None]
    zero = _zero(drawn.kind)
    if not having:
        return zero, zero, len(values)
    if any(isinstance(value, float) and math.isnan(value) for value in having):
        return 0.0, 0.0, len(values) - len(having)
    if isinstance(having[0], str):
        least, greatest = (pick(having, key=str.encode) for pick in (min, max))
        if len(least.encode()) + len(greatest.encode()) >= 4096:
            return None, None, len(values)
        return least, greatest, len(values) - len(having)
    least, greatest = min(having), max(having)
    if isinstance(least, float):
        least, greatest = (-0.0 if least == 0 else least), (0.0 if greatest == 0 else greatest)
    return least, greatest, len(values) - len(having)


def _zero(kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_date32(kind):
        return DAY
    if types.is_boolean(kind):
        return False
    return 0.0 if types.is_floating(kind) else 0 if types.is_integer(kind) else None


def _of_log(values: Sequence[Any]) -> tuple[Any, Any, int]:
    having = [value for value in values if value is not None]
    least, greatest = min(having, key=_in_java, default=None), max(having, key=_in_java, default=None)
    return least, greatest, len(values) - len(having)


def _in_java(value: Any) -> Any:
    """Return what orders values as Java does: texts by UTF-16, NaN last, and -0.0 before 0.0."""
    if isinstance(value, str):
        return value.encode("utf-16-be")
    if isinstance(value, float):
        return (math.isnan(value), value, math.copysign(1, value))
    return value


def _predicate(random: Random, names: Sequence[str], *, inside: bool = False) -> Predicate:
    name = random.choice(names)
    drawn = COLUMNS[name]
    value, two = random.choice([*drawn.pool]), random.choice([*drawn.pool])
    kind = random.randrange(9)
    if kind == 3:
        return OneOf(name, (value, two))
    if kind == 4:
        return NoneOf(name, (value, two))
    if kind == 5:
        return IsNull(name) if random.random() < 0.5 else IsNotNull(name)
    if isinstance(value, str) and kind == 6:
        return StartsWith(name, value[: random.randrange(3)])
    if kind == 7 and not inside:
        first, *second = (_predicate(random, names, inside=True) for _ in range(3))
        return AnyOf(((first,), tuple(second)))
    return Compare(name, random.choice(_OPERATORS), value)
