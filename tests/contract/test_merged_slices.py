"""A merged slice holds what a dict holds that goes by the rules of Apache Hudi's readers, entry by entry."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.storage import open_storage
from pyhudi.table.config import TableConfig
from pyhudi.table.schema.columns import with_meta
from support.log_slices import Gone, Rows, Slice

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
        name="t", table_type="MERGE_ON_READ", record_key_fields=["id"], ordering_fields=ordering, merge_mode=mode
    )
    return TableConfig({**made.properties, **more})


@dataclass(frozen=True)
class Entry:
    """What a log says of a key: a row, or a delete, of a delete block or of a row that says so of itself."""

    row: dict[str, Any]
    deletes: bool
    of_block: bool = False

    @property
    def has_no_order(self) -> bool:
        """Whether it is a delete with Apache Hudi's stand-in for an ordering value, the integer 0, or with none."""
        return self.deletes and self.row["ts"] in (None, 0)


def after(older: Entry | None, newer: Entry, mode: str) -> Entry:
    if older is None or mode == COMMIT or newer.has_no_order:
        return newer
    if older.has_no_order:
        return older if newer.of_block else newer
    return newer if newer.row["ts"] >= older.row["ts"] else older


def expected(base: list[dict[str, Any]], entries: list[tuple[str, Entry]], mode: str) -> dict[str, dict[str, Any]]:
    folded: dict[str, Entry] = {}
    for key, entry in entries:
        folded[key] = after(folded.get(key), entry, mode)
    result = {row["id"]: row for row in base}
    for key, entry in folded.items():
        old = result.get(key)
        if old is not None and mode == EVENT and not entry.has_no_order and entry.row["ts"] < old["ts"]:
            continue
        result.pop(key, None)
        if not entry.deletes:
            result[key] = entry.row
    return result


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[list[Rows | Gone]], list[tuple[str, Entry]]]:
    """Draw base rows, the blocks of some log files, and their entries one by one."""
    numbers = iter(range(1_000))

    def row(key: str, ts: int, gone: bool = False) -> dict[str, Any]:
        number = next(numbers)
        return {"id": key, "ts": ts, "seq": number, "text": "x" * (number % 40), "_hoodie_is_deleted": gone or None}

    # Not below 1: a row of a base file that says 0 would be no delete, and one of a log is.
    base = [row(key, draw(st.integers(1, 5))) for key in draw(st.lists(st.sampled_from(KEYS), unique=True))]
    logs: list[list[Rows | Gone]] = []
    entries: list[tuple[str, Entry]] = []
    one = st.tuples(st.sampled_from(KEYS), st.integers(0, 6), st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        blocks: list[Rows | Gone] = []
        for _ in range(draw(st.integers(1, 3))):
            drawn = draw(st.lists(one, min_size=1, max_size=6))
            if draw(st.booleans()):
                rows = [row(key, ts, gone and ts % 2 == 0) for key, ts, gone in drawn]
                blocks.append(Rows(rows))
                entries += [(one["id"], Entry(one, bool(one["_hoodie_is_deleted"]))) for one in rows]
            else:
                # 0 asks for no order, and such deletes stand in a block of their own behind the others.
                keys = sorted(((key, ts or None) for key, ts, _ in drawn), key=lambda pair: pair[1] is None)
                blocks.append(Gone(keys))
                entries += [(key, Entry({"ts": ts}, deletes=True, of_block=True)) for key, ts in keys]
        logs.append(blocks)
    return base, logs, entries


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("mode", [EVENT, COMMIT])
def test_a_slice_holds_what_a_dict_holds(tmp_path: Path, memory: int, mode: str) -> None:
    spills = open_storage(str(tmp_path))
    columns = schema(pa.int32())
    made = config("ts", mode=mode)

    @given(histories())
    @settings(max_examples=30, deadline=None)
    def check(history: Any) -> None:
        base, logs, entries = history
        one = Slice(open_storage(f"memory://{uuid.uuid4()}"), columns)
        if base:
            one.add_base(base)
        for blocks in logs:
            one.add_log(*blocks, ordering=["ts"])
        merged = one.merged(made, spills, memory=memory)

        rows = pa.Table.from_batches(merged.batches(with_meta(columns)), with_meta(columns)).to_pylist()
        found = {row["id"]: row["seq"] for row in rows}
        assert len(found) == len(rows)
        assert found == {key: row["seq"] for key, row in expected(base, entries, mode).items()}
        narrow = pa.schema([columns.field("seq")])
        alone = pa.Table.from_batches(one.merged(made, spills, memory=memory).batches(narrow), narrow)
        assert sorted(alone.column(0).to_pylist()) == sorted(found.values())
        assert merged.counts.records == len(entries)
        assert not list(tmp_path.iterdir())

    check()
