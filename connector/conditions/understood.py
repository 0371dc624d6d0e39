"""A user's condition, in whatever form it is given: Spark's to evaluate, and as far as it is understood, predicates.

Spark is shown each guess beside the condition itself (`proof.py`). Where it does not find them the same nothing is
concluded, and the rows are those that Spark chooses.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as sf

from ...errors import InvalidOptionError
from ...reader.predicates import Predicate
from .conjuncts import conjuncts
from .literals import Moment
from .proof import Judge
from .shown import ShownText
from .tree import Between, Node
from .values import Given, condition_of, predicates_of, values_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Where: TypeAlias = str | Column | Given

# A number with a point is a decimal in SQL and a double in Python; the first reading is Python's.
_READINGS = 2
# By how much the zones of two sessions can differ, and more.
_ZONES = datetime.timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Asked:
    """What rows are asked for.

    Attributes:
        condition: Spark's to evaluate.
        predicates: Conjuncts that every row satisfies for which it holds.
        columns: The columns that it may be about.
    """

    condition: Column
    predicates: tuple[Predicate, ...]
    columns: frozenset[str]

    def read_with(self, spark: SparkSession, wanted: pa.Schema, schema: pa.Schema) -> pa.Schema:
        """Return what has to be read of a table for some of its columns to be shown: what is compared, too.

        Args:
            spark: The session.
            wanted: The columns to show.
            schema: All of the table's.
        """
        extra = [schema.field(name) for name in schema.names if name in self.columns and name not in wanted.names]
        some = pa.schema([*wanted, *extra])
        if Judge(spark, some).refused(self.condition) is None:
            return some
        return pa.schema([*wanted, *(field for field in schema if field.name not in wanted.names)])


def understand(spark: SparkSession, where: Where, schema: pa.Schema, path: str) -> Asked:
    """Return what is asked for.

    Args:
        spark: The session.
        where: The condition as SQL text or as a column; or values by the names of columns, at least one.
        schema: The table's columns.
        path: The table's, for messages.

    Raises:
        MissingColumnError: The table lacks a column of which values are given.
        InvalidOptionError: Spark cannot make out the condition, or a value is none of its column.
    """
    if isinstance(where, Mapping):
        values = values_of(where)
        predicates = predicates_of(values, schema, path)
        return Asked(condition_of(values, schema), predicates, frozenset(values))
    judge = Judge(spark, schema)
    parts = conjuncts(where) if isinstance(where, str) else []
    try:
        whole = sf.expr(where) if isinstance(where, str) else where
        given = [sf.expr(part) for part in parts] if len(parts) > 1 else [whole]
    except ParseException as error:
        raise _refusal(where, path, error) from error
    texts = judge.texts(given)
    if texts is None or (len(given) > 1 and not judge.agrees(whole, reduce(Column.__and__, given))):
        given, texts = [whole], judge.texts([whole])
    refused = judge.refused(whole)
    if refused is not None:
        raise _refusal(where, path, refused) from refused
    nodes = [] if texts is None else _proven(judge, given, texts, schema)
    moments = list(dict.fromkeys(one for node in nodes for one in node.moments()))
    known = judge.values(moments)

    def valued(value: Any) -> Any:
        if not isinstance(value, Moment):
            return value
        return Between(known[value] - _ZONES, known[value] + _ZONES) if judge.is_late else known[value]

    predicates = tuple(one for node in nodes for one in node.kept(True, valued))
    return Asked(whole, predicates, _mentioned(texts, schema))


def _proven(judge: Judge, given: Sequence[Column], texts: Sequence[str], schema: pa.Schema) -> list[Node]:
    """Return the trees of those conditions that Spark finds the same as their trees."""
    found: list[Node] = []
    for condition, text in zip(given, texts, strict=True):
        for reading in range(_READINGS):
            node = ShownText(schema, reading).read(text)
            if not node.kept(True, lambda value: value):
                break
            try:
                same = judge.agrees(condition, node.make())
            except PySparkException:
                same = False
            if same:
                found.append(node)
                break
    return found


def _mentioned(texts: Sequence[str] | None, schema: pa.Schema) -> frozenset[str]:
    """Return the columns whose names occur in Spark's texts of a condition; all where it has none."""
    folded = None if texts is None else " ".join(texts).lower()
    return frozenset(name for name in schema.names if folded is None or name.lower() in folded)


def _refusal(where: str | Column, path: str, error: PySparkException) -> InvalidOptionError:
    said = str(error).strip().splitlines()[0]
    advice = "Give a condition on columns of the table, as for DataFrame.where."
    if "MISSING_ATTRIBUTES" in said:
        advice = "Name columns as functions.col does: those of another DataFrame are none of this one."
    return InvalidOptionError(
        f"The condition {str(where)!r} cannot be asked of the table {path}. Spark says: {said}", advice
    )
