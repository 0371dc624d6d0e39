"""What is kept of the footers of base files: for which files it holds, and what is forgotten first."""

from __future__ import annotations

import pytest
from pyhudi.table.files.base_file import MIN_KEY
from pyhudi.table.files.bloom_filter import BloomSettings
from pyhudi.table.files.file_group import BaseFile
from pyhudi.table.files.key_footers import KeyFooters, KeyRange, key_ranges
from pyhudi.table.files.names import FileGroupId
from support.made.keyed_files import KeyedFiles

# Room for what is said of two files, not for three.
TWO = 1300


def base(files: KeyedFiles, group: FileGroupId) -> BaseFile:
    return files.slices(group.partition_path)[group.file_id].base_file


def test_a_file_of_the_same_name_and_another_size_is_another_file() -> None:
    """As an attempt leaves it that ran again after others had seen the first one's."""
    files, footers = KeyedFiles(), KeyFooters()
    first = base(files, files.add("p", ["a", "b"]))
    assert footers.read(files.storage, first).range == KeyRange("a", "b")
    files.file_slices["p"].clear()
    second = base(files, files.add("p", [f"x{number:03}" for number in range(300)]))
    assert first.path == second.path

    assert footers.read(files.storage, second).range == KeyRange("x000", "x299")


def test_a_footer_is_read_once() -> None:
    """Whether or not it tells anything."""
    files = KeyedFiles()
    told, untold = (files.add("p", [key], bloom=BloomSettings(4, 0.1)) for key in "ab")
    files.say(untold, {MIN_KEY: None})
    some = [base(files, one) for one in (told, untold)]

    assert key_ranges(files.storage, some) == [KeyRange("a", "a"), None]
    assert len(files.opened) == 2
    assert key_ranges(files.storage, some) == [KeyRange("a", "a"), None]
    assert len(files.opened) == 0


@pytest.mark.parametrize(("again", "forgotten"), [("a", "b"), ("b", "a")])
def test_what_nobody_asked_for_the_longest_is_forgotten_first(again: str, forgotten: str) -> None:
    files, footers = KeyedFiles(), KeyFooters(ranges=TWO)
    some = {key: base(files, files.add("p", [key])) for key in "abc"}
    for key in ("a", "b", again, "c"):
        footers.read(files.storage, some[key])

    assert [key for key, file in some.items() if footers.range_of(files.storage, file) is None] == [forgotten]


def test_a_footer_that_was_read_again_takes_no_more_memory() -> None:
    files, footers = KeyedFiles(), KeyFooters(ranges=TWO, filters=1)
    some = [base(files, files.add("p", [key])) for key in "ab"]
    for file in (*some, *some):
        footers.read(files.storage, file)

    assert [footers.range_of(files.storage, file) for file in some] == [KeyRange("a", "a"), KeyRange("b", "b")]
