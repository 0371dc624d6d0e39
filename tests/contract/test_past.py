"""Every moment and every window of random histories, against what a dict kept of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.reader.window import Window
from pyhudi.table.files.read_written import read_written
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.timeline import Timeline
from support.drawn.past_checks import check_archived, check_cleaned, check_past
from support.places import Place
from support.s3 import S3Server, new_url
from support.seams import patch_seam, read_seam
from support.share import share_of

Patch = pytest.MonkeyPatch
seeds = st.integers(0, 1 << 32)


@pytest.mark.parametrize("merge_on_read", [False, True])
@settings(max_examples=share_of(8), deadline=None)
@given(seed=seeds)
def test_the_past_is_shown_as_it_was(seed: int, merge_on_read: bool) -> None:
    """Completions in another order than requests change windows, and time travel not at all."""
    with tempfile.TemporaryDirectory() as folder:
        check_past(Path(folder), seed, merge_on_read=merge_on_read)


@pytest.mark.parametrize(
    ("tell", "finish"), [(True, True), (False, True), (True, False)], ids=["by commits", "by versions", "killed"]
)
@settings(max_examples=share_of(5), deadline=None)
@given(seed=seeds)
def test_what_was_cleaned_is_refused_and_all_else_is_as_it_was(seed: int, tell: bool, finish: bool) -> None:
    """No answer lacks a row; and the first readable time that a refusal names can be read."""
    with tempfile.TemporaryDirectory() as folder:
        check_cleaned(Path(folder), seed, tell=tell, finish=finish)


@pytest.mark.parametrize("merge_on_read", [False, True])
@settings(max_examples=share_of(6), deadline=None)
@given(seed=seeds)
def test_archived_moments_are_shown_while_their_files_are_there(seed: int, merge_on_read: bool) -> None:
    """And where a file is gone, the first instant whose files are all there is named."""
    with tempfile.TemporaryDirectory() as folder:
        check_archived(Path(folder), seed, merge_on_read=merge_on_read)


@pytest.mark.parametrize("merge_on_read", [False, True])
def test_some_archived_moments_are_shown(tmp_path: Path, merge_on_read: bool) -> None:
    shown = [check_archived(tmp_path / str(seed), seed, merge_on_read=merge_on_read) for seed in range(4)]

    assert sum(shown) > 3


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_past, check_cleaned, check_archived])
def test_the_past_is_the_same_on_s3(direct_s3: S3Server, check: Callable[[Place, int], object]) -> None:
    check(new_url().removesuffix("/t"), 3)


def time_travel_goes_by_completions(patch: Patch) -> None:
    def completed_by_then(self: Timeline, time: str) -> Timeline:
        named = self.find(time)
        return self.as_of_completion(time if named is None else named.visible_since)

    patch_seam(patch, "timeline as of a request", completed_by_then)


def windows_end_by_requests(patch: Patch) -> None:
    patch_seam(patch, "timeline as of a completion", Timeline.as_of_request)


def windows_go_by_requests(patch: Patch) -> None:
    patch_seam(patch, "time from which an instant is visible", property(lambda self: self.requested_time))


def windows_hold_their_begin(patch: Patch) -> None:
    plan = read_seam("plan a window of commits")

    def closed(writes: Any, begin: str | None, end: str | None) -> Window:
        return plan(writes, begin and f"{int(begin) - 1}", end)

    patch_seam(patch, "plan a window of commits", closed)


def rows_of_older_commits_show(patch: Patch) -> None:
    patch_seam(patch, "rows of a window of commits", lambda self, times: pa.array([True] * len(times)))


def overtaken_commits_show(patch: Patch) -> None:
    mask = read_seam("rows of a window of commits")
    patch_seam(patch, "rows of a window of commits", lambda self, times: mask(replace(self, less=()), times))


def what_is_replaced_later_is_gone_before(patch: Patch) -> None:
    def of_the_present(timeline: Timeline) -> Any:
        return read_written(timeline.reload())

    patch_seam(patch, "files of commits in the past", of_the_present)


def cleaned_files_are_not_missed(patch: Patch) -> None:
    patch_seam(patch, "files that a partition lost", lambda self, partition: [])


def only_cleans_tell(patch: Patch) -> None:
    """As where the commits that named the files are archived."""
    patch_seam(patch, "files that later commits superseded", lambda *_: [])


def cleans_are_trusted(patch: Patch) -> None:
    only_cleans_tell(patch)
    patch_seam(patch, "whether a clean kept what a moment shows", lambda *_: True)


def cleans_that_died_are_passed_over(patch: Patch) -> None:
    only_cleans_tell(patch)
    read = read_seam("read a clean")
    patch_seam(patch, "read a clean", lambda files, one: read(files, one) if one.state == State.COMPLETED else None)


def the_first_later_instant_is_taken_for_whole(patch: Patch) -> None:
    def next_one(files: Any, wanted: Any, time: str) -> Instant:
        return next(one for one in files.seen.timeline.writes if one.requested_time > time)

    patch_seam(patch, "next instant that shows whole slices", next_one)


def archived_writes_are_never_read(patch: Patch) -> None:
    patch_seam(patch, "timeline with archived writes", lambda *_: None)


by_versions = partial(check_cleaned, tell=False)
killed = partial(check_cleaned, finish=False)
MISTAKES: list[tuple[Callable[[Patch], None], Callable[[Path, int], object]]] = [
    (time_travel_goes_by_completions, check_past),
    (windows_end_by_requests, check_past),
    (windows_go_by_requests, check_past),
    (windows_hold_their_begin, check_past),
    (rows_of_older_commits_show, check_past),
    (overtaken_commits_show, check_past),
    (what_is_replaced_later_is_gone_before, check_past),
    (cleaned_files_are_not_missed, check_cleaned),
    (cleans_are_trusted, check_cleaned),
    (cleans_that_died_are_passed_over, killed),
    (the_first_later_instant_is_taken_for_whole, by_versions),
    (archived_writes_are_never_read, check_archived),
    (cleaned_files_are_not_missed, check_archived),
    (what_is_replaced_later_is_gone_before, check_archived),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mistake", "check"), [pytest.param(*pair, id=pair[0].__name__) for pair in MISTAKES])
def test_a_mistake_is_noticed(
    tmp_path: Path, monkeypatch: Patch, mistake: Callable[[Patch], None], check: Callable[[Path, int], object]
) -> None:
    """By one of a few histories, always the same ones, and by what is shown: a mistake that only crashes is none."""
    mistake(monkeypatch)

    with pytest.raises(AssertionError):
        for seed in range(12):
            check(tmp_path / str(seed), seed)
