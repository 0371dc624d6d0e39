"""Mistakes about what a write saw, put into the code on purpose: each must turn the checks of the real tests red."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyhudi.timeline.instants import Instant
from pyhudi.timeline.watermark import Seen, Watermark
from support.faults.long_ago import (
    check_archived_while_at_work,
    check_first_write_is_younger,
    check_history_that_is_gone,
    check_older_than_all_recent,
)
from support.mutations import Check, Mutate, Patch, assert_red, each
from support.seams import patch_seam, read_seam


def older_than_all_known_by_name_counts_as_seen(patch: Patch) -> None:
    original = read_seam("whether a watermark saw an instant")

    def saw(self: Seen, instant: Instant) -> bool:
        return original(self, instant) or instant.identity < min(self.watermark.recent)

    patch_seam(patch, "whether a watermark saw an instant", saw)


def what_was_archived_since_does_not_count(patch: Patch) -> None:
    patch_seam(patch, "instants archived since a moment", lambda *_: ())


def what_is_gone_is_not_missed(patch: Patch) -> None:
    def against(self: Watermark, completed: Iterable[Instant], _: Any) -> Seen:
        return Seen(self, self._possibly_older(completed) if self.older.count else frozenset())

    patch_seam(patch, "compare a watermark with the timeline", against)


def writes_begin_however_old_they_are(patch: Patch) -> None:
    patch_seam(patch, "whether a write that begins is too old", lambda *_: False)


MUTATIONS: list[tuple[Mutate, Check]] = [
    (older_than_all_known_by_name_counts_as_seen, check_older_than_all_recent),
    (what_was_archived_since_does_not_count, check_archived_while_at_work),
    (what_is_gone_is_not_missed, check_history_that_is_gone),
    (writes_begin_however_old_they_are, check_first_write_is_younger),
]


@each(MUTATIONS)
def test_a_mistake_turns_red(tmp_path: Path, monkeypatch: Patch, mutate: Mutate, check: Check) -> None:
    """The check sees it."""
    assert_red(tmp_path, monkeypatch, mutate, check)
