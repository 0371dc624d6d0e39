"""pyhudi and Apache Hudi take turns in writing one table, and every reader sees what a dict says.

Some of pyhudi's writes go through Spark, the first one always, and so does the last look at each table: what is in
between is decided below the connector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi, data_files
from interop.instants import completed, pending, properties, upserted
from interop.readers import Readers
from interop.scenarios import BUCKETS, MADE_BY_APACHE_HUDI, MADE_BY_PYHUDI, Model, Row, Scenario
from interop.writer import Writer, write_without_spark
from pyhudi.errors import MissingOptionError, from_spark

pytestmark = pytest.mark.interop

INLINE_CLEAN = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
    "hoodie.clean.commits.retained": "1",
}
DELETE = {"hoodie.datasource.write.operation": "delete"}

Write = Callable[[pa.Table, Mapping[str, str]], object]


def second_version(scenario: Scenario) -> list[Row]:
    """Rows that meet a table of rows 0..39 with ts 10: newer, late, tied, deleted, late deleted, new, new deleted."""
    return [
        *scenario.rows(range(0, 8), 2, ts=20),
        *scenario.rows(range(8, 14), 2, ts=5),
        *scenario.rows(range(14, 20), 2, ts=10),
        *scenario.rows(range(20, 24), 2, ts=20, deleted=True),
        *scenario.rows(range(24, 28), 2, ts=5, deleted=True),
        *scenario.rows(range(40, 50), 2, ts=7),
        *scenario.rows(range(50, 53), 2, ts=7, deleted=True),
    ]


def several_of_one_key(scenario: Scenario) -> list[Row]:
    """Rows of which several share a key: an older one comes later, two are tied, a tombstone is the newest."""
    return [
        *scenario.rows(range(0, 4), 3, ts=31),
        *scenario.rows(range(0, 4), 4, ts=30),
        *scenario.rows(range(4, 8), 3, ts=30),
        *scenario.rows(range(4, 8), 4, ts=30),
        *scenario.rows(range(60, 64), 3, ts=30),
        *scenario.rows(range(60, 64), 4, ts=31, deleted=True),
    ]


def metadata_partitions(table: Path) -> set[str]:
    return set(filter(None, properties(table).get("hoodie.table.metadata.partitions", "").split(",")))


@pytest.mark.parametrize("scenario", MADE_BY_PYHUDI, ids=lambda scenario: scenario.name)
def test_a_table_of_pyhudi_is_carried_on_by_apache_hudi_and_back(
    scenario: Scenario, table: Path, pyhudi: Writer, hudi: ApacheHudi, readers: Readers
) -> None:
    model = Model(scenario)

    def upsert(write: Write, rows: list[Row], options: dict[str, str] | None = None) -> None:
        write(scenario.table(rows), options or {})
        upserted(table, model, rows)

    aside = partial(write_without_spark, table)
    upsert(pyhudi.write, scenario.rows(range(40), 1, ts=10), {**scenario.table_options, BUCKETS: "2"})
    upsert(aside, second_version(scenario))
    upsert(pyhudi.write, several_of_one_key(scenario))
    gone = scenario.rows([1, 9, 30, 77], 9, ts=0)
    aside(scenario.table(gone), DELETE)
    model.delete(gone)
    readers.check(table, model, by_spark=False)

    theirs = {**scenario.theirs, BUCKETS: "2", **INLINE_CLEAN}
    rows = [*scenario.rows(range(10, 30), 5, ts=40), *scenario.rows(range(70, 80), 5, ts=40)]
    hudi.write(table, scenario.table(rows), theirs)
    upserted(table, model, rows)
    gone = scenario.rows([2, 11, 71], 9, ts=0)
    hudi.write(table, scenario.table(gone), {**theirs, **DELETE})
    model.delete(gone)
    assert completed(table, "clean"), "Apache Hudi cleaned nothing"
    readers.check(table, model, by_spark=False)
    in_use = metadata_partitions(table)

    upsert(aside, [*scenario.rows(range(5, 15), 6, ts=50), *scenario.rows(range(75, 85), 6, ts=30)])
    upsert(pyhudi.write, scenario.rows([3, 4, 84], 7, ts=60, deleted=True))
    readers.check(table, model)
    assert pending(table) == set()
    assert metadata_partitions(table) == in_use


@pytest.mark.parametrize("scenario", MADE_BY_APACHE_HUDI, ids=lambda scenario: scenario.name)
def test_a_table_of_apache_hudi_is_carried_on_by_pyhudi_and_back(
    scenario: Scenario, table: Path, pyhudi: Writer, hudi: ApacheHudi, readers: Readers
) -> None:
    model = Model(scenario)
    theirs = scenario.theirs
    rows = scenario.rows(range(40), 1, ts=10)
    hudi.write(table, scenario.table(rows), theirs, mode="overwrite")
    upserted(table, model, rows)
    rows = second_version(scenario)
    hudi.write(table, scenario.table(rows), theirs)
    upserted(table, model, rows)
    readers.check(table, model, by_spark=False)
    metadata_names = metadata_partitions(table)
    wanted = {"files": scenario.listed or scenario.bounds, "column_stats": scenario.bounds}
    assert {name: name in metadata_names for name in wanted} == wanted

    rows = several_of_one_key(scenario)
    files = data_files(table)
    with pytest.raises(Exception, match="PyHudiError") as refused:
        pyhudi.write(scenario.table(rows), {})
    assert isinstance(from_spark(refused.value), MissingOptionError)
    assert BUCKETS in str(refused.value)
    assert data_files(table) == files

    pyhudi.write(scenario.table(rows), {BUCKETS: str(scenario.buckets), **scenario.told})
    upserted(table, model, rows)
    assert metadata_partitions(table) == metadata_names

    rows = [*scenario.rows(range(10, 20), 4, ts=35), *scenario.rows(range(30, 33), 4, ts=35, deleted=True)]
    write_without_spark(table, scenario.table(rows), {})
    upserted(table, model, rows)
    readers.check(table, model, by_spark=False)

    rows = scenario.rows(range(30, 70), 5, ts=40)
    hudi.write(table, scenario.table(rows), theirs)
    upserted(table, model, rows)
    readers.check(table, model)
    assert pending(table) == set()
