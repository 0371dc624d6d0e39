"""Batches of streams whose table another writer changed between their tasks and their commit, which plans again."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyhudi.errors import (
    CommitConflictError,
    ConcurrentWriteError,
    NullOrderingError,
    OptionConflictError,
    SchemaMismatchError,
)
from pyhudi.operations.planning.request import TableSettings
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.micro_batch import abort_batch
from pyhudi.storage import open_storage
from pyhudi.timeline.writers.owner import Claim
from support.attempts import SCHEMA, parted, rows
from support.drive import KEYED, plan, rows_of, task, write
from support.made.compacting import timeline_of
from support.places import files_below
from support.rules.ends import assert_whole
from support.seams import patch_seam, read_seam
from support.streams import STREAMED, DrivenQuery, instants, pending, query, sent
from support.write_settings import write_settings

BOTH = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
FILLS = write_settings(STREAMED, reconcile=True)
# One option, as most users give: the rest is chosen by the first writer.
PLAIN = TableSettings(record_key_fields=("id",))
NARROW = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("value", pa.int32())])


def with_text(found: pa.Table, name: str, text: str) -> pa.Table:
    return found.append_column(name, pa.array([text] * found.num_rows))


def other(path: Path, given: pa.Table, **said: object) -> None:
    """Write as another writer, with columns of its own."""
    write(path / "t", given, **said)  # type: ignore[arg-type]


def without_noted_index(path: Path) -> None:
    """Take the index out of the properties, as Apache Hudi notes none."""
    properties = path / ".hoodie/hoodie.properties"
    lines = properties.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(("hoodie.index.type", "hoodie.table.checksum"))]
    properties.write_text("\n".join([*kept, ""]), encoding="utf-8")


# --- columns


@BOTH
@pytest.mark.parametrize("key", [1, 5], ids=["same rows", "other rows"])
def test_rows_get_the_columns_that_another_write_added(tmp_path: Path, kind: str, key: int) -> None:
    stream = query(tmp_path, kind, settings=FILLS)
    stream.run(0, rows(1, 2, value=1))
    messages = stream.tasks(1, [rows(1, value=2, ts=2), rows(3, value=2, ts=2)])
    other(tmp_path, with_text(rows(key, value=3), "more", "x"), table=stream.table)

    result = stream.commit(messages)

    found = {row[0]: row[1:] for row in rows_of(tmp_path / "t", "id", "value", "more")}
    assert found == {"k1": (2, None), "k2": (1, None), "k3": (2, None)} | ({} if key == 1 else {"k5": (3, "x")})
    assert result.attempts == 2
    assert_whole(tmp_path / "t")
    stream.run(2, rows(9, value=1))


@BOTH
def test_both_add_columns(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind, settings=FILLS)
    stream.run(0, rows(1, value=1))
    wider = replace(stream, schema=SCHEMA.append(pa.field("mine", pa.string())))
    messages = wider.tasks(1, [with_text(rows(1, value=2, ts=2), "mine", "m")])
    other(tmp_path, with_text(rows(5, value=3), "more", "x"), table=stream.table)

    result = wider.commit(messages)

    assert rows_of(tmp_path / "t", "id", "value", "more", "mine") == [("k1", 2, None, "m"), ("k5", 3, "x", None)]
    assert [str(change) for change in result.schema_changes] == ["mine string (new)"]
    assert_whole(tmp_path / "t")


@BOTH
def test_rows_get_a_wider_type(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind, schema=NARROW)
    stream.run(0, rows(1, 2, value=1).cast(NARROW))
    messages = stream.tasks(1, [rows(1, value=2, ts=2).cast(NARROW)])
    other(tmp_path, rows(2, value=1 << 40, ts=3), table=stream.table)

    stream.commit(messages)

    assert rows_of(tmp_path / "t", "id", "value") == [("k1", 2), ("k2", 1 << 40)]
    assert_whole(tmp_path / "t")


def test_a_plain_write_under_which_a_column_became_wider_is_a_conflict(tmp_path: Path) -> None:
    """It once said that its own column had a wrong type."""
    settings = write_settings(STREAMED, hand_over=False)
    write(tmp_path / "t", rows(1, value=1).cast(NARROW), table=KEYED, settings=settings)
    slow = plan(tmp_path / "t", NARROW, settings=settings)
    handed = [task(slow, rows(1, value=2, ts=2).cast(NARROW), 0)]
    other(tmp_path, rows(1, value=1 << 40, ts=3))

    with pytest.raises(CommitConflictError, match=r"changed the table's columns \('value'\)"):
        commit_write(slow, handed)


def test_columns_that_the_rows_may_not_lack_end_the_query_by_name(tmp_path: Path) -> None:
    stream = query(tmp_path, "COPY_ON_WRITE")
    stream.run(0, rows(1, value=1))
    messages = stream.tasks(1, [rows(1, value=2, ts=2)])
    other(tmp_path, with_text(rows(1, value=3), "more", "x"), table=stream.table)

    with pytest.raises(SchemaMismatchError, match="more"):
        stream.commit(messages)
    abort_batch(sent(messages))

    assert not pending(tmp_path)
    key = messages[0].plan.transaction.key
    left = [name for name in files_below(tmp_path / "t") if messages[0].result.instant_time in name or key in name]
    assert [name for name in left if "/sealed/" not in name and "/notes/" not in name] == []


@BOTH
def test_deletes_keep_their_keys(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind, operation="delete")
    other(tmp_path, rows(1, 2, value=1), table=stream.table)
    messages = stream.tasks(1, [rows(1, value=2, ts=2)])
    other(tmp_path, with_text(rows(2, value=3, ts=2), "more", "x"), table=stream.table)

    stream.commit(messages)

    assert rows_of(tmp_path / "t", "id", "value", "more") == [("k2", 3, "x")]


@pytest.mark.parametrize("operation", ["delete", "delete_partition"])
def test_keys_and_partitions_of_another_table_end_the_query(tmp_path: Path, operation: str) -> None:
    """The table was dropped and made with other partitions between the plan and the tasks, which keep no columns."""
    first = parted("a", 1, value=1)
    table = replace(PLAIN, partition_fields=("p",)) if operation == "delete_partition" else PLAIN
    other(tmp_path, first, table=table)
    stream = DrivenQuery(tmp_path / "t", TableSettings(), operation=operation, schema=first.schema)
    planned = stream.planned()
    shutil.rmtree(tmp_path / "t")
    other(tmp_path, first, table=replace(PLAIN, partition_fields=("p",), hive_style=True))
    messages = stream.tasks(1, [first], planned)

    with pytest.raises(CommitConflictError, match="with other keys or partitions"):
        stream.commit(messages)

    assert rows_of(tmp_path / "t", "id") == [("k1",)]


def test_deletes_take_the_lookup_index_that_another_writer_notes(tmp_path: Path) -> None:
    table = replace(PLAIN, index_type="SIMPLE")
    other(tmp_path, rows(1, 2, 3, value=1), table=table)
    without_noted_index(tmp_path / "t")
    stream = DrivenQuery(tmp_path / "t", TableSettings(), operation="delete")
    messages = stream.tasks(1, [rows(1, value=2)])
    other(tmp_path, rows(1, 3, value=5), table=TableSettings(index_type="BLOOM"))

    stream.commit(messages)

    assert rows_of(tmp_path / "t", "id", "value") == [("k2", 1), ("k3", 5)]


@BOTH
def test_mode_complete_replaces_columns_that_another_write_added(tmp_path: Path, kind: str) -> None:
    stream = query(tmp_path, kind, overwrite=True)
    stream.run(0, rows(1, 2, value=1))
    messages = stream.tasks(1, [rows(1, value=2, ts=2)])
    other(tmp_path, with_text(rows(2, value=3, ts=2), "more", "x"), table=stream.table)

    stream.commit(messages)

    assert rows_of(tmp_path / "t", "id", "value") == [("k1", 2)]
    assert_whole(tmp_path / "t")


def test_partial_rows_get_a_wider_type(tmp_path: Path) -> None:
    stream = query(tmp_path, "MERGE_ON_READ", settings=replace(STREAMED, partial_update=True))
    part = pa.schema([field for field in NARROW if field.name != "ts"])
    stream = replace(stream, schema=part, table=replace(stream.table, ordering_fields=None))
    other(tmp_path, rows(1, 2, value=1).cast(NARROW), table=stream.table)
    messages = stream.tasks(1, [rows(1, value=2).cast(NARROW).select(part.names)])
    other(tmp_path, rows(2, value=1 << 40, ts=3), table=stream.table)

    stream.commit(messages)

    assert rows_of(tmp_path / "t", "id", "ts", "value") == [("k1", 1, 2), ("k2", 3, 1 << 40)]


# --- a table that another writer makes, or that is put back


@pytest.mark.parametrize(
    "theirs",
    [
        replace(PLAIN, bucket_count=3),
        replace(PLAIN, index_type="SIMPLE", table_type="MERGE_ON_READ"),
        replace(PLAIN, index_type="GLOBAL_BLOOM", partition_fields=("p",)),
        replace(PLAIN, partition_fields=("p",), bucket_count=2, hive_style=True),
        replace(PLAIN, ordering_fields=("ts",), version=8, table_type="MERGE_ON_READ"),
        replace(PLAIN, timezone="LOCAL"),
    ],
    ids=["buckets", "index", "global index", "partitions", "order", "zone"],
)
def test_rows_go_where_the_table_that_another_writer_made_has_them(tmp_path: Path, theirs: TableSettings) -> None:
    first = [parted("a", 1, 2, 3, value=1), parted("b", 4, 5, value=1)]
    stream = DrivenQuery(tmp_path / "t", PLAIN, schema=first[0].schema)
    messages = stream.tasks(0, first)
    other(tmp_path, parted("a", 1, 7, value=9), table=theirs)

    result = stream.commit(messages)

    expected = {f"k{key}": 1 for key in range(1, 6)} | {"k7": 9}
    assert sorted(rows_of(tmp_path / "t", "id", "value")) == sorted(expected.items())
    assert result.attempts > 1
    assert_whole(tmp_path / "t")
    stream.run(1, parted("b", 4, value=5))
    assert sorted(rows_of(tmp_path / "t", "id", "value")) == sorted((expected | {"k4": 5}).items())
    assert_whole(tmp_path / "t")


@pytest.mark.parametrize("partitioned", [False, True])
def test_keys_are_spelt_by_the_types_of_the_table_that_another_writer_made(tmp_path: Path, partitioned: bool) -> None:
    """By one plan 5 is the key, or partition, 5, and by the other 5.00."""

    def given(kind: pa.DataType, value: int) -> pa.Table:
        five = pa.array([Decimal(5)]).cast(kind)
        return pa.table({"n": five, "id": ["k1"], "value": [value]})

    table = replace(PLAIN, partition_fields=("n",)) if partitioned else TableSettings(record_key_fields=("n",))
    mine, theirs = given(pa.decimal128(5, 0), 1), given(pa.decimal128(9, 2), 9)
    stream = DrivenQuery(tmp_path / "t", table, schema=mine.schema)
    messages = stream.tasks(0, [mine])
    other(tmp_path, theirs, table=table)

    if partitioned:
        with pytest.raises(CommitConflictError, match="with other keys or partitions"):
            stream.commit(messages)
    else:
        stream.commit(messages)
    assert rows_of(tmp_path / "t", "n", "value") == [(Decimal("5.00"), 9 if partitioned else 1)]


def test_rows_are_ordered_by_the_field_of_the_table_that_another_writer_made(tmp_path: Path) -> None:
    stream = DrivenQuery(tmp_path / "t", PLAIN)
    messages = stream.tasks(0, [rows(1, value=1, ts=5).set_column(1, "ts", pa.array([None], pa.int64()))])
    other(tmp_path, rows(2, value=9, ts=3), table=replace(PLAIN, ordering_fields=("ts",)))

    with pytest.raises(NullOrderingError, match="'ts' is null in 1 of 1 rows"):
        stream.commit(messages)

    assert rows_of(tmp_path / "t", "id") == [("k2",)]


def test_rows_whose_order_the_first_plan_did_not_keep_end_the_query(tmp_path: Path) -> None:
    """Under a global index the later of two rows of one key wins, whatever their partitions."""
    table = replace(PLAIN, partition_fields=("p",))
    first = [pa.concat_tables([parted("a", 9, value=0), parted("b", 1, value=1)]), parted("a", 1, value=2)]
    stream = DrivenQuery(tmp_path / "t", table, schema=first[0].schema)
    messages = stream.tasks(0, first)
    other(tmp_path, parted("a", 7, value=9), table=replace(table, index_type="GLOBAL_BLOOM"))

    with pytest.raises(CommitConflictError, match="with other keys or partitions"):
        stream.commit(messages)

    stream.restarted().run(0, *first)
    assert rows_of(tmp_path / "t", "id", "p", "value") == [("k1", "a", 2), ("k7", "a", 9), ("k9", "a", 0)]


def test_a_table_that_was_dropped_ends_the_query(tmp_path: Path) -> None:
    stream = query(tmp_path, "COPY_ON_WRITE")
    stream.run(0, rows(1, value=1))
    planned = stream.planned()
    shutil.rmtree(tmp_path / "t")
    messages = stream.tasks(1, [rows(2, value=2)], planned)

    with pytest.raises(CommitConflictError, match="The table was dropped meanwhile"):
        stream.commit(messages)


def test_options_that_the_made_table_contradicts_end_the_query_by_name(tmp_path: Path) -> None:
    stream = DrivenQuery(tmp_path / "t", replace(PLAIN, bucket_count=4))
    messages = stream.tasks(0, [rows(1, value=1)])
    other(tmp_path, rows(2, value=2), table=replace(PLAIN, bucket_count=2))

    with pytest.raises(OptionConflictError, match=r"num\.buckets is 4 here and 2 in the table"):
        stream.commit(messages)


@BOTH
def test_a_batch_is_written_on_top_of_a_restore(tmp_path: Path, kind: str) -> None:
    """The restore takes a column away that the rows have, and that they then add."""
    stream = query(tmp_path, kind)
    stream.run(0, rows(1, 2, value=1))
    storage, first = open_storage(str(tmp_path / "t")), instants(tmp_path)[0]
    savepoint(storage, first)
    other(tmp_path, with_text(rows(1, 6, value=3), "more", "x"), table=stream.table)
    wider = replace(stream, schema=SCHEMA.append(pa.field("more", pa.string())))
    planned = wider.planned()
    restore(storage, first)
    messages = wider.tasks(1, [with_text(rows(1, value=2, ts=2), "more", "y")], planned)

    result = wider.commit(messages)

    assert rows_of(tmp_path / "t", "id", "value", "more") == [("k1", 2, "y"), ("k2", 1, None)]
    assert [str(change) for change in result.schema_changes] == ["more string (new)"]
    assert_whole(tmp_path / "t")


@pytest.mark.parametrize("dies", [False, True])
def test_a_batch_waits_for_a_restore_at_work_and_for_no_dead_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """It began between two attempts, of which the first met new columns."""
    stream = query(tmp_path, "COPY_ON_WRITE", settings=FILLS)
    stream.run(0, rows(1, 2, value=1))
    storage, first = open_storage(str(tmp_path / "t")), instants(tmp_path)[0]
    savepoint(storage, first)
    messages = stream.tasks(1, [rows(1, value=2, ts=2)])
    other(tmp_path, with_text(rows(1, value=3), "more", "x"), table=stream.table)
    abort = read_seam("abort of an attempt")
    pauses: list[int] = []

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    def abort_and_restore(*given: object, **said: object) -> object:
        result = abort(*given, **said)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch_seam(patch, "take restored instants off the timeline", stop)
            restore(storage, first)
        pending = next(one for one in timeline_of(tmp_path / "t").pending if one.action == "restore")
        note = tmp_path / "t" / Claim(storage, pending.requested_time).path
        who = json.loads(note.read_text())
        assert who["pid"] == os.getpid()
        if dies:
            note.write_text(json.dumps({**who, "pid": 2**22 + 1}))
        return result

    def pause() -> None:
        pauses.append(len(instants(tmp_path)))
        restore(storage, first)

    patch_seam(monkeypatch, "abort of an attempt", abort_and_restore)
    patch_seam(monkeypatch, "pause between two looks for a restore", pause)
    if dies:
        with pytest.raises(ConcurrentWriteError, match=rf"run HudiTable.restore\('{first}'\) again"):
            stream.commit(messages)
        assert pauses == []
        return
    done = stream.commit(messages)

    assert (len(pauses), done.attempts) == (1, 2)
    assert not (tmp_path / "t" / Claim(storage, instants(tmp_path)[0]).folder).exists()
    assert rows_of(tmp_path / "t", "id", "value") == [("k1", 2), ("k2", 1)]
    assert_whole(tmp_path / "t")


def test_rows_that_an_undone_plan_made_wider_end_the_query(tmp_path: Path) -> None:
    """They were cast to the type that a restore took back; a restart casts the batch's rows to that of now."""
    small, wide = (pa.schema([("id", pa.string()), ("value", kind)]) for kind in (pa.float32(), pa.float64()))
    given = pa.table({"id": ["k1"], "value": [0.1]})
    stream = DrivenQuery(tmp_path / "t", PLAIN, schema=small)
    stream.run(0, given.cast(small))
    storage, first = open_storage(str(tmp_path / "t")), instants(tmp_path)[0]
    savepoint(storage, first)
    other(tmp_path, given.cast(wide))
    planned = stream.planned()
    restore(storage, first)
    messages = stream.tasks(1, [given.cast(small)], planned)

    with pytest.raises(CommitConflictError, match="other columns now than when the rows were taken in"):
        stream.commit(messages)

    assert stream.restarted().run(1, given.cast(small)).instant
