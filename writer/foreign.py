"""Checks that rows of files of other engines have the bucket and the key that pyhudi would have given them.

Otherwise a lookup would miss a row of the same key, in its place or by its spelling, and the key would exist twice.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BucketMisfitError, NullKeyError, UnsupportedTableError
from ..index.base import Index
from ..table.files.file_group import BaseFile, DataFile, FileSlice, LogFile
from ..table.files.names import FileGroupId
from ..table.keys.generator import KeyGenerator
from ..table.schema.columns import RECORD_KEY


@dataclass(frozen=True, slots=True)
class ForeignRows:
    """Checks rows of files of other engines.

    `index` is None if the table notes none, `keys` if the table generates its keys.
    """

    index: Index | None
    keys: KeyGenerator | None

    def checked(self, batches: Generator[pa.RecordBatch], file_slice: FileSlice) -> Generator[pa.RecordBatch]:
        """Yield batches of a slice unchanged, after checking the bucket and the spelling of each key."""
        file = file_slice.data_files[-1]
        with closing(batches):
            for rows in batches:
                if self.index is not None:
                    check_bucket(self.index, rows.column(RECORD_KEY), file_slice.group, file)
                if self.keys is not None:
                    check_spelling(self.keys, rows, file)
                yield rows


def check_bucket(index: Index, keys: pa.Array, group: FileGroupId, file: DataFile) -> None:
    """Raise `BucketMisfitError` if a key of a file belongs to another file group by the index."""
    misfits = index.misfits(keys, group)
    if len(misfits):
        key = keys[int(misfits[0])].as_py()  # one value, for the error
        raise BucketMisfitError(
            f"The {_file_words(file)} holds the record key {key!r}, which does not belong to {index.rival_key(group)}.",
            "Another index or another number of buckets wrote it: give the number of buckets the table was made with "
            "(hoodie.bucket.index.num.buckets), or rewrite the table with mode overwrite.",
        )


def check_spelling(keys: KeyGenerator, rows: pa.RecordBatch, file: DataFile) -> None:
    """Raise `UnsupportedTableError` if a file's record keys are other texts than pyhudi makes of the same rows.

    With the key generator COMPLEX and one record key field, some versions of Apache Hudi leave the field's name out.
    Other engines spell times in other units.
    """
    stored = rows.column(RECORD_KEY)
    try:
        expected_keys = keys.record_keys(rows)
    except NullKeyError as error:
        first = stored[0].as_py()  # one value, for the error
        raise _other_spelling_error(first, "refuses, because its columns are null or empty", file) from error
    differing = np.flatnonzero(np.asarray(pc.not_equal(stored, expected_keys)))
    if len(differing):
        first = int(differing[0])
        key, expected_key = stored[first].as_py(), expected_keys[first].as_py()  # one value each, for the error
        raise _other_spelling_error(key, f"spells {expected_key!r}", file)


def _file_words(file: DataFile) -> str:
    """Return the words for a file in an error, with the instants that wrote it if these are known."""
    stated_log = file.stated if isinstance(file, LogFile) else None
    makers = (file.instant_time,) if isinstance(file, BaseFile) else () if stated_log is None else stated_log.makers
    return f"{file.kind} {file.path}" + (f", written by instant {', '.join(makers)}," if makers else "")


def _other_spelling_error(key: str, ours: str, file: DataFile) -> UnsupportedTableError:
    """Return the error of a file with a record key that pyhudi spells otherwise; ``ours`` says what pyhudi does."""
    return UnsupportedTableError(
        f"The {_file_words(file)} holds the record key {key!r} for a row "
        f"whose key pyhudi {ours}, so that an upsert would not find it.",
        "Write the table with the engine that wrote it so far, or rewrite the table with mode overwrite.",
    )
