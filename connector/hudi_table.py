"""`HudiTable`: one table in a Spark session, for writes and reads of any size, on classic Spark and Spark Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column

from ..errors import InvalidOptionError, NotATableError
from ..index.registry import index_for
from ..operations.planning.plan import seen_moment
from ..operations.planning.target import find_target
from ..operations.read_rows import ReadRows
from ..operations.result import CommitResult, PastAttempts
from ..options.lookup import INDEX_PREFIX
from ..options.names import OPTIONS
from ..options.secrets import STORAGE_PREFIX
from ..options.sources import READING, WRITING, find_config, resolve_options
from ..storage import open_storage
from ..table.config import TableConfig
from ..table.config.property_keys import SERIALIZABLE
from ..table.schema.columns import with_meta
from ..table.schema.fields import root_of
from ..table.table import open_table
from ..timeline.watermark import spell_moment
from ..writer.routes import LOCATION
from .conditions.condition import Where, condition_predicates
from .merge.builder import MergeBuilder, Work, update
from .merge.matching import On
from .merge.target import MergeTarget
from .source.paths import AnyPath, absolute_for
from .table.creation import Columns, create_table
from .table.frames import Rows, to_frame
from .table.retries import Retries
from .table.sql import TableSql
from .table.streaming import TableStreams
from .table.writing import NOTHING_READ, MadeFrom, delete_partitions, write_placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPERATION, BASED_ON, MISSING_OK, PARTIAL, WRITE_ID = (
    OPTIONS[name].key for name in ("operation", "based_on", "delete_missing_ok", "partial_update", "write_id")
)
# A merge or an update upserts its rows, whatever the options say, and may move them to another partition.
_CHANGES = {
    OPERATION: "upsert",
    **{OPTIONS[name].key: "false" for name in ("insert_drop_duplicates", "colocated", "partial_update")},
    OPTIONS["insert_dup_policy"].key: "none",
    OPTIONS["update_partition_path"].key: "true",
}


class HudiTable(TableSql, TableStreams):
    """One Apache Hudi table in a Spark session.

    This process reads the table's properties and timeline itself, so it must reach the table's path, also on Spark
    Connect. The methods may be called from any thread, and writes may run at the same time.

    Args:
        spark: The session.
        path: The table's path. Spark's driver resolves a relative path and ``~``.
        options: Options of every read and write of this object.

    Raises:
        InvalidOptionError: ``spark`` is a path, or the path means nothing to Spark's driver.
        OptionError: An option is unknown, or its value is wrong.

    Examples:
        >>> table = HudiTable.create(spark, path, df, record_key="id", order_by="ts")  # doctest: +SKIP
        >>> table.upsert(df).inserts  # doctest: +SKIP
        >>> table.to_df().show()  # doctest: +SKIP
    """

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        path: AnyPath,
        schema: Columns,
        *,
        record_key: str | Sequence[str],
        partition_by: str | Sequence[str] = (),
        order_by: str | Sequence[str] = (),
        index: str | None = None,
        buckets: int | None = None,
        table_type: str | None = None,
        partial_update_mode: str | None = None,
        options: Mapping[str, Any] | None = None,
        if_not_exists: bool = False,
    ) -> HudiTable:
        """Create an empty table.

        Args:
            spark: The session.
            path: The path of the new table.
            schema: Its columns: a schema, DDL text, or rows that have the columns, as `upsert` takes them.
            record_key: The columns that identify a row within its partition. Empty for a table that generates its keys
                and takes inserts only.
            partition_by: The columns that the table is partitioned by.
            order_by: The ordering fields: of two rows with one key, the row with the greater values wins. Empty: the
                later row wins.
            index: The index that finds the row of a key: ``BUCKET``, the default, computes the file group; ``SIMPLE``,
                ``BLOOM``, ``GLOBAL_SIMPLE`` and ``GLOBAL_BLOOM`` look it up. Or the name of an index of an installed
                package.
            buckets: Buckets of every partition under the index BUCKET. The number cannot change later. None:
                `suggest_buckets` measures the rows in ``schema``, whose query it runs; without rows the table gets 8.
            table_type: ``COPY_ON_WRITE``, the default, or ``MERGE_ON_READ``, which appends updates to log files.
            partial_update_mode: Values of an upserted row that keep the stored value of their column: null under
                ``IGNORE_DEFAULTS``; under ``FILL_UNAVAILABLE`` a placeholder text, Debezium's unless
                ``hoodie.write.partial.update.unavailable.value`` names another. None: every value replaces the stored
                value.
            options: More options, by their keys. Options of the store and of an outside index apply to the returned
                object's methods too.
            if_not_exists: Whether to return an existing table at the path if it agrees with the arguments.

        Returns:
            The table.

        Raises:
            OptionConflictError: The path holds a table already (with ``if_not_exists``: a table that differs from the
                arguments), or two options disagree.
            InvalidOptionError: The value of an argument is invalid, such as an unknown index.
            NotATableError: The path holds something else.
            UnsupportedTypeError: A column has a type that a Hudi table cannot hold.
            MissingColumnError: The schema lacks a column that an argument names.
        """
        path = absolute_for(spark, path)
        create_table(
            spark,
            path,
            schema,
            record_key=record_key,
            partition_by=partition_by,
            order_by=order_by,
            index=index,
            buckets=buckets,
            table_type=table_type,
            partial_update_mode=partial_update_mode,
            options=options or {},
            if_not_exists=if_not_exists,
        )
        return cls(spark, path, {key: value for key, value in (options or {}).items() if _is_for_every_call(key)})

    @staticmethod
    def exists(spark: SparkSession, path: AnyPath, options: Mapping[str, Any] | None = None) -> bool:
        """Return whether a path holds a Hudi table.

        Args:
            spark: The session.
            path: The path.
            options: Options that reach the store.

        Returns:
            True for a table without commits, too.

        Raises:
            TableConfigError: The table's properties exist but cannot be used.
            StorageError: The store cannot be reached.
        """
        path = absolute_for(spark, path)
        given = resolve_options(options or {}, path, READING, session=spark).options
        try:
            return find_config(open_storage(path, given.storage_options)) is not None
        except NotATableError:
            return False

    def upsert(self, df: Rows, *, partial: bool = False, **options: Any) -> CommitResult:
        """Insert the rows whose keys are new and update the rows whose keys exist, as one instant.

        Where it pays, rows are first shuffled by file group (see `colocate`), so that executors do the merging.

        Args:
            df: Rows with the table's columns: a DataFrame of Spark or of pandas, or an Arrow table.
            partial: Whether the rows may lack columns of the table, whose stored values then stay. The rows need the
                record key, the partition columns and the ordering fields, and every key must exist in the table.
            options: Options of this write; pass keys with dots as ``**{"hoodie.…": value}``.

        Returns:
            The instant, and the counts of inserted, updated and deleted rows.

        Raises:
            KeyNotFoundError: A key of a partial upsert is not in the table, so its other columns are unknown.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "upsert", **({PARTIAL: True} if partial else {}), **options})

    def insert(self, df: Rows, **options: Any) -> CommitResult:
        """Add the rows, as one instant, without looking up their keys.

        Args:
            df: Rows with the table's columns.
            options: Options of this write. ``**{"hoodie.datasource.insert.dup.policy": "drop"}`` or ``"fail"`` looks
                keys up.

        Returns:
            The instant, and the number of inserted rows.

        Raises:
            DuplicateKeyError: The policy is ``fail``, and the table has a key already.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "insert", **options})

    def bulk_insert(self, df: Rows, **options: Any) -> CommitResult:
        """Add the rows, as one instant, without looking up their keys; files may be sorted.

        Args:
            df: Rows with the table's columns.
            options: Options of this write, such as ``hoodie.bulkinsert.sort.mode``.

        Returns:
            The instant, and the number of inserted rows.

        Raises:
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "bulk_insert", **options})

    def delete(
        self, which: Rows | Column | str | None = None, *, missing_ok: bool = True, **options: Any
    ) -> CommitResult:
        """Delete rows by their keys or by a condition, as one instant.

        pyhudi evaluates a condition on the newest snapshot, and deletes the rows that it finds by key. If another
        writer has changed an affected file group in the meantime, or has written a row for which the condition holds,
        the write fails with `CommitConflictError` and can be run again. With ``hoodie.pyhudi.isolation=snapshot`` such
        a row stays.

        Args:
            which: Rows with the record key and partition columns; other columns are ignored. A table that generates its
                keys needs the meta columns instead, as read from the table. Or a condition, as a Column or as SQL text.
            missing_ok: Whether keys may be absent from the table; the result counts them as ``not_found``.
            options: Options of this write.

        Returns:
            The instant, and the counts of deleted rows and of keys that the table lacks.

        Raises:
            KeyNotFoundError: A key is absent, and ``missing_ok`` is false.
            InvalidOptionError: ``which`` is absent, or Spark does not understand the condition.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        if which is None:
            raise InvalidOptionError(
                f"delete() of the table {self._path} got neither rows nor a condition.",
                "Call delete(keys) with rows of the keys, or delete('id = 7') with a condition as its first argument.",
            )
        given = {OPERATION: "delete", **({} if missing_ok else {MISSING_OK: False}), **options}
        table = open_table(self._storage)
        config = table.config
        fields = LOCATION if config.generates_keys else (*config.record_key_fields, *config.partition_fields)
        needed = dict.fromkeys(map(root_of, fields))
        if not isinstance(which, (Column, str)):
            keys = to_frame(self._spark, which)
            return self._write(keys.select(*(name for name in keys.columns if name in needed)), given)
        serializable = self._is_serializable(given, config)

        def attempt(write_id: str, past: PastAttempts) -> CommitResult:
            # Read the timeline before the rows, so that the conflict check covers every commit in between.
            moment = spell_moment(table.timeline().completed)
            rows = self.to_df(list(needed), where=which)
            again = {**given, WRITE_ID: write_id}
            if not serializable:
                return self._write(rows, again, MadeFrom(moment, past=past))
            read = ReadRows(condition_predicates(self._spark, which, with_meta(self._columns()), self._path))
            return self._write(rows, again, MadeFrom(moment, (read,), past=past))

        return self._retries(given).run(attempt)

    def merge(self, source: Rows, on: On = None) -> MergeBuilder:
        """Return a merge of rows into the table; add clauses to it, then execute it as one instant.

        `MergeBuilder.execute` compares the rows with the table as it is at that time. If another writer has changed an
        affected file group in the meantime, or rows that the clauses are about, it reads the table and the source
        again, for at most ``hoodie.pyhudi.write.retry.max.seconds``. With ``hoodie.pyhudi.isolation=snapshot``, rows
        that other writers add later stay.

        Args:
            source: Rows with any columns: a DataFrame of Spark or of pandas, or an Arrow table.
            on: How rows match: a condition, as SQL text or a Column over ``source.`` and ``target.`` columns; or one or
                several columns that both sides have; or None for the record key and the partition.

        Returns:
            The merge, without a clause yet.

        Raises:
            InvalidOptionError: The source is neither a DataFrame nor an Arrow table.

        Examples:
            >>> merge = table.merge(changes, "source.id = target.id")  # doctest: +SKIP
            >>> merge = merge.when_matched_delete("source.gone").when_matched_update_all()  # doctest: +SKIP
            >>> merge.when_not_matched_insert_all().execute()  # doctest: +SKIP
        """
        return MergeBuilder(
            Work(self._path, self._opened, self._write_changes, self._retries), to_frame(self._spark, source), on
        )

    def update(self, set: Mapping[str, Any], where: Where | None = None, **options: Any) -> CommitResult:
        """Change columns of the rows for which a condition holds, as one instant.

        pyhudi evaluates the condition on the newest snapshot, and again where another writer has changed an affected
        file group in the meantime, or has written a row for which the condition holds. With
        ``hoodie.pyhudi.isolation=snapshot`` such a row stays. A row whose key or partition changes moves.

        Args:
            set: The new values by column, or by field of a struct (``address.city``): SQL text, Columns over the
                table's columns, or plain values other than text.
            where: The condition: a Column, SQL text, or values by column name, as for `to_df`. None for all rows.
            options: Options of this write.

        Returns:
            The instant, and the number of updated rows.

        Raises:
            DuplicateKeyError: A row would get the key of another row.
            OlderRowError: A row would get a lesser ordering value.
            MissingColumnError: The table lacks a column.
            OptionConflictError: The table generates its keys.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return update(self._work, set, where, options)

    def insert_overwrite(self, df: Rows, **options: Any) -> CommitResult:
        """Replace all rows of the partitions that the given rows belong to, as one instant.

        Args:
            df: Rows with the table's columns. Without rows, nothing is replaced.
            options: Options of this write.

        Returns:
            The instant, and the number of inserted rows.

        Raises:
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "insert_overwrite", **options})

    def overwrite(self, df: Rows, **options: Any) -> CommitResult:
        """Replace all rows of the table, as one instant.

        Args:
            df: Rows with the table's columns. Without rows, the table becomes empty.
            options: Options of this write.

        Returns:
            The instant, and the number of inserted rows.

        Raises:
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, {OPERATION: "insert_overwrite_table", **options})

    def delete_partitions(self, *paths: str, **options: Any) -> CommitResult:
        """Delete all rows of partitions, as one instant, without a Spark job.

        Args:
            paths: Partition paths below the table's path (``2024/05``, ``country=de``). ``*`` matches any characters.
                In a path without ``*``, ``%2A`` does too, so a folder whose name contains ``%2A`` cannot be named
                alone. Paths that the table lacks are ignored.
            options: Options of this write.

        Returns:
            The instant of the deletion.

        Raises:
            InvalidOptionError: No partition is given.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        resolved = self._resolve({OPERATION: "delete_partition", **options}, WRITING, warn=True)
        done = delete_partitions(self._spark, self._path, resolved, paths)
        self._changed()
        return done

    @property
    def _work(self) -> Work:
        return Work(self._path, self._opened, self._write_changes, self._retries)

    def _opened(self, given: Mapping[str, Any]) -> MergeTarget:
        """Return the newest snapshot for a merge or an update with the options of a write."""
        options = self._resolve({**given, **_CHANGES}, WRITING).options
        request = options.to_write_request(self._path, pa.schema([]), overwrite=False)
        table = find_target(request, self._storage, creates=False).table
        # Read the timeline before the rows, so that the conflict check covers every commit in between.
        _, moment = seen_moment(table)
        is_global = index_for(table.config).is_global
        serializable = self._is_serializable({**given, **_CHANGES}, table.config)
        return MergeTarget(table, self._columns(), self.to_df(), moment, is_global, serializable)

    def _is_serializable(self, given: Mapping[str, Any], config: TableConfig) -> bool:
        level = self._resolve(given, WRITING).options.isolation or config.isolation
        return level == SERIALIZABLE

    def _retries(self, given: Mapping[str, Any]) -> Retries:
        return Retries.of(self._storage, self._resolve(given, WRITING).options)

    def _write_changes(self, df: DataFrame, given: Mapping[str, Any], made: MadeFrom) -> CommitResult:
        """Upsert rows that a merge or an update made from a snapshot."""
        return self._write(df, {**given, **_CHANGES}, made)

    def _write(self, df: Rows, given: Mapping[str, Any], made_from: MadeFrom = NOTHING_READ) -> CommitResult:
        df = to_frame(self._spark, df, self._columns)
        based_on = {BASED_ON: made_from.moment} if made_from.moment else {}
        resolved = self._resolve({**given, **based_on}, WRITING, warn=True)
        done = write_placed(df, self._path, self._storage, resolved, made_from=made_from)
        self._changed()
        return done


def _is_for_every_call(key: str) -> bool:
    return key.lower().startswith((STORAGE_PREFIX, INDEX_PREFIX))
