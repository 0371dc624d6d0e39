"""Log files joined by either side: each reads, continues and compacts them, and does what the other one planned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from interop.test_merge_on_read import AGAIN, BASE, BLOCKS, IN_TIME, MEETINGS, Shared, parsed
from pyhudi.operations.write.commit import commit_write
from pyspark.sql import SparkSession
from support.drawn.histories import ROOMY
from support.drawn.upkept import OFF
from support.drive import plan, task
from support.made.compacting import blocks, join, plan_join, slices, timeline_of
from support.models.model import SCHEMA, Step

pytestmark = pytest.mark.interop

INLINE = {
    "hoodie__log__compaction__inline": "true",
    "hoodie__log__compaction__blocks__threshold": "2",
    "hoodie__compact__inline": "false",
}


@pytest.fixture
def shared(tmp_path: Path, spark: SparkSession, apache: ApacheHudi) -> Shared:
    return Shared(tmp_path / "a table", spark, apache)


def joined(path: Path) -> list[str]:
    """Return the log compactions of a table."""
    timeline = timeline_of(path)
    writes = [one for one in timeline.writes if one.action == "deltacommit"]
    return [one.requested_time for one in writes if timeline.files.read_commit(one).operation_type == "LOG_COMPACT"]


def test_what_we_joined_is_read_continued_and_compacted_by_them(shared: Shared) -> None:
    """Rows and deletes of every kind, from blocks of both formats, joined once and then again."""
    shared.ours(BASE)
    shared.theirs(MEETINGS)
    shared.ours("k5 0, k6 0, x99 0", "delete")
    shared.ours(AGAIN, **{BLOCKS.replace(".", "__"): "avro"})
    assert join(shared.path).files > 3
    shared.check()

    shared.theirs(IN_TIME)
    shared.ours("k8 0, k9 0", "delete")
    again = join(shared.path)
    shared.check()
    assert any(blocks(shared.path, file_slice) == [again.instant] for file_slice in slices(shared.path))

    shared.theirs("k10 99, k3 19", hoodie__compact__inline="true", hoodie__compact__inline__max__delta__commits="1")
    shared.model.compact(elsewhere=True)
    shared.check()
    assert not any(file_slice.logs for file_slice in slices(shared.path))
    shared.ours("k3 1, k8 1, -k10 98")
    shared.check()


def test_each_carries_out_what_the_other_planned(shared: Shared) -> None:
    """Ours by their next write; theirs, of which a process that died left the plan, by us.

    No delete is without a value: Apache Hudi joins both kinds into one block, which hudi-rs does not take.
    """
    shared.ours(BASE)
    shared.ours(MEETINGS)
    shared.ours("-k5 20, k6 12")
    plan = plan_join(shared.path)
    shared.theirs(AGAIN, **INLINE)
    assert plan.instant in joined(shared.path)
    shared.check()

    shared.theirs(IN_TIME)
    shared.theirs("k4 40, k0 41", **INLINE)
    last = joined(shared.path)[-1]
    assert last > plan.instant
    shared.check()
    for file in shared.path.rglob(f"*{last}*"):
        if file.is_file() and not file.name.endswith("logcompaction.requested"):
            file.unlink()
    assert [one.requested_time for one in timeline_of(shared.path).pending] == [last]

    assert join(shared.path).instant == last
    shared.check()
    shared.theirs("k4 39, k1 50", **INLINE)
    shared.ours("-k4 42")
    shared.check()


def test_all_readers_see_a_write_that_was_at_work_behind_what_came_before_it(shared: Shared) -> None:
    """The joined log files have a time right before the write's, and complete before it."""
    shared.ours(BASE)
    shared.ours(MEETINGS)
    shared.ours("-k5 20, k6 12")
    rows = pa.Table.from_pylist(parsed("k0 20, k6 12, -k2 10, k7 30"), SCHEMA)
    late = plan(shared.path, SCHEMA, settings=replace(ROOMY, upkeep=OFF))
    late_result = task(late, rows, 0)

    found = join(shared.path)
    assert found.files
    assert found.instant < late_result.instant_time
    shared.check()

    commit_write(late, [late_result])
    shared.model.apply(Step("upsert", rows.to_pylist(), 1, 0, hands=(tuple(rows.to_pylist()),)))
    shared.check()
    shared.theirs(AGAIN, **INLINE)
    shared.check()
    shared.theirs("k10 99", hoodie__compact__inline="true", hoodie__compact__inline__max__delta__commits="1")
    shared.model.compact()
    shared.check()


def test_what_nobody_replaces_is_passed_over_by_all(shared: Shared) -> None:
    """Apache Hudi compacts file groups of which a log compaction is pending; that one is taken back here."""
    shared.ours(BASE)
    shared.ours(MEETINGS)
    shared.ours(AGAIN)
    plan = plan_join(shared.path)
    schedules = {"hoodie__compact__schedule__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
    shared.theirs("k3 21, -k4 20", **schedules)
    shared.model.schedule()
    shared.check()

    done = join(shared.path)

    assert "has nothing left to merge" in done.skipped
    assert timeline_of(shared.path).find(plan.instant) is None
    shared.check()
    shared.run_theirs()
    shared.model.compact()
    shared.check()
