"""A table whose timeline and partitions are listed once, for a query about its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ...storage.base import FileInfo, Storage
from ...table.buckets.numbers import BucketNumbers, bucket_numbers, rule_files
from ...table.config import check_supported
from ...table.config.property_keys import BUCKET
from ...table.files.file_group import FileSlice
from ...table.files.names import bucket_by_name
from ...table.files.partitions import walk_partitions
from ...table.files.read_written import read_replaced
from ...table.files.view import FileView
from ...table.inferred.index import index_of_table, is_unnoted
from ...table.table import Table, open_table
from ...timeline.timeline import Timeline


@dataclass(frozen=True)
class WalkedTable:
    """One listing of the timeline, and after it one of each partition.

    It opens only those completed writes that replaced file groups, so that many active instants cost no request each.
    Therefore `FileView.lost` finds no missing file.
    """

    table: Table
    timeline: Timeline
    listings: Mapping[str, tuple[FileInfo, ...]]

    @classmethod
    def now(cls, storage: Storage) -> WalkedTable:
        """Open the table at a store's root and list it; raises `TableError` if pyhudi cannot read it."""
        table = open_table(storage)
        check_supported(table.config, storage.path, writing=False)
        timeline = table.timeline()
        return cls(table, timeline, walk_partitions(storage))

    @cached_property
    def view(self) -> FileView:
        """The file slices that readers see, from the listing."""
        return FileView(self.timeline, read_replaced(self.timeline), self.listings)

    @cached_property
    def replaced_since(self) -> Mapping[tuple[str, str], str]:
        """The time since which each replaced file group is replaced, by partition path and file id: the earliest."""
        groups_by_write = read_replaced(self.timeline).replaced_by
        return {
            group: write.visible_since
            for write in sorted(groups_by_write, key=lambda write: write.visible_since, reverse=True)
            for group in groups_by_write[write]
        }

    @property
    def partitions(self) -> list[str]:
        """The partition paths, in order."""
        return sorted(self.listings)

    @cached_property
    def slices_by_partition(self) -> Mapping[str, Mapping[str, FileSlice]]:
        """The newest file slices by partition path and file id, both in order."""
        return {path: dict(sorted(self.view.slices(path).items())) for path in self.partitions}

    @cached_property
    def slices(self) -> tuple[FileSlice, ...]:
        """The newest file slices, by partition path and file id."""
        return tuple(file_slice for slices in self.slices_by_partition.values() for file_slice in slices.values())

    @cached_property
    def index(self) -> str | None:
        """The index that the properties name, or that file groups show; None if these contradict each other."""
        config = self.table.config
        if not is_unnoted(config):
            return config.index_type
        return index_of_table(self.table, self.view, self.partitions).kind

    @cached_property
    def numbers(self) -> BucketNumbers | None:
        """How many buckets each partition has; None for a table without a bucket index.

        A table that notes no index has numbers if rule files state them.
        """
        config = self.table.config
        ruled = is_unnoted(config) and bool(rule_files(self.table))
        return bucket_numbers(self.table, self.timeline) if config.has_buckets or ruled else None

    def bucket_of(self, file_id: str) -> int | None:
        """Return the bucket of a file group; None for a table without a bucket index."""
        return bucket_by_name(file_id) if self.index == BUCKET else None
