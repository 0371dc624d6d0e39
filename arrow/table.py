"""`pyhudi.arrow.Table`: one table without Spark, for rows as Arrow data."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ..errors import InvalidOptionError, MissingOptionError, OptionConflictError
from ..methods.creation import CreationTerms, create_table, holds_table
from ..methods.paths import AnyPath, absolute
from ..methods.upkeep import UpkeepMethods
from ..methods.writes import OPERATION, Rows
from ..operations.result import CommitResult
from ..options.names import OPTIONS
from ..options.sources import READING, WRITING, find_config, resolve_options
from .base import Timestamps, all_options, types_of
from .conditional_writes import ConditionalWrites
from .other_calls import TABLE_CALLS, TABLE_KEYWORDS
from .reads import ReadMethods
from .rows import given_rows

Mode: TypeAlias = Literal["upsert", "append", "overwrite", "error", "ignore"]
Columns: TypeAlias = "pa.Schema | Rows"
# None says that a table generates its keys, so it is no absent argument.
RecordKey: TypeAlias = "str | Sequence[str] | None"

_MODES = ("upsert", "append", "overwrite", "error", "ignore")
_ZONES = ("utc", "local")
_OPENED = "pyhudi.arrow.Table(path)"

logger = logging.getLogger("pyhudi.tables")


class Table(UpkeepMethods[pa.Table], ConditionalWrites, ReadMethods):
    """One Apache Hudi table, which this process reads and writes without Spark.

    The methods may be called from any thread, and writes may run at the same time, in other processes too.

    Args:
        path: The table's path; a relative path and ``~`` are resolved here.
        storage_options: Options of the table's store, such as keys of S3, by the names of its fsspec file system.
        options: Options of every read and write of this object.
        threads: How many threads a call takes at most; None for as many as the machine has cores.

    Raises:
        OptionError: An option is unknown, or its value is wrong.

    Examples:
        >>> table = Table.create("/data/trips", rows, record_key="id", order_by="ts")  # doctest: +SKIP
        >>> table.upsert(rows).inserts  # doctest: +SKIP
        >>> table.read(["id", "fare"], where="city = 'Rome'")  # doctest: +SKIP
    """

    _other_calls = TABLE_CALLS
    _other_keywords = TABLE_KEYWORDS

    @classmethod
    def create(
        cls,
        path: AnyPath,
        schema: Columns,
        *,
        record_key: RecordKey,
        partition_by: str | Sequence[str] = (),
        order_by: str | Sequence[str] = (),
        index: str | None = None,
        buckets: int | None = None,
        table_type: str | None = None,
        partial_update_mode: str | None = None,
        timestamps: Timestamps | None = None,
        storage_options: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        if_not_exists: bool = False,
        threads: int | None = None,
    ) -> Table:
        """Create an empty table.

        Args:
            path: The path of the new table.
            schema: Its columns: a schema of pyarrow, or rows that have the columns, as `upsert` takes them.
            record_key: The columns that identify a row within its partition. None for a table that generates its keys
                and takes inserts only.
            partition_by: The columns that the table is partitioned by.
            order_by: The ordering fields: of two rows with one key, the row with the greater values wins. Empty: the
                later row wins.
            index: The index that finds the row of a key: ``BUCKET``, the default, computes the file group; ``SIMPLE``,
                ``BLOOM``, ``GLOBAL_SIMPLE`` and ``GLOBAL_BLOOM`` look it up. Or the name of an index of an installed
                package.
            buckets: Buckets of every partition under the index BUCKET; None for 8.
            table_type: ``COPY_ON_WRITE``, the default, or ``MERGE_ON_READ``, which appends updates to log files.
            partial_update_mode: Values of an upserted row that keep the stored value of their column, as for
                `HudiTable.create`.
            timestamps: What columns of timestamps without a zone become: ``utc``, moments in UTC, or ``local``, which
                keeps them as they are, and hudi-rs cannot open the table. None: ``utc``, and a line of the log says so.
            storage_options: Options of the table's store.
            options: More options, by their keys. They apply to the returned object's methods too.
            if_not_exists: Whether to return an existing table at the path if it agrees with the arguments.
            threads: How many threads a call of the returned object takes at most.

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
        table_path, given_options = absolute(path), all_options(storage_options, options)
        terms = CreationTerms(record_key or (), partition_by, order_by, index, buckets, table_type, partial_update_mode)
        parsed = resolve_options({**given_options, **terms.options()}, table_path, WRITING, warn=True).options
        columns = schema if isinstance(schema, pa.Schema) else given_rows(schema).schema
        if columns is None:
            raise InvalidOptionError(
                f"The table {table_path} was to get the columns of an iterator without a batch.",
                "Give a pyarrow.Schema.",
            )
        types = types_of(columns, None, timestamps, table_path)
        create_table(table_path, parsed, lambda: types.schema, open_call=_OPENED, if_not_exists=if_not_exists)
        return cls(table_path, storage_options, options, threads=threads)

    @staticmethod
    def exists(
        path: AnyPath, storage_options: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None
    ) -> bool:
        """Return whether a path holds a Hudi table.

        Args:
            path: The path.
            storage_options: Options of the table's store.
            options: More options, by their keys.

        Returns:
            True for a table without commits, too.

        Raises:
            TableConfigError: The table's properties exist but cannot be used.
            StorageError: The store cannot be reached.
        """
        table_path = absolute(path)
        read_options = resolve_options(all_options(storage_options, options), table_path, READING).options
        return holds_table(table_path, read_options.storage_options)

    def write(
        self,
        df: Rows,
        mode: Mode = "append",
        *,
        record_key: RecordKey = "",
        partition_by: str | Sequence[str] = (),
        order_by: str | Sequence[str] = (),
        index: str | None = None,
        buckets: int | None = None,
        table_type: str | None = None,
        partial_update_mode: str | None = None,
        timestamps: Timestamps | None = None,
        **options: Any,
    ) -> CommitResult:
        """Write rows as one instant, and create the table with it if there is none.

        Args:
            df: Rows, as `upsert` takes them.
            mode: What to do with an existing table, as Spark's ``df.write.mode`` does: ``append`` carries out the
                option ``operation``, which is an upsert by default, and an insert if the table generates its keys;
                ``upsert`` is an upsert whatever the option says; ``overwrite`` replaces the table; ``error`` fails, and
                ``ignore`` writes nothing, if there is a table.
            record_key: The columns that identify a row; None for a table that generates its keys. A new table needs it.
            partition_by: The columns that a new table is partitioned by.
            order_by: The ordering fields of a new table.
            index: The index of a new table.
            buckets: Buckets of every partition of a new table.
            table_type: The type of a new table.
            partial_update_mode: The partial update mode of a new table.
            timestamps: What new columns of timestamps without a zone become, as for `create`.
            options: Options of this write; pass keys with dots as ``**{"hoodie.…": value}``.

        Returns:
            The instant, and the counts of inserted, updated and deleted rows; no instant if nothing was written.

        Raises:
            MissingOptionError: There is no table, and ``record_key`` is not given.
            OptionConflictError: The table is there and ``mode`` is ``error``, or it has another key, partition or order
                than the arguments say.
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        if mode not in _MODES:
            raise InvalidOptionError(
                f"A write to {self._path} got mode={mode!r}.", f"Choose among {', '.join(_MODES)}."
            )
        table_exists = find_config(self._storage) is not None
        if table_exists and mode == "error":
            raise OptionConflictError(
                f"There is a Hudi table at {self._path}, and mode is error.", "Use another mode, or another path."
            )
        if table_exists and mode == "ignore":
            return CommitResult(self._path, "", str(options.get("operation", "upsert")).upper())
        if not table_exists and record_key == "" and self._resolve(options, WRITING).options.record_key is None:
            raise self._lacks_key()
        terms = CreationTerms(record_key or (), partition_by, order_by, index, buckets, table_type, partial_update_mode)
        # If the argument is absent, the key of the options or of the table counts.
        of_table = terms.without_key() if record_key == "" else {**terms.key(), **terms.without_key()}
        write_options = _with_operation(mode, of_table, options)
        return self._write_rows(df, write_options, timestamps, creates=not table_exists, overwrite=mode == "overwrite")

    def append(self, df: Rows, **options: Any) -> CommitResult:
        """Write rows as ``df.write.mode("append")`` of Spark does: an upsert, or an insert if keys are generated.

        Args:
            df: Rows with the table's columns. ``insert`` adds them without looking their keys up.
            options: Options of this write, such as ``operation``.

        Returns:
            The instant, and the counts of inserted, updated and deleted rows.

        Raises:
            PyHudiError: The write failed as a whole; the class says what the caller can do.
        """
        return self._write(df, options)

    def _lacks_key(self) -> MissingOptionError:
        """Return the error for a write that has to make the table, but does not say what identifies a row."""
        return MissingOptionError(
            f"There is no table at {self._path} yet, and record_key, which a new table needs, is not given."
            f"{self._hint_at_table_above()}",
            "Give record_key, the columns that identify a row, or record_key=None for a table that generates its keys "
            "and takes no upserts; or correct the path.",
        )


def _with_operation(mode: Mode, of_table: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a write, whose operation is mode upsert, else the user's, else the default for the key.

    ``of_table`` has the options that the other arguments of the call set, with that default.
    """
    operation_names = [name for name in options if name.lower() in OPTIONS["operation"].keys]
    if mode == "upsert":
        return {**of_table, **{name: options[name] for name in options if name not in operation_names}, OPERATION: mode}
    return {
        **(of_table if not operation_names else {name: of_table[name] for name in of_table if name != OPERATION}),
        **options,
    }
