"""Histories of tables whose keys are unique whatever their partition, held against a dict by key alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.table.config.property_keys import COMMIT_TIME_ORDERING, COPY_ON_WRITE, EVENT_TIME_ORDERING
from pyhudi.table.files.output import Output
from support.drawn.spread_everywhere import write_spread
from support.drive import rows_of, write
from support.write_settings import write_settings

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("p", pa.string()),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("v", pa.int64()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)
KEYS = SCHEMA.empty_table().select(["id", "p"]).schema


class Row(NamedTuple):
    id: int
    p: str
    ts: int
    v: int
    gone: bool = False


@dataclass
class Model:
    """What a table of unique keys holds: by key, its row and the partition that it is in."""

    moves: bool
    ordered: bool
    rows: dict[int, tuple[str, Row]] = field(default_factory=dict)

    def upsert(self, rows: list[Row]) -> None:
        winners: dict[int, Row] = {}
        for row in rows:
            known = winners.get(row.id)
            if known is None or not self.ordered or row.ts >= known.ts:
                winners[row.id] = row
        for row in winners.values():
            path, old = self.rows.get(row.id, (row.p, None))
            if old is not None and self.ordered and old.ts > row.ts:
                continue
            if row.gone:
                self.rows.pop(row.id, None)
            else:
                self.rows[row.id] = (row.p if self.moves else path, row)

    def delete(self, keys: list[int]) -> None:
        for key in keys:
            self.rows.pop(key, None)

    @property
    def shown(self) -> list[tuple[Any, ...]]:
        return sorted((path, row.id, row.p, row.ts, row.v) for path, row in self.rows.values())


def parts_of(rows: list[Row], tasks: int) -> list[pa.Table]:
    """Return rows as tables of several tasks, in their order."""
    size = -(-len(rows) // tasks)
    chunks = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [pa.table([list(one) for one in zip(*chunk, strict=True)], schema=SCHEMA) for chunk in chunks]


def table(index: str, table_type: str = COPY_ON_WRITE, merge_mode: str = EVENT_TIME_ORDERING) -> TableSettings:
    return TableSettings(
        record_key_fields=("id",),
        partition_fields=("p",),
        ordering_fields=("ts",) if merge_mode == EVENT_TIME_ORDERING else None,
        merge_mode=merge_mode,
        index_type=index,
        table_type=table_type,
    )


def how(moves: bool = True, small: int = 1 << 20, **more: Any) -> WriteSettings:
    return write_settings(lookup=LookupSettings(moves_rows=moves, sizes=FileSizes(small=small)), **more)


def shown(path: Path) -> list[tuple[object, ...]]:
    return rows_of(path, "_hoodie_partition_path", "id", "p", "ts", "v")


ROWS = st.lists(
    st.builds(
        Row,
        id=st.integers(0, 7),
        p=st.sampled_from("xyz"),
        ts=st.integers(0, 4),
        v=st.integers(0, 10**6),
        gone=st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=10,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), ROWS, st.integers(1, 3)),
        st.tuples(st.just("upsert"), ROWS, st.integers(1, 3)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True), st.just(1)),
    ),
    min_size=2,
    max_size=6,
)


@dataclass(frozen=True)
class Shape:
    """How a history is lived through.

    Attributes:
        index: Of the table.
        table_type: Of the table.
        moves: Whether rows move to their own partitions.
        ordered: Whether the greater ordering value wins, and not the later row.
        small: Which files take new keys in.
        tiny: Whether memory, and a row group, have room for few rows.
        spread: Whether tasks settle the rows, and not the commit.
    """

    index: str
    table_type: str
    moves: bool = True
    ordered: bool = True
    small: int = 1 << 20
    tiny: bool = False
    spread: bool = False


def shapes(index: str, table_type: str, *, spread: bool = False) -> st.SearchStrategy[Shape]:
    """Return the shapes of tables of one index and type."""
    return st.builds(
        Shape,
        st.just(index),
        st.just(table_type),
        st.booleans(),
        st.booleans(),
        st.sampled_from([0, 1 << 20]),
        st.booleans(),
        st.just(spread),
    )


def check_history(path: Path, shape: Shape, steps: list[Any]) -> None:
    """Live through a history, and hold the table against the model after each step."""
    model = Model(shape.moves, shape.ordered)
    bounds = {"batch_size": 500, "output": Output(memory=2000, row_group_bytes=1)} if shape.tiny else {}
    settings = how(shape.moves, shape.small, **bounds)
    said = table(shape.index, shape.table_type, EVENT_TIME_ORDERING if shape.ordered else COMMIT_TIME_ORDERING)
    # A log file remembers how new a delete was, and a base file what was deleted since; a dict does neither.
    forgets = shape.table_type == COPY_ON_WRITE or not shape.ordered
    carry_out = write_spread if shape.spread else write
    for operation, what, tasks in steps:
        if operation == "upsert":
            rows = [row._replace(gone=row.gone and forgets) for row in what]
            carry_out(path, parts_of(rows, tasks), operation="upsert", table=said, settings=settings)
            model.upsert(rows)
        elif path.exists() and forgets:
            gone = pa.table([what, ["x"] * len(what)], schema=KEYS)
            carry_out(path, gone, operation="delete", settings=settings)
            model.delete(what)
        assert not path.exists() or shown(path) == model.shown
