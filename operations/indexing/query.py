"""Lookups of keys in an index; the answers of an index from another package are checked against the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import CommitConflictError, IndexMisfitError
from ...index.base import NOT_FOUND, KeyedRows, LookupIndex, Tags
from ...table.config.property_keys import LOOKUP_INDEXES
from ...table.files.lost import open_view
from ...table.seen_table import SeenTable
from .known_keys import KeysOfWrite
from .notify import asking


def ask(index: LookupIndex, rows: KeyedRows, seen: SeenTable, known_keys: KeysOfWrite | None = None) -> Tags:
    """Return the file groups of the keys of some rows of a write.

    Raises `CommitConflictError` if the index knows file groups that another write made meanwhile, and
    `IndexMisfitError` for an answer that does not fit this table.
    """
    # The table's own index again, which reads only the slices whose keys are not in memory.
    if known_keys is not None:
        return known_keys.tag(rows, seen)
    # An index of pyhudi looks into the table's own files, so its answer needs no check.
    if seen.table.config.index_type in LOOKUP_INDEXES:
        return index.tag(rows, seen.view, seen.storage)
    tags = asking(seen.table, lambda: index.tag(rows, seen.view, seen.storage))
    answer = _Answer(tags, rows, seen)
    answer.check_codes()
    answer.check_groups()
    if not index.is_global:
        answer.check_partitions()
    return tags


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer of an index of another package, and what it is checked against."""

    tags: Tags
    rows: KeyedRows
    seen: SeenTable

    def check_codes(self) -> None:
        """Raise `IndexMisfitError` for codes and positions out of range, or of another number than the rows."""
        codes, rows, groups = np.asarray(self.tags.codes), len(self.rows), len(self.tags.groups)
        if codes.shape != (rows,) or not np.issubdtype(codes.dtype, np.integer):
            raise self._misfit(
                f"got {rows} keys and answered with codes of the shape {codes.shape} and type {codes.dtype}"
            )
        for what, numbers, least, most in (
            ("codes", codes, NOT_FOUND, groups),
            ("codes of further places", np.asarray(self.tags.copy_codes), 0, groups),
            ("positions of further places", np.asarray(self.tags.copied), 0, rows),
        ):
            if len(numbers) and not (least <= numbers.min() and numbers.max() < most):
                raise self._misfit(
                    f"answered for {rows} keys with {groups} file groups and with {what} from {numbers.min()} to "
                    f"{numbers.max()}"
                )

    def check_groups(self) -> None:
        """Refuse file groups that the write does not see: newer file groups, or file groups of another table."""
        for group in self.tags.groups:
            if group.file_id in self.seen.view.slices(group.partition_path):
                continue
            now = open_view(self.seen.table.timeline())
            name = f"the file group {group.file_id} of partition {group.partition_path!r}"
            if group.file_id in now.slices(group.partition_path):
                raise CommitConflictError(
                    f"The write to the table {self.seen.table.path} cannot be committed: {name}, which holds some of "
                    "its keys, is of a newer write.",
                    "This write changed nothing; write again.",
                )
            raise self._misfit(f"says that keys are in {name}, which the table does not have")

    def check_partitions(self) -> None:
        """Refuse a file group outside of the row's partition, which only a global index may return."""
        tags, rows = self.tags, self.rows
        numbers = {path: number for number, path in enumerate(rows.paths.dictionary.to_pylist())}  # O(partitions)
        of_groups = np.array([numbers.get(group.partition_path, -1) for group in tags.groups] or [-1], np.int64)
        codes = np.asarray(tags.codes)
        located = np.flatnonzero(codes != NOT_FOUND)
        misplaced = located[of_groups[codes[located]] != np.asarray(rows.paths.indices)[located]]
        if len(misplaced):
            row = int(misplaced[0])
            key, path = rows.record_keys[row].as_py(), rows.paths[row].as_py()  # one value, for the error
            raise self._misfit(
                f"is not global, and says that the key {key!r} of partition {path!r} is in partition "
                f"{tags.groups[codes[row]].partition_path!r}"
            )

    def _misfit(self, what: str) -> IndexMisfitError:
        """Return the error of an answer that does not fit the table."""
        table = self.seen.table
        return IndexMisfitError(
            f"The index {table.config.index_type} of the table {table.path} {what}.",
            "This write changed nothing. Reset the index's state for this table so that it is rebuilt. If that does "
            "not help, the index implementation is wrong.",
        )
