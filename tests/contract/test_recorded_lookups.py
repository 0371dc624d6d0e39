"""Tables that Apache Hudi wrote with indexes that look keys up, read and continued without it.

None of them says which index it has, because Apache Hudi keeps no note of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhudi.errors import MissingOptionError, OptionConflictError, UnsupportedTableError
from pyhudi.operations.inspect.detail import detail
from pyhudi.operations.planning.request import TableSettings
from pyhudi.reader.scan import MergeTerms, RowReader
from pyhudi.reader.skipping.predicates import Compare, OneOf, Predicate
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from support.drive import rows_of, write
from support.recorded.fixture_tables import TABLES, recorded, unpack
from support.recorded.recorded_lookups import as_table, content_of, held
from support.recorded.recorded_merges import check_recorded
from support.rules.health import codes, errors
from support.sick.spoiling import make_healthy, of_two_minds
from support.sick.spoiling import rows as spoiled_rows

NAMES = sorted(one.stem for one in TABLES.glob("v9_lookup_*.zip"))
BLOOMS = [name for name in NAMES if "bloom" in name]
MIB = 1 << 20


def test_there_is_a_table_of_each_index_and_type() -> None:
    kinds = ("simple", "bloom", "bloom_fixed", "global_simple", "global_bloom")
    assert {f"v9_lookup_{kind}_{short}" for kind in kinds for short in ("cow", "mor")} | {"v9_lookup_defaults"} == {
        *NAMES
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_table_reads_as_apache_hudi_read_it(name: str, tmp_path: Path) -> None:
    check_recorded(tmp_path, name)
    check_recorded(tmp_path, name, "read_optimized")


def found(snapshot: Snapshot, *predicates: Predicate) -> set[tuple[Any, ...]]:
    """Return partition, key and name of what a read by predicates is shown, before anybody filters it."""
    splits = snapshot.plan(snapshot.schema, predicates, 128 * MIB)
    terms = MergeTerms(snapshot.config)
    batches = [
        batch
        for split in splits
        for batch in RowReader(
            snapshot.storage, snapshot.schema, snapshot.schema, predicates, snapshot.times, terms
        ).read(split)
    ]
    rows = pa.Table.from_batches(batches, snapshot.schema).select(["p", "id", "name"])
    return {tuple(row.values()) for row in rows.to_pylist()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("query", ["snapshot", pytest.param("read_optimized", marks=pytest.mark.slow)])
def test_every_key_is_found_where_files_are_left_out(name: str, query: str, tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack(name, tmp_path), bases_alone=query == "read_optimized")
    expected: dict[str, set[tuple[Any, ...]]] = {}
    for row in recorded(name, query):
        expected.setdefault(row["id"], set()).add((row["p"], row["id"], row["name"]))

    beyond = [key for key in expected if max(key) > "z"]
    for key in [*list(expected)[::9], *beyond, "nowhere", "k0005", "\ue0009"]:
        rows = found(snapshot, Compare("id", "=", key))
        assert {row for row in rows if row[1] == key} == expected.get(key, set()), key


@pytest.mark.parametrize("name", BLOOMS)
def test_ranges_and_filters_leave_out_most_files(name: str, tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack(name, tmp_path), bases_alone=True)
    files = len(snapshot.slices())
    keys = [f"k{n:03}" for n in range(80)]

    by_key = [len(snapshot.slices_of_keys([Compare("id", "=", key)])) for key in keys]
    absent = [len(snapshot.slices_of_keys([Compare("id", "=", f"{key}x")])) for key in keys]

    assert files >= 5
    assert sum(by_key) < files * len(keys) / 2, "each key is in one file, and few others are taken to hold it"
    assert sum(absent) < files * len(keys) / 4
    assert snapshot.slices_of_keys([OneOf("id", ())]) == []
    of_first = {row for row in found(snapshot) if row[2] == "first"}
    assert of_first == {row for row in found(snapshot, Compare("name", "=", "first")) if row[2] == "first"}


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("mor")])
def test_a_slice_with_log_files_is_read_whatever_its_base_file_says(name: str, tmp_path: Path) -> None:
    snapshot = open_snapshot(unpack(name, tmp_path))
    logged = [one for one in snapshot.slices() if one.logs]

    assert logged
    assert [one for one in snapshot.slices_of_keys([Compare("id", "=", "nowhere")]) if one.logs] == logged


def properties(path: str) -> dict[str, str]:
    return dict(load_config(open_storage(path)).properties)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        *((name, None) for name in NAMES),
        ("v9_lookup_simple_mor", "SIMPLE"),
        ("v9_lookup_simple_cow", "BLOOM"),
        ("v9_lookup_bloom_fixed_mor", "BLOOM"),
    ],
)
def test_a_table_of_apache_hudi_is_continued(name: str, index: str | None, tmp_path: Path) -> None:
    """With no option at all, or with an index that is said once."""
    path, content = unpack(name, tmp_path), content_of(name)
    before = properties(path)
    updated = dict.fromkeys(list(content)[::3], ("ours", 100))
    too_early = dict.fromkeys(list(content)[1::7], ("lost", 0))
    new = {("a", "k0005"): ("new", 1), ("d", "\ue0009"): ("new", 1), ("b", "k004x"): ("new", 1)}
    said = TableSettings(index_type=index)

    result = write(path, [as_table(updated | new), as_table(too_early)], table=said)

    content |= updated | new
    assert held(path) == content
    assert (result.inserts, result.deletes) == (len(new), 0)
    gone = dict.fromkeys([*list(content)[::4], ("d", "\ue0009")], (None, 200))
    write(path, as_table(gone, deleted=True))
    content = {key: value for key, value in content.items() if key not in gone}
    assert held(path) == content
    again = dict.fromkeys(list(gone)[::2], ("back", 300))
    write(path, as_table(again))
    assert held(path) == content | again
    after = {key: value for key, value in properties(path).items() if key not in before}
    assert after.get("hoodie.index.type") == index
    assert not any("bucket" in key for key in after)
    assert detail(open_storage(path))["index"].to_pylist() == [index or "SIMPLE"]
    assert not errors(path)


@pytest.mark.parametrize("name", ["v9_lookup_defaults", "v9_lookup_bloom_mor"])
def test_our_files_of_a_table_that_says_nothing_have_filters(name: str, tmp_path: Path) -> None:
    """Or Apache Hudi's bloom index would fail on them."""
    path = unpack(name, tmp_path)
    before = set(Path(path).rglob("*.parquet"))

    write(path, as_table({("new partition", "k1"): ("ours", 1), ("a", "k000"): ("ours", 100)}))

    files = set(Path(path).rglob("*.parquet")) - before
    assert files
    for file in files:
        assert b"org.apache.hudi.bloomfilter" in pq.read_metadata(file).metadata


def test_buckets_are_refused_where_the_file_groups_are_none(tmp_path: Path) -> None:
    path = unpack("v9_lookup_simple_cow", tmp_path)
    rows = as_table({("new partition", "k1"): ("ours", 1)})

    with pytest.raises(UnsupportedTableError, match="leave it out if none of them uses buckets"):
        write(path, rows, table=TableSettings(bucket_count=4))
    with pytest.raises(OptionConflictError):
        write(path, rows, table=TableSettings(bucket_count=4, index_type="BLOOM"))
    assert "hoodie.index.type" not in properties(path)
    assert write(path, rows).inserts == 1


def test_a_lookup_index_opens_nothing_in_a_table_of_buckets(tmp_path: Path) -> None:
    path = unpack("v9_cow_evolved", tmp_path)
    rows = pa.table({"id": pa.array([99], pa.int32()), "n": pa.array([1]), "extra": pa.array(["x"])})

    with pytest.raises(MissingOptionError):
        write(path, rows)
    with pytest.raises(OptionConflictError, match=r"Writers of buckets find no row elsewhere"):
        write(path, rows, table=TableSettings(index_type="SIMPLE"))
    assert detail(open_storage(path))["index"].to_pylist() == ["BUCKET"]
    write(path, rows, table=TableSettings(index_type="SIMPLE"), overwrite=True)
    assert properties(path)["hoodie.index.type"] == "SIMPLE"
    assert rows_of(path, "id") == [(99,)]
    assert write(path, rows).updates == 1


def test_a_mixture_is_refused_until_somebody_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t"
    make_healthy(path)
    of_two_minds(path)
    rows = spoiled_rows("new partition", 9)

    for overwrite in (False, True):
        with pytest.raises(UnsupportedTableError, match=r"beside 8c0f11d2-.* in partition 'x', which is none"):
            write(path, rows, overwrite=overwrite)
    assert detail(open_storage(str(path)))["index"].to_pylist() == [None]
    assert "INDEX_UNCLEAR" in codes(path)

    assert write(path, rows, table=TableSettings(index_type="SIMPLE")).inserts == rows.num_rows
    assert write(path, rows).updates == rows.num_rows
    assert "INDEX_UNCLEAR" not in codes(path)


@pytest.mark.parametrize(
    ("file", "kind", "wrong"),
    [
        (
            "consistent_hashing_metadata/a/00000000000000.hashing_meta",
            "CONSISTENT_HASHING",
            (UnsupportedTableError,),
        ),
        (
            "partition_bucket_index_meta/configs/20260101000000000.hashing_config",
            "hashing_config|rule files",
            (UnsupportedTableError, OptionConflictError),
        ),
    ],
)
@pytest.mark.parametrize("asked", [TableSettings(), TableSettings(index_type="SIMPLE"), TableSettings(bucket_count=4)])
def test_buckets_that_apache_hudi_records_itself_are_read_and_not_written(
    tmp_path: Path, file: str, kind: str, wrong: tuple[type[Exception], ...], asked: TableSettings
) -> None:
    path = unpack("v9_lookup_simple_mor", tmp_path)
    new = as_table({("a", "k1"): ("new", 99)})
    shown = rows_of(path, "id")
    recorded_in = Path(path) / ".hoodie/.bucket_index" / file
    recorded_in.parent.mkdir(parents=True)
    recorded_in.write_text("{}")

    with pytest.raises(wrong, match=kind):
        write(path, new, table=asked)
    assert rows_of(path, "id") == shown
    recorded_in.unlink()
    write(path, new)
