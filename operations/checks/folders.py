"""A table's folders: which are partitions, and which files do not belong into them."""

from __future__ import annotations

from ...storage.base import split
from ...storage.bounds import MOST_OF_A_NOTE
from ...storage.parallel import for_each
from ...table.files.file_group import data_file
from ...table.files.partitions import METAFILE, metafile_of, parse_partition_metafile
from .check_catalogue import LINK, METAFILE_CORRUPT, NESTED_PARTITION, NO_METAFILE, STRANGE_FILE
from .subject import Subject

# Apache Hudi can write a metafile as a base file.
_METAFILES = (METAFILE, f"{METAFILE}.parquet", f"{METAFILE}.orc")


def check_folders(subject: Subject) -> None:
    """Look for data files outside of partitions, for nested partitions, and for files that are no data files."""
    findings, folders = subject.findings, subject.folders
    for link in folders.links:
        findings.add(LINK, f"{link} is a symbolic link.", file=link)
    for inner, outer in sorted(folders.nested.items()):
        findings.add(
            NESTED_PARTITION, f"The partition {inner!r} lies inside the partition {outer!r}.", file=metafile_of(outer)
        )
    for folder, files in sorted(folders.plain.items()):
        shown = [info for info in files if subject.is_complete(subject.maker(info.path))]
        if shown:
            findings.add(
                NO_METAFILE,
                f"The folder {folder!r} has {len(shown)} data files of completed writes and no {METAFILE}.",
                file=folder,
            )
    for files in folders.partitions.values():
        for info in files:
            if split(info.path)[1] not in _METAFILES and data_file(info.path, changes=True) is None:
                findings.add(STRANGE_FILE, f"{info.path} is no data file by its name.", file=info.path)
    for_each(subject.storage, lambda partition: _check_metafile(subject, partition), folders.partitions)


def _check_metafile(subject: Subject, partition: str) -> None:
    path = metafile_of(partition)
    with subject.findings.turning(METAFILE_CORRUPT, file=path):
        metafile = parse_partition_metafile(subject.storage.read(path, MOST_OF_A_NOTE), path)
        depth = len(partition.split("/")) if partition else 0
        if metafile.depth != depth:
            subject.findings.add(
                METAFILE_CORRUPT,
                f"{path} says that it lies {metafile.depth} folders deep; it lies {depth} deep.",
                file=path,
            )
