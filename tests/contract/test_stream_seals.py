"""The seal and the note of a stream's batch go with the next batch; without them its stragglers bring no row."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.errors import OptionConflictError, PyHudiError
from pyhudi.operations.write.micro_batch import commit_batch
from pyhudi.timeline.writers.write_notes import WriteNotes
from support.attempts import rows
from support.places import files_below
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.streams import pending, query, values

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def seals_and_notes(path: Path) -> list[str]:
    """Return those of writes; compactions have others."""
    found = re.compile(r".*/sealed/\d{10}\.v2/(\d{17}|[0-9a-f]{32}\.\d)")
    return [name for name in files_below(path / "t") if found.fullmatch(name)]


@BOTH
def test_a_batch_takes_the_seal_and_the_note_of_the_batch_before_away(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    other = replace(stream, query_id="q2", identifier="other")
    other.run(0, rows(9, value=0))
    stream.run(0, rows(1, value=0))
    before = seals_and_notes(tmp_path)

    for number in range(1, 4):
        stream.run(number, rows(1, value=number, ts=number))
    after = seals_and_notes(tmp_path)

    assert len(before) == len(after) == 4
    assert len({*before} & {*after}) == 2, "those of the other query stay"


@BOTH
def test_a_task_of_a_batch_whose_seal_went_finds_it_over(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind)
    planned = stream.planned()
    commit_batch(stream.tasks(0, [rows(1, value=0)], planned))
    stream.run(1, rows(1, value=1, ts=1))
    before = files_below(tmp_path / "t")

    with pytest.raises(OptionConflictError, match="has its batch 1 already"):
        stream.tasks(0, [rows(1, 2, value=9, ts=9)], planned)

    assert files_below(tmp_path / "t") == before


@BOTH
def test_a_task_that_stalls_until_its_seal_goes_brings_no_row(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read at which time its batch began, and not yet looked whose time that is."""
    stream = query(tmp_path, kind)
    planned = stream.planned()
    commit_batch(stream.tasks(0, [rows(1, value=0)], planned))
    find, calls = read_seam("find a note of a write"), []

    def stalling(self: WriteNotes, number: int) -> str | None:
        noted_instant: str | None = find(self, number)
        calls.append(number)
        if len(calls) == 2:
            stream.run(1, rows(1, value=1, ts=1))
        return noted_instant

    with monkeypatch.context() as patch:
        patch_seam(patch, "find a note of a write", stalling)
        with suppress(PyHudiError):
            stream.tasks(0, [rows(1, 2, value=9, ts=9)], planned)

    assert len(calls) > 2
    assert values(tmp_path) == [("k1", 1)]
    stream.run(2, rows(1, value=2, ts=2))
    assert pending(tmp_path) == []
    assert values(tmp_path) == [("k1", 2)]
    assert_whole(tmp_path / "t")
