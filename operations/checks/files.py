"""Compares data files with the instants that made them and that name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...storage.base import FileInfo, join, split
from ...storage.bounds import MOST_OF_A_NOTE
from ...storage.threads import for_each
from ...table.buckets.recorded_by_hudi import recorded_hashing
from ...table.files.cleaned import deleted_by
from ...table.files.file_group import FileGroup, LogFile, base_file, data_file
from ...table.files.log_names import log_names
from ...table.files.logs.log_blocks import BlockType
from ...table.files.logs.log_file import read_blocks
from ...table.files.partitions import METAFILE, metafile_of, parse_partition_metafile
from ...table.inferred.index import mixture
from ...timeline.instants import State
from .bodies import read_archived_statements, undone_instants
from .check_catalogue import (
    BUCKET_TWICE,
    BUCKETS_UNKNOWN,
    CLEANED_LIVE_FILE,
    INDEX_UNCLEAR,
    LINK,
    LOG_SIZE,
    LOST_FILE,
    METAFILE_CORRUPT,
    NESTED_PARTITION,
    NO_BUCKET,
    NO_METAFILE,
    NOT_CHECKED,
    ORPHAN,
    ORPHAN_SHOWN,
    OTHER_BUCKETS,
    REPLACED_SHOWN,
    RESCALE_UNDONE,
    ROLLED_BACK_FILE,
    SIZE_MISMATCH,
    STRANGE_FILE,
    TORN_INSTANT,
    UNNAMED_FILE,
)
from .finding import Check
from .subject import Subject
from .undone_rescales import undone_rescales

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
    """Report a partition metafile that does not parse, or states another depth than the folder has."""
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


def check_files(subject: Subject) -> None:
    """Look for missing files, for files that no writer should have left, and for files that differ from their write."""
    replacements = [instant for instant in subject.archived if instant.action == "replacecommit"]
    on_timeline = {instant.identity for instant in subject.timeline.instants}
    writes = [instant for instant in subject.archived if instant.is_write and instant.identity not in on_timeline]
    times = {subject.maker(info.path) for info in _data_files(subject)}
    # A check that is not deep reads only archived writes that replaced file groups, or whose files are there.
    read_archived_statements(
        subject, [write for write in writes if subject.deep or write.replaces or write.requested_time in times]
    )
    replaced_by_archived = _replaced_by_archived(subject, {instant.requested_time for instant in replacements})
    undone_by = {time: instant.requested_time for time, instant in undone_instants(subject).items()}
    for info in _data_files(subject):
        _check_file(subject, info, undone_by, replaced_by_archived)
    with subject.findings.turning(NOT_CHECKED):
        _check_lost(subject)
    with subject.findings.turning(NOT_CHECKED):
        _check_buckets(subject)


def _data_files(subject: Subject) -> Iterator[FileInfo]:
    """Yield the data files of all folders, of change data too; folders that are no partitions included."""
    folders = subject.folders
    return (
        info
        for files in (*folders.partitions.values(), *folders.plain.values())
        for info in files
        if data_file(info.path, changes=True) is not None
    )


@dataclass(frozen=True, slots=True)
class _Replaced:
    """File groups that archived replacecommits replaced: the replacecommit's time, by partition and file id."""

    times: Mapping[tuple[str, str], str]

    def by(self, info: FileInfo, made_by: str) -> str | None:
        """Return the time of the replacecommit that replaced a file; None if none did.

        ``made_by`` is the requested time of the write that made the file: an earlier replacecommit did not replace it.
        """
        file = data_file(info.path, changes=True)
        time = None if file is None else self.times.get((split(info.path)[0], file.file_id))
        return time if time is not None and made_by < time else None


def _replaced_by_archived(subject: Subject, archived: set[str]) -> _Replaced:
    """Return the file groups that only archived replacecommits replaced: readers see them again."""
    active = {instant.requested_time for instant in subject.timeline.writes}
    replaced_groups: dict[tuple[str, str], str] = {}
    for instant, groups in subject.statements.written.replaced_by.items():
        if instant.requested_time in archived and instant.requested_time not in active:
            replaced_groups |= dict.fromkeys(groups, instant.requested_time)
    return _Replaced(replaced_groups)


def _check_file(
    subject: Subject, info: FileInfo, undone_by: Mapping[str, str], replaced_by_archived: _Replaced
) -> None:
    """Report a file that should not exist, that its write does not name, or that differs from what its write states.

    It should not exist if its instant was undone, never completed or is unknown, or if an archived write replaced its
    file group. Files of pending writes are no finding; damaged log files and a lost archive are reported elsewhere.
    ``info`` is the file's path and size in the listing. ``undone_by`` has the time of the rollback or restore that
    undid an instant, by that instant's time, and ``replaced_by_archived`` the file groups that archived writes
    replaced.
    """
    time, statements = subject.maker(info.path), subject.statements
    instant = subject.timeline.find(time)
    if instant is not None and instant.is_write and instant.state != State.COMPLETED:
        return
    replaced_by = replaced_by_archived.by(info, time)
    if subject.is_complete(time):
        stated_file = statements.files.get(info.path)
        knows_files = time not in statements.unparsable and (subject.deep or not subject.is_archived(time))
        if replaced_by is not None:
            _report_if_there(
                subject,
                REPLACED_SHOWN,
                info,
                f"still exists, though the archived replacecommit {replaced_by} replaced its file group",
            )
        elif stated_file is None and knows_files:
            _report_if_there(subject, UNNAMED_FILE, info, f"is not among the files that the write {time} names")
        elif stated_file is not None and stated_file.log is not None and not stated_file.log.allows_size(info.size):
            pass  # `check_logs` reports a damaged log file.
        elif (
            stated_file is not None
            and stated_file.log is not None
            and info.size > stated_file.size
            and _may_append(subject)
        ):
            pass  # A later instant appended to the file.
        elif stated_file is not None and stated_file.size and stated_file.size != info.size:
            check = LOG_SIZE if base_file(info.path) is None else SIZE_MISMATCH
            _report_if_there(
                subject, check, info, f"has {info.size} bytes, and the write {time} says {stated_file.size}"
            )
    elif _is_left_by_an_undo(subject, info, time in undone_by):
        pass  # Readers pass over its blocks.
    elif time in undone_by:
        _report_if_there(
            subject, ROLLED_BACK_FILE, info, f"still exists, though {undone_by[time]} undid its instant {time}"
        )
    elif subject.timeline.is_committed(time) and subject.lost_archive:
        pass  # `check_lost_archive` reports that its instant may have been archived.
    elif subject.timeline.is_committed(time):
        _report_if_there(subject, ORPHAN_SHOWN, info, f"is shown to readers, though its instant {time} never completed")
    else:
        _report_if_there(
            subject, ORPHAN, info, f"is of the instant {time}, which is neither on the timeline nor archived"
        )


def _is_left_by_an_undo(subject: Subject, info: FileInfo, is_undone: bool) -> bool:
    """Return whether a log file holds only commands, or blocks that a command took back.

    ``is_undone`` says whether a rollback or a restore undid the file's youngest instant. An undo leaves such files in
    table versions in which several instants append to one log file.
    """
    file = data_file(info.path)
    if not isinstance(file, LogFile) or not _may_append(subject):
        return False
    return is_undone or all(block.type == BlockType.COMMAND for block in read_blocks(subject.storage, file.path))


def _may_append(subject: Subject) -> bool:
    """Return whether several instants may append to one log file."""
    return not log_names(subject.timeline).says_maker


def _report_if_there(subject: Subject, check: Check, info: FileInfo, what: str) -> None:
    """Report a file if it still exists: a writer may have rolled it back since the listing."""
    if subject.storage.exists(info.path):
        subject.findings.add(check, f"{info.path} {what}.", file=info.path, instant=subject.maker(info.path))


def _check_lost(subject: Subject) -> None:
    """Report the files of newest slices that are gone, with whether a clean took them."""
    view = subject.view()
    lost_files = [file for partition in view.named_partitions() for file in view.lost(partition)]
    lost_files = [file for file in lost_files if not subject.storage.exists(file.path)]
    cleaned = _cleaned_paths(subject) if lost_files else frozenset()
    for file in lost_files:
        made_by = subject.maker(file.path)
        if not subject.is_complete(made_by):
            continue
        by_clean = file.path in cleaned
        what = "and a clean took it" if by_clean else "and nothing has replaced it"
        subject.findings.add(
            CLEANED_LIVE_FILE if by_clean else LOST_FILE,
            f"{file.path} is gone, which the write {made_by} made, {what}.",
            file=file.path,
            instant=made_by,
        )


def _cleaned_paths(subject: Subject) -> frozenset[str]:
    """Return the paths of the files that cleans on the timeline took."""
    cleaned_paths: set[str] = set()
    for instant in subject.timeline.instants:
        if instant.action == "clean":
            with subject.turning(TORN_INSTANT, instant):
                clean = subject.timeline.files.read_clean(instant)
                cleaned_paths |= (
                    {join(partition, split(name)[1]) for partition, names in deleted_by(clean) for name in names}
                    if clean
                    else set()
                )
    return frozenset(cleaned_paths)


def _check_buckets(subject: Subject) -> None:
    """Report buckets with two file groups, file groups without a bucket, and why numbers or the index are in doubt.

    The doubts come from consistent hashing that Apache Hudi recorded, from rescales that it undid, from rule files that
    cannot be used, and from file groups of both kinds in a table that names no index.
    """
    path = None if subject.inferred_index is not None else recorded_hashing(subject.storage)
    if path is not None:
        what = f"The table notes the index {subject.config.index_type}, and {path} shows consistent hashing."
        subject.findings.add(OTHER_BUCKETS, what, file=path)
    numbers, undone = subject.numbers, undone_rescales(subject)
    for rescale in undone:
        subject.findings.add(RESCALE_UNDONE, rescale.what, file=rescale.file.path, instant=rescale.file.instant_time)
    if numbers is not None and numbers.unknown and not undone:
        subject.findings.add(BUCKETS_UNKNOWN, numbers.unknown)
    if subject.inferred_index is not None and subject.inferred_index.mixture:
        subject.findings.add(INDEX_UNCLEAR, f"The table {mixture(subject.inferred_index)}.")
    index = subject.computed_index
    if index is None:
        return
    group_of_bucket: dict[tuple[str, int], FileGroup] = {}
    for group in subject.live:
        number, file = index.number_of(group.id), group.newest.data_files[0]
        count = index.count_of(group.id.partition_path)
        if number is None or (count is not None and number >= count):
            what = f"The file group {group.id.file_id} is of no bucket among {count}."
            subject.tell(NO_BUCKET, file, what)
            continue
        other = group_of_bucket.setdefault((group.id.partition_path, number), group)
        if other is not group:
            what = (
                f"The bucket {number} of the partition {group.id.partition_path!r} has the file groups "
                f"{other.id.file_id} and {group.id.file_id}."
            )
            subject.tell(BUCKET_TWICE, file, what)
