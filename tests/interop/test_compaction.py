"""Compactions that broke off: of pyhudi's taken up by Apache Hudi, and of Apache Hudi's by pyhudi."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interop.apache_hudi import ApacheHudi
from pyhudi.errors import ConcurrentWriteError
from pyhudi.operations.services.compaction.compact import compact
from pyhudi.storage import open_storage
from pyhudi.timeline.writers.patience import Patience
from support.faults.faulty import Faults, FaultyStorage, Killed
from support.made.compacting import ALL, append, in_bases, means, merged, new_table, run, schedule, timeline_of
from support.recorded.fixture_tables import unpack
from support.recorded.recorded_merges import in_order, seen

pytestmark = pytest.mark.interop

META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "p", "id", "value")
# The procedure takes the key's name from options alone.
OPTIONS = "hoodie.metadata.enable=false,hoodie.datasource.write.recordkey.field=id"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    new_table(path, *((f"k{n}", "a", 10, n) for n in range(8)))
    append(path, *((f"k{n}", "a", 20, 100 + n) for n in range(0, 8, 2)), gone=[("k1", "a", 30)])
    append(path, ("k0", "a", 15, 200), ("new", "a", 1, 201))
    return path


def undone(table: Path) -> list[tuple[str, str]]:
    """Return what the rollbacks of the table undid."""
    timeline = timeline_of(table)
    plans = [timeline.files.read_rollback_plan(one) for one in timeline.completed if one.action == "rollback"]
    named = [plan.instant_to_rollback for plan in plans if plan is not None]
    return [(one.commit_time, one.action) for one in named if one is not None]


def test_apache_hudi_takes_up_what_we_left_in_the_middle(apache: ApacheHudi, table: Path) -> None:
    """One of two base files is published, and named by a marker, when the process dies."""
    before, plan = merged(table, *META), schedule(table)
    count = Faults()
    storage = FaultyStorage(open_storage(str(shutil.copytree(table, table.with_name("count")))), count)
    compact(storage, ALL, means(storage))  # type: ignore[arg-type]
    faults = Faults(at=count.steps.index("publish") + 4, kill=True)
    storage = FaultyStorage(open_storage(str(table)), faults)
    with pytest.raises(Killed):
        compact(storage, ALL, means(storage))  # type: ignore[arg-type]
    (torn,) = [one.name for one in table.rglob(f"*_{plan.instant}.parquet") if ".hoodie" not in one.parts]

    apache.sql("set hoodie.metadata.enable=false")
    apache.sql(f"call run_compaction(op => 'run', path => '{table}', options => '{OPTIONS}')")

    assert [one.requested_time for one in timeline_of(table).writes if one.action == "commit"] == [plan.instant]
    assert undone(table) == [(plan.instant, "compaction")]
    assert not list(table.rglob(torn))
    assert merged(table, *META) == before
    assert in_bases(table) == merged(table)
    rows = apache.read(table).to_pylist()
    assert sorted((row["p"], row["id"], row["value"]) for row in rows) == merged(table)


def test_we_take_up_what_apache_hudi_left_in_the_middle(apache: ApacheHudi, tmp_path: Path) -> None:
    """Killed when its first base file appeared; nobody can tell whether it lives, so that the user has to say so."""
    table = Path(unpack("v9_killed_compaction", tmp_path))
    before = seen(str(table))
    (pending,) = [one for one in timeline_of(table).pending if one.action == "compaction"]
    (torn,) = [one for one in table.rglob(f"*_{pending.requested_time}.parquet") if ".hoodie" not in one.parts]

    with pytest.raises(ConcurrentWriteError, match="EAGER"):
        run(table, patience=Patience())
    done = run(table, patience=Patience(eager=True))

    assert done.instant == pending.requested_time
    assert undone(table) == [(pending.requested_time, "compaction")]
    assert not torn.exists()
    assert seen(str(table)) == before == seen(str(table), "read_optimized")
    assert in_order([{name: row[name] for name in before[0]} for row in apache.read(table).to_pylist()]) == before
