"""`HudiTable`: one table in a Spark session, for writes and reads of any size, on classic Spark and Spark Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..index.registry import index_for
from ..methods.creation import CreationTerms, holds_table
from ..methods.other_keywords import argument_or_condition
from ..methods.paths import AnyPath
from ..methods.writes import CHANGES, Rows
from ..operations.planning.pinned import seen_moment
from ..operations.planning.target import find_target
from ..operations.result import CommitResult
from ..options.lookup import INDEX_PREFIX
from ..options.secrets import STORAGE_PREFIX
from ..options.sources import READING, WRITING, resolve_options
from ..table.schema.columns import without_meta
from .conditions.condition import Where
from .merge.builder import MergeBuilder, Work, update
from .merge.matching import On
from .merge.target import MergeTarget
from .source.paths import absolute_for
from .table.creation import Columns, create_table
from .table.frames import to_frame
from .table.made_from import MadeFrom
from .table.shown_rows import AskedRows
from .table.sql import TableSql
from .table.streaming import TableStreams
from .table.writes import TableWrites

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class HudiTable(TableWrites, TableSql, TableStreams):
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
            buckets: Buckets of every partition under the index BUCKET; `rescale_buckets` changes the number later.
                None: `suggest_buckets` measures the rows in ``schema``, whose query it runs; without rows the table
                gets 8.
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
        terms = CreationTerms(record_key, partition_by, order_by, index, buckets, table_type, partial_update_mode)
        create_table(spark, path, schema, terms, options or {}, if_not_exists=if_not_exists)
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
        read_options = resolve_options(options or {}, path, READING, session=spark).options
        return holds_table(path, read_options.storage_options)

    def merge(self, source: Rows, on: On = None, *, condition: On = None) -> MergeBuilder:
        """Return a merge of rows into the table; add clauses to it, then execute it as one instant.

        `MergeBuilder.execute` compares the rows with the table as it is at that time. If another writer has changed an
        affected file group in the meantime, or rows that the clauses are about, it reads the table and the source
        again, for at most ``hoodie.pyhudi.write.retry.max.seconds``. With ``hoodie.pyhudi.isolation=snapshot``, rows
        that other writers add later stay.

        Args:
            source: Rows with any columns: a DataFrame of Spark or of pandas, or an Arrow table.
            on: How rows match: a condition, as SQL text or a Column over ``source.`` and ``target.`` columns; or one or
                several columns that both sides have; or None for the record key and the partition.
            condition: Delta Lake's name for ``on``.

        Returns:
            The merge, without a clause yet.

        Raises:
            InvalidOptionError: The source is neither a DataFrame nor an Arrow table, or ``on`` and ``condition`` are
                given both.

        Examples:
            >>> merge = table.merge(changes, "source.id = target.id")  # doctest: +SKIP
            >>> merge = merge.when_matched_delete("source.gone").when_matched_update_all()  # doctest: +SKIP
            >>> merge.when_not_matched_insert_all().execute()  # doctest: +SKIP
        """
        matches = argument_or_condition("merge()", "on", on, condition)
        return MergeBuilder(self._work, to_frame(self._spark, source), matches)

    def update(
        self, set: Mapping[str, Any], where: Where | None = None, *, condition: Where | None = None, **options: Any
    ) -> CommitResult:
        """Change columns of the rows for which a condition holds, as one instant.

        pyhudi evaluates the condition on the newest snapshot, and again if another writer has changed an affected
        file group in the meantime, or has written a row for which the condition holds. With
        ``hoodie.pyhudi.isolation=snapshot`` such a row stays. A row whose key or partition changes moves.

        Args:
            set: The new values by column, or by field of a struct (``address.city``): SQL text, Columns over the
                table's columns, or plain values other than text.
            where: The condition: a Column, SQL text, or values by column name, as for `to_df`. None for all rows.
            condition: Delta Lake's name for ``where``.
            options: Options of this write.

        Returns:
            The instant, and the number of updated rows.

        Raises:
            DuplicateKeyError: A row would get the key of another row, or the table has several rows of a key.
            OlderRowError: A row would get a lesser ordering value.
            MissingColumnError: The table lacks a column.
            InvalidOptionError: ``where`` and ``condition`` are given both.
            OptionConflictError: The table generates its keys.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return update(self._work, set, argument_or_condition("update()", "where", where, condition), options)

    @property
    def _work(self) -> Work:
        return Work(self._path, self._open_target, self._write_changes, self._retries)

    def _open_target(self, options_of_write: Mapping[str, Any]) -> MergeTarget:
        """Return the newest snapshot for a merge or an update with the options of a write."""
        options = self._resolve({**options_of_write, **CHANGES}, WRITING).options
        # Only for the checks of the table; the columns of the rows are not known yet.
        request = options.to_write_request(self._path, pa.schema([]), overwrite=False)
        table = find_target(request, self._storage, creates=False).table
        # Read the timeline before the rows, so that the conflict check covers every commit in between.
        _, moment = seen_moment(table)
        is_global = index_for(table.config).is_global
        serializable = self._is_serializable({**options_of_write, **CHANGES}, table.config)
        rows = self._find_rows(AskedRows(newest=True))
        schema = without_meta(rows.snapshot.schema)
        return MergeTarget(table, schema, moment, is_global, serializable, rows)

    def _write_changes(self, df: DataFrame, options_of_write: Mapping[str, Any], made_from: MadeFrom) -> CommitResult:
        """Upsert rows that a merge or an update made from a snapshot."""
        return self._write(df, {**options_of_write, **CHANGES}, made_from)


def _is_for_every_call(key: str) -> bool:
    """Return whether an option reaches the store or an outside index, and so serves all later calls of the table."""
    return key.lower().startswith((STORAGE_PREFIX, INDEX_PREFIX))
