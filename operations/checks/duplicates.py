"""Duplicate record keys, in a partition or, with a global index, in the whole table.

Memory holds the hashes of the keys, 8 bytes each. A partition with more than `MOST_HASHES` keys is read several times,
each time for another part of the hashes' range. Then only keys with equal hashes are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...reader.scan import MergeTerms, RowReader
from ...table.arrow.string_hash import hash64
from ...table.files.base_file import BaseFileReader
from ...table.files.file_group import FileSlice
from ...table.latest_schema import latest_schema
from ...table.schema.columns import RECORD_KEY
from .check_catalogue import DUPLICATE_KEY, KEY_ADDED_TWICE
from .rows import COMMIT_TIME
from .subject import Subject

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

MOST_HASHES = 16_000_000
# A partition may be full of duplicates; so many are enough to show it.
MOST_COMPARED = 100_000
_COLUMNS = pa.schema([pa.field(COMMIT_TIME, pa.string()), pa.field(RECORD_KEY, pa.string())])
_GROUP = "file group"
# Operations that add rows without looking keys up.
_ADD = frozenset({"INSERT", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "BOOTSTRAP"})


def check_duplicates(subject: Subject) -> None:
    """Look for keys of which the newest base files hold several rows; log files may repeat or delete keys."""
    slices: dict[str, list[FileSlice]] = defaultdict(list)
    everywhere = subject.index is not None and subject.index.is_global
    for group in subject.live:
        if group.newest.base is not None:
            slices["" if everywhere else group.id.partition_path].append(group.newest)
    for partition, in_partition in sorted(slices.items()):
        where = "The table" if everywhere else f"The partition {partition!r}"
        with subject.unreadable(partition):
            _Scope(subject, where, partition, in_partition).check()


@dataclass(frozen=True, slots=True)
class _Scope:
    """The file slices in which a record key has to be unique; ``partition`` is empty for the whole table."""

    subject: Subject
    where: str
    partition: str
    slices: list[FileSlice]

    def check(self) -> None:
        """Report the keys that several rows of the slices have.

        First it looks for hashes that occur several times, then it compares the keys with these hashes.
        """
        passes = sum(map(self._count, self.slices)) // MOST_HASHES + 1
        repeated = np.concatenate([self._repeated_hashes(part, passes) for part in range(passes)])[:MOST_COMPARED]
        if not len(repeated):
            return
        tables = [pa.Table.from_batches([], _COLUMNS.append(pa.field(_GROUP, pa.int64())))]
        logged = any(file_slice.logs for file_slice in self.slices)
        schema = latest_schema(self.subject.config, self.subject.timeline) if logged else None
        for number, file_slice in enumerate(self.slices):
            repeated_rows = _with_hashes(self._rows(file_slice), repeated)
            if repeated_rows and file_slice.logs:
                # A row of the base file that a log file deletes is no row of the table.
                repeated_rows = _with_hashes(self._merged(file_slice, schema or pa.schema([])), repeated)
            tables += [
                rows.append_column(_GROUP, pa.repeat(pa.scalar(number), rows.num_rows)) for rows in repeated_rows
            ]
        # A row without a commit time is a row, too.
        nulls_too = pc.CountOptions("all")
        aggregates = [(COMMIT_TIME, name, nulls_too) for name in ("count", "distinct")] + [(_GROUP, "count_distinct")]
        # With several threads the order of groups would vary, and with it the first key, which the finding names.
        groups = pa.concat_tables(tables).group_by(RECORD_KEY, use_threads=False).aggregate(aggregates)
        groups = groups.filter(pc.greater(groups.column(f"{COMMIT_TIME}_count"), 1))
        if groups.num_rows:
            self._report(groups)

    def _count(self, file_slice: FileSlice) -> int:
        """Return the number of rows in the base file of a slice."""
        with BaseFileReader(self.subject.storage, file_slice.base_file.path) as reader:
            return reader.rows

    def _repeated_hashes(self, part: int, passes: int) -> Hashes:
        """Return the hashes that occur several times, among those of one part of the range."""
        counted = [np.zeros(0, np.uint64)]
        for file_slice in self.slices:
            for rows in self._rows(file_slice):
                hashes = hash64(rows.column(RECORD_KEY))
                counted.append(hashes[hashes % np.uint64(passes) == part] if passes > 1 else hashes)
        ordered = np.sort(np.concatenate(counted))
        return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])

    def _rows(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        """Yield commit times and keys of a base file's rows that have a key."""
        subject, file = self.subject, file_slice.base_file
        with subject.unreadable(file.path), BaseFileReader(subject.storage, file.path) as reader:
            for rows in reader.batches(_COLUMNS):
                yield rows.filter(pc.is_valid(rows.column(RECORD_KEY)))

    def _merged(self, file_slice: FileSlice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield commit times and keys of a slice's rows, as readers see them; report a slice that cannot be read."""
        subject = self.subject
        with subject.unreadable(file_slice.logs[-1].path):
            terms = MergeTerms(subject.config)
            yield from RowReader(subject.storage, _COLUMNS, schema, terms=terms).merged(file_slice)

    def _report(self, groups: pa.Table) -> None:
        """Report duplicates as errors if only upserts wrote them, and as warnings if an insert may have added them.

        ``groups`` has a row for each key that several rows have: the number of these rows, their distinct commit
        times, and the number of file groups that have some.
        """
        subject = self.subject
        times = groups.column(f"{COMMIT_TIME}_distinct").combine_chunks()
        adding_times = [time for time in pc.unique(times.flatten()).to_pylist() if self._adds(time)]  # O(instants)
        # The number of the group of each time, as `flatten` joins the lists of all groups.
        parents = pc.list_parent_indices(times)
        may_be_added = np.zeros(groups.num_rows, np.bool_)
        may_be_added[parents.filter(pc.is_in(times.flatten(), pa.array(adding_times, pa.string()))).to_numpy()] = True
        if subject.index is not None and subject.index.needs_lookup:
            # An upsert that looks keys up rewrites every copy that an earlier insert left, so that all get its time.
            # One time, with each row in a file group of its own, may hide an insert. A bucket index finds one group.
            in_own_groups = pc.equal(groups.column(f"{_GROUP}_count_distinct"), groups.column(f"{COMMIT_TIME}_count"))
            one_write = pc.equal(pc.list_value_length(times), 1)
            may_be_added |= pc.and_(in_own_groups, one_write).to_numpy(zero_copy_only=False)
        for check, is_of_check in ((DUPLICATE_KEY, ~may_be_added), (KEY_ADDED_TWICE, may_be_added)):
            duplicates = groups.filter(pa.array(is_of_check))
            if duplicates.num_rows:
                first_key = duplicates.column(RECORD_KEY)[0].as_py()  # one value, to be named
                first_count = duplicates.column(f"{COMMIT_TIME}_count")[0].as_py()  # one value, to be named
                what = (
                    f"{self.where} has {duplicates.num_rows} record keys several times, {first_key!r} {first_count} "
                    "times."
                )
                subject.findings.add(check, what, file=self.partition)

    def _adds(self, time: str | None) -> bool:
        """Return whether a write may have added rows without looking their keys up; True if that is unknown."""
        if self.subject.config.generates_keys or time is None:
            return True
        operation = self.subject.statements.operations.get(time, "").removesuffix("_PREPPED")
        return not operation or operation in _ADD


def _with_hashes(batches: Iterable[pa.RecordBatch], hashes: Hashes) -> list[pa.Table]:
    """Return the rows whose keys have one of some hashes, as tables; batches without such rows are left out."""
    tables = []
    for rows in batches:
        has_hash = np.isin(hash64(rows.column(RECORD_KEY)), hashes)
        if has_hash.any():
            tables.append(pa.Table.from_batches([rows.filter(pa.array(has_hash))]))
    return tables
