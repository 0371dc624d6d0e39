from __future__ import annotations

import pytest
from pyhudi.table.files.cleaned import cleaned_since
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.models import ActionInstant, CleanerPlan, CleanFileInfo, CleanMetadata, CleanPartition
from support.made.timelines import timeline_of


def t(n: int) -> str:
    return f"20260101000000{n:03d}"


def write(asked: int, done: int) -> Instant:
    return Instant(t(asked), "commit", State.COMPLETED, t(done))


NOW = timeline_of((write(1, 2), write(3, 4), write(5, 6)))
NAME = f"00000000-a-0_0-0-0_{t(1)}.parquet"
CLEAN = Instant(t(7), "clean", State.COMPLETED, t(8))


def done(earliest: str, *names: str) -> CleanMetadata:
    part = CleanPartition(partition_path="p/q", policy="X", success_delete_files=list(names))
    return CleanMetadata(
        start_clean_time=t(7),
        time_taken_in_millis=0,
        total_files_deleted=len(names),
        earliest_commit_to_retain=earliest,
        partition_metadata={"p/q": part},
    )


def planned(earliest: str | None, *paths: str) -> CleanerPlan:
    instant = ActionInstant(timestamp=earliest, action="commit", state="COMPLETED") if earliest else None
    files = [CleanFileInfo(file_path=path) for path in paths]
    return CleanerPlan(
        earliest_instant_to_retain=instant,
        policy="X",
        file_paths_to_be_deleted_per_partition={"p/q": files},
    )


@pytest.mark.parametrize(
    ("shown", "earliest", "missed"),
    [(0, t(3), True), (1, t(3), True), (3, t(3), False), (5, t(3), False), (3, "", True)],
)
@pytest.mark.parametrize("pending", [False, True])
def test_a_clean_holds_back_nothing_from_the_instant_it_retains_on(
    shown: int, earliest: str, missed: bool, pending: bool
) -> None:
    clean = planned(earliest, f"file:/lake/t/p/q/{NAME}") if pending else done(earliest, NAME)

    found = cleaned_since([(CLEAN, clean)], NOW, NOW.as_of_request(t(shown)), t(shown))

    assert [file.path for files in found.values() for file in files] == ([f"p/q/{NAME}"] if missed else [])


def test_a_moment_by_completions_needs_all_that_was_requested_before() -> None:
    """The instant that is retained was overtaken: whoever stopped in between sees slices from before both."""
    now = timeline_of((write(1, 2), write(3, 9), write(5, 6)))
    clean = (Instant(t(10), "clean", State.COMPLETED, t(11)), done(t(5), NAME))

    assert cleaned_since([clean], now, now.as_of_completion(t(6)), t(6)) != {}
    assert cleaned_since([clean], now, now.as_of_completion(t(9)), t(9)) == {}


def test_an_earlier_clean_took_nothing_of_a_later_moment() -> None:
    assert cleaned_since([(CLEAN, done("", NAME))], NOW, NOW, t(7)) == {}


def test_names_that_are_no_data_files_are_passed_over() -> None:
    log = f".a-0_{t(1)}.log.1_0-0-0"
    names = (NAME, ".hoodie_partition_metadata", log, f"{log}.cdc", "x.parquet")

    cleaned_files = cleaned_since([(CLEAN, done("", *names))], NOW, NOW, t(6))

    assert [file.path for file in cleaned_files["p/q"]] == [f"p/q/{NAME}", f"p/q/{log}"]
    assert [file.named_time for file in cleaned_files["p/q"]] == [t(1), t(1)]
