"""Base and log files that cleans took away, or are about to, after the moment that a reader wants to see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...storage.base import join
from ...storage.threads import for_each
from ...timeline.instants import Instant
from ...timeline.metadata.models import CleanerPlan, CleanMetadata
from ...timeline.timeline import Timeline
from .file_group import DataFile, data_file

Clean = CleanMetadata | CleanerPlan


def read_cleans(now: Timeline, time: str) -> list[tuple[Instant, Clean]]:
    """Return the completed and pending cleans requested after a time: no earlier clean takes what that moment shows."""
    later_cleans = [instant for instant in now.instants if instant.action == "clean" and instant.requested_time > time]
    cleans = for_each(now.storage, now.files.read_clean, later_cleans)
    return [(instant, clean) for instant, clean in zip(later_cleans, cleans, strict=True) if clean is not None]


def names_cleaned(now: Timeline) -> frozenset[str]:
    """Return the names of the files that any completed or pending clean of the timeline deletes."""
    return frozenset(
        name.rpartition("/")[2] for _, clean in read_cleans(now, "") for _, names in deleted_by(clean) for name in names
    )


def cleaned_since(
    cleans: Iterable[tuple[Instant, Clean]], now: Timeline, moment: Timeline, time: str
) -> Mapping[str, tuple[DataFile, ...]]:
    """Return by partition path the files that a reader of ``moment``, the timeline at ``time``, may miss."""
    later_cleans = ((instant, clean) for instant, clean in cleans if instant.requested_time > time)
    return files_of(clean for _, clean in later_cleans if not _keeps(clean, now, moment))


def files_of(cleans: Iterable[Clean]) -> Mapping[str, tuple[DataFile, ...]]:
    """Return by partition path the data files that cleans delete."""
    files_by_partition: dict[str, list[DataFile]] = {}
    for clean in cleans:
        for partition, names in deleted_by(clean):
            files_by_partition.setdefault(partition, []).extend(_data_files(partition, names))
    return {partition: tuple(files) for partition, files in files_by_partition.items()}


def _keeps(clean: Clean, now: Timeline, moment: Timeline) -> bool:
    """Return whether a clean kept every slice that the moment shows, going by the instant from which it kept them.

    It did if the moment shows all writes up to that instant. A clean that does not go by writes may have taken any
    slice.
    """
    earliest = earliest_kept(clean)
    if not earliest:
        return False
    shown_times = {instant.requested_time for instant in moment.writes}
    return all(instant.requested_time in shown_times for instant in now.writes if instant.requested_time <= earliest)


def earliest_kept(clean: Clean) -> str:
    """Return the requested time of the first write whose slices a clean keeps; "" if it does not go by writes."""
    if isinstance(clean, CleanMetadata):
        return clean.earliest_commit_to_retain
    retained = clean.earliest_instant_to_retain
    return retained.timestamp if retained else ""


def deleted_by(clean: Clean) -> Iterator[tuple[str, list[str]]]:
    """Yield each partition path with the names of the files that a clean deletes there."""
    if isinstance(clean, CleanMetadata):
        for partition, part in clean.partition_metadata.items():
            yield partition, part.success_delete_files
        return
    for partition, files in (clean.file_paths_to_be_deleted_per_partition or {}).items():
        yield partition, [file.file_path.rpartition("/")[2] for file in files if file.file_path]


def _data_files(partition: str, names: list[str]) -> Iterator[DataFile]:
    files = (data_file(join(partition, name.rpartition("/")[2])) for name in names)
    return (file for file in files if file is not None)
