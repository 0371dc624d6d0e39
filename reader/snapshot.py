"""A table as one reader sees it: its columns and file slices as of the moment that a query shows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

from ..errors import OptionConflictError, UnreadableTimeError
from ..storage import open_storage
from ..storage.base import Storage, join
from ..table.bucket_numbers import BucketNumbers, bucket_numbers
from ..table.config import TableConfig, check_mergeable, check_supported
from ..table.files.file_group import BaseFile, FileSlice
from ..table.latest_schema import latest_schema
from ..table.schema.columns import with_meta
from ..table.seen_table import SeenTable
from ..table.table import Table, open_table
from ..timeline.instants import Instant
from ..timeline.timeline import Timeline
from ..timeline.watermark import Watermark
from .footer_search import matching_slices, row_groups
from .listed_files import Moment, SliceFilter
from .long_past import first_whole, reach_back
from .past import ShownSlices
from .path_glob import compile_glob
from .plan import Split, plan_splits
from .predicates import Predicate
from .pruning import Pruning
from .query import AS_OF, BEGIN, END, AsOf, Changes, Query, is_beginning, resolve
from .search import Search
from .window import CommitTimes, plan_window

logger = logging.getLogger("pyhudi")

_FOOTER_THREADS = 16


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table as of one moment.

    Attributes:
        seen: The table as of the moment at which the query was made.
        now: The timeline as it was when the table was opened.
        schema: Canonical, the meta columns first. Only these where an empty table does not define its columns.
        bases_alone: Whether to ignore log files, and slices that have no base file.
    """

    seen: SeenTable
    now: Timeline
    moment: Moment
    schema: pa.Schema
    query: Query | None = None
    bases_alone: bool = False

    @property
    def storage(self) -> Storage:
        return self.seen.storage

    @property
    def config(self) -> TableConfig:
        return self.seen.table.config

    @property
    def timeline(self) -> Timeline:
        return self.seen.timeline

    @property
    def times(self) -> CommitTimes | None:
        """The values of ``_hoodie_commit_time`` of the query's rows; None for all."""
        return self.moment.window.times if self.moment.window else None

    def bucket_numbers(self) -> BucketNumbers:
        """Return the numbers of buckets at the moment that the query shows."""
        return bucket_numbers(self.seen.table, self.moment.timeline)

    def slices(self, predicates: Sequence[Predicate] = ()) -> list[FileSlice]:
        """Return the file slices that may hold rows which satisfy every predicate; opens no file.

        Raises UnreadableTimeError where a clean removed a file among them, or the archive lacks what a commit of the
        window wrote.
        """
        pattern = compile_glob(self.query.path_glob if isinstance(self.query, Changes) else "")
        every = SliceFilter(
            file=lambda file: (
                (isinstance(file, BaseFile) or not self.bases_alone)
                and pattern.fullmatch(join(self.storage.path, file.path)) is not None
            )
        )
        if not predicates:
            found = ShownSlices(self.seen, self.now, self.moment, self.query, every).find()
        else:
            pruning = Pruning(self.config, self.schema, predicates)
            wanted = every.narrowed(cache(pruning.partition_may_match), pruning.file_may_match(self.bucket_numbers))
            found = ShownSlices(self.seen, self.now, self.moment, self.query, wanted, every).find()
        if self.bases_alone:
            return [replace(file_slice, logs=()) for file_slice in found]
        if any(file_slice.logs for file_slice in found):
            check_mergeable(self.config, self.storage.path)
        return found

    def slices_of_keys(self, predicates: Sequence[Predicate]) -> list[FileSlice]:
        """Return the slices of `slices`, less those that the footers of their base files exclude.

        Reads footers only if there are few, so that no task need help. A slice with log files stays.
        """
        found = self.slices(predicates)
        search = Search.of(predicates, self.schema, self.config)
        if search.keys is not None and not len(search.keys):
            return []
        matching = matching_slices(
            self.storage, self.config, search, [file_slice for file_slice in found if not file_slice.logs]
        )
        left = {file_slice.base_file.path for file_slice in matching}
        shown = [file_slice for file_slice in found if file_slice.logs or file_slice.base_file.path in left]
        if len(shown) < len(found):
            logger.info(
                "table %s: the footers of %d base files leave out %d of them",
                self.storage.path,
                len(found),
                len(found) - len(shown),
            )
        return shown

    def plan(
        self,
        schema: pa.Schema,
        predicates: Sequence[Predicate],
        split_size: int,
        *,
        merged_alone: bool = False,
        wanted: Callable[[str], bool] | None = None,
    ) -> list[Split]:
        """Return the split of each task; ``predicates`` only skip data.

        Reads the footers of files larger than a split, to cut them between row groups. ``merged_alone`` skips slices
        without logs, which another reader reads; ``wanted`` says by file id which slices to read.
        """
        search = Search.of(predicates, self.schema, self.config)
        if self.times is not None:
            search = search.with_more(self.times.predicate())
        found = self.slices(predicates) if merged_alone else self.slices_of_keys(predicates)
        slices = [
            file_slice
            for file_slice in found
            if (file_slice.logs or not merged_alone) and (wanted is None or wanted(file_slice.file_id))
        ]
        large = [file_slice for file_slice in slices if not file_slice.logs and file_slice.base_file.size > split_size]
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            footers = pool.map(
                lambda file_slice: row_groups(self.storage, file_slice.base_file, search, schema.names), large
            )
            known = {file_slice.base_file.path: groups for file_slice, groups in zip(large, footers, strict=True)}
        return plan_splits(slices, known, split_size)


def open_snapshot(
    path: str,
    storage_options: Mapping[str, str] | None = None,
    watermark: Watermark | None = None,
    query: Query | None = None,
    *,
    bases_alone: bool = False,
    schema: pa.Schema | None = None,
) -> Snapshot:
    """Open a table for reading, as of ``watermark``, the moment at which the query was made; None for now.

    ``schema`` is the `Snapshot.schema` of an earlier snapshot of the same moment and query.
    """
    table = open_table(open_storage(path, storage_options))
    check_supported(table.config, table.path, writing=False)
    now = table.timeline()
    seen = SeenTable(table, now if watermark is None else _as_of(table, now, watermark))
    moment = find_moment(seen, query)
    if schema is None:
        latest = isinstance(query, Changes) and not query.schema_of_end
        schema = _columns(table, seen.timeline if latest else moment.timeline)
    if watermark is not None and seen.timeline.completed_until and not seen.timeline.completed:
        raise UnreadableTimeError(
            f"The table {table.path} has archived all that was complete when the DataFrame was made, so that its "
            "columns at that time are unknown.",
            "Make the DataFrame anew.",
        )
    return Snapshot(seen, now, moment, schema, query, bases_alone)


def _columns(table: Table, timeline: Timeline) -> pa.Schema:
    schema = latest_schema(table.config, timeline)
    if schema is None:
        # Apache Hudi's TRUNCATE TABLE makes such a table if it was not made by CREATE TABLE.
        logger.warning(
            "table %s is empty, and nothing in it says which columns it has; give spark.read a schema, or write to it",
            table.path,
        )
        schema = pa.schema([])
    return with_meta(schema)


def _as_of(table: Table, now: Timeline, watermark: Watermark) -> Timeline:
    seen = table.archive.seen_at(now, watermark)
    for gone in now.vanished(seen):
        if not table.archive.holds(gone):
            raise UnreadableTimeError(
                f"The table {table.path} cannot be shown any more as it was when this DataFrame was made: the write "
                f"{gone} was rolled back since.",
                "Make the DataFrame anew.",
            )
    return now.as_of(seen)


def find_moment(seen: SeenTable, query: Query | None) -> Moment:
    """Return the moment that a query shows, the present without a query; may raise UnreadableTimeError."""
    now, zone = seen.timeline, seen.table.config.timezone
    latest = now.completed_until
    if query is None:
        return Moment(now, latest)
    if isinstance(query, AsOf):
        time = resolve(query.time, zone)
        if now.writes and time < now.writes[0].requested_time:
            history = reach_back(seen, time)
            if history is None:
                raise _before_the_first(query.time, first_whole(seen, time), seen.table.path)
            return Moment(history.as_of_request(time), time, history=history)
        return Moment(now.as_of_request(time), min(time, latest))
    begin = None if is_beginning(query.begin) else resolve(query.begin, zone)
    end = None if query.end is None else resolve(query.end, zone)
    if begin is not None and end is not None and begin > end:
        raise OptionConflictError(
            f"The window of the table {seen.table.path} begins at {query.begin} and ends before that, at {query.end}.",
            f"Give {END} a later time than {BEGIN}.",
        )
    gone = () if begin is None and end is None else _only_archived(seen.table.archive.writes(), now)
    _check_reach(query, end, gone, seen.table.path)
    window = plan_window([*gone, *now.writes], begin, end)
    return Moment(now, latest, window) if end is None else Moment(now.as_of_completion(end), min(end, latest), window)


def _only_archived(archived: Iterable[Instant], now: Timeline) -> tuple[Instant, ...]:
    # An instant is archived before its files leave the active timeline.
    active = {instant.requested_time for instant in now.instants}
    return tuple(instant for instant in archived if instant.requested_time not in active)


def _check_reach(query: Changes, end: str | None, gone: Iterable[Instant], where: str) -> None:
    archived_until = max((instant.visible_since for instant in gone), default="")
    if end is not None and end < archived_until:
        raise UnreadableTimeError(
            f"The table {where} cannot be shown as it was at {query.end}, the window's end: commits until "
            f"{archived_until} are archived, so that the first readable end is {archived_until}.",
            f"Give {END}={archived_until} or a later time, or leave it out.",
        )


def _before_the_first(asked: str, first: Instant, where: str) -> UnreadableTimeError:
    return UnreadableTimeError(
        f"The table {where} cannot be shown as of {asked}, which is before its timeline begins, and its "
        f"archive does not show that time. The first instant that can be read whole is {first.requested_time}.",
        f"Give {AS_OF}={first.requested_time} or a later time.",
    )
