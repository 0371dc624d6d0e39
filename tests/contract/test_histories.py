"""Random histories of writes against a dict, whatever the partitioning, order, retries and duplicate attempts."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhudi.operations.settings import TableSettings, WriteSettings
from pyhudi.operations.write import commit_write
from support.drive import carry_out, plan, read, rows_of, task
from support.model import SCHEMA, Model, Step, histories
from support.readers import rows_by_hudi_rs

TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=3)
TINY = WriteSettings(batch_size=400, task_max_size=1200)
COLUMNS = ("p", "id", "ts", "value")


def _write(path: Path, step: Step, bounds: WriteSettings, chance: random.Random) -> None:
    planned = plan(path, SCHEMA, operation=step.operation, table=TABLE, settings=bounds)
    parts = step.parts()
    results = [task(planned, rows, number) for number, rows in enumerate(parts)]
    for number, rows in enumerate(parts):
        if chance.random() < 0.3:
            again = task(planned, rows, number, attempt=500 + number)
            if chance.random() < 0.5:
                results[number] = again
    commit_write(planned, results)


@settings(max_examples=200, deadline=None)
@given(histories(), st.booleans(), st.integers(0, 1 << 30))
def test_any_dealing_of_rows_gives_what_the_dict_says(history: list[Step], spills: bool, seed: int) -> None:
    """Partitioning, order, retries, duplicate attempts and spilling change nothing in the table's content."""
    model, chance = Model(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        for step in history:
            _write(Path(folder) / "t", step, TINY if spills else WriteSettings(), chance)
            model.apply(step)

            assert rows_of(Path(folder) / "t", *COLUMNS) == model.tuples()
        keys = read(Path(folder) / "t").column("_hoodie_record_key").to_pylist()
        assert len(keys) == len(model.rows)
        assert rows_by_hudi_rs(Path(folder) / "t", *COLUMNS) == model.tuples()


@settings(max_examples=50, deadline=None)
@given(histories(steps=4), st.booleans())
def test_colocated_writes_give_what_the_dict_says(history: list[Step], spills: bool) -> None:
    """A task that holds whole file groups merges them itself, within its bounds or through spills."""
    bounds = replace(TINY if spills else WriteSettings(), colocated=True)
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        for step in history:
            planned = plan(Path(folder) / "t", SCHEMA, operation=step.operation, table=TABLE, settings=bounds)
            carry_out(planned, _by_partition(step))
            model.apply(step)

            assert rows_of(Path(folder) / "t", *COLUMNS) == model.tuples()


def _by_partition(step: Step) -> list[pa.Table]:
    table = pa.concat_tables(step.parts())
    return [table.filter(pc.equal(table.column("p"), name)) for name in ("a", "b")]


def test_a_tie_goes_to_the_later_row_of_the_later_task(tmp_path: Path) -> None:
    """Among equal ordering values the higher Spark partition wins, then the further row, then the newer write."""

    def rows(*values: int) -> pa.Table:
        one = [{"id": "k", "p": "a", "ts": 7, "value": v, "_hoodie_is_deleted": False} for v in values]
        return pa.Table.from_pylist(one, SCHEMA)

    planned = plan(tmp_path / "t", SCHEMA, table=TABLE)
    results = [task(planned, rows(9, 8), 1), task(planned, rows(1, 2), 0)]
    commit_write(planned, results)
    assert rows_of(tmp_path / "t", "value") == [(8,)]

    carry_out(plan(tmp_path / "t", SCHEMA), [rows(3)])
    assert rows_of(tmp_path / "t", "value") == [(3,)]
