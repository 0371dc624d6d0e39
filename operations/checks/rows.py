"""The rows of the newest file slices: whether they are where they belong, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import NullKeyError, PyHudiError
from ...index.bucket import BucketIndex
from ...storage.parallel import for_each
from ...table.arrow.arrays import Mask, mask, plain
from ...table.config import property_keys as key
from ...table.files.base_file import BaseFileReader
from ...table.files.bloom_filter import BloomFilter
from ...table.files.file_group import BaseFile, DataFile, FileSlice, LogFile
from ...table.files.key_footers import KeyFooter
from ...table.files.logs.log_blocks import BlockType
from ...table.files.logs.log_contents import columns_of, deletes_of, rows_of
from ...table.keys.generator import KeyGenerator
from ...table.latest_schema import latest_schema
from ...table.schema.columns import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY, canonical
from ...table.table import Table
from ...table.told_spelling import with_told_spelling
from .finding import Sickness
from .footers import check_bounds
from .logs import data_blocks
from .sicknesses import (
    BLOOM_MISS,
    COMMIT_TIME_COLUMN,
    FILE_NAME_COLUMN,
    KEY_MISMATCH,
    NOT_CHECKED,
    PARTITION_COLUMN,
    WRONG_BUCKET,
)
from .subject import Subject

COMMIT_TIME = "_hoodie_commit_time"
# By which Apache Hudi spells keys or paths in ways of their own.
_SPELT_OTHERWISE = (key.CONSISTENT_TIMESTAMPS, key.SLASH_DATES)


@dataclass
class _Wrong:
    """Rows of one file that are wrong in one way: how many, and what was found first."""

    rows: dict[Sickness, int] = field(default_factory=dict)
    first: dict[Sickness, str] = field(default_factory=dict)

    def take(self, sickness: Sickness, wrong: Mask, found: pa.Array, wanted: str) -> None:
        """Count some rows."""
        positions = np.flatnonzero(wrong)
        if len(positions):
            value = found[int(positions[0])].as_py()  # one value, to be named
            self.rows[sickness] = self.rows.get(sickness, 0) + len(positions)
            self.first.setdefault(sickness, f"{value!r} {wanted}")


def check_rows(subject: Subject) -> None:
    """Read every row of the newest file slices, each file by itself."""
    config = subject.config
    keys: KeyGenerator | None = None
    with subject.findings.turning(NOT_CHECKED):
        odd = [option for option in _SPELT_OTHERWISE if config.flag(option)]
        if odd:
            subject.findings.add(
                NOT_CHECKED, f"With {odd[0]}=true record keys and paths were not held against the rows."
            )
        else:
            spelt = with_told_spelling(Table(subject.storage, config))
            keys = KeyGenerator(spelt.config, latest_schema(config, subject.timeline))
    for_each(subject.storage, lambda group: _check(subject, group.newest, keys), subject.live)


def _check(subject: Subject, piece: FileSlice, keys: KeyGenerator | None) -> None:
    if piece.base is not None:
        _check_base(subject, _Rows(subject, piece, piece.base, piece.base.name, keys), piece.base)
    for log in piece.logs:
        # Rows of log files name the file group alone.
        _check_log(subject, _Rows(subject, piece, log, piece.file_id, keys), log)


@dataclass
class _Rows:
    """The rows of one file of a slice, held against where they are.

    Attributes:
        subject: The table.
        piece: The slice.
        file: The file.
        own_name: What the rows have to call it.
        keys: What makes record keys and partition paths of rows; None where that is not held against them.
        wrong: What is wrong with them.
    """

    subject: Subject
    piece: FileSlice
    file: DataFile
    own_name: str
    keys: KeyGenerator | None
    wrong: _Wrong = field(default_factory=_Wrong)

    def take(self, rows: pa.RecordBatch, *, whole: bool = True) -> None:
        """Look at some rows; those that are not whole lack columns that did not change."""
        _check_meta(self, rows)
        stored = plain(rows.column(RECORD_KEY))
        if stored.null_count:
            self.wrong.take(KEY_MISMATCH, mask(pc.is_null(stored)), stored, "is no record key")
            return
        self.take_keys(stored)
        if self.keys is not None and whole:
            _check_made(self, rows, self.keys)

    def take_keys(self, stored: pa.Array) -> None:
        """Look whether record keys belong to the slice's bucket."""
        index, group = self.subject.index, self.piece.group
        if isinstance(index, BucketIndex) and index.number_of(group) is not None:
            misplaced = np.zeros(len(stored), np.bool_)
            misplaced[index.misfits(stored, group)] = True
            self.wrong.take(WRONG_BUCKET, misplaced, stored, f"does not belong to {index.rival_key(group)}")

    def tell(self) -> None:
        """Tell of everything that is wrong with them, once a sickness."""
        for sickness, count in self.wrong.rows.items():
            what = f"{self.file.path} has {count} rows that are wrong; of the first {self.wrong.first[sickness]}."
            self.subject.tell(sickness, self.file, what)


def _check_base(subject: Subject, found: _Rows, file: BaseFile) -> None:
    bounds: list[tuple[str, str]] = []
    with subject.unreadable(file.path, file.instant_time):
        with BaseFileReader(subject.storage, file.path) as reader:
            footer = dict(reader.parquet.metadata.metadata or {})
            said = KeyFooter.of(footer, file.path).filter
            bloom = None if said is None else said.get()
            for rows in _batches(reader):
                found.take(rows)
                _check_filter(found, rows, bloom)
                span = pc.min_max(plain(rows.column(RECORD_KEY)))
                if span["min"].is_valid:
                    bounds.append((span["min"].as_py(), span["max"].as_py()))  # one value a batch
        if bounds:
            check_bounds(subject, file, footer, (min(one for one, _ in bounds), max(one for _, one in bounds)))
    found.tell()


def _check_filter(found: _Rows, rows: pa.RecordBatch, bloom: BloomFilter | None) -> None:
    """Hold record keys against the filter in the file's footer; one that cannot be read is told of elsewhere."""
    stored = plain(rows.column(RECORD_KEY))
    if bloom is not None and not stored.null_count:
        found.wrong.take(BLOOM_MISS, ~bloom.may_hold(stored), stored, "is not in the bloom filter of the footer")


def _check_log(subject: Subject, found: _Rows, file: LogFile) -> None:
    with subject.unreadable(file.path, file.instant_time):
        for block in data_blocks(subject, file):
            if block.type == BlockType.DELETE:
                found.take_keys(deletes_of(subject.storage, block).keys)
                continue
            for rows in rows_of(subject.storage, block, columns_of(block)):
                found.take(rows, whole=not block.is_partial)
    found.tell()


def _batches(reader: BaseFileReader) -> Iterator[pa.RecordBatch]:
    """Yield all columns of a file's rows, so that every page is read; none of one without meta columns."""
    columns = canonical(reader.parquet.schema_arrow)
    return reader.batches(columns) if set(META_COLUMNS) <= set(columns.names) else iter(())


def _check_meta(found: _Rows, rows: pa.RecordBatch) -> None:
    subject, file, wrong = found.subject, found.file, found.wrong
    for column, sickness, right in (
        (FILE_NAME, FILE_NAME_COLUMN, found.own_name),
        (PARTITION_PATH, PARTITION_COLUMN, found.piece.partition_path),
    ):
        values = plain(rows.column(column))
        wrong.take(sickness, ~mask(pc.equal(values, right)), values, f"stands in {column}, and {right!r} is right")
    times = plain(rows.column(COMMIT_TIME))
    known = pc.unique(times).to_pylist()  # O(instants)
    strange = [time for time in known if time is None or time > file.instant_time or not _is_committed(subject, time)]
    if strange:
        bad = mask(pc.is_in(times, pa.array(strange, pa.string())))
        wrong.take(
            COMMIT_TIME_COLUMN,
            bad,
            times,
            f"stands in {COMMIT_TIME}, which is no completed instant before {file.instant_time}",
        )


def _is_committed(subject: Subject, time: str) -> bool:
    return subject.is_complete(time) or subject.timeline.is_committed(time)


def _check_made(found: _Rows, rows: pa.RecordBatch, keys: KeyGenerator) -> None:
    """Hold what the key generator makes of rows against where they are."""
    subject, file, wrong = found.subject, found.file, found.wrong
    try:
        if not subject.config.generates_keys:
            stored, made = plain(rows.column(RECORD_KEY)), keys.record_keys(rows)
            wrong.take(
                KEY_MISMATCH, mask(pc.not_equal(stored, made)), stored, "is another record key than its columns make"
            )
        paths = keys.partition_paths(rows).cast(pa.string())
        # Where keys are unique in the whole table, a row may have stayed in the partition in which its key was found.
        strays = mask(pc.not_equal(paths, found.piece.partition_path)) & (
            subject.index is None or not subject.index.is_global
        )
        wrong.take(PARTITION_COLUMN, strays, paths, "is the partition that its columns make")
    except NullKeyError as error:
        subject.tell(KEY_MISMATCH, file, f"{file.path}: {error.what}")
    except PyHudiError as error:
        what = f"Record keys and partition paths were not held against the rows: {error.what}"
        subject.findings.add(NOT_CHECKED, what)
