"""Merge-on-read tables undone, kept and gone back to, by either side over what the other appended and compacted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.scenarios import BUCKETS
from interop.undone import agreed, call, names, newest
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.storage import open_storage
from support.attempts import PARTED, parted
from support.drive import write
from support.made.compacting import run
from support.recorded.hudi_options import SMALL
from support.rules.health import errors
from support.upkeep.undoing import assert_gone, content

pytestmark = pytest.mark.interop

TABLE = replace(PARTED, name=SMALL["hoodie.table.name"], table_type="MERGE_ON_READ")
OPTIONS = {
    **SMALL,
    BUCKETS: "2",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
}


@pytest.fixture
def java(apache: ApacheHudi) -> ApacheHudi:
    # A procedure takes its options from the session, and would build a metadata table that knows too little.
    apache.sql("set hoodie.metadata.enable=false")
    return apache


def test_each_undoes_and_cleans_what_the_other_appended_and_compacted(tmp_path: Path, java: ApacheHudi) -> None:
    ours, theirs, saved_table = (tmp_path / name for name in ("ours", "theirs", "kept"))
    write(ours, pa.concat_tables([parted("a", 1, 2, value=1), parted("b", 1, value=1)]), table=TABLE)
    first = content(ours)
    appended = write(ours, pa.concat_tables([parted("a", 2, 3, value=2), parted("b", 1, value=2)])).instant
    second = agreed(java, ours)
    shutil.copytree(ours, saved_table)
    java.write(ours, parted("a", 1, 2, value=3), OPTIONS)
    java_appended = newest(ours)
    assert agreed(java, ours) != second
    shutil.copytree(ours, theirs)

    # What Java appended goes by us, and what we appended by Java; markers there are none any more.
    rollback(open_storage(str(ours)), java_appended)
    assert agreed(java, ours) == second
    assert_gone(ours, java_appended)
    for victim in (java_appended, appended):
        call(java, theirs, "rollback_to_instant", f"instant_time => '{victim}'")
    assert agreed(java, theirs) == first
    assert not list(theirs.rglob("*.log.*"))
    assert errors(ours) == errors(theirs) == []

    # Java cleans beside our savepoint, which names log files, and either goes back to it over compactions.
    savepoint(open_storage(str(saved_table)), appended)
    files = {
        path.name
        for path in saved_table.rglob("*")
        if appended in path.name and path.parent != saved_table / ".hoodie/timeline"
    }
    for number in range(3):
        java.write(saved_table, parted("a", 1, 2, value=20 + number), {**OPTIONS, "hoodie.compact.inline": "true"})
    write(saved_table, parted("a", 3, value=30))
    run(saved_table)
    java.write(saved_table, parted("a", 3, value=31), OPTIONS)
    call(java, saved_table, "run_clean", "retain_commits => 1")
    assert files <= {path.name for path in saved_table.rglob("*")}
    assert errors(saved_table) == []
    again = tmp_path / "again"
    shutil.copytree(saved_table, again)
    restore(open_storage(str(saved_table)), appended)
    call(java, again, "rollback_to_savepoint", f"instant_time => '{appended}'")
    assert agreed(java, saved_table) == agreed(java, again) == second
    assert errors(saved_table) == []

    # Our clean of what Java compacted leaves Java what it needs.
    for number in range(2):
        java.write(again, parted("a", 1, value=40 + number), OPTIONS)
    run(again)
    assert names(again, "*.compaction.requested")
    before = agreed(java, again)
    clean(open_storage(str(again)), CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1))
    assert agreed(java, again) == before
    assert errors(again) == []
