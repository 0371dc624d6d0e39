"""What keeps a table small, and how what was done to it is undone: the services of `HudiTable`.

Each is one call of a function that needs no engine; this process does the work, and Spark runs no job for it, unless
rows are to be read and written: a compaction's file groups are merged by Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...operations.inspect.savepoints import savepoints
from ...operations.result import ServiceResult
from ...operations.services.means import Means
from ...operations.write.services import SERVICES, Call
from ...options.sources import WRITING
from ...storage import open_storage
from .base import TableBase
from .frames import from_arrow, make_active
from .writing import spark_means

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableUpkeep(TableBase):
    """What is done to a table that changes none of its rows, and what takes changes back."""

    def clean(self, *, dry_run: bool = False, **options: Any) -> ServiceResult:
        """Delete file slices that newer ones have replaced and that the policy does not keep.

        Writes do so themselves once they are complete, unless ``hoodie.clean.automatic`` is false.

        Args:
            dry_run: Whether to tell only what would be deleted.
            options: Options of this call, such as ``**{"hoodie.clean.commits.retained": 20}``.

        Returns:
            What was deleted; without an instant where nothing was.

        Raises:
            PyHudiError: It failed; the class says what can be done. It may be run again.
        """
        return self._run("clean", options, dry_run=dry_run)

    def archive(self, **options: Any) -> ServiceResult:
        """Move old instants from the timeline into its archive, so that reads and writes need not list them.

        Writes do so themselves once they are complete, unless ``hoodie.archive.automatic`` is false.

        Args:
            options: Options of this call, such as ``**{"hoodie.keep.max.commits": 100}``.

        Returns:
            How many instants were archived.

        Raises:
            PyHudiError: It failed; the class says what can be done. It may be run again.
        """
        return self._run("archive", options)

    def compact(self, **options: Any) -> ServiceResult:
        """Merge the log files of a merge-on-read table into base files, one file group a task of Spark.

        What is planned already is carried out first, whoever planned it; then all that has log files is, as far as
        ``hoodie.compaction.strategy`` takes it. Writes may go on meanwhile.

        Args:
            options: Options of this call, such as ``**{"hoodie.compaction.target.io": 10000}``.

        Returns:
            The file groups and log files that were merged, and what was read and written; without an instant where
            there was nothing to merge.

        Raises:
            UnsupportedTableError: The table has no log files.
            PyHudiError: It failed; the class says what can be done. It may be run again.
        """
        return self._run("compact", options)

    def schedule_compaction(self, **options: Any) -> ServiceResult:
        """Plan a compaction and leave it to whoever carries it out: `compact`, a job, or Apache Hudi.

        Args:
            options: Options of this call.

        Returns:
            The instant, and what it is going to merge; without an instant where there is nothing to merge.

        Raises:
            UnsupportedTableError: The table has no log files.
            PyHudiError: It failed; the class says what can be done. It may be run again.
        """
        return self._run("schedule_compaction", options)

    def log_compact(self, **options: Any) -> ServiceResult:
        """Join the log files of file groups that have many into one each, one file group a task of Spark.

        Base files are neither read nor written. What is planned already is carried out first, whoever planned it; then
        all file groups are joined that have ``hoodie.log.compaction.blocks.threshold`` log files, or blocks in them.
        Writes that begin meanwhile go on; one that is at work already has to be over first, which `left` then says.

        Args:
            options: Options of this call, such as ``**{"hoodie.log.compaction.blocks.threshold": 3}``.

        Returns:
            The file groups and log files that were joined, and what was read and written; without an instant where
            there was nothing to join.

        Raises:
            UnsupportedTableError: The table has no log files.
            PyHudiError: It failed; the class says what can be done. It may be run again.
        """
        return self._run("log_compact", options)

    def schedule_log_compaction(self, **options: Any) -> ServiceResult:
        """Plan a log compaction and leave it to whoever carries it out: `log_compact`, a job, or Apache Hudi.

        Args:
            options: Options of this call.

        Returns:
            The instant, and what it is going to join; without an instant where there is nothing to join.

        Raises:
            UnsupportedTableError: The table has no log files.
            PyHudiError: It failed; the class says what can be done. It may be run again.
        """
        return self._run("schedule_log_compaction", options)

    def repair(self, *, accept_loss: Sequence[str], dry_run: bool = False, **options: Any) -> ServiceResult:
        """Give up the rows of damaged log files that cannot be read, so that their file groups work again.

        The next slice of each file group is written from what can be read. The damaged file stays in its old slice.

        Args:
            accept_loss: The damaged log files, relative to the table's path, as the error and `validate` name them.
            dry_run: Whether only to return what would be given up.
            options: Options of this call.

        Returns:
            The instant, and in ``repaired`` what each file has and what its write states.

        Raises:
            InvalidOptionError: A file is no log file of a newest file slice, or is not damaged.
            PyHudiError: It failed; the class says what can be done. It may be run again.
        """
        return self._run("repair", options, accept_loss=accept_loss, dry_run=dry_run)

    def rollback(self, instant: str, **options: Any) -> ServiceResult:
        """Take one write back, with all that it did: the newest, or a pending one whose writer is dead.

        Args:
            instant: Its requested time, as `history` shows it. Naming a pending one says that its writer is dead.
            options: Options of this call.

        Returns:
            The instant of the rollback, and the files that it deleted.

        Raises:
            UndoError: Something stands on the write, or what it replaced is cleaned away.
            PyHudiError: The rollback failed. It may be run again.
        """
        return self._run("rollback", options, instant=instant)

    def savepoint(self, instant: str | None = None, *, comment: str = "", user: str = "") -> ServiceResult:
        """Keep the table as it was after one write, so that it can be read and restored whatever comes.

        Args:
            instant: The write's requested time; the newest one without it.
            comment: What it is for.
            user: Who wants it.

        Returns:
            The write's requested time, by which the savepoint is named, and the files that are kept.

        Raises:
            UndoError: There is no such write, or some of its files are gone.
        """
        return self._run("savepoint", {}, instant=instant, comment=comment, user=user)

    def delete_savepoint(self, instant: str) -> ServiceResult:
        """Keep a savepoint's files no longer; the next clean may take them.

        Args:
            instant: The savepoint's name, as `savepoints` shows it.

        Raises:
            UndoError: There is no such savepoint.
        """
        return self._run("delete_savepoint", {}, instant=instant)

    def savepoints(self) -> DataFrame:
        """Return one row for every savepoint, newest first.

        Returns:
            The columns instant, made, user, comment and files.
        """
        return from_arrow(self._spark, savepoints(self._storage))

    def restore(self, to: str, **options: Any) -> ServiceResult:
        """Take back all that came after one write; the table then is what it was, and later rows are gone for good.

        Nobody may write meanwhile. While a restore is pending all writes are refused; the same call finishes it.

        Args:
            to: The write's requested time, such as `savepoints` or `history` shows it.
            options: Options of this call.

        Returns:
            The instant of the restore, how many instants it undid, and the files that it deleted.

        Raises:
            UndoError: There is no such write, or some of its files are gone.
            PyHudiError: The restore failed. It may be run again.
        """
        return self._run("restore", options, to=to)

    def validate(self, *, deep: bool = False) -> DataFrame:
        """Look for everything that is wrong with the table: its timeline, its files, their footers.

        Nothing is changed, and this process does the reading.

        Args:
            deep: Whether to read the rows of the newest base and log files too, and what archived writes say.

        Returns:
            One row for each finding, errors first, with the columns severity, code, table, file, instant, what and
            cure; none where all is well.
        """
        from ...operations.inspect.validate import validate  # noqa: PLC0415

        return from_arrow(self._spark, validate(self._storage, deep=deep))

    def _run(self, name: str, given: Mapping[str, Any], **arguments: Any) -> ServiceResult:
        service, options = SERVICES[name], self._resolve(given, WRITING, warn=True).options
        storage = open_storage(self._path, options.storage_options, durable=options.durable)
        patience = options.write_settings().patience

        def means() -> Means:
            make_active(self._spark)
            return spark_means(self._spark, options)

        call = Call(storage, patience, options.upkeep, means, options.metadata_enable)
        done: ServiceResult = service.run(call, **arguments)
        if service.changes:
            self._changed()
        return done
