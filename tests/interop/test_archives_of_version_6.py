"""Apache Hudi 0.15 and 1.2 go on from an archive of version 6 that pyhudi wrote, and pyhudi from theirs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop.apache_hudi import ApacheHudi
from pyhudi.operations.inspect.history import history
from pyhudi.operations.service_settings import ArchiveSettings
from pyhudi.operations.services.archive import archive
from pyhudi.storage import open_storage
from pyhudi.table.table import open_table
from pyhudi.timeline.instants import Instant
from pyhudi.timeline.metadata.codec import InstantBody
from support.by_options import write_without_spark
from support.made.old_archives import Record, body_of, records_of
from support.readers import read_without_spark
from support.recorded.recorded_past import AS_OF
from support.recorded.recorded_version_6 import NEW, OLD, shown, writes
from support.rules.health import errors

pytestmark = pytest.mark.interop

OPERATION = "hoodie.datasource.write.operation"
KEYED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.metadata.enable": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.index.type": "SIMPLE",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
# What has to be said to 1.2 for a table of version 6.
AS_SIX = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
ARCHIVES = {"hoodie.archive.automatic": "true"}
# Of each release by its own spelling.
CLEANS = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}
KEEPS_ALL = {"hoodie.clean.automatic": "false"}
SETTINGS = ArchiveSettings(min_commits=2, max_commits=3)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheHudi]:
    """Apache Hudi 0.15."""
    process = ApacheHudi(tmp_path_factory.mktemp("apache-hudi-0-15"), release=OLD)
    yield process
    process.close()


class Table:
    """A table that all three write, and every instant that it ever had."""

    def __init__(self, path: Path, old: ApacheHudi, new: ApacheHudi) -> None:
        self.path = path
        self.releases = {OLD: old, NEW: new}
        self.known: dict[str, Any] = {}
        self.count = 0

    def theirs(self, release: str, *operations: str, **options: str) -> None:
        """Write with Apache Hudi, a row with each operation and an update of all rows before."""
        for operation in operations:
            told = {**KEYED, OPERATION: operation, **(AS_SIX if release == NEW else {}), **options}
            self._look()
            self.releases[release].write(self.path, self._rows(), told)
            self._look()

    def ours(self) -> int:
        """Write with pyhudi, and archive; return how many instants went."""
        write_without_spark(self.path, self._rows(), {**KEYED, **KEEPS_ALL})
        self._look()
        return archive(open_storage(str(self.path)), SETTINGS).instants

    def check(self) -> None:
        """Assert that all readers see the same rows, and all that ever was on the timeline or in the archive."""
        rows = shown(read_without_spark(self.path))
        assert len(rows[1]) == self.count
        storage = open_storage(str(self.path))
        table = open_table(storage)
        held = table.archive.instants()
        active = {instant.identity for instant in table.timeline().completed}
        assert active | {instant.identity for instant in held} == set(self.known)
        bodies = table.archive.bodies(held)
        ours = {each.identity: self._written(each, body) for each, body in bodies.items() if each.is_write}
        assert ours == {each.identity: self.known[each.identity] for each in held if each.is_write}
        assert history(storage).num_rows == len(self.known)
        assert errors(self.path) == []
        for release, apache in self.releases.items():
            assert shown(apache.read(self.path)) == rows, release
            # The first write, in the archive by now, and the newest but one.
            for time, count in ((min(self.known).partition(".")[0], 1), (writes(self.path)[-2], self.count - 1)):
                past = shown(apache.read(self.path, {AS_OF: time}))
                assert past == shown(read_without_spark(self.path, {AS_OF: time})), release
                assert len(past[1]) == count
            theirs = apache.archived(self.path)
            assert set(theirs) == {each.identity for each in held}, release
            for each in held:
                body = theirs[each.identity]
                assert body is not None, release
                if each.is_write:
                    assert self._written(each, body.encode()) == self.known[each.identity], release

    def _rows(self) -> pa.Table:
        self.count += 1
        ids = [f"k{number}" for number in range(self.count)]
        ts = pa.array([self.count] * self.count, pa.int64())
        return pa.table({"id": ids, "p": ["a"] * self.count, "ts": ts})

    def _look(self) -> None:
        """Remember what is on the timeline."""
        if not self.path.exists():
            return
        timeline = open_table(open_storage(str(self.path))).timeline()
        for each in timeline.completed:
            body = self.path / timeline.files.path(each)
            self.known[each.identity] = self._written(each, body.read_bytes()) if each.is_write else None

    def _written(self, instant: Instant, body: bytes) -> Any:
        """Return what readers take from the body of a write."""
        return open_table(open_storage(str(self.path))).instants.codec.decode_files(
            InstantBody(body, instant.identity), replaces=instant.replaces
        )


def test_each_goes_on_from_the_archives_of_the_others(tmp_path: Path, old: ApacheHudi, apache: ApacheHudi) -> None:
    table = Table(tmp_path / "t", old, apache)
    three = ("upsert",) * 3
    table.theirs(OLD, *three, "upsert", "upsert", **KEEPS_ALL)
    assert table.ours() == 4
    table.check()
    table.theirs(OLD, *three, **KEEPS_ALL, **ARCHIVES)
    table.check()
    table.theirs(OLD, "upsert", **KEEPS_ALL)
    assert table.ours()
    table.theirs(NEW, *three, **KEEPS_ALL, **ARCHIVES)
    table.check()
    table.theirs(NEW, "upsert", **KEEPS_ALL)
    assert table.ours()
    table.check()


def test_pyhudi_archives_what_apache_hudi_archives_of_the_same_table(
    tmp_path: Path, old: ApacheHudi, apache: ApacheHudi
) -> None:
    """Record by record: each state, its time, and all that its file says."""
    for release in (OLD, NEW):
        table = Table(tmp_path / release, old, apache)
        # Apache Hudi archives cleans once there are more of them than writes that stay.
        table.theirs(release, "upsert", "insert_overwrite", *("upsert",) * 5, **CLEANS)
        mine = Path(shutil.copytree(table.path, tmp_path / f"{release} of ours"))
        archive(open_storage(str(mine)), SETTINGS)
        table.theirs(release, "upsert", **CLEANS, **ARCHIVES)

        folder = {OLD: "archived", NEW: "history"}[release]
        theirs = {_state_of(record): record for record in records_of(table.path / ".hoodie" / folder)}
        ours = {_state_of(record): record for record in records_of(mine / ".hoodie" / folder)}
        both = sorted(theirs.keys() & ours.keys())
        assert {state[1] for state in both} >= {"commit", "replacecommit", "clean"}
        for state in both:
            assert _same(ours[state], release) == _same(theirs[state], release), state


def _state_of(record: Record) -> tuple[str, str, str]:
    return record["commitTime"], record["actionType"], record["actionState"]


def _same(record: Record, release: str) -> Any:
    """Return what both archive: 0.15 has a commit for a requested one, a note in each, and fewer statistics."""
    if release == NEW:
        return record
    changed = json.loads(json.dumps({**record, **body_of(record)}))
    if record["actionType"] == "commit" and record["actionState"] == "REQUESTED":
        return {**changed, "hoodieCommitMetadata": None}
    for value in body_of(changed).values():
        value.pop("compacted", None)
        extra = value.get("extraMetadata") or {}
        extra.pop("ROLLING_STAT", None)
        for stats in (value.get("partitionToWriteStats") or {}).values():
            for stat in stats:
                for name in list(stat)[list(stat).index("fileSizeInBytes") + 1 :]:
                    del stat[name]
    return changed
