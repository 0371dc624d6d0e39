"""What the undo of an instant does to its data files, and what plans and bodies of rollbacks say of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from ...storage.base import Storage, join, split

if TYPE_CHECKING:
    from ...timeline.metadata.models import RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest


class Undo(Protocol):
    """A way to undo for each way of naming log files; a path is relative to the table's root."""

    def take_back(self, storage: Storage, left_files: Mapping[str, Iterable[str]]) -> None:
        """Make sure that what instants left in files, given by requested time, never counts; safe to call twice."""

    def adds_files(self, instant_time: str, paths: Iterable[str]) -> bool:
        """Return whether the undo of an instant may add files to a table, given the files that it left."""

    def requests(self, storage: Storage, paths: Iterable[str]) -> list[RollbackRequest]:
        """Return what a rollback's plan says of the files that have data of the undone instant."""

    def planned(self, plan: RollbackPlan) -> Iterator[str]:
        """Yield the paths of these files, whichever engine made the plan."""

    def results(self, plan: RollbackPlan) -> dict[str, RollbackPartition]:
        """Return what a completed rollback says of these files, by partition path."""

    def taken(self, rollback: RollbackMetadata) -> Iterator[str]:
        """Yield the paths of the files from which a completed rollback took data back."""


class DeletesFiles:
    """The way from table version 8 on: a log file has data of one instant alone."""

    def take_back(self, storage: Storage, left_files: Mapping[str, Iterable[str]]) -> None:
        storage.delete(*chain.from_iterable(left_files.values()))

    def adds_files(self, instant_time: str, paths: Iterable[str]) -> bool:
        return False

    def requests(self, storage: Storage, paths: Iterable[str]) -> list[RollbackRequest]:
        """Return a request to delete each file, as Apache Hudi makes it after a listing.

        ``paths`` are the files, relative to the table's root, that have data of the undone instant.
        """
        from ...timeline.metadata.models import RollbackRequest  # noqa: PLC0415 (see timeline/instant_files.py)

        return [
            RollbackRequest(
                partition_path=split(path)[0],
                file_id="",
                latest_base_instant="",
                # Apache Hudi writes absolute paths into rollbacks, without a scheme if they are local.
                files_to_be_deleted=[storage.uri(path).removeprefix("file://")],
                # Apache Hudi dies on null when it carries the plan out.
                log_blocks_to_be_deleted={},
            )
            for path in paths
        ]

    def planned(self, plan: RollbackPlan) -> Iterator[str]:
        for request in plan.rollback_requests:
            yield from (join(request.partition_path, split(file)[1]) for file in request.files_to_be_deleted)

    def results(self, plan: RollbackPlan) -> dict[str, RollbackPartition]:
        """Return the results for Apache Hudi's rollback: all files of the plan count as deleted."""
        from ...timeline.metadata.models import RollbackPartition  # noqa: PLC0415 (see timeline/instant_files.py)

        deleted: dict[str, list[str]] = {}
        for request in plan.rollback_requests:
            deleted.setdefault(request.partition_path, []).extend(request.files_to_be_deleted)
        return {
            path: RollbackPartition(
                partition_path=path,
                success_delete_files=files,
                rollback_log_files={},
                log_files_from_failed_commit={},
            )
            for path, files in deleted.items()
        }

    def taken(self, rollback: RollbackMetadata) -> Iterator[str]:
        for path, part in rollback.partition_metadata.items():
            yield from (join(path, split(file)[1]) for file in part.success_delete_files)
