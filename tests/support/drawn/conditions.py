"""Random conditions of users, held against the files that their rows are in; on classic Spark and on Spark Connect."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyhudi import HudiTable
from pyhudi.connector.conditions.condition import parse_condition
from pyhudi.errors import InvalidOptionError
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.row_condition import read_condition
from pyhudi.reader.scan import scan
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from support.drive import write
from support.share import share_of

UTC = datetime.timezone.utc
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(one) for one in range(6)]
TIMES = [datetime.datetime(2024, 3, 10, 9, 30) + datetime.timedelta(minutes=25 * one) for one in range(6)]
POOLS: dict[str, list[Any]] = {
    "id": [0, 1, 7, 38, 39, 2**31, -5],
    "p": ["a", "B b", "O'Neil (x", "none"],
    "n": [0, 1, 2, 5, -1],
    "Name": ["ab", "abc", "AB", "a AND (b", "", "NULL", "x, y", "é\\n"],
    "price": [0.0, 1.5, -2.25, 3.0, 1e10],
    "m": [Decimal("0.00"), Decimal("1.50"), Decimal("12.30"), Decimal("3")],
    "day": DAYS,
    "at": TIMES,
    "local": TIMES,
    "flag": [True, False],
}
STRANGE = [
    "length(name) > 2",
    "upper(name) = 'ABC'",
    "id % 7 = 1",
    "coalesce(n, 0) = 0",
    "n <> id",
    "p || name = 'aab'",
]


def make_table(path: Path | str, **settings: Any) -> None:
    """Make a table of 120 rows, whose columns have few values and nulls among them."""
    count = 120

    def values(name: str, step: int) -> list[Any]:
        pool = POOLS[name]
        return [None if (row + step) % 11 == 0 else pool[row // step % len(pool)] for row in range(count)]

    data = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "p": pa.array([POOLS["p"][row // 40] for row in range(count)]),
            "n": pa.array(values("n", 3), pa.int32()),
            "Name": pa.array(values("Name", 5)),
            "price": pa.array([float("nan") if row % 17 == 0 else one for row, one in enumerate(values("price", 7))]),
            "m": pa.array(values("m", 13), pa.decimal128(10, 2)),
            "day": pa.array(values("day", 20)),
            "at": pa.array(values("at", 20), pa.timestamp("us", "UTC")),
            "local": pa.array(values("local", 20), pa.timestamp("us")),
            "flag": pa.array(values("flag", 30)),
        }
    )
    given = {"record_key_fields": ("id",), "partition_fields": ("p",), "bucket_count": 4, **settings}
    write(path, data, table=TableSettings(**given))


@dataclass(frozen=True)
class Condition:
    """One condition as text, and as a column made of Python's values."""

    text: str
    column: Callable[[], Column]


def conditions() -> st.SearchStrategy[Condition]:
    """Conditions of a few parts, most of which can be understood."""
    leaves = st.one_of(_compared(), _among(), _nullness(), _ranges(), _beginnings(), st.sampled_from(STRANGE).map(_sql))
    return st.recursive(leaves, _connected, max_leaves=4)


def check_random_conditions(spark: SparkSession, path: str, examples: int, each: int = 25, compared: int = 0) -> None:
    """Draw conditions, and see that every row for which one holds is in a file that is left.

    Args:
        spark: The session.
        path: The table's path.
        examples: How often.
        each: How many at once.
        compared: Of how many of them the rows of `HudiTable.to_df` are held against all rows, in one statement.
    """
    snapshot = open_snapshot(path)
    frame = HudiTable(spark, path).to_df().withColumn("file", sf.col("_metadata.file_name"))
    frame.cache().count()
    understood: list[int] = []

    @settings(max_examples=share_of(examples), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(conditions(), st.booleans()), min_size=each, max_size=each))
    def check(drawn: list[tuple[Condition, bool]]) -> None:
        columns = [sf.expr(one.text) if as_text else one.column() for one, as_text in drawn]
        rows = frame.select("file", *(one.alias(f"c{number}") for number, one in enumerate(columns)), "id").collect()
        asked_for = [one.text if as_text else column for (one, as_text), column in zip(drawn, columns, strict=True)]
        some = [
            HudiTable(spark, path).to_df(["id"], where=one).select(sf.lit(number), "id")
            for number, one in enumerate(asked_for[:compared])
        ]
        if some:
            wanted = [(number, row["id"]) for number in range(compared) for row in rows if row[number + 1]]
            assert sorted(map(tuple, reduce(DataFrame.union, some).collect())) == sorted(wanted), asked_for[:compared]
        for number, (condition, as_text) in enumerate(drawn):
            asked = parse_condition(spark, asked_for[number], snapshot)
            shown = snapshot.slices_of_keys(asked.predicates)
            needed = {row["file"] for row in rows if row[number + 1]}
            left = {Path(file.base_file.path).name for file in shown}
            assert needed <= left, (condition.text, as_text, asked.predicates)
            understood.append(len(asked.predicates))
            # As a column, a time of Python is a moment of the session.
            mine = kept_here(condition.text, snapshot) if as_text else None
            if mine is not None:
                assert mine == sorted(row["id"] for row in rows if row[number + 1]), condition.text

    check()
    assert sum(map(bool, understood)) > len(understood) / 2, "most of them are understood"


def kept_here(text: str, snapshot: Snapshot) -> list[int] | None:
    """Return the ids that a condition keeps without Spark; None where it is not read, or takes times by a zone."""
    try:
        condition = read_condition(text, snapshot.schema)
    except InvalidOptionError:
        return None
    if "at" in condition.columns:
        return None
    batches = scan(snapshot, ["id"], where=condition)
    return sorted(value for batch in batches for value in batch.column("id").to_pylist())


def _sql(text: str) -> Condition:
    return Condition(text, lambda: sf.expr(text))


def _spelt(name: str, value: Any, loose: bool) -> str:
    """Return a literal of SQL, with its type or as people write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{quoted}'"
    if isinstance(value, datetime.datetime):
        kind = "" if loose else "TIMESTAMP " if name == "at" else "TIMESTAMP_NTZ "
        return f"{kind}'{value.isoformat(' ')}'"
    if isinstance(value, datetime.date):
        return f"{'' if loose else 'DATE '}'{value.isoformat()}'"
    if isinstance(value, Decimal):
        return str(value) if loose else f"{value}BD"
    if isinstance(value, float):
        return f"{value:.2f}" if loose else f"{value}D"
    return str(value) if loose or name != "id" else f"{value}L"


def _literal(name: str, value: Any) -> Column:
    return sf.lit(value.replace(tzinfo=UTC) if name == "at" else value)


@st.composite
def _named(draw: st.DrawFn, count: int = 1) -> tuple[str, list[Any], list[str]]:
    """Draw a column with some values of its pool, and those as SQL has them."""
    name = draw(st.sampled_from(sorted(POOLS)))
    values = [draw(st.sampled_from(POOLS[name])) for _ in range(count)]
    loose = draw(st.booleans())
    return name, values, [_spelt(name, one, loose) for one in values]


@st.composite
def _compared(draw: st.DrawFn) -> Condition:
    name, (value,), (text,) = draw(_named())
    op = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "<=>"]))
    made = {
        "=": lambda left, right: left == right,
        "<": lambda left, right: left < right,
        "<=": lambda left, right: left <= right,
        ">": lambda left, right: left > right,
        ">=": lambda left, right: left >= right,
        "<>": lambda left, right: left != right,
        "<=>": lambda left, right: left.eqNullSafe(right),
    }[op]
    if draw(st.booleans()):
        return Condition(f"{text} {op} {name.upper()}", lambda: made(_literal(name, value), sf.col(name.upper())))
    return Condition(f"{name} {op} {text}", lambda: made(sf.col(name), _literal(name, value)))


@st.composite
def _among(draw: st.DrawFn) -> Condition:
    name, values, texts = draw(_named(draw(st.integers(1, 3))))
    more = draw(st.sampled_from([[], [None]]))
    text = f"{name} {draw(st.sampled_from(['IN', 'NOT IN']))} ({', '.join([*texts, *('NULL' for _ in more)])})"
    negated = "NOT IN" in text

    def make() -> Column:
        found = sf.col(name).isin(*(_literal(name, one) for one in values), *(sf.lit(None) for _ in more))
        return ~found if negated else found

    return Condition(text, make)


@st.composite
def _nullness(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from(sorted(POOLS)))
    if draw(st.booleans()):
        return Condition(f"{name} IS NULL", lambda: sf.col(name).isNull())
    return Condition(f"{name} IS NOT NULL", lambda: sf.col(name).isNotNull())


@st.composite
def _ranges(draw: st.DrawFn) -> Condition:
    name, values, texts = draw(_named(2))
    if name == "flag":
        return Condition("flag", lambda: sf.col("flag"))
    text = f"{name} BETWEEN {texts[0]} AND {texts[1]}"
    return Condition(text, lambda: sf.col(name).between(*(_literal(name, one) for one in values)))


@st.composite
def _beginnings(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from(["p", "Name"]))
    prefix = draw(st.sampled_from(["a", "ab", "O", "A", "a A", "x,", "_b", ""]))
    if draw(st.booleans()):
        return Condition(f"startswith({name}, '{prefix}')", lambda: sf.col(name).startswith(prefix))
    return Condition(f"{name} LIKE '{prefix}%'", lambda: sf.col(name).like(f"{prefix}%"))


def _connected(children: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    def both(parts: Sequence[Condition]) -> Condition:
        return Condition(f"{parts[0].text} AND {parts[1].text}", lambda: parts[0].column() & parts[1].column())

    def either(parts: Sequence[Condition]) -> Condition:
        return Condition(f"({parts[0].text} or {parts[1].text})", lambda: parts[0].column() | parts[1].column())

    pairs = st.tuples(children, children)
    negated = children.map(lambda one: Condition(f"(NOT ({one.text}))", lambda: ~one.column()))
    return st.one_of(pairs.map(both), pairs.map(either), negated)
