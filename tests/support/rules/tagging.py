"""What a lookup finds, held against what a dict says of the table."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import strategies as st
from pyhudi.index.base import Tags
from pyhudi.index.lookup import TableLookup
from pyhudi.table.files.bloom_filter import BloomSettings
from pyhudi.table.files.names import FileGroupId
from support.made.keyed_files import KeyedFiles, keyed

SMALL = BloomSettings(entries=100, false_positives=1e-6)
# Numbers among them, whose order as texts is another, and characters of which UTF-8 and UTF-16 disagree.
KEYS = st.text("ab\u07ff\ue000\U00010000", min_size=1, max_size=4) | st.integers(0, 120).map(str)
Places = dict[tuple[str, str], set[FileGroupId]]


def tag(index: TableLookup, files: KeyedFiles, *rows: tuple[str, str]) -> Tags:
    return index.tag(keyed(rows), files, files.storage)  # type: ignore[arg-type]


def homes(tags: Tags) -> list[FileGroupId | None]:
    """The file group that each row was found in."""
    return [None if code < 0 else tags.groups[code] for code in tags.codes.tolist()]


def all_homes(tags: Tags) -> dict[int, set[FileGroupId]]:
    """All file groups that each row was found in, copies and all, by the row's position."""
    groups_by_row = defaultdict(set)
    for row, group in enumerate(homes(tags)):
        groups_by_row[row] |= {group} - {None}
    for row, code in zip(tags.copied.tolist(), tags.copy_codes.tolist(), strict=True):
        assert tags.groups[code] not in groups_by_row[row]
        groups_by_row[row].add(tags.groups[code])
    return groups_by_row


@st.composite
def tables(draw: st.DrawFn) -> tuple[KeyedFiles, Places]:
    """A table, and in which file groups each key of each partition is."""
    files, places = KeyedFiles(), defaultdict(set)
    for partition in draw(st.sets(st.sampled_from("pqr"))):
        for _ in range(draw(st.integers(1, 3))):
            keys = draw(st.lists(KEYS, unique=True, min_size=1, max_size=6))
            filters = draw(st.sampled_from([None, SMALL, BloomSettings(1, 0.5)]))
            group = files.add(partition, keys, bloom=filters, rows_a_group=draw(st.integers(1, 4)))
            for _ in range(draw(st.integers(0, 2))):
                logged = draw(st.lists(KEYS, unique=True, max_size=3))
                files.add_log(partition, group, rows=logged, deletes=draw(st.lists(KEYS, max_size=2)))
                keys += logged
            for key in keys:
                places[partition, key].add(group)
    return files, places


ROWS = st.lists(st.tuples(st.sampled_from("pqrs"), KEYS), max_size=20)


def check_lookup(index: TableLookup, files: KeyedFiles, places: Places, rows: list[tuple[str, str]]) -> None:
    """Every key is found where it is and nowhere else, the rows' and all that there are."""
    # Some of them twice.
    wanted = [*rows, *places, *list(places)[::2]]

    tags = tag(index, files, *wanted)

    assert all_homes(tags) == {row: places.get(key, set()) for row, key in enumerate(wanted)}
    assert [home is None for home in homes(tags)] == [key not in places for key in wanted]
