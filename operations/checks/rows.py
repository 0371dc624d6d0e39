"""The rows of the newest slices: whether they are in the right file group, and name the right file and partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import NullKeyError, PyHudiError
from ...storage.threads import for_each
from ...table.arrow.arrays import Mask, mask, plain
from ...table.config import property_keys as key
from ...table.files.base_file import BaseFileReader
from ...table.files.file_group import BaseFile, DataFile, FileGroup, FileSlice, LogFile
from ...table.files.key_footers import KeyFooter
from ...table.files.logs.log_blocks import BlockType
from ...table.files.logs.log_contents import BlockContent, columns_of
from ...table.inferred.key_encoding import with_inferred_key_encoding
from ...table.keys.generator import KeyGenerator
from ...table.latest_schema import latest_schema
from ...table.schema.columns import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY, canonical
from ...table.table import Table
from .check_catalogue import (
    BLOOM_MISS,
    COMMIT_TIME_COLUMN,
    FILE_NAME_COLUMN,
    KEY_MISMATCH,
    NOT_CHECKED,
    PARTITION_COLUMN,
    WRONG_BUCKET,
)
from .finding import Check
from .footers import check_bounds
from .logs import data_blocks
from .subject import Subject

COMMIT_TIME = "_hoodie_commit_time"
# With these properties Apache Hudi spells keys or paths differently.
_SPELT_OTHERWISE = (key.CONSISTENT_TIMESTAMPS, key.SLASH_DATES)


def check_rows(subject: Subject) -> None:
    """Check the rows of all files of the newest slices.

    If pyhudi cannot make the table's keys and paths, which is a finding, rows are not compared with these.
    """
    config = subject.config
    keys: KeyGenerator | None = None
    with subject.findings.turning(NOT_CHECKED):
        other_spellings = [option for option in _SPELT_OTHERWISE if config.flag(option)]
        if other_spellings:
            subject.findings.add(
                NOT_CHECKED, f"With {other_spellings[0]}=true record keys and paths were not compared with the rows."
            )
        else:
            with_encoding = with_inferred_key_encoding(Table(subject.storage, config))
            keys = KeyGenerator(with_encoding.config, latest_schema(config, subject.timeline))

    def check(group: FileGroup) -> None:
        """Check the rows of the files of a file group's newest slice."""
        newest = group.newest
        if newest.base is not None:
            _RowCheck(subject, newest, newest.base, newest.base.name, keys).check_base(newest.base)
        for log in newest.logs:
            # Rows of log files carry the file group's id instead of a file name.
            _RowCheck(subject, newest, log, newest.file_id, keys).check_log(log)

    for_each(subject.storage, check, subject.live)


@dataclass
class _RowCheck:
    """Checks the rows of one file of a slice.

    Attributes:
        expected_name: The file name that the rows have to carry.
        keys: Makes record keys and partition paths of the rows; None if they cannot be checked.
        wrong_counts: The number of wrong rows of each check.
        first_wrong: The first wrong value of each check, with what is wrong.
    """

    subject: Subject
    slice: FileSlice
    file: DataFile
    expected_name: str
    keys: KeyGenerator | None
    wrong_counts: dict[Check, int] = field(default_factory=dict)
    first_wrong: dict[Check, str] = field(default_factory=dict)

    def check_base(self, file: BaseFile) -> None:
        """Check the rows of a base file, and the bounds and the bloom filter of its footer."""
        bounds: list[tuple[str, str]] = []
        with self.subject.unreadable(file.path):
            with BaseFileReader(self.subject.storage, file.path) as reader:
                footer = dict(reader.parquet.metadata.metadata or {})
                stored_filter = KeyFooter.of(footer, file.path).filter
                bloom = None if stored_filter is None else stored_filter.get()
                for rows in _whole_rows(reader):
                    self._check(rows)
                    stored = plain(rows.column(RECORD_KEY))
                    if bloom is not None and not stored.null_count:
                        self._add_wrong(
                            BLOOM_MISS, ~bloom.may_hold(stored), stored, "is not in the bloom filter of the footer"
                        )
                    span = pc.min_max(stored)
                    if span["min"].is_valid:
                        bounds.append((span["min"].as_py(), span["max"].as_py()))  # one value a batch
            if bounds:
                least, greatest = min(least for least, _ in bounds), max(greatest for _, greatest in bounds)
                check_bounds(self.subject, file, footer, (least, greatest))
        self._report()

    def check_log(self, file: LogFile) -> None:
        """Check the rows and the keys of deletes in a log file, except for blocks that an undo took back."""
        with self.subject.unreadable(file.path):
            # Blocks that an undone instant appended stay in the file.
            for block in data_blocks(self.subject, file):
                if not self.slice.counts(block.instant_time):
                    continue
                if block.type == BlockType.DELETE:
                    self._check_buckets(BlockContent(self.subject.storage, block).deletes().keys)
                    continue
                for rows in BlockContent(self.subject.storage, block).rows(columns_of(block)):
                    self._check(rows, has_all_columns=not block.is_partial)
        self._report()

    def _add_wrong(self, check: Check, wrong: Mask, values: pa.Array, complaint: str) -> None:
        """Count rows that are wrong by a check; keep the value of the first, with what is wrong with it.

        ``wrong`` says which of ``values`` are wrong.
        """
        positions = np.flatnonzero(wrong)
        if len(positions):
            value = values[int(positions[0])].as_py()  # one value, to be named
            self.wrong_counts[check] = self.wrong_counts.get(check, 0) + len(positions)
            self.first_wrong.setdefault(check, f"{value!r} {complaint}")

    def _report(self) -> None:
        """Report each check by which the file has wrong rows, with their number and the first wrong value."""
        for check, count in self.wrong_counts.items():
            what = f"{self.file.path} has {count} wrong rows; of the first, {self.first_wrong[check]}."
            self.subject.tell(check, self.file, what)

    def _check(self, rows: pa.RecordBatch, *, has_all_columns: bool = True) -> None:
        """Check rows; without ``has_all_columns`` they are of a partial log block, which lacks unchanged columns."""
        self._check_meta(rows)
        stored = plain(rows.column(RECORD_KEY))
        if stored.null_count:
            self._add_wrong(KEY_MISMATCH, mask(pc.is_null(stored)), stored, "is no record key")
            return
        self._check_buckets(stored)
        if self.keys is not None and has_all_columns:
            self._check_made(rows, self.keys)

    def _check_buckets(self, stored: pa.Array) -> None:
        """Check that stored keys belong to the bucket of their file group, if that is a bucket."""
        index, group = self.subject.index, self.slice.group
        if index is not None and index.number_of(group) is not None:
            misplaced = np.zeros(len(stored), np.bool_)
            misplaced[index.misfits(stored, group)] = True
            self._add_wrong(WRONG_BUCKET, misplaced, stored, f"does not belong to {index.rival_key(group)}")

    def _check_meta(self, rows: pa.RecordBatch) -> None:
        """Check the meta columns: file name, partition path, and commit times of completed instants."""
        for column, check, expected in (
            (FILE_NAME, FILE_NAME_COLUMN, self.expected_name),
            (PARTITION_PATH, PARTITION_COLUMN, self.slice.partition_path),
        ):
            values = plain(rows.column(column))
            wrong = ~mask(pc.equal(values, expected))
            self._add_wrong(check, wrong, values, f"is in {column}, where {expected!r} is right")
        times = plain(rows.column(COMMIT_TIME))
        distinct = pc.unique(times).to_pylist()  # O(instants)
        unknown_times = [time for time in distinct if not self._may_have_written(time)]
        if unknown_times:
            wrong = mask(pc.is_in(times, pa.array(unknown_times, pa.string())))
            complaint = f"is in {COMMIT_TIME}, and is no completed instant before {self.subject.maker(self.file.path)}"
            self._add_wrong(COMMIT_TIME_COLUMN, wrong, times, complaint)

    def _may_have_written(self, time: str | None) -> bool:
        """Return whether a completed instant of a commit time may have written a row of the file."""
        if time is None or time > self.subject.maker(self.file.path):
            return False
        return self.subject.is_complete(time) or self.subject.timeline.is_committed(time)

    def _check_made(self, rows: pa.RecordBatch, keys: KeyGenerator) -> None:
        """Compare the record keys that the key generator makes with those stored, and the paths with the slice's."""
        subject = self.subject
        try:
            # Keys that a write has generated are of no columns, so nothing can make them again.
            if not subject.config.generates_keys:
                stored, made_keys = plain(rows.column(RECORD_KEY)), keys.record_keys(rows)
                wrong = mask(pc.not_equal(stored, made_keys))
                self._add_wrong(KEY_MISMATCH, wrong, stored, "is another record key than its columns make")
            paths = keys.partition_paths(rows).cast(pa.string())
            # With a global index, a row may stay in the partition that held its key before.
            in_other_partition = mask(pc.not_equal(paths, self.slice.partition_path)) & (
                subject.index is None or not subject.index.is_global
            )
            self._add_wrong(PARTITION_COLUMN, in_other_partition, paths, "is the partition that its columns make")
        except NullKeyError as error:
            subject.tell(KEY_MISMATCH, self.file, f"{self.file.path}: {error.what}")
        except PyHudiError as error:
            # It names no file, so that it is reported once for all files.
            what = f"Record keys and partition paths were not compared with the rows: {error.what}"
            subject.findings.add(NOT_CHECKED, what)


def _whole_rows(reader: BaseFileReader) -> Iterator[pa.RecordBatch]:
    """Yield all columns of a file's rows, so that every page is read.

    Nothing for a file without meta columns, which `check_footers` reports.
    """
    columns = canonical(reader.columns(pa.schema([])))
    return reader.batches(columns) if set(META_COLUMNS) <= set(columns.names) else iter(())
