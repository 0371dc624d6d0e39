"""The data source ``pyhudi`` behind ``spark.read.format`` and ``df.write.format``: thin and quick to import."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import NullType, StructField, StructType

from ..errors import MissingOptionError, OptionConflictError, UnsupportedOptionError
from ..methods.paths import absolute
from .source.paths import BUCKETS, FORMAT, OF_WRITES, ONLY_PATH, PINNED, SOUGHT, WHERE, WHOLE

# Options of a streaming query that Spark passes on.
_CHECKPOINT = "checkpointlocation"
_OF_SPARK = (_CHECKPOINT, "queryname")

if TYPE_CHECKING:
    import pyarrow as pa

    from ..options.model import HudiOptions
    from ..reader.buckets.bucket_groups import BucketChoice
    from ..timeline.watermark import Watermark


class PyHudiDataSource(DataSource):
    """Spark's data source for Apache Hudi tables; its options are those of `pyhudi.options.model.HudiOptions`.

    Args:
        options: The options, which Spark passes.

    Examples:
        >>> df.write.format("pyhudi").option("recordkey", "id").mode("append").save(path)  # doctest: +SKIP
        >>> spark.read.format("pyhudi").load(path)  # doctest: +SKIP
    """

    # The moment of the snapshot that `schema` opened. Spark pickles the source afterwards, so every action on one
    # DataFrame reads the same file slices.
    _pinned: Watermark | None = None
    # The columns of that snapshot. Finding them again may mean reading a large commit.
    _columns: pa.Schema | None = None
    # Whether this is a copy that Spark sent to another process. The process that commits a stream's batches has one.
    _sent = False

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _sent=True)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format.

        Returns:
            ``pyhudi``.
        """
        return FORMAT

    def schema(self) -> StructType:
        """Return the table's columns, or those in the option ``columns``, and pin the moment of the read.

        Returns:
            The columns, all nullable.

        Raises:
            OptionError: The path or an option cannot be used.
            MissingColumnError: The table lacks a column of the option ``columns``.
            TableError: The table cannot be read.
        """
        # `absolute_for` asks for the path: the name of the only column is the answer.
        if ONLY_PATH in self.options:
            return StructType([StructField(self._path(), NullType())])
        from ..reader.snapshot import open_snapshot  # noqa: PLC0415 (Spark imports this module at each look-up)
        from ..table.schema.columns import without_meta  # noqa: PLC0415
        from .source.spark_types import select, to_spark  # noqa: PLC0415

        options, path = self._options_and_path(reading=True)
        pinned = self._carried_moment()
        snapshot = open_snapshot(
            path,
            options.storage_options,
            pinned,
            options.to_query(),
            bases_alone=options.bases_alone,
            file_search=options.file_search,
        )
        self._pinned = pinned or snapshot.timeline.watermark()
        self._columns = snapshot.schema
        if options.columns is not None:
            return to_spark(select(snapshot.schema, options.columns, path))
        return to_spark(snapshot.schema if options.meta else without_meta(snapshot.schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the pinned snapshot.

        Args:
            schema: The columns to read: the user's schema, or the result of `schema`.

        Returns:
            The reader.

        Raises:
            OptionConflictError: The option ``columns`` names other columns than the user's schema.
            MissingColumnError: The table lacks a column.
            SchemaMismatchError: A column has another type in the table.
            PyHudiError: The options or the table cannot be used.
        """
        from ..reader.snapshot import open_snapshot  # noqa: PLC0415
        from .source.carried_options import parse_predicates  # noqa: PLC0415
        from .source.reader import kind_of_reader  # noqa: PLC0415
        from .source.spark_types import requested_schema  # noqa: PLC0415

        options, path = self._options_and_path(reading=True)
        _refuse_other_columns(options, schema, path)
        moment = self._carried_moment()
        snapshot = open_snapshot(
            path,
            options.storage_options,
            moment or self._pinned,
            options.to_query(),
            bases_alone=options.bases_alone,
            file_search=options.file_search,
            schema=self._columns,
        )
        sought_text = self._carried_text(SOUGHT)
        if sought_text is not None:
            from .source.carried_options import parse_sought  # noqa: PLC0415
            from .source.sought_reader import SoughtReader  # noqa: PLC0415

            columns = requested_schema(snapshot.schema, schema, path)
            return SoughtReader(snapshot, columns, options, parse_sought(sought_text))
        predicates_text = self._carried_text(WHERE)
        return kind_of_reader(options)(
            snapshot,
            requested_schema(snapshot.schema, schema, path),
            options,
            () if predicates_text is None else parse_predicates(predicates_text, snapshot.schema),
            # Beside a moment of `HudiTable`, Spark itself reads the slices without logs, unless `WHOLE` asks for all.
            merged_alone=moment is not None and self._carried_text(WHOLE) is None,
            buckets=self._carried_buckets(),
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer; it writes nothing before the first task has rows.

        Args:
            schema: The columns of the rows.
            overwrite: Whether the save mode is ``overwrite``.

        Returns:
            The writer.

        Raises:
            PyHudiError: The options, the columns or the table do not allow the write.
        """
        from .source.writer import HudiWriter  # noqa: PLC0415

        options, path = self._options_and_path(reading=False)
        spelled = {key: self._carried_text(key) for key in OF_WRITES}
        return HudiWriter.planned(path, options, schema, overwrite=overwrite, spelled=spelled)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of a stream of the table; it opens the table when Spark first asks it for an offset.

        Args:
            schema: The columns to read: the user's schema, or the result of `schema`.

        Returns:
            The reader.

        Raises:
            OptionError: The path or an option cannot be used.
        """
        options, path = self._options_and_path(reading=True)
        _refuse_other_columns(options, schema, path)
        # Raises for options that a stream cannot have.
        options.to_stream()
        # Spark calls `schema` unless the user gave the columns.
        is_schema_given = self._columns is None
        if find_spec("pyspark.sql.streaming.datasource") is None:
            from .stream.source import HudiStreamReader  # noqa: PLC0415 (as above)

            return HudiStreamReader(path, schema, options, is_schema_given=is_schema_given)
        from .stream.available_now import AvailableNowReader  # noqa: PLC0415

        return AvailableNowReader(path, schema, options, is_schema_given=is_schema_given)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of a streaming query's batches.

        Args:
            schema: The columns of the rows.
            overwrite: Whether each batch replaces the data, as in output mode complete.

        Returns:
            The writer; it has a plan if Spark is planning a batch.

        Raises:
            PyHudiError: The options, the columns or the table do not allow the write.
        """
        from .stream.sink import HudiStreamWriter  # noqa: PLC0415

        options, path = self._options_and_path(reading=False)
        writer = HudiStreamWriter(
            path, options, schema, overwrite=overwrite, checkpoint=self._carried_text(_CHECKPOINT)
        )
        return writer if self._sent else writer.planned()

    def _options_and_path(self, *, reading: bool) -> tuple[HudiOptions, str]:
        """Return the options, without those that Spark and `HudiTable` add, and the table's path.

        ``reading`` says whether the call reads the table, as some options are for reads or for writes only.
        """
        from ..options.secrets import tell_what_spark_shows  # noqa: PLC0415
        from ..options.sources import READING, WRITING, resolve_options  # noqa: PLC0415

        path = self._path()
        tell_what_spark_shows(self.options)
        carried = {PINNED, WHOLE, WHERE, BUCKETS, SOUGHT, *OF_WRITES, *_OF_SPARK}
        user_options = {name: value for name, value in self.options.items() if name.lower() not in carried}
        return resolve_options(user_options, path, READING if reading else WRITING).options, path

    def _carried_moment(self) -> Watermark | None:
        """Return the moment of `HudiTable.to_df`; None in a read without `HudiTable`."""
        text = self._carried_text(PINNED)
        if text is None:
            return None
        from ..timeline.watermark import Watermark  # noqa: PLC0415
        from .source.carried_options import parse_carried  # noqa: PLC0415

        return parse_carried(Watermark, PINNED, text)

    def _carried_buckets(self) -> BucketChoice | None:
        """Return the buckets that a join or an aggregation by bucket reads with this source; None for all."""
        text = self._carried_text(BUCKETS)
        if text is None:
            return None
        from ..reader.buckets.bucket_groups import BucketChoice  # noqa: PLC0415
        from .source.carried_options import parse_carried  # noqa: PLC0415

        return parse_carried(BucketChoice, BUCKETS, text)

    def _carried_text(self, option: str) -> str | None:
        """Return the text of an option that only `HudiTable` or Spark sets; None if it is absent."""
        return next((value for name, value in self.options.items() if name.lower() == option), None)

    def _path(self) -> str:
        """Return the absolute path of the table; refuses several paths, and none."""
        from ..options.parsing import path_of  # noqa: PLC0415

        if "paths" in self.options:
            raise UnsupportedOptionError(
                f"The read has several paths, {self.options['paths']}, but can only read one table.",
                "Load each table by itself and unite them.",
            )
        path = path_of(self.options)
        if not path:
            raise MissingOptionError(
                "There is no path, so the table's location is unknown. For a table of its catalog, Spark passes no "
                "path to a Python data source.",
                "Give the path to load() or save(), or to CREATE TEMPORARY VIEW … USING pyhudi OPTIONS (path '…').",
            )
        return absolute(path)


def _refuse_other_columns(options: HudiOptions, schema: StructType, path: str) -> None:
    """Refuse a read whose option ``columns`` names other columns than its schema."""
    column_names = tuple(field.name for field in schema.fields)
    if options.columns is not None and options.columns != column_names:
        raise OptionConflictError(
            f"The option columns names {', '.join(options.columns)}, and the schema given for reading {path} has "
            f"{', '.join(column_names)}.",
            "Give either the option or the schema.",
        )
