"""A stream whose process dies, or whose store fails, at any step of a batch: its restart has each batch once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyhudi.operations.streams.batch import StreamSettings
from pyhudi.operations.write.micro_batch import BatchResult
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from support.attempts import IMPATIENT, rows
from support.drive import KEYED, rows_of, write
from support.faults.failures import Work, check_deaths, check_failures
from support.faults.faulty import Faults
from support.faults.steps import Share, steps_of
from support.places import Place
from support.rules.ends import assert_whole
from support.streams import STREAMED, DrivenQuery, pending, query
from support.write_settings import write_settings

FIRST = [rows(1, 2, value=1), rows(3, value=1)]
SECOND = [rows(1, 4, value=2, ts=2), rows(5, value=2)]
UPSERTED = [("k1", 2), ("k2", 1), ("k3", 1), ("k4", 2), ("k5", 2)]
# A batch that were there twice would show.
INSERTED = [("k1", 1), ("k1", 2), ("k2", 1), ("k3", 1), ("k4", 2), ("k5", 2)]
ONCE = StreamSettings(retries=0)
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
OPERATIONS = pytest.mark.parametrize(
    ("operation", "after"), [("upsert", UPSERTED), ("bulk_insert", INSERTED)], ids=["upsert", "bulk_insert"]
)


@dataclass(frozen=True)
class Batch(Work):
    """The second batch of a stream."""

    stream: StreamSettings = ONCE

    def query(self, path: Place, run_id: str = "r1") -> DrivenQuery:
        settings = write_settings(
            STREAMED, stream=self.stream, patience=IMPATIENT.patience, retry_s=5.0, reconcile=True
        )
        return DrivenQuery(path, self.table, run_id=run_id, settings=settings, operation=self.operation)

    def prepare(self, path: Place) -> None:
        self.query(path).run(0, *FIRST)

    def attempt(self, path: Place) -> None:
        self.query(path).run(1, *self.parts)

    def check(self, path: Place, left: object, name: str) -> None:
        """Restart the query, which replays the batch, and twice at that; then its next batch comes."""
        for run_id in ("r2", "r3"):
            self.query(path, run_id).run(1, *self.parts)
            assert self.content(path) == self.after, name
        self.query(path, "r3").run(2, rows(9, value=9))
        assert self.content(path) == sorted([*self.after, ("k9", 9)]), name
        timeline = open_table(open_storage(str(path))).timeline()
        ids = [timeline.files.read_commit(one).extra_metadata["pyhudi.write.id"] for one in timeline.writes]
        assert sorted(one for one in ids if ":" in one) == [f"stream:q1:{number}" for number in range(3)], name
        assert timeline.pending == (), name
        assert_whole(path, unique=False)


def batch(kind: str, operation: str, after: list[tuple[object, ...]]) -> Batch:
    return Batch(SECOND, FIRST, after, operation, table=replace(KEYED, table_type=kind))


@KINDS
@OPERATIONS
@steps_of("stream")
def test_a_stream_that_dies_at_any_step_has_each_batch_once(
    tmp_path: Path, faults: Faults, kind: str, operation: str, after: list[tuple[object, ...]], share: Share
) -> None:
    """What tasks, commit and abort leave at any moment, the restart takes for what it is."""
    check_deaths(faults, batch(kind, operation, after), tmp_path, share)


@pytest.mark.parametrize("effect", ["before", "after"])
@KINDS
@steps_of("stream", 2)
def test_a_stream_whose_store_fails_at_any_step_has_each_batch_once(
    tmp_path: Path, faults: Faults, kind: str, effect: str, share: Share
) -> None:
    """One of two steps, of each type of table others."""
    check_failures(faults, batch(kind, "bulk_insert", INSERTED), tmp_path, share, after=effect == "after")


@pytest.mark.parametrize("effect", ["before", "after"])
@KINDS
@steps_of("stream", 2)
def test_a_commit_that_is_repeated_after_any_failing_step_completes_once(
    tmp_path: Path, faults: Faults, kind: str, effect: str, share: Share
) -> None:
    again = replace(batch(kind, "bulk_insert", INSERTED), stream=StreamSettings(retries=2, retry_wait_s=0.001))
    check_failures(faults, again, tmp_path, share, after=effect == "after")


@steps_of("stream")
def test_a_restart_that_dies_at_any_step_leaves_the_batch_to_the_next(
    tmp_path: Path, faults: Faults, share: Share
) -> None:
    """It gives up what the run before left, and completes what that had decided."""

    @dataclass(frozen=True)
    class Replay(Batch):
        def prepare(self, path: Place) -> None:
            super().prepare(path)
            self.query(path, "r0").tasks(1, self.parts)

    work = batch("MERGE_ON_READ", "bulk_insert", INSERTED)
    check_deaths(faults, Replay(**{name: getattr(work, name) for name in work.__dataclass_fields__}), tmp_path, share)


@steps_of("stream")
def test_a_batch_that_is_planned_again_and_dies_at_any_step_is_there_once(
    tmp_path: Path, faults: Faults, share: Share
) -> None:
    """Another write added a column after its tasks; the restart takes what each plan of the commit left."""

    @dataclass(frozen=True)
    class Overtaken(Batch):
        messages: list[BatchResult] = field(default_factory=list)

        def prepare(self, path: Place) -> None:
            super().prepare(path)
            self.messages.extend(self.query(path).tasks(1, self.parts))
            other = rows(8, value=8)
            write(path, other.append_column("more", other["id"]), table=self.table, operation=self.operation)

        def attempt(self, path: Place) -> None:
            assert self.query(path).commit(self.messages).attempts == 2

    work = Overtaken(SECOND, FIRST, [*INSERTED, ("k8", 8)], "bulk_insert", table=KEYED)
    check_deaths(faults, work, tmp_path, share)


@pytest.mark.parametrize("after", [False, True])
def test_an_attempt_whose_begin_fails_is_given_up(tmp_path: Path, faults: Faults, after: bool) -> None:
    """The next one once waited half a minute for that begin, which was its own."""
    settings = write_settings(STREAMED, reconcile=True, stream=StreamSettings(retries=2, retry_wait_s=0.001))
    for at in range(70, 84, 2):
        path = tmp_path / f"{at}"
        stream = query(path, "COPY_ON_WRITE", settings=settings, operation="bulk_insert")
        stream.run(0, rows(1, value=1))
        messages = stream.tasks(1, [rows(2, value=2)])
        other = rows(3, value=3)
        write(path / "t", other.append_column("more", other["id"]), table=stream.table, operation="bulk_insert")
        faults.steps.clear()
        faults.at, faults.after = at, after
        stream.commit(messages)
        faults.at = 0

        assert rows_of(path / "t", "id") == [("k1",), ("k2",), ("k3",)], at
        assert not pending(path), at
