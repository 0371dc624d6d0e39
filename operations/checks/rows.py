"""The rows of the newest base files: whether they are where they belong, and say so."""

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
from ...table.files.file_group import FileSlice
from ...table.keys.generator import KeyGenerator
from ...table.latest_schema import latest_schema
from ...table.schema.columns import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY, canonical
from .finding import Sickness
from .footers import check_bounds
from .sicknesses import (
    COMMIT_TIME_COLUMN,
    FILE_CORRUPT,
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
    """Read every row of the newest base files, each file by itself."""
    config = subject.config
    keys: KeyGenerator | None = None
    with subject.findings.turning(NOT_CHECKED):
        odd = [option for option in _SPELT_OTHERWISE if config.flag(option)]
        if odd:
            subject.findings.add(
                NOT_CHECKED, f"With {odd[0]}=true record keys and paths were not held against the rows."
            )
        else:
            keys = KeyGenerator(config, latest_schema(subject.storage, config, subject.timeline))
    for_each(subject.storage, lambda group: _check(subject, group.newest, keys), subject.live)


def _check(subject: Subject, piece: FileSlice, keys: KeyGenerator | None) -> None:
    file, wrong = piece.base_file, _Wrong()
    index = subject.index if isinstance(subject.index, BucketIndex) else None
    bounds: list[tuple[str, str]] = []
    with subject.findings.turning(FILE_CORRUPT, file=file.path, instant=file.instant_time):
        with BaseFileReader(subject.storage, file.path) as reader:
            footer = dict(reader.parquet.metadata.metadata or {})
            for rows in _batches(reader):
                _check_meta(subject, piece, rows, wrong)
                stored = plain(rows.column(RECORD_KEY))
                span = pc.min_max(stored)
                if span["min"].is_valid:
                    bounds.append((span["min"].as_py(), span["max"].as_py()))  # one value a batch
                if stored.null_count:
                    wrong.take(KEY_MISMATCH, mask(pc.is_null(stored)), stored, "is no record key")
                    continue
                if index is not None and index.number_of(piece.group) is not None:
                    misplaced = np.zeros(len(stored), np.bool_)
                    misplaced[index.misfits(stored, piece.group)] = True
                    wrong.take(WRONG_BUCKET, misplaced, stored, f"does not belong to {index.rival_key(piece.group)}")
                if keys is not None:
                    _check_made(subject, piece, rows, keys, wrong)
        if bounds:
            check_bounds(subject, file, footer, (min(one for one, _ in bounds), max(one for _, one in bounds)))
    for sickness, count in wrong.rows.items():
        what = f"{file.path} has {count} rows that are wrong; of the first {wrong.first[sickness]}."
        subject.tell(sickness, file, what)


def _batches(reader: BaseFileReader) -> Iterator[pa.RecordBatch]:
    """Yield all columns of a file's rows, so that every page is read; none of one without meta columns."""
    columns = canonical(reader.parquet.schema_arrow)
    return reader.batches(columns) if set(META_COLUMNS) <= set(columns.names) else iter(())


def _check_meta(subject: Subject, piece: FileSlice, rows: pa.RecordBatch, wrong: _Wrong) -> None:
    file = piece.base_file
    for column, sickness, right in (
        (FILE_NAME, FILE_NAME_COLUMN, file.name),
        (PARTITION_PATH, PARTITION_COLUMN, piece.partition_path),
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


def _check_made(subject: Subject, piece: FileSlice, rows: pa.RecordBatch, keys: KeyGenerator, wrong: _Wrong) -> None:
    """Hold what the key generator makes of rows against where they are."""
    file = piece.base_file
    try:
        if not subject.config.generates_keys:
            stored, made = plain(rows.column(RECORD_KEY)), keys.record_keys(rows)
            wrong.take(
                KEY_MISMATCH, mask(pc.not_equal(stored, made)), stored, "is another record key than its columns make"
            )
        paths = keys.partition_paths(rows).cast(pa.string())
        wrong.take(
            PARTITION_COLUMN,
            mask(pc.not_equal(paths, piece.partition_path)),
            paths,
            "is the partition that its columns make",
        )
    except NullKeyError as error:
        subject.tell(KEY_MISMATCH, file, f"{file.path}: {error.what}")
    except PyHudiError as error:
        what = f"Record keys and partition paths were not held against the rows: {error.what}"
        subject.findings.add(NOT_CHECKED, what)
