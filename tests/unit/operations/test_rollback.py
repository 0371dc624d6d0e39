"""Rollbacks that broke off in their last step, when their victim was gone already."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyhudi.operations.rollback.rollback import GIVEN_UP_S, finish_rollbacks
from pyhudi.operations.rollback.sweep import sweep
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config import load_config
from pyhudi.table.table import Table, open_table
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import decode, encode
from pyhudi.timeline.metadata.codec import InstantBody
from pyhudi.timeline.metadata.models import InstantInfo, RollbackMetadata, RollbackPlan, RollbackRequest
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.writers import owner
from pyhudi.timeline.writers.patience import Patience
from support.drawn.histories import TABLE, part, row
from support.drive import write

GONE, AT = "20200101000000000", "20200101000001000"
ROWS = part(row("a", ts=1, value=1))
PLAN = RollbackPlan(
    instant_to_rollback=InstantInfo(commit_time=GONE, action="commit"),
    RollbackRequests=[
        RollbackRequest(partition_path="p", files_to_be_deleted=["/t/p/x.parquet", "/t/p/y.parquet"]),
        RollbackRequest(partition_path="q", files_to_be_deleted=["/t/q/z.parquet"]),
    ],
)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    write(tmp_path, ROWS, table=TABLE)
    return open_storage(str(tmp_path))


def leave(storage: Storage, plan: bytes, *, started: bool = True) -> None:
    instants, named = open_table(storage).instants, Instant(AT, "rollback", State.REQUESTED)
    instants.request(named, plan)
    if started:
        instants.start(named)


def finish(storage: Storage, age_s: float) -> Instant:
    """Finish what is there, and return what has become of the rollback."""
    config = load_config(storage)
    finish_rollbacks(Table(storage, config), Table(storage, config).timeline(), age_s)
    [found] = [one for one in Table(storage, config).timeline().instants if one.action == "rollback"]
    return found


@pytest.mark.parametrize("started", [False, True])
def test_it_is_completed_with_what_its_plan_says(storage: Storage, started: bool) -> None:
    leave(storage, encode(PLAN), started=started)

    rollback = finish(storage, age_s=-1)

    path = open_table(storage).instants.path(rollback)
    told = decode(RollbackMetadata, InstantBody(storage.read(path), path))
    assert rollback.state == State.COMPLETED
    assert (told.start_rollback_time, told.commits_rollback, told.total_files_deleted) == (AT, [GONE], 3)
    assert {name: len(one.success_delete_files) for name, one in told.partition_metadata.items()} == {"p": 2, "q": 1}


def test_a_young_one_may_be_at_work(storage: Storage) -> None:
    leave(storage, encode(PLAN))

    assert finish(storage, age_s=GIVEN_UP_S).state == State.INFLIGHT


@pytest.mark.parametrize("completed", [False, True])
def test_one_whose_victim_is_there_is_left_alone(storage: Storage, completed: bool) -> None:
    """A pending victim is rolled back anew; how far a completed one was taken back nobody knows."""
    config = load_config(storage)
    victim = Table(storage, config).timeline().writes[0].requested_time if completed else GONE
    if not completed:
        Table(storage, config).instants.request(Instant(GONE, "commit", State.REQUESTED))
    leave(storage, encode(RollbackPlan(instant_to_rollback=InstantInfo(commit_time=victim, action="commit"))))

    assert finish(storage, age_s=-1).state == State.INFLIGHT


@pytest.mark.parametrize("plan", [b"", b"nonsense"])
def test_one_that_does_not_say_what_it_undoes_stops_nobody(
    storage: Storage, plan: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    leave(storage, plan)

    assert finish(storage, age_s=-1).state == State.INFLIGHT
    assert ("stays pending" in caplog.text) == bool(plan)


def test_two_who_finish_at_once_complete_it_once(storage: Storage) -> None:
    leave(storage, encode(PLAN))
    config = load_config(storage)
    before: Timeline = Table(storage, config).timeline()
    threads = [
        threading.Thread(target=finish_rollbacks, args=(Table(open_storage(storage.path), config), before, -1.0))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    names = [info.path for info in storage.list(before.files.folder) if AT in info.path]
    assert len([name for name in names if name.endswith(".rollback")]) == 1
    assert len(names) == 3


def test_an_empty_folder_is_removed_and_never_sealed(storage: Storage) -> None:
    """A writer that claims its instant makes the folder first: it would find its write given up."""
    folder = Path(storage.path) / owner.Claim(storage, AT).folder
    (folder / "aside").mkdir(parents=True)

    sweep(open_table(storage), Patience(heartbeat_interval_s=-1.0), own_time="")

    assert not folder.exists()
    assert not owner.Seal(storage, AT).is_set()


def test_scratch_of_an_archiving_is_swept_like_a_write_but_never_sealed(storage: Storage) -> None:
    storage.write(f"{owner.ROOT}/merging/1_1_1.parquet", b"half")

    sweep(open_table(storage), Patience(heartbeat_interval_s=-1.0), own_time="")

    assert "merging" not in storage.look(owner.ROOT).folders
    assert not owner.Seal(storage, "merging").is_set()
