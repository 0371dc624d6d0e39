"""Tables of version 6 that pyhudi upgrades, beside the same tables that Apache Hudi 1.2 upgrades."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi
from interop.instants import properties
from pyhudi.arrow import Table
from pyhudi.table.config import property_keys as key
from support.readers import read_without_spark
from support.recorded.recorded_version_6 import shown, unpack
from support.rules.health import errors

pytestmark = pytest.mark.interop

# Apache Hudi keeps the options of a table's writers nowhere.
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
