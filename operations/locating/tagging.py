"""What tasks spilled, cut by the file groups that a lookup finds, and new keys given their places: the commit's share.

No task of a plain write sees more than some of its keys, and each would open the same files. So the commit looks all of
them up: each file that may hold one is opened once, or once a pass where memory has no room for all keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import KeyNotFoundError
from ...index.base import NOT_FOUND, KeyedRows, LookupFigures, LookupIndex, Positions, Tags
from ...index.lookup import by_partition
from ...storage.base import Storage
from ...table.arrow.arrays import Mask, mask
from ...table.arrow.batches import concat, rechunk
from ...table.arrow.spill import local_spills
from ...table.files.file_group import FileSlice
from ...table.files.names import FileGroupId
from ...table.files.view import FileView
from ...table.merging.merger import Meeting, MergeCounts, check_known, folded
from ...table.schema.columns import RECORD_KEY
from ...table.seen_table import SeenTable
from ...writer.buffer import MERGE_RESERVE, Gathered, GroupRows
from ...writer.group_writer import GroupJob
from ...writer.moved_rows import OldRows, living, settle, tombstones
from ...writer.passes import Held, Portion, passes
from ...writer.routes import Route
from ...writer.rows import cut
from ...writer.slice_reader import SliceReader
from ..indexing.asking import ask
from ..indexing.telling import catch_up
from ..planning.operation import REPLACING
from ..planning.plan import WritePlan
from .adoption import check_lesson, check_spelling_of_others
from .group_jobs import SHARE, Pieces, SortedRows, jobs_of, open_buffers, unknown_group

# So much text has room in one array.
_MOST_BYTES = 1 << 30
_NEW = NOT_FOUND


@dataclass(frozen=True, slots=True)
class Tagged:
    """What is to be written, once it is known where the keys of all rows are.

    Attributes:
        jobs: The file groups with the rows of each, in order of the groups.
        nowhere: What became of rows that belong to no file group.
        figures: What the lookup took; None where nothing was looked up.
        known_partitions: The partitions that have their metafile already.
    """

    jobs: tuple[tuple[GroupJob, GroupRows], ...]
    nowhere: MergeCounts
    figures: LookupFigures | None
    known_partitions: set[str]


def tag_rows(plan: WritePlan, local: Storage, spilled: Mapping[Route, GroupRows], seen: SeenTable) -> Tagged:
    """Look up where the keys of spilled rows are, and give new ones their places.

    Args:
        plan: The write.
        local: A folder of this process.
        spilled: The rows of each bin of each partition, in the order of the tasks.
        seen: The table as of the write's watermark.

    Raises:
        KeyNotFoundError: A key to be deleted is not there, and the rules forbid it.
        PyHudiError: The index, the store or a file fails.
    """
    check_lesson(plan, seen)
    # Of a table, or of partitions, that the write replaces nothing is looked for.
    view = None if plan.operation in REPLACING else seen.view
    searched = None if plan.rules.meeting is Meeting.ADD else view
    nowhere, figures = MergeCounts(), None
    if searched is not None:
        catch_up(plan.lookup, plan.table)
    if searched is None and not (plan.rules.fold and plan.lookup.is_global):
        rows = _added(spilled)
    else:
        lookup = _Lookup(plan, local, searched)
        rows, nowhere = lookup.sort(spilled), lookup.nowhere
        if searched is not None:
            check_spelling_of_others(plan, searched, lookup.absent)
            figures = lookup.figures
    jobs = jobs_of(plan, local, view, seen.timeline, rows)
    paths = {job.group.partition_path for job, _ in jobs}
    known = {path for path in paths if view is not None and view.is_partition(path)}
    return Tagged(tuple(jobs), nowhere, figures, known)


def _added(spilled: Mapping[Route, GroupRows]) -> SortedRows:
    """Return rows that nobody looks up, all of which count as new."""
    new = {
        path: GroupRows(tuple(piece for route in routes for piece in spilled[route].pieces))
        for path, routes in groupby(sorted(spilled), lambda route: route.partition_path)
    }
    return SortedRows({}, new, {path: rows.rows for path, rows in new.items()})


@dataclass(frozen=True, slots=True)
class _Aims:
    """Where n rows go, by the numbers of file groups, or of the new rows of partitions.

    Attributes:
        targets: n numbers; -1 for a row that goes nowhere.
        copied: Positions of rows that go to a further file group, where inserts added their key without looking: once
            for each of the others.
        copies: The numbers of these others.
        leaving: Positions of rows that delete their key in a file group.
        left: The number of each of those.
    """

    targets: Positions
    copied: Positions
    copies: Positions
    leaving: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    left: Positions = field(default_factory=lambda: np.zeros(0, np.int64))

    def further(self) -> Iterator[tuple[Positions, Positions, bool]]:
        """Yield rows, ascending, that go elsewhere too, with where, and whether they are deletes there."""
        for rows, numbers, leave in ((self.copied, self.copies, False), (self.leaving, self.left, True)):
            order = np.argsort(rows, kind="stable")
            yield rows[order], numbers[order], leave


class _Lookup:
    """Finds the file groups of spilled rows, pass by pass, and keeps the rows by these.

    Args:
        plan: The write.
        local: A folder of this process.
        view: The table's file slices as of the write's watermark; None where all rows are added, and of those of one
            key in several partitions one is.

    Attributes:
        nowhere: What became of rows that belong to no file group.
        figures: What it took so far.
        absent: The partitions that lack keys of theirs.
    """

    def __init__(self, plan: WritePlan, local: Storage, view: FileView | None) -> None:
        self._plan = plan
        self._storage = plan.storage
        self._local = local
        self._view = view
        self._spec = plan.spec
        self._index = plan.lookup
        self._buffers = open_buffers(plan, local, "tagged")
        self._pieces = Pieces(view)
        self._open_spill = local_spills(local)
        self._groups: list[FileGroupId] = []
        self._numbers: dict[Route | FileGroupId, int] = {}
        self._routes: list[Route] = []
        self._counts: Counter[str] = Counter()
        self.nowhere = MergeCounts()
        self.figures = LookupFigures()
        self.absent: set[str] = set()

    def sort(self, spilled: Mapping[Route, GroupRows]) -> SortedRows:
        """Look all rows up, and cut them by what was found."""
        nbytes = min(self._plan.settings.output.memory // SHARE, _MOST_BYTES)
        try:
            for held in passes(_units(self._index, spilled), self._spec.deciding, nbytes):
                self._pass(held)
            gathered = Gathered(self._buffers, self._local)
        except BaseException:
            self._buffers.discard()
            raise
        rows = {route: gathered.take(route) for route in gathered.routes()}
        return SortedRows(
            {self._groups[route.number]: some for route, some in rows.items() if route.number != _NEW},
            {route.partition_path: some for route, some in rows.items() if route.number == _NEW},
            self._counts,
        )

    def _pass(self, held: Sequence[Held]) -> None:
        if self._index.is_global:
            self._pass_everywhere(held)
            return
        tags = self._tag(_keyed(held))
        if len(tags.copied):
            rows = concat([batch for one in held for batch in one.batches])
            tags = living(tags, self._deletes(rows), self._old_rows(judges=False).look(rows, tags.groups))
        # The last one is for keys that the table lacks, whose code is -1.
        numbers = np.array([*map(self._number, tags.groups), -1], np.int64)
        targets = numbers[tags.codes]
        start = 0
        for one in held:
            absent = np.flatnonzero(tags.codes[start : start + one.count] == NOT_FOUND)
            if len(absent):
                targets[start + self._kept(one, absent)] = self._number(Route(one.portion.route.partition_path, _NEW))
            start += one.count
        self._cut(held, _Aims(targets, tags.copied, numbers[tags.copy_codes]))

    def _pass_everywhere(self, held: Sequence[Held]) -> None:
        """Go on with the rows that win among their keys, whatever their partitions, and leave the others out."""
        rows, keyed = concat([batch for one in held for batch in one.batches]), _keyed(held)
        count, chosen = len(keyed), np.arange(len(keyed))
        if self._plan.folds:
            chosen = folded(self._spec, rows)
            some = pa.array(chosen)
            rows, keyed = rows.take(some), KeyedRows(keyed.record_keys.take(some), keyed.paths.take(some))
        tags = self._tag(keyed)
        moves = self._plan.moves_rows
        look = self._old_rows(judges=moves).look(rows, tags.groups)
        settled = settle(keyed, tags, self._deletes(rows), look, moves=moves)
        numbers = np.array([*map(self._number, tags.groups), -1], np.int64)
        targets = np.full(count, -1, np.int64)
        some = pa.array(settled.new)
        for path, places in by_partition(KeyedRows(keyed.record_keys.take(some), keyed.paths.take(some))):
            absent = settled.new[places]
            new = absent[self._live(path, rows.take(pa.array(absent)))]
            targets[chosen[new]] = self._number(Route(path, _NEW))
        first = np.unique(settled.rows, return_index=True)[1]
        targets[chosen[settled.rows[first]]] = numbers[settled.codes[first]]
        others = np.delete(np.arange(len(settled.rows)), first)
        copied, copies = chosen[settled.rows[others]], numbers[settled.codes[others]]
        self._cut(held, _Aims(targets, copied, copies, chosen[settled.leaving], numbers[settled.left]))

    def _deletes(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows are to be deleted wherever their key is; one that is to be added deletes nothing."""
        return self._spec.deleted(rows) & (self._plan.rules.meeting is Meeting.MERGE)

    def _old_rows(self, *, judges: bool) -> OldRows:
        plan = self._plan
        sees = (lambda _: True) if self._view is None else self._view.sees
        memory = int(plan.settings.output.memory * MERGE_RESERVE)
        reader = SliceReader(self._storage, plan.config, plan.schema, sees, memory, self._open_spill)
        return OldRows(self._storage, self._spec, judges, self._piece, reader.read)

    def _piece(self, group: FileGroupId) -> FileSlice:
        piece = self._pieces.find(group)
        if piece is None:
            raise unknown_group(self._plan, group)
        return piece

    def _tag(self, keyed: KeyedRows) -> Tags:
        if self._view is None:
            return Tags((), np.full(len(keyed), NOT_FOUND, np.int32))
        tags = ask(self._index, keyed, self._view, self._plan.table)
        self.figures += tags.figures
        return tags

    def _kept(self, one: Held, absent: Positions) -> Positions:
        """Return which of the rows whose keys the table lacks are new rows: of each key the one that wins.

        Raises:
            KeyNotFoundError: A key was to be deleted, and the rules say that it must be found.
        """
        rows = concat(one.batches).take(pa.array(absent))
        path = one.portion.route.partition_path
        if not self._plan.folds:
            return absent[self._live(path, rows)]
        winners = folded(self._spec, rows)
        won = rows.take(pa.array(winners))
        live = self._live(path, won)
        if not self._plan.lays_rows:
            return absent[winners[live]]
        # What wins is put together of all rows of its key.
        kept = won.column(RECORD_KEY).filter(pa.array(live))
        return absent[mask(pc.is_in(rows.column(RECORD_KEY), value_set=kept))]

    def _live(self, path: str, rows: pa.RecordBatch) -> Mask:
        """Return which of the rows that win among keys which the table lacks are none of deletes, and count them.

        Raises:
            KeyNotFoundError: A key was to be deleted or updated in part, and the rules say that it must be found.
        """
        self.absent.add(path)
        deleted = self._spec.deleted(rows)
        if self._plan.rules.must_find and deleted.any():
            key = rows.column(RECORD_KEY)[int(np.flatnonzero(deleted)[0])].as_py()  # one value, for the error
            raise KeyNotFoundError(
                f"The record key {key!r} was to be deleted and is not in partition {path!r} of the table "
                f"{self._plan.path}; {np.count_nonzero(deleted)} such keys were found missing before the rest was "
                "looked up.",
                "Leave these keys out, or allow missing ones (hoodie.pyhudi.delete.missing.ok=true, which is the "
                "default).",
            )
        self.nowhere.not_found += int(np.count_nonzero(deleted))
        if self._plan.rules.known_only:
            where = f"partition {path!r} of the table {self._plan.path}"
            check_known(rows.column(RECORD_KEY).filter(pa.array(~deleted)), where)
        self._counts[path] += rows.num_rows - int(np.count_nonzero(deleted))
        return ~deleted

    def _cut(self, held: Sequence[Held], aims: _Aims) -> None:
        """Keep the rows of a pass by where they go."""
        start, further = 0, list(aims.further())
        for chunk in rechunk(chain.from_iterable(one.portion.batches() for one in held)):
            end = start + chunk.num_rows
            self._add(chunk, aims.targets[start:end])
            for rows, numbers, leave in further:
                first, last = np.searchsorted(rows, [start, end])
                if first < last:
                    some = chunk.take(pa.array(rows[first:last] - start))
                    self._add(tombstones(some) if leave else some, numbers[first:last])
            start = end

    def _add(self, rows: pa.RecordBatch, targets: Positions) -> None:
        for number, some in cut(rows, targets):
            self._buffers.add(self._routes[number], some)

    def _number(self, place: Route | FileGroupId) -> int:
        """Return the number of a file group, or of the new rows of a partition."""
        known = self._numbers.get(place)
        if known is None:
            known = self._numbers[place] = len(self._routes)
            if isinstance(place, FileGroupId):
                self._routes.append(Route(place.partition_path, len(self._groups)))
                self._groups.append(place)
            else:
                self._routes.append(place)
        return known


def _units(index: LookupIndex, spilled: Mapping[Route, GroupRows]) -> list[list[Portion]]:
    """Return the rows that may have keys in common, by partitions first, so that few passes meet a file."""
    if not index.is_global:
        return [[Portion(route, spilled[route])] for route in sorted(spilled)]
    by_bin = sorted(spilled, key=lambda route: (route.number, route.partition_path))
    return [
        [Portion(route, spilled[route]) for route in routes] for _, routes in groupby(by_bin, lambda one: one.number)
    ]


def _keyed(held: Sequence[Held]) -> KeyedRows:
    keys = pa.concat_arrays([batch.column(RECORD_KEY) for one in held for batch in one.batches])
    places: dict[str, int] = {}
    of_each = [places.setdefault(one.portion.route.partition_path, len(places)) for one in held]
    indices = np.repeat(np.array(of_each, np.int32), [one.count for one in held])
    paths = pa.DictionaryArray.from_arrays(pa.array(indices), pa.array([*places], pa.string()))
    return KeyedRows(keys, paths)
