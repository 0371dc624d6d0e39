"""How many bytes travel and stay for each file of a write: in the messages of tasks, and in decisions."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyhudi.operations.planning.request import WriteSettings
from pyhudi.operations.transaction.write_stats import commit_metadata
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.task import TaskResult
from pyhudi.table.files.file_group import BaseFile, FileSlice
from pyhudi.table.files.names import BaseFileName, FileGroupId, WriteToken, new_bucket_file_id
from pyhudi.table.merging.merger import MergeCounts
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.writers.decisions import Decision, DecisionKind
from pyhudi.writer.written_file import FileKind, WrittenFile
from support.drive import KEYED, plan, task
from support.made.following import KeepingFollower
from support.seams import patch_seam

_TIME, _BEFORE, _KIB, _MIB = "20261129102119584", "20261129102119582", 1 << 10, 1 << 20
_TEXTS = [f"text_of_a_column_{number}" for number in range(10)]
_NUMBERS = [f"number_of_a_column_{number}" for number in range(9)]
_ONE_BUCKET = replace(KEYED, bucket_count=1)
_COLUMNS = ("id", *_TEXTS, *_NUMBERS)


def test_a_message_of_a_task_has_less_than_four_kibibytes_a_file_with_bounds_of_twenty_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {name: [f"{letter * 100}é" for letter in "ab"] * 20 for name in _TEXTS}
    numbers = {name: [-(1 << 40), 1 << 40] * 20 for name in _NUMBERS}
    rows = pa.table({"id": [f"{number}" * 50 for number in range(40)], "ts": [1] * 40, **texts, **numbers})

    plain = _written(tmp_path / "t", rows)
    patch_seam(monkeypatch, "followers of a table", (KeepingFollower(columns=_COLUMNS),))
    first = _written(tmp_path / "u", rows)
    second = _written(tmp_path / "u", rows)

    for result in (first, second):
        (file,) = result.written
        assert {one.column for one in file.statistics or ()} == {*_COLUMNS}
        assert all(one.least and one.greatest and one.nulls == 0 for one in file.statistics or ())
        assert len(pickle.dumps(result)) < 4 * _KIB
    assert [file.statistics for file in plain.written] == [None]


def _written(path: Path, rows: pa.Table) -> TaskResult:
    settings = WriteSettings(colocated=True)
    planned = plan(path, rows.schema, operation="upsert", table=_ONE_BUCKET, settings=settings)
    result = task(planned, rows, 0)
    commit_write(planned, [result])
    return result


@pytest.mark.parametrize("kind", FileKind)
def test_a_decision_of_forty_thousand_files_has_less_than_sixteen_mebibytes(kind: FileKind) -> None:
    """Each file adds the same to it, so a hundredth of them tells the size of all."""
    instant = Instant(_TIME, "commit", State.COMPLETED, _TIME)
    work = SimpleNamespace(instant_time=_TIME, config=SimpleNamespace(name="t"), inflight=instant)
    files = [_file(kind, number) for number in range(400)]

    metadata = commit_metadata(work, pa.schema([("id", pa.string())]), files, "UPSERT", {})  # type: ignore[arg-type]
    decision = Decision(DecisionKind.MAKE, instant, encode(metadata)).encode()

    assert 100 * len(decision) < 16 * _MIB


def _file(kind: FileKind, number: int) -> WrittenFile:
    """Return a file as one task of thousands leaves it in a partition with two columns."""
    path, token = f"region=europe/day=2026-11-{number % 30 + 1:02d}", WriteToken(number, 12, 1_000_000 + number)
    group = FileGroupId(path, new_bucket_file_id(_BEFORE, path, number))
    names = [BaseFileName(group.file_id, token, time).format() for time in (_BEFORE, _TIME)]
    base = BaseFile(f"{path}/{names[0]}", 120 * _MIB, group.file_id, str(token), _BEFORE)
    counts = MergeCounts(inserts=1_000_000, updates=1_000_000, deletes=1_000_000)
    return WrittenFile(
        group, kind, FileSlice(group, _BEFORE, base), f"{path}/{names[1]}", 120 * _MIB, 2_000_000, counts, 1
    )
