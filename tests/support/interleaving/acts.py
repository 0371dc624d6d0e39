"""What actors do: writes, of which a dict says what they leave, and services, which leave the rows as they are."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
from pyhudi import arrow
from pyhudi.methods.writes import OPERATION, WRITE_ID
from pyhudi.operations.planning.request import TableSettings, WriteRequest
from pyhudi.operations.result import CommitResult
from pyhudi.operations.service_settings import (
    KEEP_LATEST_FILE_VERSIONS,
    ArchiveSettings,
    CleanSettings,
    CompactionSettings,
    Upkeep,
)
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.compaction.compact import Means, compact, schedule_compaction
from pyhudi.operations.services.metadata.create_index import create_index
from pyhudi.operations.services.metadata.drop_index import drop_index
from pyhudi.operations.services.metadata.upkeep import keep_up
from pyhudi.operations.services.rescale.rescale import rescale_buckets
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import savepoint
from pyhudi.operations.services.sorting.sort import sort
from pyhudi.operations.services.versions.change_version import change_version
from pyhudi.operations.streams.batch import StreamSettings
from pyhudi.storage.base import Storage
from pyhudi.table.files.output import Output
from pyhudi.table.metadata.kinds import COLUMN_STATS, PARTITION_STATS
from pyhudi.table.table import open_table
from pyhudi.timeline.writers.patience import Patience
from support.by_options import options_of
from support.drawn.upkept import OFF
from support.interleaving.scheduler import TOLERANCE_S
from support.write_settings import write_settings

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
PATIENCE = Patience(heartbeat_interval_s=TOLERANCE_S / 2, heartbeat_misses=2, foreign_age_s=60.0)
# Such a clean leaves nothing to writes at work.
BY_VERSIONS = CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1)
# Seconds for which a commit merges again after a conflict; with PYHUDI_RETRY_S=0 it fails at once.
RETRY_S = float(os.environ.get("PYHUDI_RETRY_S", "600"))
SETTINGS = write_settings(upkeep=OFF, patience=PATIENCE, retry_s=RETRY_S)
ONCE = StreamSettings(retries=0)
# The key of the extra metadata in which a batch says which try made it.
TRY = "_try"

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
# Where rows have no ordering value the order of two writes shows.
_BUCKETS = TableSettings(record_key_fields=("id",), partition_fields=("p",), bucket_count=2)
KINDS: dict[str, TableSettings] = {
    "cow bucket": _BUCKETS,
    "mor bucket": replace(_BUCKETS, table_type=MOR),
    "cow ordered": replace(_BUCKETS, ordering_fields=("ts",)),
    "cow simple": replace(_BUCKETS, bucket_count=None, index_type="SIMPLE"),
    "mor simple": replace(_BUCKETS, bucket_count=None, index_type="SIMPLE", table_type=MOR),
    "cow global": replace(_BUCKETS, bucket_count=None, index_type="GLOBAL_BLOOM"),
}
# In place of a table of version 9, of which both types are written.
OLD = {kind: f"{kind.replace('mor', 'cow')} 6" for kind in KINDS}
KINDS |= {old: replace(KINDS[old.removesuffix(" 6")], version=6) for old in OLD.values()}
# Tables of version 8, for actors that change the version.
KINDS |= {f"{kind} 8": replace(KINDS[kind], version=8) for kind in ("cow simple", "mor bucket", "cow ordered")}
OF_VERSIONS = ("cow simple 6", "cow bucket 6", "cow simple 8", "mor bucket 8", "cow ordered 8")
# How often each is drawn.
WEIGHTS = {"cow bucket": 6, "mor bucket": 6, "cow ordered": 3, "cow simple": 3, "mor simple": 2, "cow global": 1}
KEYS, PARTITIONS = 6, ("a", "b")

Row = tuple[str, str, int, int]
Rows = dict[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True)
class Write:
    """One write.

    Attributes:
        tasks: Among how many tasks its rows are dealt out.
        streamed: Whether it is a batch of its actor's stream.
        by_user: Whether a user of `pyhudi.arrow` makes it: of rows in memory, or of a stream, which come once.
        alone: Whether the user's process believes heartbeats alone.
    """

    operation: str
    rows: tuple[Row, ...]
    tasks: int = 1
    streamed: bool = False
    by_user: Literal["", "memory", "stream"] = ""
    alone: bool = False

    def request(self, path: str, made: TableSettings, write_id: str) -> WriteRequest:
        """Return the write as pyhudi takes it."""
        drops = self.operation == "insert"
        settings = write_settings(SETTINGS, insert_dup_policy="drop") if drops else SETTINGS
        if self.streamed:
            # What a batch leaves has the name of the try, and ids that its repetitions have too.
            named = {TRY: write_id}
            settings = write_settings(settings, hand_over=True, extra_metadata=named, stream=ONCE)
        return WriteRequest(
            path=path,
            operation=self.operation,
            overwrite=False,
            schema=SCHEMA,
            table=made,
            write=settings,
            write_id="" if self.streamed else write_id,
            application=write_id if self.streamed else "",
        )

    def write_as_user(self, path: str, made: TableSettings, write_id: str, *, alone: bool) -> CommitResult:
        """Write as a user of `pyhudi.arrow` does; ``alone`` says that heartbeats alone are believed."""
        settings = self.request(path, made, write_id).write
        patience = replace(settings.patience, heartbeats_alone=alone)
        options = options_of(made, replace(settings, patience=patience))
        assert options is not None
        rows = pa.table(list(map(list, zip(*self.rows, strict=True))), schema=SCHEMA)
        given = rows if self.by_user == "memory" else rows.to_reader(max_chunksize=1)
        return arrow.Table(path).write(given, **{**options, OPERATION: self.operation, WRITE_ID: write_id})

    def parts(self) -> list[list[pa.RecordBatch]]:
        """Return the rows of each task."""
        hands = [self.rows[number :: self.tasks] for number in range(self.tasks)]
        return [
            pa.table(list(map(list, zip(*hand, strict=True))), schema=SCHEMA).to_batches() for hand in hands if hand
        ]

    def apply(self, rows: Rows, made: TableSettings, looked_at: Rows | None = None) -> Rows:
        """Return what the dict holds after this write, which may have looked for its keys in an earlier one."""
        left = dict(rows)
        if self.operation == "insert_overwrite":
            touched = {p for _, p, _, _ in self.rows}
            left = {key: kept for key, kept in left.items() if key[0] not in touched}
        for key, p, ts, value in self.rows:
            places = [one for one in left if one[1] == key] if made.index_type == "GLOBAL_BLOOM" else [(p, key)]
            present_places = [one for one in places if one in left]
            if looked_at is not None and self.operation == "delete":
                found = any(one[1] == key and (one[0] == p or made.index_type == "GLOBAL_BLOOM") for one in looked_at)
                present_places = present_places if found else []
            if self.operation == "insert" and present_places:
                continue
            if self.operation != "delete" and made.ordering_fields and any(left[one][0] > ts for one in present_places):
                continue
            for place in present_places:
                del left[place]
            if self.operation != "delete":
                left[p, key] = ts, value
        return left


@dataclass(frozen=True)
class Service:
    """A table service."""

    name: str


@dataclass(frozen=True)
class Read:
    """A read of the whole table."""


Act = Write | Service | Read


def with_stream(drawn: Drawn, seed: int) -> Drawn:
    """Have the writes of an actor be the batches of a stream, in one seed of five."""
    chance = random.Random(seed ^ (1 << 59))
    if chance.random() < 0.2:
        program = chance.choice(drawn.programs)
        program[:] = [replace(one, streamed=True) if isinstance(one, Write) else one for one in program]
    return drawn


def with_users(drawn: Drawn, seed: int) -> Drawn:
    """Have users of `pyhudi.arrow` make the writes of some actors."""
    chance = random.Random(seed ^ (1 << 56))
    for program in drawn.programs:
        by_user, alone = chance.choice(["", "", "memory", "stream"]), chance.random() < 0.5
        program[:] = [
            replace(one, by_user=by_user, alone=alone) if isinstance(one, Write) and not one.streamed else one
            for one in program
        ]
    return drawn


def with_rescale(drawn: Drawn, seed: int) -> Drawn:
    """Have another actor rescale, in one seed of five with buckets."""
    chance = random.Random(seed ^ (1 << 58))
    if KINDS[drawn.kind].bucket_count is not None and not drawn.empty and chance.random() < 0.2:
        drawn.programs.append([Service(chance.choice(RESCALES)) for _ in range(chance.choice([1, 1, 2]))])
    return drawn


def with_metadata(drawn: Drawn, seed: int) -> Drawn:
    """Have another actor keep up the metadata table in half the seeds, or build or drop partitions of it in others."""
    chance = random.Random(seed ^ (1 << 54))
    names = chance.choice([(), (KEEP_UP,), (KEEP_UP,), (KEEP_UP,), BUILDING, BUILDING])
    if names:
        drawn.programs.append([Service(chance.choice(names)) for _ in range(chance.choice([1, 2]))])
    return drawn


def with_version(drawn: Drawn, seed: int) -> Drawn:
    """Have the table be of an older version, and another actor change that, perhaps while a second one does."""
    chance = random.Random(seed ^ (1 << 55))
    drawn.kind, drawn.empty = chance.choice(OF_VERSIONS), False
    drawn.programs[2:] = []
    for _ in range(chance.choice([1, 1, 2])):
        drawn.programs.append([Service(chance.choice(CHANGES)) for _ in range(chance.choice([1, 2]))])
    chance.shuffle(drawn.programs)
    return drawn


def _roll_back(storage: Storage) -> None:
    """Roll back a pending write whose process is said to be dead, the oldest."""
    table = open_table(storage)
    for one in table.timeline().pending:
        if one.action in {"commit", "deltacommit", "replacecommit"} and not _lives(one.requested_time):
            rollback(storage, one.requested_time, patience=PATIENCE)
            return


# Tells whether the writer of an instant lives; a user knows it.
_LIVES: list[Callable[[str], bool]] = [lambda _: True]


def _lives(instant_time: str) -> bool:
    return _LIVES[0](instant_time)


def users_know(lives: Callable[[str], bool]) -> None:
    """Have users who roll a write back know whether its writer lives."""
    _LIVES[0] = lives


def _means(storage: Storage) -> Means:
    return Means(PATIENCE, Output(row_group_bytes=1 << 20, memory=1 << 24), wait_s=10 * TOLERANCE_S)


def _rescale(n: int, partitions: list[str] | None) -> Callable[[Storage], object]:
    return lambda storage: rescale_buckets(storage, n, _means(storage), partitions=partitions)


KEEP_UP = "keep up the metadata table"
BUILDING = ("build an index", "build an index", "drop an index")
# A metadata table is merged whenever it is kept up.
_SOON = Upkeep(CleanSettings(commits=1), ArchiveSettings(min_commits=1, max_commits=2, batch=2))
# Multiples and divisors of the number, another number, and some partitions alone.
_RESCALED: Mapping[str, Callable[[Storage], object]] = {
    "rescale to 4": _rescale(4, None),
    "rescale to 1": _rescale(1, None),
    "rescale to 3": _rescale(3, None),
    "rescale a to 4": _rescale(4, ["a"]),
    "rescale b to 1": _rescale(1, ["b"]),
}
RESCALES = tuple(_RESCALED)
CHANGES = ("upgrade", "upgrade", "upgrade to 8", "downgrade")
SERVICES: Mapping[str, Callable[[Storage], object]] = {
    **_RESCALED,
    "clean": lambda storage: clean(storage, CleanSettings(commits=1)),
    "clean by versions": lambda storage: clean(storage, BY_VERSIONS),
    "archive": lambda storage: archive(storage, ArchiveSettings(min_commits=1, max_commits=2, batch=2)),
    "compact": lambda storage: compact(storage, CompactionSettings(), _means(storage)),
    "plan a compaction": lambda storage: schedule_compaction(storage, CompactionSettings(), PATIENCE),
    "sort": lambda storage: sort(storage, _means(storage), by=("value", "ts"), curve="zorder"),
    "savepoint": savepoint,
    KEEP_UP: lambda storage: keep_up(storage, _SOON),
    "build an index": lambda storage: create_index(storage, PARTITION_STATS, _means(storage)),
    "drop an index": lambda storage: drop_index(storage, COLUMN_STATS),
    "roll back": _roll_back,
    "upgrade": lambda storage: change_version(storage, "upgrade", 9, _means(storage)),
    "upgrade to 8": lambda storage: change_version(storage, "upgrade", 8, _means(storage)),
    "downgrade": lambda storage: change_version(storage, "downgrade", 8, _means(storage)),
}


@dataclass
class Drawn:
    """What a seed draws: a kind of table, and what each actor does to it.

    Attributes:
        empty: Whether the writers find no table.
    """

    kind: str
    programs: list[list[Act]]
    empty: bool
    values: int = field(default=0)


def draw(chance: random.Random) -> Drawn:
    """Draw what happens to a table."""
    kind = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    drawn = Drawn(kind, [], empty=chance.random() < 0.08)
    for _ in range(chance.choice([2, 2, 3, 3, 3, 4])):
        drawn.programs.append([_act(drawn, chance) for _ in range(chance.choice([1, 1, 2]))])
    if not any(isinstance(one, Write) for some in drawn.programs for one in some):
        drawn.programs[0].append(_write(drawn, chance))
    return drawn


def _act(drawn: Drawn, chance: random.Random) -> Act:
    number = chance.random()
    if number < 0.76:
        return _write(drawn, chance)
    if number < 0.84:
        return Read()
    names = ["clean", "clean by versions", "clean by versions", "archive", "savepoint", "roll back", "sort", "sort"]
    if KINDS[drawn.kind].table_type == MOR:
        names += ["compact", "compact", "plan a compaction"]
    return Service(chance.choice(names))


def _write(drawn: Drawn, chance: random.Random) -> Write:
    names = {"upsert": 10, "delete": 3, "insert": 2, "bulk_insert": 1, "insert_overwrite": 1}
    if drawn.kind == "cow global":
        names = {"upsert": 10, "delete": 3, "insert": 2}
    operation = chance.choices(list(names), list(names.values()))[0]
    keys = chance.sample(range(KEYS), chance.choice([1, 1, 2, 3]))
    rows: list[Row] = []
    alone = chance.choice(PARTITIONS) if chance.random() < 0.5 else ""
    for key in keys:
        drawn.values += 1
        name = f"b{drawn.values}" if operation == "bulk_insert" else f"k{key}"
        rows.append((name, alone or chance.choice(PARTITIONS), chance.randrange(9), drawn.values))
    return Write(operation, tuple(rows), chance.choice([1, 1, 2]))


def before(kind: str) -> Sequence[Write]:
    """Return the writes that made the table that the actors find."""
    del kind
    return (
        Write("upsert", tuple((f"k{key}", p, 4, -1) for key in (0, 1, 2) for p in PARTITIONS[: 1 + key % 2])),
        Write("upsert", (("k1", "a", 4, -2), ("k1", "b", 4, -2), ("k3", "a", 4, -2))),
        Write("upsert", (("k0", "a", 5, -3),)),
    )
