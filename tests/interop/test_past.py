"""What is recorded of Apache Hudi's answers about a table's past is what it says, and where pyhudi says otherwise."""

from __future__ import annotations

import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from pyhudi import HudiTable
from pyhudi.errors import UnreadableTimeError
from pyspark.sql import SparkSession
from support.recorded.recorded_past import (
    AS_OF,
    CLEANED,
    CLUSTERED,
    TURNS,
    Recorded,
    commits,
    ours,
    sorted_rows,
    window,
)

pytestmark = pytest.mark.interop

# So many of the queries that are recorded are asked again; all are held against what pyhudi shows without Apache Hudi.
EACH = 14


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded.unpack(tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("name", [TURNS, CLUSTERED, CLEANED])
def test_what_is_recorded_is_what_apache_hudi_says(apache: ApacheHudi, recorded: Recorded, name: str) -> None:
    for query, rows in recorded.answers[name][::EACH]:
        if rows is None:
            with pytest.raises(ApacheHudiError, match="Cleaner cleaned up"):
                apache.read(recorded.table(name), query)
        else:
            assert sorted_rows(apache.read(recorded.table(name), query)) == rows, query


def test_answers_of_apache_hudi_that_lack_rows_are_not_ours(apache: ApacheHudi, recorded: Recorded) -> None:
    table = recorded.table(TURNS)

    assert apache.read(table, window("earliest")).num_rows == 0
    assert ours(table, window("earliest")) == ours(table, {})
    assert apache.read(table, {AS_OF: "2020-01-01"}).num_rows == 0
    with pytest.raises(UnreadableTimeError, match=commits(table)[0].instant):
        ours(table, {AS_OF: "2020-01-01"})


def test_spark_shows_the_same_by_both_ways(spark: SparkSession, recorded: Recorded) -> None:
    table = recorded.table(TURNS)
    ordered = sorted(commits(table), key=lambda one: one.completed)
    begin, end, past = ordered[1].completed, ordered[4].completed, commits(table)[4].instant
    ways, answers = HudiTable(spark, str(table)), {str(query): rows for query, rows in recorded.answers[TURNS]}

    for given, frame in (
        ({AS_OF: past}, ways.to_df(as_of=past)),
        (window(begin, end), ways.to_df(since=begin, until=end)),
    ):
        expected = answers[str(given)]
        assert expected
        assert sorted_rows(frame.toArrow()) == expected
        assert sorted_rows(spark.read.format("pyhudi").options(**given).load(str(table)).toArrow()) == expected
