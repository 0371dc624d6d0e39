"""Tables of streams whose lookups know keys: checks that the tests and the mutations of the code both run."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyhudi.errors import PyHudiError
from pyhudi.index.base import KeyedRows, LookupFigures, Tags
from pyhudi.index.gathered_keys import Room
from pyhudi.index.lookup import SimpleIndex, TableLookup
from pyhudi.index.settings import FileSizes, LookupSettings
from pyhudi.operations.indexing.known_keys import KeysOfWrite, KnownSlices
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.service_settings import KEEP_LATEST_FILE_VERSIONS, CleanSettings
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.streams.batch import StreamBatch
from pyhudi.storage import open_storage
from pyhudi.table.merging.deletes import IS_DELETED
from pyhudi.table.merging.key_set import KeySet
from pyhudi.table.seen_table import SeenTable
from support.drive import rows_of, write
from support.made.compacting import run as compact
from support.made.keyed_files import KeyedFiles, keyed
from support.places import below
from support.rules.ends import assert_whole
from support.rules.tagging import homes
from support.seams import patch_seam, read_seam
from support.upkeep.cleans import QUIET, run_clean
from support.upkeep.undoing import timeline_at

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
TABLE = TableSettings(
    record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), index_type="SIMPLE", bucket_count=None
)
COLUMNS = ("p", "id", "ts", "value")
KINDS = [
    (index, table_type)
    for index in ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ")
]
_NUMBERS = count()
KEEP_ONE = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)


def rows(*keys: int, value: int, p: str = "a", ts: int | None = None, deleted: tuple[int, ...] = ()) -> pa.Table:
    """Return rows of one partition; those of the keys ``deleted`` are deletes."""
    count = len(keys)
    columns = [[f"k{key}" for key in keys], [p] * count, [value if ts is None else ts] * count, [value] * count]
    found = pa.table(columns, schema=SCHEMA)
    return found.append_column(IS_DELETED, pa.array([key in deleted for key in keys])) if deleted else found


def settings(*, small: int = 0, streams: bool = True, cache: int = 1 << 20) -> WriteSettings:
    """Return the settings of a batch of a stream, or of another write."""
    lookup = LookupSettings(sizes=FileSizes(small=small), cache_bytes=cache)
    query = f"query {next(_NUMBERS)}"
    return replace(QUIET, lookup=lookup, batch=StreamBatch(query, 0, identifier=query) if streams else None)


@contextmanager
def process(known: KnownSlices) -> Iterator[None]:
    """Have writes be of a process that knows some slices."""
    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "slices that this process knows", known)
        yield


@contextmanager
def compared() -> Iterator[list[LookupFigures]]:
    """Assert of each lookup by known keys that it answers as a lookup without does; yield its figures."""
    tag, met = read_seam("tag rows by known keys"), list[LookupFigures]()

    def both(self: Any, keyed: KeyedRows, seen: SeenTable) -> Tags:
        cached_tags, plain = tag(self, keyed, seen), self.index.tag(keyed, seen.view, seen.storage)
        assert cached_tags.groups == plain.groups
        assert cached_tags.codes.tolist() == plain.codes.tolist()
        places = (
            list(zip(tags.copied.tolist(), tags.copy_codes.tolist(), strict=True)) for tags in (cached_tags, plain)
        )
        assert next(places) == next(places)
        met.append(cached_tags.figures)
        return cached_tags

    with pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "tag rows by known keys", both)
        yield met


@dataclass
class Twins:
    """A table written by processes that know keys, and a table with the same history without.

    Attributes:
        processes: What each process knows that writes the first.
    """

    folder: Path
    made: TableSettings
    chance: random.Random
    processes: list[KnownSlices] = field(default_factory=lambda: [KnownSlices(), KnownSlices()])
    steps: int = 0

    def __post_init__(self) -> None:
        self.tables = [below(self.folder, name) for name in ("known", "plain")]

    def step(self) -> None:
        """Do the same to both, by a process that is drawn."""
        self.steps += 1
        chance, value = self.chance, self.steps
        kind = chance.choices(list(_STEPS), list(_STEPS.values()))[0]
        small, streams = chance.choice([0, 100 << 20]), chance.random() < 0.8
        parts = [self._part(path, value) for path in chance.sample("ab", chance.choice([1, 1, 2]))]
        place, seed = chance.choice(self.processes), chance.random()
        outcomes = []
        for table, cache in zip(self.tables, (1 << 20, 0), strict=True):
            with process(place):
                given = settings(small=small, streams=streams, cache=cache)
                outcomes.append(self._do(kind, table, parts, given, random.Random(seed)))
        assert outcomes[0] == outcomes[1], kind
        assert rows_of(self.tables[0], *COLUMNS) == rows_of(self.tables[1], *COLUMNS), kind

    def _part(self, path: str, value: int) -> pa.Table:
        chance = self.chance
        keys = chance.sample(range(30), chance.randint(1, 12))
        gone = chance.sample(keys, chance.choice([0, 0, 1, len(keys)]))
        return rows(*keys, value=value, p=path, ts=max(0, value - chance.choice([0, 0, 0, 2])), deleted=tuple(gone))

    def _do(self, kind: str, table: Path, parts: list[pa.Table], given: WriteSettings, chance: random.Random) -> object:
        """Return what is alike for both tables: the counts of a write, or the code of an error."""
        storage = open_storage(str(table))
        try:
            match kind:
                case "anew":
                    shutil.rmtree(table)
                    result = write(table, parts[0], table=self.made, settings=given)
                case "compact" | "clean":
                    # What is due depends on sizes of files, in which the two may differ by some bytes.
                    if kind == "clean":
                        run_clean(table, KEEP_ONE)
                    elif self.made.table_type == "MERGE_ON_READ":
                        compact(table)
                    return None
                case "rollback":
                    return rollback(storage, timeline_at(table).writes[-1].requested_time).instants
                case "restore":
                    writes = timeline_at(table).writes[-3:]
                    return restore(storage, chance.choice(writes).requested_time).instants
                case "delete" | "insert" | "insert_overwrite" | "delete_partition":
                    plain = [part.select(SCHEMA.names) for part in parts]
                    result = write(table, plain, operation=kind, settings=given)
                case _:
                    result = write(table, _alike(parts), settings=given)
        except PyHudiError as error:
            return error.code
        if self.made.table_type == "MERGE_ON_READ":
            # Which file group new keys join depends on sizes, too, and an append counts all rows as updates.
            return None
        return result.inserts, result.updates, result.deletes, result.not_found


_STEPS = {
    "upsert": 12,
    "insert": 1,
    "delete": 2,
    "insert_overwrite": 1,
    "delete_partition": 1,
    "compact": 2,
    "clean": 2,
    "rollback": 2,
    "restore": 1,
    "anew": 1,
}


def _alike(parts: list[pa.Table]) -> list[pa.Table]:
    """Return parts that all have the flag of deletes, or none."""
    names = {name for part in parts for name in part.column_names}
    if IS_DELETED not in names:
        return parts
    return [
        part if IS_DELETED in part.column_names else part.append_column(IS_DELETED, pa.array([False] * part.num_rows))
        for part in parts
    ]


def check_twins(folder: Path, seed: int, index: str, table_type: str, *, steps: int = 20) -> None:
    """Assert that lookups with and without known keys answer alike through a history, and leave the same table."""
    made = replace(TABLE, index_type=index, table_type=table_type)
    twins = Twins(folder, made, random.Random(seed))
    for table in twins.tables:
        with process(twins.processes[0]):
            write(table, rows(1, 2, 3, value=0), table=made, settings=settings())
    with compared() as met:
        for _ in range(steps):
            twins.step()
    assert_whole(twins.tables[0], unique=False)
    assert any(figures.files and not figures.bytes for figures in met), "no lookup was answered by known keys"


def check_foreign_commit(folder: Path, made: TableSettings = TABLE) -> None:
    """Assert that a key which another process adds to a known file group is found there."""
    table, ours, theirs = below(folder, "t"), KnownSlices(), KnownSlices()
    with process(ours):
        write(table, rows(1, 2, value=1), table=made, settings=settings())
    with process(theirs):
        write(table, rows(3, value=2), settings=settings(small=100 << 20))
    with process(ours), compared():
        write(table, rows(3, 4, value=3), settings=settings())

    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 1), ("k3", 3), ("k4", 3)]


def keys_of_write(index: TableLookup) -> KeysOfWrite:
    """Return what a batch of a stream knows of the only table that there is."""
    read_seam("slices that this process knows").begin()
    return KeysOfWrite(("table",), index, fills=True, room=Room(1 << 20))


def tag_known(known: KeysOfWrite, files: KeyedFiles, *wanted: tuple[str, str]) -> Tags:
    """Return where some keys are, in a commit that completes."""
    tags = known.tag(keyed(wanted), SimpleNamespace(view=files, storage=files.storage))  # type: ignore[arg-type]
    known.complete()
    return tags


def check_foreign_log(_: Path) -> None:
    """Assert that a key which another writer's log file alone has is found there, as Flink's writer logs new keys."""
    files = KeyedFiles()
    group = files.add("p", ["a"])
    with process(KnownSlices()):
        assert homes(tag_known(keys_of_write(SimpleIndex()), files, ("p", "a"), ("p", "b"))) == [group, None]
        files.add_log("p", group, rows=["b"])
        assert homes(tag_known(keys_of_write(SimpleIndex()), files, ("p", "a"), ("p", "b"))) == [group, group]


def check_part(folder: Path) -> None:
    """Assert that a slice of which a lookup read the log files alone does not count as known."""
    table, ours = below(folder, "t"), KnownSlices()
    made = replace(TABLE, index_type="BLOOM", table_type="MERGE_ON_READ")
    with process(KnownSlices()):
        write(table, rows(1, 2, 3, value=1), table=made, settings=settings())
        write(table, rows(1, value=2), settings=settings())
    with process(ours), compared():
        write(table, rows(9, value=3), settings=settings())
        write(table, rows(2, value=4), settings=settings())

    assert rows_of(table, "id", "value") == [("k1", 2), ("k2", 4), ("k3", 1), ("k9", 3)]


def check_deletes(folder: Path) -> None:
    """Assert that a deleted key counts as absent, also where another row of its file group is late."""
    for late in (False, True):
        table, known = below(folder, f"t{late}"), KnownSlices()
        with process(known), compared():
            write(table, rows(1, 2, 3, value=5), table=TABLE, settings=settings())
            write(table, rows(1, value=6, deleted=(1,)), settings=settings())
            old = [rows(2, value=4, deleted=(2,)), rows(3, value=7, deleted=(3,))] if late else [rows(2, value=7)]
            write(table, _alike(old), settings=settings())
            write(table, rows(1, 2, 3, value=8), settings=settings())

        assert rows_of(table, "id", "value") == [("k1", 8), ("k2", 8), ("k3", 8)]


def check_merged_logs(folder: Path) -> None:
    """Assert that a compaction, which drops deleted keys, makes the lookup read the file group."""
    table, known = below(folder, "t"), KnownSlices()
    made = replace(TABLE, table_type="MERGE_ON_READ")
    with process(known), compared():
        write(table, rows(1, 2, 3, value=1), table=made, settings=settings())
        write(table, rows(1, value=2, deleted=(1,)), settings=settings())
        compact(table)
        write(table, rows(1, value=3), settings=settings())
        write(table, rows(2, value=4, deleted=(2,)), settings=settings())
        write(table, rows(5, value=4), settings=settings(small=100 << 20))
        write(table, rows(1, 2, value=5), settings=settings())

    assert rows_of(table, "id", "value") == [("k1", 5), ("k2", 5), ("k3", 1), ("k5", 4)]


def check_table_made_anew(folder: Path) -> None:
    """Assert that nothing known of a table is found in another table at its path."""
    table, known = below(folder, "t"), KnownSlices()
    with process(known), compared():
        for keys in ((1, 2), (3, 4)):
            shutil.rmtree(table, ignore_errors=True)
            write(table, rows(*keys, value=1), table=TABLE, settings=settings())
            write(table, rows(1, 3, value=2), settings=settings())

    assert [key for key, _ in rows_of(table, "id", "value")] == ["k1", "k3", "k4"]


def check_rolled_back(folder: Path) -> None:
    """Assert that keys of a write that was rolled back are absent again."""
    table, known = below(folder, "t"), KnownSlices()
    with process(known), compared():
        write(table, rows(1, 2, value=1), table=TABLE, settings=settings())
        done = write(table, rows(3, value=2), settings=settings(small=100 << 20))
        rollback(open_storage(str(table)), done.instant)
        assert write(table, rows(3, value=3), settings=settings()).inserts == 1

    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 1), ("k3", 3)]


def check_aborted(folder: Path) -> None:
    """Assert that a process learns nothing from a write that it gives up."""
    table, known_slices = below(folder, "t"), KnownSlices()
    with process(KnownSlices()):
        write(table, rows(1, 2, value=1), table=TABLE, settings=settings())
    with process(known_slices), pytest.MonkeyPatch.context() as patch:
        patch_seam(patch, "remove files that no task reported", _failing)
        with pytest.raises(OSError, match="no store"):
            write(table, rows(2, 3, value=2), settings=settings())
    assert not known_slices.nbytes
    with process(known_slices), compared() as met:
        write(table, rows(2, 3, value=3), settings=settings())
        write(table, rows(2, 3, 4, value=4), settings=settings())

    assert [figures.bytes > 0 for figures in met] == [True, False]
    assert rows_of(table, "id", "value") == [("k1", 1), ("k2", 4), ("k3", 4), ("k4", 4)]


def check_bound(folder: Path) -> None:
    """Assert that a process keeps no more keys than the option allows, and finds the others by reads, as without."""
    table, known_slices = below(folder, "t"), KnownSlices()
    most, gathered = 16 * 30, [0]
    with process(known_slices), compared() as met:
        for number in range(10):
            keys = range(10 * number, 10 * number + 10)
            write(table, rows(*keys, value=1), table=TABLE, settings=settings(cache=most))
            assert known_slices.nbytes <= most
        with pytest.MonkeyPatch.context() as patch:
            keys_in = read_seam("all keys that a lookup gathered")
            patch_seam(patch, "all keys that a lookup gathered", lambda *given: _counted(gathered, keys_in(*given)))
            for value in range(2, 5):
                write(table, rows(*range(0, 100, 9), value=value), settings=settings(cache=most))
                assert most // 2 <= known_slices.nbytes <= most
    read = [figures.candidates for figures in met[-3:]]
    assert 5 <= read[0] == read[1] == read[2] < 10
    assert not gathered[-1], "file groups push one another out"


def check_copies(folder: Path) -> None:
    """Assert that a key that inserts left in several file groups is found in each."""
    table, known = below(folder, "t"), KnownSlices()
    with process(known), compared():
        write(table, rows(1, 2, value=1), table=TABLE, settings=settings())
        write(table, rows(1, 3, value=2), operation="insert", settings=settings())
        write(table, rows(1, value=3), settings=settings())

    assert rows_of(table, "id", "value") == [("k1", 3), ("k1", 3), ("k2", 1), ("k3", 2)]


def check_threads(folder: Path) -> None:
    """Assert that two threads of a process, each with its own partition, may write one table."""
    table, known = below(folder, "t"), KnownSlices()
    with process(known), compared() as met:
        write(table, [rows(1, value=1), rows(1, value=1, p="b")], table=TABLE, settings=settings())

        def stream(p: str) -> None:
            for number in range(8):
                write(table, rows(1, *range(10 * number, 10 * number + 10), value=number, p=p), settings=settings())

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(stream, "ab"))

    assert len(rows_of(table, "id")) == 2 * 80
    assert not sum(figures.bytes for figures in met), "each thread knows what it wrote"


def _counted(count: list[int], keys: KeySet | None) -> KeySet | None:
    count[-1] += keys is not None
    return keys


def _failing(*_: object) -> None:
    raise OSError("no store")
