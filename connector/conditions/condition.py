"""A user's condition in any form: for Spark to evaluate and, as far as it is understood, as predicates.

Spark compares each guess with the condition itself (`Judge`). Without a proof that they are the same, a guess gives no
predicate, and files are not skipped.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...errors import InvalidOptionError
from ...reader.skipping.predicates import Predicate
from ..source.spark_types import to_spark
from .literals import TimeLiteral
from .spark_text import ShownText
from .tree import Between, Node, UnknownValue
from .values import ValuesByColumn, WantedValues

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...reader.snapshot import Snapshot

Where: TypeAlias = str | Column | ValuesByColumn

# The readings of a number with a point: first a double, as in Python, then a decimal, as in SQL.
_READINGS = 2
# More than the greatest difference between the time zones of two sessions.
_ZONES = datetime.timedelta(days=2)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)"""
    r"""|(?P<word>\w+)|(?P<open>[(\[])|(?P<close>[)\]])|(?P<unclear>--|/\*|['"`\\])|(?P<rest>\s+|.)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ParsedCondition:
    """A parsed condition.

    Attributes:
        predicates: Conjuncts that every row satisfies for which the condition holds.
        columns: The columns that the condition may use.
    """

    condition: Column
    predicates: tuple[Predicate, ...]
    columns: frozenset[str]

    def read_with(self, spark: SparkSession, wanted: pa.Schema, schema: pa.Schema) -> pa.Schema:
        """Return the columns to read so that ``wanted`` can be shown and the condition evaluated.

        ``schema`` has all columns of the table.
        """
        extra = [schema.field(name) for name in schema.names if name in self.columns and name not in wanted.names]
        read_columns = pa.schema([*wanted, *extra])
        # `columns` goes by names in a text; if the condition needs others, all columns are read.
        if Judge(spark, read_columns).refused(self.condition) is None:
            return read_columns
        return pa.schema([*wanted, *(field for field in schema if field.name not in wanted.names)])


def parse_condition(spark: SparkSession, where: Where, snapshot: Snapshot) -> ParsedCondition:
    """Return the parsed condition: SQL text, a Column, or values by at least one column name.

    Raises `MissingColumnError` for an unknown column of values, and `InvalidOptionError` if Spark does not understand
    the condition or a value does not fit its column.
    """
    schema, path = snapshot.schema, snapshot.storage.path
    if isinstance(where, Mapping):
        wanted_values = WantedValues.of(where, schema, path)
        return ParsedCondition(wanted_values.condition(), wanted_values.predicates(), frozenset(wanted_values.values))
    judge = Judge(spark, schema)
    try:
        condition = sf.expr(where) if isinstance(where, str) else where
        parts = judge.split_into_conjuncts(where, condition)
    except ParseException as error:
        raise _refusal(where, path, error) from error
    spark_error = judge.refused(condition)
    if spark_error is not None:
        raise _refusal(where, path, spark_error) from spark_error
    texts = judge.texts(parts)
    return ParsedCondition(condition, judge.predicates(parts, texts), _mentioned_columns(texts, schema))


def condition_predicates(
    spark: SparkSession, where: Where, schema: pa.Schema, path: str, alias: str = ""
) -> tuple[Predicate, ...]:
    """Return predicates of a condition, none if it is not understood; its columns may have an alias before them."""
    if isinstance(where, Mapping):
        return WantedValues.of(where, schema, path).predicates() if where else ()
    judge = Judge(spark, schema, alias)
    try:
        parts = judge.split_into_conjuncts(where, sf.expr(where) if isinstance(where, str) else where)
    except ParseException:
        return ()
    return judge.predicates(parts, judge.texts(parts))


class Judge:
    """Spark's analysis of conditions on a table's columns."""

    def __init__(self, spark: SparkSession, schema: pa.Schema, alias: str = "") -> None:
        self._spark = spark
        self._schema = schema
        rows = spark.createDataFrame([], to_spark(schema))
        self._frame = rows.alias(alias) if alias else rows

    @property
    def is_late(self) -> bool:
        """Whether the session's time zone may change between this analysis and the query, as on Spark Connect."""
        return "connect" in type(self._spark).__module__

    def split_into_conjuncts(self, where: str | Column, condition: Column) -> list[Column]:
        """Return the conjuncts of a condition, or the condition itself if Spark does not take both for the same."""
        parts = conjuncts(where) if isinstance(where, str) else []
        columns = [sf.expr(part) for part in parts] if len(parts) > 1 else [condition]
        return columns if len(columns) < 2 or self.agrees(condition, reduce(Column.__and__, columns)) else [condition]

    def predicates(self, conditions: Sequence[Column], texts: Sequence[str] | None) -> tuple[Predicate, ...]:
        """Return predicates that every row satisfies for which all conditions hold, as far as pyhudi understands them.

        ``texts`` are Spark's texts of the conditions; None, if Spark cannot resolve one, gives no predicates.
        """
        nodes = [] if texts is None else self.proven_nodes(conditions, texts)
        micros = self.micros(list(dict.fromkeys(moment for node in nodes for moment in node.moments())))

        def value_of(value: Any) -> Any:
            """Return the value of a literal in a predicate.

            That is for a time in an uncertain zone its bounds, and an `UnknownValue` if Python has no such time.
            """
            if not isinstance(value, TimeLiteral):
                return value
            try:
                moment = _EPOCH + datetime.timedelta(microseconds=micros[value])
                return Between(moment - _ZONES, moment + _ZONES) if self.is_late else moment
            except OverflowError:
                # Python's years are 1 to 9999, and the first and last of them are usual for times without an end.
                return UnknownValue()

        return tuple(predicate for node in nodes for predicate in node.implied_predicates(True, value_of))

    def texts(self, conditions: Sequence[Column]) -> list[str] | None:
        """Return Spark's texts of conditions; None if Spark cannot resolve a condition."""
        try:
            return list(self._frame.select(*conditions).columns)
        except PySparkException:
            return None

    def refused(self, condition: Column) -> PySparkException | None:
        """Return Spark's error for a filter by the condition; None if it is valid."""
        try:
            _ = self._frame.where(condition).columns
        except PySparkException as error:
            return error
        return None

    def agrees(self, condition: Column, other_condition: Column) -> bool:
        """Return whether two conditions mean the same to Spark, with implicit casts."""
        try:
            return self._frame.where(condition).sameSemantics(self._frame.where(other_condition))
        except PySparkException:
            return False

    def micros(self, moments: Sequence[TimeLiteral]) -> dict[TimeLiteral, int]:
        """Return the microseconds since the epoch of times in the session's time zone."""
        if not moments:
            return {}
        columns = [sf.unix_micros(sf.lit(moment.text).cast("timestamp")) for moment in moments]
        row = self._spark.range(1).select(*columns).collect()[0]
        return dict(zip(moments, row, strict=True))

    def proven_nodes(self, conditions: Sequence[Column], texts: Sequence[str]) -> list[Node]:
        """Return the trees of those conditions that Spark finds the same as their trees.

        Spark's text does not tell a double from a decimal, so a condition has a tree for each reading of its numbers.
        """
        nodes: list[Node] = []
        for condition, text in zip(conditions, texts, strict=True):
            for reading in range(_READINGS):
                node = ShownText(self._schema, reading).parse(text)
                # A tree without predicates is of no use, so there is nothing to prove.
                if not node.implied_predicates(True, lambda value: value):
                    break
                try:
                    is_same = self.agrees(condition, node.make())
                except PySparkException:
                    is_same = False
                if is_same:
                    nodes.append(node)
                    break
        return nodes


def conjuncts(text: str) -> list[str]:
    """Return the conjuncts of a condition's text, or the whole text if it has none or is too complex.

    The text is cut at each ``AND`` outside of quotes, parentheses and CASE. Spark later checks that the parts mean the
    same as the whole, so a wrong cut only means that fewer files are skipped.
    """
    ends = [0]
    depth = cases = betweens = 0
    for match in _TOKEN.finditer(text):
        word = match["word"].upper() if match["word"] else ""
        # Comments, odd quotes and raw texts (r'…') may hide an AND.
        if match["unclear"] or (word == "R" and text[match.end() : match.end() + 1] in {"'", '"'}):
            return [text]
        depth += bool(match["open"]) - bool(match["close"])
        # An END outside of CASE is the name of a column.
        cases += (word == "CASE") - (word == "END" and cases > 0)
        if depth or cases:
            continue
        if word == "OR":
            return [text]
        betweens += word == "BETWEEN"
        if word == "AND":
            if betweens:
                # This AND is between the bounds of a BETWEEN.
                betweens -= 1
            else:
                # A part ends before this AND, and the next begins after it.
                ends += [match.start(), match.end()]
    ends.append(len(text))
    parts = [text[start:end].strip() for start, end in zip(ends[::2], ends[1::2], strict=True)]
    return parts if all(parts) else [text]


def _mentioned_columns(texts: Sequence[str] | None, schema: pa.Schema) -> frozenset[str]:
    """Return the columns whose names occur in Spark's texts of a condition; all columns without texts."""
    folded = None if texts is None else " ".join(texts).lower()
    return frozenset(name for name in schema.names if folded is None or name.lower() in folded)


def _refusal(where: str | Column, path: str, error: PySparkException) -> InvalidOptionError:
    """Return the error for a condition that Spark does not understand."""
    message = str(error).strip().splitlines()[0]
    advice = "Give a condition on columns of the table, as for DataFrame.where."
    if "MISSING_ATTRIBUTES" in message:
        advice = "Name columns as functions.col does: columns of another DataFrame do not belong to this table."
    return InvalidOptionError(
        f"The condition {str(where)!r} does not fit the table {path}. Spark says: {message}", advice
    )
