"""Tables whose partitions have different numbers of buckets: written, read at each moment, and checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, OptionConflictError, UnsupportedTableError
from pyhudi.index.bucket import BucketIndex
from pyhudi.index.sizing import suggest_buckets
from pyhudi.operations.inspect.bucket_sizes import bucket_sizes
from pyhudi.operations.inspect.detail import detail
from pyhudi.operations.inspect.validate import validate
from pyhudi.operations.meeting.since import InstantsSincePlan
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.service_settings import CompactionSettings
from pyhudi.operations.services.compaction.compact import compact, schedule_compaction
from pyhudi.reader.query import AsOf, Changes
from pyhudi.reader.scan import scan
from pyhudi.reader.skipping.predicates import Compare
from pyhudi.reader.snapshot import Snapshot, open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.buckets.numbers import FIRST, BucketNumbers, BucketRule, delete_bucket_rule, write_bucket_rule
from pyhudi.table.config.property_keys import BUCKET_COUNT
from pyhudi.timeline.watermark import Watermark
from support.drive import SparkLikeRun, plan, read, rows_of, task, write
from support.made.compacting import means
from support.made.rescaling import COLOCATED, Rescale, numbers_at, rescale, table_at
from support.rules.checks import java_bucket
from support.rules.ends import assert_whole
from support.seams import patch_seam
from support.write_settings import write_settings

KEYED = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=2)
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
# The same key of both partitions goes into other buckets where the numbers differ.
KEYS = [f"k{number}" for number in range(12)]
CONFIGS = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"


def rows(*keys: str, ts: int = 1, parts: tuple[str, ...] = ("a", "b")) -> pa.Table:
    return pa.table(
        {
            "id": [key for key in keys for _ in parts],
            "p": [part for _ in keys for part in parts],
            "ts": pa.array([ts] * len(keys) * len(parts), pa.int64()),
        }
    )


def made(path: Path, **terms: Any) -> Path:
    write(path, rows(*KEYS), table=replace(KEYED, **terms), settings=COLOCATED)
    return path


def buckets(path: Path) -> dict[str, set[int]]:
    """Return the buckets of each partition that readers see."""
    buckets_by_partition: dict[str, set[int]] = {}
    for file_slice in open_snapshot(str(path)).slices():
        buckets_by_partition.setdefault(file_slice.partition_path, set()).add(int(file_slice.file_id[:8]))
    return buckets_by_partition


def expected(count: int) -> set[int]:
    return {java_bucket(key, ["id"], count) for key in KEYS}


def findings(path: Path, *, deep: bool = True) -> list[str]:
    return validate(open_storage(str(path)), deep=deep).column("code").to_pylist()


def found(snapshot: Snapshot, key: str) -> list[tuple[str, int]]:
    """Return partition and ordering value of the rows of a key, which are looked for in its buckets alone."""
    wanted = [Compare("id", "=", key)]
    slices = snapshot.slices(wanted)
    looked = {(one.partition_path, one.file_id) for one in slices}
    every = snapshot.slices()
    # A partition of one bucket has nothing to leave out.
    assert len(slices) < len(every) or len({one.partition_path for one in every}) == len(every), "nothing is pruned"
    assert looked
    table = pa.Table.from_batches(scan(snapshot, predicates=wanted), snapshot.schema)
    return sorted(zip(table.column("p").to_pylist(), table.column("ts").to_pylist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_go_to_the_buckets_of_their_own_partition(tmp_path: Path, kind: str) -> None:
    path = made(tmp_path / "t", table_type=kind)

    rescale(path, {"a": 5})
    done = write(path, rows(*KEYS, "k99", ts=2), settings=COLOCATED)

    assert (done.updates, done.inserts) == (24, 2) if kind == "COPY_ON_WRITE" else True
    assert rows_of(path, "p", "id", "ts") == sorted((p, key, 2) for key in [*KEYS, "k99"] for p in "ab")
    assert buckets(path)["a"] >= expected(5)
    assert buckets(path)["b"] == {0, 1}
    assert findings(path) == []
    assert_whole(path)
    assert detail(open_storage(str(path))).select(["buckets", "other_buckets"]).to_pylist() == [
        {"buckets": 2, "other_buckets": [("a", 5)]}
    ]


@pytest.mark.parametrize("version", [8, 9])
def test_deletes_and_partial_tasks_find_the_rows_of_a_rescaled_table(tmp_path: Path, version: int) -> None:
    path = made(tmp_path / "t", version=version)
    rescale(path, {"a": 3, "b": 3}, default=3)

    # Rows of one file group come in several tasks here, and the commit merges them.
    write(path, [rows(*KEYS[:6], ts=2), rows(*KEYS[6:], ts=2)])
    write(path, rows(*KEYS[:4]).select(["id", "p"]), operation="delete")

    assert rows_of(path, "p", "id", "ts") == sorted((p, key, 2) for key in KEYS[4:] for p in "ab")
    assert buckets(path)["a"] == expected(3)
    assert_whole(path)


def test_each_reader_prunes_by_the_numbers_of_its_moment(tmp_path: Path) -> None:
    """Before, between and after the steps of two rescales, of which the second takes buckets away."""
    path = made(tmp_path / "t")
    pinned: list[tuple[Watermark, int]] = []
    ts = 1

    def look() -> None:
        pinned.append((table_at(path).timeline().watermark(), ts))
        for mark, then in pinned:
            for key in KEYS[:3]:
                assert found(open_snapshot(str(path), watermark=mark), key) == [("a", then), ("b", then)]
        assert found(open_snapshot(str(path)), KEYS[0]) == [("a", ts), ("b", ts)]

    look()
    times = [table_at(path).timeline().writes[-1].requested_time]
    for numbers in ({"a": 5, "b": 4}, {"a": 2}):
        steps = Rescale(path, numbers)
        for step in steps.steps:
            step()
            look()
        ts += 1
        write(path, rows(*KEYS, ts=ts), settings=COLOCATED)
        times.append(table_at(path).timeline().writes[-1].requested_time)
        look()
    for then, time in enumerate(times, 1):
        for key in KEYS:
            assert found(open_snapshot(str(path), query=AsOf(time)), key) == [("a", then), ("b", then)]
    since = open_snapshot(str(path), query=Changes(table_at(path).timeline().writes[0].visible_since))
    for key in KEYS:
        assert found(since, key) == [("a", 3), ("b", 3)]


def test_a_query_by_key_reads_file_groups_of_no_bucket_of_their_partition(tmp_path: Path) -> None:
    """A writer whose options name another number makes such file groups; a writer of Apache Hudi may have them."""
    path = made(tmp_path / "t")
    news = rows(*(f"n{number}" for number in range(12)), parts=("a",))
    planned = replace(plan(path, news.schema, settings=COLOCATED), numbers=BucketNumbers(BucketRule("", 8)))
    carry_out_of(planned, [task(planned, news, 0)])

    assert all(found(open_snapshot(str(path)), f"n{number}") == [("a", 1)] for number in range(12))


def empty_bucket(path: Path) -> tuple[WritePlan, str]:
    """Return a plan by the old numbers, and a key whose bucket no partition has: the rescale leaves it empty, too."""
    write(path, rows("k0", parts=("a",)), table=replace(KEYED, bucket_count=4), settings=COLOCATED)
    ours = java_bucket("k0", ["id"], 4)
    key = next(
        key
        for key in (f"n{number}" for number in range(99))
        if java_bucket(key, ["id"], 4) != ours and java_bucket(key, ["id"], 8) != java_bucket(key, ["id"], 4)
    )
    return plan(path, rows(key).schema, settings=COLOCATED), key


def check_a_write_by_the_old_number(path: Path) -> None:
    planned, key = empty_bucket(path / "t")
    results = [task(planned, rows(key, parts=("a",)), 0)]
    rescale(path / "t", {"a": 8})

    with pytest.raises(CommitConflictError, match=r"partition 'a' has 8 buckets, .* by 4"):
        carry_out_of(planned, results)
    write(path / "t", rows(key, parts=("a",)), settings=COLOCATED)
    assert rows_of(path / "t", "id") == [("k0",), (key,)]
    assert_whole(path / "t")


def carry_out_of(planned: WritePlan, results: list[Any]) -> object:
    """Commit what tasks made, and abort where that fails."""
    return SparkLikeRun(planned).finish(lambda: results)


def test_a_write_by_the_old_number_is_a_conflict_whatever_file_groups_met(tmp_path: Path) -> None:
    check_a_write_by_the_old_number(tmp_path)


def test_the_comparison_left_out_lets_a_row_into_a_bucket_where_nothing_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind(since: InstantsSincePlan, numbers: object) -> dict[str, int | None]:
        return {}

    patch_seam(monkeypatch, "numbers of buckets that changed since a plan", blind)

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_a_write_by_the_old_number(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numbers", [{"a": 6}, {"a": 1}, {"a": 5, "b": 3}])
def test_a_commit_that_merges_by_itself_brings_its_rows_to_the_new_buckets(
    tmp_path: Path, kind: str, numbers: dict[str, int]
) -> None:
    path = made(tmp_path / "t", table_type=kind)
    settings = write_settings(retry_s=30, hand_over=True)
    planned = plan(path, rows("k").schema, settings=settings)
    results = [task(planned, rows(*KEYS[:7], ts=2), 0), task(planned, rows(*KEYS[7:], "k50", ts=3), 1)]
    rescale(path, numbers)

    carry_out_of(planned, results)

    assert dict(rows_of(path, "id", "ts")) == {**dict.fromkeys(KEYS[:7], 2), **dict.fromkeys([*KEYS[7:], "k50"], 3)}
    assert read(path).num_rows == 2 * 13
    assert findings(path) == []
    assert_whole(path)


def test_a_write_to_another_partition_does_not_meet_a_rescale(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    planned = plan(path, rows("k").schema, settings=COLOCATED)
    results = [task(planned, rows("k0", ts=9, parts=("b",)), 0)]
    rescale(path, {"a": 5})

    carry_out_of(planned, results)

    assert ("b", "k0", 9) in rows_of(path, "p", "id", "ts")
    assert_whole(path)


def test_a_rule_whose_instant_is_gone_stops_writes_by_name_and_no_read(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    write_bucket_rule(table_at(path), BucketRule(FIRST, 2))
    gone = "20200101000000000"
    write_bucket_rule(table_at(path), BucketRule(gone, 8))

    with pytest.raises(UnsupportedTableError, match=rf"{gone}\.hashing_config .* neither completed nor pending"):
        write(path, rows("k1", ts=5))
    snapshot = open_snapshot(str(path))
    assert len(snapshot.slices([Compare("id", "=", "k1")])) == len(snapshot.slices()) == 4
    assert findings(path, deep=False) == ["BUCKETS_UNKNOWN"]
    assert detail(open_storage(str(path))).column("buckets").to_pylist() == [None]
    write(path, rows("k1", parts=("b",)), operation="delete_partition")
    delete_bucket_rule(table_at(path), gone)
    write(path, rows("k1", ts=5), settings=COLOCATED)
    assert_whole(path)


def test_a_table_that_only_apache_hudi_wrote_is_taken_over_by_its_rules(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    rescale(path, {"a": 5}, notes_first=False)
    properties = path / ".hoodie/hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(line for line in lines if "index" not in line))

    assert rows_of(path, "p", "id") == sorted((p, key) for key in KEYS for p in "ab")
    with pytest.raises(OptionConflictError):
        write(path, rows(*KEYS, ts=2), table=TableSettings(index_type="BLOOM"))
    done = write(path, rows(*KEYS, ts=2), table=TableSettings(bucket_count=3), settings=COLOCATED)
    assert ["gave the table" in one and "2 buckets" in one for one in done.warnings] == [True]

    assert rows_of(path, "p", "id", "ts") == sorted((p, key, 2) for key in KEYS for p in "ab")
    assert table_at(path).config.bucket_count == 2
    assert found(open_snapshot(str(path)), "k3") == [("a", 2), ("b", 2)]
    assert findings(path) == []


@pytest.mark.parametrize("noted", ["2", "3"])
def test_a_rescaled_number_counts_whatever_number_a_job_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, noted: str
) -> None:
    """The property may be older than the rule, or follow it; each write has one notice, and the process logs one."""
    path = made(tmp_path / "t")
    rescale(path, {"a": 3, "b": 3}, default=3)
    properties = path / ".hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace(f"{BUCKET_COUNT}=2", f"{BUCKET_COUNT}={noted}"))

    told = [write(path, rows("k1", ts=ts), table=replace(KEYED, bucket_count=2)).warnings for ts in (4, 5)]
    assert write(path, rows("k2", ts=4), table=TableSettings(bucket_count=3), settings=COLOCATED).warnings == ()

    assert [(len(one), "gave the table" in one[0], "3 buckets" in one[0]) for one in told] == [(1, True, True)] * 2
    assert [record.message for record in caplog.records if "gave the table" in record.message] == [told[0][0]]
    assert table_at(path).config.bucket_count == int(noted)
    assert numbers_at(path).default == 3
    assert found(open_snapshot(str(path)), "k1") == [("a", 5), ("b", 5)]
    assert_whole(path)


def test_a_number_that_differs_is_refused_where_nothing_was_rescaled(tmp_path: Path) -> None:
    """So is, on a rescaled table, every other option of the table."""
    path = made(tmp_path / "t")
    with pytest.raises(OptionConflictError, match=BUCKET_COUNT):
        write(path, rows("k1"), table=replace(KEYED, bucket_count=5))
    write_bucket_rule(table_at(path), BucketRule(FIRST, 2))
    with pytest.raises(OptionConflictError, match=BUCKET_COUNT):
        write(path, rows("k1"), table=replace(KEYED, bucket_count=5))
    rescale(path, {"a": 3, "b": 3}, default=3)
    with pytest.raises(OptionConflictError) as refused:
        write(path, rows("k1"), table=replace(KEYED, bucket_count=2, record_key_fields=("ts",)))

    assert "recordkey" in str(refused.value)
    assert BUCKET_COUNT not in str(refused.value)


def test_a_compaction_of_a_rescaled_table_takes_rows_of_other_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bucket of a row of another engine is checked by its partition's number."""
    path = made(tmp_path / "t", table_type="MERGE_ON_READ")
    rescale(path, {"a": 5})
    write(path, rows(*KEYS, ts=2), settings=COLOCATED)
    storage = open_storage(str(path))
    every = frozenset(file_slice.group for file_slice in open_snapshot(str(path)).slices())
    patch_seam(monkeypatch, "file groups with log files of other engines", lambda *_: every)

    schedule_compaction(storage, CompactionSettings(delta_commits=1), means(storage))
    compact(storage, CompactionSettings(delta_commits=1), means(storage))

    assert rows_of(path, "p", "id", "ts") == sorted((p, key, 2) for key in KEYS for p in "ab")
    assert not any(one.logs for one in open_snapshot(str(path)).slices())


@pytest.mark.parametrize("damage", [b"", b"{", json.dumps({"expressions": r"\p{L},3"}).encode()])
def test_a_damaged_rule_is_named_by_a_write(tmp_path: Path, damage: bytes) -> None:
    path = made(tmp_path / "t")
    instant = rescale(path, {"a": 5})
    (path / CONFIGS / f"{instant}.hashing_config").write_bytes(damage)

    with pytest.raises(UnsupportedTableError, match=rf"{instant}\.hashing_config"):
        write(path, rows("k1", ts=5))
    assert read(path).num_rows == 24
    assert findings(path, deep=False) == ["BUCKETS_UNKNOWN"]


def test_an_expression_of_many_partitions_is_obeyed(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    write_bucket_rule(table_at(path), BucketRule(FIRST, 2, (("^c=", 3), ("c", 7))))

    write(path, rows(*KEYS, parts=("c=1", "xc", "d")), settings=COLOCATED)

    assert {part: numbers for part, numbers in buckets(path).items() if part not in {"a", "b"}} == {
        "c=1": expected(3),
        "xc": expected(7),
        "d": expected(2),
    }
    assert_whole(path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_shallow_check_sees_a_file_whose_keys_are_of_another_bucket(tmp_path: Path, kind: str) -> None:
    """Of base files by their footers, of slices of log files alone by a key of each."""
    path = tmp_path / "t"
    logs_alone = write_settings(merge_max_bytes=1)
    settings = COLOCATED if kind == "COPY_ON_WRITE" else logs_alone
    write(path, rows(*KEYS), table=replace(KEYED, table_type=kind), settings=settings)
    assert {file_slice.base is None for file_slice in open_snapshot(str(path)).slices()} == {settings is logs_alone}
    write_bucket_rule(table_at(path), BucketRule(FIRST, 3))

    assert set(findings(path, deep=False)) == {"WRONG_BUCKET"}


def test_the_number_of_its_own_partition_says_which_file_groups_are_none_of_its_buckets(tmp_path: Path) -> None:
    """A file group that one partition's number allows is none of the buckets of the other."""
    path = made(tmp_path / "t", bucket_count=4)
    write_bucket_rule(table_at(path), BucketRule(FIRST, 4, (("^b$", 2),)))

    told = validate(open_storage(str(path)), deep=False).to_pylist()

    beyond = [one["file"] or one["what"] for one in told if one["code"] == "NO_BUCKET"]
    assert beyond
    assert not [text for text in beyond if text.startswith("a/") or "'a'" in text]


def test_each_partition_has_a_suggestion_of_its_own(tmp_path: Path) -> None:
    path = made(tmp_path / "t")
    rescale(path, {"a": 5})
    sizes = bucket_sizes(open_storage(str(path)), growth=1e6).to_pylist()

    assert [(one["partition"], one["buckets"], one["files"]) for one in sizes] == [
        ("a", 5, len(expected(5))),
        ("b", 2, 2),
    ]
    for row in sizes:
        assert row["suggested"] == suggest_buckets(row["bytes"], growth=1e6) > 1
    write(tmp_path / "looked up", rows("k1"), table=replace(KEYED, index_type="SIMPLE", bucket_count=None))
    with pytest.raises(UnsupportedTableError, match="no bucket index"):
        bucket_sizes(open_storage(str(tmp_path / "looked up")))


def test_an_index_of_another_package_that_computes_places_knows_no_partitions() -> None:
    """Its author's contract is the one from before: keys alone decide."""
    index = BucketIndex(4, ("id",))
    keys = pa.array(KEYS)
    paths = pa.array(["a"] * len(KEYS)).dictionary_encode()

    assert index.buckets(keys).tolist() == index.buckets_in(paths, keys).tolist()
