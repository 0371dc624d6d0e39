"""The footers of base files: columns, Hudi's own key-values, and the bounds of record keys."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ...storage.threads import for_each
from ...table.files.base_file import MAX_KEY, MIN_KEY, BaseFileReader
from ...table.files.bloom_filter import FILTER_CHECKSUM, SIMPLE, BloomFilter, checksum
from ...table.files.file_group import BaseFile, base_file
from ...table.files.footers import text_bounds
from ...table.files.key_footers import KeyRange
from ...table.files.names import FileGroupId
from ...table.latest_schema import latest_schema
from ...table.schema.columns import META_COLUMNS, RECORD_KEY, arrow_schema
from ...table.schema.conform import conform
from .check_catalogue import (
    BLOOM_CORRUPT,
    COLUMNS_MISFIT,
    FOOTER_INVALID,
    KEY_RANGE,
    NOT_CHECKED,
    ROW_COUNT,
)
from .check_catalogue import (
    META_COLUMNS as META_COLUMNS_WRONG,
)
from .subject import Subject

BLOOM = b"org.apache.hudi.bloomfilter"
_BLOOM_TYPE = b"hoodie_bloom_filter_type_code"
_AVRO_SCHEMA = b"parquet.avro.schema"
# From this character on, Java's order of characters differs from the order of UTF-8 bytes.
_FIRST_SURROGATE = "\ud800"


def check_footers(subject: Subject) -> None:
    """Check the footer of every base file of a completed write, older slices included."""
    schema: pa.Schema | None = None
    with subject.findings.turning(NOT_CHECKED):
        schema = latest_schema(subject.config, subject.timeline)
    listed = (base_file(info.path, info.size) for files in subject.folders.partitions.values() for info in files)
    wanted = [file for file in listed if file is not None and subject.is_complete(file.instant_time)]
    newest = {group.newest.base.path: group.id for group in subject.live if group.newest.base is not None}
    for_each(subject.storage, lambda file: _check_footer(subject, file, schema, newest), wanted)


def differs(stated: str, actual: str) -> bool:
    """Return whether a footer's bound of record keys is wrong both in Java's order of strings and in that of bytes.

    If a bound has a character whose place differs between the two, nothing is proved.
    """
    return (
        stated != actual and max(stated, default="") < _FIRST_SURROGATE and max(actual, default="") < _FIRST_SURROGATE
    )


def _check_footer(
    subject: Subject, file: BaseFile, schema: pa.Schema | None, newest: Mapping[str, FileGroupId]
) -> None:
    """Report what is wrong with the footer of one base file: its columns, its key-values, its bounds of keys.

    ``schema`` is None if the table's columns are unknown; ``newest`` has the file groups of the newest slices, by the
    paths of their base files.
    """
    if not file.path.endswith(".parquet"):
        subject.findings.add(
            NOT_CHECKED, f"{file.path} is no Parquet file, and pyhudi reads no other files.", file=file.path
        )
        return
    with subject.unreadable(file.path):
        with BaseFileReader(subject.storage, file.path) as reader:
            columns = reader.columns(pa.schema([]) if schema is None else schema)
            footer = dict(reader.parquet.metadata.metadata or {})
            stated_file = subject.statements.files.get(file.path)
            if stated_file is not None and stated_file.rows is not None and stated_file.rows != reader.rows:
                what = f"{file.path} has {reader.rows} rows, and the write {file.instant_time} says {stated_file.rows}."
                subject.tell(ROW_COUNT, file, what)
            bounds = None if RECORD_KEY not in columns.names else _bounds_in_statistics(reader)
        _check_columns(subject, file, columns, schema)
        _check_key_values(subject, file, footer)
        check_bounds(subject, file, footer, bounds)
        if not subject.deep and file.path in newest:
            # A deep check looks at all keys. Here the least and the greatest key of each newest slice must do.
            key_range = KeyRange.of(footer, file.path)
            if key_range is not None:
                subject.check_buckets(file, newest[file.path], pa.array([key_range.least, key_range.greatest]))


def _check_columns(subject: Subject, file: BaseFile, columns: pa.Schema, schema: pa.Schema | None) -> None:
    """Report a base file without the meta columns in front, or whose columns cannot be read as the table's."""
    first_columns = columns.names[: len(META_COLUMNS)]
    if tuple(first_columns) != META_COLUMNS:
        what = f"{file.path} begins with the columns {', '.join(first_columns)}."
        subject.tell(META_COLUMNS_WRONG, file, what)
    if schema is not None:
        with subject.turning(COLUMNS_MISFIT, file):
            no_rows = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in columns], schema=columns)
            conform(no_rows, schema, fill_missing=True)


def _check_key_values(subject: Subject, file: BaseFile, footer: Mapping[bytes, bytes]) -> None:
    """Report an Avro schema that does not parse, and a bloom filter that readers cannot use."""
    if _AVRO_SCHEMA in footer:
        with subject.turning(FOOTER_INVALID, file):
            _parse(footer[_AVRO_SCHEMA])
    if BLOOM in footer:
        try:
            _check_bloom(footer)
        except ValueError as error:
            what = f"The bloom filter in the footer of {file.path} cannot be used ({error})."
            subject.tell(BLOOM_CORRUPT, file, what)


@lru_cache(maxsize=256)
def _parse(text: bytes) -> pa.Schema:
    """Return an Avro schema's columns; cached, as most files of a table have the same schema."""
    return arrow_schema(text.decode(), "a base file")


def _check_bloom(footer: Mapping[bytes, bytes]) -> None:
    """Raise ValueError if readers cannot use a bloom filter, or if its bytes are not those that were written."""
    text, code, stored = footer[BLOOM], footer.get(_BLOOM_TYPE), footer.get(FILTER_CHECKSUM.encode())
    if stored is not None and stored != checksum(text):
        raise ValueError("its checksum is of other bytes")
    bloom = BloomFilter.decode(text, SIMPLE if code is None else code.decode())
    data = base64.b64decode(text)
    if any(not data.startswith(row.head) for row in bloom.rows):
        raise ValueError("its head does not fit its rows")


def _bounds_in_statistics(reader: BaseFileReader) -> tuple[str, str] | None:
    """Return the least and the greatest record key by statistics of row groups; None if a row group has none."""
    metadata: Any = reader.parquet.metadata
    rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    group_bounds = [
        bounds for bounds, count in zip(text_bounds(reader.parquet, RECORD_KEY), rows, strict=True) if count
    ]
    least = [bound for bound, _ in group_bounds if bound is not None]
    greatest = [bound for _, bound in group_bounds if bound is not None]
    if not group_bounds or len(least) < len(group_bounds) or len(greatest) < len(group_bounds):
        return None
    return min(least), max(greatest)


def check_bounds(
    subject: Subject, file: BaseFile, footer: Mapping[bytes, bytes], bounds: tuple[str, str] | None
) -> None:
    """Compare the bounds of record keys in a footer with ``bounds``, those of the keys; None if these are unknown.

    ``footer`` has the keys and values that the writer of ``file`` added to its footer. A footer need not have bounds,
    but bounds that are wrong, or only one of the two, become findings.
    """
    stated = [footer.get(name.encode()) for name in (MIN_KEY, MAX_KEY)]
    if (stated[0] is None) is not (stated[1] is None):
        what = f"{file.path} has only one of {MIN_KEY} and {MAX_KEY} in its footer."
        subject.tell(FOOTER_INVALID, file, what)
    if bounds is None or stated[0] is None or stated[1] is None:
        return
    least, greatest = stated[0].decode(errors="replace"), stated[1].decode(errors="replace")
    if differs(least, bounds[0]) or differs(greatest, bounds[1]):
        actual = f"from {bounds[0]!r} to {bounds[1]!r}"
        subject.tell(
            KEY_RANGE, file, f"{file.path} has record keys {actual}; its footer says {least!r} to {greatest!r}."
        )
