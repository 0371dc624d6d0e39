"""Files of other writers, whose rows must lie and be spelt as pyhudi would have done before any is merged.

Otherwise a row of the same key would be looked for where it is not, or under another key, and be there twice.
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
from ..table.files.file_group import DataFile, FileSlice
from ..table.files.names import FileGroupId
from ..table.keys.generator import KeyGenerator
from ..table.schema.columns import RECORD_KEY


@dataclass(frozen=True, slots=True)
class ForeignRows:
    """Checks rows of files that pyhudi did not write.

    Attributes:
        index: Says which bucket a key belongs to; None where the table does not tell which index it has.
        keys: Spells the keys of rows; None where the table generates them.
    """

    index: Index | None
    keys: KeyGenerator | None

    def checked(self, batches: Generator[pa.RecordBatch], file_slice: FileSlice) -> Generator[pa.RecordBatch]:
        """Yield all columns of the rows of a slice, having refused those of another bucket or spelling.

        Raises:
            BucketMisfitError: A key belongs to another bucket.
            UnsupportedTableError: A key is not the one that pyhudi makes of its row.
        """
        file = file_slice.data_files[-1]
        with closing(batches):
            for rows in batches:
                if self.index is not None:
                    check_bucket(self.index, rows.column(RECORD_KEY), file_slice.group, file)
                if self.keys is not None:
                    check_spelling(self.keys, rows, file)
                yield rows


def check_bucket(index: Index, keys: pa.Array, group: FileGroupId, file: DataFile) -> None:
    """Refuse a file that holds keys of another bucket, as one of another index or bucket count does.

    Raises:
        BucketMisfitError: It does; the first such key is named.
    """
    misfits = index.misfits(keys, group)
    if len(misfits):
        key = keys[int(misfits[0])].as_py()  # one value, for the error
        raise BucketMisfitError(
            f"The {file.kind} {file.path}, written by instant {file.instant_time}, holds the record key {key!r}, which "
            f"does not belong to {index.rival_key(group)}.",
            "Another index or another number of buckets wrote it: give the number of buckets the table was made with "
            "(hoodie.bucket.index.num.buckets), or rewrite the table with mode overwrite.",
        )


def check_spelling(keys: KeyGenerator, rows: pa.RecordBatch, file: DataFile) -> None:
    """Refuse a file whose record keys are other texts than pyhudi makes of the same rows.

    Some versions of Apache Hudi spell the key of a table with the key generator COMPLEX and one record key field
    without the field's name, and other engines spell times in other units.

    Raises:
        UnsupportedTableError: They are; the first such key is named.
    """
    stored = rows.column(RECORD_KEY)
    try:
        made = keys.record_keys(rows)
    except NullKeyError as error:
        first = stored[0].as_py()  # one value, for the error
        raise _spelt_otherwise(first, "refuses, because its columns are null or empty", file) from error
    others = np.flatnonzero(np.asarray(pc.not_equal(stored, made)))
    if len(others):
        first = int(others[0])
        key, own = stored[first].as_py(), made[first].as_py()  # one value each, for the error
        raise _spelt_otherwise(key, f"spells {own!r}", file)


def _spelt_otherwise(key: str, ours: str, file: DataFile) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"The {file.kind} {file.path}, written by instant {file.instant_time}, holds the record key {key!r} for a row "
        f"whose key pyhudi {ours}, so that an upsert would not find it.",
        "Go on writing the table with what wrote it, or rewrite the table with mode overwrite.",
    )
