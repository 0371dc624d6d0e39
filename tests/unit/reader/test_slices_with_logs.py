"""Slices with logs as queries see them; what merging comes to is tested in `tests/contract/test_merged_slices.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import MissingFileError, UnsupportedTableError
from pyhudi.reader.plan import SlicePart, Split
from pyhudi.reader.query import Changes
from pyhudi.reader.scan import MergeTerms, RowReader
from pyhudi.reader.skipping.predicates import Compare, Predicate
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.reader.window import CommitTimes
from pyhudi.storage import open_storage
from pyhudi.storage.base import Storage
from pyhudi.table.config import TableConfig, load_config, update_config
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.files.bloom_filter import BloomSettings
from pyhudi.table.schema.columns import with_meta
from support.made.log_slices import BASE_TIME, Gone, Rows, Slice
from support.models.past import Past, rows_of

SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False), ("ts", pa.int64()), ("value", pa.int64()), ("text", pa.string())]
)
EVENT = TableConfig.new(
    TableSettings(
        name="t", table_type="MERGE_ON_READ", record_key_fields=("id",), ordering_fields=("ts",), bucket_count=1
    )
)
COMMIT = replace(EVENT, properties={**EVENT.properties, "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "t"))


def row(key: str, ts: int, value: int) -> dict[str, Any]:
    return {"id": key, "ts": ts, "value": value, "text": key * 300}


def three_row_groups(storage: Storage) -> Slice:
    written_slice = Slice(storage, SCHEMA)
    names = [name for name in "abc" for _ in range(100)]
    written_slice.add_base([row(f"{name}{n:02}", 10, n) for n, name in enumerate(names)], row_group_bytes=1)
    return written_slice


def values(
    one: Slice, config: TableConfig, *predicates: Predicate, times: CommitTimes | None = None
) -> list[tuple[str, int]]:
    asked = pa.schema([SCHEMA.field("id"), SCHEMA.field("value")])
    batches = RowReader(one.storage, asked, with_meta(SCHEMA), predicates, times, MergeTerms(config)).merged(
        one.file_slice
    )
    rows = pa.Table.from_batches(batches, asked).to_pylist()
    return sorted((row["id"], row["value"]) for row in rows)


def test_a_base_row_that_wins_is_read_though_it_satisfies_no_predicate(storage: Storage) -> None:
    written_slice = three_row_groups(storage)
    written_slice.add_log(Rows([row("a00", 5, 777), row("b199", 15, 778)]))

    values_by_key = dict(values(written_slice, EVENT, Compare("value", ">", 700)))
    assert values_by_key.get("a00", 0) != 777
    assert values_by_key["b199"] == 778


def test_what_a_window_left_out_of_the_base_wins_all_the_same(storage: Storage) -> None:
    written_slice = three_row_groups(storage)
    time = written_slice.add_log(Rows([row("a00", 5, 777), row("b199", 15, 778)]))

    assert values(written_slice, EVENT, times=CommitTimes(time)) == [("b199", 778)]
    assert values(written_slice, EVENT, times=CommitTimes(BASE_TIME, (time,)))[:1] == [("a00", 0)]


@pytest.mark.parametrize(
    ("config", "predicate"),
    [
        pytest.param(COMMIT, Compare("id", "<", "a50"), id="by commit time on the key"),
        pytest.param(EVENT, Compare("id", "<", "a50"), id="by event time on the key"),
        pytest.param(EVENT, Compare("_hoodie_record_key", "<", "a50"), id="by event time on Hudi's key"),
    ],
)
def test_row_groups_are_left_out_where_none_of_their_rows_could_win(
    storage: Storage, config: TableConfig, predicate: Predicate
) -> None:
    written_slice = three_row_groups(storage)
    written_slice.add_log(Gone([("a01", None)]), Rows([row("a02", 20, 7)]))

    read_values = values(written_slice, config, predicate)
    assert len(read_values) == 99
    assert ("a02", 7) in read_values


@pytest.mark.parametrize("logged", [False, True])
def test_base_rows_are_left_out_where_a_filter_denies_the_key_looked_for(storage: Storage, logged: bool) -> None:
    written_slice = Slice(storage, SCHEMA)
    written_slice.add_base([row(f"a{n:02}", 10, n) for n in range(0, 100, 2)], bloom=BloomSettings(100, 1e-6))
    if logged:
        written_slice.add_log(Rows([row("a51", 20, 7)]))
    base = written_slice.file_slice.base_file
    split = Split((SlicePart(base.path, "", None, base.size, written_slice.file_slice if logged else None),))

    def shown(key: str) -> list[str]:
        asked, terms = pa.schema([SCHEMA.field("id")]), MergeTerms(EVENT)
        found = RowReader(storage, asked, with_meta(SCHEMA), [Compare("id", "=", key)], terms=terms).read(split)
        return [key for batch in found for key in batch.column(0).to_pylist()]

    assert shown("a51") == ["a51"] * logged
    assert "a50" in shown("a50")


@pytest.mark.parametrize("gone", [False, True])
def test_an_entry_meets_the_copies_of_its_key_in_every_row_group(storage: Storage, gone: bool) -> None:
    """Whatever the row groups of some copies say of a predicate that the others satisfy."""
    written_slice = Slice(storage, SCHEMA)
    copies = [[row("k", 1, 1)], [row("k", 1, 100)]]
    written_slice.add_base([*copies[0] * 100, *copies[1] * 100], row_group_bytes=1)
    written_slice.add_log(Gone([("k", None)]) if gone else Rows([row("k", 1, 50)]))

    assert ("k", 100) not in values(written_slice, COMMIT, Compare("value", ">", 90))


def test_partial_updates_need_the_whole_base(storage: Storage) -> None:
    written_slice = three_row_groups(storage)
    written_slice.add_log(Rows([row("c299", 20, 7)], columns=("ts", "value")))

    assert ("c299", 7) in values(written_slice, COMMIT, Compare("value", "<", 50))


@pytest.fixture
def past(tmp_path: Path) -> Past:
    """Two commits, the second one's rows in a log file."""
    past = Past(tmp_path / "t", merge_on_read=True)
    past.upsert("a", ["k1", "k2", "k3", "k4"], 1)
    past.upsert("a", ["k1", "k2"], 2)
    return past


def test_a_read_optimized_query_passes_logs_over(past: Past) -> None:
    first = past.commits[0].instant

    assert past.shown() == past.as_of(past.commits[1].instant)
    assert rows_of(open_snapshot(str(past.path), bases_alone=True)) == past.as_of(first)
    log = next(Path(past.path).rglob(".*.log.*"))
    log.unlink()
    assert rows_of(open_snapshot(str(past.path), bases_alone=True)) == past.as_of(first)


def test_a_window_needs_the_base_files_beneath_its_log_files(past: Past) -> None:
    """Or it would show rows that lose against these."""
    window = Changes(past.commits[0].completed)
    assert [row[1:3] for row in past.shown(window)] == [("k1", 2), ("k2", 2)]
    for base in Path(past.path).rglob("*.parquet"):
        base.unlink()

    with pytest.raises(MissingFileError, match=r"The base file a/.*\.parquet"):
        past.shown(window)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (
            {
                "hoodie.record.merge.mode": "CUSTOM",
                "hoodie.compaction.payload.class": "org.acme.Mine",
                "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
            },
            "hoodie.compaction.payload.class=org.acme.Mine",
        ),
        ({"hoodie.record.merge.mode": "CUSTOM"}, "hoodie.record.merge.mode=CUSTOM"),
        ({"hoodie.table.partial.update.mode": "GUESS"}, "hoodie.table.partial.update.mode=GUESS"),
        ({"hoodie.record.merge.property.acme": "1"}, "hoodie.record.merge.property.acme=1"),
    ],
)
def test_rules_that_nobody_knows_are_refused_where_there_are_logs(past: Past, more: dict[str, str], named: str) -> None:
    storage = open_storage(str(past.path))
    update_config(storage, more)
    assert load_config(storage).properties.items() >= more.items()

    with pytest.raises(UnsupportedTableError) as caught:
        past.shown()
    assert named in caught.value.what and str(past.path) in caught.value.what
    assert rows_of(open_snapshot(str(past.path), bases_alone=True)) == past.as_of(past.commits[0].instant)
