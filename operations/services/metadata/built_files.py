"""Builds the records of `files`: each partition of the table with its data files, as of a moment.

Source: ``HoodieBackedTableMetadataWriter.initializeFilesPartition``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ....storage.base import split
from ....table.files.file_group import data_file
from ....table.files.logs.avro_bytes import Integers
from ....table.files.partitions import walk_partitions
from ....table.files.view import FileView
from ....table.files.written import Written
from ....table.metadata.encoding import Records, joined, record_of_partitions, records_of_files
from ....table.seen_table import SeenTable


@dataclass(frozen=True, slots=True)
class CommittedFiles:
    """The data files of all instants that were complete at a moment, one row each; also those of replaced groups."""

    partitions: pa.StringArray
    names: pa.StringArray
    sizes: Integers

    def __len__(self) -> int:
        return len(self.names)


def committed_files(seen: SeenTable) -> CommittedFiles:
    """List the data files of all partitions."""
    view = FileView(seen.timeline, Written())
    rows = [
        (partition, split(info.path)[1], info.size)
        for partition, listed in sorted(walk_partitions(seen.storage).items())
        for info in listed
        if (file := data_file(info.path, info.size)) is not None and view.shows(file)
    ]
    partitions, names, sizes = ([row[at] for row in rows] for at in range(3))
    return CommittedFiles(
        pa.array(partitions, pa.string()), pa.array(names, pa.string()), np.array(sizes, dtype=np.int64)
    )


def files_records(files: CommittedFiles, schema: str) -> Records:
    """Return the record that lists all partitions, and one record of each partition with its files."""
    partitions = files.partitions.unique()
    every = record_of_partitions(partitions, np.zeros(len(partitions), dtype=np.bool_), schema)
    if not len(files):
        return every
    live = np.zeros(len(files), dtype=np.bool_)
    return joined([every, records_of_files(files.partitions, files.names, files.sizes, live, schema)])
