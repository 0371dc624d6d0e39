from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pyhudi.operations.inspect.activity import COMMITTING, GIVEN_UP, PLANNED, WRITING, activity
from pyhudi.operations.services.compaction.compact import schedule_compaction
from pyhudi.operations.services.settings import CompactionSettings
from pyhudi.storage import open_storage
from pyhudi.timeline.writers.owner import Seal
from support.attempts import IMPATIENT, PARTED, parted
from support.drive import plan, task, write
from support.made.compacting import IMPATIENT as PATIENCE


def test_each_pending_instant_is_shown_with_its_owner_and_its_phase(tmp_path: Path) -> None:
    merge_on_read = replace(PARTED, table_type="MERGE_ON_READ")
    path = tmp_path / "t"
    storage = open_storage(str(path))
    write(path, parted("a", 1, value=1), table=merge_on_read)
    write(path, parted("a", 1, value=2))
    assert activity(storage).num_rows == 0
    planned = schedule_compaction(storage, CompactionSettings(), PATIENCE).instant
    at_work = plan(path, parted("a", 2, value=3).schema, settings=IMPATIENT)
    task(at_work, parted("a", 2, value=3), 0)

    first, second = activity(storage).to_pylist()
    assert (first["instant"], first["action"], first["phase"]) == (planned, "compaction", PLANNED)
    assert (first["host"], first["pid"], first["heartbeat_age_s"]) == (None, None, None)
    assert (second["instant"], second["action"], second["phase"]) == (at_work.instant_time, "deltacommit", WRITING)
    mine = at_work.transaction.owner
    assert (second["host"], second["pid"]) == (mine.host, mine.pid)
    assert 0 <= second["heartbeat_age_s"] < 600
    assert abs(second["started"].timestamp() - storage.now()) < 600

    Seal(storage, at_work.instant_time).set()
    assert activity(storage).column("phase").to_pylist() == [PLANNED, COMMITTING]
    Seal(storage, at_work.instant_time).set_for_good()
    assert activity(storage).column("phase").to_pylist() == [PLANNED, GIVEN_UP]
