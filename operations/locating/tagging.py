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
from ...table.files.names import FileGroupId
from ...table.merging.merger import Meeting, MergeCounts, check_known
from ...table.schema.columns import RECORD_KEY
from ...table.seen_table import SeenTable
from ...writer.buffer import Gathered, GroupRows
from ...writer.group_writer import FileGroupWrite
from ...writer.moved_rows import living, tombstones
from ...writer.passes import Held, Portion, passes
from ...writer.routes import Route
from ...writer.rows import cut
from ..indexing.notify import catch_up
from ..planning.operation import REPLACING
from ..planning.plan import WritePlan
from .adoption import check_new_properties, check_spelling_of_others
from .file_group_writes import SHARE, SortedRows, jobs_of, open_buffers
from .tagger import Tagger

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

    jobs: tuple[tuple[FileGroupWrite, GroupRows], ...]
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
    check_new_properties(plan, seen)
    # Of a table, or of partitions, that the write replaces nothing is looked for.
    view = None if plan.operation in REPLACING else seen.view
    searched = None if view is None or plan.rules.meeting is Meeting.ADD else seen
    nowhere, figures = MergeCounts(), None
    if searched is not None:
        catch_up(plan.lookup, plan.table)
    if searched is None and not (plan.rules.fold and plan.lookup.is_global):
        rows = _added(spilled)
    else:
        lookup = _Lookup(plan, local, searched)
        rows, nowhere = lookup.sort(spilled), lookup.nowhere
        if searched is not None:
            check_spelling_of_others(plan, searched.view, lookup.absent)
            figures = lookup.figures
    jobs = jobs_of(plan, local, view, seen.timeline, rows)
    paths = {job.group.partition_path for job, _ in jobs}
    known = {path for path in paths if view is not None and view.is_partition(path)}
    return Tagged(tuple(jobs), nowhere, figures, known)


def _added(spilled: Mapping[Route, GroupRows]) -> SortedRows:
    """Return rows whose keys are not looked up, all of which count as new."""
    new = {
        path: GroupRows(tuple(file_slice for route in routes for file_slice in spilled[route].pieces))
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
        seen: The table as of the write's watermark; None where all rows are added, and of those of one key in several
            partitions one is.

    Attributes:
        nowhere: What became of rows that belong to no file group.
        figures: What it took so far.
        absent: The partitions that lack keys of theirs.
    """

    def __init__(self, plan: WritePlan, local: Storage, seen: SeenTable | None) -> None:
        self._plan = plan
        self._local = local
        self._tagger = Tagger(plan, seen)
        self._old_rows = self._tagger.old_rows(local)
        self._buffers = open_buffers(plan, local, "tagged")
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
            for held in passes(_units(self._plan.lookup, spilled), self._tagger.spec.deciding, nbytes):
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
        if self._plan.lookup.is_global:
            self._pass_everywhere(held)
            return
        tags = self._tag(_keyed(held))
        if len(tags.copied):
            rows = _rows(held)
            tags = living(tags, self._tagger.deleted(rows), self._old_rows.look(rows, tags.groups))
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
        every = _rows(held)
        chosen = self._tagger.fold(every)
        some = pa.array(chosen)
        rows, keyed = every.take(some), _taken(_keyed(held), some)
        tags = self._tag(keyed)
        look = self._old_rows.look(rows, tags.groups)
        settled = self._tagger.settle(keyed, tags, self._tagger.deleted(rows), look)
        numbers = np.array([*map(self._number, tags.groups), -1], np.int64)
        targets = np.full(every.num_rows, -1, np.int64)
        for path, places in by_partition(_taken(keyed, pa.array(settled.new))):
            absent = settled.new[places]
            new = absent[self._live(path, rows.take(pa.array(absent)))]
            targets[chosen[new]] = self._number(Route(path, _NEW))
        first = np.unique(settled.rows, return_index=True)[1]
        targets[chosen[settled.rows[first]]] = numbers[settled.codes[first]]
        others = np.delete(np.arange(len(settled.rows)), first)
        copied, copies = chosen[settled.rows[others]], numbers[settled.codes[others]]
        self._cut(held, _Aims(targets, copied, copies, chosen[settled.leaving], numbers[settled.left]))

    def _tag(self, keyed: KeyedRows) -> Tags:
        tags = self._tagger.tag(keyed)
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
        winners = self._tagger.fold(rows)
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
        deleted = self._tagger.spec.deleted(rows)
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


def _rows(held: Sequence[Held]) -> pa.RecordBatch:
    return concat([batch for one in held for batch in one.batches])


def _taken(keyed: KeyedRows, at: pa.Array) -> KeyedRows:
    return KeyedRows(keyed.record_keys.take(at), keyed.paths.take(at))


def _keyed(held: Sequence[Held]) -> KeyedRows:
    keys = pa.concat_arrays([batch.column(RECORD_KEY) for one in held for batch in one.batches])
    places: dict[str, int] = {}
    of_each = [places.setdefault(one.portion.route.partition_path, len(places)) for one in held]
    indices = np.repeat(np.array(of_each, np.int32), [one.count for one in held])
    paths = pa.DictionaryArray.from_arrays(pa.array(indices), pa.array([*places], pa.string()))
    return KeyedRows(keys, paths)
