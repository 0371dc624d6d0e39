"""The methods of tables that show their history, state and sizes."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..operations.result import CommitResult
from ..options.parsing import format_value
from ..options.sources import READING, WRITING, find_config
from ..table.schema.columns import without_meta
from .base import Frame, TableMethods

if TYPE_CHECKING:
    from ..options.explain import ExplainedOptions


class QueryMethods(TableMethods[Frame]):
    """The methods that show something of a table."""

    def suggest_buckets(self, *, growth: float = 1.0) -> Frame:
        """Return for each partition its number of buckets and the number that would suit its size.

        Args:
            growth: The factor by which each partition will grow.

        Returns:
            The columns partition, buckets, files, bytes and suggested, a row for each partition. Files and bytes are
            those of the newest file slices, log files included; ``buckets`` is null if the number is unknown.

        Raises:
            UnsupportedTableError: The table's properties note no bucket index.
            InvalidOptionError: ``growth`` is not positive.
        """
        from ..operations.inspect.bucket_sizes import bucket_sizes  # noqa: PLC0415 (see __init__.py)

        return self._frame(bucket_sizes(self._storage, growth))

    def detail(self) -> Frame:
        """Return one row that describes the table and its size.

        Returns:
            The columns name, path, type, version, record_key, partition_by, order_by, index, buckets, other_buckets,
            partitions, files, bytes, log_files, log_bytes, compaction_debt, delta_commits, wants_compaction,
            read_optimized_lacks, read_optimized_until, metadata, newest_instant, completed, written_by and
            properties. Partitions, files and bytes count what a snapshot read opens; log files are counted
            apart from base files. ``buckets`` is the number of buckets of each partition that
            ``other_buckets`` does not name, null for other indexes and if it is unknown.
            ``compaction_debt`` has the 20 file groups with the most bytes of log files. Read-optimized
            queries lack the rows of ``read_optimized_lacks`` writes and show everything that was complete
            at ``read_optimized_until``. ``metadata`` lists the partitions of the metadata table with their state,
            file groups, files and bytes, and when each was compacted; it is empty without a metadata table, and
            null if this is damaged.

        Raises:
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.detail import detail  # noqa: PLC0415 (see __init__.py)

        return self._frame(detail(self._storage))

    def history(self, limit: int | None = None) -> Frame:
        """Return one row for each instant of the active timeline, newest first.

        Args:
            limit: The greatest number of instants to open and return; None for all.

        Returns:
            The columns instant, action, state, completed, operation, inserts, updates, deletes, files, bytes,
            log_files and log_bytes.

        Raises:
            InvalidOptionError: The limit is below zero.
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.history import history  # noqa: PLC0415 (see __init__.py)

        return self._frame(history(self._storage, limit))

    def activity(self) -> Frame:
        """Return one row for each pending write and table service, oldest first.

        Returns:
            The columns instant, action, phase (``planned``, ``writing``, ``committing`` or ``given up``), started,
            application, host, pid and heartbeat_age_s. What the store does not hold is null: other writers record no
            application, host or pid, and only some of them a heartbeat.

        Raises:
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.activity import activity  # noqa: PLC0415 (see __init__.py)

        return self._frame(activity(self._storage))

    def files(self, *, as_of: str | date | None = None) -> Frame:
        """Return one row for each file slice that a snapshot reads, without opening a data file.

        Args:
            as_of: The table as of this time, spelled as for `to_df`; None for now.

        Returns:
            The columns partition, file_id, bucket, instant, base_file, base_bytes, log_files, log_bytes, bytes, rows
            and log_records.

        Raises:
            InvalidOptionError: The time is invalid.
            UnreadableTimeError: The table does not keep history that far back.
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.files import files  # noqa: PLC0415 (see __init__.py)

        return self._frame(files(self._storage, None if as_of is None else format_value(as_of)))

    def timeline(self, limit: int | None = None) -> Frame:
        """Return one row for each instant by name and times alone, newest first, pending and archived instants too.

        Args:
            limit: The greatest number of instants to return; None for all.

        Returns:
            The columns instant, action, state, completed, seconds and archived.

        Raises:
            InvalidOptionError: The limit is below zero.
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.instants import list_instants  # noqa: PLC0415 (see __init__.py)

        return self._frame(list_instants(self._storage, limit))

    def sizes(self) -> Frame:
        """Return for each file group the files and bytes that readers see, and those that no reader needs.

        Returns:
            The columns partition, file_id, bucket, live_files, live_bytes, dead_files, dead_bytes, unfinished_files and
            unfinished_bytes.

        Raises:
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.sizes import sizes  # noqa: PLC0415 (see __init__.py)

        return self._frame(sizes(self._storage))

    def partitions(self) -> Frame:
        """Return one row for each partition, without opening a data file.

        Returns:
            The columns partition, buckets, file_groups, files, log_files, bytes, rows and newest_instant.

        Raises:
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.partitions import partitions  # noqa: PLC0415 (see __init__.py)

        return self._frame(partitions(self._storage))

    def metadata(self, partition: str | None = None, limit: int | None = None) -> Frame:
        """Return one row for each partition of Apache Hudi's metadata table, or the records of a partition.

        Args:
            partition: The name of a partition, such as ``files``; None for a row about each.
            limit: The greatest number of rows to return; None for all.

        Returns:
            The columns partition, state, file_groups, files, log_files, bytes, log_bytes, records, compacted and lacks;
            no row for a table without a metadata table. The records of a partition have the columns key, type and what
            Apache Hudi says in partitions of its kind, such as ``filesystemMetadata``; files that were deleted are left
            out, and bounds have a field for each type.

        Raises:
            InvalidOptionError: The metadata table has no such partition, or the limit is below zero.
            CorruptFileError: A file of the metadata table is damaged.
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.metadata_rows import metadata_rows  # noqa: PLC0415 (see __init__.py)

        return self._frame(metadata_rows(self._storage, partition, limit))

    def last_commit(self) -> CommitResult | None:
        """Return the result of the newest completed write, by any writer.

        Returns:
            The result; None for a table without a write.

        Raises:
            PyHudiError: The table cannot be read.
        """
        from ..operations.inspect.history import last_commit  # noqa: PLC0415 (see __init__.py)

        return last_commit(self._storage)

    def explain_options(self, *, defaults: bool = True, **options: Any) -> ExplainedOptions:
        """Return the value of each option for this table, and its source.

        Sources are the call, this object, the session of a `HudiTable` (``spark.conf.set("hoodie.…", …)``),
        ``hudi-defaults.conf``, the table, and the defaults.

        Args:
            defaults: Whether to list options that have their default value.
            options: Options as for a write.

        Returns:
            The options; ``print`` and a notebook show them as a table.

        Raises:
            OptionError: An option cannot be used.
        """
        from ..options.explain import explain  # noqa: PLC0415 (see __init__.py)

        call_options = {"path": self._path, **options}
        resolved = self._resolve(call_options, READING | WRITING)
        return explain(resolved, find_config(self._storage), defaults=defaults)

    def _columns(self) -> pa.Schema:
        """Return the data columns of the newest snapshot."""
        from ..reader.snapshot import open_snapshot  # noqa: PLC0415 (see __init__.py)

        return without_meta(open_snapshot(self._path, self.storage_options).schema)
