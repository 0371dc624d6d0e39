"""Compares the partition `files` of the metadata table with the files in the table's folders."""

from __future__ import annotations

from collections.abc import Mapping

from ...storage.base import join, split
from ...table.files.file_group import DataFile, log_file
from ...table.metadata.kinds import FILES
from ...table.metadata.record_keys import PARTITIONS, key_of_partition
from .check_catalogue import (
    METADATA_FILE_EXTRA,
    METADATA_FILE_MISSING,
    METADATA_FILE_SIZE,
    METADATA_PARTITION_MISSING,
)
from .finding import Check
from .metadata_subject import MetadataSubject

Listing = Mapping[str, Mapping[str, int]]


def check_files_of_metadata(judged: MetadataSubject) -> None:
    """Look for files and partitions that are in the metadata table alone or in the store alone, and for wrong sizes.

    It is no finding if the list of partitions has a partition that is gone, without a file or a record: Apache Hudi
    leaves such partitions there.
    """
    listing = _listing(judged)
    listed_partitions = listing.get(PARTITIONS, {})
    in_folders: dict[str, dict[str, DataFile]] = {path: {} for path in judged.subject.folders.partitions}
    for path, file in judged.listed.items():  # O(files)
        in_folders[split(path)[0]][path] = file
    for partition, files in in_folders.items():
        _check_partition(judged, partition, files, listing.get(key_of_partition(partition), {}))
        needed = [path for path, file in files.items() if _is_needed(judged, file)]
        if needed and not {partition, key_of_partition(partition)} & listed_partitions.keys():
            what = f"The list of partitions in the metadata table lacks {partition!r}, where {needed[0]} is."
            judged.subject.findings.add(METADATA_PARTITION_MISSING, what, file=partition)
    folders = {key_of_partition(partition) for partition in in_folders}
    # What remains are records of partitions whose folders are gone; every file that they list is extra.
    for key, sizes in listing.items():
        if key not in {*folders, PARTITIONS}:
            _check_partition(judged, "" if key == key_of_partition("") else key, {}, sizes)


def _listing(judged: MetadataSubject) -> Listing:
    """Return the sizes of the files that the metadata table lists, by the keys of its records."""
    sizes_by_key: dict[str, Mapping[str, int]] = {}
    for records in judged.entries(judged.metadata.partition(FILES)):
        keys = records.field("key").to_pylist()  # O(partitions)
        for key, files in zip(keys, records.field("filesystemMetadata"), strict=True):
            sizes_by_key[key] = {name: info["size"] for name, info in files.as_py() or ()}  # O(files)
    return sizes_by_key


def _check_partition(
    judged: MetadataSubject, partition: str, files: Mapping[str, DataFile], sizes: Mapping[str, int]
) -> None:
    """Compare the listed sizes of a partition's files with its files; report extra, missing and differing files.

    A file that a pending clean deletes, or that a writer removed since the listing, is no finding.
    """
    size_by_path = {join(partition, name): size for name, size in sizes.items()}
    for path, size in size_by_path.items():
        file = files.get(path)
        if file is None and not _may_be_gone(judged, path) and not judged.subject.storage.exists(path):
            _add(judged, METADATA_FILE_EXTRA, path, "lists it, and it is not there")
        elif file is not None and _is_foreign(judged, file):
            _add(judged, METADATA_FILE_EXTRA, path, "lists it, and no completed write made it")
        elif file is not None and file.size != size and not _is_replaced_by_other(judged, file, size):
            _add(judged, METADATA_FILE_SIZE, path, f"says {size} bytes, and it has {file.size}")
    for path, file in files.items():
        if path not in size_by_path and _is_needed(judged, file) and judged.subject.storage.exists(path):
            _add(judged, METADATA_FILE_MISSING, path, f"does not list it, which the write {_maker(judged, path)} made")


def _may_be_gone(judged: MetadataSubject, path: str) -> bool:
    """Return whether a listed file may be missing: a pending clean deletes it, or `check_files` reports its loss."""
    return path in judged.absent or path in judged.leaving


def _add(judged: MetadataSubject, check: Check, path: str, what: str) -> None:
    """Report something about a file that the metadata table lists, or should list."""
    maker = _maker(judged, path) if path in judged.makers else ""
    judged.subject.findings.add(check, f"{path}: the metadata table {what}.", file=path, instant=maker)


def _maker(judged: MetadataSubject, path: str) -> str:
    """Return the requested time of the youngest instant that wrote a file; empty if none did."""
    return max(judged.makers[path], default="")


def _is_foreign(judged: MetadataSubject, file: DataFile) -> bool:
    """Return whether an instant made the file that did not complete."""
    subject = judged.subject
    if all(subject.is_complete(time) or subject.timeline.is_committed(time) for time in judged.makers[file.path]):
        return False
    # A log file of version 6 stays in its slice after a rollback: a command in a later file takes its blocks back.
    return not (subject.table.config.has_old_log_names and log_file(file.path) and subject.view().shows(file))


def _is_needed(judged: MetadataSubject, file: DataFile) -> bool:
    """Return whether completed writes made a file and name it; `check_files` reports a file that they do not name.

    If the body of a write was not read, the write may name the file, which counts as needed.
    """
    subject, makers = judged.subject, judged.makers[file.path]
    if not makers or not all(map(subject.is_complete, makers)):
        return False
    unread = any(
        time in subject.statements.unparsable or (subject.is_archived(time) and not subject.deep) for time in makers
    )
    return unread or file.path in subject.statements.files


def _is_replaced_by_other(judged: MetadataSubject, file: DataFile, size: int) -> bool:
    """Return whether a file is another than its write made, which `check_files` reports."""
    stated_file = judged.subject.statements.files.get(file.path)
    return stated_file is not None and stated_file.size == size
