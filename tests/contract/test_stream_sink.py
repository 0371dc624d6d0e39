"""A streaming query's batches, by the calls that Spark makes: each is in the table once, whatever dies where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from pyhudi.errors import CommitConflictError, OptionConflictError, StorageError
from pyhudi.operations.planning.micro_batch import plan_batch
from pyhudi.operations.planning.request import WriteRequest
from pyhudi.operations.service_settings import ArchiveSettings, CleanSettings, Upkeep
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.streams.batch import LOST, StreamBatch, StreamSettings
from pyhudi.operations.streams.checkpoints import Checkpoints, newest_checkpoints
from pyhudi.operations.write.micro_batch import BatchResult, abort_batch, abort_numbered, commit_batch, no_rows
from pyhudi.operations.write.run import LocalRun
from pyhudi.operations.write_ids import greatest_batch, without_old_batches
from pyhudi.storage import open_storage
from pyhudi.table.seen_table import SeenTable
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.codec import SINK_CHECKPOINT, StreamTexts
from pyhudi.timeline.writers.owner import Claim
from support.attempts import SCHEMA, rows
from support.drive import KEYED, write
from support.made.cleaning import archive
from support.made.rescales import leave_rescale
from support.places import files_below
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.streams import STREAMED, DrivenQuery, instants, opened, pending, query, sent, values
from support.write_settings import write_settings

KEPT_FEW = write_settings(
    STREAMED,
    hand_over=False,
    upkeep=Upkeep(
        clean=CleanSettings(commits=1),
        archive=ArchiveSettings(min_commits=3, max_commits=4, delta_commits=None),
    ),
)
BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def checkpoints(path: Path) -> Checkpoints:
    return newest_checkpoints(SeenTable.now(opened(path)))


@BOTH
def test_a_batch_is_one_instant(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)

    stream.run(0, rows(1, 2, value=1), rows(3, value=1))
    stream.run(1, rows(1, value=2, ts=2), rows(4, value=2))

    assert len(instants(tmp_path)) == 2
    assert values(tmp_path) == [("k1", 2), ("k2", 1), ("k3", 1), ("k4", 2)]
    assert_whole(tmp_path / "t")


@BOTH
def test_tasks_leave_all_rows_to_the_commit(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, 2, value=1))

    found = stream.tasks(1, [rows(1, 2, value=2, ts=2), rows(3, value=2)])

    assert [(one.result.written, one.result.spill is None) for one in found] == [((), False)] * 2


@BOTH
def test_a_replay_after_a_lost_commit_log_entry_takes_no_rows(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))
    result = stream.run(1, rows(1, value=2, ts=2))
    before = files_below(tmp_path / "t")

    messages = stream.restarted().tasks(1, [rows(1, value=2, ts=2)])

    assert [one.result.rows for one in messages] == [0]
    assert commit_batch(sent(messages)).instant == result.instant
    assert files_below(tmp_path / "t") == before


@BOTH
def test_an_abort_with_all_messages_does_nothing_to_a_complete_batch(tmp_path: Path, kind: str) -> None:
    """A commit that fails after its effect: a new process calls abort, then the restart replays the batch."""
    stream = query(tmp_path, kind)
    messages = stream.tasks(0, [rows(1, value=1), rows(2, value=1)])
    result = commit_batch(sent(messages))
    before = files_below(tmp_path / "t")

    for _ in range(2):
        abort_batch(sent(messages))

    notes = ".hoodie/.pyhudi/sealed/"
    assert [name for name in files_below(tmp_path / "t") if name not in before and not name.startswith(notes)] == []
    assert stream.restarted().run(0, rows(1, value=1), rows(2, value=1)).instant == result.instant
    assert values(tmp_path) == [("k1", 1), ("k2", 1)]


@BOTH
def test_a_commit_that_is_called_twice_completes_once(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    messages = stream.tasks(0, [rows(1, value=1)])

    assert commit_batch(sent(messages)).instant == commit_batch(sent(messages)).instant
    assert len(instants(tmp_path)) == 1


@BOTH
def test_an_abort_undoes_a_batch_that_is_not_complete(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))
    messages = stream.tasks(1, [rows(1, value=2, ts=2)])

    for _ in range(2):
        abort_batch(sent(messages))

    assert pending(tmp_path) == []
    assert values(tmp_path) == [("k1", 1)]
    # The tasks of another attempt of the run come too late.
    with pytest.raises(CommitConflictError):
        commit_batch(sent(messages))
    abort_batch(sent(messages))
    stream.restarted().run(1, rows(1, value=2, ts=2))
    assert values(tmp_path) == [("k1", 2)]
    assert_whole(tmp_path / "t")


@BOTH
def test_an_abort_without_messages_finds_the_batch_by_its_query(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))
    stream.tasks(1, [rows(1, value=2, ts=2)])
    other = replace(stream, query_id="q2", identifier="second")
    others = other.tasks(1, [rows(2, value=2)])

    for _ in range(2):
        abort_numbered(open_storage(str(tmp_path / "t")), "q1", 1)
    abort_numbered(open_storage(str(tmp_path / "t")), "q1", 0)

    assert len(pending(tmp_path)) == 1
    assert values(tmp_path) == [("k1", 1)]
    abort_batch(sent(others))
    assert_whole(tmp_path / "t")


@BOTH
def test_what_a_dead_run_left_is_given_up_at_once(tmp_path: Path, kind: str) -> None:
    """Its process lives, as that of a restart in one driver does, and its heartbeat is fresh."""
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))
    (left,) = stream.tasks(1, [rows(1, 7, value=8, ts=8)])
    owner = Claim(opened(tmp_path).storage, left.result.instant_time).owner()
    assert owner is not None
    assert (owner.query_id, owner.batch_id, owner.run_id) == ("q1", "1", "r1")

    again = stream.restarted()
    messages = again.tasks(1, [rows(1, value=2, ts=2)])
    assert left.result.instant_time not in pending(tmp_path)
    # The zombie finds itself given up.
    with pytest.raises(CommitConflictError):
        commit_batch(sent([left]))
    commit_batch(sent(messages))

    assert values(tmp_path) == [("k1", 2)]
    assert pending(tmp_path) == []
    # After that it finds its batch complete.
    assert commit_batch(sent([left])).instant == instants(tmp_path)[-1]
    assert values(tmp_path) == [("k1", 2)]
    assert_whole(tmp_path / "t")


@BOTH
def test_a_single_writer_waits_for_no_run_of_its_own_query(tmp_path: Path, kind: str) -> None:
    alone = replace(STREAMED, patience=replace(STREAMED.patience, single_writer=True))
    stream = query(tmp_path, kind, settings=alone)
    stream.run(0, rows(1, value=1))
    stream.tasks(1, [rows(1, value=8, ts=8)])

    stream.restarted().run(1, rows(1, value=2, ts=2))

    assert values(tmp_path) == [("k1", 2)]


@BOTH
def test_an_older_batch_of_the_same_run_is_given_up(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    (left,) = stream.tasks(0, [rows(9, value=9)])

    stream.run(1, rows(1, value=1))

    assert pending(tmp_path) == []
    assert values(tmp_path) == [("k1", 1)]
    assert left.result.instant_time not in instants(tmp_path)


def decided(stream: DrivenQuery) -> list[BatchResult]:
    """Return the messages of a second batch whose commit died between its decision and the completed file."""
    stream.run(0, rows(1, value=1))
    messages = stream.tasks(1, [rows(1, value=2, ts=2)])

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch_seam(patch, "carry out a decision", die)
        commit_batch(sent(messages))
    return messages


@BOTH
def test_a_decided_batch_is_completed_by_its_replay(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    messages = decided(stream)
    assert len(pending(tmp_path)) == 1

    (replayed,) = stream.restarted().tasks(1, [rows(1, value=2, ts=2)])

    assert replayed.plan.replays == messages[0].result.instant_time
    assert replayed.result.rows == 0
    assert pending(tmp_path) == []
    assert values(tmp_path) == [("k1", 2)]


@BOTH
def test_an_abort_settles_decisions_first(tmp_path: Path, kind: str) -> None:
    messages = decided(query(tmp_path, kind))
    abort_batch(sent(messages))

    assert pending(tmp_path) == []
    assert values(tmp_path) == [("k1", 2)]


@BOTH
def test_a_run_that_completes_the_batch_meanwhile_is_the_result(tmp_path: Path, kind: str) -> None:
    """Asked inside the decision: both runs have all their rows when either commits."""
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))
    first = stream.tasks(1, [rows(1, value=2, ts=2)])
    second = stream.restarted().tasks(2, [rows(5, value=5)])
    result = commit_batch(sent(second))

    with pytest.raises(OptionConflictError, match="has its batch 2 already"):
        commit_batch(sent(first))

    assert instants(tmp_path)[-1] == result.instant
    assert values(tmp_path) == [("k1", 1), ("k5", 5)]


@BOTH
def test_a_batch_that_meets_other_writers_is_merged_again(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(*range(8), value=1))
    messages = stream.tasks(1, [rows(1, value=2, ts=2), rows(2, value=2, ts=2)])
    write(tmp_path / "t", rows(*range(8), value=3), table=stream.table)

    done = commit_batch(sent(messages))

    assert done.attempts == (2 if kind == "COPY_ON_WRITE" else done.attempts)
    assert values(tmp_path) == [("k0", 3), ("k1", 2), ("k2", 2), *((f"k{key}", 3) for key in range(3, 8))]
    assert checkpoints(tmp_path).queries["q1"].batch_id == 1
    assert_whole(tmp_path / "t")


@BOTH
@pytest.mark.parametrize("held", [(), ("",)], ids=["whole table", "its only partition"])
def test_a_batch_begins_beside_a_rescale_and_its_commit_waits(
    tmp_path: Path, kind: str, held: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = query(tmp_path, kind, settings=write_settings(STREAMED, wait_s=0.0))
    stream.run(0, rows(*range(8), value=1))
    left = leave_rescale(tmp_path / "t", *held, inflight=True)

    messages = stream.tasks(1, [rows(1, value=2, ts=2), rows(9, value=2, ts=2)])

    def finish(*_: object) -> None:
        rollback(open_storage(str(tmp_path / "t")), left.requested_time)

    patch_seam(monkeypatch, "wait until a rescale is over", finish)
    commit_batch(sent(messages))

    assert values(tmp_path) == [("k0", 1), ("k1", 2), *((f"k{key}", 1) for key in range(2, 8)), ("k9", 2)]
    assert_whole(tmp_path / "t")


@BOTH
def test_a_store_that_fails_for_a_while_is_asked_again(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(STREAMED, stream=StreamSettings(retries=3, retry_wait_s=0.001))
    stream = query(tmp_path, kind, settings=settings)
    stream.run(0, rows(1, value=1))
    messages = stream.tasks(1, [rows(1, value=2, ts=2)])
    left = [3]

    def fail(original: object) -> object:
        def failing(*args: object, **kwargs: object) -> object:
            if left[0]:
                left[0] -= 1
                raise StorageError("The store is away.", "Wait.")
            return original(*args, **kwargs)  # type: ignore[operator]

        return failing

    patch_seam(monkeypatch, "table that a commit merges with", fail(read_seam("table that a commit merges with")))
    commit_batch(sent(messages))

    assert values(tmp_path) == [("k1", 2)]
    assert left == [0]
    assert_whole(tmp_path / "t")


@BOTH
def test_batches_without_rows(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))

    assert stream.run(1, SCHEMA.empty_table(), SCHEMA.empty_table()).instant == ""
    assert len(instants(tmp_path)) == 1

    leaves = replace(stream, settings=write_settings(STREAMED, allow_empty_commit=True))
    done = leaves.run(2, SCHEMA.empty_table())
    assert leaves.restarted().run(2, SCHEMA.empty_table()).instant == done.instant != ""
    assert len(instants(tmp_path)) == 2


@BOTH
def test_batches_without_rows_empty_no_table_in_another_mode_than_complete(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind, operation="insert_overwrite_table")
    stream.run(0, rows(1, value=1))

    assert stream.run(1, SCHEMA.empty_table()).instant == ""
    leaves = replace(stream, settings=write_settings(STREAMED, allow_empty_commit=True))
    assert leaves.run(2, SCHEMA.empty_table()).instant != ""
    assert values(tmp_path) == [("k1", 1)]


@BOTH
def test_mode_complete_overwrites_with_nothing_once(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind, overwrite=True)
    stream.run(0, rows(1, 2, value=1))
    stream.run(1, rows(2, value=2))
    assert values(tmp_path) == [("k2", 2)]

    done = stream.run(2, SCHEMA.empty_table())
    assert values(tmp_path) == []
    assert stream.restarted().run(2, SCHEMA.empty_table()).instant == done.instant
    stream.run(3, rows(3, value=3))
    assert values(tmp_path) == [("k3", 3)]
    # Without a task, whose query nothing tells, and with it.
    commit_batch([no_rows(stream.planned(), replace(stream.batch(4), query_id=""))])
    assert values(tmp_path) == []
    stream.run(5, rows(5, value=5))
    commit_batch([no_rows(stream.planned(), stream.batch(6))])
    assert values(tmp_path) == []
    assert_whole(tmp_path / "t")


@BOTH
def test_a_batch_that_is_older_than_the_table_is_refused(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    for number in range(3):
        stream.run(number, rows(number, value=number))
    before = files_below(tmp_path / "t")

    with pytest.raises(OptionConflictError, match="checkpoint folder is older than the table, or another run"):
        stream.restarted().tasks(1, [rows(1, value=1)])

    assert files_below(tmp_path / "t") == before


@BOTH
@pytest.mark.parametrize("archived", [False, True], ids=["active", "archived"])
def test_another_batch_of_the_newest_number_is_refused(tmp_path: Path, kind: str, archived: bool) -> None:
    """From a checkpoint folder that is a copy from before the newest batch, Spark makes another of its number."""
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))
    result = commit_batch(stream.tasks(1, [rows(1, value=2, ts=2)]), 0, "as it was")
    if archived:
        for number in range(3):
            write(tmp_path / "t", rows(9, value=number, ts=number))
        archive(tmp_path / "t", 3)
        assert result.instant not in instants(tmp_path)
    again = stream.restarted()

    assert commit_batch(again.tasks(1, [rows(1, value=2, ts=2)], offsets="as it was")).instant == result.instant
    assert commit_batch(again.tasks(1, [rows(1, value=2, ts=2)])).instant == result.instant, "unknown"
    with pytest.raises(OptionConflictError, match=rf"another batch of that number as {result.instant}"):
        again.tasks(1, [rows(1, 5, value=3, ts=3)], offsets="otherwise")
    with pytest.raises(OptionConflictError, match=rf"another batch of that number as {result.instant}"):
        commit_batch(again.tasks(1, [rows(value=1)]), 0, "otherwise")
    assert pending(tmp_path) == []


@BOTH
def test_two_queries_need_two_names(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))
    other = replace(stream, query_id="q2")

    with pytest.raises(OptionConflictError, match=r"streaming\.checkpoint\.identifier"):
        other.tasks(0, [rows(2, value=2)])

    other = replace(other, identifier="second")
    other.run(0, rows(2, value=2))
    stream.run(1, rows(3, value=3))
    assert values(tmp_path) == [("k1", 1), ("k2", 2), ("k3", 3)]
    assert apache_map(tmp_path) == {"default_single_writer": "1", "second": "0"}


def apache_map(path: Path) -> dict[str, str]:
    return json.loads(extra_of_newest(path)[SINK_CHECKPOINT])


@BOTH
def test_every_write_carries_the_checkpoints_on(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))

    for value in range(3):
        write(tmp_path / "t", rows(2, value=value, ts=value), table=stream.table)
        assert apache_map(tmp_path) == {"default_single_writer": "0"}
    write(tmp_path / "t", rows(2, value=9), operation="bulk_insert", table=stream.table)
    assert apache_map(tmp_path) == {"default_single_writer": "0"}


@BOTH
def test_a_batch_that_was_rolled_back_is_written_again(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, value=1))
    result = stream.run(1, rows(1, value=2, ts=2))
    rollback(opened(tmp_path).storage, result.instant)
    assert values(tmp_path) == [("k1", 1)]

    assert stream.restarted().run(1, rows(1, value=2, ts=2)).instant > result.instant
    assert values(tmp_path) == [("k1", 2)]


@BOTH
def test_a_compaction_and_an_archiving_keep_the_checkpoints(tmp_path: Path, kind: str) -> None:
    """What Apache Hudi looks for is in an active write, and what pyhudi looks for, too."""
    stream = query(tmp_path, kind)
    for number in range(4):
        stream.run(number, rows(1, number, value=number, ts=number))
    for value in range(9):
        write(tmp_path / "t", rows(2, value=value, ts=value), table=stream.table, settings=KEPT_FEW)

    assert len(instants(tmp_path)) < 8
    assert apache_map(tmp_path) == {"default_single_writer": "3"}
    assert stream.restarted().run(3, rows(1, 3, value=3, ts=3)).instant not in {"", *instants(tmp_path)}
    stream.restarted().run(4, rows(4, value=4))
    with pytest.raises(OptionConflictError):
        stream.run(2, rows(2, value=2, ts=2))


@BOTH
def test_of_many_queries_each_is_found(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest write names some of them, and the others are found by the ids of active and archived writes."""
    named = 12
    patch_seam(monkeypatch, "most queries that a write names", named)
    queries = [query(tmp_path, kind, query_id=str(UUID(int=at)), identifier=f"i{at}") for at in range(named + 6)]
    for at, item in enumerate(queries):
        item.run(0, rows(at, value=0))
        item.run(1, rows(at, value=1, ts=1))

    assert len(checkpoints(tmp_path).queries) == named
    assert list((tmp_path / "t" / ".hoodie" / "timeline" / "history").glob("*.parquet"))
    done = queries[0].restarted().tasks(1, [rows(0, value=1, ts=1)])
    assert [one.result.rows for one in done] == [0]
    with pytest.raises(OptionConflictError, match="older than the table"):
        queries[1].restarted().tasks(0, [rows(1, value=0)])


def test_the_note_of_ids_has_the_greatest_batch_of_a_query_alone(tmp_path: Path) -> None:
    first, second = str(UUID(int=1)), str(UUID(int=2))
    batches = {f"stream:{query_id}:{number}": str(number) for query_id in (first, second) for number in range(10_000)}

    newest_ids = without_old_batches({"mine": "1", **batches})

    assert newest_ids == {"mine": "1", f"stream:{first}:9999": "9999", f"stream:{second}:9999": "9999"}
    assert greatest_batch(newest_ids, second) == (9999, "9999")
    assert len(json.dumps(newest_ids)) < 2 * 1024


# (query id, batch id) beside what Apache Hudi last wrote under the identifier.
@pytest.mark.parametrize(
    ("theirs", "batch", "outcome"),
    [(7, 7, "skip"), (7, 8, "write"), (7, 12, "write"), (7, 6, "refuse"), (0, 0, "refuse"), (0, 1, "write")],
)
def test_a_stream_of_apache_hudi_is_taken_over(tmp_path: Path, theirs: int, batch: int, outcome: str) -> None:
    written = StreamTexts(sinks=json.dumps({"default_single_writer": str(theirs)}))
    stream_checkpoints = Checkpoints().followed_by(Instant("20260101000000000", "commit", State.COMPLETED), written)
    mine = StreamBatch("q1", batch)

    if outcome == "refuse":
        with pytest.raises(OptionConflictError, match=r"streaming\.checkpoint\.identifier"):
            stream_checkpoints.instant_of("t", mine, None)
    else:
        assert (stream_checkpoints.instant_of("t", mine, None) is not None) == (outcome == "skip")


def test_apache_hudi_takes_over_and_gives_back(tmp_path: Path) -> None:
    """The newest under the identifier is theirs again, so that the query's own last batch is older than the table."""
    ours = Checkpoints().with_batch(StreamBatch("q1", 4), "20260101000000000")
    theirs = StreamTexts(sinks=json.dumps({"default_single_writer": "6"}))
    stream_checkpoints = ours.followed_by(Instant("20260101000000001", "commit", State.COMPLETED), theirs)

    for batch in (4, 5):
        with pytest.raises(OptionConflictError):
            stream_checkpoints.instant_of("t", StreamBatch("q1", batch), None)
    assert stream_checkpoints.instant_of("t", StreamBatch("q1", 6), None) == "20260101000000001"
    assert stream_checkpoints.instant_of("t", StreamBatch("q1", 7), None) is None
    assert json.loads(stream_checkpoints.texts()[SINK_CHECKPOINT]) == {"default_single_writer": "6"}


def test_a_write_beside_an_older_batch_leaves_its_identifier_out(tmp_path: Path) -> None:
    """Apache Hudi believes the write with the greatest requested time, which would name the batch before."""
    stream = query(tmp_path, "MERGE_ON_READ")
    stream.run(0, rows(1, value=1))
    messages = stream.tasks(1, [rows(1, value=2, ts=2)])
    write(tmp_path / "t", rows(9, value=9), table=stream.table)

    assert SINK_CHECKPOINT not in extra_of_newest(tmp_path)
    assert checkpoints(tmp_path).identifiers["default_single_writer"].batch_id == 0
    commit_batch(sent(messages))
    write(tmp_path / "t", rows(9, value=10, ts=2), table=stream.table)
    assert apache_map(tmp_path) == {"default_single_writer": "1"}


def test_a_first_batch_makes_the_table(tmp_path: Path) -> None:
    stream = query(tmp_path, "COPY_ON_WRITE")
    messages = stream.tasks(0, [rows(1, value=1)])
    abort_batch(sent(messages))
    stream.restarted().run(0, rows(1, value=1))

    assert values(tmp_path) == [("k1", 1)]


def test_lost_rows_are_stated_by_the_next_commit(tmp_path: Path) -> None:
    stream = query(tmp_path, "COPY_ON_WRITE")
    messages = stream.tasks(0, [rows(1, value=1)])
    commit_batch(sent(messages), 17)

    assert extra_of_newest(tmp_path)[LOST] == "17"


def test_lost_rows_are_stated_by_the_next_commit_of_a_table_that_streams(tmp_path: Path) -> None:
    batch = StreamBatch("q1", 0, "r1", lost=17)
    settings = write_settings(STREAMED, batch=batch, hand_over=False)
    request = WriteRequest(
        str(tmp_path / "t"), operation=None, overwrite=False, schema=SCHEMA, table=KEYED, write=settings
    )
    LocalRun(plan_batch(request)).write([rows(1, value=1).to_batches()])

    assert extra_of_newest(tmp_path)[LOST] == "17"


def extra_of_newest(path: Path) -> Mapping[str, str]:
    timeline = opened(path).timeline()
    return timeline.files.read_commit(timeline.writes[-1]).extra_metadata
