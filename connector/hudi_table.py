"""`HudiTable`: the session's view of one table, for jobs of any size, classic Spark or Spark Connect alike."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from ..errors import OptionConflictError
from ..operations.history import history, last_commit
from ..operations.plan import plan_write
from ..operations.result import CommitResult
from ..reader.query import AS_OF, BEGIN, END
from ..reader.snapshot import open_snapshot
from ..storage import Storage, open_storage
from ..table import options as properties
from ..table.config import TableConfig, create_config, load_config
from ..table.fields import root_of
from ..table.schema import avro_schema
from ..timeline.timeline import load_timeline
from ..timeline.watermark import spell_moment
from ..writer.routes import LOCATION
from .datasource import PyHudiDataSource, absolute
from .explain import ExplainedOptions, explain
from .option_catalogue import Scope
from .option_names import OPTIONS
from .option_sources import DEFAULTS_ENABLED, READING, WRITING, ResolvedOptions, find_config, resolve_options
from .options import texts_of
from .parquet_scan import lacks_file_system, scan_files
from .placed_write import delete_partitions, write_placed
from .read_options import QUERY_TYPE
from .secrets import STORAGE_PREFIX
from .spark_types import select, to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPERATION, BASED_ON, MISSING_OK = (OPTIONS[name].key for name in ("operation", "based_on", "delete_missing_ok"))


logger = logging.getLogger("pyhudi")


class HudiTable:
    """One Apache Hudi table, as a Spark session works with it.

    This process reads the table's properties and timeline itself, so it must reach the table's path, on Spark Connect
    too.

    Args:
        spark: The session.
        path: The table's path.
        options: Options of every read and write made here.

    Examples:
        >>> table = HudiTable.create(spark, path, df, record_key="id", order_by="ts")  # doctest: +SKIP
        >>> table.upsert(df).inserts  # doctest: +SKIP
        >>> table.to_df().show()  # doctest: +SKIP
    """

    def __init__(self, spark: SparkSession, path: str, options: Mapping[str, Any] | None = None) -> None:
        self._spark = spark
        self._path = absolute(path)
        self._options = dict(options or {})
        self._storage = open_storage(self._path, self.storage_options)

    def __repr__(self) -> str:
        return f"HudiTable({self._path!r})"

    @property
    def path(self) -> str:
        """The table's path."""
        return self._path

    @property
    def storage_options(self) -> Mapping[str, str]:
        """What reaches the table's store: ``hoodie.pyhudi.storage.*`` without that prefix."""
        return self._resolve({}, READING).options.storage_options

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        path: str,
        schema: StructType | DataFrame | str,
        *,
        record_key: str | Sequence[str],
        partition_by: str | Sequence[str] = (),
        order_by: str | Sequence[str] = (),
        buckets: int = 8,
        options: Mapping[str, Any] | None = None,
    ) -> HudiTable:
        """Create an empty table.

        Args:
            spark: The session.
            path: Where the table will be.
            schema: Its columns: a schema, its DDL text, or a DataFrame that has them.
            record_key: The columns that identify a row within its partition; none for keys that are generated, with
                which a table takes inserts and no upserts.
            partition_by: The columns that the table is partitioned by.
            order_by: The columns whose greater values win when two rows have one key, compared one after another;
                none for the later row.
            buckets: Buckets of every partition, fixed for good; see `suggest_buckets`.
            options: More options, by their keys.

        Raises:
            OptionConflictError: There is a table at the path already, or two options contradict each other.
            NotATableError: The path holds something else.
            UnsupportedTypeError: A column has a type that a Hudi table cannot hold.
            MissingColumnError: A column that an argument names is not in the schema.
        """
        keyed = {"recordkey": _names(record_key), "buckets": buckets} if record_key else {OPERATION: "insert"}
        named = {**keyed, "partitionby": _names(partition_by), **({"orderby": _names(order_by)} if order_by else {})}
        given = {**(options or {}), **named}
        path = absolute(path)
        parsed = resolve_options(given, path, WRITING, session=spark, warn=True).options
        storage = open_storage(path, parsed.storage_options)
        if find_config(storage) is not None:
            raise _exists(path)
        plan = plan_write(parsed.to_write_request(path, to_arrow(_schema_of(spark, schema)), overwrite=False))
        columns = avro_schema(plan.schema, plan.config.name)
        if not create_config(storage, TableConfig({**plan.config.properties, properties.CREATE_SCHEMA: columns})):
            raise _exists(path)
        _make_timeline_folder(storage, plan.config)
        return cls(spark, path, {key: value for key, value in (options or {}).items() if _is_for_storage(key)})

    def upsert(self, df: DataFrame, **options: Any) -> CommitResult:
        """Insert the rows whose keys are new and update the others, as one instant.

        The rows are placed by file group first (see `colocate`), so that executors do all the merging.

        Args:
            df: Rows with the table's columns.
            options: Options of this write; keys with dots are passed as ``**{"hoodie.…": value}``.

        Raises:
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return self._write(df, {OPERATION: "upsert", **options})

    def insert(self, df: DataFrame, **options: Any) -> CommitResult:
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

    def bulk_insert(self, df: DataFrame, **options: Any) -> CommitResult:
        """Add the rows, as one instant, without looking whether their keys are there; files may be sorted.

        Args:
            df: Rows with the table's columns.
            options: Options of this write, among them ``hoodie.bulkinsert.sort.mode``.

        Raises:
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return self._write(df, {OPERATION: "bulk_insert", **options})

    def delete(self, which: DataFrame | Column | str, *, missing_ok: bool = True, **options: Any) -> CommitResult:
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
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        given = {OPERATION: "delete", **({} if missing_ok else {MISSING_OK: False}), **options}
        config = load_config(self._storage)
        fields = LOCATION if config.generates_keys else (*config.record_key_fields, *config.partition_fields)
        needed = dict.fromkeys(map(root_of, fields))
        if isinstance(which, DataFrame):
            return self._write(which.select(*(name for name in which.columns if name in needed)), given)
        # Asked for before the rows are read, so that nothing between the two can be overlooked.
        moment = spell_moment(load_timeline(self._storage, config).completed)
        rows = self.to_df().where(which).select(*needed)
        return self._write(rows, {**given, BASED_ON: moment})

    def insert_overwrite(self, df: DataFrame, **options: Any) -> CommitResult:
        """Replace all rows of the partitions that the given rows belong to, as one instant.

        Args:
            df: Rows with the table's columns; without any, nothing is replaced.
            options: Options of this write.

        Raises:
            PyHudiError: The write failed as a whole; the class says what can be done.
        """
        return self._write(df, {OPERATION: "insert_overwrite", **options})

    def overwrite(self, df: DataFrame, **options: Any) -> CommitResult:
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
        return delete_partitions(self._spark, self._path, resolved, paths)

    def to_df(
        self,
        columns: Sequence[str] | None = None,
        *,
        as_of: str | date | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
    ) -> DataFrame:
        """Return the table, as it was, or what changed in it, read by Spark's own Parquet reader.

        The DataFrame is fixed: it shows the table as it is now, whatever is written later. Times are spelled as in the
        options ``as.of.instant`` and ``hoodie.datasource.read.begin.instanttime``, or are a ``datetime``, of which a
        naive one is written in the zone of the table's timeline. Where Spark itself has no access to
        the table's store (S3 without hadoop-aws), the data source reads instead.

        Args:
            columns: The columns to show, in this order; None for all, the meta columns first.
            as_of: Shows the table with what was requested until this time.
            since: Shows the rows alone that commits wrote which completed after this time; ``earliest`` for all.
            until: Shows those that completed until this time, as they were then; None for now.

        Raises:
            MissingColumnError: The table has no such column.
            InvalidOptionError: A time is none.
            OptionConflictError: ``as_of`` is given with ``since``, or ``until`` without it.
            UnreadableTimeError: The table's past is not kept so far back.
        """
        asked = {QUERY_TYPE: since and "incremental", AS_OF: as_of, BEGIN: since, END: until}
        resolved = self._resolve(asked, READING)
        options = resolved.options
        snapshot = open_snapshot(self._path, options.storage_options, query=options.to_query())
        wanted = snapshot.schema if columns is None else select(snapshot.schema, columns, self._path)
        if not self._storage.remote:
            return scan_files(self._spark, snapshot, wanted)
        try:
            frame = scan_files(self._spark, snapshot, wanted)
            # Spark Connect looks for the files no earlier than somebody asks.
            _ = frame.schema
        except Exception as error:
            if not lacks_file_system(error):
                raise
            logger.info("table %s: Spark has no access to its store, so that the data source reads it", self._path)
            return self._read(resolved, wanted.names)
        return frame

    def history(self) -> DataFrame:
        """Return one row for every instant of the active timeline, newest first.

        Returns:
            The columns instant, action, state, completed, operation, inserts, updates, deletes, files and bytes.
        """
        return self._spark.createDataFrame(history(self._storage))

    def last_commit(self) -> CommitResult | None:
        """Return what the newest completed write did, whoever made it; None where there is none."""
        return last_commit(self._storage)

    def explain_options(self, *, defaults: bool = True, **options: Any) -> ExplainedOptions:
        """Return each option as it stands for this table, and where its value comes from.

        Printed it is a table; a notebook shows it as one. Values come from what was given here, from the session
        (``spark.conf.set("hoodie.…", …)``), from ``hudi-defaults.conf``, from the table, or are defaults.

        Args:
            defaults: Whether options that nobody set are listed too.
            options: Options as one would give them to a write.

        Raises:
            OptionError: One of the options cannot be used.
        """
        given = {"path": self._path, **options}
        resolved = self._resolve(given, READING | WRITING)
        return explain(resolved, find_config(self._storage), defaults=defaults)

    def _read(self, resolved: ResolvedOptions, columns: Sequence[str]) -> DataFrame:
        """Return a DataFrame of the data source."""
        # The defaults file is in what was resolved.
        options = {**resolved.texts, DEFAULTS_ENABLED: "false", "columns": ",".join(columns)}
        return self._spark.read.format(PyHudiDataSource.name()).options(**options).load(self._path)

    def _resolve(self, given: Mapping[str, Any], scopes: frozenset[Scope], *, warn: bool = False) -> ResolvedOptions:
        said = {**texts_of(self._options), **texts_of(given)}
        return resolve_options(said, self._path, scopes, session=self._spark, warn=warn)

    def _write(self, df: DataFrame, given: Mapping[str, Any]) -> CommitResult:
        return write_placed(df, self._path, self._storage, self._resolve(given, WRITING, warn=True))


def _names(columns: str | Sequence[str]) -> str:
    return columns if isinstance(columns, str) else ",".join(columns)


def _schema_of(spark: SparkSession, schema: StructType | DataFrame | str) -> StructType:
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        schema = spark.createDataFrame([], schema)
    return schema.schema


def _exists(path: str) -> OptionConflictError:
    return OptionConflictError(
        f"There is a Hudi table at {path} already.", "Open it with HudiTable(spark, path), or choose another path."
    )


def _make_timeline_folder(storage: Storage, config: TableConfig) -> None:
    """Make the folder of the timeline, without which Apache Hudi fails to open a table, by a file that goes again."""
    placeholder = f"{config.timeline_folder}/.created"
    storage.create(placeholder, b"")
    storage.delete(placeholder)


def _is_for_storage(key: str) -> bool:
    return key.lower().startswith(STORAGE_PREFIX)
