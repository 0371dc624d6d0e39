"""`HudiTable`: the session's view of one table, for jobs of any size, classic Spark or Spark Connect alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column

from ..errors import InvalidOptionError, NotATableError
from ..index.registry import index_for
from ..operations.planning.plan import seen_moment
from ..operations.planning.target import find_target
from ..operations.result import CommitResult, RowCounts
from ..options.lookup import INDEX_PREFIX
from ..options.names import OPTIONS
from ..options.secrets import STORAGE_PREFIX
from ..options.sources import READING, WRITING, find_config, resolve_options
from ..storage import open_storage
from ..table.schema.fields import root_of
from ..table.table import open_table
from ..timeline.watermark import spell_moment
from ..writer.routes import LOCATION
from .conditions.condition import Where
from .merge.builder import MergeBuilder, Work, update
from .merge.matching import On
from .merge.target import MergeTarget
from .source.paths import AnyPath, absolute_for
from .table.creation import Columns, create_table
from .table.frames import Rows, to_frame
from .table.sql import TableSql
from .table.upkeep import TableUpkeep
from .table.writing import delete_partitions, write_placed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPERATION, BASED_ON, MISSING_OK, PARTIAL = (
    OPTIONS[name].key for name in ("operation", "based_on", "delete_missing_ok", "partial_update")
)
# Rows that were made from the table's own are upserted and nothing else, wherever they are going to be.
_CHANGES = {
    OPERATION: "upsert",
    **{OPTIONS[name].key: "false" for name in ("insert_drop_duplicates", "colocated", "partial_update")},
    OPTIONS["insert_dup_policy"].key: "none",
    OPTIONS["update_partition_path"].key: "true",
}


class HudiTable(TableSql, TableUpkeep):
    """One Apache Hudi table, as a Spark session works with it.

    This process reads the table's properties and timeline itself, so it must reach the table's path, on Spark Connect
    too. Its methods may be called in any thread, and several writes run at once where they are to several tables.

    Args:
        spark: The session.
        path: The table's path; a relative one, or ``~``, is what it is for Spark's driver.
        options: Options of every read and write made here.

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
            path: Where the table will be.
            schema: Its columns: a schema, its DDL text, or rows that have them, as `upsert` takes them.
            record_key: The columns that identify a row within its partition; none for generated keys and inserts alone.
            partition_by: The columns that the table is partitioned by.
            order_by: The columns whose greater values win when two rows have one key; none for the later row.
            index: How the row of a key is found: ``BUCKET``, the default, computes it; ``SIMPLE``, ``BLOOM``,
                ``GLOBAL_SIMPLE`` and ``GLOBAL_BLOOM`` look it up; or one that an installed package offers.
            buckets: Buckets of every partition, of the index BUCKET, fixed for good. Without it, `suggest_buckets`
                chooses them by the rows in ``schema``, whose query it runs; there are 8 without such rows.
            table_type: ``COPY_ON_WRITE``, the default, or ``MERGE_ON_READ``, which appends updates to log files.
            partial_update_mode: Which values of an upserted row leave a column to the older row of its key:
                ``IGNORE_DEFAULTS`` for null, ``FILL_UNAVAILABLE`` for a text that stands for no value, Debezium's
                unless ``hoodie.write.partial.update.unavailable.value`` names another; none without it.
            options: More options, by their keys. Those of the store, and of an index of a package, hold for the table's
                methods too.
            if_not_exists: Whether to return a table that is at the path already and agrees with the arguments.

        Raises:
            OptionConflictError: There is a table at the path already, or one that differs; or two options disagree.
            InvalidOptionError: An argument makes no sense, such as an unknown index.
            NotATableError: The path holds something else.
            UnsupportedTypeError: A column has a type that a Hudi table cannot hold.
            MissingColumnError: A column that an argument names is not in the schema.
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
        """Return whether there is a Hudi table at a path; an empty one counts.

        Args:
            spark: The session.
            path: Where to look.
            options: Options that reach the store.

        Raises:
            TableConfigError: There are properties of a table, and they cannot be used.
            StorageError: The store cannot be reached.
        """
        path = absolute_for(spark, path)
        given = resolve_options(options or {}, path, READING, session=spark).options
        try:
            return find_config(open_storage(path, given.storage_options)) is not None
        except NotATableError:
            return False

    def upsert(self, df: Rows, *, partial: bool = False, **options: Any) -> CommitResult:
        """Insert the rows whose keys are new and update the others, as one instant.

        The rows are placed by file group first (see `colocate`), so that executors do all the merging.

        Args:
            df: Rows with the table's columns: a DataFrame of Spark or of pandas, or an Arrow table.
            partial: Whether the rows may lack columns of the table, which then stay as they are. They need those of the
                record key, the partition and the order, and every key must be in the table.
            options: Options of this write; keys with dots are passed as ``**{"hoodie.…": value}``.

        Raises:
            KeyNotFoundError: A key of a partial upsert is absent, so that nobody knows its other columns.
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return self._write(df, {OPERATION: "upsert", **({PARTIAL: True} if partial else {}), **options})

    def insert(self, df: Rows, **options: Any) -> CommitResult:
        """Add the rows, as one instant, without looking whether their keys are there.

        Args:
            df: Rows with the table's columns.
            options: Options of this write, among them ``**{"hoodie.datasource.insert.dup.policy": "drop"}`` or
                ``"fail"``, by which keys are looked up.

        Raises:
            DuplicateKeyError: A key is there, and the policy is to fail.
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return self._write(df, {OPERATION: "insert", **options})

    def bulk_insert(self, df: Rows, **options: Any) -> CommitResult:
        """Add the rows, as one instant, without looking whether their keys are there; files may be sorted.

        Args:
            df: Rows with the table's columns.
            options: Options of this write, among them ``hoodie.bulkinsert.sort.mode``.

        Raises:
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return self._write(df, {OPERATION: "bulk_insert", **options})

    def delete(
        self, which: Rows | Column | str | None = None, *, missing_ok: bool = True, **options: Any
    ) -> CommitResult:
        """Delete the rows of these keys, or those for which a condition holds, as one instant.

        A condition is asked of the newest snapshot, and the rows found are deleted by key. A row that another writer
        adds after that snapshot stays. Where another writer has changed a file group that this one deletes from, the
        write fails with `CommitConflictError` and can be run again.

        Args:
            which: Rows with the record key and partition columns, of which other columns are ignored; a table that
                generates its keys needs the meta columns instead, as they were read from it. Or a condition, as a
                column or as SQL text.
            missing_ok: Whether a key may be absent; such keys are counted as ``not_found``.
            options: Options of this write.

        Raises:
            KeyNotFoundError: A key is absent and must not be.
            InvalidOptionError: Spark cannot make out the condition.
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        if which is None:
            raise InvalidOptionError(
                f"delete() of the table {self._path} was not given which rows to delete.",
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
        # Asked for before the rows are read, so that nothing between the two can be overlooked.
        moment = spell_moment(table.timeline().completed)
        rows = self.to_df(list(needed), where=which)
        return self._write(rows, {**given, BASED_ON: moment})

    def merge(self, source: Rows, on: On = None) -> MergeBuilder:
        """Return a merge of rows into the table, to which clauses are added before it is carried out as one instant.

        Rows are compared with the table as it is when `MergeBuilder.execute` is called. What other writers add after
        that stays; where one has changed a file group that the merge changes, it fails with `CommitConflictError` and
        can be run again. The source is evaluated once.

        Args:
            source: Rows with any columns: a DataFrame of Spark or of pandas, or an Arrow table.
            on: How rows match: a condition, as SQL text or a Column over ``source.`` and ``target.`` columns; one or
                several columns that both have; None for the record key and the partition.

        Raises:
            OptionConflictError: The table generates its keys.

        Examples:
            >>> merge = table.merge(changes, "source.id = target.id")  # doctest: +SKIP
            >>> merge = merge.when_matched_delete("source.gone").when_matched_update_all()  # doctest: +SKIP
            >>> merge.when_not_matched_insert_all().execute()  # doctest: +SKIP
        """
        return MergeBuilder(Work(self._path, self._opened, self._write_changes), to_frame(self._spark, source), on)

    def update(self, set: Mapping[str, Any], where: Where | None = None, **options: Any) -> CommitResult:
        """Change columns of the rows for which a condition holds, as one instant.

        The condition is asked of the table as it is now. A row whose key or partition changes moves. Where another
        writer has changed a file group since that this one changes, the write fails with `CommitConflictError` and can
        be run again.

        Args:
            set: The new values by column, or by field of a struct (``address.city``): SQL text or Columns over the
                table's columns, or values that are no text.
            where: The condition, as a column or as SQL text, or values by the names of columns as for `to_df`; None for
                all rows.
            options: Options of this write.

        Raises:
            DuplicateKeyError: A row would get the key of another one.
            OlderRowError: A row would get a lesser ordering value.
            MissingColumnError: The table has no such column.
            OptionConflictError: The table generates its keys.
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return update(Work(self._path, self._opened, self._write_changes), set, where, options)

    def insert_overwrite(self, df: Rows, **options: Any) -> CommitResult:
        """Replace all rows of the partitions that the given rows belong to, as one instant.

        Args:
            df: Rows with the table's columns; without any, nothing is replaced.
            options: Options of this write.

        Raises:
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return self._write(df, {OPERATION: "insert_overwrite", **options})

    def overwrite(self, df: Rows, **options: Any) -> CommitResult:
        """Replace all rows of the table, as one instant.

        Args:
            df: Rows with the table's columns; without any, the table is emptied.
            options: Options of this write.

        Raises:
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return self._write(df, {OPERATION: "insert_overwrite_table", **options})

    def delete_partitions(self, *paths: str, **options: Any) -> CommitResult:
        """Delete all rows of partitions, as one instant; no Spark job is needed.

        Args:
            paths: Partition paths below the table's (``2024/05``, ``country=de``), with ``*`` for anything, or ``%2A``
                in a path without ``*``, so that a folder whose name holds ``%2A`` cannot be named alone; those that the
                table does not have are passed over.
            options: Options of this write.

        Raises:
            InvalidOptionError: No partition is named.
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        resolved = self._resolve({OPERATION: "delete_partition", **options}, WRITING, warn=True)
        done = delete_partitions(self._spark, self._path, resolved, paths)
        self._changed()
        return done

    def _opened(self, given: Mapping[str, Any]) -> MergeTarget:
        """Return the table as it is now, for rows to be changed by conditions."""
        options = self._resolve({**given, **_CHANGES}, WRITING).options
        request = options.to_write_request(self._path, pa.schema([]), overwrite=False)
        table = find_target(request, self._storage, creates=False).table
        # Asked for before the rows are read, so that nothing between the two can be overlooked.
        _, moment = seen_moment(table)
        is_global = index_for(table.config).is_global
        return MergeTarget(table, self._columns(), self.to_df(), moment, is_global)

    def _write_changes(self, df: DataFrame, given: Mapping[str, Any], moment: str, counted: RowCounts) -> CommitResult:
        """Upsert rows that were made from the table's own at one moment."""
        resolved = self._resolve({**given, **_CHANGES, BASED_ON: moment}, WRITING, warn=True)
        done = write_placed(df, self._path, self._storage, resolved, counted=counted)
        self._changed()
        return done

    def _write(self, df: Rows, given: Mapping[str, Any]) -> CommitResult:
        df = to_frame(self._spark, df, self._columns)
        done = write_placed(df, self._path, self._storage, self._resolve(given, WRITING, warn=True))
        self._changed()
        return done


def _is_for_every_call(key: str) -> bool:
    return key.lower().startswith((STORAGE_PREFIX, INDEX_PREFIX))
