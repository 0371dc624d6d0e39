"""Partition paths: values to folder names and back.

Source: ``PartitionPathEncodeUtils`` (which is Hive's ``FileUtils.escapePathName``) and ``KeyGenUtils``.
"""

from __future__ import annotations

import re
from itertools import accumulate

from ...errors import PartitionValueError, TableConfigError, UnsupportedTableError
from ..config import property_keys as key
from ..config.key_types import KeyGeneratorType, PartitionType
from ..config.table_config import TableConfig

HIVE_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_ESCAPES = {code: f"%{code:02X}" for code in (*range(0x20), 0x7F, *map(ord, "\"#%'*/:=?\\{[]^"))}
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_MAX_NAME_BYTES = 255


def escape(value: str) -> str:
    """Return a value with the characters that Hive escapes in folder names as ``%XX``."""
    return value.translate(_ESCAPES)


def unescape(text: str) -> str:
    """Return the value that `escape` was given; a ``%`` without two hexadecimal digits stays."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def format_segment(value: str | None, field: str, config: TableConfig) -> str:
    """Return the part of the partition path of one value; without escaping it may be several folders."""
    text = HIVE_DEFAULT_PARTITION if not value else escape(value) if config.url_encode else value
    return _with_field_name(text, field, config)


def check_safe(value: str | None, field: str, config: TableConfig) -> None:
    """Raise PartitionValueError if a value's folder leaves the table, is Hudi's own, or unreadable to Hudi."""
    segment = format_segment(value, field, config)
    leading = field == config.partition_fields[0]
    reason = _why_not_safe(segment, leading)
    if reason is None:
        return
    cure = "Change the value."
    # Would escaping make the value safe?
    if not config.url_encode and _why_not_safe(_with_field_name(escape(value or ""), field, config), leading) is None:
        cure = "Change the value, or make the table with hoodie.datasource.write.partitionpath.urlencode=true."
    raise PartitionValueError(
        f"The value {value!r} of partition column {field!r} would make the folder {segment!r}: {reason}.", cure
    )


def check_safe_path(path: str, table: str) -> None:
    """Raise PartitionValueError for a path, relative to the table's root, that `check_safe` would refuse."""
    reason = _why_not_safe(path, leading=True) if path else None
    if reason is not None:
        raise PartitionValueError(
            f"Rows for the table {table} would make the partition {path!r}: {reason}.",
            "Change the values of the partition columns.",
        )


def _with_field_name(text: str, field: str, config: TableConfig) -> str:
    """Return a folder's name: ``field=value`` in Hive's style, else the value."""
    return f"{field}={text}" if config.hive_style else text


def _why_not_safe(segment: str, leading: bool) -> str | None:
    """Return why a partition's path must not have this part, as a clause for an error; None if it may.

    ``leading`` says that the path begins with the part.
    """
    folders = segment.split("/")
    if "" in folders:
        return "it has an empty folder name (a slash at an end or two in a row)"
    if "." in folders or ".." in folders:
        return "'.' and '..' are no folders of their own"
    if any(folder.startswith(".hoodie") for folder in folders):
        return "names that begin with '.hoodie' are Hudi's own"
    if "\0" in segment:
        return "it holds a NUL character"
    if any(len(folder.encode()) > _MAX_NAME_BYTES for folder in folders):
        return f"a name longer than {_MAX_NAME_BYTES} bytes fits into no file system"
    if leading and ":" in folders[0]:
        return "Apache Hudi takes the text before the colon for a file system's name"
    return None


def parse_partition_path(path: str, config: TableConfig) -> dict[str, str | None] | None:
    """Return the text of each partition column's value, spelt as in a record key, as far as the path has it.

    A text is None if the path has Hive's default (for null, the empty string and its own name). Columns that the
    path has as times are absent. Returns None if the path cannot be split: slashes inside values, or a user's own
    key generator.
    """
    try:
        kinds = config.partition_types
        if not kinds or config.key_generator is KeyGeneratorType.NON_PARTITION:
            return {} if path == "" else None
    except (UnsupportedTableError, TableConfigError):
        return None
    if config.flag(key.SLASH_DATES):
        # A date has slashes in the path, and so spans three folders.
        return None
    parts = _parts_of_path(path, config)
    if parts is None:
        return None
    values: dict[str, str | None] = {}
    for field, partition_type, part in zip(config.partition_fields, kinds, parts, strict=True):
        prefix = f"{field}=" if config.hive_style else ""
        if not part.startswith(prefix):
            return None
        text = part[len(prefix) :]
        if partition_type is PartitionType.SIMPLE:
            values[field] = None if text == HIVE_DEFAULT_PARTITION else unescape(text) if config.url_encode else text
    return values


def _parts_of_path(path: str, config: TableConfig) -> list[str] | None:
    """Return the part of each partition column; None if slashes inside values make them uncertain."""
    kinds = config.partition_types
    # All slashes are inside the value of a single column.
    if len(kinds) == 1:
        return [path]
    folders = path.split("/")
    depths = [_depth(kind, config) for kind in kinds]
    if sum(depths) != len(folders):
        return None
    ends = list(accumulate(depths))
    return ["/".join(folders[end - depth : end]) for depth, end in zip(depths, ends, strict=True)]


def _depth(kind: PartitionType, config: TableConfig) -> int:
    """Return how many folders a column makes, as far as its values hold no slashes."""
    if kind is PartitionType.SIMPLE or config.url_encode:
        return 1
    return 1 + config.time_options.get(key.TIME_OUTPUT_FORMAT, "").count("/")
