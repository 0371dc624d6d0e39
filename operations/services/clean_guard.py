"""Checks a clean's pending plan against the table as it is now, before this process carries the plan out.

Any engine may have written the plan, and it may be old. A file that it names may be part of its file group's newest
slice again after a rollback, or a later savepoint may keep it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import CorruptInstantError
from ...storage.base import Storage, join, split
from ...storage.local import local_path
from ...storage.threads import for_each
from ...table.files.file_group import file_id_and_time
from ...table.files.marked_files import parse_data_file
from ...table.files.read_written import read_replaced
from ...table.files.view import FileView
from ...timeline.instants import Instant
from ...timeline.timeline import Timeline
from ..meeting.concurrency import CLEAN, SAVEPOINT, Asked, Known, Meeting, Shared, Verdict, judge
from .clean_plan import CleanPlan
from .clean_scope import savepoint_times

if TYPE_CHECKING:
    from ...timeline.metadata.models import CleanerPlan

# Three schemes of the same store.
_S3 = frozenset({"s3", "s3a", "s3n"})


@dataclass(frozen=True, slots=True)
class PendingClean:
    """A clean that is pending on a timeline; its plan may be another engine's."""

    timeline: Timeline
    instant: Instant

    def plan(self, savepoints: Mapping[str, frozenset[str]]) -> CleanPlan | None:
        """Return what the clean deletes; None if it is no longer pending.

        `savepoints` has the names of the files that each completed savepoint keeps, by its time.
        """
        from ...timeline.metadata.models import CleanerPlan  # noqa: PLC0415 (see timeline/instant_files.py)

        cleaner_plan = self.timeline.files.read_clean(self.instant)
        if not isinstance(cleaner_plan, CleanerPlan):
            if all(instant.identity != self.instant.identity for instant in self.timeline.reload().pending):
                return None
            raise self._corrupt_plan("has an empty plan or none, so that no process can carry it out")
        paths_by_partition: dict[str, list[str]] = {}
        for partition, path in self._named_files(cleaner_plan):
            paths_by_partition.setdefault(partition, []).append(path)
        sizes = self._sizes(paths_by_partition)
        meeting = Meeting(CLEAN, SAVEPOINT, Known.COMPLETED, frozenset({Shared.FILES}), Asked.SINCE_PLAN)
        keeps_saved = judge(meeting) is Verdict.GIVE_WAY
        savepoint_by_name = {name: time for time, names in savepoints.items() for name in names if keeps_saved}
        spared = {
            partition: [path for path in paths if split(path)[1] in savepoint_by_name]
            for partition, paths in paths_by_partition.items()
        }
        keeping_times = {savepoint_by_name[split(path)[1]] for paths in spared.values() for path in paths}
        files = {
            partition: tuple(path for path in paths if path not in spared[partition])
            for partition, paths in paths_by_partition.items()
        }
        retained = cleaner_plan.earliest_instant_to_retain
        return CleanPlan(
            policy=cleaner_plan.policy,
            earliest=None if retained is None else (retained.timestamp, retained.action, retained.state),
            last_completed=cleaner_plan.last_completed_commit_timestamp,
            files=files,
            # If a savepoint named here is deleted later, the next clean looks at all partitions.
            savepoints=tuple(sorted({*savepoint_times(cleaner_plan.extra_metadata), *keeping_times})),
            bytes=sum(sizes.get(path, 0) for paths in files.values() for path in paths),
            spared={partition: tuple(paths) for partition, paths in spared.items() if paths},
        )

    def _named_files(self, plan: CleanerPlan) -> Iterator[tuple[str, str]]:
        """Yield the partition and the path of each file that a plan names, in both forms that plans have."""
        # Old plans have names of files, new plans their URIs.
        for partition, names in (plan.files_to_be_deleted_per_partition or {}).items():
            for name in names:
                yield partition, self._checked_path(partition, join(partition, split(name)[1]), name)
        for partition, files in (plan.file_paths_to_be_deleted_per_partition or {}).items():
            for file in files:
                uri = file.file_path or ""
                path = None if file.is_bootstrap_base_file else path_inside(self.timeline.storage, uri)
                yield partition, self._checked_path(partition, path, uri)

    def _checked_path(self, partition: str, path: str | None, uri: str) -> str:
        """Return the path; raise `CorruptInstantError` if it is no data file of the partition."""
        if path is None or split(path)[0] != partition or parse_data_file(path) is None:
            folder_in_words = f"the partition {partition!r}" if partition else "the table's root"
            raise self._corrupt_plan(
                f"names {uri!r}, which is no data file of this table in {folder_in_words}",
                other_root=_root_in(uri, partition) if path is None else "",
            )
        return path

    def _sizes(self, paths_by_partition: Mapping[str, list[str]]) -> dict[str, int]:
        """Return the sizes of all files in the plan's partitions, by path.

        Raise `CorruptInstantError` for a plan that names a file of the newest slice of its file group.
        """
        listings = dict(
            zip(
                paths_by_partition,
                map(tuple, for_each(self.timeline.storage, self.timeline.storage.list, paths_by_partition)),
                strict=True,
            )
        )
        view = FileView(self.timeline, read_replaced(self.timeline), listings)
        for partition, paths in paths_by_partition.items():
            # Change data, which a write puts beside its files, is kept with them.
            newest_files = {
                file_id_and_time(file) for group in view.groups(partition).values() for file in group.newest.data_files
            }
            for path in paths:
                file = parse_data_file(path)
                if file is not None and file_id_and_time(file) in newest_files:
                    raise self._corrupt_plan(
                        f"names {path} of the newest slice of its file group, which the table needs"
                    )
        return {info.path: info.size for listing in listings.values() for info in listing}

    def _corrupt_plan(self, what: str, *, other_root: str = "") -> CorruptInstantError:
        """Return the error for a plan that must not be carried out, with the reason `what`.

        `other_root` is the root of the table whose files the plan names: perhaps another path to this table, such as a
        link or another mount; empty if the plan names files of this table's path, or none of a table.
        """
        by_other_path = (
            f"If {other_root} is another path to this table, clean the table at that path. Otherwise find"
            if other_root
            else "Find"
        )
        return CorruptInstantError(
            f"The pending clean {self.instant.requested_time} of the table {self.timeline.storage.path} {what}. "
            "Nothing was deleted.",
            f"{by_other_path} out which process made the plan; if none is at work on it, remove the files "
            f"{self.instant.requested_time}.clean.* from the timeline folder, and clean again.",
        )


def path_inside(storage: Storage, uri: str) -> str | None:
    """Return the path of a URI below the table's root, for any spelling of its scheme; None if it is outside."""
    root, path = _comparable_uri(storage.uri("")).rstrip("/"), _comparable_uri(uri)
    return path[len(root) + 1 :] if path.startswith(f"{root}/") else None


def _root_in(uri: str, partition: str) -> str:
    """Return the root of the table in which a URI is that of a data file in a partition; empty if it is none there."""
    path = join(partition, split(uri)[1])
    return "" if parse_data_file(path) is None or not uri.endswith(f"/{path}") else uri.removesuffix(f"/{path}")


def _comparable_uri(uri: str) -> str:
    """Return a URI in the form in which URIs of the same file are equal: a local path, or a URI with the scheme s3."""
    scheme, separator, rest = uri.partition("://")
    if separator and scheme in _S3:
        return f"s3://{rest}"
    return local_path(uri)
