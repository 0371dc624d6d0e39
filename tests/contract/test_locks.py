"""What a commit does where its table is locked, and another write completes right before it has the lock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyhudi.operations.write.commit import commit_write
from support.attempts import PARTED, parted
from support.drawn.upkept import OFF
from support.drive import DEFAULTS, plan, rows_of, task, write
from support.faults.locks import watch_lock
from support.rules.ends import assert_whole


def test_the_files_of_a_write_that_came_meanwhile_are_read_without_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, settings = replace(PARTED, index_type="GLOBAL_SIMPLE", bucket_count=None), replace(DEFAULTS, upkeep=OFF)
    write(tmp_path, parted("a", 1, value=1), table=made, settings=settings)
    trace = watch_lock(monkeypatch)
    trace.head("upsert")
    mine = plan(tmp_path, parted("a", 2, value=2).schema, settings=settings)
    result, others = task(mine, parted("a", 2, value=2), 0), [3]

    def write_meanwhile() -> None:
        if trace.lock.taken == 1 and others:
            key = others.pop()
            write(tmp_path, parted("b", key, value=key), settings=settings)

    trace.lock.enters = write_meanwhile
    commit_write(mine, [result])

    assert others == []
    assert trace.lock.broken == []
    assert rows_of(tmp_path, "id", "value") == [("k1", 1), ("k2", 2), ("k3", 3)]
    assert_whole(tmp_path)
