"""Sorts a table: notes the order in its properties, which later writers follow, and rewrites the files that lack it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ....errors import InvalidOptionError, MissingColumnError, MissingOptionError
from ....storage.base import Storage
from ....table.buckets.recorded_by_hudi import has_bucket_rules
from ....table.config import TableConfig, update_config
from ....table.config.property_keys import MERGE_ON_READ, SORT_BY, SORT_CURVE
from ....table.config.sort_order import CURVES, LINEAR, SortOrder
from ....table.files.names import FileGroupId
from ....table.inferred.index import is_unnoted, with_inferred_index
from ....table.inferred.key_encoding import with_inferred_key_encoding
from ....table.latest_schema import columns_of
from ....table.table import Table
from ....timeline.metadata.codec import SORTED
from ....timeline.timeline import Timeline
from ....writer.sort import check_sortable
from ...meeting.concurrency import COMPACTION, WRITE
from ...result import SORT, ServiceResult
from ...service_settings import CompactionSettings
from ...transaction.commit_path import exclusive
from ..compaction.compactor import Compaction
from ..compaction.plan import Plan
from ..means import Means
from ..preconditions import open_for_service
from .in_place import sort_in_place
from .unsorted import UnsortedSlices, refuse_unknown_partitions

if TYPE_CHECKING:
    from ....timeline.metadata.models import CompactionPlan

# A result names so many file groups and partitions, and counts the others.
_MOST_NAMED = 5


def sort(
    storage: Storage,
    means: Means,
    *,
    by: Sequence[str] | None = None,
    curve: str | None = None,
    partitions: Sequence[str] | None = None,
    dry_run: bool = False,
) -> ServiceResult:
    """Sort the rows of the base files of some partitions, None for all, unless they are in that order already.

    Args:
        means: The memory, time and executor that the sort may use.
        by: The sort columns; None for the table's. An empty list removes the table's order.
        curve: None for the table's curve, or for the linear order if `by` names columns.
        dry_run: Whether the result only says what would be sorted, and nothing changes.

    Raises:
        MissingOptionError: Neither the call nor the table names columns.
        CommitConflictError: Other writes changed all file groups of a copy-on-write table during the sort. If they
            changed some, these are not sorted, and ``skipped`` of the result names them.
    """
    began = time.monotonic()
    table = open_for_service(storage)
    if is_unnoted(table.config):
        # No property names the index. This raises for consistent hashing, whose tables pyhudi does not write.
        has_bucket_rules(storage)
    if by is not None and not by:
        _note_order(table, {SORT_BY: None, SORT_CURVE: None}, dry_run=dry_run)
        return ServiceResult(storage.path, SORT, dry=dry_run, seconds=time.monotonic() - began)
    schema = columns_of(table.config, table.timeline())
    wanted_order = _sort_order(table, by, curve, schema)
    order = wanted_order.among(schema.names)
    if order is None:
        raise MissingColumnError(
            f"The table {table.path} is to be sorted by {', '.join(wanted_order.columns)}, and has no such column any "
            "more.",
            "Name columns that it has, sort(by=[...]), or remove its order, sort(by=[]).",
        )
    refuse_unknown_partitions(storage, partitions)
    table = _note_order(
        table, {SORT_BY: ",".join(wanted_order.columns), SORT_CURVE: wanted_order.curve}, dry_run=dry_run
    )
    merges = table.config.table_type == MERGE_ON_READ
    unsorted = UnsortedSlices(storage, order, partitions, mine=COMPACTION if merges else WRITE)
    if dry_run:
        slices = unsorted.find(table.timeline())
        size = sum(file_slice.size for file_slice in slices)
        skipped = _left_out_in_words([], unsorted.held_partitions)
        result = ServiceResult(storage.path, SORT, file_groups=len(slices), bytes_read=size, skipped=skipped, dry=True)
    elif merges:
        service = SortingCompaction(table, means, unsorted)
        service.run()
        result = service.result(0)
        skipped_parts = "; ".join(filter(None, (result.skipped, _left_out_in_words([], unsorted.held_partitions))))
        result = replace(result, service=SORT, skipped=skipped_parts)
    else:
        result = _rewrite(table, means, unsorted)
    return replace(result, seconds=time.monotonic() - began)


class SortingCompaction(Compaction):
    """Compactions whose plans also name file slices without log files.

    A process that does not know the order carries such a plan out like any other, and does not sort the rows.
    """

    call = "sort"
    does = "sorts {:,} bytes of base and log files"

    def __init__(self, table: Table, means: Means, unsorted: UnsortedSlices) -> None:
        """Make compactions that name the slices which lack the order; both share one look at the table."""
        super().__init__(table, CompactionSettings(), means)
        self.unsorted = unsorted
        self.slices = unsorted.slices

    def plan(self, timeline: Timeline) -> Plan | None:
        """Return the slices that lack the order, with or without log files; None if none does."""
        return tuple(self.unsorted.find(timeline)) or None

    def requested(self, plan: Plan) -> CompactionPlan:
        """Return a plan that names the order, as another process may carry it out."""
        compaction_plan = super().requested(plan)
        return compaction_plan.model_copy(update={"extra_metadata": {SORTED: str(self.unsorted.order)}})


def _rewrite(table: Table, means: Means, unsorted: UnsortedSlices) -> ServiceResult:
    """Sort a copy-on-write table in place, and return the result.

    `means` are the memory, time and executor that the sort may use, and `unsorted` finds the slices to sort.
    """
    # If no property names the index and the key encoding, the new files have those of the old files. They get bloom
    # filters, as Apache Hudi writes them if it knows no index.
    inferred = with_inferred_key_encoding(with_inferred_index(table))
    if means.output.bloom_filter is None and inferred.config.index_type != table.config.index_type:
        means = replace(means, output=replace(means.output, bloom_filter=True))
    sorted_in_place = sort_in_place(inferred, unsorted, means)
    results = sorted_in_place.results
    return ServiceResult(
        table.path,
        SORT,
        sorted_in_place.instant,
        files=len(results),
        bytes=sum(result.size for result in results),
        file_groups=len(results),
        bytes_read=sum(result.unit.size for result in results),
        skipped=_left_out_in_words(sorted_in_place.left_out, unsorted.held_partitions),
    )


def _left_out_in_words(groups: Sequence[FileGroupId], partitions: Sequence[str]) -> str:
    """Return which file groups and partitions a sort left out and why; empty if it left none out."""
    changed_names = _some_names([f"the {group.words}" for group in groups])
    held_names = _some_names([f"the partition {path!r}" for path in partitions])
    reasons = [f"other writes changed {changed_names} meanwhile"] * bool(changed_names) + [
        f"a rescale holds {held_names}"
    ] * bool(held_names)
    return f"{' and '.join(reasons)}; the next sort looks at these" if reasons else ""


def _some_names(names: Sequence[str]) -> str:
    """Return up to `_MOST_NAMED` names as a text, and the number of further names."""
    more = f" and {len(names) - _MOST_NAMED:,} more" if names[_MOST_NAMED:] else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _sort_order(table: Table, by: Sequence[str] | None, curve: str | None, schema: pa.Schema) -> SortOrder:
    """Return the order of a call: by its columns along its curve. Without columns those of the table count.

    Without a curve it is linear if the call names columns, and else the table's. Raises `MissingOptionError` without
    columns, `InvalidOptionError` for an unknown curve or a column that comes twice, `MissingColumnError` for a column
    that the table lacks, and `UnsupportedTypeError` for a nested column.
    """
    table_columns = table.config.sort_by if by is None else None
    columns = by if by is not None else table_columns
    if not columns:
        raise MissingOptionError(
            f"The table {table.path} is to be sorted, and neither the call nor the table's {SORT_BY} names a column.",
            "Name the columns by which queries choose rows: sort(by=[...]).",
        )
    wanted_curve = curve or (table.config.sort_curve if table_columns else None) or LINEAR
    if wanted_curve not in CURVES:
        raise InvalidOptionError(
            f"The table {table.path} is to be sorted along the curve {wanted_curve!r}, which pyhudi does not know.",
            f"Use {', '.join(CURVES)}.",
        )
    if len(set(columns)) < len(columns):
        raise InvalidOptionError(
            f"The table {table.path} is to be sorted by {', '.join(columns)}, which names a column twice.",
            "Name each column once.",
        )
    # Another writer may have dropped a column of the table's order since; a column that the call names must exist.
    check_sortable(
        columns if table_columns is None else [name for name in columns if name in schema.names],
        schema,
        table.path,
        "by",
    )
    return SortOrder(tuple(columns), wanted_curve)


def _note_order(table: Table, changes: dict[str, str | None], *, dry_run: bool) -> Table:
    """Note the order in the properties, and return the table with it; a dry run only returns it.

    This comes before the first file is sorted, so that concurrent writes follow the order, too.
    """
    if dry_run:
        properties = {**table.config.properties, **changes}
        return replace(
            table, config=TableConfig({name: value for name, value in properties.items() if value is not None})
        )
    # Even without changes: this finishes a change of properties during which a process died.
    return replace(table, config=exclusive(table, lambda _: update_config(table.storage, changes)))
