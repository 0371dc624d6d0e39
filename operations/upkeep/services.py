"""The registry of table services: names, arguments, functions, and which follow a write or are part of a round.

Jobs, `run_inline` and `run_services` use these entries. A service is imported when it runs, so that a job can parse its
arguments before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from .metadata_services import (
    build_after_write,
    build_index,
    drop_index_of,
    keep_metadata,
    may_keep_metadata,
    metadata_after_write,
    metadata_due,
)
from .service_entry import AfterWrite, Argument, Call, Service

if TYPE_CHECKING:
    import pyarrow as pa

    from ...timeline.timeline import Timeline
    from ..result import ServiceResult
    from ..service_settings import CompactionSettings, LogCompactionSettings, Upkeep
    from ..version_change import VersionResult

VALIDATE = "validate"


def _clean(call: Call, *, retain: int | None = None, dry_run: bool = False, **how: Any) -> ServiceResult:
    """Clean the table; ``retain`` replaces the count of the policy, and ``how`` are further arguments of `clean`."""
    from ..services.clean import clean  # noqa: PLC0415

    return clean(call.storage, call.upkeep().clean.retaining(retain), dry_run=dry_run, **how)


def _archive(call: Call, *, keep: int | None = None, dry_run: bool = False, **how: Any) -> ServiceResult:
    """Archive old instants; ``keep`` replaces the number that stays, and ``how`` are further arguments of `archive`."""
    from ..services.archive import archive  # noqa: PLC0415

    upkeep = call.upkeep()
    # Instants that the metadata table still needs stay until it is merged.
    settings, merge = upkeep.archive.keeping(keep), partial(keep_metadata, call)
    return archive(call.storage, settings, upkeep.clean, dry_run=dry_run, merge_metadata=merge, **how)


def _archive_due(call: Call) -> ServiceResult:
    """Archive, and return the result, which names the pending instant before which the archiving stopped."""
    from ..services.archive import with_what_holds_it_up  # noqa: PLC0415

    return with_what_holds_it_up(_archive(call), call.storage, call.upkeep().archive)


# Returns from the settings of all services those of compactions, or those of log compactions.
_SettingsOf: TypeAlias = "Callable[[Upkeep], CompactionSettings | LogCompactionSettings]"


def _compact(settings_of: _SettingsOf, call: Call, *, dry_run: bool = False) -> ServiceResult:
    """Carry out pending compactions, then a new one; ``settings_of`` chooses compactions or log compactions."""
    from ..services.compaction.compact import compact  # noqa: PLC0415

    return compact(call.storage, settings_of(call.upkeep()), call.means(), dry_run=dry_run)


def _schedule(settings_of: _SettingsOf, call: Call, *, dry_run: bool = False) -> ServiceResult:
    """Plan a compaction for a later call; ``settings_of`` chooses compactions or log compactions."""
    from ..services.compaction.compact import schedule_compaction  # noqa: PLC0415

    return schedule_compaction(call.storage, settings_of(call.upkeep()), call.patience, dry_run=dry_run)


def _repair(
    call: Call,
    *,
    accept_loss: list[str] | None = None,
    undo: str | None = None,
    file_times: bool = False,
    dry_run: bool = False,
) -> ServiceResult:
    """Run the kind of repair that the arguments choose; without any, mend the whole table.

    ``call`` has the table and its settings. ``accept_loss`` names damaged log files to give up, ``undo`` is the time of
    a repair to take back, and ``file_times`` sets the times of instants' files. With ``dry_run`` the result says what
    the repair would do. Raises `OptionConflictError` if the arguments choose several kinds.
    """
    from ...errors import OptionConflictError  # noqa: PLC0415
    from ..services.compaction.repair import repair  # noqa: PLC0415
    from ..services.metadata.built_anew import with_metadata_built_anew  # noqa: PLC0415
    from ..services.repair.file_times import set_file_times  # noqa: PLC0415
    from ..services.repair.repair_table import repair_table  # noqa: PLC0415
    from ..services.repair.undo_repair import undo_repair  # noqa: PLC0415

    given_arguments = {"accept_loss": accept_loss is not None, "undo": undo is not None, "file_times": file_times}
    chosen = [name for name, is_given in given_arguments.items() if is_given]
    if len(chosen) > 1:
        raise OptionConflictError(
            f"A repair of the table {call.storage.path} was given both {' and '.join(chosen)}.",
            "Call repair once with each.",
        )
    if file_times:
        return set_file_times(call.storage, dry_run=dry_run)
    if accept_loss is not None:
        return repair(call.storage, accept_loss, call.means(), dry_run=dry_run)
    if undo is not None:
        return undo_repair(call.storage, undo, call.means(), dry_run=dry_run)
    return with_metadata_built_anew(
        call.storage, call.means, partial(repair_table, call.storage, call.means(), dry_run=dry_run)
    )


def _rescale(
    call: Call, *, n: int, partitions: list[str] | None = None, dry_run: bool = False, whole_table: bool = False
) -> ServiceResult:
    """Give partitions, or all partitions by default, ``n`` buckets; with ``whole_table`` by a single instant."""
    from ..services.rescale.rescale import rescale_buckets  # noqa: PLC0415

    return rescale_buckets(
        call.storage,
        n,
        call.means(),
        partitions=partitions,
        dry_run=dry_run,
        whole_table=whole_table,
    )


def _sort(
    call: Call,
    *,
    by: str | Sequence[str] | None = None,
    curve: str | None = None,
    partitions: Sequence[str] | None = None,
    dry_run: bool = False,
) -> ServiceResult:
    """Sort base files ``by`` columns along a ``curve``, by default those of the table.

    ``by`` may be a text with commas; an empty text or list removes the table's order. ``call`` has the table and its
    settings. ``partitions`` are the paths of those to sort, None for all. With
    ``dry_run`` the result says what would be sorted.
    """
    from ..services.sorting.sort import sort  # noqa: PLC0415

    names = [name.strip() for name in by.split(",") if name.strip()] if isinstance(by, str) else by
    return sort(
        call.storage,
        call.means(),
        by=names,
        curve=curve,
        partitions=partitions,
        dry_run=dry_run,
    )


def _rollback(call: Call, *, instant: str, dry_run: bool = False) -> ServiceResult:
    """Roll one write back, and build the metadata table anew if the rollback takes it out of use."""
    from ..services.metadata.built_anew import with_metadata_built_anew  # noqa: PLC0415
    from ..services.rollback import rollback  # noqa: PLC0415

    undo = partial(rollback, call.storage, instant, patience=call.patience, dry_run=dry_run)
    return with_metadata_built_anew(call.storage, call.means, undo)


def _roll_back_dead(call: Call) -> ServiceResult:
    from ..services.dead_writes import roll_back_dead_writes  # noqa: PLC0415

    return roll_back_dead_writes(call.storage, call.patience)


def _savepoint(
    call: Call, *, instant: str | None = None, comment: str = "", user: str = "", dry_run: bool = False
) -> ServiceResult:
    """Keep the table as it was after the write ``instant``, by default the newest."""
    from ..services.savepoint import savepoint  # noqa: PLC0415

    return savepoint(call.storage, instant, user=user, comment=comment, dry_run=dry_run)


def _delete_savepoint(call: Call, *, instant: str, dry_run: bool = False) -> ServiceResult:
    from ..services.savepoint import delete_savepoint  # noqa: PLC0415

    return delete_savepoint(call.storage, instant, dry_run=dry_run)


def _restore(call: Call, *, to: str, dry_run: bool = False) -> ServiceResult:
    """Restore the table, and build the metadata table anew if the restore takes it out of use."""
    from ..services.metadata.built_anew import with_metadata_built_anew  # noqa: PLC0415
    from ..services.restore import restore  # noqa: PLC0415

    undo = partial(restore, call.storage, to, patience=call.patience, dry_run=dry_run)
    return with_metadata_built_anew(call.storage, call.means, undo)


def _upgrade(call: Call, *, to: int = 9, dry_run: bool = False) -> VersionResult:
    """Bring the table and its metadata table to the newer table version ``to``."""
    from ..services.metadata.built_anew import change_version_and_metadata  # noqa: PLC0415
    from ..services.versions.change_version import change_version  # noqa: PLC0415

    change = partial(change_version, call.storage, "upgrade", to, call.means(), dry_run=dry_run)
    return change_version_and_metadata(call.storage, call.means, change)


def _downgrade(call: Call, *, to: int = 8, dry_run: bool = False) -> VersionResult:
    """Bring the table and its metadata table to the older table version ``to``."""
    from ..services.metadata.built_anew import change_version_and_metadata  # noqa: PLC0415
    from ..services.versions.change_version import change_version  # noqa: PLC0415

    change = partial(change_version, call.storage, "downgrade", to, call.means(), dry_run=dry_run)
    return change_version_and_metadata(call.storage, call.means, change)


def _validate(call: Call, *, deep: bool = False) -> pa.Table:
    from ..inspect.validate import validate  # noqa: PLC0415

    return validate(call.storage, deep=deep)


def _may_clean(timeline: Timeline, upkeep: Upkeep) -> bool:
    """Return whether a clean may have work: a pending clean, writes beyond those to keep, or another policy."""
    from ..service_settings import KEEP_LATEST_COMMITS  # noqa: PLC0415

    settings = upkeep.clean
    has_pending_clean = any(instant.action == "clean" for instant in timeline.pending)
    # With fewer writes, the policy keeps all slices and the file groups that they replaced.
    return has_pending_clean or settings.policy != KEEP_LATEST_COMMITS or len(timeline.writes) >= settings.commits


def _may_archive(timeline: Timeline, upkeep: Upkeep) -> bool:
    """Return whether there are enough writes on the timeline for an archiving."""
    return len(timeline.writes) >= upkeep.archive.max_commits


def _may_have_logs(timeline: Timeline, _: Upkeep) -> bool:
    """Return whether a delta commit shows that the table is merge-on-read, so that it may have log files."""
    return any("deltacommit" in {instant.action, instant.group} for instant in timeline.instants)


def _compact_after_write(settings_of: _SettingsOf, call: Call, timeline: Timeline) -> ServiceResult | None:
    """Run or plan a compaction after a write, and return its result; None if no plan is pending or due."""
    from ..services.compaction.compact import compact_after_write  # noqa: PLC0415

    return compact_after_write(call.storage, timeline, settings_of(call.upkeep()), call.means())


def _compact_due(settings_of: _SettingsOf, name: str, call: Call) -> ServiceResult:
    """Run a compaction, or log compaction, if it is due; if it is not, the result has only the service's ``name``.

    ``settings_of`` chooses compactions or log compactions.
    """
    from ..result import ServiceResult  # noqa: PLC0415
    from ..services.compaction.compact import compact_where_due  # noqa: PLC0415

    result = compact_where_due(call.storage, settings_of(call.upkeep()), call.means())
    return ServiceResult(call.storage.path, name) if result is None else result


def _dry_run_argument(what: str) -> Argument:
    """Return the argument ``dry_run`` of a service; ``what`` is the verb in its help, such as "delete"."""
    return Argument("dry_run", f"only report what it would {what}", bool, default=False)


_COMPACTION, _LOG_COMPACTION = attrgetter("compaction"), attrgetter("log_compaction")

# In the order of a round: dead writes hold up cleans and archiving, so their rollback is first; compactions take
# longest, so they are last.
SERVICES: Mapping[str, Service] = {
    service.name: service
    for service in (
        Service(
            "rollback",
            "take one write back: the newest, or a pending one whose writer is dead",
            _rollback,
            (
                Argument("instant", "its requested time, or a time that only this write has"),
                _dry_run_argument("delete"),
            ),
            settings=("patience",),
            changes=True,
            due=_roll_back_dead,
        ),
        Service(
            "clean",
            "delete file slices that the cleaning policy does not keep",
            _clean,
            (
                Argument("retain", "how many commits, file versions or hours to keep", int, default=None),
                _dry_run_argument("delete"),
            ),
            settings=("clean",),
            after_write=AfterWrite(
                "clean",
                attrgetter("clean.automatic"),
                _may_clean,
                lambda call, timeline: _clean(call, inline=True, timeline=timeline),
            ),
            due=partial(_clean, inline=True),
        ),
        Service(
            "compact_metadata",
            "merge the log files of the metadata table into base files, and clean and archive it",
            keep_metadata,
            (_dry_run_argument("merge"),),
            settings=("archive", "clean"),
            after_write=AfterWrite("metadata", attrgetter("metadata"), may_keep_metadata, metadata_after_write),
            due=metadata_due,
        ),
        Service(
            "archive",
            "move old instants from the timeline into its archive",
            _archive,
            (
                Argument("keep", "how many completed writes stay on the timeline", int, default=None),
                _dry_run_argument("move"),
            ),
            settings=("archive", "clean"),
            after_write=AfterWrite(
                "archive",
                attrgetter("archive.automatic"),
                _may_archive,
                lambda call, timeline: _archive(call, timeline=timeline),
            ),
            due=_archive_due,
        ),
        Service(
            "compact",
            "merge the log files of a merge-on-read table into base files, in this process",
            partial(_compact, _COMPACTION),
            (_dry_run_argument("merge"),),
            settings=("compaction", "means"),
            after_write=AfterWrite(
                "compaction",
                lambda upkeep: upkeep.compaction.inline or upkeep.compaction.schedule_inline,
                _may_have_logs,
                partial(_compact_after_write, _COMPACTION),
            ),
            due=partial(_compact_due, _COMPACTION, "compaction"),
        ),
        Service(
            "schedule_compaction",
            "plan such a merge, for a later compact",
            partial(_schedule, _COMPACTION),
            (_dry_run_argument("plan"),),
            settings=("compaction", "patience"),
        ),
        Service(
            "log_compact",
            "join the log files of a merge-on-read table into fewer, in this process",
            partial(_compact, _LOG_COMPACTION),
            (_dry_run_argument("join"),),
            settings=("log_compaction", "means"),
            after_write=AfterWrite(
                "logcompaction",
                attrgetter("log_compaction.inline"),
                _may_have_logs,
                partial(_compact_after_write, _LOG_COMPACTION),
            ),
            due=partial(_compact_due, _LOG_COMPACTION, "logcompaction"),
        ),
        Service(
            "schedule_log_compaction",
            "plan such a join, for a later log_compact",
            partial(_schedule, _LOG_COMPACTION),
            (_dry_run_argument("plan"),),
            settings=("log_compaction", "patience"),
        ),
        Service(
            "repair",
            "mend what broke off: the properties, dead writes, orphaned files, or damaged log files that are named",
            _repair,
            (
                Argument(
                    "accept_loss",
                    "a damaged log file of which to give up what cannot be read, and to do nothing else",
                    list,
                    default=None,
                    metavar="FILE",
                ),
                Argument("undo", "put back the files that a repair moved at this time", default=None, metavar="TIME"),
                Argument(
                    "file_times",
                    "set the times of instants' files that Apache Hudi 1.x would misread, and do nothing else",
                    bool,
                    default=False,
                ),
                _dry_run_argument("do"),
            ),
            settings=("means",),
            changes=True,
        ),
        Service(
            "rescale_buckets",
            "give partitions of a table with a bucket index another number of buckets, in this process",
            _rescale,
            (
                Argument("n", "the number of buckets", int, metavar="NUMBER"),
                Argument("partitions", "a partition's path; all without it", list, default=None, metavar="PATH"),
                _dry_run_argument("do"),
                Argument("whole_table", "rescale all partitions by one instant", bool, default=False),
            ),
            settings=("means",),
            changes=True,
        ),
        Service(
            "sort",
            "sort the rows of each base file, and note the order, which later writes keep",
            _sort,
            (
                Argument("by", "the sort columns, separated by commas; the table's without it", default=None),
                Argument("curve", "linear, zorder or hilbert; the table's, or linear, without it", default=None),
                Argument(
                    "partitions", "the path of a partition to sort; all without it", list, None, metavar="PARTITION"
                ),
                _dry_run_argument("sort"),
            ),
            settings=("means",),
        ),
        Service(
            "create_index",
            "build the list of files, or bounds of columns, in the metadata table",
            build_index,
            (
                Argument("name", "files, column_stats or partition_stats"),
                Argument("columns", "a column whose bounds are kept; the first 32 without it", list, None, "COLUMN"),
                _dry_run_argument("build"),
            ),
            settings=("means",),
            after_write=AfterWrite("create_index", attrgetter("indexes.names"), lambda _, __: True, build_after_write),
        ),
        Service(
            "drop_index",
            "take a part of the metadata table out of use",
            drop_index_of,
            (Argument("name", "the partition of the metadata table, such as files"), _dry_run_argument("drop")),
        ),
        Service(
            "savepoint",
            "keep the table as it was after one write",
            _savepoint,
            (
                Argument(
                    "instant", "the requested time of the write, or a time after it; now without it", default=None
                ),
                Argument("comment", "what it is for", default=""),
                Argument("user", "who wants it", default=""),
                _dry_run_argument("keep"),
            ),
        ),
        Service(
            "delete_savepoint",
            "keep a savepoint's files no longer",
            _delete_savepoint,
            (
                Argument("instant", "its requested time, or a time that only this savepoint has"),
                _dry_run_argument("delete"),
            ),
        ),
        Service(
            "restore",
            "take back all that came after one write",
            _restore,
            (
                Argument("to", "the write's requested time, or a time after it", metavar="INSTANT"),
                _dry_run_argument("undo"),
            ),
            settings=("patience",),
            changes=True,
        ),
        Service(
            "upgrade",
            "bring the table to a newer table version, which older releases of Apache Hudi cannot open",
            _upgrade,
            (Argument("to", "the version", int, default=9, metavar="VERSION"), _dry_run_argument("change")),
            settings=("means",),
            changes=True,
        ),
        Service(
            "downgrade",
            "bring the table to an older table version, for older releases of Apache Hudi",
            _downgrade,
            (Argument("to", "the version", int, default=8, metavar="VERSION"), _dry_run_argument("change")),
            settings=("means",),
            changes=True,
        ),
        Service(
            VALIDATE,
            "look for everything that is wrong with the table",
            _validate,
            (Argument("deep", "read rows too", bool, default=False),),
        ),
    )
}
