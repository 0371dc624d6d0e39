"""What a process knows of the keys of file slices between the batches of a stream."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from pyhudi.index.bloom import BloomIndex
from pyhudi.index.lookup import GlobalSimpleIndex, SimpleIndex, TableLookup
from pyhudi.operations.indexing.known_keys import KnownSlices
from support.made.keyed_files import KeyedFiles
from support.rules.tagging import ROWS, Places, all_homes, tables, tag
from support.share import share_of
from support.upkeep.known_keys import keys_of_write, process, tag_known


@pytest.mark.parametrize(
    "index", [SimpleIndex(), BloomIndex(), GlobalSimpleIndex()], ids=lambda one: type(one).__name__
)
@settings(max_examples=share_of(40))
@given(table=tables(), rows=ROWS)
def test_keys_are_found_where_a_lookup_without_knowledge_finds_them(
    index: TableLookup, table: tuple[KeyedFiles, Places], rows: list[tuple[str, str]]
) -> None:
    files, places = table
    wanted = [*rows, *places, *list(places)[::2]]
    plain = tag(index, files, *wanted)
    with process(KnownSlices()):
        for number in range(3):
            _ = files.opened
            cached_tags = tag_known(keys_of_write(index), files, *(wanted if number else wanted[::3]))
            assert number < 2 or not isinstance(index, SimpleIndex) or not files.opened
        assert all_homes(cached_tags) == all_homes(plain)
        assert cached_tags.groups == plain.groups


def test_a_key_takes_sixteen_bytes() -> None:
    files, known_slices = KeyedFiles(), KnownSlices()
    for group in range(4):
        files.add("p", [f"k{number}" for number in range(1000 * group, 1000 * group + 1000)])
    with process(known_slices):
        tag_known(keys_of_write(SimpleIndex()), files, *(("p", f"k{number}") for number in range(0, 4000, 7)))

    assert known_slices.nbytes == 16 * 4000
