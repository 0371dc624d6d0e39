from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.layout import LayoutV2
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.watermark import Seen, Watermark
from support.made.timelines import instants_in, timeline_in, timeline_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "timeline"
LAYOUT = LayoutV2()
R, I, C = State  # noqa: E741


@pytest.fixture
def storage() -> Iterator[Storage]:
    opened = open_storage(f"memory://{uuid.uuid4().hex}")
    yield opened
    opened.delete_folder("")


def t(n: int) -> str:
    """Return the n-th millisecond of a day."""
    return f"20260101000000{n:03d}"


def load(storage: Storage, *names: str) -> Timeline:
    for name in names:
        storage.write(f".hoodie/timeline/{name}", b"")
    return timeline_in(storage)


def past_of(timeline: Timeline, mark: Watermark) -> Timeline:
    return timeline.as_of(seen_on(timeline, mark))


def seen_on(timeline: Timeline, mark: Watermark) -> Seen:
    """Return what a moment saw, by the active timeline alone."""
    seen = mark.find_completed(timeline.completed)
    assert seen is not None
    return seen


def names(instants: tuple[Instant, ...]) -> list[str]:
    return [LAYOUT.format(one) for one in instants]


def test_a_table_without_timeline_has_no_instants(storage: Storage) -> None:
    timeline = timeline_in(storage)

    assert timeline.instants == ()
    assert timeline.greatest_time() is None
    assert timeline.watermark() == Watermark("")
    assert not timeline.is_committed(t(1))
    assert timeline.find(t(1)) is None


def test_of_each_instant_the_newest_state_counts(storage: Storage) -> None:
    timeline = load(
        storage,
        f"{t(1)}.commit.requested",
        f"{t(1)}.inflight",
        f"{t(1)}_{t(2)}.commit",
        f"{t(3)}.commit.requested",
        f"{t(3)}.inflight",
        f"{t(4)}.commit.requested",
    )

    assert names(timeline.instants) == [f"{t(1)}_{t(2)}.commit", f"{t(3)}.inflight", f"{t(4)}.commit.requested"]
    assert names(timeline.completed) == [f"{t(1)}_{t(2)}.commit"]
    assert names(timeline.pending) == [f"{t(3)}.inflight", f"{t(4)}.commit.requested"]


@pytest.mark.parametrize(
    ("service", "completed"),
    [("compaction", "commit"), ("logcompaction", "deltacommit"), ("clustering", "replacecommit")],
)
def test_a_table_service_is_one_instant_with_the_write_it_completes_as(
    storage: Storage, service: str, completed: str
) -> None:
    pending = load(storage, f"{t(1)}.{service}.requested", f"{t(1)}.{service}.inflight")

    assert pending.instants == (Instant(t(1), service, I),)
    done = load(storage, f"{t(1)}_{t(2)}.{completed}")
    assert done.instants == (Instant(t(1), completed, C, t(2)),)


def test_a_savepoint_is_an_instant_of_its_own_beside_its_commit(storage: Storage) -> None:
    timeline = load(storage, f"{t(1)}_{t(2)}.commit", f"{t(1)}.savepoint.inflight")

    assert timeline.instants == (Instant(t(1), "commit", C, t(2)), Instant(t(1), "savepoint", I))
    assert timeline.find(t(1)) == Instant(t(1), "commit", C, t(2))


def test_foreign_files_and_folders_are_passed_over(storage: Storage) -> None:
    timeline = load(storage, f"{t(1)}.commit.requested", "notes.txt", f"{t(2)}_{t(3)}.commit.tmp", "history/_version_")

    assert names(timeline.instants) == [f"{t(1)}.commit.requested"]


def test_of_two_completed_files_of_one_instant_the_earlier_counts(storage: Storage) -> None:
    timeline = load(storage, f"{t(1)}_{t(5)}.commit", f"{t(1)}_{t(4)}.commit")

    assert timeline.instants == (Instant(t(1), "commit", C, t(4)),)


def test_one_load_is_one_listing(storage: Storage) -> None:
    calls: list[str] = []

    class Counting:
        path = "x"

        def look(self, folder: str) -> object:
            calls.append(folder)
            return storage.look(folder)

    timeline_in(Counting())  # type: ignore[arg-type]

    assert calls == [".hoodie/timeline"]


def test_the_timeline_of_apache_hudi_tells_its_story() -> None:
    storage = open_storage(str(FIXTURES))
    timeline = timeline_in(storage, LayoutV2("v9"))

    assert [(one.action, one.state.name) for one in timeline.instants] == [
        ("commit", "COMPLETED"),
        ("commit", "COMPLETED"),
        ("savepoint", "COMPLETED"),
        ("replacecommit", "COMPLETED"),
        ("rollback", "COMPLETED"),
        ("commit", "COMPLETED"),
        ("commit", "COMPLETED"),
        ("clean", "COMPLETED"),
    ]
    assert [one.action for one in timeline.writes] == ["commit", "commit", "replacecommit", "commit", "commit"]
    assert timeline.greatest_time() == "20261121034830124"
    # The rolled-back commit lies after the first write and is not on the timeline.
    assert not timeline.is_committed("20261121034814980")


def test_the_greatest_time_is_over_requested_and_completion_times_of_17_digits(storage: Storage) -> None:
    assert load(storage, f"{t(1)}_{t(9)}.commit", f"{t(3)}.inflight").greatest_time() == t(9)
    assert load(storage, f"{t(10)}.commit.requested").greatest_time() == t(10)
    assert load(storage, "29990101000000.commit.requested", f"{t(99)}9.clean.requested").greatest_time() == t(10)


def test_what_is_older_than_the_first_write_counts_as_archived(storage: Storage) -> None:
    timeline = load(
        storage, f"{t(2)}_{t(3)}.clean", f"{t(4)}_{t(5)}.commit", f"{t(6)}.inflight", f"{t(8)}_{t(9)}.commit"
    )

    assert [n for n in range(1, 12) if timeline.is_committed(t(n))] == [1, 2, 3, 4, 8]


@pytest.mark.parametrize(
    "pending", ["inflight", "compaction.requested", "clustering.inflight", "deltacommit.requested"]
)
def test_a_pending_write_may_be_the_first_one(storage: Storage, pending: str) -> None:
    timeline = load(storage, f"{t(4)}.{pending}", f"{t(6)}_{t(7)}.commit")

    assert timeline.is_committed(t(3))
    assert not timeline.is_committed(t(4))
    assert not timeline.is_committed(t(5))
    assert timeline.is_committed(t(6))


def test_a_completed_clean_commits_no_rows(storage: Storage) -> None:
    timeline = load(storage, f"{t(1)}_{t(2)}.commit", f"{t(4)}_{t(5)}.clean")

    assert not timeline.is_committed(t(4))


def test_a_watermark_separates_what_was_completed_from_what_completed_later(storage: Storage) -> None:
    before = load(storage, f"{t(1)}_{t(2)}.commit", f"{t(3)}.inflight", f"{t(4)}_{t(6)}.commit")
    mark = before.watermark()
    assert mark == Watermark(t(6), t(1), frozenset({f"{t(1)}.commit", f"{t(4)}.commit"}))

    # One requested earlier and one requested later, completing in the other order, and one still at work.
    after = load(storage, f"{t(3)}_{t(9)}.commit", f"{t(7)}_{t(8)}.replacecommit", f"{t(10)}.inflight")

    since = after.completed_since(seen_on(after, mark))
    assert names(since) == [f"{t(7)}_{t(8)}.replacecommit", f"{t(3)}_{t(9)}.commit"]
    assert after.completed_since(seen_on(after, after.watermark())) == ()
    past = past_of(after, mark)
    assert past.completed == before.completed
    assert names(past.pending) == [f"{t(3)}.inflight", f"{t(7)}.replacecommit.inflight", f"{t(10)}.inflight"]
    assert [n for n in range(12) if past.is_committed(t(n))] == [0, 1, 4]


def test_an_instant_pending_at_the_watermark_is_new_even_if_its_completion_time_is_old(storage: Storage) -> None:
    mark = load(storage, f"{t(1)}.inflight", f"{t(2)}_{t(5)}.commit").watermark()
    after = load(storage, f"{t(1)}_{t(5)}.commit")

    assert names(after.completed_since(seen_on(after, mark))) == [f"{t(1)}_{t(5)}.commit"]
    assert not past_of(after, mark).is_committed(t(1))


def test_the_past_hides_what_was_archived_since(storage: Storage) -> None:
    mark = load(storage, f"{t(1)}_{t(2)}.commit", f"{t(3)}.inflight").watermark()
    for name in (f"{t(1)}_{t(2)}.commit", f"{t(3)}.inflight"):
        storage.delete(f".hoodie/timeline/{name}")
    # t(3) and t(5) completed and were archived; t(9) is the first write left.
    past = past_of(load(storage, f"{t(9)}_{t(10)}.commit"), mark)

    assert past.is_committed(t(1))
    assert not past.is_committed(t(3))
    assert not past.is_committed(t(5))


def test_the_past_of_an_empty_table_commits_nothing(storage: Storage) -> None:
    mark = timeline_in(storage).watermark()
    past = past_of(load(storage, f"{t(1)}_{t(2)}.commit"), mark)

    assert past.completed == ()
    assert not past.is_committed(t(0))
    assert not past.is_committed(t(1))


def test_a_timeline_travels_by_pickle(storage: Storage) -> None:
    timeline = load(storage, f"{t(1)}_{t(2)}.commit", f"{t(3)}.inflight")
    timeline = past_of(timeline, timeline.watermark())
    other = pickle.loads(pickle.dumps(timeline))  # noqa: S301

    assert other == timeline
    assert other.is_committed(t(1))


def test_an_instant_goes_through_its_states_once(storage: Storage) -> None:
    assert instants_in(storage).request(Instant(t(1), "commit", R)) is True
    assert instants_in(storage).request(Instant(t(1), "commit", R)) is False
    assert instants_in(storage).start(Instant(t(1), "commit", R)) is True
    assert instants_in(storage).start(Instant(t(1), "commit", R)) is False
    assert timeline_in(storage).complete(Instant(t(1), "commit", C, t(2)), b"body") is True
    assert timeline_in(storage).complete(Instant(t(1), "commit", C, t(2)), b"other") is False
    assert timeline_in(storage).complete(Instant(t(1), "commit", C, t(3)), b"other") is False

    assert [info.path.rpartition("/")[2] for info in storage.list(".hoodie/timeline")] == [
        f"{t(1)}.commit.requested",
        f"{t(1)}.inflight",
        f"{t(1)}_{t(2)}.commit",
    ]
    assert storage.read(f".hoodie/timeline/{t(1)}_{t(2)}.commit") == b"body"


def test_a_savepoint_does_not_keep_its_commits_time_from_completing(storage: Storage) -> None:
    timeline_in(storage).complete(Instant(t(1), "commit", C, t(2)), b"")

    assert timeline_in(storage).complete(Instant(t(1), "savepoint", C, t(3)), b"") is True


def test_a_compaction_completes_as_a_commit(storage: Storage) -> None:
    instants_in(storage).request(Instant(t(1), "compaction", R), b"plan")
    timeline_in(storage).complete(Instant(t(1), "compaction", C, t(2)), b"")

    assert timeline_in(storage).instants == (Instant(t(1), "commit", C, t(2)),)


def test_a_pending_instant_is_removed_from_its_latest_state_back(storage: Storage) -> None:
    instants_in(storage).request(Instant(t(1), "replacecommit", R), b"plan")
    instants_in(storage).start(Instant(t(1), "replacecommit", R))
    deleted: list[str] = []

    class Recording:
        def delete(self, path: str) -> None:
            deleted.append(path.rpartition("/")[2])
            storage.delete(path)

    instants_in(Recording()).remove_pending(Instant(t(1), "replacecommit", R))  # type: ignore[arg-type]

    assert deleted == [f"{t(1)}.replacecommit.inflight", f"{t(1)}.replacecommit.requested"]
    assert timeline_in(storage).instants == ()


events = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["request", "complete"])), max_size=25)


@given(events, st.integers(0, 25))
def test_at_any_later_moment_the_watermark_still_tells_the_past_from_the_new(
    history: list[tuple[int, str]], moment: int
) -> None:
    """Writers request and complete in any interleaving; the clock only grows."""
    pending: dict[int, str] = {}
    completed: list[Instant] = []
    seen: list[Instant] = []
    mark = Watermark("")
    for now, (writer, event) in enumerate([*history[:moment], (-1, "look"), *history[moment:]]):
        if event == "look":
            mark = timeline_of(
                tuple(
                    sorted(
                        [*completed, *(Instant(at, "commit", I) for at in pending.values())],
                        key=lambda i: i.requested_time,
                    )
                )
            ).watermark()
            seen = list(completed)
        elif event == "request":
            pending.setdefault(writer, t(now))
        elif writer in pending:
            completed.append(Instant(pending.pop(writer), "commit", C, t(now)))
    final = timeline_of(
        tuple(
            sorted([*completed, *(Instant(at, "commit", I) for at in pending.values())], key=lambda i: i.requested_time)
        )
    )

    assert set(past_of(final, mark).completed) == set(seen)
    assert set(final.completed_since(seen_on(final, mark))) == set(completed) - set(seen)
    committed = {one.requested_time for one in seen}
    assert {
        one.requested_time for one in final.instants if past_of(final, mark).is_committed(one.requested_time)
    } == committed


def test_a_completion_by_a_clock_that_lags_is_still_seen_as_new(storage: Storage) -> None:
    mark = load(storage, f"{t(5)}_{t(6)}.commit").watermark()

    after = load(storage, f"{t(2)}_{t(3)}.commit")

    assert names(after.completed_since(seen_on(after, mark))) == [f"{t(2)}_{t(3)}.commit"]


pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.booleans()), unique_by=lambda one: one[0])


@given(pairs, st.integers(0, 60))
def test_a_past_timeline_has_what_was_there_by_its_own_clock(histories: list[tuple[int, int, bool]], now: int) -> None:
    """By the clock of requests or of completions; what counts as archived stays what it was."""
    instants = tuple(
        Instant(t(asked), "commit", C, t(done)) if is_done else Instant(t(asked), "commit", I)
        for asked, done, is_done in sorted(histories)
    )
    timeline = timeline_of(instants)

    by_request = timeline.as_of_request(t(now))
    by_completion = timeline.as_of_completion(t(now))

    assert {one.requested_time for one in by_request.completed} == {
        t(asked) for asked, _, is_done in histories if is_done and asked <= now
    }
    assert {one.requested_time for one in by_completion.completed} == {
        t(asked) for asked, done, is_done in histories if is_done and done <= now
    }
    for past in (by_request, by_completion):
        assert len(past.instants) == len(instants)
        before = t(min((asked for asked, _, _ in histories), default=0))
        assert all(past.is_committed(t(n)) == (t(n) < before and bool(histories)) for n in range(60) if t(n) < before)
        shown = {one.requested_time for one in past.completed}
        assert {one.requested_time for one in instants if past.is_committed(one.requested_time)} == shown


def test_a_past_of_the_past_keeps_the_moment_that_was_pinned(storage: Storage) -> None:
    mark = load(storage, f"{t(1)}_{t(2)}.commit", f"{t(3)}_{t(4)}.commit").watermark()
    later = past_of(load(storage, f"{t(2)}_{t(9)}.commit"), mark)

    assert names(later.as_of_request(t(2)).completed) == [f"{t(1)}_{t(2)}.commit"]
    assert names(later.as_of_completion(t(9)).completed) == [f"{t(1)}_{t(2)}.commit", f"{t(3)}_{t(4)}.commit"]
    assert later.as_of_completion(t(9)).watermark() == mark
