"""Streams of tables that are upgraded while the streams stand still: no write is read twice, and none is left out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi import arrow
from pyhudi.reader.streams.offsets import INITIAL, Offset, parse_offset
from pyhudi.reader.streams.table_stream import TableStream
from pyhudi.reader.streams.terms import BatchLimits, StreamTerms
from support.attempts import rows
from support.drive import KEYED, rows_of
from support.recorded.recorded_version_6 import unpack
from support.rules.health import errors
from support.streams import DrivenQuery

STEPS: dict[str, tuple[Callable[[arrow.Table], object], ...]] = {
    "8": (lambda table: table.upgrade(to=8),),
    "9": (lambda table: table.upgrade(),),
    "8, then 9": (lambda table: table.upgrade(to=8), lambda table: table.upgrade()),
    "9, then 8": (lambda table: table.upgrade(), lambda table: table.downgrade()),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("made"))


def stream(path: Path) -> TableStream:
    """Return a stream of one commit a batch, as a new process has it."""
    return TableStream(str(path), {}, StreamTerms("earliest", BatchLimits(commits=1)))


def kept(offset: Offset, *, of_apache_hudi: bool = False) -> Offset:
    """Return an offset as a checkpoint gives it back; Apache Hudi's has the time alone."""
    fields = offset.to_fields()
    return parse_offset({"offsetCommitTime": offset.time} if of_apache_hudi else fields, "t")


def batches(path: Path, start: Offset) -> list[tuple[Offset, Offset]]:
    """Return the batches up to what is complete."""
    offset_ranges = []
    while (end := stream(path).latest(start)) != start:
        offset_ranges.append((start, end))
        start = kept(end)
    return offset_ranges


def read(path: Path, start: Offset, end: Offset) -> list[str]:
    """Return the requested times of the writes that a batch has."""
    batch = stream(path).batch(start, end)
    window = None if batch is None else batch.moment.window
    return [] if window is None else [instant.requested_time for instant in window.instants]


@pytest.mark.parametrize("of_apache_hudi", [False, True])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", ["cow_past", "cow_defaults"])
def test_a_stream_goes_on_from_each_of_its_offsets(
    made: Path, tmp_path: Path, name: str, steps: str, of_apache_hudi: bool
) -> None:
    path = Path(shutil.copytree(made / name, tmp_path / name))
    before = batches(path, INITIAL)
    writes = [read(path, *batch) for batch in before]
    assert len(before) > 1
    assert all(len(each) >= 1 for each in writes)

    for step in STEPS[steps]:
        step(arrow.Table(path))

    for number, (start, end) in enumerate(before):
        begun, ended = (kept(offset, of_apache_hudi=of_apache_hudi) for offset in (start, end))
        begun = INITIAL if start == INITIAL else begun
        assert read(path, begun, ended) == writes[number]
        later = [time for batch in batches(path, ended) for time in read(path, *batch)]
        assert later == [time for each in writes[number + 1 :] for time in each]
    last = before[-1][1]
    arrow.Table(path).upsert(arrow.Table(path).read().slice(0, 1))
    [(_, newest)] = batches(path, kept(last))
    assert len(read(path, kept(last), newest)) == 1


@pytest.mark.parametrize("steps", STEPS)
def test_a_batch_that_a_sink_repeats_after_the_upgrade_is_written_once(tmp_path: Path, steps: str) -> None:
    path = tmp_path / "t"
    query = DrivenQuery(path, replace(KEYED, version=6))
    for number in range(2):
        query.run(number, rows(number, value=number, ts=number))
    wanted = rows_of(path, "id", "value")

    for step in STEPS[steps]:
        step(arrow.Table(path))
    again = replace(query.restarted(), table=KEYED)
    again.run(1, rows(1, value=99, ts=99))
    assert rows_of(path, "id", "value") == wanted

    again.run(2, rows(2, value=2, ts=2))
    assert len(rows_of(path, "id", "value")) == 3
    assert errors(path) == []
