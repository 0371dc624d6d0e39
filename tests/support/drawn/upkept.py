"""Services drawn between the writes of a history, what the dict says of them, and when they may refuse."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyhudi.errors import UndoError, UnreadableTimeError
from pyhudi.operations.result import CommitResult, RowCounts
from pyhudi.operations.service_settings import (
    KEEP_LATEST_FILE_VERSIONS,
    ArchiveSettings,
    CleanSettings,
    CompactionSettings,
    Upkeep,
)
from pyhudi.operations.services.archive import archive
from pyhudi.operations.services.clean import clean
from pyhudi.operations.services.repair.repair_table import repair_table
from pyhudi.operations.services.restore import restore
from pyhudi.operations.services.rollback import rollback
from pyhudi.operations.services.savepoint import delete_savepoint, savepoint
from pyhudi.reader.query import AsOf
from pyhudi.reader.scan import RowReader
from pyhudi.reader.snapshot import open_snapshot
from pyhudi.storage import open_storage
from pyhudi.table.config import load_config
from pyhudi.table.table import open_table
from support.drawn.buckets import Buckets
from support.made import compacting, sorting
from support.made.rescales import rescale
from support.made.rescaling import numbers_at
from support.models.logged_model import LoggedModel
from support.models.model import Model
from support.places import Place, files_below

SORTS = "sort"
SERVICES = ("clean", "archive", "rollback", "savepoint", "delete_savepoint", "restore")
# Of tables with log files; a compaction that is planned stays so for some steps.
COMPACTIONS = ("schedule", "compact")
# Log files are joined at once: while that is pending their file groups are not compacted, which no model knows.
JOINING = (*COMPACTIONS, "join")
# Of tables with buckets.
RESCALES = ("rescale",)
_COUNTS = (1, 2, 3, 4, 6)
CLEANS = (
    CleanSettings(commits=1),
    CleanSettings(commits=2),
    CleanSettings(commits=1, incremental=False),
    CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=1),
    CleanSettings(policy=KEEP_LATEST_FILE_VERSIONS, file_versions=2),
)
ARCHIVES = (
    ArchiveSettings(min_commits=1, max_commits=1, batch=2),
    ArchiveSettings(min_commits=1, max_commits=2, batch=3),
    ArchiveSettings(min_commits=2, max_commits=3, batch=2),
)
MERGE_SOON = CompactionSettings(delta_commits=2)
LATER = CompactionSettings(inline=False)
OFF = Upkeep(CleanSettings(automatic=False), ArchiveSettings(automatic=False), LATER, metadata=False)
_OFTEN = 0.7


@dataclass
class Life:
    """A table between its writes: which of its moments are remembered, and which of them are sure to be there.

    Attributes:
        table: Where it is.
        model: What it holds.
        services: Which of `SERVICES` are drawn.
        chance: Draws them.
        moments: What it held after each write that was not undone, by requested time.
        files: The files that showed each of them right after its write.
        stands: The same, with what compactions since then have merged.
        merged: Whether compactions were planned since the newest write, so that it cannot be undone.
        kept: The times of its savepoints.
        taken: Whether files were cleaned since the newest write, so that less can be undone.
        archived: Whether instants were, so that the last one that is left cannot be undone.
        undone: How many writes were taken back.
        changes: What became of rows in each merge.
        conflicts: How many merges came too late.
        rescaled: Whether the number of buckets may differ from that of the table's making.
        empty: The model of no write at all.
    """

    table: Place
    model: Model
    services: Sequence[str]
    chance: random.Random
    moments: dict[str, Model] = field(default_factory=dict)
    files: dict[str, frozenset[str]] = field(default_factory=dict)
    stands: dict[str, Model] = field(default_factory=dict)
    merged: bool = False
    kept: set[str] = field(default_factory=set)
    taken: bool = False
    archived: bool = False
    undone: int = 0
    changes: list[RowCounts] = field(default_factory=list)
    conflicts: int = 0
    rescaled: bool = False
    empty: Model = field(init=False)

    def __post_init__(self) -> None:
        self.empty = self.model.moment()

    def upkeep(self) -> Upkeep:
        """Return what a write does after itself: mostly nothing, as services are drawn between the writes."""
        if not {"clean", "archive"} <= set(self.services) or self.chance.random() < 0.5:
            return OFF
        merge = MERGE_SOON if "compact" in self.services and self.chance.random() < 0.5 else LATER
        return Upkeep(self.chance.choice(CLEANS), self.chance.choice(ARCHIVES), merge)

    def wrote(self, done: CommitResult) -> None:
        """Remember what a write left."""
        assert [one.error for one in done.services if one.error] == []
        if done.instant:
            self.moments[done.instant] = self.stands[done.instant] = self.model.moment()
            if self.services:
                then = open_snapshot(str(self.table), query=AsOf(done.instant))
                self.files[done.instant] = frozenset(file for one in then.slices() for file in one.files)
            self.taken = self.merged = False
        merged = [one.instant for one in done.services if one.service == "compaction" and one.instant]
        if merged and max(merged) > done.instant:
            self._has_merged()
        elif merged:
            # What was planned before the write is done; the write alone asks for no more, and may be undone.
            assert isinstance(self.model, LoggedModel)
            self.model.compact()
            self.stands[done.instant] = self.model.moment()
        self.taken |= any(one.files for one in done.services)
        self.archived |= any(one.instants for one in done.services)

    def serve(self) -> None:
        """Draw a service, or none."""
        if not self.services or not self.moments or self.chance.random() > _OFTEN:
            return
        getattr(self, f"_{self.chance.choice(self.services)}")()

    def check_moments(self) -> None:
        """Assert that each savepoint shows what it was made of, and any other moment that or nothing.

        An archived moment is refused only where a file of then is gone.
        """
        for time, moment in self.moments.items():
            is_savepoint = time in self.kept
            if is_savepoint or self.chance.random() < 0.2:
                try:
                    shown = self._shown(time)
                except UnreadableTimeError:
                    assert not is_savepoint
                    assert not self._is_whole_and_archived(time)
                else:
                    assert shown in _shows(moment)

    def _is_whole_and_archived(self, time: str) -> bool:
        """Return whether a moment is older than the timeline, and all files are there that showed it."""
        moment = self.moments[time]
        if time >= self._writes[0].requested_time or (isinstance(moment, LoggedModel) and moment.planned is not None):
            return False
        return self.files[time] <= frozenset(files_below(self.table))

    def _clean(self) -> None:
        settings = self.chance.choice(CLEANS)
        told = clean(self._storage, settings, dry_run=True)
        cleaned = clean(self._storage, settings)

        assert (told.files, told.bytes) == (cleaned.files, cleaned.bytes), "it does what it said"
        assert clean(self._storage, settings).files == 0, "nothing is left to be cleaned"
        self.taken |= cleaned.files > 0

    def _archive(self) -> None:
        done = archive(self._storage, self.chance.choice(ARCHIVES))
        self.archived |= done.instants > 0

    def _rollback(self) -> None:
        newest = max(self.moments)
        alone = self.archived and len(self._writes) == 1
        may_refuse = self.taken or alone or self.merged or newest in self.kept
        if self._tried(lambda: rollback(self._storage, newest), may_refuse):
            assert not self.merged, "what was merged stands on it"
            del self.moments[newest], self.stands[newest]
            self._go_back(self.stands)

    def _savepoint(self) -> None:
        newest = max(self.moments)
        at = self.chance.choice([newest, self.chance.choice(sorted(self.moments))])
        if self._tried(lambda: savepoint(self._storage, at), at != newest):
            self.kept.add(at)

    def _delete_savepoint(self) -> None:
        if self.kept:
            gone = self.chance.choice(sorted(self.kept))
            delete_savepoint(self._storage, gone)
            self.kept.remove(gone)

    def _restore(self) -> None:
        sure = max(self.kept, default="")
        at = self.chance.choice([sure, self.chance.choice(sorted(self.moments))]) or max(self.moments)
        if self._tried(lambda: restore(self._storage, at), at != sure):
            self.undone += sum(time > at for time in self.moments)
            self.moments = {time: moment for time, moment in self.moments.items() if time <= at}
            self.stands = dict(self.moments)
            self.merged = False
            self._go_back(self.moments)

    def _tried(self, act: Callable[[], object], may_refuse: bool) -> bool:
        """Return whether an act was done; where it could have been, it must have been."""
        try:
            act()
        except UndoError:
            assert may_refuse
            return False
        return True

    def _schedule(self) -> None:
        assert isinstance(self.model, LoggedModel)
        if compacting.schedule(self.table).instant:
            self.model.schedule()
            self._merged()

    def _compact(self) -> None:
        assert isinstance(self.model, LoggedModel)
        done = compacting.run(self.table)
        assert bool(done.instant) == self.model.wants_compaction
        assert not compacting.run(self.table).instant, "nothing is left to be merged"
        self._has_merged()

    def _sort(self) -> None:
        """Sort by the table's order, or by one of chance, which later writes keep; no row changes."""
        by = self.chance.choice([("ts",), ("value", "ts")])
        curve = self.chance.choice(["linear", "zorder", "hilbert"])
        has_order = load_config(self._storage).sort_order is not None
        result = sorting.run(self.table, **({} if has_order else {"by": by, "curve": curve}))
        assert not sorting.run(self.table).instant, "nothing is left to be sorted"
        if result.instant and isinstance(self.model, LoggedModel):
            self._has_merged()
        elif result.instant:
            self._merged()

    def _join(self) -> None:
        """Join log files; what was planned first is joined alike."""
        assert isinstance(self.model, LoggedModel)
        planned = compacting.plan_join(self.table).instant if self.chance.random() < 0.5 else ""
        result = compacting.join(self.table)
        assert not result.skipped
        assert planned in ("", result.instant)
        assert not compacting.join(self.table).instant, "nothing is left to be joined"
        if result.instant:
            self.model.join()
            self._merged()

    def _rescale(self) -> None:
        """Rescale, which merges all log files, whatever was planned for them."""
        done = rescale(self.table, self.chance.choice(_COUNTS))
        self.rescaled = True
        if done.instant:
            if isinstance(self.model, LoggedModel):
                assert isinstance(self.model.bucket_of, Buckets)
                self.model.rescale(replace(self.model.bucket_of, number=numbers_at(self.table).of))
            self._merged()

    def _repair(self) -> None:
        """Put a copy of a base file beside it that no write made; the repair moves it aside, and nothing else."""
        storage = self._storage
        bases = [one.base.path for one in open_snapshot(str(self.table)).slices() if one.base is not None]
        if bases:
            orphan = f"{min(bases).rpartition('_')[0].rpartition('_')[0]}_9-9-9_20981231000000000.parquet"
            storage.write(orphan, storage.read(min(bases)))
            assert repair_table(storage, sorting.MEANS).moved == (orphan,)
        assert repair_table(storage, sorting.MEANS).moved == (), "nothing is left to be repaired"

    def _has_merged(self) -> None:
        """Tell the model that what was planned is done, and what came since is merged, too."""
        assert isinstance(self.model, LoggedModel)
        if self.model.planned:
            self.model.compact()
        self.model.compact()
        self._merged()

    def _merged(self) -> None:
        self.merged = True
        self.stands[max(self.moments)] = self.model.moment()

    def _go_back(self, moments: Mapping[str, Model]) -> None:
        self.undone += 1
        # Of what was undone the cleaned past may be needed again.
        self.taken = True
        self.model.go_back(moments[max(moments)] if moments else self.empty)
        if isinstance(self.model, LoggedModel) and self.model.planned is not None and not self._pending_compactions():
            # What was planned before the moment and done after it stays done, as it is what the moment shows by now.
            self.model.compact()

    def _pending_compactions(self) -> list[str]:
        pending = [one for one in compacting.timeline_of(self.table).pending if one.action == "compaction"]
        return [one.requested_time for one in pending]

    @property
    def _writes(self):  # type: ignore[no-untyped-def]
        return open_table(self._storage).timeline().writes

    @property
    def _storage(self):  # type: ignore[no-untyped-def]
        return open_storage(str(self.table))

    def _shown(self, time: str) -> list[tuple[object, ...]]:
        snapshot = open_snapshot(str(self.table), query=AsOf(time))
        asked = pa.schema([snapshot.schema.field(name) for name in ("p", "id", "ts", "value")])
        batches = [
            batch
            for split in snapshot.plan(asked, (), 1 << 27)
            for batch in RowReader(snapshot.storage, asked, snapshot.schema, times=snapshot.times).read(split)
        ]
        rows = pa.Table.from_batches(batches, asked)
        return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _shows(moment: Model) -> list[list[tuple[object, ...]]]:
    """Return what may be shown of a moment: a compaction that was pending then, and is no more, counts as done."""
    shown = [moment.tuples()]
    if isinstance(moment, LoggedModel) and moment.planned is not None:
        compacted = moment.moment()
        assert isinstance(compacted, LoggedModel)
        compacted.compact()
        shown.append(compacted.tuples())
    return shown
