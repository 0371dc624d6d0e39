"""Every moment and every window of a table's past, row by row as Apache Hudi shows it, and where it does not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, ApacheHudiError
from interop.readers import read_without_spark
from interop.scenarios import BUCKETS, PARTITION, TIME, Row, as_rows
from pyhudi import HudiTable
from pyhudi.errors import UnreadableTimeError
from pyhudi.operations.planning.request import TableSettings
from pyspark.sql import SparkSession
from support.drive import write

pytestmark = pytest.mark.interop

AS_OF = "as.of.instant"
TYPE = "hoodie.datasource.query.type"
BEGIN, END = (f"hoodie.datasource.read.{word}.instanttime" for word in ("begin", "end"))
FULL_SCAN = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
OPERATION = "hoodie.datasource.write.operation"
KEYED = {
    "hoodie.table.name": "past",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.metadata.enable": "false",
}
BUCKETED = {**KEYED, "hoodie.index.type": "BUCKET", BUCKETS: "2"}
KEEP = {"hoodie.clean.automatic": "false"}
BEGINNING = "00000000000000"


@dataclass(frozen=True)
class Commit:
    """A completed write, from the name of its file."""

    instant: str
    completed: str
    action: str


def commits(table: Path) -> list[Commit]:
    """Return the completed writes in order of requested time."""
    files = (table / ".hoodie" / "timeline").glob("[0-9]*_[0-9]*.*commit")
    return [Commit(*file.stem.split("_"), file.suffix[1:]) for file in sorted(files)]


def rows(version: int, **ids: range) -> pa.Table:
    """Return rows of one version, with the ids of each partition."""
    pairs = [(number, p) for p, numbers in ids.items() for number in numbers]
    columns = {"id": [number for number, _ in pairs], "p": [p for _, p in pairs]}
    return pa.table({**columns, "value": [version] * len(pairs), "ts": [version] * len(pairs)})


def ours(table: Path, given: Mapping[str, str]) -> list[Row]:
    """Return what pyhudi shows for the options of a query."""
    return as_rows(read_without_spark(table, given))


def theirs(apache: ApacheHudi, table: Path, given: Mapping[str, str]) -> list[Row]:
    """Return what Apache Hudi shows for them."""
    return as_rows(apache.read(table, given))


def window(begin: str, end: str | None = None) -> dict[str, str]:
    return {TYPE: "incremental", BEGIN: begin, **({END: end} if end else {})}


def windows(table: Path) -> list[tuple[str, str | None]]:
    """Every window between two completions, from the beginning, and until now."""
    times = sorted(one.completed for one in commits(table))
    return [(begin, end) for begin, end in product([BEGINNING, *times], [*times, None]) if end is None or begin < end]


@pytest.fixture(scope="module")
def table(apache: ApacheHudi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upserts, some of the same rows; overwritten and deleted partitions; commits that overtook others."""
    table = tmp_path_factory.mktemp("past") / "table"
    for number, (data, operation) in enumerate(
        [
            (rows(1, a=range(6), b=range(6), c=range(6)), "upsert"),
            (rows(2, a=range(3)), "upsert"),
            (rows(3, b=range(3, 8)), "upsert"),
            (rows(4, c=range(2)), "upsert"),
            (rows(5, a=range(2, 9)), "upsert"),
            (rows(6, b=range(20, 23)), "insert_overwrite"),
            (rows(7, c=range(1, 3)), "upsert"),
            (rows(8, a=range(1)), "delete_partition"),
            (rows(9, c=range(1, 2)), "upsert"),
        ]
    ):
        partitions = {"hoodie.datasource.write.partitions.to.delete": "a"} if operation == "delete_partition" else {}
        options = {**BUCKETED, **KEEP, OPERATION: operation, **partitions}
        apache.write(table, data, options, mode="append" if number else "overwrite")
    write(table, rows(10, a=range(2), b=range(21, 25)), table=TableSettings(bucket_count=2))
    reorder(table, [0, 2, 1, 3, 4, 6, 5, 8, 7, 9])
    return table


def reorder(table: Path, order: list[int]) -> None:
    """Let the commits have completed in another order: what a file's name says is all that anybody knows of it."""
    folder = table / ".hoodie" / "timeline"
    known = commits(table)
    times = sorted(one.completed for one in known)
    for number in order:
        one = known[number]
        (folder / f".{one.instant}_{one.completed}.{one.action}.crc").unlink(missing_ok=True)
        (folder / f"{one.instant}_{one.completed}.{one.action}").rename(folder / f"{number}.new")
    for number, time in zip(order, times, strict=True):
        (folder / f"{number}.new").rename(folder / f"{known[number].instant}_{time}.{known[number].action}")


def test_the_table_at_each_of_its_instants(apache: ApacheHudi, table: Path) -> None:
    seen = [ours(table, {AS_OF: one.instant}) for one in commits(table)]

    assert seen == [theirs(apache, table, {AS_OF: one.instant}) for one in commits(table)]
    assert len({str(found) for found in seen}) == 10


def test_every_window(apache: ApacheHudi, table: Path) -> None:
    """Apache Hudi counts an overwrite that completed after the window, if a younger commit is in the window."""
    overtaken = 0
    known = commits(table)
    for begin, end in windows(table):
        inside = [one.instant for one in known if one.completed > begin and (end is None or one.completed <= end)]
        late = [one for one in known if end and one.completed > end and inside and one.instant < max(inside)]
        mine, other = ours(table, window(begin, end)), theirs(apache, table, window(begin, end))
        if any(one.action == "replacecommit" for one in late):
            missed = [row for row in mine if row not in other]
            assert {row[PARTITION] for row in missed} <= {"a", "b"}
            assert [row for row in mine if row not in missed] == other
            overtaken += bool(missed)
        else:
            assert mine == other, (begin, end)
        assert {row[TIME] for row in mine} <= set(inside)

    assert overtaken


def spellings(time: str) -> list[str]:
    """Return an instant's time in each way that Apache Hudi understands, and its second."""
    moment = dt.datetime.strptime(time[:14], "%Y%m%d%H%M%S").replace(tzinfo=dt.timezone.utc)
    millis, seconds = time[14:], int(moment.timestamp())
    texts = [f"{moment:{form}}" for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")]
    return [time, time[:14], *texts, *(f"{text}.{millis}" for text in texts), f"{seconds}{millis}", f"{seconds}"]


def test_the_spellings_of_a_time(apache: ApacheHudi, table: Path) -> None:
    third = commits(table)[2]
    day = f"{third.completed[:4]}-{third.completed[4:6]}-{third.completed[6:8]}"
    given = [
        *({AS_OF: text} for text in spellings(third.instant)),
        *(window(BEGINNING, text) for text in spellings(third.completed)),
        *(window(text) for text in [*spellings(third.completed), day]),
    ]

    assert [ours(table, one) for one in given] == [theirs(apache, table, one) for one in given]


def test_answers_of_apache_hudi_that_lack_rows_are_not_ours(apache: ApacheHudi, table: Path) -> None:
    assert theirs(apache, table, window("earliest")) == []
    assert ours(table, window("earliest")) == ours(table, {})
    assert theirs(apache, table, {AS_OF: "2020-01-01"}) == []
    with pytest.raises(UnreadableTimeError, match=commits(table)[0].instant):
        ours(table, {AS_OF: "2020-01-01"})


def test_spark_shows_the_same_by_both_ways(apache: ApacheHudi, spark: SparkSession, table: Path) -> None:
    ordered = sorted(commits(table), key=lambda one: one.completed)
    begin, end, past = ordered[1].completed, ordered[4].completed, commits(table)[4].instant
    ways = HudiTable(spark, str(table))

    for given, frame in (
        ({AS_OF: past}, ways.to_df(as_of=past)),
        (window(begin, end), ways.to_df(since=begin, until=end)),
    ):
        expected = theirs(apache, table, given)
        assert as_rows(frame.toArrow()) == expected
        assert as_rows(spark.read.format("pyhudi").options(**given).load(str(table)).toArrow()) == expected


def test_a_clustering_is_no_change_and_hides_none(apache: ApacheHudi, tmp_path: Path) -> None:
    """The rows of a window are found where a clustering of the window, or before it, has put them."""
    table = tmp_path / "table"
    now = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    small = {**KEYED, **KEEP, "hoodie.parquet.small.file.limit": "0"}
    for number, (data, more) in enumerate(
        [
            (rows(1, a=range(5), b=range(5, 8)), {}),
            (rows(2, a=range(1), b=range(8, 9)), {}),
            (rows(3, a=range(1, 2), b=range(9, 10)), now),
            (rows(4, a=range(2, 3)), {}),
            (rows(5, a=range(3, 4), b=range(6, 7)), now),
        ]
    ):
        apache.write(table, data, {**small, **more}, mode="append" if number else "overwrite")

    assert [one.action for one in commits(table)].count("replacecommit") == 2
    for one in commits(table):
        assert ours(table, {AS_OF: one.instant}) == theirs(apache, table, {AS_OF: one.instant})
    for begin, end in windows(table):
        assert ours(table, window(begin, end)) == theirs(apache, table, window(begin, end)), (begin, end)


def test_what_apache_hudi_cleaned_and_archived(apache: ApacheHudi, tmp_path: Path) -> None:
    """Where it answers whole, the answers are alike; where it leaves rows out or refuses, ours never lacks one."""
    table = tmp_path / "table"
    spare = {
        "hoodie.clean.commits.retained": "2",
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "5",
        "hoodie.commits.archival.batch": "1",
    }
    then: dict[str, list[Row]] = {}
    for version in range(1, 11):
        data = rows(version, a=range(2), b=range(version, version + 1))
        apache.write(table, data, {**BUCKETED, **spare}, mode="append" if version > 1 else "overwrite")
        then[commits(table)[-1].instant] = ours(table, {})
    known = commits(table)
    assert (table / ".hoodie" / "timeline" / "history" / "_version_").exists()

    answered, refused = 0, 0
    for one in known:
        try:
            mine = ours(table, {AS_OF: one.instant})
        except UnreadableTimeError:
            refused += 1
            with pytest.raises(ApacheHudiError, match="Cleaner cleaned up"):
                theirs(apache, table, {AS_OF: one.instant})
        else:
            answered += 1
            assert mine == then[one.instant]
    assert answered >= 2
    assert refused

    for one in known:
        assert ours(table, window(one.completed)) == theirs(apache, table, window(one.completed))
    # What the archived commits wrote is in the archive.
    searched = {**window("2020-01-01"), FULL_SCAN: "true"}
    assert ours(table, window("2020-01-01")) == theirs(apache, table, searched) == ours(table, window("earliest"))
    last = known[-2]
    whole = [row for row in then[last.instant] if row[TIME] >= known[1].instant]
    assert ours(table, window(known[0].completed, last.completed)) == whole
