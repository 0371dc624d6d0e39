"""Histories of writes held against a dict: the checks that the real tests and the mutations of the code both run."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyhudi import arrow
from pyhudi.errors import CommitConflictError, DuplicateKeyError
from pyhudi.operations.planning.plan import WritePlan
from pyhudi.operations.planning.request import TableSettings, WriteSettings
from pyhudi.operations.result import CommitResult, RowCounts
from pyhudi.operations.service_settings import Upkeep
from pyhudi.operations.streams.batch import StreamBatch
from pyhudi.operations.write.commit import commit_write
from pyhudi.operations.write.instant import abort_write
from pyhudi.operations.write.task import TaskResult
from pyhudi.options.parsing import parse_options
from pyhudi.options.upkeep import MORE_THAN_CLEANED
from pyhudi.table.config.property_keys import GLOBAL_INDEXES, LOOKUP_INDEXES
from pyhudi.table.files.output import Output
from pyhudi.table.schema.columns import FILE_GROUP, FILE_NAME, PARTITION_PATH, POSITION
from pyhudi.timeline.writers import decisions
from pyhudi.timeline.writers.owner import SEALS
from pyhudi.timeline.writers.patience import Patience
from support.by_options import options_of
from support.drawn.buckets import Buckets
from support.drawn.lookups import joined_by, located, smallest_files
from support.drawn.metadata_beside import MetadataBeside
from support.drawn.spread_everywhere import located_in_tasks
from support.drawn.upkept import Life
from support.drive import carry_out, plan, rows_of, task, write
from support.models.changing import MERGE, based_on, disturbed, is_late, merged, moment_of
from support.models.everywhere_model import EverywhereLoggedModel, EverywhereModel
from support.models.logged_model import LoggedModel
from support.models.looked_up_model import LookedUpModel
from support.models.model import INT_ORDERED, SCHEMA, Counts, Model, Row, Step
from support.places import Place, below, copy_table, files_below, on_disk
from support.readers import rows_by_hudi_rs
from support.rules.ends import assert_whole
from support.streams import write_batch
from support.write_settings import write_settings

TABLE = TableSettings(record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",), bucket_count=3)
MERGE_ON_READ = "MERGE_ON_READ"
LOGGED = replace(TABLE, table_type=MERGE_ON_READ)
UNORDERED = replace(TABLE, ordering_fields=())
ROOMY = WriteSettings()
TINY = write_settings(batch_size=400, output=Output(memory=1200))
COLUMNS = ("p", "id", "ts", "value")
# The share of a history's writes that a user of `pyhudi.arrow` makes.
_BY_USERS = 0.5
# Options cannot say that a writer of this very process counts as dead at once.
_SHORT = Patience(heartbeat_interval_s=0.01, heartbeat_misses=1)
# A second writer's commit beside one of these leaves both, one after the other.
EXTENDING = {"upsert", "insert", "bulk_insert", "delete"}
# Inserts add rows without looking.
TOLD_OF_HEALTHY = frozenset({"KEY_ADDED_TWICE"})
POSITIONED = pa.field(POSITION, pa.int64(), nullable=False)


def check_history(
    history: Sequence[Step],
    *,
    bounds: WriteSettings = ROOMY,
    seed: int = 0,
    table: Place | None = None,
    made: TableSettings = TABLE,
    deaths: bool = False,
    services: Sequence[str] = (),
    streams: bool = False,
    beside: bool = False,
    whole: bool = True,
    hudi_rs: bool = True,
    metadata: bool = False,
) -> Life:
    """Assert that a history leaves what the dict says, some of its tasks being run twice.

    Args:
        history: The writes.
        table: Where the table goes; None for a folder of its own.
        bounds: How much a task keeps in memory, and whether it holds whole file groups.
        seed: Decides which tasks are run twice, and which of the two attempts is reported.
        made: What the table is made with.
        deaths: Whether some writes die first, and are rolled back by the next one.
        services: Which services are drawn between the writes.
        streams: Whether the writes are batches of a streaming query, some of which come twice.
        beside: Whether a second writer writes meanwhile, now and then.
        whole: Whether the table's files are checked.
        hudi_rs: Whether hudi-rs is asked what it reads.
        metadata: Whether the table has a metadata table of Apache Hudi, from early on, which each step keeps.

    Returns:
        What was done between the writes.
    """
    model = model_of(made, bounds, resets=any(step.schema == INT_ORDERED for step in history))
    with tempfile.TemporaryDirectory() as folder:
        table = table or below(folder, "t")
        life = Life(table, model, services, random.Random(seed))
        writes = _Writes(life, made, bounds, random.Random(seed), deaths=deaths, streams=streams, beside=beside)
        fields = made.record_key_fields or ()
        apache = MetadataBeside(life, TOLD_OF_HEALTHY, random.Random(seed), composite=len(fields) > 1)
        for step, following in itertools.zip_longest(history, history[1:]):
            writes.take(step, following)
            assert rows_of(table, *COLUMNS) == model.tuples()
            if metadata:
                apache.look()
                apache.may_begin()
            if services:
                life.serve()
                assert rows_of(table, *COLUMNS) == model.tuples()
                if "s3://" not in str(table):  # where each look costs seconds
                    _assert_healthy(table, whole=whole)
                    life.check_moments()
            if metadata and services:
                apache.look()
        _assert_healthy(table, whole=whole)
        if metadata:
            apache.give_with_indexes()
        if hudi_rs:
            assert rows_by_hudi_rs(table, *COLUMNS) == model.elsewhere()
        return life


@dataclass
class _Writes:
    """The writes of a history.

    Attributes:
        life: The table, and the dict that says what it holds.
        made: What it is made with.
        bounds: How it is written.
        chance: Draws.
        deaths: Whether some writes die first.
        streams: Whether writes are batches of a streaming query.
        beside: Whether a second writer writes meanwhile.
        seen: What a merge that comes late has seen: what the table held, of which moment, and which write came since.
        users: Draws which writes a user of `pyhudi.arrow` makes, among those that go through Spark.
    """

    life: Life
    made: TableSettings
    bounds: WriteSettings
    chance: random.Random
    deaths: bool = False
    streams: bool = False
    beside: bool = False
    numbers: Iterator[int] = field(default_factory=itertools.count)
    seen: tuple[Model, str, Step] | None = None
    users: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.users = random.Random(str(self.chance.getstate()))

    def take(self, step: Step, following: Step | None) -> None:
        """Write, and count what the dict counts."""
        late = following is not None and is_late(following) and not self.life.services
        seen = (self.life.model.moment(), moment_of(self.life.table), step) if late else None
        if step.operation == MERGE:
            self._merge(step)
        elif not self.streams and self._is_by_user():
            self._write_as_user(replace(step, tasks=1))
        else:
            self._write(step)
        self.seen = seen

    def _write(self, step: Step) -> None:
        model = self.life.model
        if self._has_rival(step):
            self._write_beside(step)
            return
        planned, parts = self._planned(step, self.bounds)
        if model.moment().apply(step.as_dealt()) is None:
            with pytest.raises(DuplicateKeyError):
                commit_write(planned, run_tasks(planned, parts, self.chance))
            abort_write(planned)
            return
        self._complete(step, planned, parts)

    def _complete(self, step: Step, planned: WritePlan, parts: Sequence[pa.Table]) -> None:
        if self.streams and isinstance(self.life.model, LoggedModel):
            # The commit has all rows of a batch, and appends of each key one thing.
            self.life.model.alone = self._streams(step)
        if self._streams(step):
            result = self._complete_batch(step, planned, parts)
        else:
            result = commit_write(planned, run_tasks(planned, parts, self.chance))
        self._took(step, parts, result)

    def _took(self, step: Step, parts: Sequence[pa.Table], done: CommitResult) -> None:
        expected = self._taken(step, parts)
        assert Counts(done.inserts, done.updates, done.deletes, done.not_found, done.dropped) == expected
        self.life.wrote(done)

    def _has_rival(self, step: Step) -> bool:
        extends = step.rows and not step.options and step.operation in EXTENDING
        return bool(self.beside and self.life.moments and extends)

    def _streams(self, step: Step) -> bool:
        return self.streams and not step.options and step.operation in EXTENDING

    def _complete_batch(self, step: Step, planned: WritePlan, parts: Sequence[pa.Table]) -> CommitResult:
        """Write a batch of a streaming query; where it comes again, it changes nothing."""
        number = next(self.numbers)
        result = write_batch(planned, parts, StreamBatch("query", number, "first", "writer"))
        if self.chance.random() < 0.3:
            again = self._planned(step, self.bounds)[0]
            assert write_batch(again, parts, StreamBatch("query", number, "second", "writer")).instant == result.instant
        return result

    def _write_beside(self, step: Step) -> None:
        """Write while a second writer, which began before, completes a write of its own.

        Where keys are looked up, that deletes a key that is not there: the dict knows the file groups that new keys
        join when a write is planned. A writer that takes all others for dead would roll it back, so it is over then.
        """
        number = next(self.numbers)
        operation = "delete" if self.made.index_type in LOOKUP_INDEXES else step.operation
        stranger = {**step.rows[0], "id": f"second{number}", "_hoodie_is_deleted": False}
        second = replace(step, operation=operation, rows=[stranger], tasks=1, hands=())
        theirs, their_parts = self._planned(second, self.bounds)
        their_results = run_tasks(theirs, their_parts, self.chance)
        if self.deaths:
            self._took(second, their_parts, commit_write(theirs, their_results))
        planned, parts = self._planned(step, self.bounds)
        results = run_tasks(planned, parts, self.chance)
        if not self.deaths:
            self._took(second, their_parts, commit_write(theirs, their_results))
        try:
            commit_result = commit_write(planned, results)
        except CommitConflictError:
            # Files that its tasks made are not merged again.
            assert planned.settings.colocated
            abort_write(planned)
            self.life.conflicts += 1
            planned, parts = self._planned(step, self.bounds)
            commit_result = commit_write(planned, run_tasks(planned, parts, self.chance))
        self._took(step, parts, commit_result)

    def _is_by_user(self) -> bool:
        """Return whether a user makes the next write; where writes die not on S3, whose clock has whole seconds."""
        sees_deaths = self.bounds.patience.heartbeat_misses > 0 or "s3://" not in str(self.life.table)
        return self.users.random() < _BY_USERS and sees_deaths

    def _write_as_user(self, step: Step) -> None:
        """Write by `pyhudi.arrow`, whose one task has all rows and looks keys up itself."""
        life = self.life
        self._die(step, self.bounds)
        self._look_at_files()
        patience = self.bounds.patience if self.bounds.patience.heartbeat_misses > 0 else _SHORT
        settings = replace(self._settings(step, self.bounds), colocated=False, patience=patience)
        settings = replace(settings, upkeep=sayable(settings.upkeep))
        options = options_of(self._made(), settings)
        assert options is not None
        (rows,) = step.parts()
        key = "" if self.made.record_key_fields else None
        write_rows = partial(arrow.Table(life.table).write, rows, record_key=key, operation=step.operation, **options)
        if life.model.moment().apply(step.as_dealt()) is None:
            with pytest.raises(DuplicateKeyError):
                write_rows()
            return
        result = write_rows()
        expected = self._taken(step, [rows])
        assert Counts(result.inserts, result.updates, result.deletes, result.not_found, result.dropped) == expected
        life.wrote(result)

    def _taken(self, step: Step, parts: Sequence[pa.Table]) -> Counts | None:
        """Have the dict take a write of some parts that is done, and return its counts."""
        model = self.life.model
        if not isinstance(model, LookedUpModel):
            return model.apply(step.as_dealt())
        # Tables by time name the partition of 2024-02-29 2024/02/29.
        shown = {
            (str(path).replace("/", "-"), str(key), str(name).partition("_")[0])
            for path, key, name in rows_of(self.life.table, PARTITION_PATH, "id", FILE_NAME)
        }
        model.placed = {(p, key): name for p, key, name in shown}
        model.aimed = {name for part in parts for name in joined_by(part)}
        model.assert_new_keys_placed()
        counts = model.apply(step.as_dealt())
        assert shown == {(*key[:2], model.home(key)) for key in model.rows}, "rows are in their keys' file groups"
        return counts

    def _merge(self, drawn: Step) -> None:
        """Merge; where it looked before another write that changed a row of its own, only at its second try."""
        model, table = self.life.model, self.life.table
        unique = self.made.index_type in GLOBAL_INDEXES and self.made.record_key_fields == ("id",)
        if self.seen is not None and is_late(drawn):
            before, moment, others = self.seen
            step, changed = merged(drawn, before, unique=unique)
            if disturbed(changed, others, before, model):
                bounds = write_settings(self.bounds, based_on=moment, counted=changed.counts(), deletes_read=True)
                planned, parts = self._planned(step, bounds)
                with pytest.raises(CommitConflictError):
                    commit_write(planned, run_tasks(planned, parts, self.chance))
                abort_write(planned)
                self.life.conflicts += 1
        step, changed = merged(drawn, model, unique=unique)
        planned, parts = self._planned(step, based_on(table, self.bounds, changed.counts()))
        merge_result = commit_write(planned, run_tasks(planned, parts, self.chance))
        assert self._taken(step, parts) is not None
        assert model.tuples() == changed.tuples(), "what is written is what the merge says"
        assert (
            RowCounts(merge_result.inserts, merge_result.updates, merge_result.deletes, merge_result.moved)
            == changed.counts()
        )
        self.life.changes.append(changed.counts())
        self.life.wrote(merge_result)

    def _planned(self, step: Step, bounds: WriteSettings) -> tuple[WritePlan, list[pa.Table]]:
        """Return a write's plan and its rows as its tasks get them; another one may have died before."""
        self._die(step, bounds)
        parts = self._parts(step, bounds)
        planned = self._plan(step, bounds, parts)
        self._look_at_files()
        return planned, self._located(planned, parts)

    def _die(self, step: Step, bounds: WriteSettings) -> None:
        """Have a write die before its commit, by chance."""
        if not self.deaths or self.chance.random() >= 0.4:
            return
        parts = self._parts(step, bounds)
        dying = self._plan(step, bounds, parts)
        # Tasks that hold whole file groups may be the ones that refuse a key, which is death enough.
        with suppress(DuplicateKeyError):
            run_tasks(dying, self._located(dying, parts), self.chance)

    def _parts(self, step: Step, bounds: WriteSettings) -> list[pa.Table]:
        return placed(step, self.chance) if bounds.colocated else step.parts()

    def _plan(self, step: Step, bounds: WriteSettings, parts: Sequence[pa.Table]) -> WritePlan:
        schema = parts[0].schema if parts else step.schema
        if self.made.index_type in LOOKUP_INDEXES and bounds.colocated:
            schema = schema.append(pa.field(FILE_GROUP, pa.string()))
        settings = self._settings(step, bounds)
        return plan(self.life.table, schema, operation=step.operation, table=self._made(), settings=settings)

    def _located(self, planned: WritePlan, parts: list[pa.Table]) -> list[pa.Table]:
        places = located_in_tasks if self.made.index_type in GLOBAL_INDEXES else located
        return places(planned, parts) if planned.located else parts

    def _settings(self, step: Step, bounds: WriteSettings) -> WriteSettings:
        upkeep = self.life.upkeep() if self.life.services else bounds.upkeep
        return write_settings(settings_of(step, bounds), upkeep=upkeep, hand_over=self._streams(step))

    def _made(self) -> TableSettings:
        """Return what a write says of the table."""
        return replace(self.made, bucket_count=None) if self.life.rescaled else self.made

    def _look_at_files(self) -> None:
        """Tell the dict which file groups new keys are to join."""
        if isinstance(self.life.model, LookedUpModel):
            self.life.model.smallest = smallest_files(self.life.table, self.bounds)


def sayable(upkeep: Upkeep) -> Upkeep:
    """Return the services that options can ask for, which archive no instant whose files a clean keeps."""
    least = max(upkeep.archive.min_commits, upkeep.clean.commits + MORE_THAN_CLEANED)
    most = max(upkeep.archive.max_commits, least + 1)
    counted = upkeep.compaction.delta_commits
    return replace(upkeep, archive=replace(upkeep.archive, min_commits=least, max_commits=most, delta_commits=counted))


def model_of(made: TableSettings, bounds: WriteSettings, *, resets: bool = False) -> Model:
    """Return the dict for tables that are made so."""
    ordered = bool(made.ordering_fields)
    if made.index_type in GLOBAL_INDEXES:
        model = EverywhereLoggedModel if made.table_type == MERGE_ON_READ else EverywhereModel
        return model(ordered=ordered, moves=bounds.lookup.moves_rows, names=made.record_key_fields or ())
    if made.table_type != MERGE_ON_READ:
        return Model(ordered=ordered, resets=resets)
    if made.index_type in LOOKUP_INDEXES:
        return LookedUpModel(ordered=ordered, resets=resets)
    buckets = Buckets(made.record_key_fields or (), lambda _: made.bucket_count or 1)
    together = made.partial_update_mode is not None
    return LoggedModel(ordered=ordered, resets=resets, bucket_of=buckets, alone=bounds.colocated, together=together)


def _assert_healthy(table: Place, *, whole: bool) -> None:
    assert_whole(table, unique=False, written_down=whole, deep=True, tolerated=TOLD_OF_HEALTHY)


def settings_of(step: Step, bounds: WriteSettings) -> WriteSettings:
    """Return what a step's options ask for, within the bounds."""
    settings = parse_options(step.options).write_settings()
    values = {name: getattr(bounds, name) for name in ("output", "colocated", "patience", "logs", "lookup")}
    values |= {name: getattr(bounds.origin, name) for name in ("based_on", "counted", "deletes_read")}
    return write_settings(settings, batch_size=bounds.tasks.batch_size, **values)


def run_tasks(planned: WritePlan, parts: Sequence[pa.Table], chance: random.Random) -> list[TaskResult]:
    """Run a task for each part, some of them twice, and return what one attempt of each reported."""
    results = []
    for number, rows in enumerate(parts):
        attempts = [task(planned, rows, number)]
        if chance.random() < 0.3:
            attempts.append(task(planned, rows, number, attempt=500 + number))
        results.append(chance.choice(attempts))
    return results


def placed(step: Step, chance: random.Random) -> list[pa.Table]:
    """Return a step's rows so that each file group is in one part, in any order, with where they stood before."""
    table = pa.concat_tables(step.parts())
    stood = pa.array(range(table.num_rows), pa.int64())
    table = table.append_column(POSITIONED, stood).take(
        pa.array(chance.sample(range(table.num_rows), table.num_rows), pa.int64())
    )
    return [table.filter(pc.equal(table.column("p"), name)) for name in table.column("p").unique().to_pylist()]


def row(key: str, *, ts: int, value: int, p: str = "a", deleted: bool = False) -> Row:
    """Return one row as the dict keeps it."""
    return {"id": key, "p": p, "ts": ts, "value": value, "_hoodie_is_deleted": deleted}


def part(*rows: Row) -> pa.Table:
    """Return rows as one task gets them."""
    return pa.Table.from_pylist(list(rows), SCHEMA)


def check_ties(folder: Place) -> None:
    """Assert that among equal ordering values the later task wins, then the further row, then the newer write."""
    table = below(folder, "t")
    planned = plan(table, SCHEMA, table=TABLE)
    late, early = part(row("k", ts=7, value=9), row("k", ts=7, value=8)), part(row("k", ts=7, value=1))
    commit_write(planned, [task(planned, late, 1), task(planned, early, 0)])

    assert rows_of(table, "value") == [(8,)]

    write(table, part(row("k", ts=7, value=3)))
    assert rows_of(table, "value") == [(3,)]

    write(table, part(row("k", ts=7, value=4, deleted=True)))
    assert rows_of(table, "value") == []
    assert_whole(table)


def check_placed_ties(folder: Place) -> None:
    """Assert that rows which were moved before the write are held against one another as they stood before."""
    rows = [
        *(row("tie", ts=7, value=n) for n in range(4)),
        row("late delete", ts=7, value=0),
        row("late delete", ts=7, value=1, deleted=True),
        row("late row", ts=7, value=0, deleted=True),
        row("late row", ts=7, value=1),
        *(row("greater", ts=9 - n, value=n) for n in range(3)),
    ]
    for number, (mode, bounds) in enumerate(itertools.product((TABLE, UNORDERED), (ROOMY, TINY))):
        expected = [("greater", 0 if mode is TABLE else 2), ("late row", 1), ("tie", 3)]
        there = list(range(len(rows)))
        for moved in (there, there[::-1], random.Random(5).sample(there, len(there))):
            stood = pa.array([n << 33 for n in moved], pa.int64())
            incoming = part(*(rows[n] for n in moved)).append_column(POSITIONED, stood)
            table = below(folder, f"t{number}-{moved[0]}-{moved[1]}")
            write(table, incoming, table=mode, settings=replace(bounds, colocated=True))

            assert rows_of(table, "id", "value") == expected
            assert_whole(table)


def check_duplicates(folder: Place) -> None:
    """Assert what becomes of rows whose key is there, and of keys that are there twice."""
    table = below(folder, "t")
    twice = [row("k", ts=5, value=1), row("k", ts=9, value=2)]
    write(table, part(*twice, row("m", ts=1, value=1)), operation="insert", table=TABLE)
    write(table, part(*twice), operation="insert", settings=write_settings(ROOMY, insert_dup_policy="drop"))
    assert rows_of(table, "id", "value") == [("k", 1), ("k", 2), ("m", 1)]

    before = files_below(table)
    failing = plan(table, SCHEMA, operation="insert", settings=write_settings(ROOMY, insert_dup_policy="fail"))
    with pytest.raises(DuplicateKeyError, match=r"'m'.*partition 'a'.*dup\.policy=drop"):
        carry_out(failing, [part(row("new", ts=1, value=1), row("m", ts=2, value=2))])
    notes = (f"{SEALS}/", f"{decisions.FOLDER}/")
    assert {name for name in files_below(table) if not name.startswith(notes)} <= set(before)

    result = write(table, part(row("k", ts=7, value=3)))
    assert (result.inserts, result.updates, result.deletes) == (0, 0, 1), "one copy is older, the other newer"
    assert rows_of(table, "id", "value") == [("k", 2), ("m", 1)]

    write(table, part(row("k", ts=0, value=4), row("k", ts=0, value=5)), operation="bulk_insert")
    result = write(table, part(row("k", ts=0, value=0), row("none", ts=0, value=0)), operation="delete")
    assert (result.deletes, result.not_found) == (3, 1)
    assert rows_of(table, "id", "value") == [("m", 1)]
    assert_whole(table, unique=False)


def check_deleted_partitions(folder: Place) -> None:
    """Assert which partitions a name takes, with wildcards and without, and that the rest stays."""
    made = below(folder, "made")
    write(made, part(*(row("k", p=name, ts=1, value=1) for name in PARTITIONS)), table=TABLE)
    for names, left in DELETED_PARTITIONS:
        table = below(folder, names.replace("/", "_"))
        copy_table(made, table)
        settings = write_settings(ROOMY, partitions_to_delete=tuple(names.split(",")))
        result = write(table, part(), operation="delete_partition", settings=settings)

        assert rows_of(table, "p") == [(name,) for name in left], names
        assert result.replaced == len(PARTITIONS) - len(left)
        assert_whole(table)


PARTITIONS = ["a", "a.b", "ab", "b", "x/y", "x/z"]
DELETED_PARTITIONS = [
    ("a", ["a.b", "ab", "b", "x/y", "x/z"]),
    ("a*", ["b", "x/y", "x/z"]),
    ("*b", ["a", "x/y", "x/z"]),
    ("a.*", ["a", "ab", "b", "x/y", "x/z"]),
    ("x/%2A,b", ["a", "a.b", "ab"]),
    ("*", []),
    ("*z", ["a", "a.b", "ab", "b", "x/y"]),
    ("nope,../a,/a,./a,a/,x,[ab],.", PARTITIONS),
]


def check_lost_attempts(folder: Place) -> None:
    """Assert that an attempt that published its files and failed before it reported leaves nothing behind.

    Attempts are taken in both orders, because readers prefer the greater write token.
    """
    for number, (lost, reported) in enumerate([(100, 200), (200, 100)]):
        table = below(folder, f"t{number}")
        colocated = replace(ROOMY, colocated=True)
        write(table, part(row("old", ts=1, value=0)), table=TABLE, settings=colocated)
        planned = plan(table, SCHEMA, settings=colocated)
        rows = [row("k", ts=2, value=5), row("old", ts=2, value=6), row("new", p="b", ts=2, value=7)]
        without_report = task(planned, part(*rows, row("half", ts=2, value=1)), 0, attempt=lost)
        result = task(planned, part(*rows), 0, attempt=reported)

        ours = {one.group for one in result.written}
        theirs = {one.group for one in without_report.written}
        assert ours <= theirs, "every attempt invents the same file groups"
        commit_write(planned, [result])
        assert rows_of(table, "id", "value") == [("k", 5), ("new", 7), ("old", 6)]
        assert_whole(table)


def check_abort(folder: Place) -> None:
    """Assert that a write given up after its tasks published leaves the table as it was."""
    table = below(folder, "t")
    colocated = replace(ROOMY, colocated=True)
    write(table, part(row("old", ts=1, value=0)), table=TABLE, settings=colocated)
    planned = plan(table, SCHEMA, settings=colocated)
    task(planned, part(row("old", ts=2, value=1), row("new", p="b", ts=2, value=1)), 0)
    abort_write(planned)

    assert rows_of(table, "id", "value") == [("old", 0)]
    assert all(name.startswith("a/") for name in files_below(table) if name.endswith(".parquet"))
    write(table, part(row("new", p="b", ts=3, value=2)), settings=colocated)
    assert rows_of(table, "id", "value") == [("new", 2), ("old", 0)]
    assert_whole(table)


def check_many_row_groups(folder: Place) -> None:
    """Assert that files of several row groups are written and merged whole."""
    table = below(folder, "t")
    tiny_groups = replace(ROOMY, output=Output(row_group_bytes=1000))
    carry_out(plan(table, SCHEMA, table=TABLE, settings=tiny_groups), [_many(range(400), value=1)])
    carry_out(plan(table, SCHEMA, settings=tiny_groups), [_many(range(0, 400, 20), value=2)])

    with on_disk(table) as root:
        assert any(pq.ParquetFile(one).num_row_groups > 1 for one in root.rglob("*.parquet"))
    expected = [(f"k{n:03}", 2 if n % 20 == 0 else 1) for n in range(400)]
    assert rows_of(table, "id", "value") == expected
    assert rows_by_hudi_rs(table, "id", "value") == expected
    assert_whole(table)


def _many(keys: range, *, value: int) -> pa.Table:
    return part(*(row(f"k{n:03}", ts=value, value=value) for n in keys))
