"""Tables of version 6 that pyhudi upgrades, beside the same tables that Apache Hudi 1.2 upgrades."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from contract.test_upgrades_of_version_6 import upgrade
from interop.apache_hudi import ApacheHudi
from interop.instants import properties
from pyhudi.arrow import Table
from pyhudi.table.config import property_keys as key
from support.readers import read_without_spark
from support.recorded.recorded_past import AS_OF
from support.recorded.recorded_version_6 import NEW, answers, shown, unpack, writes
from support.rules.health import errors

pytestmark = pytest.mark.interop

# Apache Hudi keeps the options of a table's writers nowhere.
LOGGED = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
KEYED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "SIMPLE",
}


def instants(table: Path) -> set[str]:
    """Return the completed instants on the timeline, with both times."""
    return {path.name for path in (table / ".hoodie/timeline").glob("[0-9]*_*.*")}


@pytest.mark.parametrize(
    ("name", "to"), [("cow_past", "NINE"), ("cow_archived", "NINE"), ("new_cow", "NINE"), ("cow_past", "EIGHT")]
)
def test_apache_hudi_goes_on_with_a_table_of_version_6_that_pyhudi_upgraded(
    name: str, to: str, tmp_path: Path, apache: ApacheHudi
) -> None:
    made = unpack(tmp_path / "made") / name
    ours = Path(shutil.copytree(made, tmp_path / "ours" / name))
    rows = shown(read_without_spark(ours))
    sample = Table(ours).read().slice(0, 2)
    number = {"EIGHT": 8, "NINE": 9}[to]
    Table(ours).upgrade(to=number)

    apache.sql("set hoodie.metadata.enable=false")
    apache.sql(f"create table {name}_{to} using hudi location '{made}'")
    apache.sql(f"call upgrade_table(table => '{name}_{to}', to_version => '{to}')")

    assert properties(ours) == properties(made)
    assert instants(ours) == instants(made)
    assert shown(apache.read(ours)) == rows
    stays = {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": str(number)}
    apache.write(ours, sample, {**KEYED, **stays})
    assert properties(ours)[key.VERSION] == str(number)
    assert errors(ours) == []
    Table(ours).upsert(sample)
    assert shown(apache.read(ours)) == shown(read_without_spark(ours))


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("mor_latest", "NINE"),
        ("mor_failed", "NINE"),
        ("mor_ignore_defaults", "NINE"),
        ("new_mor", "NINE"),
        ("mor_event_time", "EIGHT"),
    ],
)
def test_apache_hudi_goes_on_with_log_files_of_version_6_that_pyhudi_upgraded(
    name: str, to: str, tmp_path: Path, apache: ApacheHudi
) -> None:
    """It shows the same rows of both tables, now and at each of their instants."""
    made = unpack(tmp_path / "made") / name
    ours = Path(shutil.copytree(made, tmp_path / "ours" / name))
    rows, times, old_logs = shown(read_without_spark(ours)), writes(made), log_files(made)
    sample = Table(ours).read().slice(0, 2)
    number = {"EIGHT": 8, "NINE": 9}[to]
    upgrade(ours, number)

    apache.sql("set hoodie.metadata.enable=false")
    apache.sql(f"create table {name}_{to} using hudi location '{made}'")
    apache.sql(f"call upgrade_table(table => '{name}_{to}', to_version => '{to}')")

    assert properties(ours) == properties(made)
    assert before(ours, times[-1]) == before(made, times[-1])
    assert sorted(map(action, instants(ours))) == sorted(map(action, instants(made)))
    # Apache Hudi leaves the log file of an append that failed in this way; pyhudi deletes it.
    assert log_files(made) == old_logs
    assert old_logs - log_files(ours) == ({DEAD} if name == "mor_failed" else set())
    assert shown(apache.read(ours)) == rows
    for time in times:
        assert shown(apache.read(ours, {AS_OF: time})) == shown(apache.read(made, {AS_OF: time}))
    stays = {"hoodie.write.auto.upgrade": "false", "hoodie.write.table.version": str(number)}
    apache.write(ours, sample, {**KEYED, **LOGGED, **stays})
    assert properties(ours)[key.VERSION] == str(number)
    assert shown(apache.read(ours)) == shown(read_without_spark(ours))
    assert errors(ours) == []
    Table(ours).upsert(sample)
    Table(ours).compact()
    assert shown(apache.read(ours)) == shown(read_without_spark(ours))
    assert errors(ours) == []


DEAD = ".74a1d956-456a-4461-90fd-dac943812ad5-0_20261129102723223.log.2_0-1270-1136"


def log_files(table: Path) -> set[str]:
    return {path.name for path in table.rglob(".*.log.*") if ".hoodie" not in path.parts and path.suffix != ".crc"}


def before(table: Path, time: str) -> set[str]:
    """Return the completed instants that were requested until a time."""
    return {name for name in instants(table) if name.split("_")[0] <= time}


def action(name: str) -> str:
    return name.rpartition(".")[2]


def test_no_row_is_lost_that_was_written_while_a_compaction_was_pending(tmp_path: Path, apache: ApacheHudi) -> None:
    """Apache Hudi 1.2 would lose them in its own upgrade."""
    table = unpack(tmp_path) / "mor_pending"
    Table(table).upgrade()

    for answer in answers("mor_pending", NEW):
        if not answer.query or AS_OF in answer.query:
            assert shown(apache.read(table, answer.query)) == (answer.columns, answer.rows)
