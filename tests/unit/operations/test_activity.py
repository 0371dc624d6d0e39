from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyhudi.operations.inspect.activity import COMMITTING, GIVEN_UP, PLANNED, WRITING, activity
from pyhudi.operations.service_settings import CleanSettings, CompactionSettings
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import schedule_compaction
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.timeline.writers.owner import Seal
from support.attempts import IMPATIENT, PARTED, parted
from support.drive import noted, plan, task, write
from support.made.compacting import IMPATIENT as PATIENCE
from support.seams import patch_seam, read_seam


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
    assert (second["instant"], second["action"], second["phase"]) == (noted(at_work), "deltacommit", WRITING)
    mine = at_work.transaction.owner
    assert (second["host"], second["pid"]) == (mine.host, mine.pid)
    assert 0 <= second["heartbeat_age_s"] < 600
    assert abs(second["started"].timestamp() - storage.now()) < 600

    Seal(storage, noted(at_work)).set()
    assert activity(storage).column("phase").to_pylist() == [PLANNED, COMMITTING]
    Seal(storage, noted(at_work)).set_for_good()
    assert activity(storage).column("phase").to_pylist() == [PLANNED, GIVEN_UP]


SERVICES = {
    "clean": lambda storage, _: clean(storage, CleanSettings(commits=1)),
    "rollback": lambda storage, times: rollback(storage, times[-1]),
    "restore": lambda storage, times: restore(storage, times[-2]),
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_long_service_shows_its_process_until_it_ends(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deletions wait here until others see it."""
    path = tmp_path / "t"
    times = [write(path, parted("a", 1, value=n), table=PARTED, settings=IMPATIENT).instant for n in range(4)]
    storage = open_storage(str(path))
    patch_seam(monkeypatch, "seconds of work after which its owner is shown", 0.0)
    seen: list[dict[str, Any]] = []
    delete = read_seam("delete local files")

    def slow(self: Storage, *paths: str, **options: Any) -> None:
        if not seen and any(one.endswith(".parquet") for one in paths):
            waiting = threading.Event()
            while not seen:
                # The heartbeat comes first, and the process a moment later.
                seen[:] = [
                    one for one in activity(storage).to_pylist() if one["heartbeat_age_s"] is not None and one["pid"]
                ]
                waiting.wait(0.02)
        delete(self, *paths, **options)

    patch_seam(monkeypatch, "delete local files", slow)
    result = SERVICES[name](storage, times)

    (row,) = seen
    assert (row["instant"], row["action"], row["phase"]) == (result.instant, name, WRITING)
    assert row["pid"]
    assert row["host"]
    assert activity(storage).num_rows == 0
    assert not [*(path / ".hoodie/.heartbeat").iterdir()]
    assert not (path / ".hoodie/.pyhudi" / result.instant).exists()
