"""Indexes that read the table: what they find, and how little they read for it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from pyhudi.errors import CorruptFileError, NullKeyError
from pyhudi.index.bloom import BloomIndex
from pyhudi.index.lookup import SimpleIndex, TableLookup
from pyhudi.index.settings import LookupSettings
from pyhudi.storage import open_storage
from pyhudi.storage.object_files import ObjectInput
from pyhudi.table.files.base_file import MAX_KEY, MIN_KEY
from pyhudi.table.files.bloom_filter import FILTER, BloomSettings, FileFilter
from pyhudi.table.files.key_footers import KeyFooter, KeyFooters
from pyhudi.table.files.lost import open_view
from pyhudi.table.files.names import FileGroupId
from pyhudi.table.table import open_table
from support.drive import rows_of
from support.made.keyed_files import OPENED, CountingStorage, KeyedFiles, keyed
from support.recorded.fixture_tables import unpack
from support.rules.tagging import ROWS, SMALL, Places, all_homes, check_lookup, homes, tables, tag
from support.seams import patch_seam, read_seam
from support.share import share_of

INDEXES: list[TableLookup] = [
    SimpleIndex(),
    BloomIndex(),
    BloomIndex(LookupSettings(prunes_by_ranges=False)),
]
every_index = pytest.mark.parametrize("index", INDEXES, ids=["simple", "bloom", "bloom without ranges"])


@every_index
@settings(max_examples=share_of(40))
@given(table=tables(), rows=ROWS)
def test_every_key_is_found_where_it_is_and_nowhere_else(
    index: TableLookup, table: tuple[KeyedFiles, Places], rows: list[tuple[str, str]]
) -> None:
    check_lookup(index, *table, rows)


@settings(max_examples=share_of(40))
@given(table=tables(), rows=ROWS)
def test_many_keys_are_found_where_few_would_be(table: tuple[KeyedFiles, Places], rows: list[tuple[str, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "few keys for the filter of a footer", 2)
        patch_seam(patch, "first keys for the filter of a footer", 1)
        check_lookup(BloomIndex(), *table, rows)


@pytest.mark.parametrize(("present", "possible"), [([], 0), ([0], 5_000), ([4_999], 5_000)])
def test_many_keys_are_all_possible_where_a_filter_lets_one_pass(present: list[int], possible: int) -> None:
    keys = pa.array([f"{number:05}" for number in range(5_000)])
    made = FileFilter(BloomSettings(), {}, 0)
    made.add(pa.array(["x", *keys.take(pa.array(present, pa.int64())).to_pylist()]), from_previous=False)
    footer = {name.encode(): value.encode() for name, value in made.footer().items()}

    assert len(KeyFooter.of(footer, "a file").possible(keys)) == possible


@pytest.mark.parametrize(("wanted", "remote", "asked"), [(5_000, False, 0), (5_000, True, 1), (4_000, False, 1)])
def test_many_keys_are_told_by_those_of_a_file_on_a_disk_without_its_filter(
    monkeypatch: pytest.MonkeyPatch, wanted: int, remote: bool, asked: int
) -> None:
    """Over a network a filter spares requests, and of few keys it is the filter that tells sooner."""
    files, decoded = KeyedFiles(), []
    group = files.add("p", [f"{number:05}" for number in range(0, 10_000, 2)], bloom=BloomSettings())
    monkeypatch.setattr(CountingStorage, "remote", remote)
    original = read_seam("decode the bloom filter of a footer")
    patch_seam(monkeypatch, "decode the bloom filter of a footer", lambda self: decoded.append(self) or original(self))

    tags = tag(BloomIndex(), files, *(("p", f"{number:05}") for number in range(wanted)))

    assert homes(tags) == [None if number % 2 else group for number in range(wanted)]
    assert len(decoded) == asked


@every_index
def test_nothing_is_found_for_no_rows(index: TableLookup) -> None:
    files = KeyedFiles()
    files.add("p", ["a"])

    tags = tag(index, files)

    assert (tags.groups, len(tags.codes), tags.figures.files) == ((), 0, 0)


@every_index
def test_keys_that_only_log_files_have_are_found_there(index: TableLookup) -> None:
    files = KeyedFiles()
    base = files.add("p", ["a", "b"], bloom=SMALL)
    files.add_log("p", base, rows=["c"])
    logs_only = files.add_log("q", None, rows=["d"])
    files.add_log("q", logs_only, rows=["e"], deletes=["d"])

    assert homes(tag(index, files, *(("p", key) for key in "abcx"))) == [base, base, base, None]
    tags = tag(index, files, *(("q", key) for key in "dex"))
    assert homes(tags) == [logs_only, logs_only, None]
    assert tags.figures.bytes == sum(log.size for log in files.slices("q")[logs_only.file_id].logs)


@every_index
def test_rows_of_log_blocks_that_nobody_sees_are_not_found(index: TableLookup) -> None:
    files = KeyedFiles()
    group = files.add("p", ["a"], bloom=SMALL)
    files.add_log("p", group, rows=["b"])
    files.unseen = {log.named_time for log in files.slices("p")[group.file_id].logs}

    assert homes(tag(index, files, ("p", "a"), ("p", "b"))) == [group, None]


@every_index
def test_rows_without_a_key_are_refused_by_the_name_of_their_file(index: TableLookup) -> None:
    files = KeyedFiles()
    files.add("p", ["a", None, "c"])

    with pytest.raises(NullKeyError, match=r"p/00000000.*holds 1 rows without a record key"):
        tag(index, files, ("p", "b"))


@every_index
def test_a_damaged_file_is_refused(index: TableLookup) -> None:
    files = KeyedFiles()
    group = files.add("p", ["a"])
    file_slice = files.slices("p")[group.file_id]
    files.storage.write(file_slice.base_file.path, b"PAR1 is no more")

    with pytest.raises(CorruptFileError, match=group.file_id):
        tag(index, files, ("p", "a"))


@every_index
@pytest.mark.parametrize("name", ["v9_lookup_bloom_cow", "v9_lookup_bloom_mor", "v9_lookup_bloom_fixed_mor"])
def test_rows_of_apache_hudi_are_found_where_they_are(index: TableLookup, name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    storage = open_storage(path)
    view = open_view(open_table(storage).timeline())
    columns = ("_hoodie_partition_path", "_hoodie_record_key", "_hoodie_file_name")
    rows = rows_of(path, *columns)
    assert rows

    tags = index.tag(keyed([(str(partition), str(key)) for partition, key, _ in rows]), view, storage)

    # In a row of a log file stands the file group's id alone.
    assert [(home and home.partition_path, home and home.file_id) for home in homes(tags)] == [
        (partition, str(file).partition("_")[0]) for partition, _, file in rows
    ]
    assert not len(tags.copied)


@pytest.fixture
def scattered() -> Iterator[tuple[KeyedFiles, list[FileGroupId]]]:
    """Ten files of one partition with ten keys each, in the order of the keys, with a filter each."""
    files = KeyedFiles()
    groups = [
        files.add("p", [f"k{file}{number}" for number in range(10)], bloom=SMALL, rows_a_group=2) for file in range(10)
    ]
    yield files, groups


def test_row_groups_that_no_key_lies_between_are_not_read(scattered: tuple[KeyedFiles, list[FileGroupId]]) -> None:
    files, groups = scattered
    everything = [("p", f"k{file}{number}") for file in range(10) for number in range(10)]

    of_all = tag(SimpleIndex(), files, *everything)
    of_two = tag(SimpleIndex(), files, ("p", "k31"), ("p", "k79"))

    assert homes(of_two) == [groups[3], groups[7]]
    assert (of_all.figures.candidates, of_two.figures.candidates, of_two.figures.files) == (10, 2, 10)
    footers = tag(SimpleIndex(), files, ("p", "z")).figures.bytes
    # Two row groups of fifty, beside all footers.
    assert (of_two.figures.bytes - footers) * 20 < (of_all.figures.bytes - footers) < of_all.figures.bytes


def test_ranges_leave_out_files_and_filters_most_of_the_rest(
    scattered: tuple[KeyedFiles, list[FileGroupId]],
) -> None:
    files, groups = scattered
    everywhere = files.add("p", ["a", "k35", "z"], bloom=SMALL)

    tags = tag(BloomIndex(), files, ("p", "k31"), ("p", "k35"), ("p", "k35x"))
    without = tag(BloomIndex(LookupSettings(prunes_by_ranges=False)), files, ("p", "k31"))

    assert homes(tags)[0] == groups[3]
    assert all_homes(tags)[1] == {groups[3], everywhere}
    assert homes(tags)[2] is None
    assert (tags.figures.files, tags.figures.candidates, tags.figures.false_positives) == (11, 2, 0)
    assert (homes(without), without.figures.candidates) == ([groups[3]], 1)


def test_row_groups_of_keys_that_a_filter_denies_are_not_read() -> None:
    files = KeyedFiles()
    group = files.add("p", [f"k{number:02}" for number in range(40)], bloom=SMALL, rows_a_group=2)
    absent = [("p", f"k{number:02}x") for number in range(40)]

    alone = tag(BloomIndex(), files, ("p", "k31"))
    among = tag(BloomIndex(), files, *absent, ("p", "k31"))

    assert homes(among) == [*[None] * 40, group]
    assert among.figures.bytes == alone.figures.bytes


@pytest.mark.parametrize("few", [0, 10])
@pytest.mark.parametrize(("prunes", "found"), [(True, False), (False, True)])
def test_ranges_rule_nothing_out_where_they_are_not_to_be_looked_at(
    monkeypatch: pytest.MonkeyPatch, prunes: bool, found: bool, few: int
) -> None:
    """Whether a footer is known or not, and its filter asked or not; by a range that is wrong one can tell."""
    patch_seam(monkeypatch, "few keys for the filter of a file", few)
    files, index = KeyedFiles(), BloomIndex(LookupSettings(prunes_by_ranges=prunes))
    group = files.add("p", ["m"], bloom=SMALL)
    files.say(group, {MIN_KEY: "x", MAX_KEY: "y"})

    for _ in range(2):
        assert homes(tag(index, files, ("p", "m"), ("p", "xx"))) == [group if found else None, None]


def test_a_false_positive_is_counted_and_never_taken() -> None:
    files = KeyedFiles()
    group = files.add("p", ["a", "m", "z"], bloom=BloomSettings(4, 0.3, dynamic=False))
    absent = [f"m{number}" for number in range(64)]

    tags = [tag(BloomIndex(), files, ("p", key)) for key in absent]

    passed = [one for one in tags if one.figures.candidates]
    assert 0 < len(passed) < len(absent)
    assert all(one.figures.false_positives == 1 for one in passed)
    assert all(homes(one) == [None] for one in tags)
    assert homes(tag(BloomIndex(), files, ("p", "m"))) == [group]


def test_a_filter_by_its_oldest_name_leaves_its_file_out_too() -> None:
    files = KeyedFiles()
    group = files.add("p", ["a", "z"], bloom=SMALL)
    base = files.slices("p")[group.file_id].base
    assert base is not None
    with files.storage.open_input(base.path) as source:
        text = pq.read_metadata(source).metadata[FILTER.encode()].decode()
    files.say(group, {FILTER: None, "com.uber.hoodie.bloomfilter": text})

    tags = tag(BloomIndex(), files, ("p", "m"), ("p", "n"))

    assert homes(tags) == [None, None]
    assert tags.figures.candidates == 0
    assert homes(tag(BloomIndex(), files, ("p", "z"))) == [group]


@pytest.mark.parametrize(
    "footer",
    [
        {FILTER: None},
        {FILTER: "no base64!"},
        {FILTER: "AAAA"},
        {MIN_KEY: None},
        {MIN_KEY: "z", MAX_KEY: "a"},
        # By Java's 16-bit units this is the least of all; by their bytes the greatest.
        {MIN_KEY: "\U00010000", MAX_KEY: "\ue000"},
    ],
    ids=["no filter", "no base64", "cut off", "no range", "no range at all", "the order of Java"],
)
def test_a_file_that_says_too_little_may_hold_every_key(footer: dict[str, str | None]) -> None:
    files = KeyedFiles()
    keys = ["a", "b", "\ue000", "\U00010000"]
    group = files.add("p", keys, bloom=SMALL)
    files.say(group, footer)

    assert homes(tag(BloomIndex(), files, *(("p", key) for key in [*keys, "c"]))) == [group] * 4 + [None]


def test_a_filter_that_cannot_be_used_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    files = KeyedFiles()
    group = files.add("p", ["a"], bloom=SMALL)
    files.say(group, {FILTER: "AAAA"})

    tag(BloomIndex(), files, ("p", "a"))

    assert [record.levelname for record in caplog.records if group.file_id in record.getMessage()] == ["WARNING"]


def test_files_that_are_ruled_out_by_known_footers_are_not_opened(
    scattered: tuple[KeyedFiles, list[FileGroupId]],
) -> None:
    files, groups = scattered
    index = BloomIndex()
    assert len(files.opened) == 0
    first = tag(index, files, ("p", "k31"))
    opened_at_first = files.opened
    second = tag(index, files, ("p", "k31"), ("p", "k5x"))
    opened_then = files.opened

    assert (homes(first), homes(second)) == ([groups[3]], [groups[3], None])
    assert sorted(opened_at_first) == sorted(file_slice.base_file.path for file_slice in files.all_slices())
    assert opened_then == [files.slices("p")[groups[3].file_id].base_file.path]
    assert second.figures.bytes < first.figures.bytes


@pytest.mark.parametrize(("ranges", "filters", "opened"), [(1 << 20, 1, 2), (1, 1, 11), (1, 1 << 20, 11)])
def test_footers_that_take_too_much_memory_are_forgotten(
    scattered: tuple[KeyedFiles, list[FileGroupId]],
    monkeypatch: pytest.MonkeyPatch,
    ranges: int,
    filters: int,
    opened: int,
) -> None:
    files, groups = scattered
    everywhere = files.add("p", ["a", "z"], bloom=SMALL)
    patch_seam(monkeypatch, "footers in memory", KeyFooters(ranges=ranges, filters=filters))
    assert len(files.opened) == 0
    tag(BloomIndex(), files, ("p", "k31"))
    assert len(files.opened) == 11

    assert homes(tag(BloomIndex(), files, ("p", "k31"), ("p", "z"))) == [groups[3], everywhere]
    assert len(files.opened) == opened


@every_index
def test_they_are_indexes_that_look_up_within_partitions(index: TableLookup) -> None:
    group = FileGroupId("p", "f-0")

    assert (index.needs_lookup, index.is_global, index.can_index_log_files) == (True, False, False)
    assert len(index.misfits(keyed([("p", "a")]).record_keys, group)) == 0
    assert index.rival_key(group) == "file group f-0"


class Ranged(CountingStorage):
    """A store over a network, whose files are read by ranges."""

    remote = True

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(ObjectInput(self, path, path), mode="r")

    def get_tail(self, key: str, length: int) -> tuple[bytes, int]:
        OPENED[self.path].append(f"{key}, tail")
        data = self.read(key)
        return data[-length:], len(data)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        OPENED[self.path].append(f"{key}, {end - start} bytes")
        return self.read(key)[start:end]


def test_over_a_network_a_file_is_asked_for_its_footer_and_perhaps_its_keys() -> None:
    files = KeyedFiles()
    files.storage = Ranged.open(files.storage.path)
    random = np.random.default_rng(1)
    keys = [base64.b64encode(random.bytes(48)).decode() for _ in range(60_000)]
    group, other = (files.add("p", keys[half::2], bloom=BloomSettings(30_000, 1e-6)) for half in (0, 1))
    paths = [files.slices("p")[one.file_id].base_file.path for one in (group, other)]
    footer = pq.ParquetFile(pa.BufferReader(files.storage.read(paths[0]))).metadata
    chunk = footer.row_group(0).column(footer.schema.names.index("_hoodie_record_key"))

    tags = tag(BloomIndex(), files, ("p", keys[20_000]))

    assert homes(tags) == [group]
    asked = sorted(files.opened)
    assert [one for one in asked if one.endswith("tail")] == sorted(f"{path}, tail" for path in paths)
    ranges = [one for one in asked if not one.endswith("tail")]
    assert all(one.startswith(paths[0]) for one in ranges)
    assert 0 < len(ranges) <= 2
    assert sum(int(one.split()[-2]) for one in ranges) <= chunk.total_compressed_size
