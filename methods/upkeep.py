"""The methods of tables for table services: clean, archive, compaction, rollback, savepoints and checks.

Each method is one call of a function that needs no engine. This process does the work, except that Spark tasks merge
the file groups of a `HudiTable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from ..operations.result import ServiceResult, ServicesResult
from ..operations.version_change import VersionResult
from ..options.parsing import format_value
from ..options.sources import WRITING, ResolvedOptions
from ..storage import open_storage
from .base import Frame, TableMethods

if TYPE_CHECKING:
    from ..operations.upkeep.service_entry import Call


class UpkeepMethods(TableMethods[Frame]):
    """The methods that run table services."""

    def clean(self, *, retain: int | None = None, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Delete file slices that newer slices have replaced and that the policy does not keep.

        Every completed write cleans too, unless ``hoodie.clean.automatic`` is false. A DataFrame of `HudiTable.to_df`
        that needs a deleted slice ends in Spark's error ``FAILED_READ_FILE``.

        Args:
            retain: How many commits to keep readable; file versions or hours, if the policy counts these.
            dry_run: Whether only to return what a clean would delete.
            options: Options of this call, such as ``**{"hoodie.clean.commits.retained": 20}``.

        Returns:
            The instant, and the deleted files; no instant if nothing was deleted.

        Raises:
            PyHudiError: The clean failed and may be run again; the class says what the caller can do.
        """
        return self._run("clean", options, retain=retain, dry_run=dry_run)

    def archive(self, *, keep: int | None = None, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Move old instants from the timeline to its archive, so that reads and writes list fewer files.

        Every completed write archives too, unless ``hoodie.archive.automatic`` is false.

        Args:
            keep: How many completed writes stay on the timeline.
            dry_run: Whether only to return what would be archived.
            options: Options of this call, such as ``**{"hoodie.keep.max.commits": 100}``.

        Returns:
            The number of archived instants.

        Raises:
            PyHudiError: Archiving failed and may be run again; the class says what the caller can do.
        """
        return self._run("archive", options, keep=keep, dry_run=dry_run)

    def compact_metadata(self, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Merge the log files of the table's metadata table into base files, and clean and archive it.

        Completed writes do so if log files have a fifth of the bytes of base files, or a file group has 50 of them.
        Pending plans of Apache Hudi are carried out first. Writes may run at the same time.

        Args:
            dry_run: Whether only to return what would be merged.
            options: Options of this call.

        Returns:
            The instant, the merged file groups and log files, the bytes read and written, and the archived instants; no
            instant if nothing was merged, as in a table without a metadata table. ``todo`` says which partition is
            damaged and went out of use.

        Raises:
            UnsupportedTableError: The metadata table has a partition that pyhudi does not keep.
            PyHudiError: The service failed and may be run again; the class says what the caller can do.
        """
        return self._run("compact_metadata", options, dry_run=dry_run)

    def compact(self, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Merge the log files of a merge-on-read table into base files.

        It first executes pending compaction plans, of other writers too, then plans and merges file groups with log
        files within the limits of ``hoodie.compaction.strategy``. Writes may run at the same time.

        Args:
            dry_run: Whether only to return what would be merged.
            options: Options of this call, such as ``**{"hoodie.compaction.target.io": 10000}``.

        Returns:
            The instant, the merged file groups and log files, and the bytes read and written; no instant if nothing was
            merged.

        Raises:
            UnsupportedTableError: The table is copy-on-write, or only Apache Hudi can execute a pending plan.
            PyHudiError: The compaction failed and may be run again; the class says what the caller can do.
        """
        return self._run("compact", options, dry_run=dry_run)

    def schedule_compaction(self, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Plan a compaction, for `compact`, a job or Apache Hudi to execute.

        Args:
            dry_run: Whether only to return what would be planned.
            options: Options of this call.

        Returns:
            The instant, and the planned file groups and log files; no instant if there is nothing to merge.

        Raises:
            UnsupportedTableError: The table is copy-on-write.
            PyHudiError: Planning failed and may be run again; the class says what the caller can do.
        """
        return self._run("schedule_compaction", options, dry_run=dry_run)

    def log_compact(self, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Join the log files of each file group that has many into one log file.

        It neither reads nor writes base files. It first executes pending plans, of other writers too, then joins the
        file groups with at least ``hoodie.log.compaction.blocks.threshold`` log files, or blocks in them. Writes may
        begin meanwhile, but a write that is pending already must complete first; ``skipped`` of the result names it
        then.

        Args:
            dry_run: Whether only to return what would be joined.
            options: Options of this call, such as ``**{"hoodie.log.compaction.blocks.threshold": 3}``.

        Returns:
            The instant, the joined file groups and log files, and the bytes read and written; no instant if nothing was
            joined.

        Raises:
            UnsupportedTableError: The table is copy-on-write, or only Apache Hudi can execute a pending plan.
            PyHudiError: The log compaction failed and may be run again; the class says what the caller can do.
        """
        return self._run("log_compact", options, dry_run=dry_run)

    def schedule_log_compaction(self, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Plan a log compaction, for `log_compact`, a job or Apache Hudi to execute.

        Args:
            dry_run: Whether only to return what would be planned.
            options: Options of this call.

        Returns:
            The instant, and the planned file groups and log files; no instant if there is nothing to join.

        Raises:
            UnsupportedTableError: The table is copy-on-write.
            PyHudiError: Planning failed and may be run again; the class says what the caller can do.
        """
        return self._run("schedule_log_compaction", options, dry_run=dry_run)

    def repair(
        self,
        *,
        accept_loss: Sequence[str] | None = None,
        undo: str | None = None,
        file_times: bool = False,
        dry_run: bool = False,
        **options: Any,
    ) -> ServiceResult:
        """Mend what broke off: recover the properties from their backup, roll dead writes back, move orphans aside.

        Orphans are data files of writes that never completed. They go to ``.hoodie/.pyhudi/removed``, and a write
        deletes them seven days later. With ``accept_loss`` it does nothing of this: it gives up the unreadable rows of
        damaged log files, so that their file groups work again. The next slice of each file group contains the rows
        that can be read, and the damaged file stays in its old slice.

        Args:
            accept_loss: The damaged log files, relative to the table's path, as the error and `validate` name them.
            undo: The ``instant`` of a repair's result: put the files back that it moved aside, and do nothing else.
            file_times: Set the times of instants' files in a table of version 6 that `validate` names, and do nothing
                else.
            dry_run: Whether only to return what would be done or lost.
            options: Options of this call.

        Returns:
            In ``steps`` what it did, in ``moved`` the files that it moved aside, in ``skipped`` what stays and why; or
            the instant, and in ``repaired`` for each damaged file what it holds and what its write recorded.

        Raises:
            ConcurrentWriteError: A pending write's writer lives, or may live; only files of ``accept_loss`` can be
                given up meanwhile.
            InvalidOptionError: A file is not a damaged log file of a newest file slice, or ``accept_loss`` names none;
                or no repair has moved files at that time.
            OptionConflictError: The call has two of ``accept_loss``, ``undo`` and ``file_times``.
            UnsupportedTableError: A pending compaction or clustering contains a file group of the files; or the store
                takes no times of files, as object stores.
            PyHudiError: The repair failed and may be run again; the class says what the caller can do.
        """
        return self._run("repair", options, accept_loss=accept_loss, undo=undo, file_times=file_times, dry_run=dry_run)

    def rescale_buckets(
        self,
        n: int,
        partitions: Sequence[str] | None = None,
        dry_run: bool = False,
        whole_table: bool = False,
        **options: Any,
    ) -> ServiceResult:
        """Divide the rows of partitions of a table with a bucket index into another number of buckets.

        Partitions of up to 512 MiB together become one instant. Until it is complete, new writes to them wait or are
        refused. A call that broke off may be run again: it takes up the partitions that lack the number. Stop writers
        of Apache Hudi before.

        Args:
            n: The number of buckets.
            partitions: The partitions' paths, as in ``_hoodie_partition_path``; all partitions by default, and those to
                come.
            dry_run: Whether only to return what would be done.
            whole_table: Whether one instant rescales all partitions, as it always does on a table of version 8.
            options: Options of this call, such as ``**{"hoodie.write.lock.wait_time_ms": 600000}``.

        Returns:
            The last instant; how many partitions were rescaled, their file groups before and after, and the bytes read
            and written; in ``todo`` what jobs of Apache Hudi have to change now.

        Raises:
            InvalidOptionError: The number is out of range, or a partition does not exist.
            UnsupportedTableError: The table has no simple buckets, or their number is unknown.
            BucketMisfitError: A file holds rows of another bucket.
            PyHudiError: The rescale failed and may be run again; the class says what the caller can do.
        """
        return self._run(
            "rescale_buckets", options, n=n, partitions=partitions, dry_run=dry_run, whole_table=whole_table
        )

    def sort(
        self,
        *,
        by: str | Sequence[str] | None = None,
        curve: str | None = None,
        partitions: Sequence[str] | None = None,
        dry_run: bool = False,
        **options: Any,
    ) -> ServiceResult:
        """Sort the rows of each base file, and have later writes keep the order.

        Queries that choose rows by the sort columns then read a part of each file. Base files that have the order
        already stay as they are. No row changes: queries of changes show nothing of it.

        Args:
            by: The sort columns, also as one text with commas; none at all to have later writes keep no order; by
                default those of the table.
            curve: ``linear`` sorts by the first column, and by the next if it is equal; ``zorder`` and ``hilbert``
                keep rows near each other that are near in every column. By default that of the table, or ``linear``
                for other columns.
            partitions: Paths of the partitions to sort; by default all. Later writes keep the order in all.
            dry_run: Whether only to return what would be sorted.
            options: Options of this call.

        Returns:
            The instant, the sorted file groups, and the bytes read and written; no instant if all had the order.
            ``skipped`` names file groups of a copy-on-write table that other writes changed meanwhile.

        Raises:
            MissingOptionError: Neither the call nor the table names columns.
            OptionError: A column or a partition does not exist, or the curve has another name.
            CommitConflictError: Other writes changed all these file groups of a copy-on-write table meanwhile; run it
                again.
            PyHudiError: The sort failed and may be run again; the class says what the caller can do.
        """
        return self._run("sort", options, by=by, curve=curve, partitions=partitions, dry_run=dry_run)

    def rollback(self, instant: str | date, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Undo one write: the newest write, or a pending write whose writer is dead.

        Args:
            instant: The requested time of the write, as `history` shows it; or a day, a second or a millisecond in
                which the table has only this write, spelled as for `to_df`. A call with a pending instant declares
                that its writer is dead.
            dry_run: Whether only to return how many files would be deleted.
            options: Options of this call.

        Returns:
            The instant of the rollback, and the deleted files.

        Raises:
            UndoError: The write does not exist, a later write builds on it, or a clean has deleted what it replaced.
            InvalidOptionError: The time is invalid.
            PyHudiError: The rollback failed and may be run again.
        """
        return self._run("rollback", options, instant=format_value(instant), dry_run=dry_run)

    def create_index(
        self, name: str, *, columns: Sequence[str] | None = None, dry_run: bool = False, **options: Any
    ) -> ServiceResult:
        """Build a part of Apache Hudi's metadata table, from which queries learn of files without listing folders.

        Writes may run at the same time. What the index needs and the table lacks is built too, and the result names all
        that was built. Each later write of pyhudi and of Apache Hudi keeps the index.

        Args:
            name: ``files`` for the list of files; ``column_stats`` for the bounds of columns in each file, too;
                ``partition_stats`` for those of each partition, too.
            columns: The columns whose bounds are kept; the first 32 without it.
            dry_run: Whether only to return what would be built.
            options: Options of this call.

        Returns:
            The instant, the built partitions of the metadata table, and the number and the bytes of their records; in
            ``skipped`` why nothing was built, such as that the index is in use.

        Raises:
            InvalidOptionError: pyhudi builds no such index.
            UnsupportedTableError: The table cannot have it.
            ConcurrentWriteError: Another process builds an index of the table.
            PyHudiError: Building failed and may be run again; the class says what the caller can do.
        """
        return self._run("create_index", options, name=name, columns=columns, dry_run=dry_run)

    def drop_index(self, name: str, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Take a part of Apache Hudi's metadata table out of use.

        What depends on it goes too: all indexes with ``files``, ``partition_stats`` with ``column_stats``, and
        secondary indexes with ``record_index``. A clean deletes the files a day later.

        Args:
            name: Any partition of the metadata table, such as ``files``, ``record_index`` or ``secondary_index_x``.
            dry_run: Whether only to return what would be dropped.
            options: Options of this call.

        Returns:
            The dropped partitions of the metadata table.

        Raises:
            InvalidOptionError: The table has no such index.
            PyHudiError: Dropping failed and may be run again; the class says what the caller can do.
        """
        return self._run("drop_index", options, name=name, dry_run=dry_run)

    def savepoint(
        self, instant: str | date | None = None, *, comment: str = "", user: str = "", dry_run: bool = False
    ) -> ServiceResult:
        """Keep the table as of one write, so that it stays readable and restorable.

        Args:
            instant: The requested time of the write; or a time, spelled as for `to_df`, for the newest write that was
                requested until then; None for the newest write.
            comment: The purpose of the savepoint.
            user: The user who made it.
            dry_run: Whether only to return how many files it would keep.

        Returns:
            The requested time of the write, which names the savepoint, and the files that it keeps.

        Raises:
            UndoError: The write does not exist, or some of its files are gone.
            InvalidOptionError: The time is invalid.
            PyHudiError: The savepoint failed and may be made again.
        """
        instant_text = None if instant is None else format_value(instant)
        return self._run("savepoint", {}, instant=instant_text, comment=comment, user=user, dry_run=dry_run)

    def delete_savepoint(self, instant: str | date, *, dry_run: bool = False) -> ServiceResult:
        """Delete a savepoint; the next clean may delete its files.

        Args:
            instant: The name of the savepoint, as `savepoints` shows it; or a day, a second or a millisecond that has
                only this savepoint, spelled as for `to_df`.
            dry_run: Whether only to look for it.

        Returns:
            The name of the savepoint.

        Raises:
            UndoError: The savepoint does not exist.
            InvalidOptionError: The time is invalid.
            PyHudiError: The deletion failed and may be run again.
        """
        return self._run("delete_savepoint", {}, instant=format_value(instant), dry_run=dry_run)

    def savepoints(self) -> Frame:
        """Return one row for each savepoint, newest first.

        Returns:
            The columns instant, made, user, comment and files.

        Raises:
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.savepoints import savepoints  # noqa: PLC0415 (see __init__.py)

        return self._frame(savepoints(self._storage))

    def restore(self, to: str | date, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Undo everything after one write; later rows are lost for good.

        No writer may run meanwhile. While a restore is pending, the table refuses all writes; the same call finishes
        it.

        Args:
            to: The requested time of the write, as `savepoints` or `history` shows it; or a time, spelled as for
                `to_df`, for the newest write that was requested until then.
            dry_run: Whether only to return how many writes would be undone.
            options: Options of this call.

        Returns:
            The instant of the restore, the number of undone instants, and the deleted files.

        Raises:
            UndoError: The write does not exist, or some of its files are gone.
            InvalidOptionError: The time is invalid.
            PyHudiError: The restore failed and may be run again.
        """
        return self._run("restore", options, to=format_value(to), dry_run=dry_run)

    def upgrade(self, *, to: int = 9, dry_run: bool = False, **options: Any) -> VersionResult:
        """Bring the table to a newer table version, which older releases of Apache Hudi cannot open.

        First dead writes are rolled back, and pending compactions are carried out. Then all properties change at once,
        and the metadata table of Apache Hudi goes out of use. No data file is written. Writes that began before fail
        and are made again. A call that broke off may be made again. Of a copy-on-write table of version 6 the instants
        are copied before, and the old files go after it.

        Args:
            to: The version: 9, or 8 for a table of version 6.
            dry_run: Whether only to return what would change.
            options: Options of this call.

        Returns:
            The changed properties, what was done first, how many keys show another row, and warnings; no change if the
            table has the version.

        Raises:
            TableVersionError: The table has a version that pyhudi does not upgrade.
            UnsupportedTableError: The new version cannot say something of the table, which the error names.
            ConcurrentWriteError: A writer lives, or may live, or a restore is pending.
            CorruptInstantError: A completed instant cannot be read; nothing was changed.
            InvalidOptionError: No upgrade leads to the version.
            PyHudiError: The upgrade failed and may be run again; the class says what the caller can do.
        """
        return self._run_version("upgrade", options, to=to, dry_run=dry_run)

    def downgrade(self, *, to: int = 8, dry_run: bool = False, **options: Any) -> VersionResult:
        """Bring the table to an older table version, for older releases of Apache Hudi.

        It works like `upgrade`.

        Args:
            to: The version: 8.
            dry_run: Whether only to return what would change.
            options: Options of this call.

        Returns:
            The changed properties, what was done first, how many keys show another row, and warnings; no change if the
            table has the version.

        Raises:
            TableVersionError: The table has a version that pyhudi does not downgrade.
            UnsupportedTableError: The old version cannot say something of the table, which the error names.
            ConcurrentWriteError: A writer lives, or may live, or a restore is pending.
            CorruptInstantError: A completed instant cannot be read; nothing was changed.
            InvalidOptionError: No downgrade leads to the version.
            PyHudiError: The downgrade failed and may be run again; the class says what the caller can do.
        """
        return self._run_version("downgrade", options, to=to, dry_run=dry_run)

    def run_services(self, services: Sequence[str] = (), **options: Any) -> ServicesResult:
        """Run one round of table services beside writers: each does what its ``hoodie.*`` triggers say is due.

        In order: dead writes are rolled back, then ``clean``, ``compact_metadata``, ``archive``, ``compact`` and
        ``log_compact`` run. Pending plans are executed that no living process executes. A service that meets another
        process is skipped, and a failing service does not stop the others.

        Args:
            services: The services to run: ``rollback``, ``clean``, ``compact_metadata``, ``archive``, ``compact``,
                ``log_compact``; all of them by default.
            options: Options of this call, such as ``**{"hoodie.compact.inline.max.delta.commits": 20}``.

        Returns:
            A result for each service: what it did, what it skipped and why, or why it failed.

        Raises:
            InvalidOptionError: A name in ``services`` is none of these.
            PyHudiError: The table cannot be opened.
        """
        from ..operations.upkeep.service_round import run_services  # noqa: PLC0415 (see __init__.py)

        resolved = self._resolve(options, WRITING, warn=True)
        with self._progress("services", resolved.options):
            round_result = run_services(self._call(resolved), services)
        self._changed()
        return replace(round_result, warnings=(*resolved.notices, *round_result.warnings))

    def validate(self, *, deep: bool = False) -> Frame:
        """Check the table's timeline, its files and their footers, without changing anything.

        This process reads the files, without tasks of Spark.

        Args:
            deep: Whether to read the rows of the newest base and log files and the archived instants too.

        Returns:
            One row for each finding, errors first, with the columns severity, code, table, file, instant, what and
            cure; no rows for a sound table.

        Raises:
            PyHudiError: The table cannot be opened.
        """
        from ..operations.inspect.validate import validate  # noqa: PLC0415 (see __init__.py)

        return self._frame(validate(self._storage, deep=deep))

    def _run(self, name: str, options: Mapping[str, Any], /, **arguments: Any) -> ServiceResult:
        """Run a table service by its name, and return its result."""
        service_result: ServiceResult = self._result_of(name, options, **arguments)
        return service_result

    def _run_version(self, name: str, options: Mapping[str, Any], **arguments: Any) -> VersionResult:
        """Run an upgrade or a downgrade, and return its result."""
        version_result: VersionResult = self._result_of(name, options, **arguments)
        return version_result

    def _result_of(self, name: str, options: Mapping[str, Any], /, **arguments: Any) -> Any:
        """Return the result of a service that runs with a call's options; show its progress, and note a changed table.

        ``name`` is a key of `SERVICES`.
        """
        from ..operations.upkeep.services import SERVICES  # noqa: PLC0415 (see __init__.py)

        service = SERVICES[name]
        resolved = self._resolve(options, WRITING, warn=True)
        with self._progress(name, resolved.options):
            service_result = service.run(self._call(resolved), **arguments)
        if service.changes:
            self._changed()
        return service_result

    def _call(self, resolved: ResolvedOptions) -> Call:
        """Return what a service needs of the table: store, patience with others, settings, and how to do its work."""
        from ..operations.upkeep.service_entry import Call  # noqa: PLC0415 (see __init__.py)

        options = resolved.options
        storage = open_storage(self._path, options.storage_options, durable=options.durable)
        patience, means = options.write_settings().patience, partial(self._means, options)
        return Call(storage, patience, options.upkeep, means)
