"""Which file slices can hold rows of a query, by the bounds that the metadata table states of the columns of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ...table.config import TableConfig
from ...table.files.file_group import FileSlice
from ...table.metadata.kinds import COLUMN_STATS
from ...table.metadata.trusted import TrustedMetadata
from .answers import Answer, JudgedFiles, base_paths
from .predicates import Span, columns_of, may_match_all
from .search import Search
from .statistics import StatedByMetadata, Statistics, joined


@dataclass(frozen=True, slots=True)
class ColumnStatsSource:
    """Judges each slice by all its files together, since its rows have values from any of them.

    By every rule of which `check_mergeable` knows, a value of a merged row comes from one of the rows that are merged.
    If one file has no bounds, as log files of some columns, nothing is known of the slice. Bounds are about files, so
    they hold at any moment.
    """

    metadata: TrustedMetadata
    config: TableConfig
    search: Search

    @property
    def name(self) -> str:
        return COLUMN_STATS

    def slices_left(self, slices: Sequence[FileSlice], judged: JudgedFiles) -> Answer | None:
        """Return the slices that can hold wanted rows by the bounds of their files.

        None if no predicate is on a column with bounds, or the metadata table does not answer.
        """
        columns = columns_to_ask(self.search, self.config)
        if not columns:
            return None
        return self.metadata.ask(
            COLUMN_STATS, lambda partition: self._answer(StatedByMetadata(partition), slices, columns)
        )

    def _answer(self, statistics: Statistics, slices: Sequence[FileSlice], columns: Sequence[pa.Field]) -> Answer:
        """Return the slices whose bounds allow wanted rows.

        Of those with bounds of all columns the footers add nothing.
        """
        files = [file_slice.data_files for file_slice in slices]
        stated = statistics.of([file for of_slice in files for file in of_slice], columns)
        slices_left: list[FileSlice] = []
        fully_stated: list[FileSlice] = []
        at = 0
        for file_slice, of_slice in zip(slices, files, strict=True):  # O(files)
            end = at + len(of_slice)
            by_column: dict[str, Span] = {}
            for name, spans in stated.items():
                spans_of_slice = [span for span in spans[at:end] if span is not None]
                # If one of its files has no bounds, nothing is known of the slice.
                if len(spans_of_slice) == end - at:
                    # A log file's blocks may lack a column each.
                    by_column[name] = joined(spans_of_slice, or_null=bool(file_slice.logs))
            at = end
            if may_match_all(self.search.predicates, by_column, self.search.schema):
                slices_left.append(file_slice)
                if len(by_column) == len(columns):
                    fully_stated.append(file_slice)
        return Answer(slices_left, JudgedFiles(bounds=base_paths(fully_stated)))


def columns_to_ask(search: Search, config: TableConfig) -> list[pa.Field]:
    """Return the columns of a search's conditions, without conditions that the paths of partitions answer."""
    partitions = {*config.partition_fields}
    decisive_columns = [names for names in map(columns_of, search.predicates) if not names <= partitions]
    wanted = sorted(frozenset[str]().union(*decisive_columns))
    return [
        search.schema.field(name)
        for name in wanted
        if name in search.schema.names and _is_plain(search.schema.field(name).type)
    ]


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether the metadata table may have bounds of columns of a type."""
    return not pa.types.is_nested(kind) and not pa.types.is_binary(kind)
