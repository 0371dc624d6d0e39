"""A table as one reader sees it: its columns and file slices as of the moment that a query shows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial

import pyarrow as pa

from ..errors import UnreadableTimeError
from ..storage import open_storage
from ..storage.base import Storage, join
from ..table.buckets.numbers import BucketNumbers, bucket_numbers
from ..table.config import TableConfig, check_mergeable, check_supported
from ..table.files.file_group import BaseFile, FileSlice
from ..table.latest_schema import latest_schema
from ..table.metadata.at_hand import MetadataAtHand
from ..table.schema.columns import with_meta
from ..table.seen_table import SeenTable
from ..table.table import Table, open_table
from ..timeline.timeline import Timeline
from ..timeline.watermark import Watermark
from .listed_files import Moment, SliceFilter
from .moments import find_moment
from .past import ReadSlices, ShownSlices
from .path_glob import compile_glob
from .plan import Split, plan_splits
from .query import DEFAULT_SEARCH, Changes, FileSearch, Query
from .skipping.footer_search import row_groups
from .skipping.predicates import Predicate
from .skipping.pruning import Pruning
from .skipping.search import Search
from .skipping.slices_to_read import (
    KEYS,
    NO_PARTITIONS,
    PARTITIONS,
    LeftOutPartitions,
    SlicesToRead,
    Sources,
    Step,
    partitions_without_rows,
)
from .window import CommitTimes

logger = logging.getLogger("pyhudi")

_FOOTER_THREADS = 16


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table as of one moment, for a read that begins soon; `opened_again` gives a later read one of the same moment.

    Attributes:
        seen: The table as of the moment at which the query was made.
        now: The timeline as it was when the table was opened.
        metadata: The metadata table as of the moment at which the table was opened.
        schema: Canonical, the meta columns first. Only these if an empty table does not define its columns.
        bases_alone: Whether to ignore log files, and slices that have no base file.
        file_search: How it finds the files of its slices.
    """

    seen: SeenTable
    now: Timeline
    moment: Moment
    metadata: MetadataAtHand
    schema: pa.Schema
    query: Query | None = None
    bases_alone: bool = False
    file_search: FileSearch = DEFAULT_SEARCH

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

    def opened_again(self) -> Snapshot:
        """Return a snapshot of the same moment, from the timeline as it is now.

        Only a timeline read after the snapshot's moment names the cleans since then. Raises UnreadableTimeError if the
        table can no longer be shown as it was.
        """
        return _open(
            self.storage,
            self.timeline.watermark(),
            self.query,
            bases_alone=self.bases_alone,
            file_search=self.file_search,
            schema=self.schema,
        )

    def slices(self, predicates: Sequence[Predicate] = ()) -> list[FileSlice]:
        """Return the file slices that may hold rows which satisfy every predicate; opens no file of the table.

        Raises UnreadableTimeError if a clean removed a file among them, or the archive lacks what a commit of the
        window wrote.
        """
        return self._slices_in_partitions(predicates, partial(self._search, predicates), counts=False).slices

    def _search(self, predicates: Sequence[Predicate]) -> Search:
        """Return the search for rows that satisfy predicates, by their values and record keys."""
        return Search.of(predicates, self.schema, self.config)

    def _slices_in_partitions(
        self, predicates: Sequence[Predicate], search: Callable[[], Search], *, counts: bool
    ) -> SlicesToRead:
        """Return the slices that partitions and buckets leave; ``counts`` says whether to count all slices, for steps.

        ``search`` returns the search for the predicates. It is called only if the metadata table may leave partitions
        out, as it makes all record keys that the predicates allow.
        """
        pattern = compile_glob(self.query.path_glob if isinstance(self.query, Changes) else "")
        every = SliceFilter(
            file=lambda file: (
                (isinstance(file, BaseFile) or not self.bases_alone)
                and pattern.fullmatch(join(self.storage.path, file.path)) is not None
            )
        )
        steps: tuple[Step, ...] = ()
        shown = ShownSlices(self.seen, self.now, self.moment, self.query, every, metadata=self.metadata)
        if not predicates:
            read_slices = shown.find()
        else:
            pruning = Pruning(self.config, self.schema, predicates)
            may_match = cache(pruning.partition_may_match)
            left_out = NO_PARTITIONS
            if self.shows_newest and self.file_search.skips_files:
                left_out = partitions_without_rows(self.seen, self.metadata, search, may_match)
            in_buckets = pruning.file_may_match(self.bucket_numbers)

            def find(left_out: LeftOutPartitions) -> ReadSlices:
                wanted = every.narrowed(lambda path: path not in left_out.paths and may_match(path), in_buckets)
                return replace(shown, wanted=wanted, every=every, counts=counts).find()

            read_slices = find(left_out)
            if left_out.asked and self.metadata.trusted is None:
                # The metadata table proved wrong about the files of other partitions.
                left_out = NO_PARTITIONS
                read_slices = find(left_out)
            if counts:
                # What paths and buckets leave includes the slices that the metadata table then leaves out.
                count, whole = len(read_slices.wanted) + left_out.slices, read_slices.whole
                steps = (Step(PARTITIONS, whole, max(whole - count, 0)), *left_out.steps(count))
        slices = read_slices.wanted
        if self.bases_alone:
            slices = [replace(file_slice, logs=()) for file_slice in slices]
        elif any(file_slice.logs for file_slice in slices):
            check_mergeable(self.config, self.storage.path)
        return SlicesToRead(slices, steps)

    def slices_of_keys(self, predicates: Sequence[Predicate]) -> list[FileSlice]:
        """Return the file slices that `slices_to_read` leaves, without its steps."""
        return self.slices_to_read(predicates).slices

    def slices_to_read(self, predicates: Sequence[Predicate], *, counts: bool = False) -> SlicesToRead:
        """Return the slices of `slices`, less those that the metadata table and footers of base files exclude.

        With ``counts``, or a log at level info, the steps also count slices of partitions that were not listed.
        """
        search_once = cache(partial(self._search, predicates))
        listed = self._slices_in_partitions(predicates, search_once, counts=counts or logger.isEnabledFor(logging.INFO))
        if not predicates:
            return listed
        search = search_once()
        if search.keys is not None and not len(search.keys):
            # No record key satisfies all predicates.
            return SlicesToRead([], (*listed.steps, Step(KEYS, len(listed.slices), len(listed.slices))))
        sources = Sources(self.seen.table, self.metadata, search, self.shows_newest)
        slices_left = sources.read(listed.slices) if self.file_search.skips_files else SlicesToRead(listed.slices)
        steps = (*listed.steps, *slices_left.steps)
        for step in steps:
            if step.left_out:
                where = self.storage.path
                logger.info("table %s: %s leave out %d of %d file slices", where, step.source, step.left_out, step.of)
        return SlicesToRead(slices_left.slices, steps)

    @property
    def shows_newest(self) -> bool:
        """Whether the query shows all rows as of the moment at which the table's timeline was listed.

        Base files without their logs may still show rows that log files deleted since.
        """
        return not self.bases_alone and self.query is None and self.seen.timeline.completed == self.now.completed

    def plan(
        self,
        schema: pa.Schema,
        predicates: Sequence[Predicate],
        split_size: int,
        *,
        merged_alone: bool = False,
        wanted: Callable[[str], bool] | None = None,
    ) -> list[Split]:
        """Return what each task reads of the columns ``schema``; ``predicates`` only skip data.

        A task reads at most about ``split_size`` bytes. Reads the footers of larger files, to cut them between row
        groups. ``merged_alone`` skips slices without logs, which another reader reads; ``wanted`` says by file id which
        slices to read.
        """
        search = self._search(predicates)
        if self.times is not None:
            search = search.with_more(self.times.predicate())
        # The footers that `slices_of_keys` reads exclude only slices without logs, which are left out below.
        candidates = self.slices(predicates) if merged_alone else self.slices_of_keys(predicates)
        slices = [
            file_slice
            for file_slice in candidates
            if (file_slice.logs or not merged_alone) and (wanted is None or wanted(file_slice.file_id))
        ]
        large = [file_slice for file_slice in slices if not file_slice.logs and file_slice.base_file.size > split_size]
        with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
            footers = pool.map(
                lambda file_slice: row_groups(self.storage, file_slice.base_file, search, schema.names), large
            )
            groups_by_path = {
                file_slice.base_file.path: groups for file_slice, groups in zip(large, footers, strict=True)
            }
        return plan_splits(slices, groups_by_path, split_size)


def open_snapshot(
    path: str,
    storage_options: Mapping[str, str] | None = None,
    watermark: Watermark | None = None,
    query: Query | None = None,
    *,
    bases_alone: bool = False,
    file_search: FileSearch = DEFAULT_SEARCH,
    schema: pa.Schema | None = None,
) -> Snapshot:
    """Open a table for reading, as of ``watermark``, the moment at which the query was made; None for now.

    ``path`` is the table's, and ``storage_options`` are those of its store. ``query`` shows an earlier moment or the
    changes of a window; None for all rows. ``bases_alone`` ignores log files, and ``file_search`` says how the read
    finds its files. ``schema`` is the `Snapshot.schema` of an earlier snapshot of the same moment and query.
    Raises UnreadableTimeError if the table can no longer be shown as it was at that moment.
    """
    return _open(
        open_storage(path, storage_options),
        watermark,
        query,
        bases_alone=bases_alone,
        file_search=file_search,
        schema=schema,
    )


def _open(
    storage: Storage,
    watermark: Watermark | None,
    query: Query | None,
    *,
    bases_alone: bool,
    file_search: FileSearch,
    schema: pa.Schema | None,
) -> Snapshot:
    """Open the table below a store for reading; the other arguments and errors are as of `open_snapshot`."""
    table = open_table(storage)
    check_supported(table.config, table.path, writing=False)
    now = table.timeline()
    seen = SeenTable(table, now if watermark is None else _timeline_at(table, now, watermark))
    moment = find_moment(seen, query)
    if schema is None:
        # A query of changes has the latest columns unless it asks for those of the window's end.
        takes_latest_columns = isinstance(query, Changes) and not query.schema_of_end
        schema = _columns_with_meta(table, seen.timeline if takes_latest_columns else moment.timeline)
    if watermark is not None and seen.timeline.completed_until and not seen.timeline.completed:
        raise UnreadableTimeError(
            f"The table {table.path} has archived all that was complete when this DataFrame was made, so that what it "
            "held at that time is unknown.",
            "Make the DataFrame anew.",
        )
    metadata = MetadataAtHand(table, now, file_search.asks_metadata)
    return Snapshot(seen, now, moment, metadata, schema, query, bases_alone, file_search)


def _columns_with_meta(table: Table, timeline: Timeline) -> pa.Schema:
    """Return the columns of a table as of a timeline, the meta columns first.

    Only the meta columns, with a warning, if neither a write nor the table's creation tells any others.
    """
    schema = latest_schema(table.config, timeline)
    if schema is None:
        # Apache Hudi's TRUNCATE TABLE makes such a table if it was not made by CREATE TABLE.
        logger.warning(
            "table %s is empty, and nothing in it says which columns it has; give spark.read a schema, or write to it",
            table.path,
        )
        schema = pa.schema([])
    return with_meta(schema)


def _timeline_at(table: Table, now: Timeline, watermark: Watermark) -> Timeline:
    """Return the timeline as of a watermark; raises UnreadableTimeError if one of its writes was rolled back since."""
    seen = table.archive.seen_at(now, watermark)
    for vanished_time in now.vanished(seen):
        if not table.archive.holds(vanished_time):
            raise UnreadableTimeError(
                f"The table {table.path} cannot be shown any more as it was when this DataFrame was made: the write "
                f"{vanished_time} was rolled back since.",
                "Make the DataFrame anew.",
            )
    return now.as_of(seen)
