"""Apache Hudi's other queries over commits of pyhudi."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import completed, properties, upserted
from interop.scenarios import BUCKETS, PARTITIONED, Model, as_rows, without_file_names
from interop.writer import write_without_spark
from pyhudi.reader.query import Changes
from pyhudi.reader.snapshot import open_snapshot
from support.models.past import rows_of

pytestmark = pytest.mark.interop

INCREMENTAL = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model]:
    """A table of three commits by pyhudi, and what it holds."""
    table, model = tmp_path_factory.mktemp("queries") / "table", Model(PARTITIONED)
    for n, rows in enumerate(
        [
            PARTITIONED.rows(range(30), 1, ts=1),
            PARTITIONED.rows(range(20, 40), 2, ts=2),
            PARTITIONED.rows(range(5, 10), 3, ts=3, deleted=True),
        ]
    ):
        options = {} if n else {**PARTITIONED.table_options, BUCKETS: "2"}
        write_without_spark(table, PARTITIONED.table(rows), options)
        upserted(table, model, rows)
    return table, model


def test_an_incremental_query_from_the_beginning_returns_every_row(
    apache: ApacheHudi, written: tuple[Path, Model]
) -> None:
    table, model = written

    rows = as_rows(apache.read(table, INCREMENTAL))

    assert without_file_names(rows) == model.expected()


def test_an_incremental_query_after_a_commit_returns_what_came_later(
    apache: ApacheHudi, written: tuple[Path, Model]
) -> None:
    table, model = written
    first, *later = completed(table)
    [file] = (table / ".hoodie" / "timeline").glob(f"{first}_*.commit")
    begin = {"hoodie.datasource.read.begin.instanttime": file.stem.split("_")[1]}

    rows = as_rows(apache.read(table, {**INCREMENTAL, **begin}))

    assert without_file_names(rows) == [row for row in model.expected() if row["_hoodie_commit_time"] in later]
    assert rows


def test_time_travel_returns_the_rows_of_the_first_commit(apache: ApacheHudi, written: tuple[Path, Model]) -> None:
    table, _ = written
    first = Model(PARTITIONED)
    first.upsert(PARTITIONED.rows(range(30), 1, ts=1), completed(table)[0])

    rows = as_rows(apache.read(table, {"as.of.instant": completed(table)[0]}))

    assert without_file_names(rows) == first.expected()


def test_show_commits_lists_our_instants_with_their_counts(apache: ApacheHudi, written: tuple[Path, Model]) -> None:
    table, _ = written
    apache.sql(f"create table pyhudi_queries using hudi location '{table}'")

    shown = apache.sql("call show_commits(table => 'pyhudi_queries', limit => 100)")

    assert [line["commit_time"] for line in reversed(shown)] == completed(table)
    assert {line["action"] for line in shown} == {"commit"}
    assert [line["total_update_records_written"] for line in reversed(shown)] == [0, 10, 0]
    assert {line["total_errors"] for line in shown} == {0}


URL_ENCODED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.index.type": "BUCKET",
    BUCKETS: "1",
}


def test_apache_hudi_leaves_encoded_partitions_encoded_where_it_shows_changes(
    tmp_path: Path, apache: ApacheHudi
) -> None:
    """When this fails, docs/queries.md has to change."""
    rows = pa.table({"id": [1], "p": ["x/y"], "value": [7]})
    write_without_spark(tmp_path / "t", rows, URL_ENCODED)
    apache.write(tmp_path / "theirs", rows, URL_ENCODED)

    for table in (tmp_path / "t", tmp_path / "theirs"):
        assert apache.read(table)["p"].to_pylist() == ["x/y"]
        assert apache.read(table, INCREMENTAL)["p"].to_pylist() == ["x%2Fy"]
        changed = rows_of(open_snapshot(str(table), query=Changes("earliest")))
        assert [row[:3] for row in changed] == [("x/y", 1, 7)]


def test_a_procedure_that_writes_builds_the_metadata_table_unless_it_is_told_not_to(
    tmp_path: Path, apache: ApacheHudi
) -> None:
    """The other half of what docs/queries.md says of procedures is that pyhudi's next write keeps it."""
    table = tmp_path / "t"
    for n in range(3):
        write_without_spark(table, pa.table({"id": [1], "p": ["a"], "n": [n]}), {} if n else URL_ENCODED)
    apache.sql(f"create table of_procedures using hudi location '{table}'")
    built = []
    for setting in ("false", "true"):
        apache.sql(f"set hoodie.metadata.enable={setting}")
        apache.sql("call run_clean(table => 'of_procedures', retain_commits => 1)")
        partitions = properties(table).get("hoodie.table.metadata.partitions", "")
        built.append(partitions != "")
        write_without_spark(table, pa.table({"id": [1], "p": ["a"], "n": [9]}), {})
        assert properties(table).get("hoodie.table.metadata.partitions", "") == partitions

    assert built == [False, True]
