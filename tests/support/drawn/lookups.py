"""Tables whose keys are looked up: checks that the tests and the mutations of the code both run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import CommitConflictError, TableNotFoundError
from pyhudi.index.base import NOT_FOUND, KeyedRows
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.locating.file_group_writes import shares_of
from pyhudi.operations.meeting.since import seen_by
from pyhudi.operations.planning.operation import DELETE, REPLACING
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, CleanSettings, Upkeep
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.storage import Storage, open_storage
from pyhudi.table.arrow.string_hash import hash64
from pyhudi.table.config import load_config
from pyhudi.table.files.file_group import FileSlice
from pyhudi.table.files.lost import open_view
from pyhudi.table.files.view import FileView
from pyhudi.table.keys.generator import KeyGenerator
from pyhudi.table.merging.merger import RowMeeting
from pyhudi.table.schema.columns import FILE_GROUP
from pyhudi.table.table import Table, open_table
from pyhudi.timeline.held import held_groups, pending_compactions
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.timeline import Timeline
from support.drive import plan, read, rows_of, task, write
from support.made.clustering import request_clustering, take_back
from support.places import Place, below
from support.rules.ends import assert_whole
from support.seams import patch_seam

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
TABLE = TableSettings(
    record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), index_type="SIMPLE", bucket_count=None
)
LOGGED = replace(TABLE, table_type="MERGE_ON_READ")
# Every write opens file groups for its new keys.
APART = WriteSettings(lookup=LookupSettings(sizes=FileSizes(small=0)))
PLACED = replace(APART, colocated=True)
KEEP_ONE = Upkeep(CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1))


def rows(*keys: int, value: int, p: str = "a", ts: int | None = None) -> pa.Table:
    """Return rows of one partition, of the ordering value that they have as a value, where none is given."""
    count = len(keys)
    columns = [[f"k{key}" for key in keys], [p] * count, [value if ts is None else ts] * count, [value] * count]
    return pa.table(columns, schema=SCHEMA)


def said(some: pa.Table, group: str) -> pa.Table:
    """Return rows that say which file group they go to."""
    return some.append_column(FILE_GROUP, pa.array([group] * some.num_rows))


def slices(table: Place) -> list[FileSlice]:
    """Return the newest slices of the table."""
    storage = open_storage(str(table))
    return open_view(open_table(storage).timeline()).all_slices()


def homes(table: Place) -> Mapping[str, set[str]]:
    """Return the file ids of the file groups in which each live key has rows."""
    groups_by_key: dict[str, set[str]] = {}
    shown = read(table)
    names, keys = shown.column("_hoodie_file_name").to_pylist(), shown.column("id").to_pylist()
    for name, key in zip(names, keys, strict=True):
        groups_by_key.setdefault(key, set()).add(name.partition("_")[0])
    return groups_by_key


def home(table: Place, key: int) -> str:
    """Return the one file id of a key."""
    (only,) = homes(table)[f"k{key}"]
    return only


def assert_healthy(table: Place) -> None:
    """Assert that nothing is wrong with a table, in which no key is twice."""
    assert_whole(table, deep=True, tolerated=())


def planned(table: Place, **options: Any) -> WritePlan:
    """Plan a write of such rows."""
    return plan(table, SCHEMA, **options)


def located(work: WritePlan, parts: Sequence[pa.Table]) -> list[pa.Table]:
    """Return rows that say which file groups they go to, as whoever looked all of their keys up tells them.

    Args:
        work: The write.
        parts: Its rows; those of one partition are in one part.
    """
    if work.opens_alone or work.operation in REPLACING:
        return [said(part, "+0") for part in parts]
    seen = seen_by(work.transaction, work.table.timeline())
    keys = KeyGenerator(work.config, work.schema)
    return [_located(work, part.combine_chunks(), seen.view, seen.timeline, seen.storage, keys) for part in parts]


def joined_by(part: pa.Table) -> set[str]:
    """Return the file ids that rows name which say where they go, of those file groups that new keys join."""
    said = part.column(FILE_GROUP).unique().to_pylist() if FILE_GROUP in part.column_names else []
    names = {text.rpartition("/")[2] for text in said}
    return {name[1:] for name in names if name.startswith("+") and not name[1:].isdecimal()}


def _located(
    work: WritePlan, part: pa.Table, view: FileView, timeline: Timeline, storage: Storage, keys: KeyGenerator
) -> pa.Table:
    batch = part.to_batches()[0]
    record_keys, paths = keys.record_keys(batch), keys.partition_paths(batch)
    tags = work.lookup.tag(KeyedRows(record_keys, paths), view, storage)
    located = [work.rules.meeting is not RowMeeting.ADD and code != NOT_FOUND for code in tags.codes.tolist()]
    path = paths[0].as_py()
    new = {key for key, there in zip(record_keys.to_pylist(), located, strict=True) if not there}
    sizes = work.settings.lookup.sizes
    joinable = None if work.operation == DELETE else view
    shares = shares_of(work.config, sizes, joinable, timeline, {path: len(new)}, work.instant_time)
    places = shares[path].take(hash64(record_keys)).tolist() if new else []
    joined = {shares[path].shares[place].file_id for place, there in zip(places, located, strict=False) if not there}
    spelled = []
    for row, is_located in enumerate(located):
        share = None if is_located else shares[path].shares[places[row]]
        file_id = tags.groups[tags.codes[row]].file_id if share is None else share.file_id
        is_new = share is not None and share.number is not None
        spelled.append(f"+{share.number}" if share and is_new else f"{'+' * (file_id in joined)}{file_id}")
    return part.append_column(FILE_GROUP, pa.array(spelled, pa.string()))


def check_one_new_key(folder: Place, made: TableSettings = TABLE) -> None:
    """Assert that of two writers that add one key, each to a file group of its own, the later commit is refused."""
    table = below(folder, "t")
    write(table, [rows(1, value=1), rows(2, value=1, p="b")], table=made, settings=APART)
    first, second = (planned(table, settings=APART) for _ in range(2))
    theirs, mine = task(first, rows(5, 6, value=3), 0), task(second, rows(6, 7, value=2), 0)
    commit_write(first, [theirs])
    before = rows_of(table, "id", "value")
    with pytest.raises(CommitConflictError, match=r"record key 'k6'.*partition 'a'"):
        commit_write(second, [mine])
    abort_write(second)

    assert rows_of(table, "id", "value") == before
    write(table, rows(6, 7, value=4), settings=APART)
    assert [row for row in rows_of(table, "id", "value") if row[0] == "k6"] == [("k6", 4)]
    assert_healthy(table)


def check_one_new_key_of_the_table(folder: Place) -> None:
    """Assert that a key that two writers add to different partitions is refused where it is unique in the table."""
    table = below(folder, "t")
    made = replace(TABLE, index_type="GLOBAL_SIMPLE")
    write(table, [rows(1, value=1), rows(2, value=1, p="b")], table=made, settings=APART)
    first, second, third = (planned(table, settings=APART) for _ in range(3))
    theirs, mine = task(first, rows(5, 6, value=3), 0), task(second, rows(6, 7, value=2, p="b"), 0)
    apart = task(third, rows(8, value=2, p="b"), 0)
    commit_write(first, [theirs])
    with pytest.raises(CommitConflictError, match=r"record key 'k6'.*partition 'b'.*partition 'a'"):
        commit_write(second, [mine])
    abort_write(second)
    commit_write(third, [apart])

    assert rows_of(table, "p", "id") == [*(("a", f"k{key}") for key in (1, 5, 6)), ("b", "k2"), ("b", "k8")]
    assert_healthy(table)


def check_one_new_key_of_placed_rows(folder: Place) -> None:
    """Assert that placed rows are no exception: whoever looked their keys up saw no others'."""
    table = below(folder, "t")
    write(table, rows(1, value=1), table=TABLE, settings=APART)
    parts = [said(rows(6, value=value), "+0") for value in (2, 3)]
    first, second = (plan(table, parts[0].schema, settings=PLACED) for _ in range(2))
    theirs, mine = task(first, parts[0], 0), task(second, parts[1], 0)
    commit_write(first, [theirs])
    with pytest.raises(CommitConflictError, match="record key 'k6'"):
        commit_write(second, [mine])
    abort_write(second)

    assert rows_of(table, "id", "value") == [("k1", 1), ("k6", 2)]
    assert_healthy(table)


def check_new_keys_apart(folder: Place, made: TableSettings = TABLE) -> None:
    """Assert that neither different keys nor one key of two partitions get writers into each other's way."""
    table = below(folder, "t")
    write(table, [rows(1, 2, value=1), rows(3, value=1, p="b")], table=made, settings=APART)
    first, second = (planned(table, settings=APART) for _ in range(2))
    theirs = [task(first, rows(5, 6, value=3), 0), task(first, rows(7, value=3, p="b"), 1)]
    mine = [task(second, rows(7, 8, value=2), 0), task(second, rows(5, value=2, p="b"), 1)]
    commit_write(first, theirs)
    commit_write(second, mine)

    assert rows_of(table, "p", "id", "value") == [
        *(("a", f"k{key}", value) for key, value in [(1, 1), (2, 1), (5, 3), (6, 3), (7, 2), (8, 2)]),
        *(("b", f"k{key}", value) for key, value in [(3, 1), (5, 2), (7, 3)]),
    ]
    assert_healthy(table)


def check_their_copy(folder: Place) -> None:
    """Assert that a key is met in others' newer files, too, to which a later write, or a compaction, has copied it."""
    table = below(folder, "t")
    write(table, rows(1, value=1), table=TABLE, settings=APART)
    late = planned(table, settings=APART)
    write(table, rows(5, 6, value=3), settings=APART)
    write(table, rows(6, value=4), settings=replace(APART, upkeep=KEEP_ONE))
    mine = task(late, rows(5, value=2), 0)
    with pytest.raises(CommitConflictError, match="record key 'k5'"):
        commit_write(late, [mine])
    abort_write(late)
    assert_healthy(table)


def check_copies_of_others(folder: Place) -> None:
    """Assert that rows that others carried along are no rows of theirs, and rows that nobody looked up no conflict."""
    table = below(folder, "t")
    write(table, rows(1, 2, value=1), table=TABLE, settings=APART)
    write(table, rows(1, 3, value=1), operation="insert", settings=APART)
    (file_id,) = {home(table, 2)}
    first, second, third = (
        planned(table, operation=operation, settings=APART) for operation in ("upsert", "insert", "insert")
    )
    write(table, rows(2, value=4), settings=APART)
    write(table, rows(9, value=6), settings=APART)
    commit_write(first, [task(first, rows(7, value=2), 0)])
    commit_write(second, [task(second, rows(8, value=3), 0)])
    assert home(table, 2) == file_id

    commit_write(third, [task(third, rows(9, value=5), 0)])
    assert len(homes(table)["k9"]) == 2, "an insert adds whatever is there"


def check_deleted_copies(folder: Place) -> None:
    """Assert that a delete leaves no copy of a key behind, whichever file groups inserts put them in."""
    table = below(folder, "t")
    for value in (1, 2, 3):
        write(table, rows(1, value + 1, value=value), operation="insert", table=TABLE, settings=APART)
    assert len(homes(table)["k1"]) == 3
    done = write(table, rows(1, 4, value=9), operation="delete", settings=APART)

    assert done.deletes == 4
    assert rows_of(table, "id") == [("k2",), ("k3",)]


def check_new_keys_in_base_files(folder: Place) -> None:
    """Assert that a new key of a merge-on-read table begins in a base file, and that what is found is appended."""
    table = below(folder, "t")
    write(table, rows(1, 2, value=1), table=LOGGED)
    group = home(table, 1)
    result = write(table, [rows(1, 3, value=2), rows(2, value=2)])
    assert (result.files, result.log_files, result.inserts, result.updates) == (1, 0, 1, 2)
    assert {home(table, key) for key in (1, 2, 3)} == {group}

    result = write(table, [rows(1, value=3), rows(2, value=3)])
    assert (result.files, result.log_files, result.updates) == (0, 1, 2)
    result = write(table, rows(1, 4, value=4))
    assert (result.files, result.log_files, result.inserts, result.updates) == (1, 1, 1, 1)
    assert home(table, 4) != group, "a file group with log files takes no new keys in"
    assert all(file_slice.base is not None for file_slice in slices(table))
    assert rows_of(table, "id", "value") == [("k1", 4), ("k2", 3), ("k3", 2), ("k4", 4)]
    assert_healthy(table)


def check_held_group(folder: Place) -> None:
    """Assert that new keys join no small file that a pending clustering, or compaction, is going to read."""
    table = below(folder, "t")
    write(table, [rows(1, value=1), rows(1, value=1, p="b")], table=TABLE)
    small = [file_slice for file_slice in slices(table) if file_slice.partition_path == "a"]
    held = {(file_slice.partition_path, file_slice.file_id) for file_slice in small}
    at = request_clustering(table, small)
    write(table, rows(2, value=2))
    assert ("a", home(table, 2)) not in held
    write(table, rows(2, value=3), operation="delete")
    take_back(table, at)
    pending = Instant(at, "compaction", State.REQUESTED)
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(
            patch,
            "file groups that plans hold",
            lambda *_: {(one.partition_path, one.file_id): pending for one in slices(table)},
        )
        write(table, rows(2, value=2))
    assert ("a", home(table, 2)) not in held
    write(table, rows(2, value=3), operation="delete")
    write(table, rows(3, value=3))
    assert ("a", home(table, 3)) in {(one.partition_path, one.file_id) for one in slices(table)}


def check_placed(folder: Place, made: TableSettings = TABLE) -> None:
    """Assert that placed rows go where they say, and that each attempt makes the same files."""
    table = below(folder, "t")
    write(table, [rows(1, 2, value=1), rows(1, value=1, p="b")], table=made, settings=APART)
    file_id = home(table, 2)
    parts = [
        pa.concat_tables([said(rows(1, 2, value=2), file_id), said(rows(5, 6, value=2), "+0")]),
        pa.concat_tables([said(rows(7, value=2), "+1"), said(rows(9, value=2, p="b"), "+0")]),
    ]
    work = plan(table, parts[0].schema, settings=PLACED)
    first, again = task(work, parts[0], 0, attempt=7), task(work, parts[0], 0, attempt=8)
    assert [outcome.group for outcome in first.written] == [outcome.group for outcome in again.written]
    done = commit_write(work, [again, task(work, parts[1], 1)])

    assert (done.inserts, done.updates) == (4, 2)
    assert {home(table, 5), home(table, 6)} == {home(table, 5)}
    assert len({file_id, home(table, 5), home(table, 7), home(table, 9)}) == 4
    assert rows_of(table, "p", "id", "value") == [
        *(("a", f"k{key}", 2) for key in (1, 2, 5, 6, 7)),
        ("b", "k1", 1),
        ("b", "k9", 2),
    ]
    assert_healthy(table)


def smallest_files(table: Place, bounds: WriteSettings) -> dict[str, str]:
    """Return the file group that new rows of each partition of a merge-on-read table are to join, if any.

    It is that of the smallest base file below the bound for small files, among those that have no log files and are in
    no pending compaction.
    """
    storage = open_storage(str(table))
    try:
        config = load_config(storage)
    except TableNotFoundError:
        return {}
    timeline = Table(storage, config).timeline()
    held = held_groups(pending_compactions(timeline))
    view = open_view(timeline)
    smallest_groups = {}
    for path in view.partitions():
        small = [
            (file_slice.base.size, file_id)
            for file_id, file_slice in view.slices(path).items()
            if file_slice.base
            and not file_slice.logs
            and file_slice.group not in held
            and file_slice.base.size < bounds.lookup.sizes.small
        ]
        if small:
            smallest_groups[path.replace("/", "-")] = min(small)[1]
    return smallest_groups
