"""Asking an index where keys are; what one of another package answers is held against the table first."""

from __future__ import annotations

import numpy as np

from ...errors import CommitConflictError, IndexMisfitError
from ...index.base import NOT_FOUND, KeyedRows, LookupIndex, Tags
from ...table.config.property_keys import LOOKUP_INDEXES
from ...table.files.lost import open_view
from ...table.files.names import FileGroupId
from ...table.files.view import FileView
from ...table.table import Table
from .telling import asking


def ask(index: LookupIndex, rows: KeyedRows, view: FileView, table: Table) -> Tags:
    """Return where each row's key is.

    Args:
        index: The table's.
        rows: Rows of one write, or of a part of it.
        view: The table's file slices as of the write's watermark.
        table: The table.

    Raises:
        CommitConflictError: The index knows of file groups that another write made meanwhile.
        IndexMisfitError: Its answer cannot be of this table.
        StorageError: It failed.
    """
    if table.config.index_type in LOOKUP_INDEXES:
        return index.tag(rows, view, table.storage)
    tags = asking(table, lambda: index.tag(rows, view, table.storage))
    _check_codes(tags, rows, table)
    for group in tags.groups:
        if group.file_id not in view.slices(group.partition_path):
            raise _strange(group, table)
    if not index.is_global:
        _check_partitions(tags, rows, table)
    return tags


def _check_codes(tags: Tags, rows: KeyedRows, table: Table) -> None:
    codes = np.asarray(tags.codes)
    if codes.shape != (len(rows),) or not np.issubdtype(codes.dtype, np.integer):
        raise _misfit(
            f"was asked for {len(rows)} keys and answered with codes of the shape {codes.shape} and type {codes.dtype}",
            table,
        )
    for what, numbers, least, most in (
        ("codes", codes, NOT_FOUND, len(tags.groups)),
        ("codes of further places", np.asarray(tags.copy_codes), 0, len(tags.groups)),
        ("positions of further places", np.asarray(tags.copied), 0, len(rows)),
    ):
        if len(numbers) and not (least <= numbers.min() and numbers.max() < most):
            raise _misfit(
                f"answered for {len(rows)} keys with {len(tags.groups)} file groups and with {what} from "
                f"{numbers.min()} to {numbers.max()}",
                table,
            )


def _check_partitions(tags: Tags, rows: KeyedRows, table: Table) -> None:
    """Refuse a file group of another partition than the row's, which only an index of the whole table may give."""
    paths = rows.paths.dictionary.to_pylist()  # O(partitions)
    numbers = {path: number for number, path in enumerate(paths)}
    of_groups = np.array([numbers.get(one.partition_path, -1) for one in tags.groups] or [-1], np.int64)
    codes = np.asarray(tags.codes)
    found = np.flatnonzero(codes != NOT_FOUND)
    strange = found[of_groups[codes[found]] != np.asarray(rows.paths.indices)[found]]
    if len(strange):
        row = int(strange[0])
        key, group = rows.record_keys[row].as_py(), tags.groups[codes[row]]  # one value, for the error
        raise _misfit(
            f"is not global, and says that the key {key!r} of partition {rows.paths[row].as_py()!r} is in "  # one value
            f"partition {group.partition_path!r}",
            table,
        )


def _strange(group: FileGroupId, table: Table) -> CommitConflictError | IndexMisfitError:
    """Return the error of a file group that the write does not see: it came later, or was never of this table."""
    now = open_view(table.timeline())
    if group.file_id in now.slices(group.partition_path):
        return CommitConflictError(
            f"The write to the table {table.path} cannot be committed: the file group {group.file_id} of partition "
            f"{group.partition_path!r}, which holds some of its keys, was made meanwhile.",
            "Nothing of this write is left; write again.",
        )
    return _misfit(
        f"says that keys are in the file group {group.file_id} of partition {group.partition_path!r}, which the table "
        "does not have",
        table,
    )


def _misfit(what: str, table: Table) -> IndexMisfitError:
    return IndexMisfitError(
        f"The index {table.config.index_type} of the table {table.path} {what}.",
        "Nothing of this write is left. Let the index forget the table, so that it is told all of it anew; where that "
        "does not help, it is the index that has to be mended.",
    )
