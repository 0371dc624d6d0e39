"""A merged slice holds what a dict holds that goes by the rules of Apache Hudi's readers, entry by entry.

Only a delete without an ordering value hides the base row of its key here, whatever comes after it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.errors import UnsupportedTableError
from pyhudi.storage import open_storage
from pyhudi.table.arrow.spill import local_spills
from pyhudi.table.config import TableConfig
from pyhudi.table.config.property_keys import PARTIAL_UPDATE_MODE, UNAVAILABLE_VALUE
from pyhudi.table.config.table_settings import TableSettings
from pyhudi.table.schema.columns import with_meta
from pyhudi.table.slices.merged_slice import MergedSlice
from support.made.log_slices import Gone, Rows, Slice
from support.share import share_of

COMMIT, EVENT = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"
KEYS = [f"k{n}" for n in range(6)]
MEMORY = [pytest.param(1 << 30, id="in memory"), pytest.param(3_000, id="judged first"), pytest.param(600, id="spilt")]


def schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("ts", kind),
            pa.field("seq", pa.int64(), nullable=False),
            pa.field("text", pa.string()),
            pa.field("op", pa.string()),
            pa.field("_hoodie_is_deleted", pa.bool_()),
        ]
    )


def config(*ordering: str, mode: str = EVENT, **more: str) -> TableConfig:
    made = TableConfig.new(
        TableSettings(
            name="t",
            table_type="MERGE_ON_READ",
            record_key_fields=("id",),
            ordering_fields=ordering,
            merge_mode=mode,
            index_type="BUCKET",
        )
    )
    return TableConfig({**made.properties, **more})


@dataclass(frozen=True)
class Entry:
    """What a log says of a key: a row or some columns of one, or a delete, of a delete block or of a row."""

    row: dict[str, Any]
    deletes: bool
    of_block: bool = False
    of_partial: bool = False
    is_whole: bool = True

    @property
    def ts(self) -> int:
        return self.row["ts"]  # type: ignore[no-any-return]

    @property
    def has_no_order(self) -> bool:
        """Whether it is a delete with Apache Hudi's stand-in for an ordering value, the integer 0, or with none."""
        return self.deletes and not self.ts


@dataclass(frozen=True)
class Model:
    """Merges one entry with another, as Apache Hudi does.

    Attributes:
        mode: The merge mode.
        partial: None where rows are whole; else which columns of a row leave those of the other as they are.
    """

    mode: str
    partial: str | None = None

    def lay(self, high: dict[str, Any], low: dict[str, Any]) -> dict[str, Any]:
        if self.partial is None:
            return high
        unsaid = {"nulls": None, "unavailable": "n/a"}.get(self.partial, object())
        return {**low, **{name: value for name, value in high.items() if name not in low or value != unsaid}}

    def after(self, older: Entry | None, newer: Entry) -> Entry:
        if older is None or (newer.has_no_order and not (older.has_no_order and newer.of_block and self.mode == EVENT)):
            return newer
        if self.mode == EVENT and older.has_no_order:
            return older if newer.of_block else newer
        high, low = (newer, older) if self.mode == COMMIT or newer.ts >= older.ts else (older, newer)
        if high.deletes or low.deletes:
            return high
        return Entry(self.lay(high.row, low.row), deletes=False, is_whole=high.is_whole or low.is_whole)

    def shown(self, base: list[dict[str, Any]], entries: list[tuple[str, Entry]]) -> list[dict[str, Any]]:
        folded: dict[str, Entry] = {}
        now = self
        for key, entry in entries:
            if entry.of_partial:
                # From the first block of partial updates on they are the only ones that Apache Hudi knows.
                now = replace(self, partial="columns")
            folded[key] = now.after(folded.get(key), entry)
        hidden = {key for key, entry in entries if self.mode == EVENT and entry.has_no_order}
        rows = []
        for key in dict.fromkeys(row["id"] for row in base):
            entry, copies = folded.pop(key, None), [Entry(row, deletes=False) for row in base if row["id"] == key]
            if entry is None or key not in hidden:
                results = copies if entry is None else [now.after(copy, entry) for copy in copies]
            else:
                results = [now.after(None, entry)]
            if entry is not None and key not in hidden and entry.is_whole and now.partial in {None, "columns"}:
                # A whole row stands in for all copies that it beats.
                stays = [copy for copy, result in zip(copies, results, strict=True) if result.row == copy.row]
                results = stays or [entry]
            rows += [result.row for result in results if not result.deletes]
        return [*rows, *(entry.row for entry in folded.values() if not entry.deletes)]


@st.composite
def histories(
    draw: st.DrawFn, partial: str | None = None, *, blocks_too: bool = False
) -> tuple[list[dict[str, Any]], list[list[Rows | Gone]], list[tuple[str, Entry]]]:
    """Draw base rows, the blocks of some log files, and their entries one by one."""
    numbers = iter(range(1_000))

    def row(key: str, ts: int, gone: bool = False) -> dict[str, Any]:
        number = next(numbers)
        op = draw(st.sampled_from([None, "n/a", "u"])) if partial else None
        text = None if op and number % 3 == 0 else "x" * (number % 40)
        return {"id": key, "ts": ts, "seq": number, "text": text, "op": op, "_hoodie_is_deleted": gone or None}

    # Not below 1: a row of a base file that says 0 would be no delete, and one of a log is.
    base = [row(key, draw(st.integers(1, 5))) for key in draw(st.lists(st.sampled_from(KEYS), max_size=8))]
    logs: list[list[Rows | Gone]] = []
    entries: list[tuple[str, Entry]] = []
    record = st.tuples(st.sampled_from(KEYS), st.integers(0, 6), st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        blocks: list[Rows | Gone] = []
        for _ in range(draw(st.integers(1, 3))):
            drawn = draw(st.lists(record, min_size=1, max_size=6))
            if draw(st.integers(0, 2)):
                rows = [row(key, ts, gone and ts % 2 == 0) for key, ts, gone in drawn]
                columns = None
                if (partial == "columns" or blocks_too) and draw(st.booleans()):
                    columns = ("ts", *draw(st.lists(st.sampled_from(["seq", "text", "op"]), unique=True)))
                blocks.append(Rows(rows, columns))
                said = [{name: one[name] for name in columns or one} for one in rows]
                entries += [
                    (
                        row["id"],
                        Entry(one, bool(one.get("_hoodie_is_deleted")), False, columns is not None, not columns),
                    )
                    for row, one in zip(rows, said, strict=True)
                ]
            else:
                # 0 asks for no order, and such deletes stand in a block of their own behind the others.
                keys = sorted(((key, ts or None) for key, ts, _ in drawn), key=lambda pair: pair[1] is None)
                blocks.append(Gone(keys))
                entries += [(key, Entry({"ts": ts}, deletes=True, of_block=True)) for key, ts in keys]
        logs.append(blocks)
    return base, logs, entries


def check(history: Any, columns: pa.Schema, made: TableConfig, model: Model, spills: Path, memory: int) -> None:
    base, logs, entries = history
    stored_slice = Slice(open_storage(f"memory://{uuid.uuid4()}"), columns)
    if base:
        stored_slice.add_base(base)
    for blocks in logs:
        stored_slice.add_log(*blocks, ordering=["ts"])

    def read(schema: pa.Schema) -> list[dict[str, Any]]:
        merged = stored_slice.merged(made, open_storage(str(spills)), memory=memory)
        rows: list[dict[str, Any]] = pa.Table.from_batches(merged.batches(schema), schema).to_pylist()
        assert merged.counts.records == len(entries)
        return rows

    wanted = [field.name for field in columns if field.name not in ("id", "_hoodie_is_deleted")]
    expected = sorted(([row.get(name) for name in wanted] for row in model.shown(base, entries)), key=repr)
    assert sorted(([row[name] for name in wanted] for row in read(with_meta(columns))), key=repr) == expected
    nothing = stored_slice.merged(made, open_storage(str(spills)), memory=memory).batches(pa.schema([]))
    assert sum(batch.num_rows for batch in nothing) == len(expected)
    texts = sorted((row["text"] for row in read(pa.schema([columns.field("text")]))), key=repr)
    assert texts == sorted((row[wanted.index("text")] for row in expected), key=repr)
    assert not list(spills.iterdir())


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("mode", [EVENT, COMMIT])
def test_a_slice_holds_what_a_dict_holds(tmp_path: Path, memory: int, mode: str) -> None:
    """Of a key that the base holds several times each row is met."""
    columns, made = schema(pa.int32()), config("ts", mode=mode)

    @given(histories())
    @settings(max_examples=share_of(10), deadline=None)
    def holds(history: Any) -> None:
        check(history, columns, made, Model(mode), tmp_path, memory)

    holds()


MODES = {
    "columns": {},
    "nulls": {PARTIAL_UPDATE_MODE: "IGNORE_DEFAULTS"},
    "unavailable": {PARTIAL_UPDATE_MODE: "FILL_UNAVAILABLE", UNAVAILABLE_VALUE: "n/a"},
}


@pytest.mark.parametrize(("mode", "memory"), [(EVENT, 1 << 30), (EVENT, 600), (COMMIT, 1 << 30)])
@pytest.mark.parametrize(("partial", "properties"), MODES.items())
def test_partial_updates_are_laid_over_one_another(
    tmp_path: Path, memory: int, mode: str, partial: str, properties: dict[str, str]
) -> None:
    columns = pa.schema([field.with_nullable(True) for field in schema(pa.int32())])
    made = config("ts", mode=mode, **properties)

    @given(histories(partial))
    @settings(max_examples=share_of(10), deadline=None)
    def holds(history: Any) -> None:
        check(history, columns, made, Model(mode, partial), tmp_path, memory)

    holds()


@pytest.mark.parametrize("mode", [EVENT, COMMIT])
@pytest.mark.parametrize("partial", ["nulls", "unavailable"])
def test_blocks_of_partial_updates_end_the_mode_of_their_table(tmp_path: Path, partial: str, mode: str) -> None:
    """What comes before them is laid together by it; from then on a null or a marker is a value like any other."""
    columns = pa.schema([field.with_nullable(True) for field in schema(pa.int32())])
    made = config("ts", mode=mode, **MODES[partial])

    @given(histories(partial, blocks_too=True))
    @settings(max_examples=share_of(20), deadline=None)
    def holds(history: Any) -> None:
        check(history, columns, made, Model(mode, partial), tmp_path, 1 << 30)

    holds()


def test_a_row_says_in_four_ways_that_it_is_a_delete(tmp_path: Path) -> None:
    """By the flag, by the table's marker, and by the operation that Apache Hudi notes, of which the column may go."""
    marked = {
        "hoodie.record.merge.property.hoodie.payload.delete.field": "op",
        "hoodie.record.merge.property.hoodie.payload.delete.marker": "gone",
    }
    noted = pa.schema([*schema(pa.int32()), pa.field("_hoodie_operation", pa.string())])
    stored_slice = Slice(open_storage(f"memory://{uuid.uuid4()}"), noted)
    stored_slice.add_base([{"id": f"k{n}", "ts": 5, "seq": n} for n in range(8)])
    said = [
        {"_hoodie_is_deleted": True},
        {"op": "gone"},
        {"_hoodie_operation": "D"},
        {"_hoodie_operation": "-U"},
        {"_hoodie_operation": "U"},
        {"op": "Gone", "_hoodie_is_deleted": False},
    ]
    stored_slice.add_log(Rows([{"id": f"k{n}", "ts": 6, "seq": 10 + n, **more} for n, more in enumerate(said)]))
    # Of these the first comes too late, and the second asks for no order.
    stored_slice.add_log(Rows([{"id": key, "ts": ts, "seq": 20, "op": "gone"} for key, ts in (("k6", 4), ("k7", 0))]))

    for columns in (noted, schema(pa.int32())):
        merged = MergedSlice(
            stored_slice.storage,
            config("ts", **marked),
            stored_slice.file_slice,
            columns,
            lambda time: True,
            memory=1 << 30,
            open_spill=local_spills(open_storage(str(tmp_path))),
        )
        batches = merged.batches(pa.schema([columns.field("seq")]))
        assert sorted(value for batch in batches for value in batch.column(0).to_pylist()) == [6, 14, 15]


def test_a_table_that_is_ordered_by_no_column_is_refused(tmp_path: Path) -> None:
    stored_slice = Slice(open_storage(f"memory://{uuid.uuid4()}"), schema(pa.int32()))
    stored_slice.add_log(Rows([{"id": "k0", "ts": 1, "seq": 1}]))

    with pytest.raises(UnsupportedTableError, match=r"orders rows by 'meta\.ts'"):
        stored_slice.merged(config("meta.ts"), open_storage(str(tmp_path)))


def test_a_delete_that_wins_before_partial_updates_stays_one_behind_a_delete_without_order(tmp_path: Path) -> None:
    """A row lies between the two deletes, so the later delete takes effect although the earlier delete has no order."""
    columns = pa.schema([field.with_nullable(True) for field in schema(pa.int32())])
    row = {"id": "k0", "ts": 0, "seq": 0, "text": "a", "op": None, "_hoodie_is_deleted": None}
    stored_slice = Slice(open_storage(f"memory://{uuid.uuid4()}"), columns)
    stored_slice.add_log(Rows([{**row, "_hoodie_is_deleted": True}, row]), Gone([("k0", 1)]), ordering=["ts"])
    stored_slice.add_log(Rows([row], ("ts",)), ordering=["ts"])

    merged = stored_slice.merged(config("ts", **MODES["nulls"]), open_storage(str(tmp_path)), memory=1 << 30)
    assert sum(batch.num_rows for batch in merged.batches(columns)) == 0
