"""What a task of a compaction or a log compaction does: it merges the log files of one file slice into one new file."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from ....storage.base import Storage, split
from ....table.arrow.spill import local_spills
from ....table.config import TableConfig
from ....table.files.base_file import open_base
from ....table.files.file_group import FileSlice, data_file
from ....table.files.names import FileGroupId
from ....table.schema.columns import RECORD_KEY
from ....table.slices.merged_slice import MergedSlice
from ....version import VERSION
from ....writer.data_files import DataFiles
from ....writer.written_file import WrittenFile
from ...transaction.outcome import CommitBody, Outcome
from ...transaction.write_stats import commit_metadata
from ..unit_execution import FileWorker, UnitResult

# The key of extraMetadata for the release of pyhudi that carried a plan out.
MADE_BY = "pyhudi.version"


@dataclass(frozen=True, slots=True)
class SliceWorker(FileWorker):
    """Merges the log files of slices. `notes` go into extraMetadata."""

    notes: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    operation: ClassVar[str]
    compacts: ClassVar[bool] = True

    def outcome(self, results: Sequence[UnitResult[FileSlice]]) -> Outcome:
        """Return the outcome of the instant, with the new files of all slices."""
        return Outcome(self.body(results), [file for result in results for file in result.written])

    def body(self, results: Sequence[UnitResult[FileSlice]]) -> CommitBody:
        """Return the metadata of the completed instant, which notes the release of pyhudi that made it."""
        written = [file for result in results for file in result.written]
        notes = {MADE_BY: VERSION, **self.notes}
        metadata = commit_metadata(self.work, self.files.schema, written, self.operation, notes, compacts=self.compacts)
        return CommitBody(metadata, self.work.table)

    @contextmanager
    def opened(self, file_slice: FileSlice) -> Iterator[tuple[MergedSlice, DataFiles]]:
        """Yield a merged slice and the maker of its new file, while the plan's heartbeat runs."""
        with self.attempt() as (files, local):
            yield self.files.slices(self.files.counts, local_spills(local)).merged(file_slice), files

    def result(self, unit: FileSlice, merged: MergedSlice, began: float, written: WrittenFile) -> UnitResult[FileSlice]:
        """Return what a slice became, with the seconds since `began` and the counts of its log files."""
        merged.counts.seconds = time.monotonic() - began
        return UnitResult(unit, (replace(written, logs=merged.counts),))


def unread_columns(columns: pa.Schema, config: TableConfig) -> frozenset[str]:
    """Return the string columns whose values no step of a merge reads."""
    looked_into = {RECORD_KEY, *config.ordering_fields}
    return frozenset(column.name for column in columns if pa.types.is_string(column.type)) - looked_into


def is_foreign(storage: Storage, file_slice: FileSlice, foreign: Container[FileGroupId]) -> bool:
    """Return whether other engines may have written rows of a slice, as log files of the ``foreign`` groups.

    A base file without pyhudi's stamp may be another engine's, too.
    """
    if file_slice.group in foreign or file_slice.base is None:
        return file_slice.group in foreign
    with open_base(storage, file_slice.base) as base:
        base.refuse_newer()
        return not base.stamped


def written_slices(units: Sequence[FileSlice], paths: Sequence[str]) -> Sequence[FileSlice]:
    """Return the slices to whose file groups these new data files belong."""
    new_files = (file for path in paths if (file := data_file(path)) is not None)
    groups = {FileGroupId(split(file.path)[0], file.file_id) for file in new_files}
    return [unit for unit in units if unit.group in groups]
