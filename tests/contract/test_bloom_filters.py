"""Bloom filters in the base files that writes and compactions leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyhudi.index.bloom import filters_for
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.service_settings import CompactionSettings, Upkeep
from pyhudi.operations.write_settings import BulkInsertSort
from pyhudi.table.config import TableConfig
from pyhudi.table.config.property_keys import MERGE_ON_READ
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.base_file import MAX_KEY, MIN_KEY
from pyhudi.table.files.bloom_filter import FILTER, TYPE_CODE, BloomFilter, BloomFilterBuilder, BloomSettings
from pyhudi.table.files.output import Output
from support.attempts import rows
from support.drive import DEFAULTS, KEYED, write
from support.made.compacting import append, new_table, run, slices
from support.recorded.fixture_tables import unpack
from support.seams import patch_seam, read_seam

BLOOM = BloomSettings(entries=4, false_positives=0.01, most_entries=8)
LOGGED = replace(KEYED, table_type=MERGE_ON_READ)
ASKED = replace(DEFAULTS, output=Output(bloom=BLOOM, bloom_filter=True))


def filters_of(path: Path, *, anew: bool = True) -> list[bool]:
    """Hold the filter of each live base file against its keys, and return which files have one.

    Args:
        path: The table.
        anew: Whether the filters were built for these files, whose rows are in their order.
    """
    has_filter = []
    for file_slice in slices(path):
        file = path / file_slice.base_file.path
        footer = {key.decode(): value.decode() for key, value in pq.read_metadata(file).metadata.items()}
        keys = pq.read_table(file, columns=["_hoodie_record_key"]).column(0).combine_chunks()
        assert (footer[MIN_KEY], footer[MAX_KEY]) == (min(keys.to_pylist()), max(keys.to_pylist()))
        has_filter.append(FILTER in footer)
        if FILTER in footer:
            assert BloomFilter.decode(footer[FILTER].encode(), footer[TYPE_CODE]).may_hold(keys).all()
            builder = BloomFilterBuilder(BLOOM)
            builder.add(keys)
            assert not anew or {name: footer[name] for name in (FILTER, TYPE_CODE)} == builder.footer()
    return has_filter


@pytest.mark.parametrize("settings", [ASKED, replace(ASKED, colocated=True)])
def test_each_base_file_of_a_write_has_a_filter_over_all_its_keys(tmp_path: Path, settings: WriteSettings) -> None:
    path = tmp_path / "t"
    write(path, rows(*range(20), value=1), table=KEYED, settings=settings)
    assert filters_of(path) == [True, True]

    write(path, rows(*range(5, 40), value=2, ts=2), settings=settings)
    assert filters_of(path, anew=False) == [True, True]


def test_keys_that_stay_are_not_put_into_filters_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    settings = replace(ASKED, output=replace(ASKED.output, bloom=BloomSettings(entries=100)))
    write(path, rows(*range(100), value=1), table=KEYED, settings=settings)
    added: list[str] = []
    add = read_seam("add keys to a bloom filter")
    patch_seam(
        monkeypatch, "add keys to a bloom filter", lambda self, keys: added.extend(keys.to_pylist()) or add(self, keys)
    )

    asked: list[str] = []
    may_hold = read_seam("ask a bloom filter for keys")
    patch_seam(
        monkeypatch,
        "ask a bloom filter for keys",
        lambda self, keys: asked.extend(keys.to_pylist()) or may_hold(self, keys),
    )

    write(path, rows(5, 6, 1000, 1001, value=2, ts=2), settings=settings)

    assert sorted(added) == ["k1000", "k1001"]
    assert sorted(asked) == ["k1000", "k1001", "k5", "k6"]
    assert filters_of(path, anew=False) == [True, True]


def test_files_that_are_sorted_have_filters_too(tmp_path: Path) -> None:
    path = tmp_path / "t"
    settings = replace(ASKED, sort=BulkInsertSort(columns=("value",)))
    for start in (0, 20):
        some = rows(*range(start, start + 20), value=start)
        write(path, some, table=KEYED, operation="bulk_insert", settings=settings)

    assert filters_of(path) == [True, True]


def test_base_files_of_buckets_have_none_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, rows(*range(20), value=1), table=KEYED)

    assert filters_of(path) == [False, False]


def test_a_compaction_writes_filters(tmp_path: Path) -> None:
    path = tmp_path / "t"
    new_table(path, *[(f"k{number}", "a", 1, number) for number in range(10)])
    append(path, ("k1", "a", 20, 100), ("k11", "a", 5, 101), gone=[("k3", "a", 30)])

    run(path, output=ASKED.output)

    assert all(filters_of(path))
    assert not any(file_slice.logs for file_slice in slices(path))


def test_a_compaction_after_a_write_makes_the_filters_that_the_write_would(tmp_path: Path) -> None:
    path = tmp_path / "t"
    settings = replace(ASKED, upkeep=Upkeep(compaction=CompactionSettings(delta_commits=2)))
    for value in (1, 2):
        write(path, rows(*range(20), value=value, ts=value), table=LOGGED, settings=settings)

    assert not any(file_slice.logs for file_slice in slices(path))
    assert filters_of(path) == [True, True]


def test_a_compaction_writes_filters_where_nothing_says_which_index_a_table_has(tmp_path: Path) -> None:
    """Apache Hudi's bloom index, which it may have, fails on a file without."""
    path = Path(unpack("v9_lookup_simple_mor", tmp_path))
    merged = {file_slice.group for file_slice in slices(path) if file_slice.logs}

    assert run(path).file_groups == len(merged) > 0
    assert merged == {
        file_slice.group
        for file_slice in slices(path)
        if FILTER.encode() in pq.read_metadata(path / file_slice.base_file.path).metadata
    }


@pytest.mark.parametrize(
    ("index", "asked", "expected"),
    [
        ("BLOOM", None, BLOOM),
        ("global_bloom", None, BLOOM),
        ("BLOOM", False, BLOOM),
        ("SIMPLE", None, None),
        ("SIMPLE", True, BLOOM),
        (None, None, None),
        (None, True, BLOOM),
    ],
)
def test_who_gets_filters(index: str | None, asked: bool | None, expected: BloomSettings | None) -> None:
    config = TableConfig.new(TableSettings(name="t", record_key_fields=("id",), index_type=index))

    assert filters_for(config, Output(bloom=BLOOM, bloom_filter=asked)) == expected


def test_rows_without_keys_of_their_own_get_none() -> None:
    keyless = TableConfig.new(TableSettings(name="t", record_key_fields=()))

    assert filters_for(keyless, ASKED.output) is None
