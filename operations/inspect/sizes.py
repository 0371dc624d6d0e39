"""The bytes of each file group: live bytes, which readers see, dead bytes, and bytes of unfinished writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ...storage.base import Storage
from ...table.files.file_group import data_file, file_id_and_time, is_change_data
from .described_columns import COUNT, TEXT, DescribedColumn, DescribedRows
from .walked_table import WalkedTable

SIZES = DescribedRows(
    "sizes",
    "A row for each file group that has files, by partition and file group.",
    (
        DescribedColumn("partition", TEXT, "Path of the partition below the table's path; empty without.", False),
        DescribedColumn("file_id", TEXT, "Id of the file group.", False),
        DescribedColumn("bucket", pa.int32(), "Number of the bucket; null for a table without a bucket index."),
        DescribedColumn("live_files", COUNT, "Files of the newest slice, which a snapshot reads.", False),
        DescribedColumn("live_bytes", COUNT, "Their size.", False),
        DescribedColumn(
            "dead_files",
            COUNT,
            "Files of older slices, and all of a replaced file group, until a clean takes them.",
            False,
        ),
        DescribedColumn("dead_bytes", COUNT, "Their size.", False),
        DescribedColumn("unfinished_files", COUNT, "Files of writes that are not completed.", False),
        DescribedColumn("unfinished_bytes", COUNT, "Their size.", False),
    ),
)


@dataclass(slots=True)
class LiveAndDead:
    """How many files and bytes of one file group are live, dead and unfinished."""

    partition_path: str
    file_id: str
    live_files: int = 0
    live_bytes: int = 0
    dead_files: int = 0
    dead_bytes: int = 0
    unfinished_files: int = 0
    unfinished_bytes: int = 0

    def add(self, kind: str, size: int) -> None:
        """Count a file of a kind: ``live``, ``dead`` or ``unfinished``."""
        setattr(self, f"{kind}_files", getattr(self, f"{kind}_files") + 1)
        setattr(self, f"{kind}_bytes", getattr(self, f"{kind}_bytes") + size)


def sizes(storage: Storage) -> pa.Table:
    """Return one row for each file group, with columns as in `SIZES`; partitions are listed, and no file is opened."""
    walked = WalkedTable.now(storage)
    return SIZES.table(
        (
            group.partition_path,
            group.file_id,
            walked.bucket_of(group.file_id),
            group.live_files,
            group.live_bytes,
            group.dead_files,
            group.dead_bytes,
            group.unfinished_files,
            group.unfinished_bytes,
        )
        for group in sizes_of_groups(walked)
    )


def sizes_of_groups(walked: WalkedTable) -> Iterator[LiveAndDead]:
    """Yield the sizes of each file group, by partition path and file id."""
    for path in walked.partitions:
        live = {file.path: file for group in walked.slices_by_partition[path].values() for file in group.data_files}
        # Change data belongs to the slice whose files it lies beside.
        written = {file_id_and_time(file) for file in live.values()}
        by_file_id: dict[str, LiveAndDead] = {}
        for info in walked.listings[path]:
            file = live.get(info.path) or data_file(info.path, changes=True)
            if file is None:
                continue
            if info.path in live or (is_change_data(file) and file_id_and_time(file) in written):
                kind = "live"
            else:
                kind = "dead" if walked.view.shows(file) else "unfinished"
            by_file_id.setdefault(file.file_id, LiveAndDead(path, file.file_id)).add(kind, info.size)
        yield from (by_file_id[file_id] for file_id in sorted(by_file_id))
