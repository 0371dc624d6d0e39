"""Cleans held against a ledger of files that is kept by rules written down here a second time."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import fastavro
import pyarrow as pa
from pyhudi.errors import CommitConflictError, StorageError
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import ServiceResult
from pyhudi.operations.service_settings import (
    KEEP_LATEST_COMMITS,
    KEEP_LATEST_FILE_VERSIONS,
    ArchiveSettings,
    CleanSettings,
    Upkeep,
)
from pyhudi.operations.services.clean import clean
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.reader.query import AsOf
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.timeline.clock import next_time
from pyhudi.timeline.instants import Instant, State
from pyhudi.timeline.metadata.avro_codec import encode
from pyhudi.timeline.metadata.models import SavepointMetadata, SavepointPartition
from support.drive import carry_out, choosing_now, noted, plan, rows_of, task, write
from support.faults.long_ago import instants
from support.models.past import rows_of as shown
from support.places import Place, below, files_below

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("value", pa.int64())])
TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), bucket_count=2)
# Writes that leave cleaning to the test.
QUIET = WriteSettings(upkeep=Upkeep(CleanSettings(automatic=False), ArchiveSettings(automatic=False)))
POLICIES = (KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS)
TIMELINE = ".hoodie/timeline"

# Partition path, file id, instant.
Slice = tuple[str, str, str]


def rows(partition: str, *keys: str, value: int = 0) -> pa.Table:
    """Return rows of one partition."""
    return pa.table([list(keys), [partition] * len(keys), [value] * len(keys)], schema=SCHEMA)


def run_clean(path: Place, settings: CleanSettings, **options: bool) -> ServiceResult:
    """Clean a table through a storage of its own."""
    return clean(open_storage(str(path)), settings, **options)


def data_files(path: Place) -> set[str]:
    """Return the paths of a table's data files."""
    return {name for name in files_below(path) if name.endswith(".parquet") and not name.startswith(".hoodie")}


def slices_of(paths: Iterable[str]) -> set[Slice]:
    """Return the slices that base files make."""
    slices = set()
    for path in paths:
        partition, _, name = path.rpartition("/")
        file_id, _, instant = name.removesuffix(".parquet").split("_")
        slices.add((partition, file_id, instant))
    return slices


def save(path: Place, instant: str) -> None:
    """Make a savepoint as Apache Hudi does."""
    timeline = instants(path)
    storage = timeline.files.storage
    newest: dict[tuple[str, str], str] = {}
    for name in sorted(data_files(path), key=lambda one: one.rpartition("_")[2]):
        partition, file_id, time = slices_of([name]).pop()
        if time <= instant:
            newest[partition, file_id] = name.rpartition("/")[2]
    parts: dict[str, list[str]] = {}
    for (partition, _), name in newest.items():
        parts.setdefault(partition, []).append(name)
    metadata = SavepointMetadata(
        savepointed_by="",
        savepointed_at=0,
        comments="",
        partition_metadata={
            partition: SavepointPartition(partition_path=partition, savepoint_data_file=names)
            for partition, names in parts.items()
        },
    )
    at = next_time(int(storage.now() * 1000), timeline.greatest_time(), "UTC")
    timeline.files.start(Instant(instant, "savepoint", State.INFLIGHT))
    timeline.complete(Instant(instant, "savepoint", State.COMPLETED, at), encode(metadata))


def unsave(path: Place, instant: str) -> None:
    """Delete a savepoint."""
    timeline = instants(path)
    saved = next(one for one in timeline.completed if one.action == "savepoint" and one.requested_time == instant)
    timeline.files.storage.delete(
        timeline.files.path(saved), timeline.files.path(Instant(instant, "savepoint", State.INFLIGHT))
    )


@dataclass
class Ledger:
    """What lies in a local table's folder after writes and cleans, by the policies' own words.

    Attributes:
        path: The table.
        files: The slices that are there.
        replaced: When file groups were taken away.
        writes: Requested times of the completed writes, in order.
        saved: The slices that each savepoint keeps.
    """

    path: Path
    files: set[Slice] = field(default_factory=set)
    replaced: dict[tuple[str, str], str] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    saved: dict[str, set[Slice]] = field(default_factory=dict)

    def write(self, data: pa.Table, operation: str = "upsert") -> str:
        """Write rows, and take down what the instant says of files."""
        done = write(self.path, data, operation=operation, table=TABLE, settings=QUIET)
        self.note(done.instant)
        return done.instant

    def note(self, instant: str) -> None:
        """Take down what a completed write says of files."""
        [file] = (self.path / TIMELINE).glob(f"{instant}_*.*commit")
        with file.open("rb") as stream:
            [body] = list(fastavro.reader(stream))
        assert isinstance(body, dict)
        for stats in (body["partitionToWriteStats"] or {}).values():
            self.files |= slices_of(stat["path"] for stat in stats)
        for partition, ids in (body.get("partitionToReplaceFileIds") or {}).items():
            self.replaced |= {(partition, one): instant for one in ids}
        self.writes = sorted([*self.writes, instant])

    def save(self, instant: str) -> None:
        """Make a savepoint."""
        save(self.path, instant)
        groups: dict[tuple[str, str], Slice] = {}
        for one in sorted(self.files, key=lambda file_slice: file_slice[2]):
            if one[2] <= instant:
                groups[one[:2]] = one
        self.saved[instant] = set(groups.values())

    def unsave(self, instant: str) -> None:
        """Delete a savepoint."""
        unsave(self.path, instant)
        del self.saved[instant]

    def clean(self, settings: CleanSettings, *, pending: str = "") -> ServiceResult:
        """Clean the table, and strike out what the policy says; `pending` is a write that has not completed."""
        gone = self.expired(settings, pending)
        result = run_clean(self.path, settings)
        self.files -= gone
        assert result.files == len(gone), settings
        assert slices_of(data_files(self.path)) >= self.files
        return result

    def expired(self, settings: CleanSettings, pending: str = "") -> set[Slice]:
        """Return the slices that a policy takes now."""
        saved_slices = set[Slice]().union(*self.saved.values())
        if settings.policy == KEEP_LATEST_FILE_VERSIONS:
            return {
                one for group in self._groups() for one in self._by_versions(group, settings, pending)
            } - saved_slices
        earliest = self.writes[-settings.commits] if len(self.writes) > settings.commits else ""
        if pending:
            earliest = max((one for one in self.writes if one <= min(earliest, pending)), default="")
        if not earliest:
            return set()
        return {one for group in self._groups() for one in self._by_commits(group, earliest)} - saved_slices

    def _groups(self) -> list[list[Slice]]:
        file_groups: dict[tuple[str, str], list[Slice]] = {}
        for one in sorted(self.files, key=lambda file_slice: file_slice[2]):
            file_groups.setdefault(one[:2], []).append(one)
        return list(file_groups.values())

    def _by_commits(self, group: list[Slice], earliest: str) -> list[Slice]:
        replaced = self.replaced.get(group[0][:2])
        if replaced is not None:
            return group if replaced < earliest else []
        older = [one for one in group if one[2] < earliest]
        return [one for one in older[:-1] if one != group[-1]]

    def _by_versions(self, group: list[Slice], settings: CleanSettings, pending: str) -> list[Slice]:
        replaced = self.replaced.get(group[0][:2])
        kept_slices = [] if replaced is not None else group[-settings.file_versions :]
        if pending and (replaced is None or replaced > pending):
            kept_slices = [*kept_slices, *[one for one in group if one[2] < pending][-1:]]
        return [one for one in group if one not in kept_slices]


def check_clean_history(folder: Path, seed: int, *, steps: int = 14) -> None:
    """Assert that a random life of writes, cleans, savepoints and slow writers leaves the files that it should.

    Each clean takes the same files as one that looks at everything, and its trial run says how many.

    Args:
        folder: Where the table goes.
        seed: Decides everything.
        steps: How many writes there are.
    """
    chance = random.Random(seed)
    ledger = Ledger(folder / f"t{seed}")
    policy = KEEP_LATEST_FILE_VERSIONS if seed % 3 == 2 else KEEP_LATEST_COMMITS
    content: dict[tuple[str, str], int] = {}
    for value in range(steps):
        partition, keys = chance.choice("abc"), chance.sample([f"k{n}" for n in range(6)], 3)
        choices = ["upsert", "insert_overwrite", "insert_overwrite_table", "delete_partition"]
        operation = chance.choices(choices, [12, 2, 1, 1])[0] if value else "upsert"
        slow = plan(ledger.path, SCHEMA, table=TABLE, settings=QUIET) if value and chance.random() < 0.3 else None
        other = plan(ledger.path, SCHEMA, operation=operation, table=TABLE, settings=QUIET)
        late = rows("slow", f"s{value}", value=value)
        begun = [task(choosing_now(slow), late, 0)] if slow is not None and chance.random() < 0.5 else []
        if slow is not None and not begun:
            choosing_now(slow)
        ledger.note(carry_out(other, [rows(partition, *keys, value=value)]).instant)
        _apply(content, operation, partition, keys, value)
        settings = CleanSettings(policy=policy, commits=chance.randint(1, 4), file_versions=chance.randint(1, 3))
        _check_clean(ledger, settings, noted(slow) if slow is not None and begun else "")
        if slow is not None:
            with conflicting() as conflicts:
                ledger.note(commit_write(slow, begun or [task(slow, late, 0)]).instant)
                content["slow", f"s{value}"] = value
            if conflicts:
                abort_write(slow)
        if ledger.saved and chance.random() < 0.3:
            ledger.unsave(chance.choice(sorted(ledger.saved)))
        elif ledger.writes and chance.random() < 0.2 and ledger.writes[-1] not in ledger.saved:
            ledger.save(ledger.writes[-1])

        assert slices_of(data_files(ledger.path)) == ledger.files
        assert rows_of(ledger.path, "p", "id", "value") == sorted((*key, one) for key, one in content.items())


@contextmanager
def conflicting() -> Iterator[list[Exception]]:
    """Give the conflict that a block met, if it met one."""
    met: list[Exception] = []
    try:
        yield met
    except (CommitConflictError, StorageError) as error:
        met.append(error)


def _apply(content: dict[tuple[str, str], int], operation: str, partition: str, keys: list[str], value: int) -> None:
    gone = {"insert_overwrite": {partition}, "delete_partition": {partition}, "insert_overwrite_table": {"a", "b", "c"}}
    for key in [one for one in content if one[0] in gone.get(operation, set())]:
        del content[key]
    if operation == "insert_overwrite_table":
        content.clear()
    if operation != "delete_partition":
        content |= {(partition, key): value for key in keys}


def _check_clean(ledger: Ledger, settings: CleanSettings, pending: str) -> None:
    expected = len(ledger.expired(settings, pending))
    before = files_below(ledger.path)
    for incremental in (True, False):
        told = run_clean(ledger.path, replace(settings, incremental=incremental), dry_run=True)
        assert (told.files, told.dry, bool(told.bytes)) == (expected, True, bool(expected)), incremental
    assert files_below(ledger.path) == before
    ledger.clean(settings, pending=pending)


def check_readers_keep_their_slices(folder: Place) -> None:
    """Assert that every moment from the earliest retained commit on, and the one before it, is whole after a clean."""
    table = below(folder, "t")
    told: dict[str, list[tuple[object, ...]]] = {}
    for value in range(6):
        done = write(table, rows("ab"[value % 2], "k1", "k2", value=value), table=TABLE)
        told[done.instant] = rows_of(table, "p", "id", "value")
    run_clean(table, CleanSettings(commits=2))
    times = list(told)

    assert {one[2] for one in slices_of(data_files(table))} == set(times[-4:]), "one slice of each group before them"
    for time in times[-3:]:
        assert _rows_as_of(table, time) == told[time]


def _rows_as_of(table: Place, time: str) -> list[tuple[object, ...]]:

    return sorted(row[:3] for row in shown(open_snapshot(str(table), query=AsOf(time))))


def check_savepoint_keeps_its_files(folder: Place) -> None:
    """Assert that no policy takes a file of a savepoint, nor does a plan that is older than the savepoint."""
    for policy in POLICIES:
        table = below(folder, policy)
        saved = write(table, rows("a", "k1", "k2", value=0), table=TABLE).instant
        saved_files = data_files(table)
        save(table, saved)
        for value in range(1, 6):
            write(table, rows("a", "k1", "k2", value=value), table=TABLE)
            run_clean(table, CleanSettings(policy=policy, commits=1, file_versions=1))

        assert data_files(table) >= saved_files
        assert len(data_files(table)) < 12
        unsave(table, saved)
        assert run_clean(table, CleanSettings(policy=policy, commits=1, file_versions=1)).files == len(saved_files)
        assert rows_of(table, "id", "value") == [("k1", 5), ("k2", 5)]


def check_slow_writer_keeps_its_base(folder: Place) -> None:
    """Assert that no policy takes the slice that a pending write merges, whatever others write meanwhile."""
    for policy in POLICIES:
        table = below(folder, policy)
        for value in range(4):
            write(table, rows("a", "k1", "k2", value=value), table=TABLE)
        base = {one for one in data_files(table) if instants(table).writes[-1].requested_time in one}
        slow, second, third = (plan(table, SCHEMA) for _ in range(3))
        reported = [task(slow, rows("a", "k1", value=9), 0)]
        carry_out(second, [rows("a", "k1", "k2", value=5)])
        carry_out(third, [rows("z", "k1", value=5)])
        done = run_clean(table, CleanSettings(policy=policy, commits=1, file_versions=1))

        assert done.files, policy
        assert data_files(table) >= base, policy
        with conflicting() as conflicts:
            commit_write(slow, reported)
        assert len(conflicts) == 1
        abort_write(slow)
        assert rows_of(table, "p", "id", "value") == [("a", "k1", 5), ("a", "k2", 5), ("z", "k1", 5)]
