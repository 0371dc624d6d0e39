"""What completed since a write was planned and is in the archive by now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import CommitConflictError
from pyhudi.operations.meeting.conflicts import check_ownership
from pyhudi.operations.meeting.since import InstantsSincePlan
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.storage import Storage, open_storage
from pyhudi.table.table import Table
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import CommitMetadata, InstantInfo, RollbackMetadata
from pyhudi.timeline.timeline import Timeline
from support.attempts import IMPATIENT
from support.drawn.histories import TABLE, part, row
from support.drive import noted, plan, task, write

ROWS = part(row("a", ts=1, value=1))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    write(tmp_path, ROWS, table=TABLE)
    return open_storage(str(tmp_path))


@pytest.fixture
def planned(storage: Storage) -> WritePlan:
    made = plan(storage.path, ROWS.schema)
    return made.at(task(made, ROWS, 0).instant_time)


def archive(storage: Storage, planned: WritePlan, action: str, body: bytes | None) -> str:
    """Put an instant into the archive that completed after the write was planned."""
    time = f"{int(noted(planned)) + 5}"
    columns = {"instantTime": [time], "completionTime": [f"{int(time) + 1}"], "action": [action]}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({**columns, "metadata": pa.array([body], pa.binary())}), sink)
    storage.write(f"{planned.config.archive_folder}/{time}_{time}_0.parquet", bytes(sink.getvalue()))
    return time


def undone(instant_time: str) -> bytes:
    info = InstantInfo(commit_time=instant_time, action="commit")
    return encode(
        RollbackMetadata(
            start_rollback_time="1",
            time_taken_in_millis=1,
            total_files_deleted=0,
            commits_rollback=[instant_time],
            partition_metadata={},
            instants_rollback=[info],
        )
    )


def now(storage: Storage, planned: WritePlan) -> Timeline:
    return Table(storage, planned.config).timeline()


def test_a_rollback_that_was_archived_names_its_victim_still(storage: Storage, planned: WritePlan) -> None:
    """A late task may have put the instant back on the timeline."""
    archive(storage, planned, "rollback", undone("20260101000000000"))
    check_ownership(planned.transaction, now(storage, planned))

    archive(storage, planned, "rollback", undone(noted(planned)))

    with pytest.raises(CommitConflictError, match="rolled it back"):
        check_ownership(planned.transaction, now(storage, planned))


def ownership(storage: Storage, planned: WritePlan) -> None:
    check_ownership(planned.transaction, now(storage, planned))


def writes(storage: Storage, planned: WritePlan) -> None:
    since = InstantsSincePlan.find(planned.transaction, now(storage, planned))
    for one in since.writes:
        since.read(one)


@pytest.mark.parametrize("body", [None, b"", b"nonsense"], ids=["null", "empty", "damaged"])
@pytest.mark.parametrize(("action", "look"), [("rollback", ownership), ("commit", writes), ("replacecommit", writes)])
def test_what_the_archive_does_not_tell_is_a_conflict(
    storage: Storage,
    planned: WritePlan,
    action: str,
    look: Callable[[Storage, WritePlan], None],
    body: bytes | None,
) -> None:
    time = archive(storage, planned, action, body)

    with pytest.raises(CommitConflictError, match=rf"{action} {time} .*the archive does not tell"):
        look(storage, planned)


def test_what_was_in_the_archive_before_the_plan_is_not_new(storage: Storage, planned: WritePlan) -> None:
    archive(storage, planned, "commit", encode(CommitMetadata(operation_type="UPSERT")))

    assert len(InstantsSincePlan.find(planned.transaction, now(storage, planned)).writes) == 1
    later = plan(storage.path, ROWS.schema, settings=IMPATIENT)
    assert InstantsSincePlan.find(later.transaction, now(storage, later)).writes == ()
