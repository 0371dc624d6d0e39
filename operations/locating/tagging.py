"""The commit's part of a lookup: it cuts the rows by the file groups of their keys, and places new keys.

The tasks have spilled these rows: they wrote them to files for the commit.

Each task of a plain write has only some keys, and each would open the same files. The commit opens each file that may
hold a key once, or once a pass if memory cannot hold all keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DuplicateKeyError, KeyNotFoundError
from ...index.base import NOT_FOUND, KeyedRows, LookupFigures, LookupIndex, Positions, Tags
from ...index.lookup import by_partition
from ...storage.base import Storage
from ...table.arrow.arrays import Mask, mask
from ...table.arrow.batches import concat, rechunk
from ...table.files.names import FileGroupId
from ...table.merging.merger import MergeCounts, RowMeeting, check_known
from ...table.schema.columns import RECORD_KEY
from ...table.seen_table import SeenTable
from ...writer.buffer import Gathered, GroupRows
from ...writer.group_writer import FileGroupWrite
from ...writer.moved_rows import living, tombstones
from ...writer.passes import Held, Portion, passes
from ...writer.routes import Route
from ...writer.rows import cut
from ..indexing.known_keys import KeysOfWrite
from ..indexing.notify import catch_up
from ..planning.operation import REPLACING
from ..planning.plan import WritePlan
from .adoption import check_new_properties, check_spelling_of_others
from .copied_keys import check_copies
from .file_group_writes import SHARE, SortedRows, jobs_of, jobs_of_groups, open_buffers
from .tagger import Tagger

# The most bytes of text in one array.
_MOST_BYTES = 1 << 30
_NEW = NOT_FOUND


@dataclass(frozen=True, slots=True)
class Tagged:
    """The work of the commit, once it knows the file groups of all keys.

    Attributes:
        jobs: The file groups with the rows of each, in the order of the groups.
        nowhere: Counts of rows that belong to no file group.
        figures: Figures of the lookup; None without a lookup.
        known_partitions: The partitions that have their metafile already.
        gone: The file groups in partitions that the write does not replace, each with the keys to delete there.
        replaced: The partitions that an overwrite replaces under an index of the whole table, also those whose rows
            are all deletes and so have no job.
    """

    jobs: tuple[tuple[FileGroupWrite, GroupRows], ...]
    nowhere: MergeCounts
    figures: LookupFigures | None
    known_partitions: set[str]
    gone: tuple[tuple[FileGroupWrite, GroupRows], ...] = ()
    replaced: frozenset[str] = frozenset()


def tag_rows(
    plan: WritePlan,
    local: Storage,
    spilled: Mapping[Route, GroupRows],
    seen: SeenTable,
    known_keys: KeysOfWrite | None = None,
) -> Tagged:
    """Return which file group gets which spilled rows, after a lookup of their keys and a placing of new keys.

    ``spilled`` has the rows of each share of a partition's keys, in the order of the tasks, ``seen`` is the table at
    the plan, and ``known_keys`` are the keys of the table that the process has in memory. Raises `KeyNotFoundError`
    if the key of a delete does not exist and the rules forbid that, and `DuplicateKeyError` if an overwrite of
    partitions would leave a key in two partitions.
    """
    check_new_properties(plan, seen)
    # A write looks no key up in what it replaces.
    view = None if plan.operation in REPLACING else seen.view
    searched = None if view is None or plan.rules.meeting is RowMeeting.ADD else seen
    nowhere, figures = MergeCounts(), None
    if searched is not None:
        catch_up(plan.lookup, plan.table)
    # Under a global index, even a write without a lookup folds the rows of a key from all partitions.
    if searched is None and not (plan.rules.fold and plan.lookup.is_global):
        rows = _rows_without_lookup(spilled)
    else:
        lookup = _Lookup(plan, local, Tagger(plan, searched, known_keys))
        rows, nowhere = lookup.sort(spilled), lookup.nowhere
        if searched is not None:
            check_spelling_of_others(plan, searched.view, lookup.absent)
            figures = lookup.figures
    jobs = jobs_of(plan, local, view, seen.timeline, rows)
    if plan.keeps_keys_unique:
        replaced = frozenset(rows.counts)
        copies = CopiesElsewhere(plan, local, Tagger(plan, seen, known_keys), replaced)
        deletes_elsewhere = copies.groups_with_copies(spilled, seen)
        partitions = {job.group.partition_path for job, _ in deletes_elsewhere}
        return Tagged(tuple(jobs), nowhere, copies.figures, partitions, tuple(deletes_elsewhere), replaced)
    paths = {job.group.partition_path for job, _ in jobs}
    with_metafile = {path for path in paths if view is not None and view.is_partition(path)}
    return Tagged(tuple(jobs), nowhere, figures, with_metafile)


def _rows_without_lookup(spilled: Mapping[Route, GroupRows]) -> SortedRows:
    """Return all rows as rows with new keys, by partition, for a write that looks no key up."""
    rows_by_path = {
        path: GroupRows(tuple(file_slice for route in routes for file_slice in spilled[route].pieces))
        for path, routes in groupby(sorted(spilled), lambda route: route.partition_path)
    }
    return SortedRows({}, rows_by_path, {path: rows.rows for path, rows in rows_by_path.items()})


@dataclass(frozen=True, slots=True)
class _RowTargets:
    """The targets of rows, as numbers of file groups, or of the new rows of a partition.

    Attributes:
        targets: A number for each row; -1 for a row that goes nowhere.
        copied: Positions of rows that also go to another file group of their key, whose number is in ``copies``.
        leaving: Positions of rows that delete their key in a file group, whose number is in ``left``.
    """

    targets: Positions
    copied: Positions
    copies: Positions
    leaving: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    left: Positions = field(default_factory=lambda: np.zeros(0, np.int64))

    def further_targets(self) -> Iterator[tuple[Positions, Positions, bool]]:
        """Yield ascending positions of rows with the numbers of further targets, and whether the rows are deletes."""
        for rows, numbers, leave in ((self.copied, self.copies, False), (self.leaving, self.left, True)):
            order = np.argsort(rows, kind="stable")
            yield rows[order], numbers[order], leave


class _Lookup:
    """Finds the file groups of spilled rows, pass by pass, and buffers the rows by file group.

    Attributes:
        nowhere: Counts of rows that belong to no file group.
        absent: The partitions in which some keys were not found.
    """

    def __init__(self, plan: WritePlan, local: Storage, tagger: Tagger) -> None:
        self._plan = plan
        self._local = local
        self._tagger = tagger
        self._old_rows = self._tagger.old_rows(local)
        self._buffers = open_buffers(plan, local, "tagged")
        # By the number of each target: the route of its buffer. A route has the position of a file group among the
        # groups as its number, or `_NEW` for the new rows of a partition.
        self._groups: list[FileGroupId] = []
        self._numbers: dict[Route | FileGroupId, int] = {}
        self._routes: list[Route] = []
        # The number of new rows by partition.
        self._counts: Counter[str] = Counter()
        self.nowhere = MergeCounts()
        self.figures = LookupFigures()
        self.absent: set[str] = set()
        # The file groups that hold a looked-up key several times.
        self._repeating: set[FileGroupId] = set()

    def sort(self, spilled: Mapping[Route, GroupRows]) -> SortedRows:
        """Return the spilled rows by the file group that gets them, those with new keys by partition.

        It takes them in passes, each with as many rows as fit into memory; buffers spill the results to the local
        folder.
        """
        nbytes = min(self._plan.settings.output.memory // SHARE, _MOST_BYTES)
        try:
            for portions in passes(_units_of_passes(self._plan.lookup, spilled), self._tagger.spec.deciding, nbytes):
                self._place_rows(portions)
            gathered = Gathered(self._buffers, self._local)
        except BaseException:
            self._buffers.discard()
            raise
        rows = {route: gathered.take(route) for route in gathered.routes()}
        return SortedRows(
            {self._groups[route.number]: group_rows for route, group_rows in rows.items() if route.number != _NEW},
            {route.partition_path: group_rows for route, group_rows in rows.items() if route.number == _NEW},
            self._counts,
            frozenset(self._repeating),
        )

    def _place_rows(self, portions: Sequence[Held]) -> None:
        """Look up the keys of one pass, and buffer each row for its file groups, or as a new row of its partition.

        Under an index of the whole table, `_place_rows_of_any_partition` does so.
        """
        if self._plan.lookup.is_global:
            self._place_rows_of_any_partition(portions)
            return
        keyed = _keyed(portions)
        tags = self._tag(keyed)
        if self._plan.rules.of_stored:
            check_copies(keyed, keyed, tags, self._old_rows, self._plan.lookup)
        if len(tags.copied):
            rows = _deciding_columns(portions)
            tags = living(tags, self._tagger.deleted(rows), self._old_rows.look(rows, tags.groups))
        # The last number is for keys that the table lacks, whose code is -1.
        numbers = np.array([*map(self._number, tags.groups), -1], np.int64)
        targets = numbers[tags.codes]
        start = 0
        for part in portions:
            absent = np.flatnonzero(tags.codes[start : start + part.count] == NOT_FOUND)
            if len(absent):
                new = self._new_rows(part, absent)
                targets[start + new] = self._number(Route(part.portion.route.partition_path, _NEW))
            start += part.count
        self._cut(portions, _RowTargets(targets, tags.copied, numbers[tags.copy_codes]))

    def _place_rows_of_any_partition(self, portions: Sequence[Held]) -> None:
        """Place rows whose keys are unique in the whole table: one row of a key wins, whatever its partition.

        It looks up the keys of one pass, which are the spilled rows of ``portions``, and buffers each row for its file
        groups, or as a new row of its partition.
        """
        all_rows = _deciding_columns(portions)
        winners = self._tagger.fold(all_rows)
        winner_positions = pa.array(winners)
        incoming = _keyed(portions)
        rows, keyed = all_rows.take(winner_positions), _keyed_at(incoming, winner_positions)
        tags = self._tag(keyed)
        if self._plan.rules.of_stored:
            check_copies(incoming, keyed, tags, self._old_rows, self._plan.lookup)
        look = self._old_rows.look(rows, tags.groups)
        # Positions in `resolved` are among the winners: `rows` go to a stored row's file group, `leaving` delete it.
        resolved = self._tagger.resolve(keyed, tags, self._tagger.deleted(rows), look)
        numbers = np.array([*map(self._number, tags.groups), -1], np.int64)
        # What was looked up are the winners alone; `winners` turns their positions into positions among all rows.
        targets = np.full(all_rows.num_rows, -1, np.int64)
        for path, positions in by_partition(_keyed_at(keyed, pa.array(resolved.new))):
            absent = resolved.new[positions]
            new = absent[self._are_new(path, rows.take(pa.array(absent)))]
            targets[winners[new]] = self._number(Route(path, _NEW))
        # A row with several places has the first as its target, and goes to the others as a copy.
        first_of_key = np.unique(resolved.rows, return_index=True)[1]
        targets[winners[resolved.rows[first_of_key]]] = numbers[resolved.codes[first_of_key]]
        further_of_key = np.delete(np.arange(len(resolved.rows)), first_of_key)
        copied, copies = winners[resolved.rows[further_of_key]], numbers[resolved.codes[further_of_key]]
        self._cut(portions, _RowTargets(targets, copied, copies, winners[resolved.leaving], numbers[resolved.left]))

    def _tag(self, keyed: KeyedRows) -> Tags:
        """Return the file groups of keys; add up the lookup's costs and the groups that hold a key several times."""
        tags = self._tagger.tag(keyed)
        self.figures += tags.figures
        self._repeating.update(tags.groups[code] for code in tags.repeating)
        return tags

    def _new_rows(self, part: Held, absent: Positions) -> Positions:
        """Return the positions of the new rows of a part: the winner of each absent key, unless that is a delete.

        ``absent`` are the positions of the rows whose keys the table lacks. Without a fold these are all rows but
        deletes. In a partial merge they are all rows of a key whose winner is no delete.
        """
        rows = concat(part.batches).take(pa.array(absent))
        path = part.portion.route.partition_path
        if not self._plan.folds:
            return absent[self._are_new(path, rows)]
        winners = self._tagger.fold(rows)
        won = rows.take(pa.array(winners))
        live = self._are_new(path, won)
        if not self._plan.lays_rows:
            return absent[winners[live]]
        # A partial merge combines all rows of the key, not the winner alone.
        live_keys = won.column(RECORD_KEY).filter(pa.array(live))
        return absent[mask(pc.is_in(rows.column(RECORD_KEY), value_set=live_keys))]

    def _are_new(self, path: str, rows: pa.RecordBatch) -> Mask:
        """Return which rows of the partition ``path``, which lacks the keys of all, are new ones and no deletes.

        It counts the new rows, for the sizes of new file groups, and the deletes, whose keys were not found. If a write
        folds the rows of a key, these are the winners alone. Raises `KeyNotFoundError` if the rules say that the key
        of a delete or of a partial update must exist.
        """
        self.absent.add(path)
        deleted = self._tagger.spec.deleted(rows)
        if self._plan.rules.must_find and deleted.any():
            key = rows.column(RECORD_KEY)[int(np.flatnonzero(deleted)[0])].as_py()  # one value, for the error
            raise KeyNotFoundError(
                f"The record key {key!r} was to be deleted and is not in partition {path!r} of the table "
                f"{self._plan.path}; {np.count_nonzero(deleted)} such keys were missing when the lookup stopped.",
                "Leave these keys out, or allow missing keys (hoodie.pyhudi.delete.missing.ok=true, which is the "
                "default).",
            )
        self.nowhere.not_found += int(np.count_nonzero(deleted))
        if self._plan.rules.known_only:
            where = f"partition {path!r} of the table {self._plan.path}"
            check_known(rows.column(RECORD_KEY).filter(pa.array(~deleted)), where)
        self._counts[path] += rows.num_rows - int(np.count_nonzero(deleted))
        return ~deleted

    def _cut(self, portions: Sequence[Held], row_targets: _RowTargets) -> None:
        """Buffer the spilled rows of a pass by their targets, chunk by chunk, with all their columns.

        A row with further targets goes to each of them, as a delete to the file groups that it leaves.
        """
        start, further_targets = 0, list(row_targets.further_targets())
        for chunk in rechunk(chain.from_iterable(part.portion.batches() for part in portions)):
            end = start + chunk.num_rows
            self._buffer(chunk, row_targets.targets[start:end])
            for rows, numbers, leave in further_targets:
                first_target, last_target = np.searchsorted(rows, [start, end])
                if first_target < last_target:
                    part = chunk.take(pa.array(rows[first_target:last_target] - start))
                    self._buffer(tombstones(part) if leave else part, numbers[first_target:last_target])
            start = end

    def _buffer(self, rows: pa.RecordBatch, targets: Positions) -> None:
        """Buffer rows by their targets; rows with the target -1 go nowhere."""
        for number, part in cut(rows, targets):
            self._buffers.add(self._routes[number], part)

    def _number(self, target: Route | FileGroupId) -> int:
        """Return the number of a target; a new target gets the next.

        A target is a file group, or stands for the new rows of a partition.
        """
        number = self._numbers.get(target)
        if number is None:
            number = self._numbers[target] = len(self._routes)
            if isinstance(target, FileGroupId):
                self._routes.append(Route(target.partition_path, len(self._groups)))
                self._groups.append(target)
            else:
                self._routes.append(target)
        return number


class CopiesElsewhere:
    """Finds the keys of an overwrite of partitions in the other partitions, under an index of the whole table.

    Args:
        replaced: The partitions that the write replaces.
    """

    def __init__(self, plan: WritePlan, local: Storage, tagger: Tagger, replaced: frozenset[str]) -> None:
        self._plan = plan
        self._local = local
        self._tagger = tagger
        self._old_rows = tagger.old_rows(local)
        self._replaced = replaced
        self._buffers = open_buffers(plan, local, "gone")
        self._numbers: dict[FileGroupId, int] = {}
        # File groups that hold one of the keys several times.
        self._repeating: set[FileGroupId] = set()
        self.figures = LookupFigures()

    def groups_with_copies(
        self, spilled: Mapping[Route, GroupRows], seen: SeenTable
    ) -> list[tuple[FileGroupWrite, GroupRows]]:
        """Return the file groups that hold copies, each with the keys to delete there.

        Raises `DuplicateKeyError` if the options forbid to delete copies, or if the write has a key in two partitions.
        """
        catch_up(self._plan.lookup, self._plan.table)
        nbytes = min(self._plan.settings.output.memory // SHARE, _MOST_BYTES)
        try:
            for portions in passes(_units_of_passes(self._plan.lookup, spilled), [RECORD_KEY], nbytes):
                self._find_copies(_keyed(portions))
            gathered = Gathered(self._buffers, self._local)
        except BaseException:
            self._buffers.discard()
            raise
        groups = list(self._numbers)
        rows = {groups[route.number]: gathered.take(route) for route in gathered.routes()}
        return jobs_of_groups(self._plan, seen.view, seen.timeline, rows, self._repeating)

    def _find_copies(self, keyed: KeyedRows) -> None:
        """Buffer the keys of one pass for the file groups outside of the replaced partitions that hold them.

        Raises DuplicateKeyError if such a file group exists and the options do not let the write delete the copies.
        """
        # A fold leaves one row of each key.
        if not self._plan.folds:
            self._refuse_key_of_two_partitions(keyed)
        tags = self._tagger.tag(keyed)
        self.figures += tags.figures
        located = np.flatnonzero(tags.codes != NOT_FOUND)
        # Pairs of a row and a file group that holds its key; a code is the position of the group among `tags.groups`.
        rows, codes = np.append(located, tags.copied), np.append(tags.codes[located], tags.copy_codes)
        outside = np.array([group.partition_path not in self._replaced for group in tags.groups], np.bool_)
        elsewhere = outside[codes]
        rows, codes = rows[elsewhere], codes[elsewhere]
        keys = pa.RecordBatch.from_arrays([keyed.record_keys], names=[RECORD_KEY])
        # Such groups are rewritten: other engines hold a delete in a log file against the first row of its key alone.
        self._repeating.update(tags.groups[code] for code in tags.repeating)
        # Log files may have deleted the key there: only a row that readers see is a copy.
        live = self._old_rows.look(keys, tags.groups)(rows, codes).live
        rows, codes = rows[live], codes[live]
        if not len(rows):
            return
        if not self._plan.settings.replacement.overwrite_moves_keys:
            row = int(rows[0])
            raise self._copy_error(keyed, row, tags.groups[int(codes[0])].partition_path)
        numbers = np.array([self._numbers.setdefault(group, len(self._numbers)) for group in tags.groups], np.int64)
        groups = list(self._numbers)
        for number, part in cut(keys.take(pa.array(rows)), numbers[codes]):
            self._buffers.add(Route(groups[number].partition_path, number), part)

    def _refuse_key_of_two_partitions(self, keyed: KeyedRows) -> None:
        """Raise `DuplicateKeyError` if rows of one key are for several partitions."""
        table = pa.table({"key": keyed.record_keys, "path": keyed.paths.indices})
        counted = table.group_by("key").aggregate([("path", "min"), ("path", "max")])
        spread = counted.filter(pc.less(counted.column("path_min"), counted.column("path_max")))
        if spread.num_rows:
            # The error names the first key with rows for several partitions.
            row = pc.index(keyed.record_keys, spread.column("key")[0]).as_py()  # O(1)
            paths = (spread.column(name)[0].as_py() for name in ("path_min", "path_max"))  # one value, for the error
            own_path = keyed.paths[row].as_py()  # one value, for the error
            names = (keyed.paths.dictionary[at].as_py() for at in paths)  # O(1)
            other_path = next(name for name in names if name != own_path)
            raise self._copy_error(keyed, row, other_path, own=True)

    def _copy_error(self, keyed: KeyedRows, row: int, other_path: str, *, own: bool = False) -> DuplicateKeyError:
        """Return the error of a key that the write would leave in two partitions.

        ``own`` says that both rows are of the write, else the other row is stored.
        """
        key, path = keyed.record_keys[row].as_py(), keyed.paths[row].as_py()  # one value each, for the error
        where = "also has a row of it for" if own else "leaves a row of it in"
        advice = (
            "Leave one row of each key, or let hoodie.combine.before.insert=true fold the rows of a key."
            if own
            else "Overwrite both partitions, delete the other row first, or let this write delete it: "
            "hoodie.pyhudi.overwrite.moves.keys=true."
        )
        return DuplicateKeyError(
            f"The write to {self._plan.path} replaces the partition {path!r} with a row of the record key {key!r}, and "
            f"{where} the partition {other_path!r}, though under the index {self._plan.config.index_type} a key is in "
            "the table once.",
            advice,
        )


def _units_of_passes(index: LookupIndex, spilled: Mapping[Route, GroupRows]) -> list[list[Portion]]:
    """Return the groups of rows that may share keys, sorted by partition, so that few passes read the same file."""
    # Under an index of the whole table, rows of one key share the number of their route, not the partition.
    if not index.is_global:
        return [[Portion(route, spilled[route])] for route in sorted(spilled)]
    by_bin = sorted(spilled, key=lambda route: (route.number, route.partition_path))
    return [
        [Portion(route, spilled[route]) for route in routes]
        for _, routes in groupby(by_bin, lambda route: route.number)
    ]


def _deciding_columns(portions: Sequence[Held]) -> pa.RecordBatch:
    """Return the columns of all rows of a pass that decide which row of a key wins."""
    return concat([batch for part in portions for batch in part.batches])


def _keyed_at(keyed: KeyedRows, at: pa.Array) -> KeyedRows:
    """Return the keys and partition paths at some positions."""
    return KeyedRows(keyed.record_keys.take(at), keyed.paths.take(at))


def _keyed(portions: Sequence[Held]) -> KeyedRows:
    """Return the record key and the partition path of each row of a pass."""
    keys = pa.concat_arrays([batch.column(RECORD_KEY) for part in portions for batch in part.batches])
    number_by_path: dict[str, int] = {}
    numbers = [number_by_path.setdefault(part.portion.route.partition_path, len(number_by_path)) for part in portions]
    indices = np.repeat(np.array(numbers, np.int32), [part.count for part in portions])
    paths = pa.DictionaryArray.from_arrays(pa.array(indices), pa.array([*number_by_path], pa.string()))
    return KeyedRows(keys, paths)
